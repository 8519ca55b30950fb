//! What hosts learn of path MTUs from routers (RFC 1191, RFC 8201), as Linux keeps it: by destination, for all connections.
//!
//! They forget it after ten minutes (RFC 1191 section 6.3, RFC 8201 section 4; `net.ipv4.route.mtu_expires`): from then on
//! also connections that are open send segments as large as before, until a router tells again. That the same is told again
//! of what was under way does not prolong it, as Linux has it in the first half of that time.

use std::collections::BTreeMap;

use framegauge_fabric::HostIndex;
use framegauge_frames::{Mtu, Picoseconds};

use crate::Simulation;
use crate::segment::Segment;
use crate::simulation::Event;

/// By host and destination: what was told, in bytes.
pub(crate) type PathMtus = BTreeMap<(HostIndex, HostIndex), u32>;

impl Simulation {
    /// Payload of a full segment of a connection that begins: both ends announce an MSS by what they know of the path.
    pub(crate) fn first_payload(&self, client: HostIndex, server: HostIndex) -> u32 {
        let own_end = |(from, to)| (self.scenario.first_leg(from, to).map_or(from, |leg| leg.0), to);
        let ways = [(client, server), (server, client)].map(own_end);
        let least = ways.iter().filter_map(|ends| self.path_mtus.get(ends)).min();
        let most = self.scenario.segment_payload(client, server);
        least.map_or(most, |mtu| most.min(self.payload_of(*mtu)))
    }

    fn payload_of(&self, mtu: u32) -> u32 {
        let tcp = &self.scenario.tcp;
        Mtu::new(mtu).map_or(1, |mtu| mtu.segment_payload(tcp.family, tcp.timestamps))
    }

    /// Payload of a full segment of what a host sends to another by its own MTU, and by what it has learned.
    pub(crate) fn path_payload(&self, host: HostIndex, peer: HostIndex) -> u32 {
        let own = self.scenario.mtus[usize::from(host.0)].bytes();
        self.payload_of(self.path_mtus.get(&(host, peer)).map_or(own, |known| own.min(*known)))
    }

    /// A host forgets what it has learned of the path to a destination, unless it has learned less since then.
    pub(crate) fn forget_path(&mut self, host: HostIndex, peer: HostIndex, mtu: u32) {
        if self.path_mtus.get(&(host, peer)) == Some(&mtu) {
            self.path_mtus.remove(&(host, peer));
            self.follow_mtu(host);
        }
    }

    /// A router's error has come to a host (`tcp_v4_err`, `tcp_v6_err`): of something under way it is believed.
    pub(crate) fn take_report(&mut self, now: Picoseconds, report: &Segment, mtu: u32) {
        let (number, side) = (report.to / 2, report.to as usize % 2);
        let Some(connection) = &mut self.connections[number as usize] else { return };
        if !connection.ends[side].has_sent(report.sequence) {
            return;
        }
        let payload = self.payload_of(mtu);
        let place = self.net.places[report.to as usize];
        let known = self.path_mtus.entry((place.host, place.peer)).or_insert(u32::MAX);
        if mtu < *known {
            *known = mtu;
            self.schedule(
                now + self.scenario.tcp.path_mtu_expires,
                Event::ForgetPath { host: place.host, peer: place.peer, mtu },
            );
            self.share_path_mtu((place.host, place.peer), payload);
        }
        let Some(connection) = &mut self.connections[number as usize] else { return };
        connection.ends[side].lower_payload(now, payload, &self.scenario.tcp, &mut self.net);
        self.progress(now, number, side);
    }

    /// Other connections of a host to that destination see it when they send the next time.
    fn share_path_mtu(&mut self, ends: (HostIndex, HostIndex), payload: u32) {
        for (number, connection) in self.connections.iter_mut().enumerate() {
            let Some(connection) = connection else { continue };
            for (side, end) in connection.ends.iter_mut().enumerate() {
                let place = &self.net.places[2 * number + side];
                if (place.host, place.peer) == ends {
                    end.send.learn_path(payload);
                }
            }
        }
    }
}
