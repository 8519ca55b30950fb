//! `capture.about`, `.begin`, `.state` and `.end`: headers of what passes the host's interfaces, and what its kernel
//! counts meanwhile.

use crate::pipe::call::Call;
use crate::pipe::fields::within;
use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Failure, Nothing, params};
use crate::tools::sockets;
use framegauge_drivers::own::monotonic_nanoseconds;
use framegauge_drivers::rack::requirements::Requirement;
use framegauge_drivers::tap::interfaces::{Interface, interfaces, own_connection};
use framegauge_drivers::tap::kernel::{Connection, KernelWatch, Sign, Trouble, Watched, named};
use framegauge_drivers::tap::{
    self, Asked, Capturing, Done, Filter, MOST_INTERFACES, MOST_LEFT_OUT, MOST_PORTS,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;

const METHOD: &str = "capture.begin";
const SNAP_BYTES: (u32, u32) = (64, 262_144);
/// A spool is not larger than 1 GiB, and has a little more than the packets.
const KEPT_BYTES: (u64, u64) = (1 << 20, 1000 << 20);
const LONGEST_SECONDS: f64 = 1e9;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    host: String,
    interfaces: Vec<String>,
    ports: Vec<u16>,
    left_out: Vec<(String, String)>,
    snap_bytes: u32,
    most_bytes: u64,
    signs: BTreeMap<String, i64>,
    sudo: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    last_seconds: Option<f64>,
}

/// A capture, and the watch beside it.
pub struct CaptureHere {
    capturing: Capturing,
    watch: KernelWatch,
}

/// What could be captured here, and by which connection this agent is controlled.
pub fn about(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let all: Vec<Value> = interfaces()?
        .iter()
        .map(|interface| json!({"interface": interface.name, "up": interface.up, "usual": interface.usual}))
        .collect();
    let ssh = std::env::var("SSH_CONNECTION").ok().and_then(|variable| own_connection(&variable));
    let ssh = ssh.map(|(client, server)| json!({"client": client.to_string(), "server": server.to_string()}));
    let (folder, free_bytes) = tap::room()?;
    Ok(json!({"interfaces": all, "ssh": ssh, "folder": folder, "free_bytes": free_bytes}))
}

/// Begins to capture.
pub fn begin(call: &Call) -> Answer {
    let request: Begin = params(&call.request)?;
    let mut held = lock(&call.session.host.tap);
    if held.is_some() {
        return Err(Failure::state("a capture is under way: capture.end comes first"));
    }
    let interfaces = chosen(&request.interfaces)?;
    let filter = Filter {
        ethernet: true,
        ports: limited("ports", request.ports, MOST_PORTS)?,
        left_out: left_out(request.left_out)?,
        snap_bytes: within(METHOD, "snap_bytes", request.snap_bytes, SNAP_BYTES.0, SNAP_BYTES.1)?,
    };
    let most_bytes = within(METHOD, "most_bytes", request.most_bytes, KEPT_BYTES.0, KEPT_BYTES.1)?;
    let (folder, free_bytes) = tap::room()?;
    // One part of sixteen in addition, while it is put together.
    if free_bytes < most_bytes + most_bytes / 16 {
        return Err(Failure::refused(&format!("room for a capture in {folder}"), most_bytes, free_bytes));
    }
    let signs = signs(&request.signs)?;
    let sockets = sockets::open(interfaces.len(), request.sudo).map_err(|reason| not_permitted(&reason))?;
    let names: Vec<String> = interfaces.iter().map(|interface| interface.name.clone()).collect();
    let watch = KernelWatch::begin(signs)?;
    let capturing = Capturing::begin(&Asked { host: request.host, interfaces, filter, most_bytes }, sockets)?;
    *held = Some(CaptureHere { capturing, watch });
    Ok(json!({"interfaces": names}))
}

fn limited<T>(name: &str, all: Vec<T>, most: usize) -> Result<Vec<T>, Failure> {
    within(METHOD, &format!("number of {name}"), all.len(), 0, most)?;
    Ok(all)
}

fn left_out(pairs: Vec<(String, String)>) -> Result<Vec<(SocketAddr, SocketAddr)>, Failure> {
    let end = |text: &str| -> Result<SocketAddr, Failure> {
        text.parse().map_err(|_| {
            Failure::invalid_params(METHOD, format!("left_out: found {text:?}, expected ADDRESS:PORT"))
        })
    };
    let pairs = limited("left_out", pairs, MOST_LEFT_OUT)?;
    pairs.iter().map(|(one, other)| Ok((end(one)?, end(other)?))).collect()
}

fn signs(thresholds: &BTreeMap<String, i64>) -> Result<Vec<(Sign, i64)>, Failure> {
    let pair = |(name, least): (&String, &i64)| -> Result<(Sign, i64), Failure> {
        let sign = named(name).ok_or_else(|| {
            Failure::invalid_params(METHOD, format!("signs: found {name:?}, expected one that is known"))
        })?;
        Ok((sign, within(METHOD, name, *least, 1, i64::MAX)?))
    };
    thresholds.iter().map(pair).collect()
}

/// The interfaces that were named, or the usual ones.
fn chosen(names: &[String]) -> Result<Vec<Interface>, Failure> {
    let all = interfaces()?;
    let list = |some: &mut dyn Iterator<Item = &Interface>| {
        some.map(|interface| interface.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let mut interfaces: Vec<Interface> = Vec::new();
    for name in names {
        let choice = all.iter().find(|interface| interface.name == *name).ok_or_else(|| {
            Failure::state(format!("found no interface {name}, expected one of {}", list(&mut all.iter())))
        })?;
        if !choice.up {
            return Err(Failure::state(format!("found the interface {name} down, expected it up")));
        }
        if !interfaces.contains(choice) {
            interfaces.push(choice.clone());
        }
    }
    if names.is_empty() {
        interfaces.extend(all.iter().filter(|interface| interface.usual).cloned());
    }
    match interfaces.len() {
        0 => {
            let all = list(&mut all.iter());
            Err(Failure::state(format!("found no interface that is up and has an address; there are {all}")))
        }
        1..=MOST_INTERFACES => Ok(interfaces),
        count => Err(Failure::state(format!(
            "found {count} interfaces, expected at most {MOST_INTERFACES}: name some of {}",
            list(&mut interfaces.iter())
        ))),
    }
}

fn not_permitted(refusal: &sockets::Refused) -> Failure {
    match refusal {
        sockets::Refused::Rights(detail) => Failure::missing(&[Requirement {
            name: "CAP_NET_RAW",
            needed_for: "capturing packets",
            found: detail.clone(),
            remedy: "use root, allow the agent to sudo without a password, or give it the capability",
        }]),
        sockets::Refused::Other(failure) => failure.clone(),
    }
}

/// How far it is.
pub fn state(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let held = lock(&call.session.host.tap);
    let capture = held.as_ref().ok_or_else(|| Failure::state("capture.begin comes first"))?;
    let state = capture.capturing.state()?;
    Ok(json!({"seconds": state.seconds, "packets": state.packets, "wire_bytes": state.wire_bytes,
              "dropped_packets": state.dropped_packets, "kept_bytes": state.kept_bytes,
              "cpu_seconds": state.cpu_seconds, "trouble": capture.watch.trouble().as_ref().map(shown)}))
}

/// Ends it.
pub fn end(call: &Call) -> Answer {
    let End { last_seconds } = params(&call.request)?;
    if let Some(seconds) = last_seconds {
        within("capture.end", "last_seconds", seconds, 0.0, LONGEST_SECONDS)?;
    }
    let held = lock(&call.session.host.tap).take();
    let CaptureHere { capturing, watch } = held.ok_or_else(|| Failure::state("capture.begin comes first"))?;
    let done = capturing.end(last_seconds)?;
    let watched = watch.end()?;
    let mut answer = told(&done, &watched);
    answer["spool"] = json!(call.session.spools.keep(done.file));
    Ok(answer)
}

fn told(done: &Done, watched: &Watched) -> Value {
    let interfaces: Vec<Value> = done
        .interfaces
        .iter()
        .map(|interface| {
            json!({"interface": interface.interface, "packets": interface.packets,
                   "dropped_packets": interface.dropped_packets})
        })
        .collect();
    let connections: Vec<Value> = watched.connections.iter().map(connection).collect();
    let seconds = (done.end_nanoseconds - done.start_nanoseconds) as f64 * 1e-9;
    json!({"seconds": seconds, "begin_seconds": done.start_nanoseconds as f64 * 1e-9,
           "end_seconds": done.end_nanoseconds as f64 * 1e-9, "packets": done.state.packets,
           "wire_bytes": done.state.wire_bytes,
           "dropped_packets": done.interfaces.iter().map(|interface| interface.dropped_packets).sum::<u64>(),
           "kept_packets": done.kept.packets, "given_up_packets": done.kept.given_up,
           "cut_packets": done.kept.cut, "cpu_seconds": done.state.cpu_seconds,
           "watch_cpu_seconds": watched.cpu_seconds, "interfaces": interfaces,
           "counters_before": watched.before, "counters_after": watched.after, "connections": connections,
           "more_connections": watched.more, "lost_ends": watched.lost,
           "trouble": watched.trouble.as_ref().map(shown)})
}

fn shown(trouble: &Trouble) -> Value {
    let signs: BTreeMap<&str, &BTreeMap<String, i64>> =
        trouble.seen.iter().map(|sighting| (sighting.sign, &sighting.counted)).collect();
    let connections: Vec<Value> = trouble
        .connections
        .iter()
        .map(|(local, remote)| json!({"local": local.to_string(), "remote": remote.to_string()}))
        .collect();
    let ago = monotonic_nanoseconds().saturating_sub(trouble.time_nanoseconds) as f64 * 1e-9;
    json!({"ago_seconds": ago, "signs": signs, "connections": connections})
}

fn connection(connection: &Connection) -> Value {
    json!({"local": connection.local.to_string(), "remote": connection.remote.to_string(), "ended": connection.ended,
           "before": connection.before.as_ref().map(info), "after": info(&connection.after)})
}

fn info(info: &tap::kernel::TcpInfo) -> Value {
    json!({"srtt_seconds": info.srtt_seconds, "least_rtt_seconds": info.least_rtt_seconds,
           "mss_bytes": info.mss_bytes, "path_mtu": info.path_mtu, "cwnd_segments": info.cwnd_segments,
           "sent_bytes": info.bytes_sent, "acknowledged_bytes": info.bytes_acked,
           "received_bytes": info.bytes_received, "retransmitted_bytes": info.bytes_retransmitted,
           "retransmits": info.retransmits, "timeouts": info.timeouts,
           "duplicates_told": info.duplicates_told, "reorderings": info.reorderings,
           "busy_seconds": info.busy_seconds, "receiver_limited_seconds": info.receiver_limited_seconds,
           "buffer_limited_seconds": info.buffer_limited_seconds})
}
