//! SACK blocks of data that its sender cannot have sent: something on the way rewrites sequence numbers, and forgets those in
//! SACK blocks.
//!
//! ```text
//!   first number        acknowledged                    window's edge
//!        ├───────────────────┼──────────────────────────────┤
//!   ✗         D-SACK               SACK of what is under way      ✗
//! ```
//!
//! Outside of this nothing can have arrived. Senders ignore such blocks (RFC 2018 section 8), so losses are repaired as
//! if there was no SACK. What the capture only lacks lies within.

use crate::connection::{Connection, Side};
use crate::half::Half;
use crate::kinds::Kind;
use framegauge_packets::capture::{SackBlocks, Segment};

/// The most that a window may be scaled by, and so the largest window (RFC 7323 section 2.3).
const MOST_SHIFT: u8 = 14;
const LARGEST_WINDOW: u64 = 1 << 30;

impl Connection {
    /// The SACK blocks of an acknowledgement that can be meant; others are told of.
    pub(crate) fn possible_blocks(&mut self, segment: &Segment, sender: Side, now: i64) -> SackBlocks {
        // Subflows share a window (RFC 8684 section 3.3.1).
        if self.multipath {
            return segment.sack;
        }
        let half = self.half(sender);
        let ack = half.places.near(segment.ack);
        let shift = self.half(sender.other()).syn.and_then(|syn| syn.window_scale).unwrap_or(MOST_SHIFT);
        let own_edge = ack + (u64::from(segment.window) << shift.min(MOST_SHIFT));
        let mut possible = SackBlocks::default();
        for (begin, end) in segment.sack.as_slice() {
            if half.may_have_sent(half.places.near(*begin), half.places.near(*end), own_edge) {
                possible.blocks[usize::from(possible.count)] = (*begin, *end);
                possible.count += 1;
            }
        }
        // An acknowledgement of another connection is odd as a whole.
        let is_own = (half.una..=half.high).contains(&ack);
        if possible.count < segment.sack.count && is_own {
            self.note(Kind::ForeignSack, now, now, 0, &[segment.number]);
        }
        possible
    }
}

impl Half {
    /// Whether a range may have been sent and taken in: behind the SYN, and not beyond the window where that was farthest, or
    /// is now.
    fn may_have_sent(&self, begin: u64, end: u64, own_edge: u64) -> bool {
        let first = match self.syn {
            Some(_) => self.syn_place + 1,
            None => self.una.saturating_sub(LARGEST_WINDOW),
        };
        let edge = match self.farthest_edge() {
            0 => self.high + LARGEST_WINDOW,
            edge => edge.max(self.high).max(own_edge),
        };
        begin < end && begin >= first && end <= edge
    }
}
