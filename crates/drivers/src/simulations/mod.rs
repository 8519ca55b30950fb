//! Runs a simulation, tells how far it is, and writes its tables into a folder.

mod capture;

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use framegauge_fabric::{FabricConfig, PortCounters};
use framegauge_frames::Picoseconds;
use framegauge_networks::Network;
use framegauge_simulator::{Logged, Outcome, PortSample, Scenario, ScenarioSpec, Simulation};
use serde::Serialize;
use serde_json::{Value, json};

pub use self::capture::Watched;
use crate::fabric::ports::Drops;
use crate::meters;
use crate::spool::{self, Column};

/// Between two reports of progress, in real time.
const REPORT_EVERY: Duration = Duration::from_millis(200);
/// Parts into which the simulated time is cut to look at the clock.
const PARTS: u64 = 2000;

/// How far a simulation is.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Progress {
    /// Simulated time, in seconds.
    pub now_seconds: f64,
    /// When it ends at the latest.
    pub end_seconds: f64,
    /// Segments so far.
    pub segments: u64,
}

/// The memory that a scenario takes, and this machine has, before any of it is taken.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Memory {
    /// What it takes, roughly.
    pub needed_bytes: u64,
    /// What is available; `None` where the kernel does not say.
    pub available_bytes: Option<u64>,
}

impl Memory {
    /// Of this scenario, on this machine, now.
    pub fn of(spec: &ScenarioSpec) -> Self {
        let text = std::fs::read_to_string("/proc/meminfo").ok();
        let available_bytes = text.and_then(|text| available_bytes(&text));
        Self { needed_bytes: spec.memory_bytes(), available_bytes }
    }
}

/// Refuses what would not fit into this machine's memory, in one line. Where it is not known, nothing is refused.
pub fn check_memory(spec: &ScenarioSpec) -> Result<(), String> {
    match Memory::of(spec) {
        Memory { needed_bytes, available_bytes: Some(available) } if needed_bytes > available => {
            Err(format!(
                "{} hosts and {} flows need about {:.1} GB of memory, found {:.1} GB available: ask for fewer",
                spec.hosts.len(),
                spec.flows.len(),
                needed_bytes as f64 * 1e-9,
                available as f64 * 1e-9
            ))
        }
        _ => Ok(()),
    }
}

fn available_bytes(text: &str) -> Option<u64> {
    bytes_of(text, "MemAvailable:")
}

/// The most memory that this process has had, where the kernel tells.
fn peak_bytes() -> Option<u64> {
    bytes_of(&std::fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// A line of the kernel's in kibibytes.
fn bytes_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(1024 * kibibytes)
}

/// Runs it; calls `report` now and then. Fails with one line.
pub fn run(scenario: Scenario, mut report: impl FnMut(Progress)) -> Result<(Outcome, f64), String> {
    let end = scenario.end;
    let begun = meters::cpu_snapshot().map_err(|error| error.to_string())?;
    let mut simulation = Simulation::new(scenario).map_err(|error| error.to_string())?;
    let mut reported = Instant::now();
    for part in 1..=PARTS {
        let until = Picoseconds::new((u128::from(end.get()) * u128::from(part) / u128::from(PARTS)) as u64);
        if !simulation.advance(until) {
            break;
        }
        if reported.elapsed() >= REPORT_EVERY {
            reported = Instant::now();
            report(Progress {
                now_seconds: simulation.now().as_seconds_f64(),
                end_seconds: end.as_seconds_f64(),
                segments: simulation.segments(),
            });
        }
    }
    let outcome = simulation.finished();
    let used = meters::cpu_snapshot().map_err(|error| error.to_string())?.since(&begun);
    Ok((outcome, used.process_seconds))
}

/// What a simulation came to, without the tables.
pub fn describe(outcome: &Outcome, network: &Network, cpu_seconds: f64) -> Value {
    let port = |(name, counters): (String, &PortCounters)| {
        let mut value = serde_json::to_value(Port::from(counters)).unwrap_or_default();
        value["port"] = json!(name);
        value
    };
    let flows = outcome.flows.iter().map(|flow| {
        let sender = flow.sender;
        let mut value = json!({
            "connections": flow.connections, "segments": sender.segments, "retransmits": sender.resends,
            "timeouts": sender.timeouts, "recoveries": sender.recoveries, "loss_probes": sender.probes,
            "undone": sender.undone, "marks": sender.marks, "lost_retransmits": sender.lost_resends,
        });
        if network.config.bonds.is_some() {
            value["exits"] = json!(flow.exits.map(|end| &network.config.hosts[usize::from(end)].name));
        }
        value
    });
    let requests = outcome.requests.iter().map(|requests| {
        json!({
            "started_seconds": requests.started.map(Picoseconds::as_seconds_f64),
            "late": requests.late, "unfinished": requests.unfinished,
        })
    });
    let cpus = outcome.cpus.iter().map(|cpu| {
        json!({
            "host": network.ends.owner_name(usize::from(cpu.host)),
            "busy_seconds": cpu.busy.iter().map(|busy| busy.as_seconds_f64()).collect::<Vec<_>>(),
            "received_packets": cpu.received_packets, "received_aggregates": cpu.received_aggregates,
        })
    });
    json!({
        "end_seconds": outcome.end.as_seconds_f64(),
        "received_bytes": outcome.transfers.iter().map(|transfer| transfer.bytes).sum::<u64>(),
        "events": outcome.events,
        "segments": outcome.segments,
        "delivered": outcome.delivered,
        "under_way": outcome.under_way,
        "cpu_seconds": cpu_seconds,
        "peak_bytes": peak_bytes(),
        "requests": requests.collect::<Vec<_>>(),
        "flows": flows.collect::<Vec<_>>(),
        "ports": network.config.port_names().into_iter().zip(&outcome.counters.ports).map(port).collect::<Vec<_>>(),
        "interrupts": outcome.counters.interrupts,
        "cpus": cpus.collect::<Vec<_>>(),
        "captured_left_out": outcome.passed_left_out,
        "drops_left_out": outcome.counters.unrecorded_drops,
    })
}

/// A port, in the words of `measure.end`, and its pauses.
#[derive(Serialize)]
struct Port {
    received_frames: u64,
    received_bytes: u64,
    sent_frames: u64,
    sent_bytes: u64,
    dropped_frames: u64,
    dropped_bytes: u64,
    giant_frames: u64,
    filtered_frames: u64,
    marked_frames: u64,
    lost_frames: u64,
    lost_bytes: u64,
    queued_frames: u64,
    queued_bytes: u64,
    peak_queue_bytes: u64,
    busy_seconds: f64,
    occupied_seconds: f64,
    pauses_sent: u64,
    paused_seconds: f64,
}

impl From<&PortCounters> for Port {
    fn from(port: &PortCounters) -> Port {
        Port {
            received_frames: port.received_frames,
            received_bytes: port.received_bytes,
            sent_frames: port.sent_frames,
            sent_bytes: port.sent_bytes,
            dropped_frames: port.dropped_frames,
            dropped_bytes: port.dropped_bytes,
            giant_frames: port.giant_frames,
            filtered_frames: port.filtered_frames,
            marked_frames: port.marked_frames,
            lost_frames: port.lost_frames,
            lost_bytes: port.lost_bytes,
            queued_frames: port.queued_frames,
            queued_bytes: port.queued_bytes,
            peak_queue_bytes: port.peak_queue_bytes,
            busy_seconds: port.busy.as_seconds_f64(),
            occupied_seconds: port.occupied.as_seconds_f64(),
            pauses_sent: port.pauses_sent,
            paused_seconds: port.paused.as_seconds_f64(),
        }
    }
}

/// Writes `transfers.arrow`, `queues.arrow`, `samples.arrow`, `segments.arrow` and `drops.arrow` into the folder,
/// and a capture of each port that was watched: `switch-h1.pcapng` of `switch>h1`.
pub fn write(
    outcome: &Outcome,
    network: &FabricConfig,
    watched: Option<&Watched>,
    folder: &Path,
) -> Result<(), String> {
    let names = network.port_names();
    let drops = Drops::collect(&outcome.drops, &names, 0).write();
    for (name, file) in [
        ("transfers.arrow", spool::write(transfers(outcome))),
        ("samples.arrow", spool::write(samples(outcome))),
        ("queues.arrow", spool::write(queues(outcome, &names))),
        ("segments.arrow", spool::write(segments(outcome))),
        ("drops.arrow", drops),
    ] {
        let file = file.map_err(|error| error.to_string())?;
        keep(file, &folder.join(name))
            .map_err(|error| format!("{}: {error}", folder.join(name).display()))?;
    }
    for capture in watched.into_iter().flat_map(|watched| capture::pcapng(outcome, watched, network)) {
        let (name, bytes) = capture?;
        let path = folder.join(name);
        std::fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn keep(mut from: File, to: &Path) -> io::Result<()> {
    io::Seek::rewind(&mut from)?;
    io::copy(&mut from, &mut File::create(to)?)?;
    Ok(())
}

fn transfers(outcome: &Outcome) -> Vec<(&'static str, Column)> {
    let all = &outcome.transfers;
    let seconds = |time: Picoseconds| time.as_seconds_f64();
    vec![
        ("flow", Column::Word(all.iter().map(|transfer| transfer.flow).collect())),
        ("round", Column::Word(all.iter().map(|transfer| transfer.round).collect())),
        ("step", Column::Word(all.iter().map(|transfer| transfer.step).collect())),
        ("start_seconds", Column::Float(all.iter().map(|transfer| seconds(transfer.begun)).collect())),
        (
            "connected_seconds",
            Column::Float(all.iter().map(|transfer| seconds(transfer.connected)).collect()),
        ),
        ("end_seconds", Column::Float(all.iter().map(|transfer| seconds(transfer.ended)).collect())),
        ("bytes", Column::Long(all.iter().map(|transfer| transfer.bytes).collect())),
        ("client_retransmits", Column::Long(all.iter().map(|transfer| transfer.resends[0]).collect())),
        ("server_retransmits", Column::Long(all.iter().map(|transfer| transfer.resends[1]).collect())),
        ("complete", Column::Word(all.iter().map(|transfer| u32::from(transfer.is_complete)).collect())),
    ]
}

/// In the words of the rack's series.
fn queues(outcome: &Outcome, names: &[String]) -> Vec<(&'static str, Column)> {
    let all = &outcome.port_samples;
    let long = |value: fn(&PortSample) -> u64| Column::Long(all.iter().map(value).collect());
    vec![
        ("time_seconds", Column::Float(all.iter().map(|sample| sample.time.as_seconds_f64()).collect())),
        ("port", Column::Text(all.iter().map(|sample| names[usize::from(sample.port.0)].clone()).collect())),
        ("queue_bytes", long(|sample| sample.queue_bytes)),
        ("peak_queue_bytes", long(|sample| sample.peak_queue_bytes)),
        ("sent_bytes", long(|sample| sample.sent_bytes)),
        ("dropped_frames", long(|sample| sample.dropped_frames)),
        ("marked_frames", long(|sample| sample.marked_frames)),
    ]
}

fn samples(outcome: &Outcome) -> Vec<(&'static str, Column)> {
    let all = &outcome.samples;
    vec![
        ("time_seconds", Column::Float(all.iter().map(|sample| sample.time.as_seconds_f64()).collect())),
        ("flow", Column::Word(all.iter().map(|sample| sample.flow).collect())),
        ("server_bytes", Column::Long(all.iter().map(|sample| sample.read_bytes[0]).collect())),
        ("client_bytes", Column::Long(all.iter().map(|sample| sample.read_bytes[1]).collect())),
        ("cwnd_segments", Column::Word(all.iter().map(|sample| sample.cwnd_segments).collect())),
        ("in_flight_segments", Column::Word(all.iter().map(|sample| sample.in_flight_segments).collect())),
        (
            "srtt_seconds",
            Column::Float(all.iter().map(|sample| sample.smoothed_rtt.as_seconds_f64()).collect()),
        ),
    ]
}

fn segments(outcome: &Outcome) -> Vec<(&'static str, Column)> {
    let all = &outcome.log;
    let words = |of: fn(&Logged) -> u32| Column::Word(all.iter().map(of).collect());
    let longs = |of: fn(&Logged) -> u64| Column::Long(all.iter().map(of).collect());
    let blocks = |logged: &Logged| {
        let ranges: Vec<String> = logged.blocks.iter().map(|(begin, end)| format!("{begin}-{end}")).collect();
        ranges.join(" ")
    };
    vec![
        ("time_seconds", Column::Float(all.iter().map(|logged| logged.time.as_seconds_f64()).collect())),
        ("connection", words(|logged| logged.connection)),
        ("from_client", words(|logged| logged.from_client.into())),
        ("sequence", longs(|logged| logged.sequence)),
        ("bytes", words(|logged| logged.bytes)),
        ("flags", words(|logged| logged.flags.into())),
        ("acknowledged", longs(|logged| logged.acknowledged)),
        ("window_bytes", words(|logged| logged.window_bytes)),
        ("blocks", Column::Text(all.iter().map(blocks).collect())),
        ("resend", words(|logged| logged.is_resend.into())),
        ("cwnd_segments", words(|logged| logged.cwnd_segments)),
        ("ssthresh_segments", words(|logged| logged.ssthresh_segments)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_from_its_line() {
        assert_eq!(available_bytes("MemTotal: 9 kB\nMemAvailable:   24 kB\n"), Some(24_576));
        assert_eq!(available_bytes("MemTotal: 9 kB\n"), None);
    }
}
