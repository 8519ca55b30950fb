//! A book of the TCP connections of programs: what was seen of each, from looks at live sockets and from the kernel's
//! word that one has come to its end.
//!
//! A connection is known by its cookie, which no other socket ever has. It begins with the first look that finds it, or
//! with its end, where it was shorter than the time between two looks. What it came to is kept one by one for the first
//! of them; of later ones only their sums remain once they are over.

mod summary;

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
pub use summary::{Role, Summary};

/// How long one that is gone from the looks may still be told of by the kernel.
const GRACE_SECONDS: f64 = 2.0;
/// The first looks at a connection all ask for what only its holder can tell, later ones every so often.
const FIRST_QUESTIONS: u64 = 3;
const QUESTION_EVERY: u64 = 10;

/// A program that the agent has started, or one of its tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The number of the tree.
    pub process: u64,
    /// Its name.
    pub program: Arc<str>,
}

/// Who holds a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// A program of the trees.
    Program(Owner),
    /// The agent itself, whose sockets are not those of programs.
    Agent,
}

/// A socket at one moment.
#[derive(Debug, Clone)]
pub struct Sight {
    /// The kernel's number of it.
    pub cookie: u64,
    /// Its own address.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// The congestion control in force, where it is told.
    pub congestion_control: Option<String>,
    /// The payload of a full segment, and what was sent and received until now; `None` when it is no longer told.
    pub counts: Option<Counts>,
    /// Whether a process holds it.
    pub held: bool,
}

/// What `tcp_info` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Payload of a full segment.
    pub mss_bytes: u32,
    /// Payload that the other end has acknowledged.
    pub sent_bytes: u64,
    /// What was received.
    pub received_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Alive,
    Vanished { since_seconds: f64 },
    Ended,
}

#[derive(Debug, Clone)]
struct Entry {
    owner: Option<Owner>,
    local: SocketAddr,
    remote: SocketAddr,
    congestion_control: Vec<Arc<str>>,
    nodelay: Vec<bool>,
    mss_bytes: Vec<u32>,
    sent_bytes: u64,
    received_bytes: u64,
    first_seconds: f64,
    last_seconds: f64,
    stage: Stage,
    looks: u64,
    last_look: u64,
}

/// The connections, and what is known of ports.
#[derive(Debug)]
pub struct Book {
    /// Every connection of the namespace is of some program: it belongs to this host alone.
    private: bool,
    /// How many are kept one by one.
    most: usize,
    look: u64,
    entries: HashMap<u64, Entry>,
    alive: Vec<u64>,
    /// Those beyond the most, of which sums remain.
    beyond: Vec<u64>,
    agents: HashSet<u64>,
    /// Summed up before the kernel told of their end: their programs hold them still, though nothing can come any more.
    forgotten: HashMap<u64, Entry>,
    ports: HashMap<u16, Option<Owner>>,
    sums: summary::Sums,
}

fn note<T: PartialEq>(values: &mut Vec<T>, value: T) {
    if !values.contains(&value) {
        values.push(value);
    }
}

impl Book {
    /// An empty one; `private`: the network namespace belongs to this host alone.
    pub fn new(private: bool, most: usize) -> Self {
        Self {
            private,
            most,
            look: 0,
            entries: HashMap::new(),
            alive: Vec::new(),
            beyond: Vec::new(),
            agents: HashSet::new(),
            forgotten: HashMap::new(),
            ports: HashMap::new(),
            sums: summary::Sums::default(),
        }
    }

    /// Whether it is known who listens on a port.
    pub fn knows_port(&self, port: u16) -> bool {
        self.ports.get(&port).is_some_and(Option::is_some)
    }

    /// Something listens on a port.
    pub fn listens(&mut self, port: u16, owner: Option<Owner>) {
        let known = self.ports.entry(port).or_default();
        if known.is_none() {
            *known = owner;
        }
    }

    /// Notes a look; `holder` says who holds a socket, where that was found.
    pub fn look(&mut self, now_seconds: f64, sights: &[Sight], holder: impl Fn(u64) -> Option<Holder>) {
        self.look += 1;
        for sight in sights {
            self.see(now_seconds, sight, &holder);
        }
        let (look, entries) = (self.look, &mut self.entries);
        self.alive.retain(|cookie| {
            let Some(entry) = entries.get_mut(cookie) else { return false };
            if entry.stage == Stage::Alive && entry.last_look != look {
                entry.stage = Stage::Vanished { since_seconds: now_seconds };
            }
            entry.stage == Stage::Alive
        });
        if !self.private {
            let cookies: HashSet<u64> = sights.iter().map(|sight| sight.cookie).collect();
            self.agents.retain(|cookie| cookies.contains(cookie));
        }
        self.sum_up(now_seconds, false);
    }

    fn see(&mut self, now_seconds: f64, sight: &Sight, holder: &impl Fn(u64) -> Option<Holder>) {
        let cookie = sight.cookie;
        if self.agents.contains(&cookie) || self.forgotten.contains_key(&cookie) {
            return;
        }
        let mut owner = self.entries.get(&cookie).and_then(|entry| entry.owner.clone());
        if owner.is_none() && sight.held {
            match holder(cookie) {
                Some(Holder::Agent) => {
                    self.agents.insert(cookie);
                    self.entries.remove(&cookie);
                    return;
                }
                Some(Holder::Program(program)) => owner = Some(program),
                None => {}
            }
        }
        let (known, ended) =
            self.entries.get(&cookie).map_or((false, false), |entry| (true, entry.stage == Stage::Ended));
        // What the kernel keeps of a connection for a while after its socket's end has no counts.
        let remnant = !sight.held && sight.counts.is_none() && !known;
        if owner.is_none() && !self.private || ended || remnant {
            return;
        }
        let look = self.look;
        let entry = self.entry(now_seconds, sight);
        entry.owner = owner;
        entry.last_seconds = now_seconds;
        (entry.looks, entry.last_look) = (entry.looks + 1, look);
        let was_gone = matches!(entry.stage, Stage::Vanished { .. });
        if was_gone {
            entry.stage = Stage::Alive;
        }
        entry.count(sight);
        if was_gone {
            self.alive.push(cookie);
        }
    }

    /// The entry of a socket, begun if need be.
    fn entry(&mut self, now_seconds: f64, sight: &Sight) -> &mut Entry {
        let number = self.entries.len();
        self.entries.entry(sight.cookie).or_insert_with(|| {
            self.alive.push(sight.cookie);
            if number >= self.most {
                self.beyond.push(sight.cookie);
            }
            Entry {
                owner: None,
                local: sight.local,
                remote: sight.remote,
                congestion_control: Vec::new(),
                nodelay: Vec::new(),
                mss_bytes: Vec::new(),
                sent_bytes: 0,
                received_bytes: 0,
                first_seconds: now_seconds,
                last_seconds: now_seconds,
                stage: Stage::Alive,
                looks: 0,
                last_look: 0,
            }
        })
    }

    /// Whether this look should ask the holder of a socket for TCP_NODELAY: programs set it after they have connected.
    pub fn asks_nodelay(&self, cookie: u64) -> bool {
        self.entries.get(&cookie).is_some_and(|entry| {
            let turn = entry.looks.wrapping_add(cookie) % QUESTION_EVERY == 0;
            entry.owner.is_some() && (entry.nodelay.is_empty() || entry.looks <= FIRST_QUESTIONS || turn)
        })
    }

    /// Who holds a socket, as far as it is known.
    pub fn owner(&self, cookie: u64) -> Option<&Owner> {
        self.entries.get(&cookie)?.owner.as_ref()
    }

    /// Notes TCP_NODELAY of a socket.
    pub fn nodelay(&mut self, cookie: u64, nodelay: bool) {
        if let Some(entry) = self.entries.get_mut(&cookie) {
            note(&mut entry.nodelay, nodelay);
        }
    }

    /// Notes that the kernel has told of a socket's end, with its last counts.
    pub fn destroyed(&mut self, now_seconds: f64, sight: &Sight) {
        let cookie = sight.cookie;
        let known = self.entries.contains_key(&cookie);
        if let Some(mut entry) = self.forgotten.remove(&cookie) {
            let before = entry.summary(&self.ports);
            entry.count(sight);
            entry.last_seconds = now_seconds;
            let after = entry.summary(&self.ports);
            let sent_bytes = after.sent_bytes - before.sent_bytes;
            let received_bytes = after.received_bytes - before.received_bytes;
            self.sums.add(Summary { connections: 0, sent_bytes, received_bytes, ..after });
            return;
        }
        if self.agents.remove(&cookie) || !known && !self.private {
            return;
        }
        let entry = self.entry(now_seconds, sight);
        entry.count(sight);
        entry.last_seconds = now_seconds;
        entry.stage = Stage::Ended;
    }

    /// Takes what is over, and was beyond the most, into the sums; `all`: also what is not over.
    fn sum_up(&mut self, now_seconds: f64, all: bool) {
        let (entries, sums, ports) = (&mut self.entries, &mut self.sums, &self.ports);
        let forgotten = &mut self.forgotten;
        self.beyond.retain(|cookie| {
            let Some(entry) = entries.get(cookie) else { return false };
            let over = match entry.stage {
                Stage::Alive => false,
                Stage::Vanished { since_seconds } => now_seconds - since_seconds >= GRACE_SECONDS,
                Stage::Ended => true,
            };
            if !over && !all {
                return true;
            }
            sums.add(entry.summary(ports));
            let ended = entry.stage == Stage::Ended;
            if let Some(entry) = entries.remove(cookie).filter(|_| !ended) {
                forgotten.insert(*cookie, entry);
            }
            false
        });
    }

    /// What all of it came to, in the order of first sight, the sums last; and how many connections are in sums.
    pub fn finish(mut self) -> (Vec<Summary>, u64) {
        self.sum_up(0.0, true);
        let mut all: Vec<Summary> = self.entries.values().map(|entry| entry.summary(&self.ports)).collect();
        all.sort_by(|one, other| {
            let ends = |summary: &Summary| (summary.local, summary.remote);
            one.first_seconds.total_cmp(&other.first_seconds).then_with(|| ends(one).cmp(&ends(other)))
        });
        let more = self.sums.connections();
        all.extend(self.sums.into_summaries());
        (all, more)
    }
}

impl Entry {
    fn count(&mut self, sight: &Sight) {
        if let Some(name) = &sight.congestion_control
            && !self.congestion_control.iter().any(|known| **known == **name)
        {
            self.congestion_control.push(name.as_str().into());
        }
        if let Some(counts) = sight.counts {
            note(&mut self.mss_bytes, counts.mss_bytes);
            self.sent_bytes = self.sent_bytes.max(counts.sent_bytes);
            self.received_bytes = self.received_bytes.max(counts.received_bytes);
        }
    }

    fn summary(&self, ports: &HashMap<u16, Option<Owner>>) -> Summary {
        let listener = ports.get(&self.local.port());
        let role = if listener.is_some() { Role::Server } else { Role::Client };
        let port = if role == Role::Server { self.local.port() } else { self.remote.port() };
        let (here, there) = (self.local.ip(), self.remote.ip());
        Summary {
            owner: self.owner.clone().or_else(|| listener.cloned().flatten()),
            local: Some(self.local),
            remote: Some(self.remote),
            role,
            port: Some(port),
            loopback: here.is_loopback() || there.is_loopback() || here == there,
            connections: 1,
            congestion_control: self.congestion_control.clone(),
            nodelay: self.nodelay.clone(),
            mss_bytes: self.mss_bytes.clone(),
            sent_bytes: self.sent_bytes,
            received_bytes: self.received_bytes,
            first_seconds: self.first_seconds,
            last_seconds: self.last_seconds,
        }
    }
}
