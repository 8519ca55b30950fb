//! What only a driver in real time needs: how long it may sleep, how late it may hear of hosts, and how far the fabric may be
//! ahead of what it knows of them. In virtual time [`Fabric::next_deadline`] and [`Fabric::advance`] do.

use std::cmp::Reverse;

use framegauge_frames::Picoseconds;

use crate::bounds::Bounds;
use crate::fabric::Event;
use crate::nic::Nic;
use crate::port::Peer;
use crate::{Fabric, HostIndex, PortIndex, Sink};

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

    /// How far this fabric may be ahead of what it knows of hosts: what they send later comes to a switch later still.
    /// The shortest propagation delay of their links; none while one of these is watched, loses frames or has jitter.
    pub fn lead(&self) -> Picoseconds {
        let leads = self.uplinks.iter().map(|uplink| self.ports[usize::from(uplink.port.0)].lead());
        leads.min().unwrap_or(Picoseconds::ZERO)
    }

    /// [`Fabric::advance`] to `heard`, and as far on towards `now` as nothing that hosts send after `heard` can matter: up
    /// to [`Fabric::lead`].
    pub fn advance_ahead(&mut self, heard: Picoseconds, now: Picoseconds, sink: &mut impl Sink) {
        self.advance(heard, sink);
        let until = now.min(self.heard.saturating_add(self.lead()));
        if until > self.clock {
            self.clock = until;
            self.handle_events(until, sink);
        }
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
