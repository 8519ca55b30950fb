//! Files without a name: nothing is left behind however the process ends.

use crate::error::{Context, OsError, Result, check};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// A readable and writable file without a name in the temporary folder.
pub fn unnamed() -> Result<File> {
    let folder = std::env::temp_dir();
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_TMPFILE | libc::O_CLOEXEC)
        .mode(0o600)
        .open(&folder)
        .or_else(|_| anonymous())
        .during(format!("create a file without a name in {}", folder.display()))
}

/// A readable and writable file in memory: no disk ever makes a writer wait.
pub fn in_memory() -> Result<File> {
    anonymous().during("create a file in memory")
}

/// Where the temporary folder's file system knows no unnamed files, memory serves too.
fn anonymous() -> std::io::Result<File> {
    use std::os::fd::FromRawFd;
    // SAFETY: the name is a terminated string.
    let raw = unsafe { libc::memfd_create(c"framegauge-spool".as_ptr(), libc::MFD_CLOEXEC) };
    if raw < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: `raw` is a descriptor that this function just opened.
    Ok(unsafe { File::from_raw_fd(raw) })
}

/// Bytes that ordinary users may still write to the file system of `path`.
pub fn free_bytes(path: &Path) -> Result<u64> {
    let operation = || format!("ask for the free space of {}", path.display());
    let text =
        CString::new(path.as_os_str().as_bytes()).map_err(|_| OsError::errno(operation(), libc::EINVAL))?;
    // SAFETY: all-zero is a valid statvfs, which the call fills; the path is a terminated string.
    let (done, stats) = unsafe {
        let mut stats: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(text.as_ptr(), &mut stats), stats)
    };
    check(done, &operation())?;
    Ok(stats.f_bavail.saturating_mul(stats.f_frsize))
}

/// Up to `length` bytes at `offset`, and the file's size.
pub fn read_at(file: &File, offset: u64, length: usize) -> Result<(Vec<u8>, u64)> {
    let size = file.metadata().during("read a spool's size")?.len();
    let length = length.min(size.saturating_sub(offset) as usize);
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, offset).during("read a spool")?;
    Ok((bytes, size))
}
