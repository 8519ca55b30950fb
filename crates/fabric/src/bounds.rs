//! Before when nothing can be delivered.

use std::cmp::Reverse;

use framegauge_frames::{Picoseconds, frame_bytes, wire_bytes};

use crate::fabric::Event;
use crate::nic::Nic;
use crate::port::{Peer, Port};
use crate::routing::Routes;
use crate::uplink::Uplink;
use crate::{Fabric, HostIndex, PortIndex};

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

    /// From the end of a link with this table to a host, or to the nearest.
    pub(crate) fn rest(&self, table: usize, destination: Option<HostIndex>) -> Picoseconds {
        match destination {
            Some(host) => self.rest[table * self.hosts + usize::from(host.0)],
            None => self.nearest[table],
        }
    }
}

impl Fabric {
    /// Not with each change: all ports may be changed at once, and on a large fat-tree it takes a while.
    fn bounds(&mut self) -> &Bounds {
        let Fabric { bounds, routes, nics, ports, uplinks, .. } = self;
        bounds.get_or_insert_with(|| Bounds::new(routes, nics.len(), ports, uplinks))
    }

    /// No frame is handed to a host sooner than this after it was sent: a driver in real time that knows when hosts
    /// have sent something may learn of it so much later, and still be on time.
    pub fn lookahead(&mut self) -> Picoseconds {
        self.bounds().lookahead
    }

    /// Before this time no host is handed anything, whatever else happens meanwhile, if no host sends: a driver in real time
    /// may sleep until then, although frames move from port to port. Under load that is one wake-up an
    /// interrupt instead of several a frame.
    ///
    /// With `slack` it is the last such time that comes no later than so long after the first: then what is handed over
    /// first is late by up to as much, and one wake-up does for all of them.
    pub fn next_delivery(&mut self, slack: Picoseconds) -> Option<Picoseconds> {
        self.bounds();
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
        let times = self.events.iter().map(|Reverse(event)| bound(event));
        let times = times.chain(self.next_background_delivery(bounds));
        let first = times.clone().min()?;
        times.filter(|time| *time <= first.saturating_add(slack)).max()
    }
}
