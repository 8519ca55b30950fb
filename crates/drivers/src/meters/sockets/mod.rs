//! A watch on the TCP sockets of programs: a thread that looks at all of them many times a second, and is told by the
//! kernel which have come to their end.
//!
//! A look lists the namespace's sockets. Who holds one is found once, in `/proc/PID/fd` of the programs' trees, and
//! again only when a socket comes that is not known. A look that takes long makes the next one come later.

mod holders;

use framegauge_linux::error::Context;
use framegauge_linux::poll::{PollSet, Waker};
use framegauge_linux::sock_diag::{ConnectedSocket, Destroyed, ListeningSocket, Lister};
use framegauge_linux::{OsError, Result, clock, tree};
use framegauge_metering::connections::{Book, Counts, Sight};
pub use framegauge_metering::connections::{Role, Summary};
use holders::Holders;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// What a look may take of the time until the next one.
const LARGEST_SHARE: f64 = 0.005;
/// So many looks are made as was asked, whatever they take: most connections begin when the clients do.
const FIRST_LOOKS: u64 = 25;
/// How much the cost of one look weighs in the mean.
const WEIGHT: f64 = 0.2;
/// Notifications are read at least so often.
const LONGEST_PAUSE_SECONDS: f64 = 0.1;
/// The kernel tells of an end by a worker of its own, a moment later.
const LAST_WORDS_NANOSECONDS: u64 = 5_000_000;
/// Connections that are kept one by one.
const MOST_CONNECTIONS: usize = 10_000;
/// A socket whose holder was not found is looked for after 1, 2, 4 and so on looks, and no more after these.
const LAST_SEARCH: u64 = 64;

/// The processes of every tree, by the program's number.
pub type Trees = Box<dyn Fn() -> Vec<(u64, Vec<u32>)> + Send>;

/// What a watch came to.
#[derive(Debug)]
pub struct Watched {
    /// When it began, on CLOCK_MONOTONIC; all other times count from it.
    pub started_seconds: f64,
    /// How long it lasted.
    pub seconds: f64,
    /// What it took of a CPU.
    pub cpu_seconds: f64,
    /// How often it looked.
    pub looks: u64,
    /// What was seen, in the order of first sight; sums of many are last.
    pub sockets: Vec<Summary>,
    /// Programs whose sockets could not be asked, and why.
    pub unread: BTreeMap<Arc<str>, String>,
    /// How many connections are in sums.
    pub more: u64,
    /// Notifications that found no room; `None`: this kernel has none.
    pub lost: Option<u64>,
}

/// A watch under way.
pub struct SocketWatch {
    ending: Arc<(AtomicBool, Waker)>,
    thread: Option<JoinHandle<Result<Watched>>>,
}

impl SocketWatch {
    /// Begins to look every `interval_seconds`. `private`: the network namespace belongs to this host alone, so that
    /// all of its connections are those of programs.
    pub fn begin(trees: Trees, private: bool, interval_seconds: f64) -> Result<Self> {
        // Opened here, so that what does not work is told at once, and nothing is missed from now on.
        let lister = Lister::open()?;
        let destroyed = Destroyed::watch().ok();
        let book = Book::new(private, MOST_CONNECTIONS);
        let ending = Arc::new((AtomicBool::new(false), Waker::new()?));
        let mut watch = Watch {
            started: clock::monotonic_nanoseconds(),
            lister,
            destroyed,
            book,
            holders: Holders::new(trees),
            searched: BTreeMap::new(),
            looks: 0,
        };
        watch.look()?;
        let (end, thread) = (ending.clone(), std::thread::Builder::new().name("sockets".into()));
        let thread = thread.spawn(move || watch.run(interval_seconds, &end));
        Ok(Self { ending, thread: Some(thread.during("start a thread that looks at sockets")?) })
    }

    /// Looks once more and ends.
    pub fn end(mut self) -> Result<Watched> {
        self.stop();
        let ended = self.thread.take().and_then(|thread| thread.join().ok());
        ended
            .unwrap_or_else(|| Err(OsError::errno("end the watch on sockets: its thread has ended early", 3)))
    }

    fn stop(&self) {
        self.ending.0.store(true, Ordering::Release);
        self.ending.1.wake();
    }
}

impl Drop for SocketWatch {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Programs that could not be asked, and why.
pub type Unread = BTreeMap<Arc<str>, String>;

/// A socket that a process holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its own end.
    pub local: SocketAddr,
    /// The other.
    pub remote: SocketAddr,
    /// The id of the process; `None` where no process was found that holds it.
    pub process: Option<u64>,
    /// The process's name.
    pub program: Option<Arc<str>>,
    /// Whether TCP_NODELAY is set, which switches Nagle's algorithm off; `None` where it cannot be read.
    pub nodelay: Option<bool>,
}

/// Those of these connections that are still there, with the process of this machine that holds each; and programs that
/// could not be asked, and why.
pub fn holders_of(connections: &BTreeSet<(SocketAddr, SocketAddr)>) -> Result<(Vec<Held>, Unread)> {
    if connections.is_empty() {
        return Ok((Vec::new(), BTreeMap::new()));
    }
    // Each process is a tree of its own, numbered by its id.
    let mut holders = Holders::new(Box::new(|| tree::all().map(|pid| (u64::from(pid), vec![pid])).collect()));
    holders.search();
    let mut held = Vec::new();
    for socket in Lister::open()?.list()?.connected {
        if connections.contains(&(socket.local, socket.remote)) {
            let owner = holders.program(socket.inode);
            let program = owner.as_ref().map(|owner| owner.program.clone());
            let nodelay =
                program.as_ref().and_then(|program| holders.nodelay(socket.inode, socket.cookie, program));
            let (local, remote, process) = (socket.local, socket.remote, owner.map(|owner| owner.process));
            held.push(Held { local, remote, process, program, nodelay });
        }
    }
    Ok((held, holders.into_unread()))
}

struct Watch {
    started: u64,
    lister: Lister,
    destroyed: Option<Destroyed>,
    book: Book,
    holders: Holders,
    /// How many looks found a socket whose holder is not known, by cookie.
    searched: BTreeMap<u64, u64>,
    looks: u64,
}

impl Watch {
    fn now(&self) -> f64 {
        clock::monotonic_nanoseconds().saturating_sub(self.started) as f64 * 1e-9
    }

    fn run(mut self, interval_seconds: f64, ending: &(AtomicBool, Waker)) -> Result<Watched> {
        let (mut mean, mut pause_cpu) = (0.0, 0);
        while !ending.0.load(Ordering::Acquire) {
            let (began, used) = (self.now(), clock::thread_cpu_nanoseconds());
            self.look()?;
            // With what was heard in the pause before it.
            let cost = (clock::thread_cpu_nanoseconds().saturating_sub(used) + pause_cpu) as f64 * 1e-9;
            mean = if mean == 0.0 { cost } else { mean + WEIGHT * (cost - mean) };
            let paused = clock::thread_cpu_nanoseconds();
            let least = if self.looks < FIRST_LOOKS { 0.0 } else { mean / LARGEST_SHARE };
            self.pause(began + interval_seconds.max(least), ending)?;
            pause_cpu = clock::thread_cpu_nanoseconds().saturating_sub(paused);
        }
        self.look()?;
        clock::sleep(LAST_WORDS_NANOSECONDS);
        self.hear()?;
        let lost = self.destroyed.as_ref().map(Destroyed::lost).transpose()?;
        let seconds = self.now();
        let (sockets, more) = self.book.finish();
        Ok(Watched {
            started_seconds: self.started as f64 * 1e-9,
            seconds,
            cpu_seconds: clock::thread_cpu_nanoseconds() as f64 * 1e-9,
            looks: self.looks,
            sockets,
            unread: self.holders.into_unread(),
            more,
            lost,
        })
    }

    fn pause(&mut self, until_seconds: f64, ending: &(AtomicBool, Waker)) -> Result<()> {
        let mut set = PollSet::default();
        set.add(ending.1.raw(), true, false);
        loop {
            let left = until_seconds - self.now();
            if left <= 0.0 || ending.0.load(Ordering::Acquire) {
                return Ok(());
            }
            set.wait(Some((left.min(LONGEST_PAUSE_SECONDS) * 1e9) as u64))?;
            if left > LONGEST_PAUSE_SECONDS {
                self.hear()?;
            }
        }
    }

    fn look(&mut self) -> Result<()> {
        self.looks += 1;
        let listing = self.lister.list()?;
        let inodes = listing.connected.iter().map(|socket| (socket.cookie, socket.inode)).collect();
        let sights: Vec<Sight> = listing.connected.iter().map(sight).collect();
        if self.must_search(&inodes, &listing.listening) {
            self.holders.search();
        }
        for listener in listing.listening {
            if !self.book.knows_port(listener.port) {
                self.book.listens(listener.port, self.holders.program(listener.inode));
            }
        }
        let (now, holders) = (self.now(), &self.holders);
        self.book.look(now, &sights, |cookie| holders.holder(*inodes.get(&cookie)?));
        self.ask(&inodes);
        self.hear()
    }

    /// Whether a socket came whose holder is not known, or that is worth another search.
    fn must_search(&mut self, inodes: &BTreeMap<u64, u32>, listening: &[ListeningSocket]) -> bool {
        let mut must = false;
        // The kernel counts cookies up from 1, so that these are never those of connections.
        let listening = listening.iter().map(|socket| (u64::MAX - u64::from(socket.inode), socket.inode));
        let mut searched = BTreeMap::new();
        for (key, inode) in inodes.iter().map(|(cookie, inode)| (*cookie, *inode)).chain(listening) {
            if inode != 0 && !self.holders.knows(inode) {
                let times = self.searched.get(&key).copied().unwrap_or(0) + 1;
                must |= times.is_power_of_two() && times <= LAST_SEARCH;
                searched.insert(key, times);
            }
        }
        self.searched = searched;
        must
    }

    /// Reads TCP_NODELAY where it is due.
    fn ask(&mut self, inodes: &BTreeMap<u64, u32>) {
        for (cookie, inode) in inodes {
            if !self.book.asks_nodelay(*cookie) {
                continue;
            }
            let Some(owner) = self.book.owner(*cookie) else { continue };
            if let Some(nodelay) = self.holders.nodelay(*inode, *cookie, &owner.program.clone()) {
                self.book.nodelay(*cookie, nodelay);
            }
        }
    }

    /// Takes in what the kernel has told of sockets' ends.
    fn hear(&mut self) -> Result<()> {
        let Some(destroyed) = &self.destroyed else { return Ok(()) };
        let (sockets, now) = (destroyed.read()?, self.now());
        for socket in sockets {
            self.book.destroyed(now, &Sight { held: false, ..sight(&socket) });
        }
        Ok(())
    }
}

fn sight(socket: &ConnectedSocket) -> Sight {
    Sight {
        cookie: socket.cookie,
        local: socket.local,
        remote: socket.remote,
        congestion_control: socket.congestion_control.clone(),
        counts: socket.info.map(|info| Counts {
            mss_bytes: info.mss_bytes,
            sent_bytes: info.acknowledged_payload_bytes(),
            received_bytes: info.bytes_received,
        }),
        held: socket.inode != 0,
    }
}
