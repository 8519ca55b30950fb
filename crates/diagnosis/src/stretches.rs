//! The time between two packets, given to its cause (`cause.rs`), or kept aside until what follows tells.

use crate::Thresholds;
use crate::cause::Cause;
use crate::connection::{Connection, Held, Side};
use crate::detectors::Detector;
use crate::gap::Gap;
use crate::kinds::Kind;
use crate::silences::{Doubt, Episode, Silence};
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

/// What waits for an acknowledgement may stand in queues on its way here for half of the way, and for this at most: else the
/// sender rested. In nanoseconds.
const MOST_QUEUED: i64 = 5_000_000;
/// The way may be shorter than it was in the handshake, by this part.
const NEARER_PART: i64 = 2;

impl Connection {
    /// Gives the time since the last packet to a cause; `segment` is the packet that ends it, not taken in yet.
    pub(crate) fn attribute(&mut self, segment: &Segment, from: Side, now: i64, limits: &Thresholds) {
        self.rejoin_held(segment, from);
        self.settle_held(segment, from, now, limits);
        if self.attribute_unheard(segment, from, now) {
            return;
        }
        let mut gap = Gap { segment, from, length: now - self.last, is_pause: false, limits };
        gap.is_pause = self.is_pause(&gap);
        let cause = self.cause(&gap);
        self.give(cause, &gap);
        self.watch_answer(segment, from);
        if gap.is_pause {
            self.show(|detectors, of, account| detectors.pause(of, &gap, cause, account));
        }
    }

    /// Gives a gap to its cause.
    fn give(&mut self, cause: Cause, gap: &Gap) {
        if !gap.is_pause
            && let Cause::Known(kind) = cause
            && !self.may_go_on(gap)
        {
            // Most are.
            return self.count_gap(kind, gap.length, &[]);
        }
        self.give_pause(cause, gap);
    }

    /// Apart, so that the way of most gaps stays short.
    #[cold]
    fn give_pause(&mut self, cause: Cause, gap: &Gap) {
        let (from, sender) = (gap.from, gap.sender());
        let before = if self.established { self.half(sender).sent.number() } else { self.last_number };
        let evidence = [before, gap.segment.number];
        if gap.is_pause && gap.is_ended_by_sender() {
            let end = self.last + gap.length;
            self.half_mut(from).end_pause(end, gap.length);
        }
        let (begin, end) = (self.last, self.last + gap.length);
        match cause {
            Cause::Known(kind) | Cause::Shown(kind) if self.may_go_on(gap) => {
                let packets = if matches!(cause, Cause::Shown(_)) { evidence } else { [0; 2] };
                self.held = Some(Held { sender, begin, end, kind: Some(kind), packets });
            }
            Cause::Known(kind) => self.count_gap(kind, gap.length, &[]),
            Cause::Shown(Kind::SynLoss) => self.count_syn(gap, &evidence),
            Cause::Shown(kind) => {
                if kind == Kind::SpuriousRetransmit {
                    // The receiver may still say so (D-SACK).
                    self.half_mut(from).silences.tell_needless();
                }
                self.count_gap(kind, gap.length, &evidence);
            }
            Cause::Opening => self.handshake += gap.length,
            Cause::LostBefore => {
                self.stalls.push((self.last, from));
                self.count_gap(Kind::RtoStall, gap.length, &evidence);
            }
            Cause::BehindHole => {
                let half = self.half(from);
                let begin = half.way.near(gap.segment.seq);
                let end = begin + u64::from(gap.segment.payload_bytes);
                let doubt = Doubt::Hole { begin: half.way.high(), end: begin, is_asked: false };
                self.open_silence(gap, end, Some(doubt));
            }
            Cause::Announced => self.open_silence(gap, self.end_of(gap), None),
            Cause::BehindNumbers => self.open_silence_behind_numbers(gap),
            Cause::Unpushed => self.attribute_unpushed(gap, &evidence),
            Cause::AskedAgain => self.wait_for_answer(gap),
            Cause::Unanswered => self.extend_episode(gap),
            Cause::GoesOn => {
                let late = || self.answers_late(gap).then(|| gap.sender());
                if let Some(side) = self.asking(gap).or_else(late) {
                    self.half_mut(side).silences.last(gap.length);
                }
            }
            Cause::Delayed => {
                self.held = Some(Held { sender, begin, end, kind: None, packets: evidence });
            }
        }
        if matches!(cause, Cause::Known(Kind::ApplicationLimited) | Cause::Shown(Kind::ApplicationLimited)) {
            self.overhear(gap);
        }
    }

    /// Whether the silence that an acknowledgement ended here may go on at the sender, which has not heard of it yet, and may become
    /// a pause.
    #[inline]
    fn may_go_on(&self, gap: &Gap) -> bool {
        let is_long =
            gap.length > gap.limits.pause_nanoseconds / 2 && gap.length > self.pause(gap.limits) / 2;
        is_long
            && !gap.is_ended_by_sender()
            && !self.half(gap.sender()).way.is_idle()
            && self.established
            && self.reach(gap.sender()) > 0
    }

    /// Counts time since the last packet for a cause.
    pub(crate) fn count_gap(&mut self, kind: Kind, length: i64, packets: &[u64]) {
        if length > 0 {
            let (begin, end) = (self.last, self.last + length);
            self.note(kind, begin, end, length, packets);
        }
    }

    /// The time until an acknowledgement reaches a sender, later than it ever did by `lateness`.
    pub(crate) fn attribute_wait(&mut self, sender: Side, at: i64, lateness: i64, limits: &Thresholds) {
        let gap = at - self.last;
        let kind = self.pace(sender, limits);
        // By twice as much as others before it, once.
        let is_odd = kind == Kind::NetworkLimited
            && lateness > self.pause(limits)
            && lateness as f64 > self.half(sender).hearing.late() as f64 * limits.pause_rtts;
        self.count_gap(if is_odd { Kind::Unexplained } else { kind }, gap, &[]);
        if lateness > 0 {
            self.half_mut(sender).hearing.be_late(lateness);
        }
    }

    /// A silence in which packets were lost before they came here, as numbers alone say.
    fn open_silence_behind_numbers(&mut self, gap: &Gap) {
        let missing = self.missing_data_before(gap.from) * u64::from(self.mss(gap.from));
        let half = self.half(gap.from);
        let begin = half.way.near(gap.segment.seq);
        // Whose write goes on has not rested: what it sent meanwhile, and what comes now, is the same.
        let doubt = (!half.sent.is_open()).then_some(Doubt::Numbers);
        self.open_silence(gap, begin + missing, doubt);
    }

    /// A silence in which packets were lost before they came here: what ended it lies where nothing was seen yet.
    fn open_silence(&mut self, gap: &Gap, high: u64, doubt: Option<Doubt>) {
        let from = gap.from;
        self.settle_silence(from);
        self.stalls.push((self.last, from));
        let (begin, end) = (self.last, self.last + gap.length);
        let half = self.half_mut(from);
        // A timeout would have repeated the oldest, and that is what is missing.
        let by_probe = matches!(doubt, Some(Doubt::Hole { .. }));
        if !by_probe {
            half.silences.time_out_unseen(high);
        }
        let packets = vec![half.sent.number(), gap.segment.number];
        let silence = Silence {
            begin,
            end,
            lost: gap.length,
            acknowledged: end,
            high,
            needless: false,
            unanswered: None,
            by_probe,
            doubt,
            packets,
        };
        half.silences.end(silence);
    }

    /// An acknowledgement that came late has not ended the silence of a sender that had not heard of it when it repeated something,
    /// or went on behind what is missing: the silence began before.
    fn rejoin_held(&mut self, segment: &Segment, from: Side) {
        let Some(held) = self.held else { return };
        if from != held.sender || segment.payload_bytes == 0 || self.last != held.end {
            return;
        }
        let half = self.half(from);
        let end = half.way.near(segment.seq) + u64::from(segment.payload_bytes);
        let repeats = half.way.una() < end && end <= half.way.high();
        let is_on_its_way = half.hearing.waiting().any(|waiting| waiting.times.seen == held.end);
        if is_on_its_way && (repeats || half.way.skips(segment) > 0) {
            self.last = held.begin;
            self.held = None;
        }
    }

    /// After an acknowledgement that came late: if a small segment follows at once, it had waited for it (RFC 896 with
    /// RFC 1122 section 4.2.3.2).
    fn settle_held(&mut self, segment: &Segment, from: Side, now: i64, limits: &Thresholds) {
        let Some(held) = self.held.take() else { return };
        let (begin, end) = (held.begin, held.end);
        if let Some(kind) = held.kind {
            return self.note(kind, begin, end, end - begin, &held.packets);
        }
        let reach = self.reach(held.sender);
        let soon = limits.held_nanoseconds + reach + (reach / 2).min(MOST_QUEUED);
        // What waits for an acknowledgement leaves when that has come to its sender.
        let soonest = reach - reach / NEARER_PART;
        let waited = from == held.sender
            && segment.payload_bytes > 0
            && (soonest..=soon).contains(&(now - held.end))
            && !self.half(from).sent.holds_nothing_back();
        let way = &self.half(held.sender).way;
        // What is sent again was no new data when it waited.
        let is_new = way.near(segment.seq) + u64::from(segment.payload_bytes) > way.high();
        let kind = match waited {
            true if is_new && segment.payload_bytes < self.full_payload(held.sender) => Kind::NagleDelayedAck,
            // A window of one segment waits for its acknowledgement, too.
            true => Kind::NetworkLimited,
            // It waited for others, which are late.
            false if from == held.sender && self.is_answer_late(from, held.begin) => Kind::Unexplained,
            // It was not delayed, but took an RTT, as that of the rest does.
            false if !self.half(held.sender).way.is_idle() => Kind::NetworkLimited,
            false => Kind::ApplicationLimited,
        };
        let [data, ack] = held.packets;
        self.note(kind, begin, end, end - begin, &[data, ack, segment.number]);
    }

    /// A pause in which an answer was under way, which the other end did not hear: it has asked again. What becomes of the
    /// answer tells why.
    fn wait_for_answer(&mut self, gap: &Gap) {
        let begin = self.last;
        let answerer = gap.from.other();
        let half = self.half_mut(answerer);
        let (una, high, delivered, data) =
            (half.way.una(), half.way.high(), half.delivered(), half.sent.number());
        let episode = half.silences.go_on(|| Episode {
            una,
            begin,
            delivered,
            high,
            asked_again: true,
            packets: vec![data],
            ..Episode::default()
        });
        episode.lost += gap.length;
        episode.packets.push(gap.segment.number);
    }

    /// A pause that ended by sending again what was sent before, or by new data while older data was not answered.
    fn extend_episode(&mut self, gap: &Gap) {
        let Gap { segment, from, limits, .. } = *gap;
        let last = self.last;
        self.watch_loss(from, segment.number, limits);
        let is_unheard = self.was_unheard(from);
        let by_reordering_timer = self.is_by_reordering_timer(segment, from, gap.length, limits);
        let overheard = self.take_overheard(from);
        let half = self.half_mut(from);
        let revealed = half.is_revealed(limits.duplicate_acks);
        let repaired_before = half.way.flight().front().is_some_and(|piece| piece.times > 1)
            && half.silences.is_repairing(half.way.una());
        let (una, high, delivered, data) =
            (half.way.una(), half.way.high(), half.delivered(), half.sent.number());
        let place = half.way.near(segment.seq);
        let is_oldest = place <= una;
        // A FIN takes a place (RFC 9293 section 3.4).
        let fin = u64::from(segment.flags.contains(TcpFlags::FIN));
        let is_new = place + u64::from(segment.payload_bytes) + fin > high;
        let is_stale = half.sent.is_stale(segment);
        let episode = half.silences.go_on(|| Episode {
            una,
            begin: last - overheard,
            delivered,
            revealed,
            repaired_before,
            by_reordering_timer,
            high,
            stamp: segment.timestamps.map(|(value, _)| value),
            place,
            packets: vec![data],
            ..Episode::default()
        });
        episode.lost += gap.length + overheard;
        episode.is_stale |= is_stale && !is_new;
        episode.is_unheard |= is_unheard;
        if is_new {
            episode.probed = true;
        } else {
            episode.repeat(segment, place, last + gap.length);
            episode.is_elsewhere |= place != episode.place;
            episode.by_timeout |= is_oldest;
            episode.tries.take(segment, is_oldest, last + gap.length);
        }
        episode.packets.push(segment.number);
        if is_oldest && !is_new {
            let end = una + u64::from(segment.payload_bytes);
            half.silences.time_out((una, end), high, last + gap.length);
        }
    }
}
