//! Programs of others that are scheduled in real time: another rack, for example. Nothing of this rack goes before them,
//! and nothing else says that they take time from it.

use framegauge_linux::{clock, tree};
use framegauge_metering::{ProcessStat, parse_process_stat};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// `SCHED_FIFO` and `SCHED_RR`.
const REAL_TIME: [u32; 2] = [1, 2];
/// Threads of the kernel that receive for a host of some rack; its agent is counted as well.
const RECEIVE_PATH: &str = "napi/";
const MOST_NAMES: usize = 3;

/// What each process had used at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot(BTreeMap<u32, ProcessStat>);

/// What rivals used between two moments.
#[derive(Debug, Clone, PartialEq)]
pub struct Rivals {
    /// Seconds on a CPU.
    pub cpu_seconds: f64,
    /// The names of the three that used most, with their process ids.
    pub names: Vec<String>,
}

/// Reads every process; one that has ended meanwhile is left out.
pub fn snapshot() -> Snapshot {
    let read = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, parse_process_stat(&text).ok()?))
    };
    Snapshot(tree::all().filter_map(read).collect())
}

impl Snapshot {
    /// What those used since `earlier` that run in real time now and do not descend from process `own`.
    pub fn since(&self, earlier: &Self, own: u32) -> Rivals {
        let family = self.family(own);
        let rivals = self.0.iter().filter(|(pid, stat)| {
            REAL_TIME.contains(&stat.policy) && !family.contains(pid) && !stat.name.starts_with(RECEIVE_PATH)
        });
        let used = |(pid, stat): (&u32, &ProcessStat)| {
            let before = earlier.0.get(pid).filter(|before| before.started == stat.started);
            let ticks = stat.ticks.saturating_sub(before.map_or(0, |before| before.ticks));
            (ticks > 0).then(|| (ticks, format!("{} ({pid})", stat.name)))
        };
        let mut all: Vec<(u64, String)> = rivals.filter_map(used).collect();
        all.sort_by(|one, other| other.cmp(one));
        let ticks: u64 = all.iter().map(|(ticks, _)| ticks).sum();
        Rivals {
            cpu_seconds: ticks as f64 / clock::ticks_per_second() as f64,
            names: all.into_iter().take(MOST_NAMES).map(|(_, name)| name).collect(),
        }
    }

    /// A process and all that descend from it.
    fn family(&self, own: u32) -> BTreeSet<u32> {
        let mut family = BTreeSet::from([own]);
        loop {
            let more: Vec<u32> = self
                .0
                .iter()
                .filter(|(pid, stat)| !family.contains(pid) && family.contains(&(stat.parent as u32)))
                .map(|(pid, _)| *pid)
                .collect();
            if more.is_empty() {
                return family;
            }
            family.extend(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, parent: i32, ticks: u64, policy: u32) -> ProcessStat {
        ProcessStat { name: name.into(), parent, ticks, started: 7, policy }
    }

    #[test]
    fn counts_real_time_of_others_and_nothing_of_its_own() {
        let before = [(1, of("init", 0, 9, 0)), (5, of("agent", 1, 50, 2)), (8, of("agent", 1, 100, 2))];
        let after = [
            (1, of("init", 0, 900, 0)),
            (5, of("agent", 1, 500, 2)),
            (6, of("agent", 5, 500, 2)),
            (7, of("vsftpd", 6, 500, 2)),
            (8, of("agent", 1, 130, 2)),
            (9, of("audio", 1, 4, 1)),
            (10, of("browser", 1, 700, 0)),
            (11, of("napi/eth0-3", 2, 60, 1)),
        ];
        let rivals = Snapshot(after.into()).since(&Snapshot(before.into()), 5);
        assert_eq!(rivals.names, ["agent (8)", "audio (9)"]);
        assert!((rivals.cpu_seconds * clock::ticks_per_second() as f64 - 34.0).abs() < 1e-9, "{rivals:?}");
    }

    #[test]
    fn a_number_that_came_into_use_again_is_another_process() {
        let old = ProcessStat { started: 3, ..of("agent", 1, 500, 2) };
        let rivals = Snapshot([(8, of("agent", 1, 30, 2))].into()).since(&Snapshot([(8, old)].into()), 5);
        assert!((rivals.cpu_seconds * clock::ticks_per_second() as f64 - 30.0).abs() < 1e-9, "{rivals:?}");
    }

    #[test]
    fn reads_the_processes_of_this_machine() {
        assert!(snapshot().0.contains_key(&std::process::id()));
    }
}
