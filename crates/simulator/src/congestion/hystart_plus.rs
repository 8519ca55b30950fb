//! HyStart++ (RFC 9406): slow start ends after five round trips of a slower growth, unless the delay falls again meanwhile.

use framegauge_frames::Picoseconds;

use super::Acked;

const fn milliseconds(count: u64) -> Picoseconds {
    Picoseconds::from_nanoseconds(count * 1_000_000)
}

// The constants that RFC 9406 section 4.3 recommends.
const LEAST_THRESHOLD: Picoseconds = milliseconds(4);
const MOST_THRESHOLD: Picoseconds = milliseconds(16);
const DIVISOR: u64 = 8;
const SAMPLES: u32 = 8;
const GROWTH_DIVISOR: u32 = 4;
const CONSERVATIVE_ROUNDS: u32 = 5;
/// L of a sender that does not pace: the most segments of one acknowledgement that make cwnd grow.
const MOST_SEGMENTS: u32 = 8;

/// The state in initial slow start.
#[derive(Debug, Clone, Default)]
pub(crate) struct HystartPlus {
    /// The round ends when this is acknowledged.
    round_end: u64,
    samples: u32,
    /// The least RTT of this round, and of the one before; none: no sample.
    least: Option<Picoseconds>,
    least_before: Option<Picoseconds>,
    /// Conservative slow start: the least RTT when it began, and how many of its rounds have begun.
    conservative: Option<(Picoseconds, u32)>,
    /// Segments that have not made cwnd grow yet.
    left: u32,
    /// The sender paces itself: L is infinite.
    is_paced: bool,
}

impl HystartPlus {
    /// An acknowledgement in slow start. Whether slow start ends.
    pub(super) fn note(&mut self, acked: &Acked) -> bool {
        self.is_paced = acked.is_paced;
        if acked.unacknowledged >= self.round_end && self.begin_round(acked.next) {
            return true;
        }
        if let Some(rtt) = acked.rtt {
            self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
            self.samples += 1;
            self.judge();
        }
        false
    }

    /// Whether the last round of conservative slow start is over.
    fn begin_round(&mut self, next: u64) -> bool {
        self.round_end = next;
        self.samples = 0;
        self.least_before = self.least.take();
        let Some((_, rounds)) = &mut self.conservative else { return false };
        *rounds += 1;
        *rounds > CONSERVATIVE_ROUNDS
    }

    fn judge(&mut self) {
        let (Some(least), true) = (self.least, self.samples >= SAMPLES) else { return };
        match (self.conservative, self.least_before) {
            // The delay has fallen again: it was a burst, and no queue that stays.
            (Some((baseline, _)), _) if least < baseline => self.conservative = None,
            (None, Some(before)) => {
                let threshold = (before.get() / DIVISOR).min(MOST_THRESHOLD.get()).max(LEAST_THRESHOLD.get());
                // The rest of this round counts as the first.
                self.conservative = (least >= before + Picoseconds::new(threshold)).then_some((least, 1));
            }
            _ => {}
        }
    }

    /// So many of the acknowledged segments make cwnd grow.
    pub(super) fn growth(&mut self, acked: u32) -> u32 {
        let acked = if self.is_paced { acked } else { acked.min(MOST_SEGMENTS) };
        if self.conservative.is_none() {
            return acked;
        }
        self.left += acked;
        let more = self.left / GROWTH_DIVISOR;
        self.left %= GROWTH_DIVISOR;
        more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of 16 segments, each acknowledged by itself; by how much cwnd grows in each, and whether slow start ended.
    fn rounds(delays: &[u64]) -> (Vec<u32>, bool) {
        let mut plus = HystartPlus::default();
        let mut grown = Vec::new();
        for (round, delay) in delays.iter().enumerate() {
            let mut more = 0;
            for segment in 1..=16u64 {
                let unacknowledged = 16 * round as u64 + segment;
                let acked = Acked {
                    now: Picoseconds::ZERO,
                    rtt: Some(milliseconds(*delay)),
                    unacknowledged,
                    next: unacknowledged + 16,
                    delivered: 0,
                    delivered_marked: 0,
                    burst: Picoseconds::ZERO,
                    is_paced: false,
                };
                if plus.note(&acked) {
                    return (grown, true);
                }
                more += plus.growth(1);
            }
            grown.push(more);
        }
        (grown, false)
    }

    #[test]
    fn a_delay_that_has_grown_by_an_eighth_makes_growth_a_quarter_for_five_rounds() {
        // 40 ms and 5 ms more: an eighth. The round in which that is seen counts as the first of the five.
        let (grown, ended) = rounds(&[40, 40, 45, 46, 47, 48, 49, 50, 51]);
        assert_eq!(grown[..2], [16, 16]);
        // Seven segments before the eighth sample count whole.
        assert_eq!(grown[2], 7 + 2);
        assert_eq!((&grown[3..], ended), ([4; 4].as_slice(), true));
        let shorter = rounds(&[40, 40, 44, 44, 44]);
        assert_eq!(shorter, (vec![16; 5], false));
        // 4 ms at least.
        assert_eq!(rounds(&[8, 8, 11, 11]), (vec![16; 4], false));
    }

    #[test]
    fn a_delay_that_falls_again_makes_slow_start_go_on() {
        let (grown, ended) = rounds(&[40, 40, 45, 41, 41]);
        assert_eq!((&grown[3..], ended), ([2 + 9, 16].as_slice(), false));
    }

    #[test]
    fn one_acknowledgement_counts_for_eight_segments_at_most() {
        assert_eq!(HystartPlus::default().growth(20), 8);
        assert_eq!(HystartPlus { is_paced: true, ..HystartPlus::default() }.growth(20), 20);
    }
}
