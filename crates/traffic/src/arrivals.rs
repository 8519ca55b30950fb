//! When requests become due in an open loop: even spacing, or exponential gaps from a seed.

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
    /// A schedule of `rate_per_second` (above 0) requests a second on average.
    pub fn new(rate_per_second: f64, arrivals: Arrivals) -> Self {
        let draws = match arrivals {
            Arrivals::Uniform => None,
            Arrivals::Poisson { seed } => Some(SplitMix(seed)),
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

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014; constants
/// as in Vigna's <https://prng.di.unimi.it/splitmix64.c>). Ten lines that are specified to the bit keep a seed's
/// schedule the same whatever becomes of a crate's generators, and this needs no more than even draws.
#[derive(Debug, Clone)]
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// An exponential draw with mean 1, by inversion; never infinite, since the even draw is below 1.
    fn exponential(&mut self) -> f64 {
        let even = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        -(-even).ln_1p()
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
    fn the_generator_is_the_published_one() {
        let mut draws = SplitMix(1_234_567);
        let found = [draws.next(), draws.next(), draws.next()];
        assert_eq!(found, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
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
