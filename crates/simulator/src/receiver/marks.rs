//! Marks of congestion, and how the peer is told of them.

use super::Receiver;
use crate::segment::{Flags, Segment};

impl Receiver {
    /// Whether a segment's mark differs from the last one's where each is told: then the last must be answered first.
    pub(crate) fn changes_mark(&self, segment: &Segment) -> bool {
        self.tells_marks_exactly && segment.bytes > 0 && segment.is_marked != self.echoes_mark
    }

    /// ECN (RFC 3168; RFC 8257 section 3.2 where marks are told exactly).
    pub(crate) fn note_mark(&mut self, segment: &Segment) {
        if self.tells_marks_exactly {
            if segment.bytes > 0 {
                self.is_urgent |= self.echoes_mark != segment.is_marked && self.is_pending;
                self.echoes_mark = segment.is_marked;
            }
            return;
        }
        if segment.flags.has(Flags::CWR) {
            self.echoes_mark = false;
        }
        if segment.is_marked {
            self.is_urgent |= !self.echoes_mark;
            self.echoes_mark = true;
        }
    }
}
