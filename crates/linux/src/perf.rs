//! Hardware performance counters (`perf_event_open(2)`).

use crate::error::{Result, check};
use std::os::fd::{FromRawFd, OwnedFd};

const HARDWARE: u32 = 0;
const INSTRUCTIONS: u64 = 1;
/// Size of the first version of `struct perf_event_attr`, which every kernel takes.
const ATTRIBUTE_BYTES: usize = 64;

/// Whether retired instructions of a thread can be counted here.
pub fn can_count_instructions() -> Result<()> {
    let mut attributes = [0u64; ATTRIBUTE_BYTES / 8];
    attributes[0] = u64::from(HARDWARE) | ((ATTRIBUTE_BYTES as u64) << 32);
    attributes[1] = INSTRUCTIONS;
    // SAFETY: the structure is as long as it says, and alive during the call; the rest are numbers:
    // this thread, any CPU, no group, no flags.
    let raw = unsafe { libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, -1, 0) };
    let raw = check(raw as libc::c_int, "count instructions with perf_event_open")?;
    // SAFETY: `raw` is a descriptor that this function just opened.
    drop(unsafe { OwnedFd::from_raw_fd(raw) });
    Ok(())
}
