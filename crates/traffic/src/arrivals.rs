//! When requests become due in an open loop: even spacing, or exponential gaps from a seed.

use framegauge_frames::SplitMix;

/// The gaps between requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// All alike; the first request is due at once.
    Uniform,
    /// Exponential (a Poisson process), drawn from this seed.
    Poisson {
        /// The same seed gives the same times.
        seed: u64,
    },
}

/// Due times in nanoseconds since the start, one after another, for ever.
///
/// Times are kept as a count of gaps (uniform) or as a sum in nanoseconds (Poisson); a double holds both
/// exactly enough: its step is below a nanosecond for the first hundred days.
#[derive(Debug, Clone)]
pub struct Schedule {
    gap_nanoseconds: f64,
    draws: Option<SplitMix>,
    count: u64,
    next: f64,
}

impl Schedule {
    /// A schedule of `rate_per_second` (above 0) requests per second on average.
    pub fn new(rate_per_second: f64, arrivals: Arrivals) -> Self {
        let draws = match arrivals {
            Arrivals::Uniform => None,
            Arrivals::Poisson { seed } => Some(SplitMix::new(seed)),
        };
        let mut schedule = Self { gap_nanoseconds: 1e9 / rate_per_second, draws, count: 0, next: 0.0 };
        if let Some(draws) = &mut schedule.draws {
            schedule.next = draws.exponential() * schedule.gap_nanoseconds;
        }
        schedule
    }

    /// When the next request is due.
    pub fn due(&self) -> u64 {
        self.next as u64
    }

    /// Goes on to the request after it.
    pub fn advance(&mut self) {
        self.count += 1;
        match &mut self.draws {
            None => self.next = self.count as f64 * self.gap_nanoseconds,
            Some(draws) => self.next += draws.exponential() * self.gap_nanoseconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(rate: f64, arrivals: Arrivals, count: usize) -> Vec<u64> {
        let mut schedule = Schedule::new(rate, arrivals);
        let next = || {
            let due = schedule.due();
            schedule.advance();
            due
        };
        std::iter::repeat_with(next).take(count).collect()
    }

    #[test]
    fn even_spacing_is_exact() {
        assert_eq!(times(1000.0, Arrivals::Uniform, 4), [0, 1_000_000, 2_000_000, 3_000_000]);
        assert_eq!(times(3.0, Arrivals::Uniform, 3_000_001)[3_000_000], 1_000_000_000_000_000);
    }

    #[test]
    fn exponential_gaps_have_their_mean_and_their_spread() {
        let times = times(1000.0, Arrivals::Poisson { seed: 7 }, 200_001);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 * 1e-6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let above = gaps.iter().filter(|gap| **gap > 3.0).count() as f64 / gaps.len() as f64;
        // Mean and deviation are 1 (standard errors .0022 and .0045), P(gap > 3) = e^-3 (.0005).
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.04, "{variance}");
        assert!((above - (-3.0f64).exp()).abs() < 0.0025, "{above}");
    }

    proptest! {
        #[test]
        fn a_seed_is_a_schedule(seed: u64, rate in 0.001f64..1e6) {
            let first = times(rate, Arrivals::Poisson { seed }, 100);
            prop_assert!(first.windows(2).all(|pair| pair[0] <= pair[1]));
            prop_assert_eq!(&first, &times(rate, Arrivals::Poisson { seed }, 100));
            prop_assert_ne!(first, times(rate, Arrivals::Poisson { seed: seed ^ 1 }, 100));
        }

        #[test]
        fn the_rate_is_kept(rate in 1f64..1e5) {
            let times = times(rate, Arrivals::Uniform, 10_000);
            let within = times.iter().filter(|due| **due < 1_000_000_000).count() as f64;
            prop_assert!((within - rate.min(10_000.0)).abs() <= 1.0, "{within} at {rate}");
        }
    }
}
