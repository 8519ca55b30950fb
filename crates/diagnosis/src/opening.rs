//! The SYNs of one end of a connection, and what they leave of its options beside those of the other end. Only what is here
//! writes it.

use framegauge_packets::capture::Segment;
use framegauge_packets::{SynOptions, TcpFlags};

/// Bytes of options that each segment of an end with timestamps has (RFC 7323 appendix A).
const TIMESTAMPS_BYTES: u32 = 12;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Opening {
    options: Option<SynOptions>,
    place: u64,
    count: u32,
    answers: u32,
    mss: Option<u32>,
    window_shift: Option<u8>,
}

/// What it is.
impl Opening {
    /// The options of its first SYN; `None` if that is not there, or was cut.
    #[inline]
    pub(crate) fn options(&self) -> Option<SynOptions> {
        self.options
    }

    /// The place of the SYN.
    pub(crate) fn place(&self) -> u64 {
        self.place
    }

    /// How many SYNs there were.
    #[inline]
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// How many of them acknowledge one of the other end.
    pub(crate) fn answers(&self) -> u32 {
        self.answers
    }

    /// The payload that fits a segment, by the SYNs of both ends.
    #[inline]
    pub(crate) fn mss(&self) -> Option<u32> {
        self.mss
    }

    /// How far its windows are scaled; `None`: without both SYNs nobody knows.
    #[inline]
    pub(crate) fn window_shift(&self) -> Option<u8> {
        self.window_shift
    }
}

/// What happens.
impl Opening {
    /// Its SYN came, at this place. Whether that is the first.
    pub(crate) fn take(&mut self, segment: &Segment, place: u64) -> bool {
        self.count += 1;
        self.answers += u32::from(segment.flags.contains(TcpFlags::ACK));
        if self.count > 1 {
            return false;
        }
        // An option that was cut off is not missing: nothing is known then.
        self.options = segment.syn.filter(|_| !segment.options_are_cut);
        self.place = place;
        true
    }

    /// A SYN of either end came. `other`: the options of the other end.
    pub(crate) fn agree(&mut self, other: Option<SynOptions>) {
        let (Some(own), Some(their)) = (self.options, other) else { return };
        if let (Some(mss), Some(least)) = (own.mss, their.mss) {
            let options = if own.timestamps && their.timestamps { TIMESTAMPS_BYTES } else { 0 };
            self.mss = Some(u32::from(mss.min(least)).saturating_sub(options).max(1));
        }
        self.window_shift = Some(own.window_scale.filter(|_| their.window_scale.is_some()).unwrap_or(0));
    }
}
