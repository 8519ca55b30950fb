//! Performance counters of threads and of CPUs (`perf_event_open(2)`).

use crate::error::{Context, OsError, Result};
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::FromRawFd;

/// Size of the first version of `struct perf_event_attr`, which every kernel takes.
const ATTRIBUTE_BYTES: usize = 64;
const INHERIT: u64 = 1 << 1;
/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`.
const TIMES: u64 = 1 | 2;
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Instructions retired, in user and kernel mode.
    Instructions,
    /// CPU cycles, in user and kernel mode.
    Cycles,
    /// Nanoseconds on a CPU: a software event, counted by the same machinery on every machine.
    TaskClock,
    /// Nanoseconds of a CPU, busy or not: a software event too.
    CpuClock,
    /// How often a tracepoint was passed; see [`crate::tracing::tracepoint_id`].
    Tracepoint(u64),
}

impl Event {
    /// `type` and `config` of `struct perf_event_attr`.
    fn numbers(self) -> (u32, u64) {
        match self {
            Self::Cycles => (0, 0),
            Self::Instructions => (0, 1),
            Self::TaskClock => (1, 1),
            Self::CpuClock => (1, 0),
            Self::Tracepoint(id) => (2, id),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Instructions => "instructions",
            Self::TaskClock => "time on a CPU",
            Self::CpuClock => "time of a CPU",
            Self::Tracepoint(_) => "a tracepoint",
        }
    }
}

/// A counter at work from its creation; it ends with this value.
pub struct Counter {
    file: File,
}

impl Counter {
    /// Counts `event` of `thread` (0: the caller) on every CPU; with `inherit` also of every thread and
    /// process that it starts from now on.
    pub fn open(event: Event, thread: i32, inherit: bool) -> Result<Self> {
        Self::of(event, thread, -1, inherit)
    }

    /// Counts `event` of whatever runs on `cpu`; that takes privilege (`CAP_PERFMON`).
    pub fn open_on_cpu(event: Event, cpu: u32) -> Result<Self> {
        Self::of(event, -1, cpu as i32, false)
    }

    fn of(event: Event, thread: i32, cpu: i32, inherit: bool) -> Result<Self> {
        let (kind, config) = event.numbers();
        let mut attributes = [0u64; ATTRIBUTE_BYTES / 8];
        attributes[0] = u64::from(kind) | ((ATTRIBUTE_BYTES as u64) << 32);
        attributes[1] = config;
        attributes[4] = TIMES;
        attributes[5] = if inherit { INHERIT } else { 0 };
        // SAFETY: the structure is as long as it says, and alive during the call; the rest are numbers:
        // a thread or all (-1), a CPU or any (-1), no group, a flag.
        let raw = unsafe {
            libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), thread, cpu, -1, CLOSE_ON_EXEC)
        };
        if raw < 0 {
            return Err(OsError::last(format!("count {} with perf_event_open", event.name())));
        }
        // SAFETY: `raw` is a descriptor that this function just opened, and nobody else knows.
        Ok(Self { file: unsafe { File::from_raw_fd(raw as libc::c_int) } })
    }

    /// The count so far, scaled up if the counter had to share its hardware with others.
    pub fn read(&mut self) -> Result<u64> {
        let mut words = [0; 24];
        self.file.read_exact(&mut words).during("read a performance counter")?;
        let word = |index: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&words[8 * index..8 * index + 8]);
            u64::from_ne_bytes(bytes)
        };
        Ok(scaled(word(0), word(1), word(2)))
    }
}

/// A count of a counter that was on for `enabled` and at work for `running` (perf_event_open(2)).
fn scaled(count: u64, enabled: u64, running: u64) -> u64 {
    if running == 0 || running >= enabled {
        return count;
    }
    (u128::from(count) * u128::from(enabled) / u128::from(running)) as u64
}

/// Whether retired instructions of a thread can be counted here.
pub fn can_count_instructions() -> Result<()> {
    Counter::open(Event::Instructions, 0, false).map(drop)
}

/// The threads of this process.
pub fn own_threads() -> Result<Vec<i32>> {
    let entries = fs::read_dir("/proc/self/task").during("list this process's threads")?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::thread_cpu_nanoseconds;

    fn burn() {
        let before = thread_cpu_nanoseconds();
        while thread_cpu_nanoseconds() < before + 20_000_000 {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn the_time_of_a_thread_and_of_what_it_starts_is_counted() {
        let mut alone =
            Counter::open(Event::TaskClock, 0, false).expect("a software event counts everywhere");
        let mut whole = Counter::open(Event::TaskClock, 0, true).expect("a software event counts everywhere");
        burn();
        std::thread::spawn(burn).join().expect("the thread ends");
        let (alone, whole) = (alone.read().expect("it is open"), whole.read().expect("it is open"));
        assert!((20_000_000..30_000_000).contains(&alone), "{alone}");
        assert!((40_000_000..60_000_000).contains(&whole), "{whole}");
    }

    #[test]
    fn what_runs_on_a_cpu_is_counted_whoever_it_is() {
        if crate::process::effective_user() != 0 {
            return; // counting others takes privilege; the agent's tests say so where it is not there
        }
        let cpu = crate::sched::allowed_cpus()[0];
        let mut counter =
            Counter::open_on_cpu(Event::CpuClock, cpu as u32).expect("a software event counts everywhere");
        let other = std::thread::spawn(move || {
            crate::sched::bind(0, &[cpu]).expect("one of its own");
            burn();
        });
        other.join().expect("the thread ends");
        assert!(counter.read().expect("it is open") >= 20_000_000);
    }

    #[test]
    fn a_counter_that_shared_its_hardware_is_scaled() {
        assert_eq!(scaled(100, 1000, 1000), 100);
        assert_eq!(scaled(100, 1000, 250), 400);
        assert_eq!(scaled(0, 1000, 0), 0);
        assert_eq!(scaled(u64::MAX / 2, 4, 2), u64::MAX - 1);
    }
}
