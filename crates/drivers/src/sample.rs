//! Samples the headers of what passes a host's interfaces, within bounds that no load exceeds.
//!
//! One thread opens a window on all interfaces, in which the kernel fills a small ring for each: every packet until the
//! window is over or the ring is full, so that none is missing in between. Then a filter that takes nothing is in force,
//! the ring is read, and the next window waits until the thread's own time on a CPU is a small share of all time.

use crate::tap::Interface;
use framegauge_frames::Family;
use framegauge_linux::error::Context;
use framegauge_linux::packet_ring::{PacketRing, RingPacket, RingSize};
use framegauge_linux::poll::{PollSet, Waker};
use framegauge_linux::{OsError, Result, clock};
pub use framegauge_metering::foreign::{Class, Foreign, Lengths};
pub use framegauge_metering::sizes::{Carried, Connection, Kind, Packet, Sizes, Total, Way};
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::{Checksums, Decoded, LinkType, Outside, Record, Segment, decode, outside};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Enough for the headers of TCP in IPv6 in a tunnel.
const SNAP_BYTES: u32 = 160;
/// Of one ring: some 4,000 packets.
const BLOCK_BYTES: u32 = 1 << 17;
const BLOCKS: u32 = 8;
const WAIT_MILLISECONDS: u32 = 20;
/// A window of a ring that does not fill.
const WINDOW_NANOSECONDS: u64 = 100_000_000;
/// Whether the rings are full is looked at so often.
const LOOK_NANOSECONDS: u64 = 5_000_000;
/// After a window, until the kernel has handed over a block that is not full.
const LAST_NANOSECONDS: u64 = 2 * WAIT_MILLISECONDS as u64 * 1_000_000;
/// What the thread may take of a CPU.
const LARGEST_SHARE: f64 = 0.01;
/// In a sample; no more windows are opened then.
const MOST_PACKETS: u64 = 5_000_000;
/// The header of datagrams, by which their aggregates are cut, behind that of IP.
const UDP_BYTES: u32 = 8;
/// BPF: return so many bytes of a packet.
const RETURN: u16 = 0x06;

/// What to sample.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Where, with the MTU of each.
    pub interfaces: Vec<(Interface, u32)>,
    /// Larger MTUs.
    pub targets: Vec<u32>,
    /// A connection that is left out: the client's and the server's end.
    pub left_out: Option<(SocketAddr, SocketAddr)>,
}

/// What a sample came to.
#[derive(Debug)]
pub struct Sampled {
    /// Of each interface.
    pub sizes: Vec<Sizes>,
    /// Windows that were opened.
    pub windows: u64,
    /// Of these, those that ended because a ring was full.
    pub full_windows: u64,
    /// How long they were together.
    pub window_seconds: f64,
    /// The time of the thread on a CPU.
    pub cpu_seconds: f64,
}

/// A sample under way.
pub struct Sampling {
    ending: Arc<(AtomicBool, Waker)>,
    thread: Option<JoinHandle<Result<Sampled>>>,
}

impl Sampling {
    /// Begins, with a socket of [`crate::tap::socket`] for each interface.
    pub fn begin(request: &Asked, sockets: Vec<OwnedFd>) -> Result<Self> {
        let size = RingSize {
            block_bytes: BLOCK_BYTES,
            blocks: BLOCKS,
            wait_milliseconds: WAIT_MILLISECONDS,
            segments: true,
        };
        let mut taps = Vec::new();
        for ((interface, mtu), socket) in request.interfaces.iter().zip(sockets) {
            let ring = PacketRing::start(socket, interface.index, &taking(0), size);
            let ring = ring.map_err(|error| OsError {
                operation: format!("sample {}: {}", interface.name, error.operation),
                source: error.source,
            })?;
            let link = if interface.ethernet { LinkType::Ethernet } else { LinkType::Ip };
            taps.push(Tap { ring, link, sizes: Sizes::new(*mtu, &request.targets) });
        }
        let ending = Arc::new((AtomicBool::new(false), Waker::new()?));
        let left_out = request.left_out;
        let reading =
            Reading { taps, left_out, ending: ending.clone(), packets: 0, windows: 0, full_windows: 0 };
        // Open from now on, whenever a busy host lets the thread begin.
        let opened = reading.open()?;
        let thread = std::thread::Builder::new().name("sample".into()).spawn(move || reading.run(opened));
        Ok(Self { ending, thread: Some(thread.during("start a thread that samples")?) })
    }

    /// Ends the window that is open, and the sample.
    pub fn end(mut self) -> Result<Sampled> {
        self.stop();
        let ended = self.thread.take().and_then(|thread| thread.join().ok());
        ended.unwrap_or_else(|| Err(OsError::errno("end a sample: its thread has ended early", 3)))
    }

    fn stop(&self) {
        self.ending.0.store(true, Ordering::Release);
        self.ending.1.wake();
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A filter that takes so many bytes of every packet; 0: it takes none.
fn taking(bytes: u32) -> [(u16, u8, u8, u32); 1] {
    [(RETURN, 0, 0, bytes)]
}

struct Tap {
    ring: PacketRing,
    link: LinkType,
    sizes: Sizes,
}

struct Reading {
    taps: Vec<Tap>,
    left_out: Option<(SocketAddr, SocketAddr)>,
    ending: Arc<(AtomicBool, Waker)>,
    packets: u64,
    windows: u64,
    full_windows: u64,
}

impl Reading {
    /// Reads what comes, in windows; the first has been open since `began`.
    fn run(mut self, mut began: u64) -> Result<Sampled> {
        let mut window_nanoseconds = 0;
        loop {
            let used = clock::thread_cpu_nanoseconds();
            self.wait_until(began + WINDOW_NANOSECONDS, true)?;
            self.full_windows += u64::from(self.is_full());
            self.filter(0)?;
            let until = clock::real_nanoseconds();
            window_nanoseconds += clock::monotonic_nanoseconds().saturating_sub(began);
            self.windows += 1;
            clock::sleep(LAST_NANOSECONDS);
            self.read(until);
            let cost = clock::thread_cpu_nanoseconds().saturating_sub(used);
            self.wait_until(began + (cost as f64 / LARGEST_SHARE) as u64, false)?;
            if self.is_ending() || self.packets >= MOST_PACKETS {
                break;
            }
            began = self.open()?;
        }
        Ok(Sampled {
            sizes: self.taps.into_iter().map(|tap| tap.sizes).collect(),
            windows: self.windows,
            full_windows: self.full_windows,
            window_seconds: window_nanoseconds as f64 * 1e-9,
            cpu_seconds: clock::thread_cpu_nanoseconds() as f64 * 1e-9,
        })
    }

    /// Opens a window; the time at which it was opened.
    fn open(&self) -> Result<u64> {
        let began = clock::monotonic_nanoseconds();
        self.filter(SNAP_BYTES)?;
        Ok(began)
    }

    fn is_ending(&self) -> bool {
        self.ending.0.load(Ordering::Acquire)
    }

    fn is_full(&self) -> bool {
        self.taps.iter().any(|tap| tap.ring.is_full())
    }

    fn filter(&self, bytes: u32) -> Result<()> {
        self.taps.iter().try_for_each(|tap| tap.ring.filter(&taking(bytes)))
    }

    /// Waits; `window`: no longer than until a ring is full, after which other rings would have what it lacks.
    fn wait_until(&self, until: u64, window: bool) -> Result<()> {
        let mut set = PollSet::default();
        set.add(self.ending.1.raw(), true, false);
        loop {
            let left = until.saturating_sub(clock::monotonic_nanoseconds());
            if left == 0 || self.is_ending() || (window && self.is_full()) {
                return Ok(());
            }
            set.wait(Some(if window { left.min(LOOK_NANOSECONDS) } else { left }))?;
        }
    }

    /// Reads a window that ended then, by the clock of packets.
    fn read(&mut self, until: u64) {
        let left_out = self.left_out;
        for tap in &mut self.taps {
            let (mut packets, link) = (Vec::new(), tap.link);
            while tap.ring.take(|packet| packets.extend(read_packet(packet, link, left_out))) {}
            self.packets += packets.len() as u64;
            tap.sizes.window(&packets, until);
        }
    }
}

/// What a packet of a ring is; `None` for one of the connection that is left out.
fn read_packet(
    packet: &RingPacket<'_>,
    link: LinkType,
    left_out: Option<(SocketAddr, SocketAddr)>,
) -> Option<Packet> {
    let network = packet.network.min(packet.bytes.len());
    let before = if link == LinkType::Ethernet { 0 } else { network };
    let captured = &packet.bytes[before..];
    let original_bytes = packet.original_bytes.saturating_sub(before as u32);
    let record = Record { number: 1, nanoseconds: 0, link, interface: 0, captured, original_bytes };
    let bytes = packet.original_bytes.saturating_sub(network as u32);
    let (outgoing, segment_bytes) = (packet.outgoing, packet.segment_bytes);
    let nanoseconds = packet.time_nanoseconds;
    let Decoded::Tcp(segment) = decode(&record, Checksums::Ignore) else {
        let foreign = foreign(&record);
        let family = if foreign.is_v6 { Family::V6 } else { Family::V4 };
        return Some(Packet {
            outgoing,
            ends: None,
            kind: Kind::Other,
            bytes,
            payload_bytes: bytes.saturating_sub(family.header_bytes() + UDP_BYTES),
            segment_bytes,
            numbers: (0, 0),
            pushed: false,
            nanoseconds,
            foreign: Some(foreign),
        });
    };
    if left_out.is_some_and(|pair| is_between(&segment, pair)) {
        return None;
    }
    let ends =
        if outgoing { (segment.source, segment.destination) } else { (segment.destination, segment.source) };
    // A frame of the least size may be padded behind the IP packet.
    let bytes = if segment.payload_bytes == 0 { segment.ip_bytes } else { bytes };
    let payload_bytes = segment.payload_bytes;
    let (ends, kind, numbers) = (Some(ends), kind(&segment), (segment.seq, segment.ack));
    let (pushed, foreign) = (segment.flags.contains(TcpFlags::PSH), None);
    Some(Packet {
        outgoing,
        ends,
        kind,
        bytes,
        payload_bytes,
        segment_bytes,
        numbers,
        pushed,
        nanoseconds,
        foreign,
    })
}

/// What a packet is in which no TCP can be read.
fn foreign(record: &Record<'_>) -> Foreign {
    match outside(record) {
        Some(Outside::Packet { is_v6, protocol, datagram }) => Foreign::of(is_v6, protocol, datagram),
        Some(Outside::Fragment) => Foreign::FRAGMENT,
        None => Foreign::NO_IP,
    }
}

fn is_between(segment: &Segment, (one, other): (SocketAddr, SocketAddr)) -> bool {
    (segment.source, segment.destination) == (one, other)
        || (segment.source, segment.destination) == (other, one)
}

fn kind(segment: &Segment) -> Kind {
    const NO_ACKNOWLEDGEMENTS: [TcpFlags; 2] = [TcpFlags::FIN, TcpFlags::RST];
    if segment.flags.contains(TcpFlags::SYN) {
        return Kind::Opening;
    }
    match segment.payload_bytes {
        0 if NO_ACKNOWLEDGEMENTS.iter().any(|flag| segment.flags.contains(*flag)) => Kind::Other,
        0 => Kind::Acknowledgement,
        _ => Kind::Data,
    }
}
