//! Line rates.

use thiserror::Error;

use crate::Picoseconds;

const BITS_PER_BYTE: u64 = 8;
const PICOSECONDS_PER_SECOND: u64 = 1_000_000_000_000;
/// Up to here bytes × 8 × 10¹² fits into 64 bits, where a division costs a tenth of the 128-bit one.
const FAST_BYTES: u64 = u64::MAX / (BITS_PER_BYTE * PICOSECONDS_PER_SECOND) - 1;

/// A rate of zero was given: nothing would ever be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a bit rate of 0 b/s was given: at least 1 is needed")]
pub struct BitRateError;

/// Bits per second, decimal, never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(u64);

impl BitRate {
    /// A rate of at least one bit a second.
    pub const fn new(bits_per_second: u64) -> Result<BitRate, BitRateError> {
        if bits_per_second == 0 {
            return Err(BitRateError);
        }
        Ok(BitRate(bits_per_second))
    }

    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// How long that many bytes need, rounded up to a picosecond so that output never exceeds the line rate;
    /// at most [`Picoseconds::MAX`].
    pub fn serialisation(self, bytes: u64) -> Picoseconds {
        if bytes <= FAST_BYTES {
            let scaled = bytes * (BITS_PER_BYTE * PICOSECONDS_PER_SECOND);
            return Picoseconds::new(scaled.div_ceil(self.0));
        }
        let scaled = u128::from(bytes) * u128::from(BITS_PER_BYTE * PICOSECONDS_PER_SECOND);
        let picoseconds = scaled.div_ceil(u128::from(self.0));
        Picoseconds::new(u64::try_from(picoseconds).unwrap_or(u64::MAX))
    }

    /// How many whole bytes that time lets through, a byte that is only begun counted as one.
    pub fn bytes_within(self, time: Picoseconds) -> u64 {
        let bits = u128::from(time.get()) * u128::from(self.0);
        let bytes = bits.div_ceil(u128::from(BITS_PER_BYTE * PICOSECONDS_PER_SECOND));
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}
