//! How long the threads of a host were ready and had to wait for a CPU. The kernel counts that for every thread
//! (`schedstat`), and for every group of programs where it counts pressure (`cpu.pressure`).
//!
//! A thread takes its count with it when it ends. So those that generate load are [`counted`], and what they waited is
//! kept; of other threads what was read of them last is, so that no sum ever falls. Programs that come and go are counted
//! by their group alone.

use crate::host::processes::Processes;
use framegauge_linux::{Result, perf, precedence, sched};
pub use framegauge_metering::SchedStat;
use framegauge_metering::{parse_cgroup_cpu, parse_cpu_pressure, parse_schedstat};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What was waited so far, since the host came up.
#[derive(Debug, Clone, Copy, Default)]
pub struct Waits {
    /// The threads of its agent, its generators among them.
    pub generators: SchedStat,
    /// The kernel threads that poll its interfaces.
    pub receive_path: SchedStat,
    /// Its programs.
    pub programs: Programs,
    /// What this agent was granted.
    pub precedence: precedence::Precedence,
}

/// What the programs of a host have used and waited so far, those that have ended among them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Programs {
    /// Nanoseconds on a CPU.
    pub run_nanoseconds: u64,
    /// Microseconds in which one of a group waited, over all groups. `None`: the kernel does not count them.
    pub waited_microseconds: Option<u64>,
    /// Nanoseconds on a CPU of those that have less precedence than the agent; part of the others.
    pub gave_way_nanoseconds: u64,
}

/// What ended threads have waited.
struct Ended {
    sum: SchedStat,
    /// Threads that are in the sum, though they still end.
    leaving: BTreeSet<i32>,
    /// What was read of the others last.
    seen: BTreeMap<i32, SchedStat>,
}

const MOST_LEAVING: usize = 64;

static ENDED: Mutex<Ended> =
    Mutex::new(Ended { sum: SchedStat::NONE, leaving: BTreeSet::new(), seen: BTreeMap::new() });

/// The work of a thread, with what it has waited kept when it ends.
pub fn counted<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    || {
        let _leaving = Leaving;
        work()
    }
}

struct Leaving;

impl Ended {
    /// The threads of this process, those that have ended among them.
    fn read(&mut self) -> Result<SchedStat> {
        let threads: BTreeSet<i32> = perf::own_threads()?.into_iter().collect();
        self.leaving.retain(|thread| threads.contains(thread));
        let living = threads.difference(&self.leaving);
        let now: BTreeMap<i32, SchedStat> =
            living.filter_map(|thread| Some((*thread, of_thread(*thread)?))).collect();
        for (thread, last) in std::mem::take(&mut self.seen) {
            // One that has used less than before has the number of one that has ended.
            if now.get(&thread).is_none_or(|stat| stat.run_nanoseconds < last.run_nanoseconds) {
                self.sum += last;
            }
        }
        let mut all = self.sum;
        now.values().for_each(|stat| all += *stat);
        self.seen = now;
        Ok(all)
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let thread = sched::thread_id();
        let mut ended = ENDED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = of_thread(thread) {
            ended.sum += own;
            ended.seen.remove(&thread);
            ended.leaving.insert(thread);
            // Nobody may ever read, and every request is a thread.
            if ended.leaving.len() > MOST_LEAVING {
                ended.leaving.retain(|thread| Path::new(&format!("/proc/self/task/{thread}")).exists());
            }
        }
    }
}

/// What a thread has waited; none if it has ended.
fn of_thread(thread: i32) -> Option<SchedStat> {
    parse_schedstat(&fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?).ok()
}

/// Reads what the threads of this agent, `pollers` and `processes` have waited.
pub fn read(pollers: &[i32], processes: &Processes) -> Result<Waits> {
    let mut waits = Waits { precedence: precedence::current(), ..Waits::default() };
    let mut ended = ENDED.lock().unwrap_or_else(PoisonError::into_inner);
    waits.generators = ended.read()?;
    drop(ended);
    for thread in pollers {
        waits.receive_path += of_thread(*thread).unwrap_or_default();
    }
    waits.programs = of_programs(processes);
    Ok(waits)
}

fn of_programs(processes: &Processes) -> Programs {
    let used = |group: &PathBuf| parse_cgroup_cpu(&fs::read_to_string(group.join("cpu.stat")).ok()?).ok();
    let waited =
        |group: &PathBuf| parse_cpu_pressure(&fs::read_to_string(group.join("cpu.pressure")).ok()?).ok();
    let groups = processes.groups();
    Programs {
        run_nanoseconds: groups.iter().filter_map(used).sum(),
        waited_microseconds: groups.iter().map(waited).sum(),
        gave_way_nanoseconds: processes.groups_that_give_way().iter().filter_map(used).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use framegauge_linux::clock;

    /// Threads that run count while they live, and no less when they have ended.
    #[test]
    fn what_a_thread_has_used_outlives_it() {
        let nobody = Processes::new(None);
        let before = read(&[], &nobody).expect("/proc").generators;
        std::thread::spawn(counted(|| {
            let until = clock::thread_cpu_nanoseconds() + 30_000_000;
            while clock::thread_cpu_nanoseconds() < until {}
        }))
        .join()
        .expect("the thread ends");
        let used = read(&[], &nobody).expect("/proc").generators.since(&before);
        assert!(used.run_nanoseconds >= 29_000_000, "{used:?}");
        let plain = std::thread::spawn(|| {
            let until = clock::thread_cpu_nanoseconds() + 5_000_000;
            while clock::thread_cpu_nanoseconds() < until {}
            read(&[], &Processes::new(None)).expect("/proc").generators
        });
        // Nobody has counted it; what was read of it stays.
        let used = plain.join().expect("the thread ends").since(&before);
        let later = read(&[], &nobody).expect("/proc").generators.since(&before);
        assert!(later.run_nanoseconds >= used.run_nanoseconds, "{later:?}");
    }

    #[test]
    fn the_kernel_threads_that_are_named_are_counted() {
        let own = sched::thread_id();
        // What a thread has used is counted when it leaves its CPU.
        while of_thread(own).unwrap_or_default().run_nanoseconds == 0 {
            std::thread::yield_now();
        }
        let waits = read(&[own], &Processes::new(None)).expect("/proc");
        assert!(waits.receive_path.run_nanoseconds > 0);
        assert_eq!(waits.programs.waited_microseconds, Some(0), "no programs, no waits");
    }
}
