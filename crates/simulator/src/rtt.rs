//! Round-trip times and the retransmission timeout: RFC 6298 with Linux' bounds (`tcp_rtt_estimator`).

use framegauge_frames::Picoseconds;

const LONGEST_RTO_MICROSECONDS: u64 = 120_000_000;

/// The estimate of one connection, in microseconds as in the kernel.
#[derive(Debug, Clone)]
pub(crate) struct Rtt {
    /// Eight times the smoothed RTT; 0 without a sample.
    smoothed: i64,
    /// Four times the mean deviation.
    deviation: i64,
    /// Its maximum of this round trip, at least the smallest RTO.
    deviation_maximum: i64,
    variation: i64,
    /// The round trip ends when this is acknowledged.
    round_end: u64,
    minimum_rto: i64,
    initial_rto: u64,
    /// The smallest sample of the last five minutes; of all, here.
    pub(crate) minimum: Option<Picoseconds>,
    backoff: u32,
}

impl Rtt {
    pub(crate) fn new(minimum_rto: Picoseconds, initial_rto: Picoseconds) -> Rtt {
        Rtt {
            smoothed: 0,
            deviation: 0,
            deviation_maximum: 0,
            variation: 0,
            round_end: 0,
            minimum_rto: (minimum_rto.as_nanoseconds() / 1000) as i64,
            initial_rto: initial_rto.as_nanoseconds() / 1000,
            minimum: None,
            backoff: 0,
        }
    }

    /// Takes a sample. `unacknowledged` and `next` are the sender's sequence numbers.
    pub(crate) fn sample(&mut self, rtt: Picoseconds, unacknowledged: u64, next: u64) {
        self.backoff = 0;
        let mut error = (rtt.as_nanoseconds() / 1000).max(1) as i64;
        if self.smoothed == 0 {
            self.smoothed = error << 3;
            self.deviation = error << 1;
            self.variation = self.deviation.max(self.minimum_rto);
            self.deviation_maximum = self.variation;
            self.round_end = next;
            return;
        }
        error -= self.smoothed >> 3;
        self.smoothed = (self.smoothed + error).max(1);
        if error < 0 {
            error = -error - (self.deviation >> 2);
            // A falling RTT is no reason to wait longer.
            if error > 0 {
                error >>= 3;
            }
        } else {
            error -= self.deviation >> 2;
        }
        self.deviation += error;
        if self.deviation > self.deviation_maximum {
            self.deviation_maximum = self.deviation;
            self.variation = self.variation.max(self.deviation_maximum);
        }
        if unacknowledged > self.round_end {
            if self.deviation_maximum < self.variation {
                self.variation -= (self.variation - self.deviation_maximum) >> 2;
            }
            self.round_end = next;
            self.deviation_maximum = self.minimum_rto;
        }
    }

    /// The RTT of what was sent last of all that is acknowledged now (`tcp_update_rtt_min`).
    pub(crate) fn note_least(&mut self, rtt: Option<Picoseconds>) {
        self.minimum = self.minimum.into_iter().chain(rtt).min();
    }

    /// The smoothed RTT, if there is a sample.
    pub(crate) fn smoothed(&self) -> Option<Picoseconds> {
        (self.smoothed > 0).then(|| Picoseconds::from_nanoseconds((self.smoothed as u64 >> 3).max(1) * 1000))
    }

    /// The retransmission timeout, doubled with every one since the last sample.
    pub(crate) fn timeout(&self) -> Picoseconds {
        let plain = match self.smoothed {
            0 => self.initial_rto,
            smoothed => (smoothed as u64 >> 3) + self.variation as u64,
        };
        let longer = plain.saturating_mul(1 << self.backoff.min(30)).min(LONGEST_RTO_MICROSECONDS);
        Picoseconds::from_nanoseconds(longer * 1000)
    }

    /// After a timeout.
    pub(crate) fn back_off(&mut self) {
        self.backoff += 1;
    }

    pub(crate) fn forget_backoff(&mut self) {
        self.backoff = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two segments that are acknowledged together, the second was sent 2 ms later.
    #[test]
    fn the_least_rtt_is_of_what_was_sent_last() {
        let milliseconds = |count: u64| Picoseconds::from_nanoseconds(count * 1_000_000);
        let mut rtt = Rtt::new(milliseconds(200), milliseconds(1000));
        rtt.sample(milliseconds(12), 1, 2);
        rtt.note_least(Some(milliseconds(10)));
        assert_eq!((rtt.smoothed(), rtt.minimum), (Some(milliseconds(12)), Some(milliseconds(10))));
    }

    #[test]
    fn a_steady_rtt_gives_itself_and_the_smallest_timeout_beside_it() {
        let milliseconds = |count: u64| Picoseconds::from_nanoseconds(count * 1_000_000);
        let mut rtt = Rtt::new(milliseconds(200), milliseconds(1000));
        assert_eq!(rtt.timeout(), milliseconds(1000));
        (0..50).for_each(|round| rtt.sample(milliseconds(10), round * 10 + 11, round * 10 + 20));
        assert_eq!((rtt.smoothed(), rtt.timeout()), (Some(milliseconds(10)), milliseconds(210)));
        rtt.back_off();
        assert_eq!(rtt.timeout(), milliseconds(420));
    }
}
