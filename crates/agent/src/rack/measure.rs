//! `measure.begin` and `measure.end`: the fabric's and the CPUs' counters over an interval.

use crate::pipe::call::Call;
use crate::pipe::fields::nanoseconds;
use crate::pipe::message::{Answer, Failure, Nothing, params};
use crate::rack::state::{Begun, Rack};
use framegauge_drivers::fabric::Meters;
use framegauge_drivers::fabric::capture::CaptureCounts;
use framegauge_drivers::fabric::ports::{FabricMeasurement, NicMeasurement};
use framegauge_drivers::fabric::watching::Watched;
use framegauge_drivers::meters::held::HeldMeter;
use framegauge_drivers::meters::{self, NetworkSoftirqs, rivals};
use framegauge_drivers::rack::cpus::CpuPlan;
use framegauge_drivers::rack::kernel_switch::KernelPort;
use framegauge_fabric::{FabricConfig, PortCounters, PortIndex, PortInterval};
use serde::Deserialize;
use serde_json::{Value, json};

fn with_rack<T>(call: &Call, work: impl FnOnce(&mut Rack) -> Result<T, Failure>) -> Result<T, Failure> {
    let mut current = call.session.rack.current();
    work(current.as_mut().ok_or_else(|| Failure::state("no rack is up"))?)
}

/// Of the CPUs of the hosts: often, as they are few and the rack's own.
const HELD_EVERY_NANOSECONDS: u64 = 2_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    sample_seconds: Option<f64>,
    #[serde(default)]
    watch: Vec<String>,
    #[serde(default)]
    capture: bool,
    around_seconds: Option<f64>,
}

/// Begins the interval.
pub fn begin(call: &Call) -> Answer {
    let Begin { sample_seconds, watch, capture, around_seconds } = params(&call.request)?;
    let sample = sample_seconds.map(sampling).transpose()?;
    let around = |seconds| nanoseconds("measure.begin", "around_seconds", seconds, 60.0);
    let around_nanoseconds = around_seconds.map(around).transpose()?;
    with_rack(call, |rack| {
        if let Some(fabric) = &rack.fabric {
            let watch = watched(rack.network.as_ref().map(|(_, network)| &network.config), &watch)?;
            fabric.begin(Meters {
                sample_nanoseconds: sample,
                record: false,
                watch,
                capture,
                around_nanoseconds,
            })?;
        }
        if let Some(switch) = &mut rack.switch {
            switch.begin()?;
        }
        let processes = rivals::snapshot();
        let held = HeldMeter::begin(&rack.cpus.hosts, HELD_EVERY_NANOSECONDS)?;
        rack.begun = Some(Begun { cpus: meters::cpu_snapshot()?, processes, held });
        Ok(json!({}))
    })
}

/// The ports of these names.
fn watched(network: Option<&FabricConfig>, names: &[String]) -> Result<Vec<PortIndex>, Failure> {
    let all: Vec<String> = network.map_or_else(Vec::new, |network| {
        (0..network.ports.len()).map(|port| network.port_name(PortIndex(port as u16))).collect()
    });
    let find = |name: &String| {
        let place = all.iter().position(|port_name| port_name == name);
        place.map(|place| PortIndex(place as u16)).ok_or_else(|| {
            let some = all.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
            let problem = format!("watch: found {name:?}, expected a port such as {some}");
            Failure::invalid_params("measure.begin", problem)
        })
    };
    names.iter().map(find).collect()
}

/// An interval between samples that the fabric has time for, in nanoseconds.
fn sampling(seconds: f64) -> Result<u64, Failure> {
    match nanoseconds("measure.begin", "sample_seconds", seconds, 60.0)? {
        0..1_000_000 => Err(Failure::invalid_params("measure.begin", "sample_seconds is 0.001 to 60")),
        interval => Ok(interval),
    }
}

/// All ports as they are now.
pub fn ports(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    with_rack(call, |rack| {
        let fabric = rack.fabric.as_ref();
        let fabric =
            fabric.ok_or_else(|| Failure::state("this rack has no fabric, whose ports could be read"))?;
        let look = fabric.look()?;
        let ports: Vec<Value> = look
            .ports
            .iter()
            .map(|(name, port)| describe_port(name, &port.since(&PortCounters::default())))
            .collect();
        Ok(json!({"time_seconds": look.time_nanoseconds as f64 * 1e-9, "ports": ports}))
    })
}

/// Ends it and reports.
pub fn end(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let (used, begun, plan, fabric, kernel_ports) = with_rack(call, |rack| {
        let begun = rack.begun.take().ok_or_else(|| Failure::state("measure.begin comes first"))?;
        let used = meters::cpu_snapshot()?.since(&begun.cpus);
        let fabric = rack.fabric.as_ref().map(|fabric| fabric.end()).transpose()?;
        let kernel_ports = rack.switch.as_ref().map(|switch| switch.end()).transpose()?.flatten();
        Ok((used, begun, rack.cpus.clone(), fabric, kernel_ports))
    })?;
    let held = begun.held.end();
    let rivals = rivals::snapshot().since(&begun.processes, std::process::id());
    let rivals = json!({"cpu_seconds": rivals.cpu_seconds, "names": rivals.names});
    let own_seconds = fabric.as_ref().map_or(0.0, |measured| measured.measurement.thread.cpu_seconds);
    let fabric = match fabric {
        None => Value::Null,
        Some(measured) => {
            let drops = call.session.spools.keep(measured.drops.write()?);
            let names: Vec<String> =
                measured.measurement.ports.iter().map(|(name, _)| name.clone()).collect();
            let series = measured.series.map(|series| series.write(&names)).transpose()?;
            let series = series.map(|(file, left_out)| (call.session.spools.keep(file), left_out));
            let mut described = describe(&measured.measurement, drops, series);
            let watched = measured.watching.map(|watching| watching.write(&names)).transpose()?;
            add_watched(call, &mut described, watched);
            let changes = measured.changes.iter();
            described["changes"] = changes
                .map(|change| json!({"time_seconds": change.time_seconds, "port": change.port}))
                .collect();
            described
        }
    };
    let cpus: Vec<Value> = used.cpus.iter().map(|(cpu, used)| cpu_value(*cpu, used, &plan)).collect();
    let softirqs: Vec<Value> = used.softirqs.iter().map(|(cpu, count)| softirq_value(*cpu, count)).collect();
    let kernel_ports = kernel_ports.map(|ports| ports.iter().map(port_value).collect::<Vec<_>>());
    let agent = json!({"cpu_seconds": used.process_seconds - own_seconds});
    Ok(json!({"elapsed_seconds": used.elapsed_seconds, "fabric": fabric, "kernel_ports": kernel_ports,
              "cpus": cpus, "softirqs": softirqs, "held": held, "rivals": rivals, "agent": agent}))
}

/// What happened at watched ports, and the capture, where there is any.
fn add_watched(call: &Call, described: &mut Value, watched: Option<Watched>) {
    let (events, left_out, capture) = match watched {
        None => (None, 0, None),
        Some(watched) => (Some(watched.events), watched.events_left_out, watched.capture),
    };
    let keep = |file| call.session.spools.keep(file);
    let (capture, counts) =
        capture.map_or((None, CaptureCounts::default()), |(file, counts)| (Some(file), counts));
    described["events"] = json!(events.map(keep));
    described["events_left_out"] = json!(left_out);
    described["capture"] = json!(capture.map(keep));
    described["capture_packets"] = json!(counts.packets);
    described["capture_left_out"] = json!(counts.left_out_packets);
}

fn softirq_value(cpu: u32, count: &NetworkSoftirqs) -> Value {
    json!({"cpu": cpu, "net_rx": count.receive, "net_tx": count.transmit})
}

fn port_value(port: &KernelPort) -> Value {
    json!({"port": port.port, "sent_bytes": port.sent_bytes, "sent_packets": port.sent_packets,
           "drops": port.drops, "backlog_bytes": port.backlog_bytes})
}

fn cpu_value(cpu: u32, used: &meters::CpuSeconds, plan: &CpuPlan) -> Value {
    let role = match plan.fabric {
        Some(own) if own == cpu as usize => "fabric",
        None if plan.hosts.contains(&(cpu as usize)) => "shared",
        _ if plan.hosts.contains(&(cpu as usize)) => "hosts",
        _ => "unused",
    };
    json!({"cpu": cpu, "role": role, "user_seconds": used.user, "nice_seconds": used.nice,
           "system_seconds": used.system, "idle_seconds": used.idle, "iowait_seconds": used.iowait,
           "irq_seconds": used.irq, "softirq_seconds": used.softirq, "steal_seconds": used.steal})
}

fn describe_port(name: &str, port: &PortInterval) -> Value {
    json!({"port": name, "received_frames": port.received_frames, "received_bytes": port.received_bytes,
           "sent_frames": port.sent_frames, "sent_bytes": port.sent_bytes,
           "dropped_frames": port.dropped_frames, "dropped_bytes": port.dropped_bytes,
           "giant_frames": port.giant_frames, "filtered_frames": port.filtered_frames,
           "marked_frames": port.marked_frames,
           "lost_frames": port.lost_frames, "lost_bytes": port.lost_bytes,
           "queued_frames": port.queued_frames, "queued_bytes": port.queued_bytes,
           "peak_queue_bytes": port.peak_queue_bytes, "busy_seconds": port.busy.as_seconds_f64(),
           "occupied_seconds": port.occupied.as_seconds_f64()})
}

fn describe(measured: &FabricMeasurement, drops: u64, series: Option<(u64, u64)>) -> Value {
    let ports: Vec<Value> = measured.ports.iter().map(|(name, port)| describe_port(name, port)).collect();
    let hosts: Vec<Value> = measured
        .hosts
        .iter()
        .map(|host| {
            let nic = |nic: &NicMeasurement| {
                json!({"data_frames": nic.data_frames, "data_frame_bytes": nic.data_frame_bytes,
                       "largest_frame_bytes": nic.largest_frame_bytes})
            };
            json!({"host": host.host, "read_packets": host.read_packets, "read_bytes": host.read_bytes,
                   "read_frames": host.read_frames, "largest_packet_bytes": host.largest_packet_bytes,
                   "aggregates": host.aggregates, "unroutable_packets": host.unroutable_packets,
                   "unfinished_checksums": host.unfinished_checksums, "interrupts": host.interrupts,
                   "written_packets": host.written_packets, "written_bytes": host.written_bytes,
                   "written_frames": host.written_frames, "merged_frames": host.merged_frames,
                   "write_errors": host.write_errors,
                   "data_frames": host.data_frames, "data_frame_bytes": host.data_frame_bytes,
                   "largest_frame_bytes": host.largest_frame_bytes,
                   "nics": host.nics.iter().map(nic).collect::<Vec<_>>()})
        })
        .collect();
    let waits: Vec<Value> = measured
        .waits
        .iter()
        .map(|wait| {
            json!({"port": wait.port, "input_port": wait.input_port, "frames": wait.frames,
                   "mean_seconds": wait.mean_seconds, "p50_seconds": wait.p50_seconds,
                   "p99_seconds": wait.p99_seconds, "p999_seconds": wait.p999_seconds,
                   "max_seconds": wait.max_seconds})
        })
        .collect();
    let background: Vec<Value> = measured
        .background
        .iter()
        .map(|load| {
            json!({"sent_frames": load.sent_frames, "sent_bytes": load.sent_bytes,
                   "delivered_frames": load.delivered_frames, "delivered_bytes": load.delivered_bytes})
        })
        .collect();
    let (late, thread) = (&measured.lateness, &measured.thread);
    json!({
        "ports": ports,
        "hosts": hosts,
        "lateness": {"count": late.count, "p50_seconds": late.p50_seconds, "p99_seconds": late.p99_seconds,
                     "max_seconds": late.max_seconds},
        "waits": waits,
        "background": background,
        "thread": {"cpu_seconds": thread.cpu_seconds, "involuntary_switches": thread.involuntary_switches,
                   "waited_seconds": thread.waited_seconds, "wakeups": thread.wakeups,
                   "scheduling": thread.scheduling, "cpu": thread.cpu},
        "drops": drops,
        "series": series.map(|(spool, _)| spool),
        "series_left_out": series.map_or(0, |(_, left_out)| left_out),
    })
}
