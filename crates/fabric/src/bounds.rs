//! How soon a frame can be at a host, by where it is.

use framegauge_frames::{Picoseconds, frame_bytes, wire_bytes};

use crate::port::{Peer, Port};
use crate::routing::Routes;
use crate::uplink::Uplink;
use crate::{HostIndex, PortIndex};

/// How soon a frame can be at its destination, by where it is: no frame that comes to a switch is faster.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    hosts: usize,
    /// By table and destination: along the fastest of all ways, as the smallest frame.
    rest: Vec<Picoseconds>,
    /// By table: the smallest of them.
    nearest: Vec<Picoseconds>,
    /// From any host to the nearest of them.
    lookahead: Picoseconds,
}

impl Bounds {
    pub(crate) fn new(routes: &Routes, hosts: usize, ports: &[Port], uplinks: &[Uplink]) -> Bounds {
        let mut rest = vec![Picoseconds::MAX; routes.tables() * hosts];
        let hop = |port: &Port| {
            port.delay().saturating_add(port.rate().serialisation(u64::from(wire_bytes(frame_bytes(0)))))
        };
        let hops: Vec<Picoseconds> = ports.iter().map(hop).collect();
        // Each round lengthens the ways by one link; the longest has as many as there are tables, at most.
        loop {
            let mut is_final = true;
            for (place, group) in routes.groups().enumerate() {
                let behind = |port: &PortIndex| match ports[usize::from(port.0)].peer {
                    Peer::Host(_) => Picoseconds::ZERO,
                    Peer::Switch(_) => rest[routes.table(*port) * hosts + place % hosts],
                };
                let ways = group.iter().map(|port| hops[usize::from(port.0)].saturating_add(behind(port)));
                let fastest = ways.min().unwrap_or(Picoseconds::MAX);
                is_final &= fastest >= rest[place];
                rest[place] = rest[place].min(fastest);
            }
            if is_final {
                break;
            }
        }
        let nearest = rest.chunks(hosts).map(|row| row.iter().copied().min().unwrap_or(Picoseconds::MAX));
        let nearest: Vec<Picoseconds> = nearest.collect();
        let from = |uplink: &Uplink| {
            let behind = match ports[usize::from(uplink.port.0)].peer {
                Peer::Host(_) => Picoseconds::ZERO,
                Peer::Switch(_) => nearest[routes.table(uplink.port)],
            };
            hops[usize::from(uplink.port.0)].saturating_add(behind)
        };
        let lookahead = uplinks.iter().map(from).min().unwrap_or(Picoseconds::ZERO);
        Bounds { hosts, nearest, lookahead, rest }
    }

    /// From any host's NIC to the nearest other host.
    pub(crate) fn lookahead(&self) -> Picoseconds {
        self.lookahead
    }

    /// From the end of a link with this table to a host, or to the nearest.
    pub(crate) fn rest(&self, table: usize, destination: Option<HostIndex>) -> Picoseconds {
        match destination {
            Some(host) => self.rest[table * self.hosts + usize::from(host.0)],
            None => self.nearest[table],
        }
    }
}
