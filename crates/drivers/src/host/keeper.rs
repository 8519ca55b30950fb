//! The keeper of a program: two processes between it and the agent, which see to it that all of it ends.
//!
//! ```text
//!   agent ── socket ── second keeper ── program ── whatever it starts
//!      └── first keeper ──┘
//! ```
//!
//! Both keepers are what Linux calls a subreaper: whoever descends from one stays below it, though their parents end and
//! whatever session they make. So the second keeper finds all that the program has started, and nothing else, and kills
//! all of it when the agent asks for that, or the socket ends, as it does with the agent. If the second keeper is killed, the
//! first one, its parent, does the same. If the first is killed, the kernel tells the second, which ends all. Where both
//! are killed at once, the kernel kills the program itself, and the cgroup of the program, if it has one, the rest.
//!
//! On the socket the agent writes an [`Order`], a line of JSON, then lines `signal NUMBER` and `kill`. The second keeper
//! writes a line of JSON when the program has started or failed to, and one when it has ended ([`Told`]). The socket ends
//! when both keepers have ended: when nothing runs any more.

use crate::host::processes::{Account, Ending, Limits, Program};
use framegauge_linux::cgroup::Group;
use framegauge_linux::error::Context;
use framegauge_linux::poll::{PollSet, keepers_signals, told_to_end};
use framegauge_linux::tree::{Reaped, adopt_orphans, kill_descendants, reap};
use framegauge_linux::user::User;
use framegauge_linux::{OsError, Result, process};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The words after the agent's name that make it the first keeper.
pub const FIRST: [&str; 2] = ["keep", "program"];
/// Those that make it the second.
pub const SECOND: [&str; 2] = ["keep", "second"];
/// How long processes may take to go; those that a keeper may not kill, as another user's, never go.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(1);

/// What to start.
#[derive(Debug, Serialize, Deserialize, PartialEq)]
pub struct Order {
    arguments: Vec<String>,
    environment: BTreeMap<String, String>,
    directory: Option<PathBuf>,
    /// Of open files, address space, CPU seconds and file size.
    limits: [Option<u64>; 4],
    soft_open_files: Option<u64>,
    user: Option<Person>,
    group: Option<PathBuf>,
    gives_way: bool,
}

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct Person {
    name: String,
    user: u32,
    group: u32,
    groups: Vec<u32>,
    home: PathBuf,
}

/// What the agent is told.
#[derive(Debug, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// The program runs, with this process id.
    Started(u32),
    /// It could not be started.
    Failed {
        /// What was attempted.
        operation: String,
        /// The kernel's reason.
        errno: i32,
    },
    /// It has ended; what it started may still run.
    Ended {
        /// Its exit code, if it ended by itself.
        exit_code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
}

impl Order {
    /// The order for a program, to be kept in a cgroup if there is one.
    pub fn new(program: &Program, group: Option<PathBuf>) -> Self {
        let Limits { open_files, address_space_bytes, cpu_seconds, file_bytes } = program.limits;
        let user = program.user.clone().map(|Account { name, home, user }| Person {
            name,
            user: user.user,
            group: user.group,
            groups: user.groups,
            home,
        });
        Self {
            arguments: program.arguments.clone(),
            environment: program.environment.clone(),
            directory: program.directory.clone(),
            limits: [open_files, address_space_bytes, cpu_seconds, file_bytes],
            soft_open_files: program.soft_open_files,
            user,
            group,
            gives_way: program.gives_way,
        }
    }

    fn program(self) -> (Program, Option<Group>) {
        let [open_files, address_space_bytes, cpu_seconds, file_bytes] = self.limits;
        let user = self.user.map(|Person { name, user, group, groups, home }| Account {
            name,
            home,
            user: User { user, group, groups },
        });
        let program = Program {
            arguments: self.arguments,
            environment: self.environment,
            directory: self.directory,
            limits: Limits { open_files, address_space_bytes, cpu_seconds, file_bytes },
            soft_open_files: self.soft_open_files,
            user,
            gives_way: self.gives_way,
        };
        (program, self.group.map(Group::existing))
    }
}

/// The first keeper: starts the second, and ends what that leaves if it is killed.
pub fn first() -> Result<()> {
    adopt_orphans()?;
    let mut second = process::spawn_second(&SECOND)?;
    second.wait().during("wait for the second keeper")?;
    end_all(None, &mut |_, _| {})
}

/// The second keeper: starts the program, and ends all of it when it must. Returns when nothing of it runs any more.
pub fn second() -> Result<()> {
    adopt_orphans()?;
    let signals = keepers_signals()?;
    let input = std::io::stdin().as_fd().try_clone_to_owned().during("open the socket of the agent")?;
    let mut agent = Agent { socket: input.into(), pending: Vec::new() };
    let Event::Line(line) = agent.next(None) else { return Ok(()) };
    let order = serde_json::from_slice::<Order>(&line).map_err(|error| OsError {
        operation: "read what is to be started".into(),
        source: std::io::Error::other(error),
    })?;
    let (program, group) = order.program();
    match process::spawn(&program, group.as_ref()) {
        Ok(pid) => {
            agent.tell(&Told::Started(pid));
            keep(pid, group.as_ref(), &mut agent, &signals)
        }
        Err(error) => {
            let errno = error.code();
            agent.tell(&Told::Failed { operation: error.operation, errno });
            Ok(())
        }
    }
}

fn keep(program: u32, group: Option<&Group>, agent: &mut Agent, signals: &OwnedFd) -> Result<()> {
    let mut runs = true;
    loop {
        loop {
            match reap() {
                Reaped::Ended(pid, ending) if pid == program && runs => {
                    runs = false;
                    agent.tell_end(ending);
                }
                Reaped::Ended(..) => {}
                Reaped::Running => break,
                Reaped::Nobody => return Ok(()),
            }
        }
        let line = match agent.next(Some(signals)) {
            Event::Signal if !told_to_end(signals) => continue,
            Event::Signal | Event::Gone => "kill".into(),
            Event::Line(line) => String::from_utf8_lossy(&line).into_owned(),
        };
        if line == "kill" {
            return end_all(group, &mut |pid, ending| {
                if pid == program && runs {
                    agent.tell_end(ending);
                }
            });
        }
        // The agent has looked at the number; a program that has become another user's takes no signal.
        let number = line.strip_prefix("signal ").and_then(|number| number.parse().ok());
        if let Some(number) = number.filter(|_| runs) {
            let _ = process::signal(program, number);
        }
    }
}

/// Kills all descendants, those too that are made meanwhile, and waits for their end.
fn end_all(group: Option<&Group>, ended: &mut dyn FnMut(u32, Ending)) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        loop {
            match reap() {
                Reaped::Ended(pid, ending) => ended(pid, ending),
                Reaped::Running => break,
                Reaped::Nobody => return Ok(()),
            }
        }
        if Instant::now() >= until {
            return Err(OsError::errno("end what a program has started", 1));
        }
        if let Some(group) = group {
            let _ = group.kill();
        }
        kill_descendants();
        std::thread::sleep(PAUSE);
    }
}

/// What a keeper waits for.
enum Event {
    Line(Vec<u8>),
    Signal,
    /// The agent has ended.
    Gone,
}

/// The agent at the other end of the socket.
struct Agent {
    socket: UnixStream,
    pending: Vec<u8>,
}

impl Agent {
    /// What comes next; a signal only where there are any.
    fn next(&mut self, signals: Option<&OwnedFd>) -> Event {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return Event::Line(line[..end].to_vec());
            }
            let mut set = PollSet::default();
            let socket = set.add(self.socket.as_raw_fd(), true, false);
            let signalled = signals.map(|signals| set.add(signals.as_raw_fd(), true, false));
            if set.wait(None).is_err() {
                return Event::Gone;
            }
            if signalled.is_some_and(|place| set.readable(place)) {
                return Event::Signal;
            }
            let mut bytes = [0; 4096];
            if set.readable(socket) {
                match self.socket.read(&mut bytes) {
                    Ok(count) if count > 0 => self.pending.extend_from_slice(&bytes[..count]),
                    _ => return Event::Gone,
                }
            }
        }
    }

    fn tell(&mut self, message: &Told) {
        // An agent that is gone is noticed by the end of its socket.
        if let Ok(mut line) = serde_json::to_vec(message) {
            line.push(b'\n');
            let _ = self.socket.write_all(&line);
        }
    }

    fn tell_end(&mut self, Ending { exit_code, signal }: Ending) {
        self.tell(&Told::Ended { exit_code, signal });
    }
}
