//! What may have been lost between a sender and the tap, where only the identifications of its packets tell.

use crate::cause::Gap;
use crate::connection::{Connection, Side};
use crate::findings::count;
use crate::kinds::Kind;

/// A timeout that has doubled so often has reached its maximum.
const MOST_DOUBLINGS: u64 = 16;

impl Connection {
    /// A pause of a sender that had more to send.
    pub(crate) fn attribute_unpushed(&mut self, gap: &Gap, evidence: &[u64]) {
        let Gap { segment, from, length, .. } = *gap;
        let has_left = self.has_just_left(segment, from, length);
        let is_seen = self.is_sender_seen(from) && has_left;
        let kind = if is_seen { Kind::SenderStall } else { Kind::Unexplained };
        if let Some(follows) = self.half(from).identities.may_follow()
            && has_left
            && !self.lacks_acks(from)
        {
            let kind = if follows { Kind::SenderStall } else { Kind::RtoStall };
            let (begin, end) = (self.last, self.last + length);
            count(&mut self.half_mut(from).unsure, kind, begin, end, length, evidence);
        }
        self.count_gap(kind, length, evidence);
    }

    /// Pauses of which nobody knew whether packets had been lost before they came here, now that all is known.
    pub(crate) fn settle_unsure(&mut self, side: Side) {
        let half = self.half_mut(side);
        let all = std::mem::take(&mut half.unsure);
        if !half.identities.counts_by_one() {
            return;
        }
        for unsure in all {
            let Some(tally) = self.tallies.iter_mut().find(|tally| tally.kind == Kind::Unexplained) else {
                return;
            };
            tally.lost -= unsure.lost;
            tally.count -= unsure.count;
            tally.packets.retain(|number| !unsure.packets.contains(number));
            self.tallies.retain(|tally| tally.kind != Kind::Unexplained || tally.count > 0);
            self.note(unsure.kind, unsure.begin, unsure.end, unsure.lost, &unsure.packets);
            if let Some(tally) = self.tallies.iter_mut().find(|tally| tally.kind == unsure.kind) {
                tally.count += unsure.count - 1;
            }
            if unsure.kind == Kind::RtoStall {
                self.stalls.push((unsure.begin, side));
            }
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

    /// Whether the capture was saved without the packets that only acknowledge: their identifications are no losses.
    fn lacks_acks(&self, sender: Side) -> bool {
        self.half(sender).counts.pure_acks == 0 && self.half(sender.other()).counts.data_segments > 0
    }

    /// The longest that a sender can have waited for the answers to so many copies of one segment: its timeout doubles with
    /// each (RFC 6298 section 5.5).
    pub(crate) fn longest_wait(&self, sender: Side, copies: u64) -> i64 {
        let timeouts = (1i64 << copies.min(MOST_DOUBLINGS)) - 1;
        self.half(sender).round_trip.timeout().saturating_mul(timeouts).saturating_mul(3) / 2
    }

    /// Whether what a sender did not send can be told from what was lost before it came here.
    pub(crate) fn is_sender_seen(&self, sender: Side) -> bool {
        self.reach(sender) == 0 || self.half(sender).identities.shows_none_missing()
    }
}
