//! What acknowledgements tell: windows, RTT, SACK and D-SACK, and the end of a silence.

use crate::connection::{Connection, Side};
use crate::detectors::{Acknowledgement, Detector};
use crate::findings::Tally;
use crate::flight::Acknowledged;
use crate::gap::Gap;
use crate::hearing::Heard;
use crate::kinds::Kind;
use crate::silences::{Episode, Silence};
use crate::sizes::Grade;
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

impl Connection {
    /// Takes an acknowledgement that `from` sent, of data of the other end, when that end has heard it.
    pub(crate) fn take_ack(&mut self, segment: &Segment, from: Side, arrival: Heard, now: i64) {
        let sender = from.other();
        let shift = self.window_shift(segment, from);
        if !segment.flags.contains(TcpFlags::SYN) {
            self.half_mut(from).hidden.take(segment);
        }
        let has_hidden_sack = segment.options_are_cut && self.has_hidden_sack(segment, from);
        let half = self.half_mut(sender);
        let ack = half.way.near(segment.ack);
        half.way.begin_acknowledged(ack);
        let unseen = half.way.skip(ack);
        if unseen > 0 {
            self.take_ack_of_unseen((ack - unseen, ack), sender, now, segment.number);
        }
        let half = self.half_mut(sender);
        let is_news = ack > half.way.una();
        half.repairs.hear(segment, arrival.due, is_news);
        half.silences.hear();
        let same_window = half.way.is_window(segment.window, shift);
        if ack > half.way.una() {
            let una = half.way.una();
            let (acked, uncaptured) = half.way.acknowledge(ack);
            half.counts.lack(uncaptured);
            half.hear_news(ack, now);
            if acked.resent {
                self.answer_repair(segment, sender, una, arrival);
            }
            if uncaptured > 0 {
                self.note(Kind::CaptureLoss, now, now, 0, &[segment.number]);
                self.disprove_loss(sender, (0, ack));
            }
            self.take_progress(segment, &acked, sender, arrival, now);
        } else if ack == half.way.una()
            && (same_window || has_hidden_sack)
            // Each probe of a closed window is answered so, whatever arrived.
            && segment.window > 0
            && segment.payload_bytes == 0
            && !half.way.is_idle()
            && !segment.flags.contains(TcpFlags::SYN)
            && !segment.flags.contains(TcpFlags::FIN)
        {
            half.hear_duplicate(has_hidden_sack);
        }
        if segment.sack.count > 0 {
            self.take_sack(segment, ack, sender, now);
        }
        let opening = if self.half(sender).tracking.is_new() { self.half(from).origin.opening() } else { 0 };
        let half = self.half_mut(sender);
        half.tracking.hear(ack, segment.window.max(opening));
        half.way.hear_window(segment.window, ack, shift);
        if half.is_done() {
            half.way.end_window();
        }
        self.take_round(sender, now);
        self.check_answer(sender, ack, now);
        let acked = Acknowledgement { segment, sender };
        self.show(|detectors, of, account| detectors.acknowledgement(of, &acked, account));
    }

    /// Whether an acknowledgement is of data above a hole, of which the capture's length has cut all but that.
    #[cold]
    fn has_hidden_sack(&self, segment: &Segment, from: Side) -> bool {
        let may_sack =
            self.halves.iter().all(|half| half.opening.options().is_none_or(|syn| syn.sack_permitted));
        may_sack && !self.multipath && self.half(from).hidden.has_sack(segment)
    }

    /// How far a window of this end is scaled, if that is known; in a SYN it never is (RFC 7323 section 2.2).
    #[inline]
    fn window_shift(&self, segment: &Segment, from: Side) -> Option<u8> {
        if segment.flags.contains(TcpFlags::SYN) { Some(0) } else { self.half(from).opening.window_shift() }
    }

    /// An acknowledgement of what the capture has not: it lacks packets, or it has one direction only.
    #[cold]
    fn take_ack_of_unseen(&mut self, (begin, end): (u64, u64), sender: Side, now: i64, number: u64) {
        let half = self.half_mut(sender);
        half.counts.lack(end - begin);
        if half.counts.segments() > 0 {
            self.suspect_unsent(sender, begin, end, now, number);
        }
    }

    fn take_progress(
        &mut self,
        segment: &Segment,
        acked: &Acknowledged,
        sender: Side,
        arrival: Heard,
        now: i64,
    ) {
        let number = segment.number;
        let mss = self.mss(sender);
        let half = self.half_mut(sender);
        if let Some(sent) = acked.sent {
            let late = half.round_trip.minimum().is_some_and(|least| arrival.seen - sent - least > DELAYED);
            // One that comes with data waited for that data, if for nothing else.
            let may_be_delayed = acked.bytes < 2 * u64::from(mss) && (late || segment.payload_bytes > 0);
            let queued = (arrival.due - sent).max(arrival.seen - sent + half.hearing.echoes().newest());
            half.hearing.answer_after((arrival.seen - sent).max(0));
            if half.round_trip.sample_queue(queued, may_be_delayed) {
                self.update_rtt();
            }
            if !may_be_delayed {
                self.take_level(queued, sent, sender, number);
            }
        }
        if acked.closed_hole {
            let closed = Tally::new(Kind::Reordering, now, now, &[]).times(0);
            let all = self.half_mut(sender).closed_holes.get_or_insert_with(|| Box::new(closed));
            (all.end, all.count) = (now, all.count + 1);
            all.add_packet(number);
        }
        let half = self.half_mut(sender);
        half.deliver(acked.largest_piece());
        if self.sizes.is_some() {
            self.doubt_sizes(sender, acked);
        }
        let half = self.half_mut(sender);
        half.silences.acknowledge(now);
        let una = half.way.una();
        if let Some(silence) = half.silences.take_needless(una) {
            let kind = silence.kind_by(segment);
            if kind == Kind::SpuriousRetransmit {
                half.silences.tell_needless();
            }
            self.note(kind, silence.begin, silence.end, silence.lost, &silence.packets);
        }
        if let Some(episode) = self.half_mut(sender).silences.take_answered(una) {
            self.take_answer(segment, acked, episode, sender, (arrival.seen, now));
        }
    }

    /// Whether the end that has repeated what nobody answered hears an answer to what it had sent before, as its timestamp tells
    /// (RFC 3522).
    pub(crate) fn answers_late(&self, gap: &Gap) -> bool {
        let half = self.half(gap.sender());
        let is_news = half.way.near(gap.segment.ack) > half.way.una();
        gap.segment.payload_bytes == 0 && is_news && half.silences.was_needless(gap.segment)
    }

    /// An acknowledgement of something new ends a silence. Times: when it passed, and now that it has reached the sender.
    #[cold]
    fn take_answer(
        &mut self,
        segment: &Segment,
        acked: &Acknowledged,
        episode: Episode,
        sender: Side,
        (seen_at, now): (i64, i64),
    ) {
        let half = self.half(sender);
        let una = half.way.una();
        // What was asked for, and is not answered by this, was lost.
        let answers_repeat = una > episode.place || !episode.revealed;
        let soonest = self.soonest_answer(sender.other());
        let is_older = episode.was_needless(segment) && episode.resends > 0;
        if answers_repeat && (is_older || episode.is_answered_too_soon(seen_at, soonest)) {
            if let Some(answer) = episode.lost_answer {
                return self.open_lost_answer(episode, sender, answer);
            }
            // The answer is that to the first copy (RFC 3522).
            return self.open_needless(episode, sender, now);
        }
        if episode.asked_again && !acked.resent && episode.resends == 0 {
            // The answer came at last: what was asked again for had arrived.
            let (begin, end) = (episode.begin, episode.begin + episode.lost);
            return self.note(Kind::SpuriousRetransmit, begin, end, episode.lost, &episode.packets);
        }
        // In a file without pure acknowledgements nobody knows which repeats it answers.
        let is_first = !acked.resent || self.lacks_acks(sender.other());
        if episode.probed && is_first && episode.resends == 0 {
            // It was no loss that it waited for, unless the probe showed one: then nothing before had.
            let shows_loss = segment.sack.as_slice().iter().any(|(begin, _)| half.way.near(*begin) > una);
            let kind = if shows_loss { Kind::TailLoss } else { Kind::ApplicationLimited };
            let (begin, end) = (episode.begin, episode.begin + episode.lost);
            return self.note(kind, begin, end, episode.lost, &episode.packets);
        }
        self.end_episode(episode, sender, now, Some(acked));
    }

    #[cold]
    fn take_sack(&mut self, segment: &Segment, ack: u64, sender: Side, now: i64) {
        let possible = self.possible_blocks(segment, sender, now);
        let blocks = possible.as_slice();
        let Some(first) = blocks.first() else { return };
        let half = self.half_mut(sender);
        let place = |number| half.way.near(number);
        let (begin, end) = (place(first.0), place(first.1));
        let within = |outer: &(u32, u32)| place(outer.0) <= begin && end <= place(outer.1);
        let is_duplicate = end <= ack || blocks.get(1).is_some_and(within);
        let may_be_repeat = half.counts.resent_segments() > 0 && half.repeated.may_have((begin, end));
        let una = half.way.una();
        let mut missing = (ack, ack);
        for (begin, end) in blocks.iter().skip(usize::from(is_duplicate)) {
            let (begin, end) = (half.way.near(*begin), half.way.near(*end));
            if begin >= ack {
                half.way.sack(begin, end);
                half.discarded.answer(begin, end);
                half.tracking.arrive(begin, end);
                missing.1 = missing.1.max(begin);
            }
        }
        if missing.1 > ack {
            // The receiver lacks what lies below.
            self.half_mut(sender).silences.ask(missing);
        }
        if is_duplicate && (!may_be_repeat || self.half(sender).told.has_filled(begin)) {
            self.hear_of_double(sender, (begin, end), now);
        }
        if !is_duplicate || !may_be_repeat {
            return;
        }
        self.hear_of_copy(sender, (begin, end));
        // What was sent again after a silence had arrived: nothing was lost, only the answer came late.
        match self.half_mut(sender).silences.take_arrived(una) {
            Some(silence) => {
                self.stalls.retain(|stall| *stall != (silence.begin, sender));
                let (begin, end) = (silence.begin, silence.end);
                // Its own number is that of the data that it sends next (RFC 9293 section 3.4): what lies before has left, and was
                // the answer.
                let answerer = sender.other();
                let answers = &self.half(answerer).way;
                let mut lost = silence.lost;
                if answers.is_seen() && answers.near(segment.seq) > answers.high() {
                    self.stalls.push((begin, answerer));
                    self.note(Kind::TailLoss, begin, end, lost, &silence.packets);
                    lost = 0;
                }
                self.note(Kind::SpuriousRetransmit, begin, end, lost, &silence.packets);
            }
            None => {
                // One repeat counts once, whoever says that it was needless.
                let repeats = self.half(sender).counts.resent_segments();
                if !self.half_mut(sender).silences.has_told_needless(repeats) {
                    self.note(Kind::SpuriousRetransmit, now, now, 0, &[segment.number]);
                }
            }
        }
    }

    /// Names the cause of a silence that has ended, or whose connection has.
    pub(crate) fn end_episode(
        &mut self,
        episode: Episode,
        sender: Side,
        now: i64,
        arrived: Option<&Acknowledged>,
    ) {
        let end = episode.begin + episode.lost;
        if episode.probed && episode.resends == 0 && arrived.is_none() {
            return self.note(Kind::ApplicationLimited, episode.begin, end, episode.lost, &episode.packets);
        }
        let give = |connection: &mut Connection, kind| {
            connection.note(kind, episode.begin, end.max(episode.begin), episode.lost, &episode.packets);
        };
        if episode.is_unheard {
            return give(self, Kind::AckUnheard);
        }
        if let Some(kind) = self.kind_of_withdrawn(sender, episode.una) {
            return give(self, kind);
        }
        if self.discards(sender, (episode.una, episode.high)) {
            let kind = self.tell_discarded(sender);
            return give(self, kind);
        }
        if episode.is_stale && episode.heard {
            return give(self, Kind::Paws);
        }
        self.lose_rest(sender, episode.una, episode.una);
        if let Some(sizes) = self.sizes_of(&episode, sender, arrived) {
            self.keep_sizes(sizes);
            if sizes.grade > Grade::Possible {
                return give(self, Kind::PmtuBlackHole);
            }
        }
        if episode.by_reordering_timer && episode.resends == 1 {
            return give(self, Kind::ReorderingTimer);
        }
        self.stalls.push((episode.begin, sender));
        if episode.revealed && episode.repaired_before {
            return give(self, Kind::DoubleLoss);
        }
        if episode.revealed || episode.resends >= 3 || episode.probed {
            self.keep_outage(&episode, sender, arrived.is_some());
            return give(self, Kind::RtoStall);
        }
        // Whether more was waiting behind what was lost, only the next data will tell.
        self.settle_silence(sender);
        self.half_mut(sender).silences.end(Silence {
            begin: episode.begin,
            end,
            lost: episode.lost,
            acknowledged: now,
            high: episode.high,
            needless: false,
            unanswered: None,
            by_probe: !episode.by_timeout,
            doubt: None,
            packets: episode.packets,
        });
    }

    /// What a silence was in which the receiver lacked what it may have discarded: it had taken its window back.
    fn kind_of_withdrawn(&self, sender: Side, una: u64) -> Option<Kind> {
        let oldest = (una, una + u64::from(self.mss(sender)));
        let is_closed = self.lost(Kind::ZeroWindow) > 0;
        let kind = if is_closed { Kind::ZeroWindow } else { Kind::ReceiverLimited };
        self.half(sender).way.was_withdrawn(oldest).then_some(kind)
    }

    /// What a silence ended with had arrived before. Whether all else had, what follows will tell.
    fn open_needless(&mut self, episode: Episode, sender: Side, now: i64) {
        let (begin, end) = (episode.begin, episode.begin + episode.lost);
        if self.half(sender).way.una() >= episode.high {
            self.half_mut(sender).silences.tell_needless();
            return self.note(Kind::SpuriousRetransmit, begin, end, episode.lost, &episode.packets);
        }
        self.settle_silence(sender);
        let (lost, high, packets) = (episode.lost, episode.high, episode.packets);
        let by_probe = !episode.by_timeout;
        let unanswered = episode.stamp.filter(|_| self.half(sender).way.una() <= episode.place);
        let silence = Silence {
            begin,
            end,
            lost,
            acknowledged: now,
            high,
            needless: true,
            unanswered,
            by_probe,
            doubt: None,
            packets,
        };
        self.half_mut(sender).silences.end(silence);
    }

    /// New data up to a place after a silence: if it comes at once, and answers nothing that came meanwhile, it had been
    /// waiting.
    pub(crate) fn tell_silence(&mut self, sender: Side, end: u64, now: i64) {
        let Some(silence) = self.half_mut(sender).silences.take_followed(end) else { return };
        let waited = self.had_waited(sender, (silence.acknowledged, silence.end), now);
        let kind = if waited { silence.kind_of_loss() } else { Kind::TailLoss };
        self.conclude(sender, silence, kind);
    }

    /// Whether new data had been waiting for a silence to end: it comes at once after the acknowledgement of what was lost, and
    /// nothing came since the silence ended that it could answer. Times: of the acknowledgement, and of the end.
    pub(crate) fn had_waited(&self, sender: Side, (acknowledged, end): (i64, i64), now: i64) -> bool {
        let at_once = self.path_rtt().saturating_mul(2).max(AT_ONCE);
        let other = self.half(sender.other());
        let last_request = if other.counts.data_segments() > 0 { other.sent.at() } else { i64::MIN };
        now - acknowledged <= at_once && last_request <= end
    }

    /// Nothing followed a silence.
    pub(crate) fn settle_silence(&mut self, sender: Side) {
        if let Some(silence) = self.half_mut(sender).silences.take_over() {
            let kind = if silence.needless { Kind::SpuriousRetransmit } else { Kind::TailLoss };
            self.conclude(sender, silence, kind);
        }
    }
}

/// What leaves so soon after an acknowledgement was ready.
const AT_ONCE: i64 = 5_000_000;
/// Linux delays an acknowledgement by 40 ms or more.
const DELAYED: i64 = 30_000_000;
