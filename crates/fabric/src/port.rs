//! One output port: its queue, its transmitter and the frames on its link.

mod about;
mod change;
mod counting;
mod losses;
mod pausing;
mod watch;

use std::collections::VecDeque;

use framegauge_frames::{BitRate, Picoseconds, wire_bytes};

use crate::impairments::Disturbance;
use crate::watch::PortLog;
use crate::{Discipline, Fate, Frame, HostIndex, Impairments, PortConfig, PortCounters, Queue, Reason};

/// What is at the far end of a link: a host, or a switch counted among the switches.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Peer {
    Host(HostIndex),
    Switch(usize),
}

/// The frame being sent.
#[derive(Debug, Clone, Copy)]
struct Transmission {
    /// When its last bit leaves.
    departs: Picoseconds,
    frame_bytes: u64,
}

/// A frame that is being sent or propagated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Departed {
    /// When its last bit leaves.
    departs: Picoseconds,
    /// When its last bit arrives at the far end.
    arrives: Picoseconds,
    /// How long it waited for those before it.
    pub(crate) waited: Picoseconds,
    pub(crate) frame: Frame,
}

/// A port. Its state is that of the last time it was touched; [`Port::catch_up`] brings it to the present.
#[derive(Debug, Clone)]
pub(crate) struct Port {
    /// What the line really has: skew is part of it, and of the delay phase.
    rate: BitRate,
    delay: Picoseconds,
    /// The shortest that it ever had.
    least_delay: Picoseconds,
    /// What a frame has on the wire besides its wire bytes.
    tag_bytes: u64,
    /// Jitter and loss, if there are any.
    disturbance: Option<Box<Disturbance>>,
    /// What has happened, while it is watched.
    log: Option<Box<PortLog>>,
    pub(crate) peer: Peer,
    /// It obeys PAUSE and tells others, in a lossless network.
    pausing: Option<Box<pausing::Pausing>>,
    /// It is a host's NIC's.
    pub(crate) is_uplink: bool,
    /// Its link has a script.
    is_scripted: bool,
    is_up: bool,
    /// Frames up to this size are offered to the queue and that is all; 0 while it is down or watched.
    plain_limit_bytes: u32,
    /// Whether there is something to tell, or to decide, when a frame has come to the end of the link.
    has_news: bool,
    /// Largest frame that this port lets out, and that the far end of its link lets in.
    output_limit_bytes: u32,
    pub(crate) input_limit_bytes: u32,
    queue: Queue,
    /// What became of frames in the queue, until somebody takes it.
    fates: Vec<Fate>,
    /// How many of these are written down already.
    recorded: usize,
    transmission: Option<Transmission>,
    /// Where all frames in it and on its link go; none if they go to several.
    only_destination: Option<HostIndex>,
    /// Frames being sent or propagated, with the arrival of their last bits. Not empty while sending, so its
    /// head is the port's one event.
    in_flight: VecDeque<Departed>,
    counters: PortCounters,
    /// Serialisation of the last size sent: long transfers send the same one again and again.
    last_size: (u32, Picoseconds),
}

impl Port {
    pub(crate) fn new(config: &PortConfig, peer: Peer) -> Port {
        let Impairments { phase, jitter, loss, .. } = config.impairments;
        let disturbed = jitter > Picoseconds::ZERO || loss > 0.0;
        let mut port = Port {
            rate: config.line_rate().unwrap_or(config.rate),
            delay: config.delay + phase,
            least_delay: config.delay + phase,
            tag_bytes: config.impairments.tag_bytes(),
            log: None,
            disturbance: disturbed.then(|| Box::new(Disturbance::new(&config.impairments))),
            peer,
            pausing: None,
            is_uplink: false,
            is_scripted: false,
            is_up: true,
            plain_limit_bytes: 0,
            has_news: false,
            output_limit_bytes: output_limit_bytes(config),
            input_limit_bytes: config.input_mtu.map_or(u32::MAX, |mtu| mtu.frame_bytes()),
            queue: Queue::from(config.queue),
            fates: Vec::new(),
            recorded: 0,
            transmission: None,
            only_destination: None,
            in_flight: VecDeque::new(),
            counters: PortCounters::default(),
            last_size: (0, Picoseconds::ZERO),
        };
        port.set_plain_limit();
        port
    }

    /// Lets everything happen inside the port that is due by `now`: frames leave, the next ones begin.
    pub(crate) fn catch_up(&mut self, now: Picoseconds) {
        while let Some(sent) = self.transmission.filter(|sent| sent.departs <= now) {
            self.counters.sent_frames += 1;
            self.counters.sent_bytes += sent.frame_bytes;
            self.transmission = None;
            if self.log.is_some() {
                self.note_departure(sent.departs);
            }
            self.start(sent.departs);
        }
    }

    /// Begins to send the next frame if there is one; the transmitter must be idle.
    fn start(&mut self, now: Picoseconds) {
        if self.pausing.is_some() {
            return self.start_unless_paused(now);
        }
        // The commonest for itself: a frame that comes from one of several places goes through memory once more.
        match &mut self.queue {
            Queue::Taildrop(queue) => {
                if let Some(frame) = queue.pop() {
                    self.send(now, frame);
                }
            }
            _ => self.start_by_discipline(now),
        }
    }

    #[inline(never)]
    fn start_by_discipline(&mut self, now: Picoseconds) {
        let before = self.fates.len();
        let frame = self.queue.take(now, &mut self.fates);
        if self.fates.len() > before {
            self.count_fates(before);
        }
        if let Some(frame) = frame {
            self.send(now, frame);
        }
    }

    #[inline(always)]
    fn send(&mut self, now: Picoseconds, frame: Frame) {
        let serialisation = self.serialisation(frame.frame_bytes);
        let departs = now + serialisation;
        self.counters.busy += serialisation;
        self.transmission = Some(Transmission { departs, frame_bytes: u64::from(frame.frame_bytes) });
        let (arrives, waited) = (departs + self.delay, now - frame.since);
        let arrives = match &mut self.disturbance {
            None => arrives,
            Some(disturbance) => {
                disturbance.arrival(arrives, self.in_flight.back().map(|ahead| ahead.arrives))
            }
        };
        self.in_flight.push_back(Departed { departs, arrives, waited, frame });
    }

    /// Counts what has become of frames since there were so many fates; what their records say of the buffer has the
    /// frame being sent in it.
    #[cold]
    fn count_fates(&mut self, before: usize) {
        let transmitting_bytes = self.transmitting_bytes();
        self.has_news = true;
        for place in before..self.fates.len() {
            self.fates[place].queue_bytes += transmitting_bytes;
            let fate = self.fates[place];
            if fate.marked {
                self.counters.marked_frames += 1;
            } else {
                self.counters.dropped_frames += 1;
                self.counters.dropped_bytes += u64::from(fate.frame.frame_bytes);
            }
            self.note_fate(&fate);
        }
    }

    /// Whether there is something to tell of it, or to decide: fates, what a watched port has seen, loss on its link.
    pub(crate) fn has_news(&self) -> bool {
        self.has_news
    }

    /// Whether this frame was marked since fates were taken last.
    pub(crate) fn has_marked(&self, frame: &Frame) -> bool {
        let same = |other: &Frame| (other.aggregate, other.index) == (frame.aggregate, frame.index);
        self.fates.iter().any(|fate| fate.marked && same(&fate.frame))
    }

    /// What has become of frames in the queue since the last call, in order: it is to be written down, and stays to be
    /// told.
    pub(crate) fn unrecorded(&mut self) -> &[Fate] {
        let from = std::mem::replace(&mut self.recorded, self.fates.len());
        &self.fates[from..]
    }

    /// Puts what has become of frames in the queue since the last call, in order, into `fates`, which is empty. Returns how
    /// many of them are written down already.
    pub(crate) fn swap_fates(&mut self, fates: &mut Vec<Fate>) -> usize {
        std::mem::swap(&mut self.fates, fates);
        self.has_news = self.has_lasting_news();
        std::mem::take(&mut self.recorded)
    }

    pub(crate) fn serialisation(&mut self, frame_bytes: u32) -> Picoseconds {
        if self.last_size.0 != frame_bytes {
            let wire_bytes = u64::from(wire_bytes(frame_bytes)) + self.tag_bytes;
            self.last_size = (frame_bytes, self.rate.serialisation(wire_bytes));
        }
        self.last_size.1
    }

    /// Takes a frame that arrives now, or says why not. `input_limit_bytes`: the largest frame that the
    /// port lets in by which it came.
    pub(crate) fn offer(
        &mut self,
        now: Picoseconds,
        frame: Frame,
        input_limit_bytes: u32,
    ) -> Result<(), Reason> {
        self.catch_up(now);
        let frame = Frame { since: now, ..frame };
        self.counters.received_frames += 1;
        self.counters.received_bytes += u64::from(frame.frame_bytes);
        let accepted = if frame.frame_bytes > input_limit_bytes.min(self.plain_limit_bytes) {
            self.offer_with_care(now, frame, input_limit_bytes)
        } else {
            self.offer_to_queue(now, frame)
        };
        match accepted {
            Err(_) => {
                self.counters.dropped_frames += 1;
                self.counters.dropped_bytes += u64::from(frame.frame_bytes);
            }
            Ok(()) => {
                self.counters.peak_queue_bytes = self.counters.peak_queue_bytes.max(self.buffered_bytes());
                if self.in_flight.is_empty() {
                    self.only_destination = Some(frame.destination);
                } else if self.only_destination != Some(frame.destination) {
                    self.only_destination = None;
                }
                if self.transmission.is_none() {
                    self.start(now);
                }
            }
        }
        accepted
    }

    #[inline(always)]
    fn offer_to_queue(&mut self, now: Picoseconds, frame: Frame) -> Result<(), Reason> {
        let transmitting_bytes = self.transmitting_bytes();
        match &mut self.queue {
            Queue::Taildrop(queue) => queue.offer(now, frame, transmitting_bytes, &mut self.fates),
            _ => self.offer_to_discipline(now, frame, transmitting_bytes),
        }
    }

    /// The part of [`Port::offer`] for giants, and for all frames of a port that is down or watched.
    #[cold]
    fn offer_with_care(
        &mut self,
        now: Picoseconds,
        frame: Frame,
        input_limit_bytes: u32,
    ) -> Result<(), Reason> {
        let (place, held_bytes) = (self.log_length(), self.buffered_bytes());
        let accepted = if !self.is_up {
            Err(Reason::LinkDown)
        } else if frame.frame_bytes > input_limit_bytes.min(self.output_limit_bytes) {
            self.counters.giant_frames += 1;
            Err(Reason::Giant)
        } else {
            self.offer_to_queue(now, frame)
        };
        // What is pushed out at once was in the buffer, and others may have been pushed out with it there.
        let was_in = matches!(accepted, Ok(()) | Err(Reason::LongestFlow | Reason::RandomDrop));
        let queue_bytes = held_bytes + if was_in { u64::from(frame.frame_bytes) } else { 0 };
        self.note_arrival(place, now, frame, queue_bytes, accepted.err());
        accepted
    }

    /// To be called whenever the port has become another: its limit, up or down, watched or not, disturbed or not.
    fn set_plain_limit(&mut self) {
        let plain = self.is_up && self.log.is_none();
        self.plain_limit_bytes = if plain { self.output_limit_bytes } else { 0 };
        self.has_news = self.has_lasting_news();
    }

    /// Whether every frame that comes to the end of the link is to be looked at.
    fn has_lasting_news(&self) -> bool {
        self.is_looked_at() || !self.fates.is_empty()
    }

    /// Whether frames are looked at when they have come to the end of the link, with what is in the buffer then.
    fn is_looked_at(&self) -> bool {
        self.log.is_some() || self.disturbance.is_some() || self.is_scripted
    }

    /// Whether its link is up.
    pub(crate) fn is_up(&self) -> bool {
        self.is_up
    }

    /// Drops a frame that arrives now, for a reason that is not the port's own unless it is a giant as well.
    #[cold]
    pub(crate) fn refuse(
        &mut self,
        now: Picoseconds,
        frame: Frame,
        input_limit_bytes: u32,
        reason: Reason,
    ) -> Result<(), Reason> {
        if !self.is_up || frame.frame_bytes > input_limit_bytes.min(self.output_limit_bytes) {
            return self.offer(now, frame, input_limit_bytes);
        }
        self.catch_up(now);
        self.counters.received_frames += 1;
        self.counters.received_bytes += u64::from(frame.frame_bytes);
        self.counters.dropped_frames += 1;
        self.counters.dropped_bytes += u64::from(frame.frame_bytes);
        self.counters.filtered_frames += u64::from(reason == Reason::Filtered);
        self.note_arrival(self.log_length(), now, frame, self.buffered_bytes(), Some(reason));
        Err(reason)
    }

    #[inline(never)]
    fn offer_to_discipline(
        &mut self,
        now: Picoseconds,
        frame: Frame,
        transmitting_bytes: u64,
    ) -> Result<(), Reason> {
        let before = self.fates.len();
        let accepted = self.queue.offer(now, frame, transmitting_bytes, &mut self.fates);
        if self.fates.len() > before {
            self.count_fates(before);
        }
        accepted
    }

    /// When the next frame arrives at the far end, if one is under way.
    pub(crate) fn next_arrival(&self) -> Option<Picoseconds> {
        self.in_flight.front().map(|departed| departed.arrives)
    }

    /// The frame that arrives at the far end now.
    pub(crate) fn arrive(&mut self, now: Picoseconds) -> Option<Departed> {
        // What a host sends may be learned of only after this: its port stays behind then. That the next frame has
        // begun, which is the port's next event, is enough.
        let by = self.in_flight.front().filter(|_| self.is_uplink && !self.is_looked_at());
        self.catch_up(by.map_or(now, |departed| departed.departs));
        self.in_flight.pop_front()
    }

    /// How long after it was handed to a host's NIC a frame is still on the link, whatever becomes known of it later.
    pub(crate) fn lead(&self) -> Picoseconds {
        if self.is_looked_at() { Picoseconds::ZERO } else { self.least_delay }
    }

    fn transmitting_bytes(&self) -> u64 {
        self.transmission.map_or(0, |sent| sent.frame_bytes)
    }

    /// What is in the buffer, in `frame_bytes`, as of the last time the port was touched.
    pub(crate) fn buffered_bytes(&self) -> u64 {
        self.queue.bytes() + self.transmitting_bytes()
    }
}

fn output_limit_bytes(config: &PortConfig) -> u32 {
    config.output_mtu.map_or(u32::MAX, |mtu| mtu.frame_bytes())
}
