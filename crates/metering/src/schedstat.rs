//! What the scheduler gave one thread.

use crate::ParseError;
use crate::error::number;

/// `/proc/<pid>/task/<tid>/schedstat` (kernel documentation, `scheduler/sched-stats`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SchedStat {
    /// Time on a CPU, in nanoseconds.
    pub run_nanoseconds: u64,
    /// Time runnable but waiting for a CPU, in nanoseconds.
    pub wait_nanoseconds: u64,
    /// How often it was put on a CPU.
    pub slices: u64,
}

impl SchedStat {
    /// Of a thread that has never run.
    pub const NONE: Self = Self { run_nanoseconds: 0, wait_nanoseconds: 0, slices: 0 };

    /// What came on top since an earlier reading; never below zero.
    pub fn since(&self, earlier: &SchedStat) -> SchedStat {
        SchedStat {
            run_nanoseconds: self.run_nanoseconds.saturating_sub(earlier.run_nanoseconds),
            wait_nanoseconds: self.wait_nanoseconds.saturating_sub(earlier.wait_nanoseconds),
            slices: self.slices.saturating_sub(earlier.slices),
        }
    }
}

impl std::ops::AddAssign for SchedStat {
    fn add_assign(&mut self, other: Self) {
        self.run_nanoseconds = self.run_nanoseconds.saturating_add(other.run_nanoseconds);
        self.wait_nanoseconds = self.wait_nanoseconds.saturating_add(other.wait_nanoseconds);
        self.slices = self.slices.saturating_add(other.slices);
    }
}

/// Parses one `schedstat` file: three numbers in one line.
pub fn parse_schedstat(text: &str) -> Result<SchedStat, ParseError> {
    let mut fields = text.split_whitespace();
    let mut next = || number(0, fields.next(), "three numbers: run ns, wait ns, slices");
    let stat = SchedStat { run_nanoseconds: next()?, wait_nanoseconds: next()?, slices: next()? };
    match fields.next() {
        Some(surplus) => Err(ParseError::new(0, surplus, "nothing after the third number")),
        None => Ok(stat),
    }
}
