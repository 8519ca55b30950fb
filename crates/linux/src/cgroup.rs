//! A cgroup (version 2) for each supervised program, so that its whole tree can be ended at once.

use crate::error::{Context, OsError, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// A cgroup folder.
#[derive(Debug, Clone)]
pub struct Group {
    path: PathBuf,
}

impl Group {
    /// Creates the group `name` below `parent` (a mounted version 2 tree).
    pub fn create(parent: &Path, name: &str) -> Result<Self> {
        let path = parent.join(name);
        match fs::create_dir(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(OsError { operation: format!("create the cgroup {}", path.display()), source: error })
            }
            _ => Ok(Self { path }),
        }
    }

    /// A group that exists already.
    pub fn existing(path: PathBuf) -> Self {
        Self { path }
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that takes process ids.
    pub fn members_file(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }

    /// Whether a process is in it or below it.
    pub fn populated(&self) -> bool {
        fs::read_to_string(self.path.join("cgroup.events")).is_ok_and(|text| text.contains("populated 1"))
    }

    /// The processes in it and below it; none once it is gone.
    pub fn members(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.members_file()).unwrap_or_default();
        let mut members: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        let below = fs::read_dir(&self.path).into_iter().flatten().flatten();
        for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            members.extend(Self::existing(entry.path()).members());
        }
        members
    }

    /// Moves the calling process into it.
    pub fn join(&self) -> Result<()> {
        // "0" stands for the writer itself.
        fs::write(self.members_file(), "0").during(format!("join the cgroup {}", self.path.display()))
    }

    /// Ends every process in it and below it (SIGKILL), also those that forked meanwhile.
    pub fn kill(&self) -> Result<()> {
        match fs::write(self.path.join("cgroup.kill"), "1") {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && self.path.exists() => {
                self.kill_one_by_one()
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            other => other.during(format!("end the processes of {}", self.path.display())),
        }
    }

    /// Kernels before 5.14 have no `cgroup.kill`.
    fn kill_one_by_one(&self) -> Result<()> {
        for _ in 0..100 {
            let text = fs::read_to_string(self.members_file()).during("list a cgroup's processes")?;
            let members: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
            if members.is_empty() {
                break;
            }
            for member in members {
                // SAFETY: no memory is passed; the kernel listed the process in our group.
                unsafe { libc::kill(member, libc::SIGKILL) };
            }
        }
        Ok(())
    }

    /// Ends what runs in it and removes it with the groups below. Waits up to a second for the
    /// kernel to let go of ended processes.
    pub fn remove(&self) -> Result<()> {
        self.kill()?;
        if let Ok(entries) = fs::read_dir(&self.path) {
            for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
                Self::existing(entry.path()).remove()?;
            }
        }
        let mut last = Ok(());
        for _ in 0..1000 {
            last = match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
                other => other,
            };
            if last.is_ok() {
                return Ok(());
            }
            // A process may have joined after the others were ended.
            self.kill()?;
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        last.during(format!("remove the cgroup {}", self.path.display()))
    }
}
