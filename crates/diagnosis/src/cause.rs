//! Whose time a gap between two packets of a connection was: a function of the state before the packet that ends it. It changes
//! nothing; `stretches.rs` gives the time to the cause.
//!
//! The tables say it, one for each way in which a pause ends: the first row that holds is the cause. What is no pause has the
//! cause of the connection's pace (`Connection::pace`).

use crate::Thresholds;
use crate::connection::{Connection, Side};
use crate::copies::LEAST_TIMEOUT;
use crate::gap::Gap;
use crate::kinds::Kind;
use framegauge_packets::TcpFlags;

/// Whose time a gap was, or what keeps it aside until what follows tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Known, and of little interest.
    Known(Kind),
    /// Known, and the packets before and after the gap show it.
    Shown(Kind),
    /// The handshake, as long as it takes.
    Opening,
    /// Packets were lost before they came here, until the sender's timer ran out.
    LostBefore,
    /// What ended it lies behind bytes that were not seen: they may have been lost before they came here.
    BehindHole,
    /// What ended it had been sent before, and was lost before it came here: its sender has said that it will send what lies behind.
    Announced,
    /// Identifications are missing before what ended it: packets may have been lost before they came here.
    BehindNumbers,
    /// The sender had more to send: what was lost before it came here may have held it.
    Unpushed,
    /// The other end asks again for what was answered: the answer is under way.
    AskedAgain,
    /// What was under way was repeated, or had to be probed.
    Unanswered,
    /// A sender has repeated what nobody answers, and this is no answer.
    GoesOn,
    /// The acknowledgement was delayed: whether anybody waited for it, the next packet tells.
    Delayed,
}

/// A row holds or not, before the segment is taken in.
type Row = (fn(&Connection, &Gap) -> bool, Cause);
/// Rows, and the cause if none holds.
type Table = (&'static [Row], Cause);

/// A pause that data ended which had been sent before.
const REPEATS: Table = (
    &[
        (Connection::probes_beside_question, Cause::GoesOn),
        (Connection::asks_for_life, Cause::Known(Kind::ApplicationLimited)),
        (Connection::is_closed_to, Cause::Shown(Kind::ZeroWindow)),
        (Connection::fills_what_passed_it, Cause::Known(Kind::NetworkLimited)),
        // Nothing says that anybody sent it now.
        (Connection::repeats_unclearly_in_rest, Cause::Known(Kind::ApplicationLimited)),
        (Connection::repeats_unclearly, Cause::Known(Kind::NetworkLimited)),
        (Connection::repeats_among_missing, Cause::LostBefore),
        // The answer was lost, or late, with the data that came with it.
        (Connection::repeats_a_question, Cause::AskedAgain),
        // The answer has passed here, and did not come to the sender in time.
        (Connection::repeats_acknowledged, Cause::Shown(Kind::SpuriousRetransmit)),
        // It took as long as the way, of which nothing tells here.
        (Connection::repeats_what_was_asked_for, Cause::Known(Kind::NetworkLimited)),
    ],
    Cause::Unanswered,
);

/// A pause that new data ended, or a FIN.
const NEWS: Table = (
    &[
        (Connection::is_closed_to, Cause::Shown(Kind::ZeroWindow)),
        // A FIN after all was answered, or behind what was not seen, ends a rest, and no loss.
        (Connection::is_bare_end, Cause::Shown(Kind::ApplicationLimited)),
        (Connection::leaves_hole_by_timer, Cause::BehindHole),
        (Connection::was_announced, Cause::Announced),
        (Connection::leaves_numbers, Cause::BehindNumbers),
        (Connection::is_beside_question, Cause::GoesOn),
        (Connection::fills_window, Cause::Shown(Kind::ReceiverLimited)),
        (Connection::is_news_late_as_usual, Cause::Shown(Kind::NetworkLimited)),
        (Connection::is_news_late, Cause::Shown(Kind::Unexplained)),
        (Connection::awaits_answer, Cause::Unanswered),
        // Nobody knows how far away it waits for answers.
        (|of, gap| !of.knows_vantage() && of.had_more(gap), Cause::Shown(Kind::NetworkLimited)),
        (Connection::had_more, Cause::Unpushed),
    ],
    Cause::Shown(Kind::ApplicationLimited),
);

/// A pause that an acknowledgement without data ended.
const ANSWERS: Table = (
    &[
        (Connection::has_closed_end, Cause::Shown(Kind::ZeroWindow)),
        // What was sent again in vain stays lost until it is answered.
        (Connection::answers_nothing, Cause::GoesOn),
        // A probe of that window, its answer, or the end of the wait.
        (Connection::is_short_of_room, Cause::Shown(Kind::ReceiverLimited)),
        (Connection::has_nothing_to_answer, Cause::Known(Kind::ApplicationLimited)),
        // Delayed or not, it is room that the sender waits for.
        (Connection::waits_for_room, Cause::Shown(Kind::ReceiverLimited)),
        (Connection::is_delayed, Cause::Delayed),
        (|of, gap| of.is_bloated(gap.sender(), gap.limits), Cause::Shown(Kind::Bufferbloat)),
        (Connection::is_late_as_usual, Cause::Shown(Kind::NetworkLimited)),
        // What it answers had only been late when it was sent again: one silence, which has a name.
        (Connection::answers_late, Cause::GoesOn),
        // What came late once has no timer or queue that explains it.
    ],
    Cause::Shown(Kind::Unexplained),
);

impl Connection {
    /// Whose time a gap was.
    pub(crate) fn cause(&self, gap: &Gap) -> Cause {
        if gap.length == 0 || self.closed {
            return Cause::Known(Kind::ApplicationLimited);
        }
        if !self.established {
            return self.cause_of_opening(gap);
        }
        if !gap.is_pause {
            if self.is_short_reordering_wait(gap) {
                return Cause::Shown(Kind::ReorderingTimer);
            }
            let is_stalled = self.is_stalled(gap);
            return Cause::Known(if is_stalled {
                Kind::SenderStall
            } else {
                self.pace(gap.sender(), gap.limits)
            });
        }
        self.cause_of_pause(gap)
    }

    /// Apart, so that the way of most gaps stays short.
    #[cold]
    fn cause_of_pause(&self, gap: &Gap) -> Cause {
        let (rows, otherwise) = match (gap.is_ended_by_sender(), self.repeats(gap)) {
            (true, true) => REPEATS,
            (true, false) => NEWS,
            (false, _) => ANSWERS,
        };
        rows.iter().find(|(holds, _)| holds(self, gap)).map_or(otherwise, |(_, cause)| *cause)
    }

    /// Whether a gap is longer than what packets that follow each other leave, or ended by a delayed acknowledgement.
    pub(crate) fn is_pause(&self, gap: &Gap) -> bool {
        let goes_on = self.established && !self.closed && gap.length > 0;
        goes_on
            && (self.exceeds_pause(gap.length, gap.limits)
                || self.is_delayed(gap)
                || self.was_talked_into(gap))
    }

    /// Whether a gap is longer than a pause. Most are shorter than any.
    #[inline]
    fn exceeds_pause(&self, length: i64, limits: &Thresholds) -> bool {
        length > limits.pause_nanoseconds && length > self.pause(limits)
    }

    /// A gap is a pause if it is longer.
    pub(crate) fn pause(&self, limits: &Thresholds) -> i64 {
        ((self.path_rtt() as f64 * limits.pause_rtts) as i64).max(limits.pause_nanoseconds)
    }

    /// What limits a connection that goes on without a pause.
    pub(crate) fn pace(&self, sender: Side, limits: &Thresholds) -> Kind {
        if self.is_shut() {
            return Kind::ZeroWindow;
        }
        let busiest = if self.half(sender).way.is_idle() { sender.other() } else { sender };
        let half = self.half(busiest);
        if half.way.is_idle() {
            return Kind::ApplicationLimited;
        }
        if self.is_windowed(busiest, self.slack(busiest, limits), limits) {
            return Kind::ReceiverLimited;
        }
        if self.is_bloated(busiest, limits) { Kind::Bufferbloat } else { Kind::NetworkLimited }
    }
}

/// What the rows ask.
impl Connection {
    pub(crate) fn repeats(&self, gap: &Gap) -> bool {
        let way = &self.half(gap.from).way;
        let takes_place = gap.segment.payload_bytes > 0 || self.end_of(gap) > way.una();
        way.has_begun() && self.end_of(gap) <= way.high() && takes_place
    }

    fn begin_of(&self, gap: &Gap) -> u64 {
        self.half(gap.from).way.near(gap.segment.seq)
    }

    pub(crate) fn end_of(&self, gap: &Gap) -> u64 {
        let fin = u64::from(gap.segment.flags.contains(TcpFlags::FIN));
        self.begin_of(gap) + u64::from(gap.segment.payload_bytes) + fin
    }

    pub(crate) fn asks_for_life(&self, gap: &Gap) -> bool {
        let way = &self.half(gap.from).way;
        way.una() >= way.high() && gap.segment.payload_bytes == 1
    }

    /// The other end has closed its window.
    fn is_closed_to(&self, gap: &Gap) -> bool {
        self.half(gap.from).way.is_shut()
    }

    fn repeats_acknowledged(&self, gap: &Gap) -> bool {
        self.end_of(gap) <= self.half(gap.from).way.una()
    }

    /// It fills a hole, and was sent before what left that, or nobody knows.
    fn fills_what_passed_it(&self, gap: &Gap) -> bool {
        let Some(hole) = self.half(gap.from).way.skipped((self.begin_of(gap), self.end_of(gap))) else {
            return false;
        };
        self.was_overtaken(gap.segment, gap.from, self.last + gap.length, hole)
    }

    fn repeats_unclearly(&self, gap: &Gap) -> bool {
        let range = (self.begin_of(gap), self.end_of(gap));
        self.half(gap.from).way.has_seen(range)
            && self.is_unclear(gap.segment, gap.from, range, self.last + gap.length, gap.limits)
    }

    fn repeats_unclearly_in_rest(&self, gap: &Gap) -> bool {
        self.half(gap.from).way.is_idle() && self.repeats_unclearly(gap)
    }

    /// Without a handshake nobody knows how far a sender is; what SACK or duplicate acknowledgements have asked for comes after an RTT,
    /// and sooner than any timer repeats it. Of a file without these, whatever left behind it may have asked (RFC 8985).
    fn repeats_what_was_asked_for(&self, gap: &Gap) -> bool {
        let half = self.half(gap.from);
        let is_asked = half.is_revealed(gap.limits.duplicate_acks)
            || (self.is_unheard(gap) && self.end_of(gap) < half.way.high());
        is_asked && !self.knows_vantage() && gap.length < LEAST_TIMEOUT
    }

    fn repeats_among_missing(&self, gap: &Gap) -> bool {
        self.repeats_acknowledged(gap) && self.missing_before(gap.from) > 0
    }

    fn repeats_a_question(&self, gap: &Gap) -> bool {
        self.repeats_acknowledged(gap) && !self.half(gap.from.other()).way.is_idle()
    }

    fn is_bare_end(&self, gap: &Gap) -> bool {
        let is_rest = !self.is_under_way(gap) && !self.is_beside_question(gap);
        gap.segment.payload_bytes == 0 && (is_rest || self.leaves_hole(gap))
    }

    fn is_under_way(&self, gap: &Gap) -> bool {
        !self.half(gap.from).way.is_idle()
    }

    /// Where the file has nothing of the other end, nobody knows what new data waits for. A FIN may be there again.
    fn awaits_answer(&self, gap: &Gap) -> bool {
        let is_new = self.end_of(gap) >= self.half(gap.from).way.high();
        self.is_under_way(gap) && !(self.is_unheard(gap) && is_new)
    }

    /// The file has nothing of the other end.
    fn is_unheard(&self, gap: &Gap) -> bool {
        self.half(gap.from.other()).counts.segments() == 0
    }

    /// It lies behind what was not seen.
    pub(crate) fn leaves_hole(&self, gap: &Gap) -> bool {
        let half = self.half(gap.from);
        half.way.is_seen() && self.begin_of(gap) > half.way.high()
    }

    /// What it skips may have been lost before the pause, and a timer have ended that; or else it is the first that a sender with
    /// nothing more to send sent after a rest: if that is longer than timers, or no more numbers are missing than segments.
    fn leaves_hole_by_timer(&self, gap: &Gap) -> bool {
        // Where nobody is heard, or nobody knows how far the sender is, a rest as long as an RTT may end by a flight of which the
        // first is lost.
        let is_far = self.is_unheard(gap) || !self.knows_vantage();
        let may_be_rtt = is_far && gap.length < LEAST_TIMEOUT;
        if !self.leaves_hole(gap) || may_be_rtt {
            return false;
        }
        let half = self.half(gap.from);
        let skipped = (self.begin_of(gap) - half.way.high()).div_ceil(self.mss(gap.from).into());
        let copies = u64::from(half.identities.missing()).saturating_sub(skipped).max(1);
        // So few numbers tell before it is known that the sender counts.
        let may_rest = u64::from(half.identities.may_miss()) == skipped && !self.had_more(gap);
        !may_rest && gap.length <= self.longest_wait(gap.from, copies)
    }

    fn was_announced(&self, gap: &Gap) -> bool {
        self.half(gap.from).way.is_announced((self.begin_of(gap), self.end_of(gap)), gap.segment)
    }

    fn leaves_numbers(&self, gap: &Gap) -> bool {
        let missing = self.missing_data_before(gap.from);
        !self.leaves_hole(gap)
            && !self.is_under_way(gap)
            && missing > 0
            && gap.length <= self.longest_wait(gap.from, missing)
    }

    fn fills_window(&self, gap: &Gap) -> bool {
        let half = self.half(gap.from);
        let (mss, bytes) = (self.mss(gap.from), gap.segment.payload_bytes);
        // A sender waits for room for a whole segment, and at last sends what fits (RFC 9293 section 3.8.6.2.1).
        let fills_small = half.way.room() < u64::from(mss) && half.way.room() == u64::from(bytes);
        self.is_windowed(gap.from, bytes.min(mss).into(), gap.limits)
            || (half.way.knows_window() && fills_small)
    }

    /// It had left long before, or what it waited for was under way from here to it: all of them stood still.
    fn is_news_late(&self, gap: &Gap) -> bool {
        (self.is_under_way(gap) && !self.has_just_left(gap.segment, gap.from, gap.length))
            || self.is_answer_late(gap.from, self.last + gap.length / 2)
    }

    fn is_news_late_as_usual(&self, gap: &Gap) -> bool {
        self.is_late_as_usual(gap) && self.is_news_late(gap)
    }

    fn had_more(&self, gap: &Gap) -> bool {
        let half = self.half(gap.from);
        half.sent.had_more_before(gap.length, half.round_trip.timeout())
    }

    /// Some end's window is closed.
    fn has_closed_end(&self, _: &Gap) -> bool {
        self.is_shut()
    }

    fn has_nothing_to_answer(&self, gap: &Gap) -> bool {
        self.half(gap.sender()).way.is_idle()
    }

    fn waits_for_room(&self, gap: &Gap) -> bool {
        let sender = gap.sender();
        self.is_windowed(sender, self.mss(sender).into(), gap.limits)
    }

    /// As late as answers are now, though not as soon as the soonest.
    fn is_late_as_usual(&self, gap: &Gap) -> bool {
        let round_trip = &self.half(gap.sender()).round_trip;
        round_trip.samples() == 0 || gap.length as f64 <= round_trip.smoothed() as f64 * gap.limits.pause_rtts
    }

    /// Whether an acknowledgement so late may have been delayed on purpose: it is of news, and the last data was less
    /// than two segments.
    fn is_delayed(&self, gap: &Gap) -> bool {
        let (segment, sender) = (gap.segment, gap.from.other());
        if segment.payload_bytes > 0 || segment.flags.contains(TcpFlags::FIN) {
            return false;
        }
        let half = self.half(sender);
        let late = gap.length - (self.path_rtt() - self.reach(sender));
        let delays = gap.limits.delayed_ack_least..=gap.limits.delayed_ack_most;
        delays.contains(&late.max(gap.length / 4 * 3))
            && half.way.has_begun()
            && half.way.near(segment.ack) > half.way.una()
            && (half.sent.payload_bytes() < self.mss(sender)
                || half.way.flight().bytes() < 2 * u64::from(self.mss(sender)))
    }

    /// A short gap in which a sender that had more sent nothing, and nothing was under way.
    fn is_stalled(&self, gap: &Gap) -> bool {
        let half = self.half(gap.from);
        gap.segment.payload_bytes > 0
            && half.sent.had_more()
            && half.way.is_idle()
            && gap.length > (self.path_rtt() / 2).max(gap.limits.pause_nanoseconds)
            && self.pace(gap.from, gap.limits) == Kind::ApplicationLimited
            && self.is_sender_seen(gap.from)
            && self.has_just_left(gap.segment, gap.from, gap.length)
    }

    /// Whether the newest RTT is far above the smallest.
    fn is_bloated(&self, sender: Side, limits: &Thresholds) -> bool {
        let round_trip = &self.half(sender).round_trip;
        let floor = self.path_rtt().max(self.half(sender).level.floor());
        // The answer to less than two segments may be late by intent (RFC 9293 section 3.8.6.3).
        let fills = || self.half(sender).way.flight().bytes() >= 2 * u64::from(self.mss(sender));
        round_trip.latest() - floor > limits.bloat_nanoseconds
            && round_trip.samples() > 0
            && round_trip.latest() as f64 > floor as f64 * limits.bloat_factor
            && fills()
    }
}
