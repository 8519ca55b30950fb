//! Draws from a seed.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014; constants
/// as in Vigna's <https://prng.di.unimi.it/splitmix64.c>). Ten lines that are specified to the bit keep what a
/// seed gives the same whatever becomes of a crate's generators, and nothing here needs more than even draws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitMix(u64);

impl SplitMix {
    /// The same seed gives the same draws.
    pub const fn new(seed: u64) -> SplitMix {
        SplitMix(seed)
    }

    /// 64 even bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// An even draw from 0, which it may be, to 1, which it never is.
    pub fn even(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// An exponential draw with mean 1, by inversion; never infinite, since the even draw is below 1.
    pub fn exponential(&mut self) -> f64 {
        -(-self.even()).ln_1p()
    }
}

/// SplitMix64's finaliser, a permutation of all 64-bit numbers: a hash of flows that are hashes already.
pub const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Even over 0 to `count` - 1, from 64 even bits: the high bits of a product, without a division.
pub const fn below(bits: u64, count: u64) -> u64 {
    ((bits as u128 * count as u128) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        let mut draws = SplitMix::new(1_234_567);
        let numbers = [draws.bits(), draws.bits(), draws.bits()];
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn draws_have_their_means() {
        let mut draws = SplitMix::new(7);
        let even = (0..100_000).map(|_| draws.even()).sum::<f64>() / 1e5;
        let exponential = (0..100_000).map(|_| draws.exponential()).sum::<f64>() / 1e5;
        // Standard errors are 0.0009 and 0.0032.
        assert!((even - 0.5).abs() < 0.004 && (exponential - 1.0).abs() < 0.013, "{even} {exponential}");
    }
}
