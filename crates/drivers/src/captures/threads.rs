//! A capture that can be read only once, read by several threads, which say what one would.
//!
//! ```text
//!   reader ──> batch of packets ──> share 1 ──> rows      each share has its connections whole, and sees their
//!   (whoever is free)          ├──> share 2 ──> rows      packets in order; whoever is free takes the share
//!                              └──> ...                   with most batches, or reads on
//! ```
//!
//! The reader looks at no more of a packet than the ends of its connection. Each share decodes its own packets, in its turn:
//! only one thread at a time has it.

use super::front::{Front, Summary};
use super::shares::{Found, Seen, Share};
use framegauge_diagnosis::{Clock, Thresholds};
use framegauge_packets::capture::{Checksums, Decoded, LinkType, Record, Segment, decode};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

/// Shares for each thread: so many that one with much to do finds the others at work.
const SHARES: usize = 2;
/// Packets of a batch, and bytes after which it takes no more: some of them fit into a core's own cache,
/// beside connections.
const BATCH_PACKETS: usize = 512;
const BATCH_BYTES: usize = 1 << 16;
/// Batches that wait, for each thread.
const BATCHES: usize = 2;

/// A packet in a batch.
#[derive(Debug)]
struct Packet {
    number: u64,
    nanoseconds: i64,
    /// The capture's clock at it.
    now: i64,
    captured: u32,
    original: u32,
    tap: Option<u8>,
    link: LinkType,
    /// The segment, where that came in IP fragments: it has no bytes here.
    whole: Option<Box<(Segment, Seen)>>,
}

/// The packets of one share, one behind the other, as they are read again.
#[derive(Debug, Default)]
struct Part {
    packets: Vec<Packet>,
    bytes: Vec<u8>,
}

/// Packets that were read.
#[derive(Debug)]
pub(super) struct Batch {
    parts: Vec<Part>,
    packets: usize,
    bytes: usize,
    /// By tap.
    origins: Vec<i64>,
}

impl Batch {
    fn new(shares: usize) -> Batch {
        let parts = (0..shares).map(|_| Part::default()).collect();
        Batch { parts, packets: 0, bytes: 0, origins: Vec::new() }
    }

    pub(super) fn clear(&mut self) {
        (self.packets, self.bytes) = (0, 0);
        for part in &mut self.parts {
            part.packets.clear();
            part.bytes.clear();
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.packets < BATCH_PACKETS && self.bytes < BATCH_BYTES
    }

    /// Adds a packet of a share, at this time of the capture, and tells its place.
    pub(super) fn add(
        &mut self,
        record: &Record<'_>,
        own: usize,
        tap: Option<usize>,
        now: i64,
    ) -> (usize, usize) {
        let part = &mut self.parts[own];
        part.packets.push(Packet {
            number: record.number,
            nanoseconds: record.nanoseconds,
            now,
            captured: record.captured.len() as u32,
            original: record.original_bytes,
            tap: tap.map(|tap| tap as u8),
            link: record.link,
            whole: None,
        });
        part.bytes.extend_from_slice(record.captured);
        self.packets += 1;
        self.bytes += record.captured.len();
        (own, self.parts[own].packets.len() - 1)
    }

    /// Adds a segment that came in IP fragments.
    pub(super) fn add_whole(&mut self, own: usize, segment: Segment, seen: Seen) {
        self.parts[own].packets.push(Packet {
            number: seen.number,
            nanoseconds: segment.nanoseconds,
            now: seen.clock.now,
            captured: 0,
            original: 0,
            tap: None,
            link: LinkType::Ip,
            whole: Some(Box::new((segment, seen))),
        });
        self.packets += 1;
    }

    /// The tap of a packet that was added before it was known.
    pub(super) fn settle(&mut self, (own, place): (usize, usize), tap: Option<usize>) {
        self.parts[own].packets[place].tap = tap.map(|tap| tap as u8);
    }

    /// Gives a share what is its own.
    fn give(&self, own: usize, share: &mut Share) {
        let part = &self.parts[own];
        let mut rest = &part.bytes[..];
        for packet in &part.packets {
            if let Some(whole) = &packet.whole {
                let (segment, seen) = **whole;
                share.take(&Decoded::Tcp(segment), seen);
                continue;
            }
            let captured;
            (captured, rest) = rest.split_at(packet.captured as usize);
            let record = Record {
                number: packet.number,
                nanoseconds: packet.nanoseconds,
                link: packet.link,
                // Of which the tap is known.
                interface: 0,
                captured,
                original_bytes: packet.original,
            };
            let decoded = &decode(&record, Checksums::Verify);
            let tap = packet.tap.map(usize::from);
            let origin = tap.map_or(0, |tap| self.origins[tap]);
            let clock = Clock { origin, now: packet.now };
            let (captured_bytes, original_bytes) = (packet.captured as usize, packet.original as usize);
            share.take(decoded, Seen { tap, number: packet.number, clock, captured_bytes, original_bytes });
        }
    }
}

/// What the threads have in common.
struct State {
    /// Whoever reads has it.
    front: Option<Front>,
    has_ended: bool,
    /// Of each share: what waits for it, and itself if nobody has it.
    waiting: Vec<VecDeque<Arc<Batch>>>,
    shares: Vec<Option<Share>>,
    /// Batches that somebody has or that wait, and those that may be filled again.
    batches: usize,
    spare: Vec<Batch>,
    found: Vec<Option<Result<Found, String>>>,
    /// Threads that wait for something to do.
    idle: usize,
    /// A thread has panicked, and what it had never comes back.
    is_broken: bool,
}

/// What a thread does next.
enum Task {
    Read(Front, Batch),
    Take(usize, Share, VecDeque<Arc<Batch>>),
    Finish(usize, Share),
    Wait,
    Leave,
}

impl State {
    /// Each thread has shares of its own, whose connections are in its core's cache, and takes others if those have nothing
    /// to do.
    fn next(&mut self, thread: usize, threads: usize) -> Task {
        if self.is_broken {
            return Task::Leave;
        }
        // Enough for all to do, before anything is done.
        if self.batches < threads
            && let Some(task) = self.read(threads)
        {
            return task;
        }
        let ready = (0..self.shares.len()).filter(|number| self.shares[*number].is_some());
        let urgency = |number: &usize| {
            let waiting = self.waiting[*number].len();
            (waiting > 0, number % threads == thread, waiting)
        };
        if let Some(number) = ready.max_by_key(urgency)
            && let Some(share) = self.shares[number].take()
        {
            if !self.waiting[number].is_empty() {
                return Task::Take(number, share, std::mem::take(&mut self.waiting[number]));
            }
            if self.has_ended {
                return Task::Finish(number, share);
            }
            self.shares[number] = Some(share);
        }
        if let Some(task) = self.read(threads) {
            return task;
        }
        let is_done = self.has_ended && self.waiting.iter().all(VecDeque::is_empty);
        if is_done { Task::Leave } else { Task::Wait }
    }

    fn read(&mut self, threads: usize) -> Option<Task> {
        if self.has_ended || self.batches >= threads * BATCHES {
            return None;
        }
        let front = self.front.take()?;
        self.batches += 1;
        let batch = self.spare.pop().unwrap_or_else(|| Batch::new(self.shares.len()));
        Some(Task::Read(front, batch))
    }
}

/// Reads all packets of a capture with so many threads, of which this is one. At most `room` connections live in memory.
pub(super) fn read(
    front: Front,
    limits: Thresholds,
    room: usize,
    threads: usize,
) -> Result<(Summary, Vec<Found>), String> {
    let shares = threads * SHARES;
    let state = Mutex::new(State {
        front: Some(front.divided(shares)),
        has_ended: false,
        waiting: vec![VecDeque::new(); shares],
        shares: (0..shares).map(|_| Some(Share::new(limits, (room / shares).max(1)))).collect(),
        batches: 0,
        spare: Vec::new(),
        found: (0..shares).map(|_| None).collect(),
        idle: 0,
        is_broken: false,
    });
    let changed = Condvar::new();
    thread::scope(|scope| {
        let (state, changed) = (&state, &changed);
        for thread in 1..threads {
            scope.spawn(move || work(state, changed, (thread, threads)));
        }
        work(state, changed, (0, threads));
    });
    let state = state.into_inner().expect(NO_PANIC);
    let summary = state.front.expect("whoever reads gives it back").finish()?;
    let results: Result<Vec<Found>, String> =
        state.found.into_iter().map(|result| result.expect("every share is finished")).collect();
    Ok((summary, results?))
}

const NO_PANIC: &str = "no thread panics while it has the state";

/// Tells the others if its thread panics: they would wait for ever.
struct Alarm<'a>(&'a Mutex<State>, &'a Condvar);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            if let Ok(mut state) = self.0.lock() {
                state.is_broken = true;
            }
            self.1.notify_all();
        }
    }
}

fn work(state: &Mutex<State>, changed: &Condvar, (thread, threads): (usize, usize)) {
    let _alarm = Alarm(state, changed);
    let mut guard = state.lock().expect(NO_PANIC);
    loop {
        guard = match guard.next(thread, threads) {
            Task::Leave => return,
            Task::Wait => {
                guard.idle += 1;
                guard = changed.wait(guard).expect(NO_PANIC);
                guard.idle -= 1;
                continue;
            }
            Task::Read(front, batch) => {
                drop(guard);
                fill(state, front, batch)
            }
            Task::Take(number, mut share, batches) => {
                drop(guard);
                batches.iter().for_each(|batch| batch.give(number, &mut share));
                let mut guard = state.lock().expect(NO_PANIC);
                guard.shares[number] = Some(share);
                for batch in batches {
                    // The last one that has it gives it back.
                    if let Some(batch) = Arc::into_inner(batch) {
                        guard.batches -= 1;
                        guard.spare.push(batch);
                    }
                }
                guard
            }
            Task::Finish(number, share) => {
                drop(guard);
                let result = share.finish();
                let mut guard = state.lock().expect(NO_PANIC);
                guard.found[number] = Some(result);
                guard
            }
        };
        if guard.idle > 0 {
            changed.notify_all();
        }
    }
}

/// Reads a batch, and has it wait for its shares.
fn fill<'a>(state: &'a Mutex<State>, mut front: Front, mut batch: Batch) -> MutexGuard<'a, State> {
    let goes_on = front.fill(&mut batch);
    batch.origins = front.places.origins();
    let batch = Arc::new(batch);
    let mut guard = state.lock().expect(NO_PANIC);
    for (number, part) in batch.parts.iter().enumerate() {
        if !part.packets.is_empty() {
            guard.waiting[number].push_back(Arc::clone(&batch));
        }
    }
    if let Some(batch) = Arc::into_inner(batch) {
        guard.batches -= 1;
        guard.spare.push(batch);
    }
    guard.front = Some(front);
    guard.has_ended = !goes_on;
    guard
}
