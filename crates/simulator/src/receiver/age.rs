//! What timestamps tell a receiver: which segments are outdated (PAWS, RFC 7323 section 5; `tcp_validate_incoming`), and how
//! long a round trip is.

use framegauge_frames::Picoseconds;

use super::Receiver;
use crate::TcpSettings;
use crate::endpoint::stamp;
use crate::segment::Segment;

/// A timestamp may be older than the last by so much (`TCP_PAWS_WINDOW`).
const TOLERANCE: u32 = 1;
/// Between two answers to old acknowledgements (`tcp_invalid_ratelimit`).
const ANSWERS_APART: Picoseconds = Picoseconds::from_nanoseconds(500_000_000);

impl Receiver {
    /// The peer's timestamp that is echoed, if this is it (`tcp_replace_ts_recent`).
    pub(crate) fn note_stamp(&mut self, segment: &Segment) {
        if segment.sequence <= self.answered {
            self.stamp = self.stamp.max(segment.stamp);
        }
    }

    /// By how much a segment is older than what is echoed, if that is too much.
    pub(crate) fn excess_age(&self, segment: &Segment) -> Option<u32> {
        let age = self.stamp.saturating_sub(segment.stamp);
        (segment.stamp > 0 && age > TOLERANCE).then_some(age)
    }

    /// Whether all of a segment lies before what was last acknowledged (`tcp_sequence`): nothing in it counts, its
    /// timestamp and its acknowledgement as little as its data.
    pub(crate) fn is_old(&self, segment: &Segment) -> bool {
        segment.end() < self.answered
    }

    /// An outdated segment has come. Whether it is answered: not an acknowledgement from before the last data that came, which
    /// is no sign of anything.
    pub(crate) fn refuse(&mut self, now: Picoseconds, segment: &Segment, settings: &TcpSettings) -> bool {
        let is_common = segment.sequence == segment.end() && segment.sequence < self.next;
        !is_common && self.refuse_old(now, segment, settings)
    }

    /// An old segment has come. Whether it is answered (`tcp_send_dupack`, `tcp_oow_rate_limited`).
    pub(crate) fn refuse_old(&mut self, now: Picoseconds, segment: &Segment, settings: &TcpSettings) -> bool {
        let (begin, end) = (segment.sequence, segment.end());
        if begin == end {
            if self.refused_at.is_some_and(|last| now - last < ANSWERS_APART) {
                return false;
            }
            self.refused_at = Some(now);
        } else if begin < self.next {
            self.be_quick(settings);
            self.beyond.note_duplicate(begin, end.min(self.next));
        }
        true
    }

    /// `tcp_rcv_rtt_measure_ts`: of full segments, once for each timestamp that is echoed.
    pub(super) fn note_echo(&mut self, now: Picoseconds, segment: &Segment) {
        if segment.echo == 0 || std::mem::replace(&mut self.measured_by, segment.echo) == segment.echo {
            return;
        }
        if segment.bytes < self.peer_mss {
            return;
        }
        let sample = 1000 * u64::from(stamp(now).saturating_sub(segment.echo).max(1));
        if self.measured == 0 || sample << 3 < self.measured {
            self.measured = sample << 3;
        } else if self.unread() == 0 {
            self.measured = self.measured - (self.measured >> 3) + sample;
        }
    }
}
