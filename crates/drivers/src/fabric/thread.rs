//! The fabric's thread: when it sleeps, which hosts it hears, and how late a delivery may be.
//!
//! The model is exact in virtual time; the hosts are real. The thread keeps the two together, turn by turn:
//!
//! 1. [`Loop::rearm`] decides until when to wait, and which TAPs may end the wait.
//! 2. [`Loop::wait`] waits.
//! 3. [`Loop::ingest`] reads what hosts have sent. [`Loop::catch_up`] runs the model up to the present and writes
//!    what it delivers to the hosts' TAPs.
//! 4. Samples are taken, and orders from outside are carried out.
//!
//! A full frame takes 12 us at 1 Gb/s, and to wake up costs as much CPU time as several frames. So one turn must do
//! for many frames. The kernel helps: it stamps each packet with the time at which the host sent it. The thread may
//! read the packet later and still let it into the model at the right time. This page says how much later.
//!
//! ```text
//!                       D1         D2           D3             D4       what the model delivers next
//!     |                 |          |            |              |
//! ----+-----------------+----------+-------+----+---+----------+---+--> time
//!     |                 |                  |<-->|   |              |
//!     |                 |               until early |              |
//!     |                 |<------ slack + early ---->|              |
//!     |<----------------- unheard = lookahead + slack ------------>|
//!    now                                                    unheard_until
//! ```
//!
//! - **due**: the model knows a time before which no host gets anything ([`Fabric::next_delivery`]). Until then
//!   frames may move from switch to switch without the thread: the model catches up.
//! - **slack**: a delivery may wait for those close behind it, so that one turn does for all. The slack is half of
//!   the NICs' interrupt moderation, at most 50 us, and at most what 32 KiB take on the fastest host's link: delay
//!   costs goodput.
//! - **early**: a delivery that is due within 5 us is made at once, since a sleep mostly ends later than that. What a
//!   host sends from now on is then still on the host's own link and changes nothing; so early is never more than the
//!   shortest delay of these links, and nothing while one of them is watched, loses frames or has jitter. D3 is the
//!   last delivery within slack and early of D1. The thread wakes up early by so much: D1 is late by the slack at
//!   most, D3 is early, and D4 is left to a later turn.
//! - **unheard**: what is sent now reaches no host before the shortest way is over. That is the lookahead
//!   ([`Fabric::lookahead`], at most 200 us here), and for so long, and the slack, the thread need not know of it. If
//!   that is less than half of the moderation and less than 50 us, hosts go unheard for the smaller of these two.
//!   - If `until` comes first, no TAP ends the wait. The thread sleeps, or spins if 10 us or less are left, and reads
//!     afterwards what was stamped meanwhile. Under load most turns are of this kind.
//!   - If `unheard_until` comes first, or nothing is due, TAPs end the wait too, as orders do.
//! - **nap**: a TAP that was just read is left alone for the lookahead. If the host's NIC is full (128 KiB), the nap
//!   ends at the latest when half of that is sent; until then the rest stays in the TAP. When the nap is over the TAP
//!   is watched again, but only for a wait that TAPs may end, and only if the NIC has room.
//! - **look**: the end of a nap, or the time when a full NIC has sent half. It ends the wait, where the host must be
//!   heard or its NIC would run dry, unless something is due before.
//! - **part**: a quarter of the moderation. To wake up twice within a part is not worth it: a nap with less than a
//!   part left is over, and a delivery less than a part after a look serves for both.
//!
//! If the kernel does not stamp the packets of every TAP, a packet counts as sent when it is read. Then slack and
//! early are nothing, unheard is half of the moderation, a nap lasts the whole of it, and all TAPs that are watched
//! are looked at after every wait.

use crate::fabric::edge::Edge;
use crate::fabric::meter::Meter;
use crate::fabric::orders::Command;
use crate::fabric::send_times::Arrivals;
use framegauge_fabric::{Fabric, HostIndex};
use framegauge_frames::{Picoseconds, frame_bytes, wire_bytes};
use framegauge_linux::epoll::Epoll;
use framegauge_linux::poll::Waker;
use framegauge_linux::{Result, clock};
use std::sync::mpsc::Receiver;

/// Wire bytes that a host's NIC may hold before its TAP is left alone: hides about a millisecond of
/// lateness at 1 Gb/s.
const READ_AHEAD_BYTES: u64 = 128 * 1024;
/// In a virtual machine a sleep costs as much CPU time as spinning so long, and ends less exactly.
const SPIN_NANOSECONDS: u64 = 10_000;
/// For a delivery that is due so soon nobody waits, where the fabric can be ahead of what hosts send. A sleep mostly ends
/// later than that, and two hosts take longer to open a connection: no round trip is shorter than its links allow.
const EARLY_NANOSECONDS: u64 = 5_000;
/// For so long hosts may go unheard, however long the ways are: a fast one's TAP would be full.
const UNHEARD_NANOSECONDS: u64 = 200_000;
/// For so long at most a delivery is put off, so that one wake-up does for several.
const SLACK_NANOSECONDS: u64 = 50_000;
/// And at most for the time that so much takes on the fastest link: where windows are small for the rate, delay costs goodput.
const SLACK_BYTES: u64 = 32 * 1024;
/// The waker's name among the hosts' TAPs.
const CALLED: u64 = u64::MAX;

/// The fabric's thread.
pub(super) struct Loop {
    fabric: Fabric,
    edge: Edge,
    arrivals: Arrivals,
    /// Nanoseconds since the epoch until which a TAP is left alone; none: it need not be watched again.
    naps: Vec<Option<u64>>,
    /// Whether a TAP that becomes readable ends a wait.
    watched: Vec<bool>,
    moderation: u64,
    meter: Meter,
}

/// Until when to wait, in nanoseconds since the epoch; none: for ever.
struct Wait {
    until: Option<u64>,
    /// What hosts send before then need not be known.
    unheard_until: u64,
}

impl Loop {
    /// The thread's state before its first turn; every TAP is watched.
    pub(super) fn new(fabric: Fabric, edge: Edge, meter: Meter, moderation: u64) -> Self {
        let ends = edge.attachments.len();
        let (naps, watched) = (vec![None; ends], vec![true; ends]);
        Self { fabric, edge, arrivals: Arrivals::default(), naps, watched, moderation, meter }
    }

    /// Until it is told to stop.
    pub(super) fn run(mut self, orders: &Receiver<Command>, waker: &Waker) -> Result<()> {
        let mut epoll = Epoll::new()?;
        for host in 0..self.naps.len() {
            epoll.add_once(self.edge.attachments[host].tap.raw(), host as u64)?;
        }
        epoll.add_once(waker.raw(), CALLED)?;
        loop {
            self.meter.wakeups += 1;
            let wait = self.rearm(&epoll)?;
            let ready = self.wait(&wait, &mut epoll)?;
            let now = self.edge.now();
            for place in 0..ready {
                match epoll.ready(place).key {
                    CALLED => {
                        waker.drain();
                        epoll.once_more(waker.raw(), CALLED)?;
                    }
                    host => {
                        self.watched[host as usize] = false;
                        self.ingest(host as usize, now)?;
                    }
                }
            }
            self.catch_up(now)?;
            self.meter.sample(now, &mut self.fabric);
            while let Ok(order) = orders.try_recv() {
                self.catch_up(self.edge.now())?;
                let Self { meter, fabric, edge, .. } = &mut self;
                match order {
                    Command::Begin(meters, reply) => drop(reply.send(meter.begin(meters, fabric, edge))),
                    Command::Change(changes, reply) => drop(reply.send(meter.change(&changes, fabric, edge))),
                    Command::End(reply) => drop(reply.send(meter.end(fabric, edge))),
                    Command::Look(reply) => drop(reply.send(meter.look(fabric, edge))),
                    Command::Stop => return Ok(()),
                }
            }
        }
    }

    /// Takes in what hosts are known to have sent, and lets everything happen that is due by `now`.
    fn catch_up(&mut self, now: Picoseconds) -> Result<()> {
        for host in 0..self.naps.len() {
            if self.edge.send_times[host].are_ahead() {
                self.ingest(host, now)?;
            }
        }
        self.arrivals.transmit(now, &mut self.fabric, &mut self.edge.record);
        match self.edge.is_timed() {
            true => {
                // To take all that in took a while: what has become due need not wait for another look at the hosts.
                let later = self.edge.now() + Picoseconds::from_nanoseconds(EARLY_NANOSECONDS);
                self.fabric.advance_ahead(now, later, &mut self.edge);
            }
            false => self.fabric.advance(now, &mut self.edge),
        }
        self.edge.hand_over();
        Ok(())
    }

    /// Takes what a host has to send.
    fn ingest(&mut self, host: usize, now: Picoseconds) -> Result<()> {
        let index = HostIndex(host as u16);
        let forwards = self.edge.attachments[host].forwards;
        let mut held_bytes = self.fabric.uplink_backlog_bytes(index);
        while forwards || held_bytes < READ_AHEAD_BYTES {
            let Some((sent, packet)) = self.edge.read(host, now)? else { break };
            if let Some(aggregate) = packet {
                let per_frame = wire_bytes(frame_bytes(aggregate.captured_bytes));
                held_bytes += u64::from(aggregate.frames) * u64::from(per_frame);
                self.arrivals.push(sent, index, aggregate);
            }
            // It would cost a call of the kernel to find nothing.
            if self.edge.send_times[host].are_used_up() {
                break;
            }
        }
        let nap = if self.edge.is_timed() { self.lookahead() } else { self.moderation };
        let nap = if self.has_room(host) { nap } else { nap.min(self.half_sent(host)) };
        self.naps[host] = Some(now.as_nanoseconds() + nap);
        Ok(())
    }

    /// Whether a NIC takes more: a router's always does, its queue drops.
    fn has_room(&self, host: usize) -> bool {
        self.edge.attachments[host].forwards
            || self.fabric.uplink_backlog_bytes(HostIndex(host as u16)) < READ_AHEAD_BYTES
    }

    /// Until when to wait; watches the TAPs again that have been left alone long enough, if they may have to be heard.
    fn rearm(&mut self, epoll: &Epoll) -> Result<Wait> {
        let now = self.fabric.now().as_nanoseconds();
        // To wake twice within a part of the moderation costs more than the exact time is worth.
        let part = self.moderation / 4;
        let Wait { mut until, unheard_until } = self.due(now);
        let is_heard = !self.edge.is_timed() || until.is_none_or(|until| until > unheard_until);
        let mut look = None;
        for host in 0..self.naps.len() {
            let Some(nap) = self.naps[host] else { continue };
            if nap > now + part {
                // Whom nobody has to hear may nap on, but a full NIC would run dry.
                if is_heard || !self.has_room(host) {
                    sooner(&mut look, nap);
                }
            } else if !self.has_room(host) {
                sooner(&mut look, now + self.half_sent(host));
            } else if is_heard {
                self.naps[host] = None;
                if !self.watched[host] {
                    self.watched[host] = true;
                    epoll.once_more(self.edge.attachments[host].tap.raw(), host as u64)?;
                }
            }
        }
        if let Some(look) = look
            && until.is_none_or(|delivery| delivery > look + part)
        {
            sooner(&mut until, look);
        }
        Ok(Wait { until, unheard_until })
    }

    /// When to look again, if no host sends anything.
    fn due(&mut self, now: u64) -> Wait {
        let half = self.moderation / 2;
        let (slack, unheard, early) = match self.edge.is_timed() {
            true => {
                let most = half.min(SLACK_NANOSECONDS);
                let slack = most.min(self.on_the_line(SLACK_BYTES));
                let early = self.fabric.lead().as_nanoseconds().min(EARLY_NANOSECONDS);
                (slack, (self.lookahead() + slack).max(most), early)
            }
            false => (0, half, 0),
        };
        // The first is late by the slack, the last is early.
        let delivery = self.fabric.next_delivery(Picoseconds::from_nanoseconds(slack + early));
        let mut until = delivery.map(|time| time.as_nanoseconds() + 1 - early);
        if let Some(series) = &self.meter.series {
            sooner(&mut until, series.next());
        }
        if let Some(sent) = self.arrivals.first() {
            sooner(&mut until, sent.as_nanoseconds() + unheard);
        }
        Wait { until, unheard_until: now + unheard }
    }

    /// Nanoseconds for which what a host sends need not be known.
    fn lookahead(&mut self) -> u64 {
        self.fabric.lookahead().as_nanoseconds().min(UNHEARD_NANOSECONDS)
    }

    /// Nanoseconds that so many bytes take on the fastest link of a host.
    fn on_the_line(&self, bytes: u64) -> u64 {
        self.fabric.fastest_uplink().map_or(u64::MAX, |rate| rate.serialisation(bytes).as_nanoseconds())
    }

    /// Nanoseconds in which a NIC that takes no more sends half of what it holds.
    fn half_sent(&self, host: usize) -> u64 {
        self.fabric.uplink_backlog(HostIndex(host as u16)).as_nanoseconds() / 2
    }

    /// Waits; how many descriptors are ready.
    ///
    /// Where the kernel does not stamp packets, hosts go unheard for half of the moderation. More would cost less, but make
    /// senders come in step: a flow that starved beside many (TCP Outcast) then got 0.3 of their goodput instead of 0.1.
    fn wait(&self, wait: &Wait, epoll: &mut Epoll) -> Result<usize> {
        let Some(until) = wait.until else { return epoll.wait(None) };
        let rest = until.saturating_sub(self.edge.now().as_nanoseconds());
        if until > wait.unheard_until {
            return epoll.wait(Some(rest));
        }
        if rest > SPIN_NANOSECONDS {
            clock::sleep(rest);
        }
        while self.edge.now().as_nanoseconds() < until {
            std::hint::spin_loop();
        }
        if self.edge.is_timed() { Ok(0) } else { epoll.wait(Some(0)) }
    }
}

/// Brings `until` forward to `time`.
fn sooner(until: &mut Option<u64>, time: u64) {
    *until = Some(until.map_or(time, |until| until.min(time)));
}
