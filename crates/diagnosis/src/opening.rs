//! The SYNs of one end of a connection, and what they leave of its options beside those of the other end. Only what is here
//! writes it.

use framegauge_packets::capture::Segment;
use framegauge_packets::{SynOptions, TcpFlags};

/// Bytes of options that each segment of an end with timestamps has (RFC 7323 appendix A).
const TIMESTAMPS_BYTES: u32 = 12;
/// An acknowledgement may be delayed by so much (RFC 1122 section 4.2.3.2), in nanoseconds.
const MOST_DELAYED: i64 = 500_000_000;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Opening {
    options: Option<SynOptions>,
    place: u64,
    count: u32,
    answers: u32,
    mss: Option<u32>,
    window_shift: Option<u8>,
    /// When the first and the newest came, in nanoseconds.
    first: i64,
    newest: i64,
    /// The timestamps of the first: its own, and that which it echoes.
    stamps: Option<(u32, u32)>,
    newest_stamp: Option<u32>,
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

    /// Whether the answer of the other end is to the first of several SYNs that had all left by then. A way there and back takes
    /// `rtt`, less if all that was seen of it was delayed on purpose, as by an echo of the first it need not be. The echo alone
    /// does not tell: it also comes where the first answer was lost.
    pub(crate) fn is_answered_late(&self, answer: &Opening, rtt: i64) -> bool {
        let (echo, own) = (answer.stamps.map(|(_, echo)| echo), self.stamps.map(|(value, _)| value));
        let has_echo = echo.is_some() && own != self.newest_stamp;
        let is_to_newest = has_echo && echo == self.newest_stamp;
        let most_delayed = if has_echo && echo == own { 0 } else { MOST_DELAYED };
        let (since_first, since_newest) = (answer.first - self.first, answer.first - self.newest);
        self.count > 1
            && answer.answers > 0
            && since_newest > 0
            && !is_to_newest
            && rtt > since_newest + most_delayed
            && rtt > since_first / 2
    }

    /// The timestamps of the first: its own, and that which it echoes.
    pub(crate) fn stamps(&self) -> Option<(u32, u32)> {
        self.stamps
    }

    /// When the first came, in nanoseconds.
    pub(crate) fn first(&self) -> i64 {
        self.first
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
        self.newest = segment.nanoseconds;
        self.newest_stamp = segment.timestamps.map(|(value, _)| value);
        if self.count > 1 {
            return false;
        }
        (self.first, self.stamps) = (segment.nanoseconds, segment.timestamps);
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
