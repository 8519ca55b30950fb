//! Scheduling of the calling thread, and what it used.

use crate::error::{Context, Result, check};
use std::fs::{File, OpenOptions};
use std::io::Write;

/// CPUs that the calling thread may run on.
pub fn allowed_cpus() -> Vec<usize> {
    allowed_cpus_of(0)
}

/// CPUs that a thread (0: the caller) may run on; none if there is no such thread.
pub fn allowed_cpus_of(thread: i32) -> Vec<usize> {
    // SAFETY: all-zero is an empty cpu_set_t; the call fills it within its size.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(thread, size_of::<libc::cpu_set_t>(), &mut set);
        set
    };
    // SAFETY: the index is below CPU_SETSIZE.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

/// Binds a thread (0: the caller) to `cpus`.
pub fn bind(thread: i32, cpus: &[usize]) -> Result<()> {
    // SAFETY: all-zero is an empty cpu_set_t; indices are checked against CPU_SETSIZE.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for cpu in cpus.iter().filter(|cpu| **cpu < libc::CPU_SETSIZE as usize) {
            libc::CPU_SET(*cpu, &mut set);
        }
        set
    };
    // SAFETY: `set` is valid and its size is passed.
    check(
        unsafe { libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &set) },
        "bind a thread to its CPUs",
    )
    .map(drop)
}

/// Puts a thread (0: the caller) under `SCHED_FIFO`. It is not inherited by what it forks.
pub fn real_time(thread: i32, priority: i32) -> Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    const RESET_ON_FORK: libc::c_int = 0x4000_0000;
    // SAFETY: `parameters` is valid during the call.
    check(
        unsafe { libc::sched_setscheduler(thread, libc::SCHED_FIFO | RESET_ON_FORK, &parameters) },
        "schedule a thread in real time (SCHED_FIFO)",
    )
    .map(drop)
}

/// Asks for the finest timers the kernel gives the calling thread.
pub fn finest_timers() {
    // SAFETY: prctl with numbers only. Failure leaves the default slack of 50 µs.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}

/// Keeps idle CPUs from sleeping deeper than they can wake at once, until the file is closed, however
/// that comes about (`/dev/cpu_dma_latency`, PM QoS). In a virtual machine a wake-up is 10 µs faster.
pub fn stay_awake() -> Result<File> {
    let path = "/dev/cpu_dma_latency";
    let mut file = OpenOptions::new().write(true).open(path).during(format!("open {path}"))?;
    file.write_all(&0i32.to_ne_bytes()).during(format!("write {path}"))?;
    Ok(file)
}

/// The calling thread's id.
pub fn thread_id() -> i32 {
    // SAFETY: no memory is passed.
    unsafe { libc::gettid() }
}

/// What a thread has used so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadUse {
    /// User and system time in seconds.
    pub cpu_seconds: f64,
    /// Times it was taken off its CPU though it wanted to run.
    pub involuntary_switches: u64,
}

/// What the calling thread has used so far.
pub fn thread_use() -> ThreadUse {
    // SAFETY: all-zero is a valid rusage, which the call fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    ThreadUse {
        cpu_seconds: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        involuntary_switches: usage.ru_nivcsw as u64,
    }
}
