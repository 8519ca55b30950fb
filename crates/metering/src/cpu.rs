//! CPU time a CPU, from `/proc/stat`.

use std::collections::BTreeMap;

use crate::ParseError;
use crate::error::number;

/// Time that one CPU has spent in each state since boot, in ticks (proc_stat(5)). The states do not overlap,
/// except that guest time is part of `user` and `nice`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CpuTimes {
    /// Normal processes in user mode, in ticks.
    pub user: u64,
    /// Niced processes in user mode, in ticks.
    pub nice: u64,
    /// Kernel mode, in ticks.
    pub system: u64,
    /// Idle, in ticks.
    pub idle: u64,
    /// Idle while an I/O was outstanding, in ticks.
    pub iowait: u64,
    /// Interrupts, in ticks.
    pub irq: u64,
    /// Softirqs, in ticks.
    pub softirq: u64,
    /// Taken by the hypervisor, in ticks.
    pub steal: u64,
}

/// [`CpuTimes`] in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[allow(missing_docs, reason = "the same states as in CpuTimes, in seconds")]
pub struct CpuSeconds {
    pub user: f64,
    pub nice: f64,
    pub system: f64,
    pub idle: f64,
    pub iowait: f64,
    pub irq: f64,
    pub softirq: f64,
    pub steal: f64,
}

impl CpuTimes {
    /// What was spent since an earlier reading, in ticks; never below zero. `iowait` may go backwards
    /// (proc_stat(5)): the kernel calls a CPU's rest idle or waiting by what is outstanding when it is asked, so
    /// that only the sum of the two is sure.
    pub fn since(&self, earlier: &CpuTimes) -> CpuTimes {
        let rested = (self.idle + self.iowait).saturating_sub(earlier.idle + earlier.iowait);
        let waited = self.iowait.saturating_sub(earlier.iowait).min(rested);
        CpuTimes {
            user: self.user.saturating_sub(earlier.user),
            nice: self.nice.saturating_sub(earlier.nice),
            system: self.system.saturating_sub(earlier.system),
            idle: rested - waited,
            iowait: waited,
            irq: self.irq.saturating_sub(earlier.irq),
            softirq: self.softirq.saturating_sub(earlier.softirq),
            steal: self.steal.saturating_sub(earlier.steal),
        }
    }

    /// In seconds; `ticks_per_second` is what `sysconf(_SC_CLK_TCK)` says, 100 on Linux.
    pub fn seconds(&self, ticks_per_second: u64) -> CpuSeconds {
        let seconds = |ticks: u64| ticks as f64 / ticks_per_second.max(1) as f64;
        CpuSeconds {
            user: seconds(self.user),
            nice: seconds(self.nice),
            system: seconds(self.system),
            idle: seconds(self.idle),
            iowait: seconds(self.iowait),
            irq: seconds(self.irq),
            softirq: seconds(self.softirq),
            steal: seconds(self.steal),
        }
    }
}

impl std::iter::Sum for CpuSeconds {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, times| Self {
            user: sum.user + times.user,
            nice: sum.nice + times.nice,
            system: sum.system + times.system,
            idle: sum.idle + times.idle,
            iowait: sum.iowait + times.iowait,
            irq: sum.irq + times.irq,
            softirq: sum.softirq + times.softirq,
            steal: sum.steal + times.steal,
        })
    }
}

/// Parses the `cpuN` lines of `/proc/stat`, by CPU number; the sum line `cpu` and all else is passed over.
pub fn parse_stat(text: &str) -> Result<BTreeMap<u32, CpuTimes>, ParseError> {
    let mut cpus = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let mut fields = line.split_whitespace();
        let Some(cpu) = fields.next().and_then(|name| name.strip_prefix("cpu")) else {
            continue;
        };
        if cpu.is_empty() {
            continue;
        }
        let cpu = number(index, Some(cpu), "\"cpu\" and the number of a CPU")?;
        let mut next = || number(index, fields.next(), "eight numbers of ticks");
        let times = CpuTimes {
            user: next()?,
            nice: next()?,
            system: next()?,
            idle: next()?,
            iowait: next()?,
            irq: next()?,
            softirq: next()?,
            steal: next()?,
        };
        cpus.insert(cpu, times);
    }
    if cpus.is_empty() {
        return Err(ParseError::new(0, text, "at least one line that begins with \"cpu0\""));
    }
    Ok(cpus)
}
