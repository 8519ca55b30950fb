//! What may have been lost between a sender and the tap, where only the identifications of its packets tell.

use crate::connection::{Connection, NOT_PURE, Side};
use crate::gap::Gap;
use crate::kinds::Kind;
use crate::silences::{Doubt, Episode, LostAnswer, Silence};
use framegauge_packets::capture::Segment;

/// A timeout that has doubled so often has reached its maximum.
const MOST_DOUBLINGS: u64 = 16;

impl Connection {
    /// A pause of a sender that had more to send.
    pub(crate) fn attribute_unpushed(&mut self, gap: &Gap, evidence: &[u64]) {
        let Gap { segment, from, length, .. } = *gap;
        let has_left = self.has_just_left(segment, from, length);
        let is_seen = self.is_sender_seen(from) && has_left;
        let kind = if is_seen { Kind::SenderStall } else { Kind::Unexplained };
        self.count_gap(kind, length, evidence);
        if is_seen {
            self.half_mut(from).sent.stall(length);
        }
    }

    /// Packets that were lost between a sender and the tap before the newest one. Beside it there is nothing between: a step
    /// of its identifications is then that of a counter which its connections share.
    pub(crate) fn missing_before(&self, sender: Side) -> u32 {
        if self.reach(sender) == 0 || self.lacks_acks(sender) {
            0
        } else {
            self.half(sender).identities.missing()
        }
    }

    /// The same before new data after a rest, less those that may only have acknowledged what the other end had sent: what is
    /// still unanswered in the file, and was not sent again, has been acknowledged in time (RFC 9293 section 3.8.6.3), by a packet
    /// that the file lacks.
    pub(crate) fn missing_data_before(&self, sender: Side) -> u64 {
        u64::from(self.missing_before(sender)).saturating_sub(self.owed_acknowledgements(sender))
    }

    /// The most packets by which an end may have acknowledged what of the other end's is unanswered in the file: one for each
    /// segment.
    pub(crate) fn owed_acknowledgements(&self, of: Side) -> u64 {
        let way = &self.half(of.other()).way;
        // More may be acknowledged than the file has.
        let open = way.high().saturating_sub(way.una());
        if way.has_begun() { open.div_ceil(self.mss(of.other()).into()) } else { 0 }
    }

    /// An end that has asked again is answered. An answer had been sent before, and was lost before it came here, where numbers
    /// are missing before this one, or where it only acknowledges and lies behind what was seen: its number is that of the data
    /// that its sender will send next (RFC 9293 section 3.10.4).
    #[inline]
    pub(crate) fn watch_answer(&mut self, segment: &Segment, from: Side) {
        if let Some(silence) = self.half(from.other()).silences.asks_again() {
            self.watch_answer_after(silence, segment, from);
        }
    }

    #[cold]
    fn watch_answer_after(&mut self, silence: i64, segment: &Segment, from: Side) {
        let missing = u64::from(self.missing_before(from));
        let (own, other) = (&self.half(from).way, &self.half(from.other()).way);
        let place = own.near(segment.seq);
        if other.near(segment.ack) <= other.una() || place < own.high() || !own.is_idle() || !own.is_seen() {
            return;
        }
        let is_pure = segment.payload_bytes == 0 && segment.flags.0 & NOT_PURE.0 == 0;
        let answer = if is_pure && place > own.high() {
            LostAnswer { high: place, doubt: Doubt::Hole { begin: own.high(), end: place, is_asked: false } }
        } else if segment.payload_bytes > 0 && missing > 0 && silence <= self.longest_wait(from, missing) {
            LostAnswer { high: place + missing * u64::from(self.mss(from)), doubt: Doubt::Numbers }
        } else {
            return;
        };
        self.half_mut(from.other()).silences.lose_answer(answer);
    }

    /// A silence of the other end: what this one had asked again for was answered, and that was lost before it came here.
    pub(crate) fn open_lost_answer(&mut self, episode: Episode, asker: Side, answer: LostAnswer) {
        let answerer = asker.other();
        self.settle_silence(answerer);
        self.stalls.push((episode.begin, answerer));
        let end = episode.begin + episode.lost;
        let silences = &mut self.half_mut(answerer).silences;
        silences.time_out_unseen(answer.high);
        silences.end(Silence {
            begin: episode.begin,
            end,
            lost: episode.lost,
            acknowledged: end,
            high: answer.high,
            needless: false,
            unanswered: None,
            by_probe: false,
            doubt: Some(answer.doubt),
            packets: episode.packets,
        });
    }

    /// Whether the capture was saved without the packets that only acknowledge: their identifications are no losses. A server that
    /// answers all at once sends none, but its client does.
    pub(crate) fn lacks_acks(&self, sender: Side) -> bool {
        let has_none = self.halves.iter().all(|half| half.counts.pure_acks() == 0);
        has_none && self.half(sender.other()).counts.data_segments() > 0
    }

    /// The longest that a sender can have waited for the answers to so many copies of one segment: its timeout doubles with
    /// each (RFC 6298 section 5.5).
    pub(crate) fn longest_wait(&self, sender: Side, copies: u64) -> i64 {
        let timeouts = (1i64 << copies.min(MOST_DOUBLINGS)) - 1;
        self.half(sender).round_trip.timeout().saturating_mul(timeouts).saturating_mul(3) / 2
    }

    /// Whether what a sender did not send can be told from what was lost before it came here, and from what it had not heard of.
    pub(crate) fn is_sender_seen(&self, sender: Side) -> bool {
        let is_beside = self.reach(sender) == 0;
        self.knows_vantage() && (is_beside || self.half(sender).identities.shows_none_missing())
    }
}
