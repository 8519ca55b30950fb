//! What the fabric's thread does, over and over.

use crate::edge::Edge;
use crate::fabric::Command;
use crate::fabric_meter::Meter;
use framegauge_fabric::{Fabric, HostIndex};
use framegauge_frames::Picoseconds;
use framegauge_linux::epoll::Epoll;
use framegauge_linux::poll::Waker;
use framegauge_linux::{Result, clock};
use std::sync::mpsc::Receiver;

/// Wire bytes that a host's NIC may hold before its TAP is left alone: hides about a millisecond of
/// lateness at 1 Gb/s.
const READ_AHEAD_BYTES: u64 = 128 * 1024;
/// In a virtual machine a sleep costs as much CPU time as spinning so long, and ends less exactly.
const SPIN_NANOSECONDS: u64 = 10_000;
/// The waker's name among the hosts' TAPs.
const CALLED: u64 = u64::MAX;

/// The fabric's thread.
pub(crate) struct Loop {
    pub(crate) fabric: Fabric,
    /// Of whose each end is.
    pub(crate) names: Vec<String>,
    pub(crate) edge: Edge,
    /// Nanoseconds since the epoch until which a TAP is left alone; none: it is watched.
    pub(crate) naps: Vec<Option<u64>>,
    pub(crate) moderation: u64,
    pub(crate) meter: Meter,
    pub(crate) scheduling: &'static str,
    pub(crate) cpu: Option<usize>,
    pub(crate) wakeups: u64,
}

impl Loop {
    /// Until it is told to stop.
    pub(crate) fn run(mut self, orders: &Receiver<Command>, waker: &Waker) -> Result<()> {
        let mut watch = Epoll::new()?;
        for host in 0..self.names.len() {
            watch.add_once(self.edge.attachments[host].tap.raw(), host as u64)?;
        }
        watch.add_once(waker.raw(), CALLED)?;
        loop {
            self.wakeups += 1;
            let now = self.edge.now();
            self.fabric.advance(now, &mut self.edge);
            self.sample(now);
            let until = self.rearm(&watch, now)?;
            let ready = watch.wait(self.pass_time(until))?;
            let now = self.edge.now();
            let mut called = false;
            for place in 0..ready {
                match watch.ready(place).key {
                    CALLED => called = true,
                    host => self.ingest(host as usize, now)?,
                }
            }
            if called {
                waker.drain();
                watch.once_more(waker.raw(), CALLED)?;
                while let Ok(order) = orders.try_recv() {
                    let now = self.edge.now();
                    self.fabric.advance(now, &mut self.edge);
                    match order {
                        Command::Begin(meters, reply) => drop(reply.send(self.begin(meters))),
                        Command::Change(changes, reply) => drop(reply.send(self.change(&changes))),
                        Command::End(reply) => drop(reply.send(self.end())),
                        Command::Look(reply) => drop(reply.send(self.look())),
                        Command::Stop => return Ok(()),
                    }
                }
            }
        }
    }

    /// Takes what a host has to send.
    fn ingest(&mut self, host: usize, now: Picoseconds) -> Result<()> {
        let index = HostIndex(host as u16);
        while self.has_room(host) {
            let Some(packet) = self.edge.read(host)? else { break };
            if let Some(aggregate) = packet {
                if let Some(record) = &mut self.edge.record {
                    record.handed_over.push((now, index, aggregate));
                }
                self.fabric.transmit(now, index, aggregate);
            }
        }
        self.naps[host] = Some(now.as_nanoseconds() + self.moderation.min(self.half_sent(host)));
        Ok(())
    }

    /// Whether a NIC takes more: a router's always does, its queue drops.
    fn has_room(&self, host: usize) -> bool {
        self.edge.attachments[host].forwards
            || self.fabric.uplink_backlog_bytes(HostIndex(host as u16)) < READ_AHEAD_BYTES
    }

    /// Watches the TAPs again that have been left alone long enough; the time until which to sleep.
    fn rearm(&mut self, watch: &Epoll, now: Picoseconds) -> Result<Option<u64>> {
        // To wake twice within a part of the moderation costs more than the exact time is worth.
        let (now, part) = (now.as_nanoseconds(), self.moderation / 4);
        let mut look = None;
        for host in 0..self.names.len() {
            let Some(nap) = self.naps[host] else { continue };
            if nap > now + part {
                sooner(&mut look, nap);
            } else if self.has_room(host) {
                self.naps[host] = None;
                watch.once_more(self.edge.attachments[host].tap.raw(), host as u64)?;
            } else {
                sooner(&mut look, now + self.half_sent(host));
            }
        }
        let mut until = self.fabric.next_delivery().map(|time| time.as_nanoseconds() + 1);
        if let Some(series) = &self.meter.series {
            sooner(&mut until, series.next());
        }
        if let Some(look) = look
            && until.is_none_or(|delivery| delivery > look + part)
        {
            sooner(&mut until, look);
        }
        Ok(until)
    }

    /// Nanoseconds in which a NIC that takes no more sends half of what it holds; for ever where it has room.
    fn half_sent(&self, host: usize) -> u64 {
        if self.has_room(host) {
            return u64::MAX;
        }
        self.fabric.uplink_backlog(HostIndex(host as u16)).as_nanoseconds() / 2
    }

    /// Lets a short time pass without listening to the TAPs; how long is left to wait while listening.
    ///
    /// Under load something is due within half the moderation: a wake-up for each TAP meanwhile would cost more than
    /// all its frames, and what it holds is read a little later, as if by a NIC that is told at intervals. To let more than
    /// half of it pass costs less, but makes senders come in step, even where a queue makes them wait for milliseconds
    /// anyway: a flow that starved beside many (TCP Outcast) then got 0.3 of their goodput instead of 0.1.
    fn pass_time(&self, until: Option<u64>) -> Option<u64> {
        let until = until?;
        let rest = until.saturating_sub(self.edge.now().as_nanoseconds());
        if rest > self.moderation / 2 {
            return Some(rest);
        }
        if rest > SPIN_NANOSECONDS {
            clock::sleep(rest);
        }
        while self.edge.now().as_nanoseconds() < until {
            std::hint::spin_loop();
        }
        Some(0)
    }
}

/// Brings `until` forward to `time`.
fn sooner(until: &mut Option<u64>, time: u64) {
    *until = Some(until.map_or(time, |until| until.min(time)));
}
