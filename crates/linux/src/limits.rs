//! Limits of this process (`getrlimit(2)`).

use crate::error::{Result, check};
use std::fs;
use std::sync::OnceLock;

/// As if this process had all the memory that there is, above what it has (proc_pid_oom_score_adj(5)).
const FIRST: &str = "1000";

/// The soft limit of open files that this process was started with, once it has been raised.
static BEFORE: OnceLock<u64> = OnceLock::new();

/// Raises the soft limit of open files to the hard one, but not above `most`; returns the limit in force.
pub fn raise_open_files(most: u64) -> Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid during the call.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, "read the limit of open files")?;
    let target = limit.rlim_max.min(most);
    if target > limit.rlim_cur {
        BEFORE.get_or_init(|| limit.rlim_cur);
        limit.rlim_cur = target;
        // SAFETY: as above.
        check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, "raise the limit of open files")?;
    }
    Ok(limit.rlim_cur)
}

/// The soft limit of open files that programs of others are to have: the one before it was raised, if it was. They expect
/// it, and some close every descriptor up to it.
pub fn open_files_of_programs() -> Option<u64> {
    BEFORE.get().copied()
}

/// Asks the kernel to end this process before others where memory is used up: who started it is to be left, to say so.
/// Any process may make itself a likelier choice, and where there is no `/proc`, it is as likely as others.
pub fn be_first_without_memory() {
    let _ = fs::write("/proc/self/oom_score_adj", FIRST);
}
