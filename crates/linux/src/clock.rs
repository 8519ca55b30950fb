//! Clocks, in nanoseconds.

use crate::error::{Context, Result};
use std::fs;

/// Nanoseconds since an arbitrary start, the same in every process and namespace of this machine.
pub fn monotonic_nanoseconds() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Which clock [`monotonic_nanoseconds`] reads: the same text where it shows the same time. That is one boot of one
/// kernel, and one time namespace (`time_namespaces(7)`), if the kernel has them.
pub fn monotonic_identity() -> Result<String> {
    let namespace = fs::read_link("/proc/self/ns/time").unwrap_or_default();
    Ok(format!("{} {}", boot()?, namespace.display()).trim_end().to_string())
}

/// A text that no other boot of this or another kernel has.
pub fn boot() -> Result<String> {
    let path = "/proc/sys/kernel/random/boot_id";
    Ok(fs::read_to_string(path).during(format!("read {path}"))?.trim().to_string())
}

/// Nanoseconds since 1970, by the wall clock: for people and captures, never to measure with.
pub fn real_nanoseconds() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// Time that this process, its ended threads included, has had on a CPU.
pub fn process_cpu_nanoseconds() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Time that the calling thread has had on a CPU.
pub fn thread_cpu_nanoseconds() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec; these clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps that many nanoseconds, or a little longer.
pub fn sleep(nanoseconds: u64) {
    let time = libc::timespec {
        tv_sec: (nanoseconds / 1_000_000_000) as libc::time_t,
        tv_nsec: (nanoseconds % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `time` is valid during the call; the rest of an interrupted sleep is not asked for.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &time, std::ptr::null_mut()) };
}

/// Ticks a second in `/proc/stat` (`USER_HZ`).
pub fn ticks_per_second() -> u64 {
    // SAFETY: sysconf has no memory preconditions.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    if ticks > 0 { ticks as u64 } else { 100 }
}
