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
        let ack = half.way.near(segment.ack);
        let shift = self
            .half(sender.other())
            .opening
            .options()
            .and_then(|syn| syn.window_scale)
            .unwrap_or(MOST_SHIFT);
        let own_edge = ack + (u64::from(segment.window) << shift.min(MOST_SHIFT));
        let edge = match self.farthest_edge(sender) {
            0 => half.way.high() + LARGEST_WINDOW,
            edge => edge.max(half.way.high()).max(own_edge),
        };
        let first = half
            .opening
            .options()
            .map_or(half.way.una().saturating_sub(LARGEST_WINDOW), |_| half.opening.place() + 1);
        // What may have been sent and taken in: behind the SYN, and not beyond the window where that was farthest, or is now.
        let may_be_sent = |begin: u64, end: u64| begin < end && begin >= first && end <= edge;
        let mut possible = SackBlocks::default();
        for (begin, end) in segment.sack.as_slice() {
            if may_be_sent(half.way.near(*begin), half.way.near(*end)) {
                possible.blocks[usize::from(possible.count)] = (*begin, *end);
                possible.count += 1;
            }
        }
        // An acknowledgement of another connection is odd as a whole.
        let is_own = (half.way.una()..=half.way.high()).contains(&ack);
        if possible.count < segment.sack.count && is_own {
            self.note(Kind::ForeignSack, now, now, 0, &[segment.number]);
        }
        possible
    }
}
