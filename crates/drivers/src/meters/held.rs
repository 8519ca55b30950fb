//! Time for which something outside of the testbed held a CPU: a hypervisor, or work in a kernel that gives way to
//! nobody. No counter tells of it; a thread that goes before everything else on a CPU, and only sleeps, does.

use framegauge_linux::error::Context;
use framegauge_linux::{Result, clock, sched};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Before the fabric (10) and the hosts' receive paths (5).
const PRIORITY: i32 = 20;
/// What a wake-up may take; the kernel's own work for the hosts keeps well below it.
const LEAST_NANOSECONDS: u64 = 1_000_000;

/// How long one CPU was held.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Held {
    /// The CPU.
    pub cpu: usize,
    /// How often, for a millisecond or longer.
    pub count: u64,
    /// All of these together.
    pub seconds: f64,
    /// The longest of them.
    pub longest_seconds: f64,
}

/// Measures CPUs until it is ended.
pub struct HeldMeter {
    ending: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Option<Held>>>,
}

impl HeldMeter {
    /// A thread on each of these CPUs, which wakes up after each `sleep_nanoseconds`. Of what held a CPU while it slept
    /// it notices the part that outlasts its sleep.
    pub fn begin(cpus: &[usize], sleep_nanoseconds: u64) -> Result<Self> {
        let mut meter = Self { ending: Arc::default(), threads: Vec::new() };
        for cpu in cpus.iter().copied() {
            let ending = meter.ending.clone();
            let thread = std::thread::Builder::new().name(format!("held/{cpu}"));
            let thread = thread.spawn(move || look(cpu, sleep_nanoseconds, &ending));
            meter.threads.push(thread.during("start a thread that measures a CPU")?);
        }
        Ok(meter)
    }

    /// The same on every CPU that this thread may use.
    pub fn everywhere(sleep_nanoseconds: u64) -> Result<Self> {
        Self::begin(&sched::allowed_cpus(), sleep_nanoseconds)
    }

    /// How many CPUs it measures, or would, if it may.
    pub fn cpus(&self) -> usize {
        self.threads.len()
    }

    /// What was seen, by CPU. One that could not be measured, for want of real-time scheduling, is not there.
    pub fn end(mut self) -> Vec<Held> {
        self.ending.store(true, Ordering::Relaxed);
        self.threads.drain(..).filter_map(|thread| thread.join().ok().flatten()).collect()
    }
}

impl Drop for HeldMeter {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
    }
}

/// Without real time it would wait for a slice, as the hosts do, and see them.
fn look(cpu: usize, sleep_nanoseconds: u64, ending: &AtomicBool) -> Option<Held> {
    sched::bind(0, &[cpu]).ok()?;
    sched::real_time(0, PRIORITY).ok()?;
    let mut held = Held { cpu, count: 0, seconds: 0.0, longest_seconds: 0.0 };
    while !ending.load(Ordering::Relaxed) {
        let before = clock::monotonic_nanoseconds();
        clock::sleep(sleep_nanoseconds);
        let late = clock::monotonic_nanoseconds().saturating_sub(before + sleep_nanoseconds);
        if late >= LEAST_NANOSECONDS {
            held.count += 1;
            held.seconds += late as f64 * 1e-9;
            held.longest_seconds = held.longest_seconds.max(late as f64 * 1e-9);
        }
    }
    Some(held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// One that goes before the meter does what a hypervisor does: for 30 ms nobody else gets the CPU.
    #[test]
    fn a_cpu_that_is_held_is_told_and_for_how_long() {
        let cpu = sched::allowed_cpus()[0];
        let meter = HeldMeter::begin(&[cpu], 2_000_000).unwrap();
        let holder = std::thread::spawn(move || {
            sched::bind(0, &[cpu]).unwrap();
            sched::real_time(0, PRIORITY + 1)?;
            std::thread::sleep(Duration::from_millis(20));
            let until = Instant::now() + Duration::from_millis(30);
            while Instant::now() < until {}
            Ok::<_, framegauge_linux::OsError>(())
        });
        if let Err(error) = holder.join().unwrap() {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{error}");
            eprintln!("not run: needs real-time scheduling: {error}");
            return;
        }
        let held_cpus = meter.end();
        assert_eq!(held_cpus.len(), 1);
        assert!(held_cpus[0].count >= 1 && held_cpus[0].longest_seconds >= 0.026, "{held_cpus:?}");
        assert!(held_cpus[0].seconds >= held_cpus[0].longest_seconds);
    }
}
