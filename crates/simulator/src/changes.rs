//! Changes of the network and of hosts' MTUs during a simulation.

use framegauge_fabric::{HostIndex, PortChange, PortIndex};
use framegauge_frames::{BitRate, Mtu, Picoseconds};

use crate::Simulation;
use crate::simulation::Event;

/// What is different from a time on.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// When.
    pub at: Picoseconds,
    /// At these ports.
    pub ports: Vec<(PortIndex, PortChange)>,
    /// The MTU of these ends, in bytes: inside of the overlay, if there is one.
    pub mtus: Vec<(HostIndex, u32)>,
}

impl Simulation {
    pub(crate) fn schedule_changes(&mut self) {
        for number in 0..self.scenario.changes.len() {
            self.schedule(self.scenario.changes[number].at, Event::Change { number: number as u32 });
        }
    }

    /// Everything in the network that is due by then has happened: nothing arrives while it changes.
    pub(crate) fn change(&mut self, now: Picoseconds, number: u32) {
        let Change { ports, mtus, .. } = self.scenario.changes[number as usize].clone();
        for (port, change) in ports {
            let rate = self.net.fabric.port_config(port).rate;
            let (fabric, mut sink) = self.net.parts(&mut self.inbox);
            // The scenario was refused if it could not be.
            if fabric.change(now, port, change, &mut sink).is_ok()
                && let Some(new) = change.rate
            {
                self.stretch_queues(now, port, (rate, new));
            }
        }
        for (end, bytes) in mtus {
            let Ok(mtu) = Mtu::new(bytes) else { continue };
            self.scenario.mtus[usize::from(end.0)] = mtu;
            match &mut self.net.routers {
                Some(routers) if routers.owns(end) => routers.set_mtu(end, bytes),
                _ => self.follow_mtu(end),
            }
        }
    }

    /// What waits in a host's NIC leaves at another rate than it seemed when it was handed over.
    fn stretch_queues(&mut self, now: Picoseconds, port: PortIndex, rates: (BitRate, BitRate)) {
        let Some(end) = self.scenario.network.uplinks.iter().position(|uplink| *uplink == port) else {
            return;
        };
        for (number, connection) in self.connections.iter_mut().enumerate() {
            let Some(connection) = connection else { continue };
            for (side, of_side) in connection.ends.iter_mut().enumerate() {
                if usize::from(self.net.places[2 * number + side].exit.0) == end {
                    of_side.send.held.stretch(now, rates);
                }
            }
        }
    }

    /// The connections of a host send no larger packets than it takes the path for by now; none larger than both ends announced.
    pub(crate) fn follow_mtu(&mut self, end: HostIndex) {
        for number in 0..self.connections.len() {
            for side in 0..2 {
                let place = self.net.places[2 * number + side];
                if place.host != end || self.connections[number].is_none() {
                    continue;
                }
                let payload = self.path_payload(place.host, place.peer);
                if let Some(connection) = &mut self.connections[number] {
                    connection.ends[side].send.set_route(payload);
                }
            }
        }
    }
}
