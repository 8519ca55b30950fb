//! `estimate.begin` and `estimate.end`: what bears on the gain of a larger MTU, from readings and a sample of headers.
//! Nothing is changed on the host.

use crate::host::foreign;
use crate::pipe::call::Call;
use crate::pipe::fields::within;
use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Failure, Nothing, params};
use crate::tools::sockets;
use framegauge_drivers::meters::CpuInterval;
use framegauge_drivers::meters::sockets::Held;
use framegauge_drivers::readings::{self, About, Counted, NicCounters, Readings, SizeRange, TunnelHere};
use framegauge_drivers::sample::{self, Asked, Carried, Sampled, Sampling, Sizes, Total, Way};
use framegauge_drivers::tap::MOST_INTERFACES;
use framegauge_drivers::tap::interfaces::own_connection;
use framegauge_drivers::tap::kernel::{Connection, TcpInfo};
use framegauge_frames::{FRAME_OVERHEAD_BYTES, WIRE_OVERHEAD_BYTES};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;

const METHOD: &str = "estimate.begin";
const MOST_TARGETS: usize = 8;
/// Connections of a sample that are told one by one, of all interfaces together.
const MOST_CONNECTIONS: usize = 5_000;
const TARGETS: (u32, u32) = (576, 65_535);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    interfaces: Vec<String>,
    target_mtus: Vec<u32>,
    sudo: bool,
}

/// An interval under way.
pub struct EstimateHere {
    readings: Readings,
}

/// Begins the interval.
pub fn begin(call: &Call) -> Answer {
    let request: Begin = params(&call.request)?;
    within(METHOD, "number of target_mtus", request.target_mtus.len(), 1, MOST_TARGETS)?;
    for mtu in &request.target_mtus {
        within(METHOD, "target_mtus", *mtu, TARGETS.0, TARGETS.1)?;
    }
    let mut held = lock(&call.session.host.estimate);
    if held.is_some() {
        return Err(Failure::state("an estimate is under way: estimate.end comes first"));
    }
    let interfaces = chosen(&request.interfaces)?;
    let names: Vec<String> = interfaces.iter().map(|about| about.interface.name.clone()).collect();
    let own = std::env::var("SSH_CONNECTION").ok().and_then(|variable| own_connection(&variable));
    let sampling = sampling(&interfaces, &request, own);
    let reason = sampling.as_ref().err().cloned();
    *held = Some(EstimateHere { readings: Readings::begin(interfaces, sampling, own)? });
    Ok(json!({"interfaces": names, "sample_error": reason}))
}

/// The interfaces that were named, or those with an address.
fn chosen(names: &[String]) -> Result<Vec<About>, Failure> {
    let interfaces = readings::interfaces(names)?;
    let missing = names.iter().find(|name| interfaces.iter().all(|about| about.interface.name != **name));
    if let Some(name) = missing {
        return Err(Failure::state(format!("found no interface {name}, expected one of this host")));
    }
    match interfaces.len() {
        0 => Err(Failure::state("found no interface that is up and has an address, expected one")),
        1..=MOST_INTERFACES => Ok(interfaces),
        count => Err(Failure::state(format!(
            "found {count} interfaces, expected at most {MOST_INTERFACES}: name some"
        ))),
    }
}

/// A sample, or why there is none: the readings are of use without.
fn sampling(
    interfaces: &[About],
    request: &Begin,
    left_out: Option<(SocketAddr, SocketAddr)>,
) -> Result<Sampling, String> {
    let sockets = sockets::open(interfaces.len(), request.sudo).map_err(|refusal| match refusal {
        sockets::Refused::Rights(detail) => {
            format!("reading headers needs CAP_NET_RAW (root, or a rule for sudo): found {detail}")
        }
        sockets::Refused::Other(failure) => failure.message,
    })?;
    let interfaces = interfaces.iter().map(|about| (about.interface.clone(), about.mtu)).collect();
    let request = Asked { interfaces, targets: request.target_mtus.clone(), left_out };
    Sampling::begin(&request, sockets).map_err(|error| error.to_string())
}

/// Ends it and tells what was read.
pub fn end(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let estimate = lock(&call.session.host.estimate).take();
    let estimate = estimate.ok_or_else(|| Failure::state("estimate.begin comes first"))?;
    let read = estimate.readings.end()?;
    let (sample, reason) = match &read.sample {
        Ok(reading) => (sampled(reading, &read.interfaces, &read.held), None),
        Err(reason) => (Value::Null, Some(reason)),
    };
    let unread: Vec<Value> =
        read.unread.iter().map(|(program, reason)| json!({"program": **program, "why": reason})).collect();
    Ok(json!({
        "seconds": read.seconds,
        "link_bytes": FRAME_OVERHEAD_BYTES + WIRE_OVERHEAD_BYTES,
        "interfaces": read.interfaces.iter().map(interface).collect::<Vec<Value>>(),
        "cpu": cpu(&read.cpu),
        "counters": read.counters,
        "loopback_packets": read.loopback_packets,
        "connections": read.connections.iter().map(connection).collect::<Vec<Value>>(),
        "more_connections": read.more_connections,
        "sample": sample,
        "sample_error": reason,
        "unread": unread,
        "tunnels": readings::tunnels_here()?.iter().map(tunnel).collect::<Vec<Value>>(),
    }))
}

fn tunnel(tunnel: &TunnelHere) -> Value {
    json!({"interface": tunnel.interface, "kind": tunnel.kind, "mtu": tunnel.mtu})
}

fn interface(counted: &Counted) -> Value {
    let (about, link) = (&counted.about, &counted.link);
    json!({
        "interface": about.interface.name,
        "mtu": about.mtu,
        "mtu_after": counted.mtu_after,
        "maximum_mtu": about.maximum_mtu,
        "driver": about.driver,
        "bits_per_second": about.bits_per_second,
        "offloads": about.offloads,
        "received": {"packets": link.rx_packets, "bytes": link.rx_bytes},
        "sent": {"packets": link.tx_packets, "bytes": link.tx_bytes},
        "nic": counted.nic.as_ref().ok().map(nic),
        "nic_error": counted.nic.as_ref().err(),
    })
}

fn nic(counters: &NicCounters) -> Value {
    let ranges = |all: &[SizeRange]| -> Vec<Value> {
        let range = |bin: &SizeRange| json!({"least_bytes": bin.least_bytes, "most_bytes": bin.most_bytes, "frames": bin.frames});
        all.iter().map(range).collect()
    };
    json!({"received": ranges(&counters.received), "sent": ranges(&counters.sent),
           "received_frames": counters.received_frames, "sent_frames": counters.sent_frames})
}

fn cpu(interval: &CpuInterval) -> Value {
    let cpus: Vec<Value> = interval
        .cpus
        .iter()
        .map(|(cpu, used)| {
            json!({"cpu": cpu, "user": used.user, "nice": used.nice, "system": used.system, "idle": used.idle,
                   "iowait": used.iowait, "irq": used.irq, "softirq": used.softirq, "steal": used.steal})
        })
        .collect();
    let sum = |of: fn(&framegauge_drivers::meters::NetworkSoftirqs) -> u64| -> u64 {
        interval.softirqs.iter().map(|(_, counts)| of(counts)).sum()
    };
    json!({"elapsed_seconds": interval.elapsed_seconds, "cpus": cpus,
           "receive_softirqs": sum(|counts| counts.receive), "transmit_softirqs": sum(|counts| counts.transmit)})
}

/// What a connection counted in the interval. One that is not there any more, or began in it, was not there all the time.
fn connection(connection: &Connection) -> Value {
    let before = connection.before.unwrap_or_default();
    let after = &connection.after;
    let seconds = |of: fn(&TcpInfo) -> f64| (of(after) - of(&before)).max(0.0);
    let count = |of: fn(&TcpInfo) -> u64| of(after).saturating_sub(of(&before));
    json!({
        "local": connection.local.to_string(),
        "remote": connection.remote.to_string(),
        "throughout": connection.before.is_some() && !connection.ended,
        "mss_bytes": after.mss_bytes,
        "path_mtu": after.path_mtu,
        "srtt_seconds": after.srtt_seconds,
        "busy_seconds": seconds(|info| info.busy_seconds),
        "receiver_limited_seconds": seconds(|info| info.receiver_limited_seconds),
        "buffer_limited_seconds": seconds(|info| info.buffer_limited_seconds),
        "sent_bytes": count(|info| info.bytes_sent),
        "retransmitted_bytes": count(|info| info.bytes_retransmitted),
        "received_bytes": count(|info| info.bytes_received),
        "segments_sent": count(|info| info.segments_sent.into()),
        "segments_received": count(|info| info.segments_received.into()),
        "data_segments_sent": count(|info| info.data_segments_sent.into()),
        "data_segments_received": count(|info| info.data_segments_received.into()),
    })
}

fn sampled(sampled: &Sampled, interfaces: &[Counted], held: &[Held]) -> Value {
    let holders: BTreeMap<(SocketAddr, SocketAddr), &Held> =
        held.iter().map(|holder| ((holder.local, holder.remote), holder)).collect();
    let most = MOST_CONNECTIONS / interfaces.len().max(1);
    let interfaces: Vec<Value> = sampled
        .sizes
        .iter()
        .zip(interfaces)
        .map(|(sizes, counted)| sampled_interface(sizes, &counted.about.interface.name, &holders, most))
        .collect();
    json!({"windows": sampled.windows, "full_windows": sampled.full_windows,
           "window_seconds": sampled.window_seconds, "cpu_seconds": sampled.cpu_seconds,
           "interfaces": interfaces})
}

fn sampled_interface(
    sizes: &Sizes,
    name: &str,
    holders: &BTreeMap<(SocketAddr, SocketAddr), &Held>,
    most: usize,
) -> Value {
    let [received, sent] = sizes.totals();
    let ways: Vec<Value> = sizes
        .ways()
        .iter()
        .map(|(full_bytes, [received, sent])| {
            json!({"full_bytes": full_bytes, "received": way(received), "sent": way(sent)})
        })
        .collect();
    let all = sizes.connections();
    let connections: Vec<Value> = all
        .iter()
        .take(most)
        .map(|connection| {
            sampled_connection(connection, holders.get(&(connection.local, connection.remote)).copied())
        })
        .collect();
    let strangers: Vec<Value> =
        sizes.strangers().kinds().map(|(kind, lengths)| foreign::shown(kind, lengths)).collect();
    json!({"interface": name, "received": total(&received), "sent": total(&sent), "ways": ways, "foreign": strangers,
           "connections": connections, "more_connections": all.len().saturating_sub(most)})
}

fn total(total: &Total) -> Value {
    json!({"aggregates": total.aggregates, "aggregate_bytes": total.aggregate_bytes, "packets": total.packets,
           "bytes": total.bytes, "tcp_packets": total.tcp_packets, "tcp_header_bytes": total.tcp_header_bytes,
           "others": total.others})
}

fn way(way: &Way) -> Value {
    let messages: Vec<Value> = way
        .messages
        .iter()
        .map(|((full, end_bytes), count)| json!({"full": full, "end_bytes": end_bytes, "count": count}))
        .collect();
    let left: Vec<Value> = way
        .left
        .iter()
        .map(|left| left.settled())
        .map(|left| json!({"likely": left.likely, "least": left.least, "most": left.most}))
        .collect();
    let merged: Vec<Value> =
        way.left.iter().map(|left| json!({"likely": left.merged, "most": left.within})).collect();
    json!({"full": way.full, "small": way.small, "small_bytes": way.small_bytes,
           "acknowledgements": way.acknowledgements,
           "acknowledgements_known": way.known, "acknowledgements_left": left,
           "answers_merged": merged, "messages": messages, "more_messages": way.more_messages})
}

fn sampled_connection(connection: &sample::Connection, held: Option<&Held>) -> Value {
    let [received, sent] = &connection.ways;
    json!({
        "local": connection.local.to_string(),
        "remote": connection.remote.to_string(),
        "full_bytes": connection.full_bytes,
        "received": carried(received),
        "sent": carried(sent),
        "open": held.is_some(),
        "process": held.and_then(|held| held.process),
        "program": held.and_then(|held| held.program.as_deref()),
        "nodelay": held.and_then(|held| held.nodelay),
    })
}

fn carried(carried: &Carried) -> Value {
    json!({"segments": carried.segments, "messages": carried.messages, "after": carried.after,
           "between": carried.between})
}
