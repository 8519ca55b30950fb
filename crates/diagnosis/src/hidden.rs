//! SACK that a capture's length has cut off.
//!
//! ```text
//!   header  20  timestamps 12 |                       what other segments of this end have
//!   header  20  timestamps 12 | SACK, at least 10     what its header's length says of this one
//!                             ▲ the capture ends here
//! ```
//!
//! Once a connection is open an end has the same options in each segment, but for SACK (RFC 2018) and those of Multipath TCP
//! (RFC 8684). So one that has so many bytes more acknowledges data above a hole, whatever it says of its window: receivers
//! go on to raise that while they lack something.

use framegauge_packets::capture::Segment;

/// Kind, length, and one block (RFC 2018 section 3).
const LEAST_SACK_BYTES: u8 = 10;

/// The shortest options of one end's acknowledgements, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hidden(u8);

impl Default for Hidden {
    /// None was seen: any is shorter.
    fn default() -> Hidden {
        Hidden(u8::MAX)
    }
}

impl Hidden {
    /// Takes an acknowledgement that is no SYN.
    #[inline]
    pub(crate) fn take(&mut self, segment: &Segment) {
        self.0 = self.0.min(segment.option_bytes);
    }

    /// Whether SACK was cut off an acknowledgement.
    pub(crate) fn has_sack(self, segment: &Segment) -> bool {
        segment.options_are_cut && segment.option_bytes >= self.0.saturating_add(LEAST_SACK_BYTES)
    }
}
