//! Programs that run in a host: a keeper each, where the kernel and our rights allow it a cgroup each, output into files
//! without a name.

use crate::host::keeper::{FIRST, Order, Told};
use framegauge_linux::cgroup::Group;
use framegauge_linux::error::Context;
use framegauge_linux::process;
pub use framegauge_linux::process::{Ending, Limits, Program};
pub use framegauge_linux::user::Account;
use framegauge_linux::{OsError, Result, files, tree};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::fs::fchown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a program and all that it started may take to go when it is killed.
const PATIENCE: Duration = Duration::from_secs(5);
/// The largest number of a signal.
const MOST_SIGNAL: i32 = 64;
const KILLED: Ending = Ending { exit_code: None, signal: Some(9) };

struct Supervised {
    /// The first keeper's process id.
    keeper: u32,
    socket: UnixStream,
    group: Option<Group>,
    gives_way: bool,
    output: File,
    errors: File,
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Copy, Default)]
struct State {
    ending: Option<Ending>,
    /// Whether nothing that it started runs either.
    gone: bool,
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
    /// The number of the one that was begun last.
    last: AtomicU64,
    running: Mutex<BTreeMap<u64, Arc<Supervised>>>,
}

fn unknown(number: u64) -> OsError {
    OsError::errno(format!("find process {number}"), 3)
}

impl Processes {
    /// Keeps its cgroups below `parent`, if there is one.
    pub fn new(parent: Option<PathBuf>) -> Self {
        Self { parent, last: AtomicU64::new(0), running: Mutex::default() }
    }

    /// The user as whom a program is to run, `None` if that is this agent's own; an error if there is none of that name,
    /// or this agent may not start programs as others.
    pub fn user(&self, name: &str) -> Result<Option<Account>> {
        let account = Account::named(name)?;
        match process::effective_user() {
            0 => Ok(Some(account)),
            own if own == account.user.user => Ok(None),
            own => {
                let operation =
                    format!("start a program as {name}: found an agent of user {own}, expected root's");
                Err(OsError::errno(operation, 1))
            }
        }
    }

    /// Starts a program; returns its number and process id.
    pub fn spawn(&self, program: &Program) -> Result<(u64, u32)> {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let parent = self.parent.as_ref();
        let group = parent.map(|parent| Group::create(parent, &format!("process-{number}"))).transpose()?;
        match Supervised::start(program, group.clone()) {
            Ok((supervised, pid)) => {
                self.lock().insert(number, Arc::new(supervised));
                Ok((number, pid))
            }
            Err(error) => {
                group.map_or(Ok(()), |group| group.remove())?;
                Err(error)
            }
        }
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
            if let Some(ending) = supervised.state().ending {
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
        Ok(self.find(number)?.state().ending)
    }

    /// The program and all that it started, by their process ids.
    pub fn tree(&self, number: u64) -> Result<Vec<u32>> {
        Ok(tree::descendants(self.find(number)?.keeper))
    }

    /// Whether it has started a program with that number.
    pub fn knows(&self, number: u64) -> bool {
        self.lock().contains_key(&number)
    }

    /// The cgroup folders of all programs, also of those that have ended.
    pub fn groups(&self) -> Vec<PathBuf> {
        self.lock().values().filter_map(folder).collect()
    }

    /// Those of programs that have less precedence than this agent.
    pub fn groups_that_give_way(&self) -> Vec<PathBuf> {
        self.lock().values().filter(|supervised| supervised.gives_way).filter_map(folder).collect()
    }

    /// The processes of every tree, by the program's number.
    pub fn trees(&self) -> Vec<(u64, Vec<u32>)> {
        let members = |supervised: &Supervised| match &supervised.group {
            Some(group) => group.members(),
            None => tree::descendants(supervised.keeper),
        };
        self.lock().iter().map(|(number, supervised)| (*number, members(supervised))).collect()
    }

    /// Sends a signal to the program itself.
    pub fn signal(&self, number: u64, signal: i32) -> Result<()> {
        let supervised = self.find(number)?;
        if !(0..=MOST_SIGNAL).contains(&signal) {
            return Err(OsError::errno(
                format!("signal a process: found {signal}, expected 0 to {MOST_SIGNAL}"),
                22,
            ));
        }
        supervised.say(&format!("signal {signal}"));
        Ok(())
    }

    /// Ends the program with everything it started; `None`: some of it still runs after five seconds.
    pub fn kill(&self, number: u64) -> Result<Option<Ending>> {
        let supervised = self.find(number)?;
        supervised.say("kill");
        if let Some(group) = &supervised.group {
            group.kill()?;
        }
        Ok(supervised.await_end(Instant::now() + PATIENCE))
    }

    /// Reads a part of the program's output, and its size so far.
    pub fn output(&self, number: u64, output: Output, offset: u64, length: usize) -> Result<(Vec<u8>, u64)> {
        let supervised = self.find(number)?;
        let file = if output == Output::Standard { &supervised.output } else { &supervised.errors };
        files::read_at(file, offset, length)
    }

    /// Ends every program and removes its cgroup.
    pub fn end_all(&self) {
        let all = std::mem::take(&mut *self.lock());
        // To all of them first: they end at the same time.
        for supervised in all.values() {
            let _ = supervised.socket.shutdown(Shutdown::Write);
        }
        let until = Instant::now() + PATIENCE;
        for (number, supervised) in all {
            if let Some(group) = &supervised.group
                && let Err(error) = group.remove()
            {
                eprintln!("framegauge-agent: {error}");
            }
            if supervised.await_end(until).is_none() {
                eprintln!("framegauge-agent: some of what process {number} started still runs");
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
    /// Starts the program's keepers, and by them the program.
    fn start(program: &Program, group: Option<Group>) -> Result<(Self, u32)> {
        let (output, errors) = (files::unnamed()?, files::unnamed()?);
        if let Some(Account { name, user, .. }) = &program.user {
            // A program may open its own output once more, such as by /dev/stderr.
            for file in [&output, &errors] {
                fchown(file, Some(user.user), Some(user.group)).during(format!("give a file to {name}"))?;
            }
        }
        let operation = "start the keeper of a program";
        let (socket, keeper_end) = UnixStream::pair().during(operation)?;
        let keeper = process::spawn_keeper(&FIRST, OwnedFd::from(keeper_end), &output, &errors)?;
        let mut reader = BufReader::new(socket.try_clone().during(operation)?);
        let state = Arc::<Mutex<State>>::default();
        let supervised = Self {
            keeper: keeper.id(),
            socket,
            group: group.clone(),
            gives_way: program.gives_way,
            output,
            errors,
            state: state.clone(),
        };
        let order = Order::new(program, group.map(|group| group.path().to_path_buf()));
        supervised.say(&serde_json::to_string(&order).map_err(std::io::Error::other).during(operation)?);
        let started = match hear(&mut reader) {
            Some(Told::Started(pid)) => Ok(pid),
            Some(Told::Failed { operation, errno }) => Err(OsError::errno(operation, errno)),
            Some(Told::Ended { .. }) | None => Err(OsError::errno(operation, 10)),
        };
        std::thread::spawn(move || follow(reader, keeper, &state));
        Ok((supervised, started?))
    }

    /// Says a line to the keeper. One that is gone has nothing left to do.
    fn say(&self, line: &str) {
        let _ = (&self.socket).write_all(format!("{line}\n").as_bytes());
    }

    fn state(&self) -> State {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it ended, once nothing that it started runs either.
    fn await_end(&self, until: Instant) -> Option<Ending> {
        loop {
            let state = self.state();
            if state.gone {
                return Some(state.ending.unwrap_or(KILLED));
            }
            if Instant::now() >= until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The folder of its cgroup.
fn folder(supervised: &Arc<Supervised>) -> Option<PathBuf> {
    Some(supervised.group.as_ref()?.path().to_path_buf())
}

fn hear(keeper: &mut impl BufRead) -> Option<Told> {
    let mut line = String::new();
    keeper.read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

/// Notes how the program ends, and then that all of it is gone.
fn follow(mut reader: impl BufRead, mut keeper: Child, state: &Mutex<State>) {
    let note =
        |change: &dyn Fn(&mut State)| change(&mut state.lock().unwrap_or_else(PoisonError::into_inner));
    while let Some(message) = hear(&mut reader) {
        if let Told::Ended { exit_code, signal } = message {
            note(&|state| state.ending = Some(Ending { exit_code, signal }));
        }
    }
    let _ = keeper.wait();
    note(&|state| {
        // Keepers that were killed say nothing, and neither does a program that is killed with them.
        state.ending.get_or_insert(KILLED);
        state.gone = true;
    });
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
