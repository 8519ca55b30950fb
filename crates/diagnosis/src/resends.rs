//! Data that is sent again.

use crate::Thresholds;
use crate::connection::{Connection, Side, mark};
use crate::copies::LEAST_TIMEOUT;
use crate::flight::{Piece, Resent};
use crate::holes::Hole;
use crate::kinds::Kind;
use crate::repairs::Again;
use framegauge_packets::capture::Segment;

impl Connection {
    /// Takes data of which all had been seen before. `range`: its places.
    pub(crate) fn take_resend(
        &mut self,
        segment: &Segment,
        from: Side,
        range: (u64, u64),
        now: i64,
        limits: &Thresholds,
    ) {
        let half = self.half_mut(from);
        let is_probe =
            segment.payload_bytes <= 1 && (half.way.window() == 0 || half.way.una() >= half.way.high());
        if is_probe || range.0 == range.1 {
            return;
        }
        self.check_resend(segment, from, range, now);
        let hole = self.half_mut(from).way.fill(range);
        let was_overtaken = match &hole {
            Some(hole) => self.take_filler(segment, from, range, now, hole),
            None => self.take_late_original(segment, from, range.0, now),
        };
        if was_overtaken {
            return;
        }
        let half = self.half(from);
        let revealed = half.is_revealed(limits.duplicate_acks);
        let in_episode = half.silences.is_timeout();
        let mark = mark(segment);
        if hole.is_none() && !revealed && self.is_copied(segment, from, range.0, now, limits) {
            // No sender repeats so soon what nothing has revealed as lost.
            self.note(Kind::CaptureDuplicates, now, now, 0, &[segment.number]);
            return;
        }
        if hole.is_none() && self.is_unclear(segment, from, range, now, limits) {
            return self.tell_unclear(segment, from, range, now);
        }
        self.tell_repeat_of_answered(segment, from, range, now);
        let is_no_loss = self.repeats_size_probe(from, range.0, segment.payload_bytes)
            || self.half(from).way.was_withdrawn(range);
        let again = self.again(segment, from, range, now, revealed);
        self.count_resend(segment, from, range);
        let half = self.half_mut(from);
        if segment.payload_bytes > 0 {
            half.repairs.take(&again);
        }
        half.repeated.take(range);
        half.tracking.resend(range, segment.number, now);
        half.run.take(range.0, range.1);
        half.silences.repeat_at_once(segment, range.0, now);
        let resent = match hole {
            // The first copy was lost before it came here.
            Some(hole) => {
                Some(Resent { times: 2, before: hole.since, number: hole.number, hole: Some(hole) })
            }
            None => half.way.resend(range, now, mark),
        };
        if revealed && !is_no_loss {
            self.take_repair(segment, from, range, now, resent.filter(|_| !in_episode), limits);
        }
    }

    /// Nobody can tell who repeats this. The receiver may still tell, behind a repeat that filled a hole, or where it came so late that
    /// its sender may have repeated it.
    fn tell_unclear(&mut self, segment: &Segment, from: Side, range: (u64, u64), now: i64) {
        self.note(Kind::UnclearRepeats, now, now, 0, &[segment.number]);
        let is_late = self.knows_vantage() && now - self.half(from).sent.at() > self.path_rtt();
        if self.half(from).told.has_filled(range.0) {
            self.keep_copy(segment, from, Kind::UnclearRepeats);
        } else if is_late {
            self.half_mut(from).doubles.take(range, segment.number, Kind::UnclearRepeats, true);
        }
    }

    /// The acknowledgement of all that is sent again had passed: the receiver has it, and may still say so (D-SACK). What a pause
    /// ended has its name already.
    fn tell_repeat_of_answered(&mut self, segment: &Segment, from: Side, range: (u64, u64), now: i64) {
        let half = self.half(from);
        let is_answered = range.1 <= half.way.una() && segment.payload_bytes > 0;
        if is_answered && half.paused() < now && half.counts.unseen_bytes() == 0 {
            self.half_mut(from).silences.tell_needless();
            self.note(Kind::SpuriousRetransmit, now, now, 0, &[segment.number]);
        }
    }

    /// Counts a resend, and whether its size was the reason: it is a part of what had been one segment, or behind such a part, among
    /// what had left before that. A part that fills a segment may be one of an aggregate that a NIC has cut.
    fn count_resend(&mut self, segment: &Segment, from: Side, (begin, end): (u64, u64)) {
        let half = self.half_mut(from);
        let bytes = segment.payload_bytes;
        let is_part = |piece: &Piece| end < piece.end && bytes < piece.bytes;
        if bytes < half.mss() && half.way.flight().at(begin).is_some_and(is_part) {
            half.resized = half.resized.max(half.way.high());
        }
        half.counts.resend(end - begin);
        if end <= half.resized {
            half.counts.resize(end - begin);
        }
    }

    /// Whether a sender has cut anew what it repeats: a copy has the size of the packet. Pieces of an aggregate may be copies of
    /// what a NIC has cut, and an aggregate of what a kernel has merged.
    fn is_cut_anew(&self, segment: &Segment, from: Side, begin: u64) -> bool {
        let half = self.half(from);
        let is_other = |piece: &Piece| {
            piece.bytes != segment.payload_bytes && piece.bytes.max(segment.payload_bytes) <= half.mss()
        };
        half.way.flight().at(begin).is_some_and(is_other)
    }

    /// Whether what is under way has the same marks as this.
    fn is_copied(&self, segment: &Segment, from: Side, begin: u64, now: i64, limits: &Thresholds) -> bool {
        let (half, mark) = (self.half(from), mark(segment));
        // Of a sender that numbers its packets, the same number is the same packet, however late.
        let is_numbered =
            segment.identification.is_some_and(|own| own != 0) && half.identities.counts_by_one();
        let is_known = is_numbered || (segment.timestamps.is_some() && self.stamps_tell(from));
        let within = if is_known { i64::MAX } else { limits.duplicate_nanoseconds };
        let is_copy = |piece: &Piece| now - piece.last < within && piece.mark == mark && mark != 0;
        !self.notes.tell_too_big()
            && !self.is_cut_anew(segment, from, begin)
            && half.way.flight().at(begin).is_some_and(is_copy)
    }

    /// What tells why the sender repeats this.
    fn again(&self, segment: &Segment, from: Side, range: (u64, u64), now: i64, revealed: bool) -> Again {
        let sack = self.halves.iter().all(|half| half.opening.options().is_none_or(|syn| syn.sack_permitted));
        let half = self.half(from);
        let oldest = half.way.flight().at(range.0).map_or(now, |piece| piece.last);
        Again {
            range,
            now,
            timed: half.last_progress().max(oldest),
            una: half.way.una(),
            high: half.way.high(),
            last_data: half.sent.at(),
            rtt: half.round_trip.smoothed().max(self.path_rtt()),
            stamp: segment.timestamps.map(|(value, _)| value),
            revealed,
            sack,
        }
    }

    /// Whether nobody can tell who repeats this, the sender or the capture. Where it has a number or a timestamp that goes on,
    /// the sender does. Where it is stale, no timer has run out before it; and a timer that may have run out is none that
    /// nobody sets so short.
    pub(crate) fn is_unclear(
        &self,
        segment: &Segment,
        from: Side,
        range: (u64, u64),
        now: i64,
        limits: &Thresholds,
    ) -> bool {
        let half = self.half(from);
        // A router may have asked for all at once.
        if segment.payload_bytes == 0 || half.is_revealed(limits.duplicate_acks) || self.notes.tell_too_big()
        {
            return false;
        }
        let is_numbered = segment.identification.is_some_and(|own| half.identities.last_is_newest(own));
        // Stamped after all before it, or not before any, and otherwise than what it repeats.
        let original = half.way.flight().at(range.0);
        let is_other = || !half.lag().is_older() && original.is_some_and(|piece| piece.mark != mark(segment));
        // What it repeats had passed when it was acknowledged.
        let is_later = || range.1 <= half.way.una() && half.lag().left_after_answer();
        let is_stamped = segment.timestamps.is_some() && (half.lag().is_newer() || is_other() || is_later());
        let again = self.again(segment, from, range, now, false);
        let is_marked = is_numbered || is_stamped || self.is_cut_anew(segment, from, range.0);
        let is_sent_now = is_marked || !half.repairs.has_no_reason(&again, LEAST_TIMEOUT);
        self.is_stale(segment, from) || !is_sent_now
    }

    /// Whether a segment that fills a hole was sent before what left that.
    pub(crate) fn was_overtaken(&self, segment: &Segment, from: Side, now: i64, hole: &Hole) -> bool {
        let half = self.half(from);
        let rtt = self.path_rtt();
        // Of what lies behind all that was answered, nothing can have told the sender yet that it is lost. After a pause it sends
        // what it knows to be lost first. Where acknowledgements were filtered out, nobody sees what it knew.
        let is_calm = hole.since - half.paused() > rtt.saturating_mul(2)
            || hole.since == half.paused()
            || self.lacks_acks(from.other())
            || hole.begin <= half.way.una();
        let by_marks = hole.marks_tell(segment, half.identities.go_up());
        by_marks.unwrap_or_else(|| hole.was_overtaken(segment, now, rtt, is_calm, half.lag()))
    }

    /// Data for a hole, as it came late. Whether it was only overtaken.
    fn take_filler(
        &mut self,
        segment: &Segment,
        from: Side,
        range: (u64, u64),
        now: i64,
        hole: &Hole,
    ) -> bool {
        if range.0 < self.half(from).way.una() {
            return false;
        }
        let overtaken = self.was_overtaken(segment, from, now, hole);
        let counts = self.half(from).identities.go_up();
        let is_known = self.path_rtt() > 0 || hole.marks_tell(segment, counts).is_some();
        // One that was stamped before what it comes after shows the capture's order, not the network's.
        let is_told = overtaken && is_known && segment.nanoseconds >= hole.since;
        self.half_mut(from).way.send_late(Piece {
            begin: range.0.max(hole.begin),
            end: range.1.min(hole.end),
            first: now,
            last: now,
            number: segment.number,
            bytes: segment.payload_bytes,
            times: if overtaken { 1 } else { 2 },
            mark: mark(segment),
            sacked: false,
            is_judged: overtaken,
        });
        if overtaken {
            self.disprove_loss(from, (hole.begin, hole.end));
        } else {
            self.prove_loss(from, (hole.begin, hole.end));
        }
        if is_told {
            self.note(Kind::Reordering, hole.since, now, 0, &[hole.number, segment.number]);
        }
        overtaken
    }

    /// What lies at a place was lost, and is repaired: a timer before it ran out for what had arrived, and behind that lay this.
    pub(crate) fn lose_rest(&mut self, sender: Side, begin: u64, una: u64) {
        if let Some(silence) = self.half_mut(sender).silences.take_lost(begin, una) {
            self.stalls.push((silence.begin, sender));
            let kind = silence.kind_of_loss();
            self.note(kind, silence.begin, silence.end, silence.lost, &silence.packets);
        }
    }

    /// A resend of what SACK or duplicate acknowledgements have revealed as lost. `resent`: what it repeats, outside of a
    /// silence.
    fn take_repair(
        &mut self,
        segment: &Segment,
        from: Side,
        range: (u64, u64),
        now: i64,
        resent: Option<Resent>,
        limits: &Thresholds,
    ) {
        let begin = range.0;
        // The rest of what the timer had repeated in vain comes in smaller segments: that copy was lost in the silence.
        let is_timers = |resent: &Resent| self.half(from).silences.is_of_timer(begin, resent.before);
        if let Some(resent) = resent.filter(|resent| resent.times >= 3 && !is_timers(resent)) {
            self.note(Kind::DoubleLoss, resent.before, now, 0, &[resent.number, segment.number]);
        }
        let una = self.half(from).way.una();
        self.lose_rest(from, begin, una);
        let half = self.half_mut(from);
        if let Some(resent) = resent.filter(|resent| resent.times == 2)
            && half.silences.begins_repair(begin, una)
        {
            half.silences.repair(half.way.high());
            self.watch_loss(from, segment.number, limits);
            self.tell_repair(from, resent.before, now, [resent.number, segment.number]);
        }
        if let Some(resent) = resent {
            self.go_on_with_repair(segment, from, range, now, resent.hole);
        }
    }
}
