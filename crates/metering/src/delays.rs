//! A histogram of how late something was, or how long it waited.

/// Values below this many nanoseconds have a bucket each.
const EXACT: u64 = 256;
/// Buckets an octave above [`EXACT`]: each is at most 1/128 of its values wide.
const PER_OCTAVE: usize = 128;
/// log2 of [`PER_OCTAVE`].
const OCTAVE_BITS: u32 = 7;
/// Octaves from 2⁸ to 2⁶⁴.
const OCTAVES: usize = 56;
const BUCKETS: usize = EXACT as usize + OCTAVES * PER_OCTAVE;

const SECONDS_PER_NANOSECOND: f64 = 1e-9;

/// Delays in nanoseconds, counted in log-linear buckets: every quantile is right to 0.8 %, whatever its size,
/// in 59 kB of memory that never grow (the layout of HdrHistogram).
#[derive(Clone, PartialEq, Eq)]
pub struct Delays {
    buckets: Box<[u64; BUCKETS]>,
    count: u64,
    sum_nanoseconds: u64,
    max_nanoseconds: u64,
}

impl std::fmt::Debug for Delays {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Delays")
            .field("count", &self.count)
            .field("p50_seconds", &self.quantile(0.5))
            .field("p99_seconds", &self.quantile(0.99))
            .field("max_seconds", &self.max_seconds())
            .finish()
    }
}

impl Default for Delays {
    fn default() -> Delays {
        Delays::new()
    }
}

impl Delays {
    /// An empty histogram.
    pub fn new() -> Delays {
        Delays { buckets: Box::new([0; BUCKETS]), count: 0, sum_nanoseconds: 0, max_nanoseconds: 0 }
    }

    /// Counts one delay.
    pub fn record(&mut self, nanoseconds: u64) {
        self.buckets[bucket(nanoseconds)] += 1;
        self.count += 1;
        self.sum_nanoseconds = self.sum_nanoseconds.saturating_add(nanoseconds);
        self.max_nanoseconds = self.max_nanoseconds.max(nanoseconds);
    }

    /// How many delays were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean delay in seconds, exact; 0 if nothing was counted.
    pub fn mean_seconds(&self) -> f64 {
        self.sum_nanoseconds as f64 / self.count.max(1) as f64 * SECONDS_PER_NANOSECOND
    }

    /// The delay that a share `q` (0 to 1) of all delays does not exceed, in seconds: the upper bound of its
    /// bucket, at most 0.8 % too high, never above the maximum. 0 if nothing was counted.
    pub fn quantile(&self, q: f64) -> f64 {
        let rank = (q.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let mut sum = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            sum += count;
            if sum >= rank {
                return upper_bound(index).min(self.max_nanoseconds) as f64 * SECONDS_PER_NANOSECOND;
            }
        }
        self.max_seconds()
    }

    /// The longest delay, exact, in nanoseconds; 0 if nothing was counted.
    pub fn max_nanoseconds(&self) -> u64 {
        self.max_nanoseconds
    }

    /// The longest delay, exact, in seconds; 0 if nothing was counted.
    pub fn max_seconds(&self) -> f64 {
        self.max_nanoseconds as f64 * SECONDS_PER_NANOSECOND
    }

    /// Adds everything that another histogram has counted.
    pub fn merge(&mut self, other: &Delays) {
        for (count, added) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            *count += added;
        }
        self.count += other.count;
        self.sum_nanoseconds = self.sum_nanoseconds.saturating_add(other.sum_nanoseconds);
        self.max_nanoseconds = self.max_nanoseconds.max(other.max_nanoseconds);
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.buckets.fill(0);
        self.count = 0;
        self.sum_nanoseconds = 0;
        self.max_nanoseconds = 0;
    }
}

/// The bucket of a value.
fn bucket(nanoseconds: u64) -> usize {
    if nanoseconds < EXACT {
        return nanoseconds as usize;
    }
    let octave = nanoseconds.ilog2() - EXACT.ilog2();
    let within = (nanoseconds >> (octave + 1)) as usize - PER_OCTAVE;
    EXACT as usize + octave as usize * PER_OCTAVE + within
}

/// The largest value of a bucket.
fn upper_bound(bucket: usize) -> u64 {
    let Some(above) = bucket.checked_sub(EXACT as usize) else {
        return bucket as u64;
    };
    let octave = (above / PER_OCTAVE) as u32;
    let within = (above % PER_OCTAVE) as u64;
    let first = ((1 << OCTAVE_BITS) + within) << (octave + 1);
    first + ((1 << (octave + 1)) - 1)
}
