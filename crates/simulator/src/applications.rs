//! What applications do in a simulation: connections are opened, messages written and read, rounds repeated.

use framegauge_frames::{Picoseconds, mixed};

use crate::Simulation;
use crate::connection::{Connection, Next, Stage};
use crate::net::Place;
use crate::simulation::Event;
use crate::work::{Flow, Repeat, Step};

/// What has come to a barrier: a connection that is kept, or a flow that opens another.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Arrived {
    Connection(u32),
    Flow { flow: u32, round: u32 },
}

impl Simulation {
    /// What the application does now that something has happened at one end, and when that end is woken next.
    pub(crate) fn progress(&mut self, now: Picoseconds, number: u32, side: usize) {
        let Some(connection) = &mut self.connections[number as usize] else { return };
        let flow = &self.scenario.flows[connection.flow as usize];
        if connection.is_waiting_for_peer(side, flow) {
            match flow.repeat {
                Repeat::Requests(client) => self.begin_requests(now, client, number),
                _ => self.think(now, number),
            }
        } else if connection.is_working() {
            match connection.look(flow) {
                Next::Nothing => {}
                Next::Step => self.next_step(now, number),
                Next::Round => self.end_round(now, number),
            }
        }
        self.close_if_ended(now, number, side);
        self.set_wakes(now, number);
    }

    fn set_wakes(&mut self, now: Picoseconds, number: u32) {
        let Some(connection) = &mut self.connections[number as usize] else { return };
        if let Some(log) = &mut self.net.log {
            log.note_windows(&connection.ends);
        }
        if let Some((side, wait)) = connection.take_pause() {
            self.schedule(now + wait, Event::Read { connection: number, side: side as u8 });
            return self.set_wakes(now, number);
        }
        let mut wake = [None; 2];
        for (side, wake) in wake.iter_mut().enumerate() {
            let deadline = connection.ends[side].deadline();
            if let Some(deadline) = deadline.filter(|time| *time < connection.woken[side]) {
                connection.woken[side] = deadline.max(now);
                *wake = Some(connection.woken[side]);
            }
        }
        for (side, time) in wake.into_iter().enumerate() {
            if let Some(time) = time {
                self.schedule(time, Event::Wake { endpoint: 2 * number + side as u32 });
            }
        }
    }

    pub(crate) fn open(&mut self, now: Picoseconds, flow: u32, round: u32) {
        if let Some(before) = self.scenario.flows[flow as usize].over {
            return self.go_on(now, flow, before);
        }
        let number = self.connections.len() as u32;
        let Flow { client, server, pacing_bits_per_second, .. } = self.scenario.flows[flow as usize];
        let mss = self.first_payload(client, server);
        let tcp = &self.scenario.tcp;
        let mut connection = Box::new(Connection::new(number, (flow, round), now, [mss; 2], tcp));
        for (side, (host, peer)) in [(client, server), (server, client)].into_iter().enumerate() {
            let hash = mixed(mixed(self.scenario.seed) ^ self.net.places.len() as u64);
            // A scenario without a way was refused.
            let (host, next) = self.scenario.first_leg(host, peer).unwrap_or((host, peer));
            let exit = self.net.fabric.outgoing(host, next, hash);
            self.counts[flow as usize].exits[side] = exit.0;
            self.net.places.push(Place { host, peer, next, exit, flow: hash, sent: 0 });
        }
        connection.ends.iter_mut().for_each(|end| end.send.pace.bits_per_second = pacing_bits_per_second);
        connection.ends[0].open(now, tcp, &mut self.net);
        self.counts[flow as usize].connections += 1;
        self.connections.push(Some(connection));
        self.set_wakes(now, number);
    }

    /// A flow begins over the connection of one that has ended; each is told what its own messages took.
    fn go_on(&mut self, now: Picoseconds, flow: u32, before: u32) {
        let Some(number) = self.kept.remove(&before).flatten() else { return };
        let Some(mut connection) = self.connections[number as usize].take() else { return };
        self.count(&connection);
        connection.begin_flow(flow);
        self.connections[number as usize] = Some(connection);
        self.due(now, number);
    }

    pub(crate) fn begin_step(&mut self, now: Picoseconds, number: u32) {
        let Some(connection) = &mut self.connections[number as usize] else { return };
        let step = self.scenario.flows[connection.flow as usize].steps[connection.step as usize];
        connection.stage = Stage::Working;
        let more = connection.begin_step(&step, now);
        self.push(now, number, &step, more);
    }

    pub(crate) fn write_more(&mut self, now: Picoseconds, number: u32) {
        let Some(connection) = &mut self.connections[number as usize] else { return };
        let step = self.scenario.flows[connection.flow as usize].steps[connection.step as usize];
        let more = connection.write(&step);
        self.push(now, number, &step, more);
    }

    pub(crate) fn read_again(&mut self, now: Picoseconds, number: u32, side: usize) {
        let Some(connection) = &mut self.connections[number as usize] else { return };
        connection.ends[side].receive.is_paused = false;
        connection.ends[side].settle(now, &self.scenario.tcp, &mut self.net);
        self.progress(now, number, side);
    }

    fn push(&mut self, now: Picoseconds, number: u32, step: &Step, more: bool) {
        let Some(connection) = &mut self.connections[number as usize] else { return };
        let side = connection.sending_side(step);
        connection.ends[side].push(now, &self.scenario.tcp, &mut self.net);
        if more {
            self.schedule(now + step.write_gap, Event::Write { connection: number });
        }
        self.set_wakes(now, number);
    }

    fn record(&mut self, now: Picoseconds, number: u32) {
        if let Some(connection) = &self.connections[number as usize] {
            let flow = &self.scenario.flows[connection.flow as usize];
            self.transfers.push(connection.transfer(flow, now));
        }
    }

    fn next_step(&mut self, now: Picoseconds, number: u32) {
        self.record(now, number);
        let Some(connection) = &mut self.connections[number as usize] else { return };
        connection.step += 1;
        self.due(now, number);
    }

    /// The present message is due: after the time that its sender thinks.
    fn due(&mut self, now: Picoseconds, number: u32) {
        if let Some(connection) = &mut self.connections[number as usize] {
            connection.due(now);
            self.think(now, number);
        }
    }

    fn think(&mut self, now: Picoseconds, number: u32) {
        let Some(connection) = &mut self.connections[number as usize] else { return };
        match self.scenario.flows[connection.flow as usize].steps[connection.step as usize].think {
            Picoseconds::ZERO => self.begin_step(now, number),
            think => {
                connection.stage = Stage::Thinking;
                self.schedule(now + think, Event::Step { connection: number });
            }
        }
    }

    fn end_round(&mut self, now: Picoseconds, number: u32) {
        self.record(now, number);
        let Some(connection) = &mut self.connections[number as usize] else { return };
        let flow = connection.flow;
        let Flow { repeat, barrier, .. } = self.scenario.flows[flow as usize];
        let round = connection.round + 1;
        let goes_on = match repeat {
            Repeat::Never => false,
            Repeat::Rounds(most) => u64::from(round) < most,
            Repeat::Until(time) => now < time,
            Repeat::Requests(client) => return self.end_request(now, client, number),
            Repeat::NewUntil(_) => {
                self.close(now, number);
                match barrier {
                    Some(barrier) => self.arrive(now, barrier, Arrived::Flow { flow, round }),
                    None => {
                        self.open_again(now, flow, round);
                    }
                }
                return;
            }
        };
        if !goes_on {
            match self.kept.get_mut(&flow) {
                Some(slot) => {
                    connection.stage = Stage::Waiting;
                    *slot = Some(number);
                }
                None => self.close(now, number),
            }
            self.finish(now, flow);
            return barrier.into_iter().for_each(|barrier| self.leave_barrier(now, barrier));
        }
        connection.begin_round();
        match barrier {
            Some(barrier) => self.arrive(now, barrier, Arrived::Connection(number)),
            None => self.due(now, number),
        }
    }

    /// A round over a new connection, if there is time for it; whether there is.
    fn open_again(&mut self, now: Picoseconds, flow: u32, round: u32) -> bool {
        let goes_on =
            matches!(self.scenario.flows[flow as usize].repeat, Repeat::NewUntil(time) if now < time);
        match goes_on {
            true => self.schedule(now, Event::Open { flow, round }),
            false => self.finish(now, flow),
        }
        goes_on
    }

    fn arrive(&mut self, now: Picoseconds, barrier: u32, arrived: Arrived) {
        self.arrived[barrier as usize].push(arrived);
        self.open_barrier(now, barrier);
    }

    fn leave_barrier(&mut self, now: Picoseconds, barrier: u32) {
        self.members[barrier as usize] -= 1;
        self.open_barrier(now, barrier);
    }

    /// All members have come: the next round begins. Those that open connections for it do so in the order of flows.
    fn open_barrier(&mut self, now: Picoseconds, barrier: u32) {
        let place = barrier as usize;
        if self.arrived[place].len() as u32 != self.members[place] {
            return;
        }
        let mut arrived = std::mem::take(&mut self.arrived[place]);
        arrived.sort_by_key(|arrived| match arrived {
            Arrived::Connection(_) => 0,
            Arrived::Flow { flow, .. } => *flow,
        });
        for arrived in arrived {
            match arrived {
                Arrived::Connection(number) => self.due(now, number),
                Arrived::Flow { flow, round } => {
                    self.members[place] -= u32::from(!self.open_again(now, flow, round));
                }
            }
        }
    }

    pub(crate) fn finish(&mut self, now: Picoseconds, flow: u32) {
        self.unfinished -= 1;
        for next in std::mem::take(&mut self.waiting[flow as usize]) {
            self.awaited[next as usize] -= 1;
            if self.awaited[next as usize] == 0 {
                let begin = self.scenario.flows[next as usize].begin.max(now);
                self.schedule(begin, Event::Open { flow: next, round: 0 });
            }
        }
    }

    /// The client closes; the server does when it has read that.
    pub(crate) fn close(&mut self, now: Picoseconds, number: u32) {
        let Some(connection) = &mut self.connections[number as usize] else { return };
        connection.stage = Stage::Closing;
        connection.ends[0].send.is_closing = true;
        connection.ends[0].push(now, &self.scenario.tcp, &mut self.net);
        self.set_wakes(now, number);
    }

    fn close_if_ended(&mut self, now: Picoseconds, number: u32, side: usize) {
        let Some(connection) = &mut self.connections[number as usize] else { return };
        let is_answered = connection.is_answered(&self.scenario.flows[connection.flow as usize]);
        let end = &mut connection.ends[side];
        if side == 1 && is_answered && end.receive.has_ended() && !end.send.is_closing {
            end.send.is_closing = true;
            end.push(now, &self.scenario.tcp, &mut self.net);
        }
        if connection.is_over() {
            let connection = self.connections[number as usize].take();
            connection.into_iter().for_each(|connection| self.count(&connection));
        }
    }

    pub(crate) fn count(&mut self, connection: &Connection) {
        let counts = &mut self.counts[connection.flow as usize].sender;
        connection.ends.iter().for_each(|end| *counts += end.send.counts);
    }
}
