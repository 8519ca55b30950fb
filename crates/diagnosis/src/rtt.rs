//! RTT and RTO of one direction, as its sender would estimate them (RFC 6298, with Linux' bounds).

/// Linux keeps the variance's part of an RTO at 200 ms or more (`TCP_RTO_MIN`).
const VARIANCE_PART_MINIMUM: i64 = 200_000_000;
/// RFC 6298 asks for at least 1 s before anything was measured.
const RTO_FIRST: i64 = 1_000_000_000;
const RTO_MAXIMUM: i64 = 120_000_000_000;

/// Times in nanoseconds, seen from the tap: from a segment to its acknowledgement.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RoundTrip {
    /// Smoothed.
    smoothed: i64,
    /// The smallest.
    minimum: Option<i64>,
    /// The newest.
    latest: i64,
    /// Samples taken.
    samples: u64,
    deviation: i64,
}

impl RoundTrip {
    /// Takes a sample of a segment that was sent once (Karn). Whether it is the smallest so far.
    pub(crate) fn sample(&mut self, nanoseconds: i64) -> bool {
        let sample = nanoseconds.max(0);
        let is_smallest = self.minimum.is_none_or(|least| sample < least);
        self.minimum = Some(self.minimum.map_or(sample, |least| least.min(sample)));
        if self.samples == 0 {
            self.smoothed = sample;
            self.deviation = sample / 2;
        } else {
            self.deviation += ((self.smoothed - sample).abs() - self.deviation) / 4;
            self.smoothed += (sample - self.smoothed) / 8;
        }
        self.samples += 1;
        is_smallest
    }

    /// Takes a sample that tells of queues; one that a delayed acknowledgement may have made tells of none that is longer
    /// than before. Whether it is the smallest so far.
    pub(crate) fn sample_queue(&mut self, nanoseconds: i64, may_be_delayed: bool) -> bool {
        if !may_be_delayed || nanoseconds <= self.latest {
            self.latest = nanoseconds;
        }
        self.sample(nanoseconds)
    }

    /// Smoothed.
    pub(crate) fn smoothed(&self) -> i64 {
        self.smoothed
    }

    /// The smallest.
    pub(crate) fn minimum(&self) -> Option<i64> {
        self.minimum
    }

    /// The newest that tells of queues.
    pub(crate) fn latest(&self) -> i64 {
        self.latest
    }

    /// Samples taken.
    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    /// When the sender gives up waiting, counted from its last segment.
    pub(crate) fn timeout(&self) -> i64 {
        if self.samples == 0 {
            return RTO_FIRST;
        }
        let variance = self.deviation.saturating_mul(4).max(VARIANCE_PART_MINIMUM);
        self.smoothed.saturating_add(variance).min(RTO_MAXIMUM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_path_has_the_least_timeout_of_linux() {
        let mut path = RoundTrip::default();
        assert_eq!(path.timeout(), RTO_FIRST);
        for _ in 0..100 {
            path.sample(10_000_000);
        }
        assert_eq!(
            (path.smoothed, path.minimum, path.timeout()),
            (10_000_000, Some(10_000_000), 210_000_000)
        );
    }

    #[test]
    fn the_first_sample_counts_half_as_deviation() {
        let mut path = RoundTrip::default();
        path.sample(300_000_000);
        assert_eq!(path.timeout(), 900_000_000);
    }
}
