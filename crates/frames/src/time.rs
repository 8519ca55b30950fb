//! Virtual time.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A span or a point of virtual time in picoseconds; 64 bits last 213 days.
///
/// `+` and `-` saturate: time neither wraps nor goes below zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Picoseconds(u64);

const PER_NANOSECOND: u64 = 1_000;
const PER_SECOND: f64 = 1e12;

impl Picoseconds {
    /// No time at all, or the beginning of it.
    pub const ZERO: Picoseconds = Picoseconds(0);
    /// The end of time: later than everything.
    pub const MAX: Picoseconds = Picoseconds(u64::MAX);

    /// That many picoseconds.
    pub const fn new(picoseconds: u64) -> Picoseconds {
        Picoseconds(picoseconds)
    }

    /// The number of picoseconds.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// From nanoseconds; saturates at [`Picoseconds::MAX`].
    pub const fn from_nanoseconds(nanoseconds: u64) -> Picoseconds {
        Picoseconds(nanoseconds.saturating_mul(PER_NANOSECOND))
    }

    /// From seconds, to the nearest picosecond; negative and NaN give zero, too much gives the maximum.
    pub fn from_seconds_f64(seconds: f64) -> Picoseconds {
        Picoseconds((seconds * PER_SECOND).round() as u64)
    }

    /// The number of them.
    pub const fn as_picoseconds(self) -> u64 {
        self.0
    }

    /// Whole nanoseconds, rounded down.
    pub const fn as_nanoseconds(self) -> u64 {
        self.0 / PER_NANOSECOND
    }

    /// Seconds.
    pub fn as_seconds_f64(self) -> f64 {
        self.0 as f64 / PER_SECOND
    }

    /// The sum, at most [`Picoseconds::MAX`].
    pub const fn saturating_add(self, other: Picoseconds) -> Picoseconds {
        Picoseconds(self.0.saturating_add(other.0))
    }

    /// The difference, at least zero.
    pub const fn saturating_sub(self, other: Picoseconds) -> Picoseconds {
        Picoseconds(self.0.saturating_sub(other.0))
    }

    /// So many times this span, at most [`Picoseconds::MAX`].
    pub const fn saturating_mul(self, times: u64) -> Picoseconds {
        Picoseconds(self.0.saturating_mul(times))
    }
}

impl Add for Picoseconds {
    type Output = Picoseconds;

    fn add(self, other: Picoseconds) -> Picoseconds {
        self.saturating_add(other)
    }
}

impl AddAssign for Picoseconds {
    fn add_assign(&mut self, other: Picoseconds) {
        *self = *self + other;
    }
}

impl Sub for Picoseconds {
    type Output = Picoseconds;

    fn sub(self, other: Picoseconds) -> Picoseconds {
        self.saturating_sub(other)
    }
}

impl fmt::Display for Picoseconds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ps", self.0)
    }
}
