//! What a sample saw without TCP that can be read, with what fits inside of packets of that length.

use framegauge_drivers::sample::{Class, Foreign, Lengths};
use framegauge_frames::{Encapsulation, EspSuite, Family, Mtu, OpenVpnSuite, Stack};
use serde_json::{Value, json};

/// A kind with what was received and what was sent.
pub fn shown(foreign: &Foreign, [received, sent]: &[Lengths; 2]) -> Value {
    let longest = received.longest().max(sent.longest());
    let tunnel = encapsulation(foreign).filter(|_| received.large_bytes + sent.large_bytes > 0);
    let inside = tunnel.zip(longest).and_then(|(tunnel, outer)| inner(tunnel, outer));
    let version = if foreign.is_v6 { 6 } else { 4 };
    json!({
        "class": foreign.class.name(),
        "family": (foreign.class != Class::Fragment && *foreign != Foreign::NO_IP).then_some(version),
        "port": foreign.port,
        "longest_bytes": longest,
        "layer": tunnel.map(|tunnel| tunnel.to_string()),
        "inner_mtu": inside,
        "received": lengths(received),
        "sent": lengths(sent),
    })
}

/// What such packets are encapsulated by, in the usual form of each.
fn encapsulation(foreign: &Foreign) -> Option<Encapsulation> {
    let underlay = if foreign.is_v6 { Family::V6 } else { Family::V4 };
    let suite = EspSuite::default();
    match foreign.class {
        Class::WireGuard => Some(Encapsulation::WireGuard { underlay }),
        Class::Esp => Some(Encapsulation::EspTunnel { underlay, nat_traversal: false, suite }),
        Class::EspInUdp => Some(Encapsulation::EspTunnel { underlay, nat_traversal: true, suite }),
        Class::OpenVpn => Some(Encapsulation::OpenVpn { underlay, tap: false, suite: OpenVpnSuite::Aead }),
        _ => None,
    }
}

fn inner(tunnel: Encapsulation, outer: u32) -> Option<u32> {
    let stack = Stack::new(vec![tunnel.into()]).ok()?;
    stack.fit(Mtu::new(outer).ok()?).ok().map(|fit| fit.inner_mtu.bytes())
}

fn lengths(lengths: &Lengths) -> Value {
    json!({"packets": lengths.packets, "bytes": lengths.bytes, "large_bytes": lengths.large_bytes})
}
