//! Captures the headers of what passes a host's interfaces, and what its kernel counts meanwhile.
//!
//! One thread reads the rings of all interfaces ([`framegauge_linux::packet_ring`]) into a [`store`]; a second one
//! keeps an eye on the kernel ([`kernel`]). Neither ever makes traffic wait: what finds no room in a ring is counted.

pub mod interfaces;
pub mod kernel;
pub mod store;
mod thread;

use crate::own;
use framegauge_linux::error::Context;
use framegauge_linux::packet_ring::{PacketRing, RingSize};
use framegauge_linux::poll::Waker;
use framegauge_linux::{OsError, Result, clock, files};
pub use framegauge_packets::filter::{Filter, MOST_LEFT_OUT, MOST_PORTS};
use framegauge_packets::pcapng::{About, LINK_ETHERNET, LINK_IP, Section, Statistics};
pub use interfaces::Interface;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
pub use store::Kept;
use store::Store;

pub use framegauge_linux::packet_ring::socket;
pub use framegauge_linux::passing;

/// Larger than any aggregate (512 KiB, BIG TCP), so that it could be kept whole.
const BLOCK_BYTES: u32 = 1 << 20;
/// Of all interfaces together.
const BLOCKS: u32 = 32;
const LEAST_BLOCKS: u32 = 2;
const WAIT_MILLISECONDS: u32 = 50;
/// So many interfaces at once: each has a ring.
pub const MOST_INTERFACES: usize = 32;

/// What to capture.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The host's name, for the file.
    pub host: String,
    /// Where.
    pub interfaces: Vec<Interface>,
    /// What; `ethernet` is that of each interface.
    pub filter: Filter,
    /// How many bytes are kept at most.
    pub most_bytes: u64,
}

/// How far a capture is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct State {
    /// Seconds since it began.
    pub seconds: f64,
    /// Packets that it has taken.
    pub packets: u64,
    /// Their bytes on the wire.
    pub wire_bytes: u64,
    /// Packets that found no room in a ring.
    pub dropped_packets: u64,
    /// Bytes that are kept.
    pub kept_bytes: u64,
    /// Time on a CPU of the thread that reads the rings.
    pub cpu_seconds: f64,
}

/// What the packets of an interface came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Its name.
    pub interface: String,
    /// Packets that passed the filter.
    pub packets: u64,
    /// Those that found no room.
    pub dropped_packets: u64,
}

/// What a capture came to.
#[derive(Debug)]
pub struct Done {
    /// A whole file of pcapng.
    pub file: File,
    /// What is in it.
    pub kept: Kept,
    /// All that was taken.
    pub state: State,
    /// By interface.
    pub interfaces: Vec<Counted>,
    /// When it began, since 1970.
    pub start_nanoseconds: u64,
    /// When it ended.
    pub end_nanoseconds: u64,
}

/// What the thread and its owner share.
#[derive(Default)]
pub(crate) struct Shared {
    ending: AtomicBool,
    packets: AtomicU64,
    wire_bytes: AtomicU64,
    dropped: AtomicU64,
    kept_bytes: AtomicU64,
    cpu_nanoseconds: AtomicU64,
    failed: Mutex<Option<String>>,
}

/// A capture under way.
pub struct Capturing {
    shared: Arc<Shared>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<thread::Ended>>,
    head: Vec<u8>,
    section: Section,
    names: Vec<String>,
    began: u64,
    start_nanoseconds: u64,
}

impl Capturing {
    /// Begins, with a socket of [`socket`] for each interface.
    pub fn begin(request: &Asked, sockets: Vec<OwnedFd>) -> Result<Self> {
        let (mut head, snap_bytes) = (Vec::new(), request.filter.snap_bytes);
        let system = format!("Linux {}", own::kernel_release());
        let comment = format!("host {}", request.host);
        let about = About { system: Some(&system), comment: Some(&comment) };
        let mut section = Section::begin_about(&mut head, about);
        let blocks = (BLOCKS / request.interfaces.len().max(1) as u32).max(LEAST_BLOCKS);
        let size = RingSize {
            block_bytes: BLOCK_BYTES,
            blocks,
            wait_milliseconds: WAIT_MILLISECONDS,
            segments: false,
        };
        let (began, start_nanoseconds) = (clock::monotonic_nanoseconds(), clock::real_nanoseconds());
        let mut rings = Vec::new();
        for (interface, socket) in request.interfaces.iter().zip(sockets) {
            let link = if interface.ethernet { LINK_ETHERNET } else { LINK_IP };
            section.interface_with(&mut head, &interface.name, snap_bytes, link);
            let filter = Filter { ethernet: interface.ethernet, ..request.filter.clone() };
            let ring = PacketRing::start(socket, interface.index, &filter.program(), size);
            let ring = ring.map_err(|error| OsError {
                operation: format!("capture on {}: {}", interface.name, error.operation),
                source: error.source,
            })?;
            rings.push(thread::Tap { ring, ethernet: interface.ethernet, packets: 0, dropped: 0 });
        }
        let (shared, waker) = (Arc::<Shared>::default(), Arc::new(Waker::new()?));
        let reading = thread::Reading {
            taps: rings,
            store: Store::new(section.clone(), request.most_bytes),
            shared: shared.clone(),
            waker: waker.clone(),
            snap_bytes: snap_bytes as usize,
        };
        let thread = std::thread::Builder::new().name("tap".into()).spawn(move || reading.run());
        let thread = Some(thread.during("start a thread that captures")?);
        let names = request.interfaces.iter().map(|interface| interface.name.clone()).collect();
        Ok(Self { shared, waker, thread, head, section, names, began, start_nanoseconds })
    }

    /// How far it is; fails once it could not go on.
    pub fn state(&self) -> Result<State> {
        let failed = self.shared.failed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(reason) = failed {
            return Err(OsError { operation: "capture".into(), source: std::io::Error::other(reason) });
        }
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        Ok(State {
            seconds: clock::monotonic_nanoseconds().saturating_sub(self.began) as f64 * 1e-9,
            packets: count(&self.shared.packets),
            wire_bytes: count(&self.shared.wire_bytes),
            dropped_packets: count(&self.shared.dropped),
            kept_bytes: count(&self.shared.kept_bytes),
            cpu_seconds: count(&self.shared.cpu_nanoseconds) as f64 * 1e-9,
        })
    }

    /// Ends it with all that passed until now; of that only the last seconds are kept, if any are named.
    pub fn end(mut self, last_seconds: Option<f64>) -> Result<Done> {
        // A clock that was set back meanwhile must not make the capture end before it began.
        let end_nanoseconds = clock::real_nanoseconds().max(self.start_nanoseconds);
        self.stop();
        let ended = self.thread.take().and_then(|thread| thread.join().ok());
        let ended = ended.ok_or_else(|| OsError::errno("end a capture: its thread has ended early", 3))?;
        let state = self.state()?;
        let from = last_seconds.map_or(0, |seconds| end_nanoseconds.saturating_sub((seconds * 1e9) as u64));
        let (section, start) = (self.section.clone(), self.start_nanoseconds);
        let counts = &ended.counts;
        let (file, totals) = ended.store.finish(from, &self.head, |_| {
            let mut tail = Vec::new();
            for (interface, &[accepted_packets, dropped_packets]) in counts.iter().enumerate() {
                let statistics = Statistics {
                    interface: interface as u32,
                    start_nanoseconds: start,
                    end_nanoseconds,
                    accepted_packets,
                    dropped_packets,
                };
                section.statistics(&mut tail, &statistics);
            }
            tail
        })?;
        let names = std::mem::take(&mut self.names);
        let interfaces = names
            .into_iter()
            .zip(counts)
            .map(|(interface, &[packets, dropped_packets])| Counted { interface, packets, dropped_packets });
        let interfaces = interfaces.collect();
        Ok(Done { file, kept: totals, state, interfaces, start_nanoseconds: start, end_nanoseconds })
    }

    fn stop(&self) {
        self.shared.ending.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl Drop for Capturing {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The folder that a capture's files are in, and the bytes that are free there.
pub fn room() -> Result<(String, u64)> {
    let folder = std::env::temp_dir();
    Ok((folder.display().to_string(), files::free_bytes(&folder)?))
}
