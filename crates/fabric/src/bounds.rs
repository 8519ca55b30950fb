//! Before when nothing can be delivered.

use std::cmp::Reverse;

use framegauge_frames::{Picoseconds, frame_bytes, wire_bytes};

use crate::fabric::Event;
use crate::nic::Nic;
use crate::port::{Peer, Port};
use crate::routing::Routes;
use crate::{Fabric, HostIndex, PortIndex};

/// How soon a frame can be at its destination, by where it is: no frame that comes to a switch is faster.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    hosts: usize,
    /// By table and destination: along the fastest of all ways, as the smallest frame.
    rest: Vec<Picoseconds>,
    /// By table: the smallest of them.
    nearest: Vec<Picoseconds>,
}

impl Bounds {
    pub(crate) fn new(routes: &Routes, hosts: usize, ports: &[Port]) -> Bounds {
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
        Bounds { hosts, nearest: nearest.collect(), rest }
    }

    /// From the end of a link with this table to a host, or to the nearest.
    pub(crate) fn rest(&self, table: usize, destination: Option<HostIndex>) -> Picoseconds {
        match destination {
            Some(host) => self.rest[table * self.hosts + usize::from(host.0)],
            None => self.nearest[table],
        }
    }
}

impl Fabric {
    /// Before this time no host is handed anything, whatever else happens meanwhile, if no host sends: a driver in real time
    /// may sleep until then, although frames move from port to port. Under load that is one wake-up an
    /// interrupt instead of several a frame.
    pub fn next_delivery(&mut self) -> Option<Picoseconds> {
        // Not with each change: all ports may be changed at once, and on a large fat-tree it takes a while.
        if self.bounds.is_none() {
            self.bounds = Some(Bounds::new(&self.routes, self.nics.len(), &self.ports));
        }
        let bounds = self.bounds.as_ref()?;
        let first = self.nics.iter().map(Nic::ready).min()?;
        let ready =
            |host: Option<HostIndex>| host.map_or(first, |host| self.nics[usize::from(host.0)].ready());
        let bound = |event: &Event| match self.ports.get(event.source as usize) {
            Some(port) => match port.peer {
                Peer::Host(host) => event.time.max(ready(Some(host))),
                Peer::Switch(_) => {
                    let (table, to) =
                        (self.routes.table(PortIndex(event.source as u16)), port.only_destination());
                    event.time.saturating_add(bounds.rest(table, to)).max(ready(to))
                }
            },
            None => event.time,
        };
        let soonest = self.events.iter().map(|Reverse(event)| bound(event));
        soonest.chain(self.next_background_delivery(bounds)).min()
    }
}
