//! What may have been lost between a sender and the tap, where only the identifications of its packets tell.

use crate::cause::Gap;
use crate::connection::{Connection, Side};
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

    /// Whether the capture was saved without the packets that only acknowledge: their identifications are no losses.
    pub(crate) fn lacks_acks(&self, sender: Side) -> bool {
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
        let is_beside = self.knows_vantage() && self.reach(sender) == 0;
        is_beside || self.half(sender).identities.shows_none_missing()
    }
}
