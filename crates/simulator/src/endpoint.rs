//! One end of a connection: a sender and a receiver, and how they begin and end.

use framegauge_frames::{Picoseconds, mixed};

use crate::TcpSettings;
use crate::receiver::{Answer, Receiver};
use crate::segment::{Flags, Segment};
use crate::sender::Sender;

/// Where a connection stands, seen from one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It waits for a SYN.
    Listening,
    /// A SYN was sent; as an answer to the peer's, if that came.
    Opening,
    Established,
}

/// What sends segments to the network.
pub(crate) trait Wire {
    /// Hands a segment to the host's NIC; returns when it is done there: its last bit has left, or the host's shaper lets
    /// it go, which is earlier by what that lets through at once.
    fn send(&mut self, now: Picoseconds, segment: Segment) -> Picoseconds;
    /// How long the NIC of an endpoint's host has held frames back by now because a switch paused it, all times together.
    fn held_back(&self, endpoint: u32) -> Picoseconds;
}

/// A segment as the sender wants it; the receiver's part of the header is added.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outgoing {
    pub(crate) sequence: u64,
    pub(crate) bytes: u32,
    /// It has a SYN, if it is the first, or a FIN.
    pub(crate) fin: bool,
    /// A write, or a super-segment, ends with it.
    pub(crate) push: bool,
    /// It was not sent before.
    pub(crate) is_new: bool,
    /// It tells the peer that cwnd shrank because of its marks (CWR).
    pub(crate) tells_reduction: bool,
}

/// What a sender needs of the world at one moment.
pub(crate) trait Tick {
    fn now(&self) -> Picoseconds;
    /// The time that what is sent again is said to be sent at (`tcp_mstamp`).
    fn clock(&self) -> Picoseconds;
    fn settings(&self) -> &TcpSettings;
    /// Sends a segment; returns when the NIC will be done with it ([`Wire::send`]).
    fn transmit(&mut self, outgoing: Outgoing) -> Picoseconds;
    /// How long the NIC has held frames back by now because a switch paused it, all times together.
    fn held_back(&self) -> Picoseconds;
    /// The timestamp that the present acknowledgement echoes; 0 without one.
    fn echo(&self) -> u32;
    /// The host's clock for timestamps, in milliseconds.
    fn stamp(&self) -> u32;

    /// When a timer of that span fires.
    fn expiry(&self, span: Picoseconds) -> Picoseconds {
        self.settings().expiry(self.now(), span)
    }

    /// The RTT by an echoed timestamp, a millisecond at least.
    fn since_echo(&self, echo: u32) -> Option<Picoseconds> {
        let milliseconds = u64::from(self.stamp().wrapping_sub(echo).max(1));
        (echo > 0).then(|| Picoseconds::from_nanoseconds(milliseconds * 1_000_000))
    }
}

struct Moment<'a, W> {
    now: Picoseconds,
    clock: Picoseconds,
    echo: u32,
    settings: &'a TcpSettings,
    receiver: &'a mut Receiver,
    wire: &'a mut W,
    ids: Ids,
    is_ecn: bool,
}

/// The numbers of both ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ids {
    pub(crate) own: u32,
    pub(crate) peer: u32,
}

/// The clock for timestamps: it begins at 1, since 0 is no timestamp.
pub(crate) fn stamp(now: Picoseconds) -> u32 {
    (now.as_nanoseconds() / 1_000_000) as u32 + 1
}

impl<W: Wire> Tick for Moment<'_, W> {
    fn now(&self) -> Picoseconds {
        self.now
    }

    fn clock(&self) -> Picoseconds {
        self.clock
    }

    fn settings(&self) -> &TcpSettings {
        self.settings
    }

    fn transmit(&mut self, outgoing: Outgoing) -> Picoseconds {
        let Outgoing { sequence, bytes, fin, push, is_new, tells_reduction } = outgoing;
        let mut segment = self.blank(sequence);
        segment.bytes = bytes;
        let is_syn = fin && sequence == 0;
        if fin {
            segment.flags = if is_syn { self.syn_flags() } else { Flags::FIN };
        }
        if push {
            segment.flags = segment.flags.with(Flags::PSH);
        }
        segment.is_ecn_capable = self.is_ecn && bytes > 0;
        if tells_reduction {
            segment.flags = segment.flags.with(Flags::CWR);
        }
        // The first SYN has nothing to acknowledge.
        if self.receiver.next > 0 || !is_syn {
            self.receiver.answer(&mut segment, self.settings);
        } else {
            segment.window_bytes = self.settings.receive_window_bytes.0.min(65_535);
        }
        if bytes > 0 && is_new {
            self.receiver.note_reply(self.now);
        }
        self.wire.send(self.now, segment)
    }

    fn held_back(&self) -> Picoseconds {
        self.wire.held_back(self.ids.own)
    }

    fn echo(&self) -> u32 {
        self.echo
    }

    fn stamp(&self) -> u32 {
        stamp(self.clock)
    }
}

impl<W> Moment<'_, W> {
    /// The first SYN asks for ECN with both flags, the answer grants it with one (RFC 3168 section 6.1.1).
    fn syn_flags(&self) -> Flags {
        match (self.is_ecn, self.receiver.next > 0) {
            (false, _) => Flags::SYN,
            (true, true) => Flags::SYN.with(Flags::ECE),
            (true, false) => Flags::SYN.with(Flags::ECE).with(Flags::CWR),
        }
    }

    fn blank(&self, sequence: u64) -> Segment {
        let stamp = if self.settings.timestamps { stamp(self.clock) } else { 0 };
        Segment { from: self.ids.own, to: self.ids.peer, sequence, stamp, ..Segment::default() }
    }
}

/// One end.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    ids: Ids,
    pub(crate) send: Sender,
    pub(crate) receive: Receiver,
    pub(crate) phase: Phase,
    /// When it has read the clock the last time.
    clock: Picoseconds,
    /// The NIC, or pacing, lets the sender go on then.
    resumes: Option<Picoseconds>,
}

impl Endpoint {
    /// `mss`: payload of a full segment, options deducted.
    pub(crate) fn new(ids: Ids, mss: u32, settings: &TcpSettings) -> Endpoint {
        let exact = settings.algorithm.tells_every_mark();
        let mut send = Sender::new(mss, settings);
        send.is_ecn = settings.ecn || exact;
        send.seed = mixed(settings.seed) ^ u64::from(ids.own);
        Endpoint {
            ids,
            send,
            receive: Receiver::new(mss, settings, exact),
            phase: Phase::Listening,
            clock: Picoseconds::ZERO,
            resumes: None,
        }
    }

    fn moment<'a, W: Wire>(
        &'a mut self,
        now: Picoseconds,
        echo: u32,
        settings: &'a TcpSettings,
        wire: &'a mut W,
    ) -> (&'a mut Sender, Moment<'a, W>) {
        self.clock = now;
        let Endpoint { ids, send, receive, .. } = self;
        let is_ecn = send.is_ecn;
        (send, Moment { now, clock: now, echo, settings, receiver: receive, wire, ids: *ids, is_ecn })
    }

    /// Sends the SYN: the first, or the answer to the peer's.
    pub(crate) fn open(&mut self, now: Picoseconds, settings: &TcpSettings, wire: &mut impl Wire) {
        self.phase = Phase::Opening;
        let (send, mut moment) = self.moment(now, 0, settings, wire);
        send.open(&mut moment);
    }

    /// Whether something with that sequence number is under way.
    pub(crate) fn has_sent(&self, sequence: u64) -> bool {
        self.phase != Phase::Listening && (self.send.unacknowledged..=self.send.next).contains(&sequence)
    }

    /// A router has told that what was sent is too large: a full segment has so much payload from now on. Linux does not read
    /// the clock there (`tcp_v4_mtu_reduced`), so that what is sent again at once counts as sent when the connection had
    /// something to do before. RACK takes it for lost once more when something that was sent then is acknowledged.
    pub(crate) fn lower_payload(
        &mut self,
        now: Picoseconds,
        payload: u32,
        settings: &TcpSettings,
        wire: &mut impl Wire,
    ) {
        let before = self.clock;
        let (send, mut moment) = self.moment(now, 0, settings, wire);
        moment.clock = before;
        send.lower_payload(&mut moment, payload);
        self.clock = before;
    }

    /// Takes a segment in. [`Endpoint::settle`] is to follow: at once, or after others that came together with it.
    pub(crate) fn take(
        &mut self,
        now: Picoseconds,
        segment: &Segment,
        settings: &TcpSettings,
        wire: &mut impl Wire,
    ) {
        if segment.flags.has(Flags::SYN) {
            return self.take_syn(now, segment, settings, wire);
        }
        if self.phase == Phase::Listening {
            return;
        }
        if self.phase == Phase::Opening && segment.acknowledged >= 1 {
            self.establish(now, segment);
        }
        if let Some(age) = self.receive.excess_age(segment)
            && !self.send.tolerates(segment, age, self.receive.next)
        {
            if self.receive.refuse(now, segment, settings) {
                self.send_acknowledgement(now, settings, wire);
            }
            return;
        }
        if self.receive.is_old(segment) {
            if self.receive.refuse_old(now, segment, settings) {
                self.send_acknowledgement(now, settings, wire);
            }
            return;
        }
        if (self.send.unacknowledged..=self.send.next).contains(&segment.acknowledged) {
            self.receive.note_stamp(segment);
        }
        if self.receive.changes_mark(segment) && self.receive.decide(now, settings) == Answer::Nothing {
            self.acknowledge_if_waiting(now, settings, wire);
        }
        self.receive.note_mark(segment);
        if segment.bytes > 0 || segment.flags.has(Flags::FIN) {
            self.receive.take(now, segment, settings);
            if !self.send.is_closing {
                self.receive.note_end();
            }
        }
        let (send, mut moment) = self.moment(now, segment.echo, settings, wire);
        send.acknowledge(&mut moment, segment);
    }

    fn acknowledge_if_waiting(&mut self, now: Picoseconds, settings: &TcpSettings, wire: &mut impl Wire) {
        if self.receive.earliest().is_some() {
            self.send_acknowledgement(now, settings, wire);
        }
    }

    fn take_syn(
        &mut self,
        now: Picoseconds,
        segment: &Segment,
        settings: &TcpSettings,
        wire: &mut impl Wire,
    ) {
        match self.phase {
            Phase::Listening => {
                self.receive.begin(segment);
                self.send.peer_window = segment.window_bytes;
                self.send.answers_syn = true;
                self.open(now, settings, wire);
            }
            Phase::Opening if segment.flags.has(Flags::ACK) => {
                self.receive.begin(segment);
                let (send, mut moment) = self.moment(now, segment.echo, settings, wire);
                send.acknowledge(&mut moment, segment);
                self.establish(now, segment);
                self.send.begin();
                self.send_acknowledgement(now, settings, wire);
            }
            // The answer, or the acknowledgement, was lost.
            _ if segment.flags.has(Flags::ACK) => self.send_acknowledgement(now, settings, wire),
            _ => {
                let (send, mut moment) = self.moment(now, 0, settings, wire);
                send.reopen(&mut moment);
            }
        }
    }

    fn establish(&mut self, now: Picoseconds, segment: &Segment) {
        self.phase = Phase::Established;
        self.receive.establish(now);
        self.send.peer_window = segment.window_bytes;
        self.send.window_sequence = segment.sequence;
        self.send.note_window(segment.window_bytes);
        self.send.window_end = segment.acknowledged + u64::from(segment.window_bytes);
    }

    /// Reads, acknowledges and sends, as far as that may be done now.
    pub(crate) fn settle(&mut self, now: Picoseconds, settings: &TcpSettings, wire: &mut impl Wire) {
        if self.phase != Phase::Established {
            return;
        }
        self.push(now, settings, wire);
        // The kernel answers before the application has read: what came takes its room from the window.
        let unread = self.receive.unread() > 0;
        if unread && self.receive.decide_unread(now, settings) == Answer::Now {
            self.send_acknowledgement(now, settings, wire);
        }
        let opens = !self.receive.is_paused && {
            self.receive.rtt = self.send.rtt.minimum.unwrap_or(Picoseconds::ZERO);
            self.receive.read_all(now)
        };
        let is_due = match unread {
            true => self.receive.decide_read(now, settings),
            false => self.receive.decide(now, settings),
        };
        if is_due == Answer::Now || opens {
            self.send_acknowledgement(now, settings, wire);
        }
    }

    /// Sends what may be sent.
    pub(crate) fn push(&mut self, now: Picoseconds, settings: &TcpSettings, wire: &mut impl Wire) {
        if self.phase != Phase::Established {
            return;
        }
        let (send, mut moment) = self.moment(now, 0, settings, wire);
        self.resumes = send.output(&mut moment);
    }

    fn send_acknowledgement(&mut self, now: Picoseconds, settings: &TcpSettings, wire: &mut impl Wire) {
        let next = self.send.next;
        let (_, mut moment) = self.moment(now, 0, settings, wire);
        moment.transmit(Outgoing { sequence: next, is_new: true, ..Outgoing::default() });
    }

    /// Lets everything happen that is due.
    pub(crate) fn wake(&mut self, now: Picoseconds, settings: &TcpSettings, wire: &mut impl Wire) {
        if self.receive.expire(now, settings) == Answer::Now {
            self.send_acknowledgement(now, settings, wire);
        }
        if self.send.deadline().is_some_and(|time| time <= now) {
            let (send, mut moment) = self.moment(now, 0, settings, wire);
            send.expire(&mut moment);
            self.push(now, settings, wire);
        }
        if self.resumes.is_some_and(|time| time <= now) {
            self.resumes = None;
            let (send, mut moment) = self.moment(now, 0, settings, wire);
            send.resume(&mut moment);
            self.push(now, settings, wire);
        }
    }

    /// When it must be woken.
    pub(crate) fn deadline(&self) -> Option<Picoseconds> {
        self.send.deadline().into_iter().chain(self.receive.earliest()).chain(self.resumes).min()
    }
}
