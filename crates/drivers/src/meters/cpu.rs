//! What a host's work costs: time, instructions and cycles of its programs and of its receive path.
//!
//! A host's programs are this agent (its generator) and whatever it has started; its receive path is the
//! kernel thread that polls its interface (threaded NAPI). Nothing else is ever counted to it: what runs
//! in interrupts, and other programs, stay unattributed.

use crate::host::processes::Processes;
use crate::meters::{CpuSeconds, CpuSnapshot, cpu_snapshot};
use framegauge_linux::error::Context;
use framegauge_linux::perf::{self, Counter, Event};
use framegauge_linux::{OsError, Result, clock, tracing};
use framegauge_metering::{parse_cgroup_cpu, parse_schedstat};
use std::fs;
use std::path::Path;

/// What one part of a host has used in an interval. `None`: not measurable here.
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuUse {
    /// Seconds on a CPU.
    pub cpu_seconds: f64,
    /// Instructions retired.
    pub instructions: Option<u64>,
    /// CPU cycles.
    pub cycles: Option<u64>,
}

/// A host's use of the CPUs in an interval.
#[derive(Debug, Clone)]
pub struct HostCpu {
    /// Seconds between the two readings.
    pub elapsed_seconds: f64,
    /// The generator and the programs.
    pub programs: CpuUse,
    /// The thread that polls the interface; none where the device has no such thread.
    pub receive_path: Option<CpuUse>,
    /// How often that thread polled, the counterpart of a NIC's interrupts.
    pub polls: Option<u64>,
    /// Seconds on a CPU that this meter itself took; part of `programs`.
    pub meter_seconds: f64,
    /// What could not be measured, and why.
    pub not_measured: Vec<String>,
}

/// A set of threads and the counters on them.
struct Counted {
    instructions: Vec<Counter>,
    cycles: Vec<Counter>,
}

impl Counted {
    /// Counts what `threads` do; with `inherit` also what they start. A counter that cannot be had is told
    /// in `lacks` and leaves the others at work.
    fn open(threads: &[i32], inherit: bool, lacks: &mut Vec<String>) -> Self {
        let mut open = |event| -> Vec<Counter> {
            let all: Result<Vec<_>> =
                threads.iter().map(|thread| Counter::open(event, *thread, inherit)).collect();
            all.unwrap_or_else(|error| {
                let line = error.to_string();
                if !lacks.contains(&line) {
                    lacks.push(line);
                }
                Vec::new()
            })
        };
        Self { instructions: open(Event::Instructions), cycles: open(Event::Cycles) }
    }

    fn read(&mut self, cpu_seconds: f64) -> Result<CpuUse> {
        Ok(CpuUse { cpu_seconds, instructions: sum(&mut self.instructions)?, cycles: sum(&mut self.cycles)? })
    }
}

/// The sum of all counters; none without any.
fn sum(counters: &mut [Counter]) -> Result<Option<u64>> {
    if counters.is_empty() {
        return Ok(None);
    }
    counters.iter_mut().map(Counter::read).sum::<Result<u64>>().map(Some)
}

/// Times at one moment, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Times {
    now: u64,
    programs: u64,
    receive_path: u64,
}

/// A meter at work on this host.
pub struct CpuMeter {
    begun: Times,
    programs: Counted,
    poller: Counted,
    pollers: Vec<i32>,
    polls: Vec<Counter>,
    meter_nanoseconds: u64,
    lacks: Vec<String>,
}

impl CpuMeter {
    /// Starts to measure the host whose interface the threads `pollers` poll and whose programs are `processes`.
    pub fn begin(pollers: &[i32], processes: &Processes) -> Result<Self> {
        let before = clock::thread_cpu_nanoseconds();
        let mut lacks = Vec::new();
        // Counters first: a program that is started later inherits them.
        let programs = Counted::open(&perf::own_threads()?, true, &mut lacks);
        let poller = Counted::open(pollers, false, &mut lacks);
        if pollers.is_empty() {
            let line = "receive path: the interface has no NAPI thread, so it runs in the sender's context";
            lacks.push(line.to_string());
        }
        let polls = count_polls(pollers).unwrap_or_else(|error| {
            lacks.push(error.to_string());
            Vec::new()
        });
        let begun = times(pollers, processes)?;
        let meter_nanoseconds = clock::thread_cpu_nanoseconds() - before;
        Ok(Self { begun, programs, poller, pollers: pollers.to_vec(), polls, meter_nanoseconds, lacks })
    }

    /// The use so far; the interval goes on.
    pub fn read(&mut self, processes: &Processes) -> Result<HostCpu> {
        let before = clock::thread_cpu_nanoseconds();
        let ended = times(&self.pollers, processes)?;
        let seconds = |later: u64, earlier: u64| later.saturating_sub(earlier) as f64 * 1e-9;
        let programs = self.programs.read(seconds(ended.programs, self.begun.programs))?;
        let receive_path = match self.pollers.is_empty() {
            true => None,
            false => Some(self.poller.read(seconds(ended.receive_path, self.begun.receive_path))?),
        };
        let polls = sum(&mut self.polls)?;
        self.meter_nanoseconds += clock::thread_cpu_nanoseconds() - before;
        Ok(HostCpu {
            elapsed_seconds: seconds(ended.now, self.begun.now),
            programs,
            receive_path,
            polls,
            meter_seconds: self.meter_nanoseconds as f64 * 1e-9,
            not_measured: self.lacks.clone(),
        })
    }
}

/// The CPU use of a user's own host: everything that kept a CPU from being idle, whoever did it.
pub struct WholeMeter {
    begun: CpuSnapshot,
}

impl WholeMeter {
    /// Begins.
    pub fn begin() -> Result<Self> {
        Ok(Self { begun: cpu_snapshot()? })
    }

    /// The use so far. What the kernel does for others' programs is in it too: that is what an idle interval before is
    /// for.
    pub fn read(&self) -> Result<HostCpu> {
        let used = cpu_snapshot()?.since(&self.begun);
        let busy = |cpu: &CpuSeconds| cpu.user + cpu.nice + cpu.system + cpu.irq + cpu.softirq;
        let cpu_seconds = used.cpus.iter().map(|(_, cpu)| busy(cpu)).sum();
        Ok(HostCpu {
            elapsed_seconds: used.elapsed_seconds,
            programs: CpuUse { cpu_seconds, instructions: None, cycles: None },
            receive_path: Some(CpuUse::default()),
            polls: None,
            meter_seconds: 0.0,
            not_measured: Vec::new(),
        })
    }
}

/// Instructions and cycles of a whole host: of each of its CPUs, whoever runs there.
pub struct WholeCounters {
    instructions: Vec<Counter>,
    cycles: Vec<Counter>,
}

impl WholeCounters {
    /// Counts from now on; that takes privilege, and a CPU that lets itself be counted.
    pub fn open() -> Result<Self> {
        let cpus: Vec<u32> = cpu_snapshot()?.cpus().collect();
        let counters =
            |event| cpus.iter().map(|cpu| Counter::open_on_cpu(event, *cpu)).collect::<Result<Vec<_>>>();
        Ok(Self { instructions: counters(Event::Instructions)?, cycles: counters(Event::Cycles)? })
    }

    /// Instructions and cycles so far.
    pub fn read(&mut self) -> Result<(u64, u64)> {
        let sum = |counters: &mut [Counter]| counters.iter_mut().map(Counter::read).sum::<Result<u64>>();
        Ok((sum(&mut self.instructions)?, sum(&mut self.cycles)?))
    }
}

fn count_polls(pollers: &[i32]) -> Result<Vec<Counter>> {
    if pollers.is_empty() {
        return Ok(Vec::new());
    }
    let event = Event::Tracepoint(tracing::tracepoint_id("napi", "napi_poll")?);
    pollers.iter().map(|thread| Counter::open(event, *thread, false)).collect()
}

fn times(pollers: &[i32], processes: &Processes) -> Result<Times> {
    let mut receive_path = 0;
    for thread in pollers {
        receive_path += run_nanoseconds(*thread)?;
    }
    let mut programs = clock::process_cpu_nanoseconds();
    for group in processes.groups() {
        programs += group_nanoseconds(&group)?;
    }
    Ok(Times { now: clock::monotonic_nanoseconds(), programs, receive_path })
}

fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).during(format!("read {}", path.display()))
}

fn malformed(path: &Path, error: impl std::fmt::Display) -> OsError {
    let source = std::io::Error::other(error.to_string());
    OsError { operation: format!("understand {}", path.display()), source }
}

/// Time that a thread has had on a CPU.
fn run_nanoseconds(thread: i32) -> Result<u64> {
    let path = format!("/proc/{thread}/schedstat");
    let path = Path::new(&path);
    Ok(parse_schedstat(&text(path)?).map_err(|error| malformed(path, error))?.run_nanoseconds)
}

fn group_nanoseconds(group: &Path) -> Result<u64> {
    let path = group.join("cpu.stat");
    parse_cgroup_cpu(&text(&path)?).map_err(|error| malformed(&path, error))
}
