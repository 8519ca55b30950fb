//! A second process of this program that nobody else can start: a copy of the calling one (`fork(2)`), which knows what
//! that knows. No argument, parent or descriptor has to prove who it is, since there is no other way to come to it.

use crate::error::{Context, OsError, Result, check};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The copy as the caller sees it. Dropped, its input ends.
pub struct Copy {
    pid: i32,
    ended: bool,
    /// What it reads as its standard input; `None` once that has ended.
    pub input: Option<File>,
    /// What it writes to its standard output.
    pub output: File,
}

/// Copies the calling process, which must have one thread. The copy has pipes as its standard input and output, no
/// standard error, nothing else open, and ends with `work`.
pub fn copy(work: impl FnOnce() -> u8) -> Result<Copy> {
    let operation = "copy this process";
    let threads = std::fs::read_dir("/proc/self/task").during(operation)?.count();
    if threads != 1 {
        return Err(OsError::errno(operation, libc::EAGAIN));
    }
    let (theirs_in, ours_in) = pipe(operation)?;
    let (ours_out, theirs_out) = pipe(operation)?;
    let nothing = File::options().write(true).open("/dev/null").during(operation)?;
    // SAFETY: there is one thread, so the copy holds no lock of another, and may do whatever this one may.
    let pid = check(unsafe { libc::fork() }, operation)?;
    if pid > 0 {
        return Ok(Copy { pid, ended: false, input: Some(ours_in.into()), output: ours_out.into() });
    }
    for (number, own) in
        [theirs_in.as_raw_fd(), theirs_out.as_raw_fd(), nothing.as_raw_fd()].into_iter().enumerate()
    {
        // SAFETY: no memory is passed. Rust's start opens the standard streams where they are closed, so `own` is above.
        unsafe { libc::dup2(own, number as i32) };
    }
    close_others();
    let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(1);
    // SAFETY: no memory is passed. What the caller has to do at its end is not done twice.
    unsafe { libc::_exit(i32::from(code)) }
}

/// Closes all but the standard streams: what the caller has open, a lock among it, is the caller's.
fn close_others() {
    const FIRST: i32 = libc::STDERR_FILENO + 1;
    // SAFETY: no memory is passed; the copy never comes back to whoever has these open.
    if unsafe { libc::syscall(libc::SYS_close_range, FIRST, u32::MAX, 0) } == 0 {
        return;
    }
    // Before Linux 5.9.
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<i32> = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number >= FIRST) {
        // SAFETY: as above.
        unsafe { libc::close(number) };
    }
}

fn pipe(operation: &str) -> Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, operation)?;
    // SAFETY: the kernel has just opened both for us.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

impl Copy {
    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        // SAFETY: no memory is passed; it is a child of this process that was not reaped.
        self.ended =
            self.ended || unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), libc::WNOHANG) } != 0;
        self.ended
    }

    /// Ends it.
    pub fn kill(&mut self) {
        if !self.has_ended() {
            // SAFETY: as above.
            unsafe {
                libc::kill(self.pid, libc::SIGKILL);
                libc::waitpid(self.pid, std::ptr::null_mut(), 0);
            }
            self.ended = true;
        }
    }
}

/// Ends the process that this one is a copy of, if that still lives: whatever had stopped it, it does nothing more.
pub fn end_original(original: u32) {
    // Its number is no other's as long as this process is its child.
    if std::os::unix::process::parent_id() == original {
        // SAFETY: no memory is passed.
        unsafe { libc::kill(original as i32, libc::SIGKILL) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_process_with_several_threads_is_not_copied() {
        // That of a test has at least two.
        assert_eq!(copy(|| 0).map(drop).expect_err("two threads").code(), libc::EAGAIN);
    }

    #[test]
    fn pipes_carry_what_is_written() {
        let (read, write) = pipe("make a pipe").expect("a pipe");
        File::from(write).write_all(b"!").expect("room");
        let mut text = String::new();
        File::from(read).read_to_string(&mut text).expect("its end");
        assert_eq!(text, "!");
    }
}
