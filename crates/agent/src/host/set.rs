//! `host.set`: the MTU of a rack's host or of its routes, of all NICs or of one, or the rate and the packets of its shapers,
//! while it works; and the end of its connections.

use crate::pipe::call::Call;
use crate::pipe::lock::lock;
use crate::pipe::message::Failure;
use crate::pipe::message::{Answer, params};
use framegauge_drivers::generators::sockets::end_small_connections;
use framegauge_drivers::own::monotonic_nanoseconds;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    /// The NIC that the MTUs and packets are of, from 0; none: all of them.
    nic: Option<usize>,
    mtu: Option<u32>,
    /// That of its routes, whatever the interfaces have; 0: theirs.
    route_mtu: Option<u32>,
    /// Ends the connections with other hosts whose MSS is below what routes allow.
    #[serde(default)]
    reopen: bool,
    /// The largest packet that it sends by `nic`, for its shaper.
    packet_bytes: Option<u32>,
    shaper: Option<NicRate>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NicRate {
    /// From 0.
    nic: usize,
    bits_per_second: u64,
}

/// Changes it; connections that are there keep their MSS.
pub fn run(call: &Call) -> Answer {
    let request: Set = params(&call.request)?;
    let mut applied = lock(&call.session.host.applied);
    let applied = applied.as_mut().filter(|applied| !applied.is_adopted());
    let applied = applied.ok_or_else(|| Failure::state("only a rack's own host is changed so"))?;
    if let Some(mtu) = request.mtu {
        applied.change_mtu(request.nic, mtu)?;
    }
    if let Some(mtu) = request.route_mtu {
        applied.hold_routes(request.nic, mtu)?;
    }
    if let Some(packet_bytes) = request.packet_bytes {
        applied.change_packets(request.nic.unwrap_or(0), packet_bytes)?;
    }
    if let Some(NicRate { nic, bits_per_second }) = request.shaper {
        applied.change_rate(nic, bits_per_second)?;
    }
    let closed = if request.reopen { end_small_connections()? } else { 0 };
    Ok(json!({"time_seconds": monotonic_nanoseconds() as f64 * 1e-9, "closed": closed}))
}
