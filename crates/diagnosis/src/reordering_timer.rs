//! RACK's reordering timer (RFC 8985 section 6.2): a loss that fewer than three segments have revealed is repaired only when
//! none of them can have overtaken what is missing.
//!
//! ```text
//!   data  data  [lost]  data ............... SACK of one ──── RTT/4, and the timer's grain ────▶ [lost] again
//! ```
//!
//! That is no retransmission timeout, which is at least 200 ms after the RTT, and no loss of an acknowledgement. Linux before
//! RACK waited as long (early retransmit, RFC 5827, delayed). What a retransmission timer has taken for lost waits for nothing.

use crate::Thresholds;
use crate::connection::{Connection, Side};
use crate::gap::Gap;
use framegauge_packets::capture::Segment;

/// The part of a smoothed RTT that the timer waits.
const PART: i64 = 4;
/// Two ticks at least of a clock of 100 Hz, and the one that goes on.
const GRAIN_NANOSECONDS: i64 = 30_000_000;
/// A sender that waits for nothing repeats sooner than this part of an RTT, and than hosts take to answer.
const LEAST_PART: i64 = 8;
const ANSWERING_NANOSECONDS: i64 = 500_000;

impl Connection {
    /// Whether a gap that is no pause was a wait for this timer, as it is where the RTT is long.
    #[inline]
    pub(crate) fn is_short_reordering_wait(&self, gap: &Gap) -> bool {
        let flight = self.half(gap.from).way.flight();
        gap.segment.payload_bytes > 0
            && flight.sacked_bytes() > 0
            && gap.length > (self.path_rtt() / LEAST_PART).max(ANSWERING_NANOSECONDS)
            && self.is_by_reordering_timer(gap.segment, gap.from, gap.length, gap.limits)
    }

    /// Whether a resend after a gap is the work of this timer. Before it is taken in.
    pub(crate) fn is_by_reordering_timer(
        &self,
        segment: &Segment,
        from: Side,
        gap: i64,
        limits: &Thresholds,
    ) -> bool {
        let half = self.half(from);
        let Some(oldest) = half.way.flight().front() else { return false };
        let is_oldest = half.way.near(segment.seq) == oldest.begin
            && oldest.times == 1
            && !half.silences.is_repaired_by_timer(oldest.begin);
        let few = u64::from(limits.duplicate_acks) * u64::from(self.mss(from));
        let sacked = half.way.flight().sacked_bytes();
        let is_revealed_by_few = sacked > 0
            && sacked < few
            && half.way.flight().sacked_pieces() < limits.duplicate_acks as usize
            && half.duplicate_acks() < limits.duplicate_acks;
        let most = half.round_trip.smoothed() / PART + GRAIN_NANOSECONDS;
        is_oldest && is_revealed_by_few && gap <= most && gap < half.round_trip.timeout() / 2
    }
}
