//! What the kernel counts and knows of connections while a capture is under way: a thread that looks ten times a second,
//! less often where a look takes long, and is told which connections have come to their end.

use crate::meters;
use framegauge_linux::error::Context;
use framegauge_linux::poll::{PollSet, Waker};
use framegauge_linux::sock_diag::{ConnectedSocket, Destroyed, Lister};
pub use framegauge_linux::tcp::TcpInfo;
use framegauge_linux::{OsError, Result, clock};
use framegauge_metering::Counters;
use framegauge_metering::trouble::{Limits, Seen, Watch};
pub use framegauge_metering::trouble::{SIGNS, Sign, named};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

const LOOK_NANOSECONDS: u64 = 100_000_000;
/// Connections are listed so often, for signs that only they show.
const LIST_NANOSECONDS: u64 = 1_000_000_000;
/// What listing connections may take of a CPU.
const LARGEST_SHARE: f64 = 0.01;
/// The kernel tells of an end by a worker of its own, a moment later.
const LAST_WORDS_NANOSECONDS: u64 = 5_000_000;
/// Connections that are told one by one: those that have moved most.
const MOST_CONNECTIONS: usize = 5_000;
/// Connections that are remembered at once; a host may have millions.
const MOST_REMEMBERED: usize = 200_000;
/// Connections that are named with trouble.
const MOST_NAMED: usize = 10;

/// A connection before and after, and when it came to its end.
#[derive(Debug, Clone, Copy)]
pub struct Connection {
    /// Its own end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// What was known at the beginning, of one that was there already.
    pub before: Option<TcpInfo>,
    /// What was known last.
    pub after: TcpInfo,
    /// It has come to its end.
    pub ended: bool,
}

/// Trouble that has come.
#[derive(Debug, Clone)]
pub struct Trouble {
    /// When, on CLOCK_MONOTONIC.
    pub time_nanoseconds: u64,
    /// By what it was seen.
    pub seen: Vec<Seen>,
    /// Connections that have sent again, or waited for the other end, since the last look at them; not all.
    pub connections: Vec<(SocketAddr, SocketAddr)>,
}

/// What was seen in all.
#[derive(Debug)]
pub struct Watched {
    /// Counters at the beginning, named as `nstat` names them.
    pub before: Counters,
    /// The same at the end.
    pub after: Counters,
    /// Connections that have moved, those that moved most first.
    pub connections: Vec<Connection>,
    /// Others that have.
    pub more: u64,
    /// Ends that the kernel could not tell of for want of room; `None`: it tells of none.
    pub lost: Option<u64>,
    /// The first trouble.
    pub trouble: Option<Trouble>,
    /// Time on a CPU of the thread.
    pub cpu_seconds: f64,
}

#[derive(Default)]
struct Shared {
    ending: AtomicBool,
    trouble: Mutex<Option<Trouble>>,
}

/// A watch under way.
pub struct KernelWatch {
    shared: Arc<Shared>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<Result<Watched>>>,
}

impl KernelWatch {
    /// Begins in this thread's network namespace, with an eye on these signs.
    pub fn begin(signs: Vec<(Sign, i64)>) -> Result<Self> {
        // Opened here, so that what does not work is told at once, and nothing is missed from now on.
        let (lister, destroyed) = (Lister::open()?, Destroyed::watch().ok());
        let before = meters::protocol_counters()?;
        let mut book = Book::default();
        lister.list()?.connected.iter().for_each(|socket| book.take(socket, true, false));
        let (shared, waker) = (Arc::<Shared>::default(), Arc::new(Waker::new()?));
        let looking = Looking {
            lister,
            destroyed,
            before,
            book,
            watch: Watch::new(signs),
            waited: Vec::new(),
            shared: shared.clone(),
            waker: waker.clone(),
        };
        let thread = std::thread::Builder::new().name("kernel watch".into()).spawn(move || looking.run());
        Ok(Self { shared, waker, thread: Some(thread.during("start a thread that looks at the kernel")?) })
    }

    /// The first trouble, once there is one.
    pub fn trouble(&self) -> Option<Trouble> {
        self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks once more and ends.
    pub fn end(mut self) -> Result<Watched> {
        self.stop();
        let ended = self.thread.take().and_then(|thread| thread.join().ok());
        ended.unwrap_or_else(|| {
            Err(OsError::errno("end the watch on the kernel: its thread has ended early", 3))
        })
    }

    fn stop(&self) {
        self.shared.ending.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl Drop for KernelWatch {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Looking {
    lister: Lister,
    destroyed: Option<Destroyed>,
    before: Counters,
    book: Book,
    watch: Watch,
    /// How long each connection waited before it was looked at last.
    waited: Vec<(u64, SocketAddr, SocketAddr)>,
    shared: Arc<Shared>,
    waker: Arc<Waker>,
}

impl Looking {
    fn run(mut self) -> Result<Watched> {
        let mut due = clock::monotonic_nanoseconds();
        let mut list_due = due + LIST_NANOSECONDS;
        self.look(&self.before.clone());
        while !self.shared.ending.load(Ordering::Acquire) {
            due += LOOK_NANOSECONDS;
            self.pause(due)?;
            self.hear()?;
            let mut sightings = Vec::new();
            if self.watch.wants_counters() {
                sightings = self.look(&meters::protocol_counters()?);
            }
            let now = clock::monotonic_nanoseconds();
            if self.watch.wants_connections() && now >= list_due {
                let used = clock::thread_cpu_nanoseconds();
                let moved = self.list()?;
                sightings.extend(self.watch.look_at_limits(moved.into_iter()));
                let cost = (clock::thread_cpu_nanoseconds() - used) as f64 / LARGEST_SHARE;
                list_due = now + LIST_NANOSECONDS.max(cost as u64);
            }
            self.note(sightings)?;
            due = due.max(clock::monotonic_nanoseconds().saturating_sub(LOOK_NANOSECONDS));
        }
        self.finish()
    }

    fn pause(&self, due: u64) -> Result<()> {
        let mut set = PollSet::default();
        set.add(self.waker.raw(), true, false);
        set.wait(Some(due.saturating_sub(clock::monotonic_nanoseconds())))
    }

    fn look(&mut self, counters: &Counters) -> Vec<Seen> {
        self.watch.look(clock::monotonic_nanoseconds(), counters)
    }

    /// Takes in all connections; how each was limited since the last time.
    fn list(&mut self) -> Result<Vec<Limits>> {
        let listing = self.lister.list()?;
        let mut moved = Vec::new();
        self.waited.clear();
        for socket in &listing.connected {
            let (Some(info), before) = (socket.info, self.book.last(socket.cookie)) else { continue };
            let now = limits(&info).since(before.map_or(Limits::default(), |before| limits(&before)));
            self.waited.push((waited(now), socket.local, socket.remote));
            moved.push(now);
            self.book.take(socket, false, false);
        }
        Ok(moved)
    }

    /// Takes in what the kernel has told of connections' ends.
    fn hear(&mut self) -> Result<()> {
        let Some(destroyed) = &self.destroyed else { return Ok(()) };
        destroyed.read()?.iter().for_each(|socket| self.book.take(socket, false, true));
        Ok(())
    }

    /// Keeps the first trouble, with connections that may have it.
    fn note(&mut self, sightings: Vec<Seen>) -> Result<()> {
        if sightings.is_empty()
            || self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).is_some()
        {
            return Ok(());
        }
        let time_nanoseconds = clock::monotonic_nanoseconds();
        let connections = self.suspects()?;
        let trouble = Trouble { time_nanoseconds, seen: sightings, connections };
        *self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(trouble);
        Ok(())
    }

    /// Connections that have sent again or were limited since they were looked at last.
    fn suspects(&mut self) -> Result<Vec<(SocketAddr, SocketAddr)>> {
        let listing = self.lister.list()?;
        let mut candidates: Vec<(u64, SocketAddr, SocketAddr)> = Vec::new();
        for socket in &listing.connected {
            let Some(info) = socket.info else { continue };
            let before = self.book.last(socket.cookie).unwrap_or_default();
            let resends = u64::from(info.retransmits.saturating_sub(before.retransmits));
            let weight = resends * 1_000_000 + waited(limits(&info).since(limits(&before)));
            candidates.push((weight, socket.local, socket.remote));
        }
        candidates.append(&mut self.waited);
        candidates.retain(|(weight, ..)| *weight > 0);
        candidates.sort_by_key(|(weight, ..)| std::cmp::Reverse(*weight));
        let mut pairs = Vec::new();
        for (_, local, remote) in candidates {
            if pairs.len() < MOST_NAMED && !pairs.contains(&(local, remote)) {
                pairs.push((local, remote));
            }
        }
        Ok(pairs)
    }

    fn finish(mut self) -> Result<Watched> {
        self.list()?;
        clock::sleep(LAST_WORDS_NANOSECONDS);
        self.hear()?;
        let lost = self.destroyed.as_ref().map(Destroyed::lost).transpose()?;
        let (connections, more) = self.book.finish();
        let trouble = self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(Watched {
            before: self.before,
            after: meters::protocol_counters()?,
            connections,
            more,
            lost,
            trouble,
            cpu_seconds: clock::thread_cpu_nanoseconds() as f64 * 1e-9,
        })
    }
}

/// Microseconds for which the other end, or the send buffer, was the limit.
fn waited(limits: Limits) -> u64 {
    (limits.receiver_seconds.max(limits.buffer_seconds) * 1e6) as u64
}

fn limits(info: &TcpInfo) -> Limits {
    Limits {
        busy_seconds: info.busy_seconds,
        receiver_seconds: info.receiver_limited_seconds,
        buffer_seconds: info.buffer_limited_seconds,
    }
}

/// Connections by the kernel's number of them.
#[derive(Default)]
struct Book {
    known: HashMap<u64, Connection>,
    more: u64,
}

impl Book {
    fn last(&self, cookie: u64) -> Option<TcpInfo> {
        self.known.get(&cookie).map(|connection| connection.after)
    }

    fn take(&mut self, socket: &ConnectedSocket, is_first: bool, ended: bool) {
        let Some(info) = socket.info else { return };
        if let Some(connection) = self.known.get_mut(&socket.cookie) {
            (connection.after, connection.ended) = (info, connection.ended | ended);
        } else if self.known.len() < MOST_REMEMBERED {
            let (local, remote) = (socket.local, socket.remote);
            let before = is_first.then_some(info);
            self.known.insert(socket.cookie, Connection { local, remote, before, after: info, ended });
        } else {
            self.more += 1;
        }
    }

    fn finish(self) -> (Vec<Connection>, u64) {
        let mut moved: Vec<Connection> =
            self.known.into_values().filter(|connection| weight(connection) > 0).collect();
        moved.sort_by_key(|connection| {
            (std::cmp::Reverse(weight(connection)), connection.local, connection.remote)
        });
        let more = self.more + moved.len().saturating_sub(MOST_CONNECTIONS) as u64;
        moved.truncate(MOST_CONNECTIONS);
        (moved, more)
    }
}

/// What a connection has moved: bytes both ways; a new one counts at least as one.
fn weight(connection: &Connection) -> u64 {
    let bytes = |info: &TcpInfo| info.bytes_sent.max(info.bytes_acked) + info.bytes_received;
    match connection.before {
        Some(before) => bytes(&connection.after).saturating_sub(bytes(&before)),
        None => bytes(&connection.after).max(1),
    }
}
