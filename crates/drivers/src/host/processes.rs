//! Programs that run in a host: a cgroup each, output into files without a name.

use framegauge_linux::cgroup::Group;
use framegauge_linux::process;
pub use framegauge_linux::process::{Ending, Limits, Program};
pub use framegauge_linux::user::Account;
use framegauge_linux::{OsError, Result, files};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::fchown;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

struct Supervised {
    child: Mutex<Child>,
    group: Group,
    output: File,
    errors: File,
    ending: Mutex<Option<Ending>>,
}

/// Which of a program's outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Standard,
    /// Standard error.
    Errors,
}

/// The programs of one host.
pub struct Processes {
    parent: Option<PathBuf>,
    running: Mutex<BTreeMap<u64, Arc<Supervised>>>,
}

fn unknown(number: u64) -> OsError {
    OsError::errno(format!("find process {number}"), 3)
}

impl Processes {
    /// Keeps its cgroups below `parent`; without one nothing can be started.
    pub fn new(parent: Option<PathBuf>) -> Self {
        Self { parent, running: Mutex::new(BTreeMap::new()) }
    }

    /// The user as whom a program is to run, `None` if that is this agent's own; an error if there is none of that name,
    /// or this agent may not start programs as others.
    pub fn user(&self, name: &str) -> Result<Option<Account>> {
        let found = Account::named(name)?;
        match process::effective_user() {
            0 => Ok(Some(found)),
            own if own == found.user.user => Ok(None),
            own => {
                let operation =
                    format!("start a program as {name}: found an agent of user {own}, expected root's");
                Err(OsError::errno(operation, 1))
            }
        }
    }

    /// Starts a program; returns its number and process id.
    pub fn spawn(&self, program: &Program) -> Result<(u64, u32)> {
        let Some(parent) = &self.parent else {
            return Err(OsError::errno("start a program without a cgroup to keep it in", 95));
        };
        let mut running = self.lock();
        let number = running.last_key_value().map_or(0, |(number, _)| *number) + 1;
        let group = Group::create(parent, &format!("process-{number}"))?;
        let (output, errors) = (files::unnamed()?, files::unnamed()?);
        if let Some(Account { name, user, .. }) = &program.user {
            // A program may open its own output once more, such as by /dev/stderr.
            for file in [&output, &errors] {
                fchown(file, Some(user.user), Some(user.group))
                    .map_err(|source| OsError { operation: format!("give a file to {name}"), source })?;
            }
        }
        let child = match process::spawn(program, &group, &output, &errors) {
            Ok(child) => child,
            Err(error) => {
                group.remove()?;
                return Err(error);
            }
        };
        let pid = child.id();
        let supervised =
            Supervised { child: Mutex::new(child), group, output, errors, ending: Mutex::new(None) };
        running.insert(number, Arc::new(supervised));
        Ok((number, pid))
    }

    /// Waits until the program ends, `timeout` passes or `stop` says so; `None`: it still runs.
    pub fn wait(
        &self,
        number: u64,
        timeout: Option<Duration>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Ending>> {
        let supervised = self.find(number)?;
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(ending) = supervised.poll()? {
                return Ok(Some(ending));
            }
            if stop() || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(None);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// How the program ended; `None`: it still runs.
    pub fn ending(&self, number: u64) -> Result<Option<Ending>> {
        self.find(number)?.poll()
    }

    /// The program and all that it started, by their process ids.
    pub fn tree(&self, number: u64) -> Result<Vec<u32>> {
        let pid = self.find(number)?.child.lock().unwrap_or_else(PoisonError::into_inner).id();
        Ok(std::iter::once(pid).chain(framegauge_linux::tree::descendants(pid)).collect())
    }

    /// Whether it has started a program with that number.
    pub fn knows(&self, number: u64) -> bool {
        self.lock().contains_key(&number)
    }

    /// The cgroup folders of all programs, also of those that have ended.
    pub fn groups(&self) -> Vec<PathBuf> {
        self.lock().values().map(|supervised| supervised.group.path().to_path_buf()).collect()
    }

    /// The processes of every tree, by the program's number.
    pub fn trees(&self) -> Vec<(u64, Vec<u32>)> {
        self.lock().iter().map(|(number, supervised)| (*number, supervised.group.members())).collect()
    }

    /// Sends a signal to the program itself.
    pub fn signal(&self, number: u64, signal: i32) -> Result<()> {
        let supervised = self.find(number)?;
        if supervised.poll()?.is_some() {
            return Ok(());
        }
        process::signal(&supervised.child.lock().unwrap_or_else(PoisonError::into_inner), signal)
    }

    /// Ends the program with everything it started; `None`: some of it still runs after five seconds.
    pub fn kill(&self, number: u64) -> Result<Option<Ending>> {
        let supervised = self.find(number)?;
        supervised.group.kill()?;
        let deadline = Instant::now() + Duration::from_secs(5);
        let ending = self.wait(number, Some(Duration::from_secs(5)), &|| false)?;
        // What it started is not our child: only the group tells that all of it is gone.
        while supervised.group.populated() {
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(ending)
    }

    /// Reads a part of the program's output, and its size so far.
    pub fn output(&self, number: u64, output: Output, offset: u64, length: usize) -> Result<(Vec<u8>, u64)> {
        let supervised = self.find(number)?;
        let file = if output == Output::Standard { &supervised.output } else { &supervised.errors };
        files::read_at(file, offset, length)
    }

    /// Ends every program and removes its cgroup.
    pub fn end_all(&self) {
        for supervised in std::mem::take(&mut *self.lock()).into_values() {
            let _ = supervised.group.kill();
            let _ = supervised.child.lock().unwrap_or_else(PoisonError::into_inner).wait();
            if let Err(error) = supervised.group.remove() {
                eprintln!("framegauge-agent: {error}");
            }
        }
    }

    fn find(&self, number: u64) -> Result<Arc<Supervised>> {
        self.lock().get(&number).cloned().ok_or_else(|| unknown(number))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<Supervised>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Supervised {
    fn poll(&self) -> Result<Option<Ending>> {
        let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        if ending.is_none() {
            let status = self.child.lock().unwrap_or_else(PoisonError::into_inner).try_wait();
            let status =
                status.map_err(|source| OsError { operation: "wait for a process".into(), source })?;
            *ending = status.map(Ending::from);
        }
        Ok(*ending)
    }
}

/// Makes (or finds) the group that a rack agent has named.
pub fn adopt_group(path: &Path) -> Result<PathBuf> {
    let (parent, name) = (path.parent().unwrap_or(path), path.file_name().unwrap_or_default());
    Group::create(parent, &name.to_string_lossy()).map(|group| group.path().to_path_buf())
}

/// A group of this agent's own, where the kernel and our rights allow one.
pub fn own_group() -> Option<PathBuf> {
    crate::host::groups::create_group().ok().map(|group| group.path().to_path_buf())
}

/// Removes an agent's group; the last agent of a rack removes the rack's too, in case its own agent is gone.
pub fn leave_group(path: &Path) {
    if let Err(error) = Group::existing(path.to_path_buf()).remove() {
        eprintln!("framegauge-agent: {error}");
    }
    if let Some(parent) = path.parent()
        && crate::host::groups::is_group(parent)
    {
        // It stays as long as other hosts are in it.
        let _ = std::fs::remove_dir(parent);
    }
}
