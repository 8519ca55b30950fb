//! A connection: both directions, the time of its life by cause, and what happened in it.
//!
//! ```text
//!   time ──┬────┬──┬─────────────┬──┬───▶      each gap between two packets belongs to one cause,
//!        SYN  data ack  silence  resend         so the causes' times add up to the connection's life
//! ```
//!
//! A gap is judged when the packet that ends it arrives, from the state before that packet (`cause.rs`). Where only
//! what follows can tell (was more data waiting? was the sender held by Nagle's algorithm?), its time is kept aside
//! until then, and given to a cause at the latest when the connection ends.

use crate::Thresholds;
use crate::account::Observers;
use crate::copies::Prints;
use crate::detectors::{Detector, Seen};
use crate::findings::{Ends, Tally, count};
use crate::half::Half;
use crate::handshake::Strangers;
use crate::kinds::Kind;
use crate::notes::Notes;
use crate::outage::Outages;
use crate::picture::Picture;
use crate::resets::Cut;
use crate::sizes::Sizes;
use crate::steps::{LEAST_STEP, Says, Witness, Witnesses};
use crate::unanswered::Unanswered;
use crate::unfilled::Unfilled;
use crate::unheard::Unheard;
use crate::violations::{Breach, Suspects};
use crate::windows::Watch;
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

/// An end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

pub(crate) const SIDES: [Side; 2] = [Side::Client, Side::Server];

impl Side {
    pub(crate) fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// A pause that an acknowledgement ended: the next packet tells whether the sender had heard of that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) sender: Side,
    pub(crate) begin: i64,
    pub(crate) end: i64,
    /// What it was; `None`: it may have been a delayed acknowledgement that the sender waited for, and what follows tells.
    pub(crate) kind: Option<Kind>,
    pub(crate) packets: [u64; 2],
}

/// Flags that a segment which only acknowledges has not.
pub(crate) const NOT_PURE: TcpFlags = TcpFlags::SYN.with(TcpFlags::FIN).with(TcpFlags::RST);

/// What tells a packet from a later one with the same data; 0: nothing does.
pub(crate) fn mark(segment: &Segment) -> u32 {
    let stamp = segment.timestamps.map_or(0, |(value, _)| value | 1 << 31);
    stamp.rotate_left(16) ^ u32::from(segment.identification.unwrap_or(0))
}

/// All of it.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub(crate) number: u64,
    pub(crate) ends: Ends,
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// The stamp of the last packet that is no copy, which may go back.
    stamped: i64,
    pub(crate) last_number: u64,
    pub(crate) halves: [Half; 2],
    pub(crate) tallies: Vec<Tally>,
    /// Time of the handshake that is no fault, in nanoseconds.
    pub(crate) handshake: i64,
    pub(crate) established: bool,
    pub(crate) closed: bool,
    pub(crate) reset_by: Option<Side>,
    /// The newest reset, compared with what came before it.
    pub(crate) cut: Option<Cut>,
    pub(crate) refused: bool,
    /// From SYN to SYN-ACK, and from there to the ACK.
    pub(crate) syn_answer: Option<i64>,
    pub(crate) ack_answer: Option<i64>,
    rtt: i64,
    pub(crate) held: Option<Held>,
    /// When the silences began that ended by a timeout, with the sender.
    pub(crate) stalls: Vec<(i64, Side)>,
    pub(crate) multipath: bool,
    pub(crate) strangers: Strangers,
    pub(crate) unheard: Unheard,
    /// What may be a black hole, by sizes.
    pub(crate) sizes: Option<Sizes>,
    /// What the receiver asked for until the end, and never got.
    pub(crate) unfilled: Option<Unfilled>,
    /// What nobody answered until the end.
    pub(crate) unanswered: Option<Unanswered>,
    /// Silences in which the path was away.
    pub(crate) outages: Outages,
    /// What it says of the capture's clock.
    pub(crate) witnesses: Witnesses,
    pub(crate) notes: Notes,
    pub(crate) suspects: [Suspects; 2],
    /// Windows that may have become small.
    pub(crate) watches: [Option<Watch>; 2],
    pub(crate) breaches: Vec<(Breach, Vec<Tally>)>,
    pub(crate) hops: [u8; 2],
    /// What is drawn of it, if that is asked for.
    pub(crate) picture: Option<Box<Picture>>,
    pub(crate) prints: [Prints; 2],
    /// They are away while an event is shown to them.
    pub(crate) observers: Option<Box<Observers>>,
}

impl Connection {
    pub(crate) fn new(number: u64, segment: &Segment) -> Connection {
        let answers = segment.flags.contains(TcpFlags::SYN.with(TcpFlags::ACK));
        let (client, server) = match answers {
            true => (segment.destination, segment.source),
            false => (segment.source, segment.destination),
        };
        Connection {
            number,
            ends: Ends { client, server },
            first: segment.nanoseconds,
            last: segment.nanoseconds,
            stamped: segment.nanoseconds,
            last_number: segment.number,
            halves: Default::default(),
            tallies: Vec::new(),
            handshake: 0,
            established: !segment.flags.contains(TcpFlags::SYN),
            closed: false,
            reset_by: None,
            cut: None,
            refused: false,
            syn_answer: None,
            ack_answer: None,
            rtt: 0,
            held: None,
            stalls: Vec::new(),
            multipath: false,
            strangers: Strangers::default(),
            unheard: Unheard::default(),
            sizes: None,
            unfilled: None,
            unanswered: None,
            outages: Outages::default(),
            witnesses: Witnesses::default(),
            notes: Notes::default(),
            suspects: Default::default(),
            watches: Default::default(),
            breaches: Vec::new(),
            hops: [0; 2],
            picture: None,
            observers: Some(Box::default()),
            prints: Default::default(),
        }
    }

    pub(crate) fn half(&self, side: Side) -> &Half {
        &self.halves[side as usize]
    }

    pub(crate) fn half_mut(&mut self, side: Side) -> &mut Half {
        &mut self.halves[side as usize]
    }

    #[inline]
    pub(crate) fn mss(&self, side: Side) -> u32 {
        self.half(side).mss()
    }

    pub(crate) fn note(&mut self, kind: Kind, begin: i64, end: i64, lost: i64, packets: &[u64]) {
        if let Some(picture) = &mut self.picture {
            picture.note(kind, begin, end);
        }
        count(&mut self.tallies, kind, begin, end, lost, packets);
    }

    /// The RTT from end to end: of the handshake, or what the smallest samples of both directions add up to.
    #[inline]
    pub(crate) fn path_rtt(&self) -> i64 {
        self.rtt
    }

    /// Has the RTT follow a new smallest sample, or the handshake.
    pub(crate) fn update_rtt(&mut self) {
        let of_handshake = match (self.syn_answer, self.ack_answer) {
            (Some(first), Some(second)) => Some(first.saturating_add(second)),
            _ => None,
        };
        let least = |side| self.half(side).round_trip.minimum();
        // Each is that from end to end, or from the tap to the other end if the capture lacks the handshake.
        let of_data = match (least(Side::Client), least(Side::Server)) {
            (Some(one), Some(other)) if of_handshake.is_none() => Some(one.saturating_add(other)),
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        // Where stamps go back, a sample may be of an answer that was stamped too soon.
        let goes_back = self.tallies.iter().any(|tally| tally.kind == Kind::CaptureMisordered);
        let of_data = of_data.filter(|_| !goes_back || of_handshake.is_none());

        self.rtt = match (of_handshake, of_data) {
            (Some(one), Some(other)) => one.min(other),
            (one, other) => one.or(other).unwrap_or(0),
        };
    }

    /// Whether what this side has under way is not seen: its capture began in the middle, nearer to the receiver.
    pub(crate) fn is_near_receiver(&self, sender: Side) -> bool {
        let least = self.half(sender).round_trip.minimum();
        self.ack_answer.is_none() && least.is_some_and(|least| least < self.path_rtt() / 2)
    }

    /// Takes the next segment, in the order of the capture.
    pub(crate) fn take(&mut self, segment: &Segment, limits: &Thresholds) {
        let from = if segment.source == self.ends.client { Side::Client } else { Side::Server };
        let mut now = segment.nanoseconds;
        if now < self.stamped {
            self.go_back(segment);
        }
        now = now.max(self.last);
        if self.is_duplicate(segment, from, now, limits) {
            let kind = self.kind_of_copy(segment, from, now);
            self.note(kind, now, now, 0, &[segment.number]);
            self.keep_copy(segment, from, kind);
            return;
        }
        self.stamped = segment.nanoseconds;
        self.hear_echo(segment, from, now);
        if let Some((value, _)) = segment.timestamps {
            self.half_mut(from).stamp(value, now);
        }
        self.catch_up(segment, from, now, limits);
        self.watch_origin(segment, from, now);
        let half = self.half_mut(from);
        let (mss, is_known) = (half.mss(), half.opening.mss().is_some());
        let skipped = half.way.skips(segment);
        half.identities.take(segment, mss, is_known, skipped);
        self.tell_unsent(segment, from, now);
        self.attribute(segment, from, now, limits);
        let is_taken = self.check_header(segment, from, now) && !self.is_of_another(segment, from);
        let packet = Seen { segment, from, now };
        self.show(|detectors, of, account| detectors.segment(of, &packet, account));
        self.last = now;
        self.last_number = segment.number;
        let only_acks = segment.payload_bytes == 0 && segment.flags.0 & NOT_PURE.0 == 0;
        self.half_mut(from).counts.pass(only_acks);
        self.hops[from as usize] = segment.hops;
        self.multipath |= segment.multipath;
        if !is_taken {
            return;
        }
        if !segment.flags.contains(TcpFlags::RST) {
            self.half_mut(from).speak(now);
        }
        if segment.flags.contains(TcpFlags::SYN) {
            self.take_syn(segment, from, now);
        } else if !self.established && segment.flags.contains(TcpFlags::ACK) {
            self.take_opening_ack(segment, from, now);
        }
        self.take_data(segment, from, now, limits);
        if only_acks {
            self.half_mut(from).way.announce(segment);
        }
        if segment.flags.contains(TcpFlags::ACK) && !segment.flags.contains(TcpFlags::RST) {
            self.hear(segment, from, now);
        }
        if segment.flags.contains(TcpFlags::RST) {
            self.take_reset(segment, from, now);
        }
    }

    /// A stamp goes back. A clock that was set back is one step, however many packets follow it.
    #[cold]
    fn go_back(&mut self, segment: &Segment) {
        let (begin, end) = (self.stamped, segment.nanoseconds);
        self.note(Kind::CaptureMisordered, end, end.max(self.last), 0, &[segment.number]);
        if begin.saturating_sub(end) >= LEAST_STEP {
            self.witnesses.add(Witness { begin, end, rtt: 0, says: Says::Proof, host: None });
        }
    }

    /// Both ends have finished and heard so, or one has reset.
    pub(crate) fn is_over(&self) -> bool {
        self.closed || self.halves.iter().all(|half| half.is_finished() && half.way.is_idle())
    }

    /// Whether a SYN opens another connection with the same ends: it has another sequence number, and this one was used.
    pub(crate) fn is_another(&self, segment: &Segment) -> bool {
        let same_client = segment.source == self.ends.client;
        if !same_client && self.opens_from_both_ends() {
            return false;
        }
        let half = self.half(Side::Client);
        let place = half.way.near(segment.seq);
        // Its SYN-ACK may have been recorded before it.
        let is_answered = half.counts.segments() == 0 && self.half(Side::Server).opening.answers() > 0;
        let is_own = if half.opening.count() == 0 {
            is_answered && place + 1 == half.way.una()
        } else {
            place == half.opening.place()
        };
        !same_client || !is_own
    }

    /// Whether a SYN of the other end is part of the same opening (RFC 9293 figure 7): so far there are SYNs of the client, and
    /// no answer, or one SYN of each.
    fn opens_from_both_ends(&self) -> bool {
        let only_opens = |half: &Half| half.counts.segments() == u64::from(half.opening.count());
        !self.closed && self.halves.iter().all(only_opens) && self.half(Side::Server).opening.answers() == 0
    }

    #[cold]
    fn take_syn(&mut self, segment: &Segment, from: Side, now: i64) {
        let other = self.half(from.other()).sent.at();
        let half = self.half_mut(from);
        let place = half.way.near(segment.seq);
        if half.opening.take(segment, place) {
            half.way.open(place);
        }
        half.sent.open(now);
        let options = self.halves.each_ref().map(|half| half.opening.options());
        for side in SIDES {
            self.half_mut(side).opening.agree(options[side.other() as usize]);
        }
        let once = self.halves.iter().all(|half| half.opening.count() == 1);
        if segment.flags.contains(TcpFlags::ACK) && once {
            self.syn_answer = Some(now - other);
            self.update_rtt();
        }
    }

    /// The first acknowledgement without SYN: the client's, unless the file has nothing of that. Then the server tells by what it
    /// sends behind its SYN-ACK that it had heard it.
    #[cold]
    fn take_opening_ack(&mut self, segment: &Segment, from: Side, now: i64) {
        if from == Side::Client {
            self.established = true;
            self.remember_answer(segment, now);
            self.ack_answer = self.ack_answer.or((self.half(Side::Server).opening.count() == 1)
                .then(|| now - self.half(Side::Server).sent.at()));
            self.update_rtt();
        } else if self.half(Side::Client).counts.segments() == 0 {
            self.established = !segment.flags.contains(TcpFlags::RST);
        }
    }

    #[cold]
    fn take_reset(&mut self, segment: &Segment, from: Side, now: i64) {
        if self.closed {
            return;
        }
        self.closed = true;
        let begin = self.last;
        if !self.established && from == Side::Server && self.half(Side::Server).opening.count() == 0 {
            self.refused = true;
            self.note(Kind::ConnectionRefused, begin, now, 0, &[segment.number]);
        } else {
            self.reset_by = Some(from);
            // After both ends have finished it cuts nothing off.
            let are_done = self.halves.iter().all(|half| half.is_finished());
            let packet = Seen { segment, from, now };
            let is_explained = self.show(|detectors, of, account| detectors.close(of, &packet, account));
            if !is_explained && !are_done && !self.only_asks(from, now) && !self.has_had_all(from, now) {
                self.note(self.kind_of_reset(), begin, now, 0, &[segment.number]);
            }
        }
    }
}
