//! How long nothing can be delivered: what a driver in real time may sleep through, and for how long it need not hear of
//! hosts.

use std::cmp::Reverse;

use framegauge_frames::Picoseconds;

use crate::bounds::Bounds;
use crate::fabric::Event;
use crate::nic::Nic;
use crate::port::Peer;
use crate::{Fabric, HostIndex, PortIndex};

impl Fabric {
    /// Not with each change: all ports may be changed at once, and on a large fat-tree it takes a while.
    fn bounds(&mut self) -> &Bounds {
        let Fabric { bounds, routes, nics, ports, uplinks, .. } = self;
        bounds.get_or_insert_with(|| Bounds::new(routes, nics.len(), ports, uplinks))
    }

    /// No frame is handed to a host sooner than this after it was sent: a driver in real time that knows when hosts
    /// have sent something may learn of it so much later, and still be on time.
    pub fn lookahead(&mut self) -> Picoseconds {
        self.bounds().lookahead()
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

    /// Before this time no frame of a background that has not entered the network yet is handled by a host's NIC.
    fn next_background_delivery(&self, bounds: &Bounds) -> Option<Picoseconds> {
        let bound = |(time, host): (Picoseconds, usize)| {
            let uplink = self.uplinks[host].port;
            let port = &self.ports[usize::from(uplink.0)];
            let rest = match port.peer {
                Peer::Switch(_) => bounds.rest(self.routes.table(uplink), None),
                Peer::Host(_) => Picoseconds::ZERO,
            };
            time + port.delay() + rest
        };
        self.backgrounds.due().map(bound).min()
    }
}
