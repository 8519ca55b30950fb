//! A lock that one process has until it ends, in a folder where nobody else may write (`flock(2)`).

use crate::error::{Context, OsError, Result};
use crate::process::effective_user;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a lock that another process has is tried again, and after how long.
const TRIES: usize = 2;
const MOMENT: Duration = Duration::from_millis(10);

/// A lock that is held; its file is removed with it.
pub struct Lock {
    _file: File,
    path: PathBuf,
}

/// Whose lock it is.
pub enum Attempt {
    /// This process has it now.
    Ours(Lock),
    /// Another process has it.
    Theirs,
}

/// The folder of this user's locks: root's is empty after a reboot.
pub fn folder() -> PathBuf {
    match effective_user() {
        0 => "/run".into(),
        user => std::env::temp_dir().join(format!("framegauge-{user}")),
    }
}

impl Lock {
    /// Takes the lock `name` in `folder`, which is made if it is missing; an error unless the folder belongs to this
    /// process's user, who alone may write there. Otherwise any user could have the lock first.
    pub fn take(folder: &Path, name: &str) -> Result<Attempt> {
        Self::attempt(folder, name, TRIES)
    }

    fn attempt(folder: &Path, name: &str, tries: usize) -> Result<Attempt> {
        let operation = || format!("lock {name} in {}", folder.display());
        match DirBuilder::new().mode(0o755).create(folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(OsError { operation: operation(), source: error });
            }
            _ => {}
        }
        let metadata = folder.symlink_metadata().during(operation())?;
        if !metadata.is_dir() || metadata.uid() != effective_user() || metadata.mode() & 0o022 != 0 {
            let reason = "found a folder that others may write to, or no folder: remove it";
            return Err(OsError { operation: operation(), source: std::io::Error::other(reason) });
        }
        let path = folder.join(name);
        let mut left = tries;
        loop {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(libc::O_CLOEXEC | libc::O_NOFOLLOW)
                .open(&path)
                .during(operation())?;
            // SAFETY: no memory is passed.
            if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } < 0 {
                let source = std::io::Error::last_os_error();
                if source.kind() == ErrorKind::WouldBlock && left > 0 {
                    // Another process may have it for a moment, to remove what a third has left.
                    left -= 1;
                    std::thread::sleep(MOMENT);
                    continue;
                }
                return match source.kind() {
                    ErrorKind::WouldBlock => Ok(Attempt::Theirs),
                    _ => Err(OsError { operation: operation(), source }),
                };
            }
            // Whoever had it may have removed the file between the two calls: then another has a new one.
            let is_same = |entry: std::fs::Metadata| {
                file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (entry.dev(), entry.ino()))
            };
            if path.symlink_metadata().is_ok_and(is_same) {
                return Ok(Attempt::Ours(Self { _file: file, path }));
            }
        }
    }
}

impl Lock {
    /// Removes the files of locks whose name begins so and that nobody has: their processes were killed.
    pub fn sweep(folder: &Path, prefix: &str) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if let Some(name) = name.to_str().filter(|name| name.starts_with(prefix)) {
                // Whoever has it for a moment removes it.
                drop(Self::attempt(folder, name, 0));
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is still locked: closing the file, which comes next, unlocks it.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn folder_of(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("framegauge-lock-{name}-{}", std::process::id()))
    }

    #[test]
    fn one_has_it_at_a_time_and_nothing_stays() {
        let folder = folder_of("one");
        let Attempt::Ours(first) = Lock::take(&folder, "a").expect("a folder") else { panic!("it is free") };
        assert!(matches!(Lock::take(&folder, "a").expect("a folder"), Attempt::Theirs));
        assert!(matches!(Lock::take(&folder, "b").expect("a folder"), Attempt::Ours(_)));
        Lock::sweep(&folder, "a");
        assert!(folder.join("a").exists(), "it is held");
        drop(first);
        assert!(matches!(Lock::take(&folder, "a").expect("a folder"), Attempt::Ours(_)));
        for left in ["a-1", "a-2"] {
            std::fs::write(folder.join(left), "").expect("a lock of the dead");
        }
        Lock::sweep(&folder, "a-");
        std::fs::remove_dir(&folder).expect("nothing is left there");
    }

    #[test]
    fn a_folder_of_others_is_refused() {
        let open = folder_of("open");
        std::fs::create_dir(&open).expect("a folder");
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).expect("its mode");
        assert!(Lock::take(&open, "a").is_err());
        let link = folder_of("link");
        std::os::unix::fs::symlink(&open, &link).expect("a link");
        assert!(Lock::take(&link, "a").is_err());
        std::fs::remove_file(link).expect("the link");
        std::fs::remove_dir(open).expect("the folder");
    }
}
