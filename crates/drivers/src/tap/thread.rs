//! The thread that reads the rings of a capture.

use super::Shared;
use super::store::Store;
use framegauge_linux::packet_ring::{PacketRing, RingPacket};
use framegauge_linux::poll::{PollSet, Waker};
use framegauge_linux::{Result, clock};
use framegauge_packets::pcapng::{Captured, Direction};
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

const PAUSE_NANOSECONDS: u64 = 100_000_000;
/// After its end, blocks that are not full are still handed over, each within a ring's wait.
const LAST_NANOSECONDS: u64 = 150_000_000;
/// Of one ring, before the next has its turn.
const BLOCKS_AT_ONCE: u32 = 8;
/// Where a VLAN tag is put back: behind the two addresses.
const TAG_PLACE: usize = 12;
const TAG_BYTES: usize = 4;

/// The ring of one interface, and how many packets were taken there, or found no room.
pub(super) struct Tap {
    pub(super) ring: PacketRing,
    pub(super) ethernet: bool,
    pub(super) packets: u64,
    pub(super) dropped: u64,
}

pub(super) struct Reading {
    pub(super) taps: Vec<Tap>,
    pub(super) store: Store,
    pub(super) shared: Arc<Shared>,
    pub(super) waker: Arc<Waker>,
    pub(super) snap_bytes: usize,
}

/// What the thread leaves.
pub(super) struct Ended {
    pub(super) store: Store,
    /// By interface: packets that passed the filter, and those of them that found no room.
    pub(super) counts: Vec<[u64; 2]>,
}

impl Reading {
    pub(super) fn run(mut self) -> Ended {
        if let Err(error) = self.read() {
            *self.shared.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        }
        self.shared.cpu_nanoseconds.store(clock::thread_cpu_nanoseconds(), Ordering::Relaxed);
        let counts = self.taps.iter().map(|tap| [tap.packets + tap.dropped, tap.dropped]).collect();
        Ended { store: self.store, counts }
    }

    fn read(&mut self) -> Result<()> {
        let mut set = PollSet::default();
        // By both clocks: the packets' stamps are of the one that may be set.
        let mut end: Option<(u64, u64)> = None;
        loop {
            if end.is_none() && self.shared.ending.load(Ordering::Acquire) {
                self.count();
                end = Some((clock::real_nanoseconds(), clock::monotonic_nanoseconds() + LAST_NANOSECONDS));
            }
            let is_late = end.is_some_and(|(_, until)| clock::monotonic_nanoseconds() >= until);
            let has_more = self.take(end.map_or(u64::MAX, |(last, _)| last))?;
            if end.is_none() {
                self.count();
            }
            if is_late && !has_more {
                return Ok(());
            }
            if !has_more {
                set.clear();
                if end.is_none() {
                    set.add(self.waker.raw(), true, false);
                }
                self.taps.iter().for_each(|tap| {
                    set.add(tap.ring.raw(), true, false);
                });
                set.wait(Some(PAUSE_NANOSECONDS / if end.is_some() { 10 } else { 1 }))?;
            }
        }
    }

    /// Takes what the rings hold, up to the packets of a moment; false if that was nothing. Once there are later
    /// packets it is over, however many come.
    fn take(&mut self, last_nanoseconds: u64) -> Result<bool> {
        let (mut has_more, mut failure) = (false, Ok(()));
        let (mut packets, mut wire_bytes) = (0, 0);
        let (store, snap_bytes) = (&mut self.store, self.snap_bytes);
        for (number, tap) in self.taps.iter_mut().enumerate() {
            for _ in 0..BLOCKS_AT_ONCE {
                let (ethernet, mut passed_by) = (tap.ethernet, false);
                let packet_count = &mut tap.packets;
                let more = tap.ring.take(|packet| {
                    if packet.time_nanoseconds > last_nanoseconds {
                        passed_by = true;
                    } else if failure.is_ok() {
                        packets += 1;
                        *packet_count += 1;
                        wire_bytes += u64::from(packet.original_bytes);
                        failure = keep(store, number as u32, packet, ethernet, snap_bytes);
                    }
                });
                if !more || passed_by {
                    break;
                }
                has_more = true;
            }
        }
        self.shared.packets.fetch_add(packets, Ordering::Relaxed);
        self.shared.wire_bytes.fetch_add(wire_bytes, Ordering::Relaxed);
        self.shared.kept_bytes.store(self.store.kept().bytes, Ordering::Relaxed);
        failure.map(|()| has_more)
    }

    fn count(&mut self) {
        for tap in &mut self.taps {
            tap.dropped += u64::from(tap.ring.statistics()[1]);
        }
        let dropped = self.taps.iter().map(|tap| tap.dropped).sum();
        self.shared.dropped.store(dropped, Ordering::Relaxed);
        self.shared.cpu_nanoseconds.store(clock::thread_cpu_nanoseconds(), Ordering::Relaxed);
    }
}

/// Keeps a packet as it was on the wire: with the VLAN tag that was taken off it, and from the IP header on where the
/// link has no Ethernet header.
fn keep(
    store: &mut Store,
    interface: u32,
    packet: &RingPacket<'_>,
    ethernet: bool,
    snap_bytes: usize,
) -> Result<()> {
    let before = if ethernet { 0 } else { packet.network.min(packet.bytes.len()) };
    let mut record = Captured {
        interface,
        time_nanoseconds: packet.time_nanoseconds,
        original_bytes: packet.original_bytes.saturating_sub(before as u32),
        bytes: &packet.bytes[before..],
        direction: Some(if packet.outgoing { Direction::Outbound } else { Direction::Inbound }),
        comment: None,
    };
    let Some((kind, content)) = packet.vlan.filter(|_| ethernet && packet.bytes.len() >= TAG_PLACE) else {
        return store.add(&record);
    };
    let mut tagged = Vec::with_capacity(packet.bytes.len() + TAG_BYTES);
    tagged.extend_from_slice(&packet.bytes[..TAG_PLACE]);
    tagged.extend(kind.to_be_bytes());
    tagged.extend(content.to_be_bytes());
    tagged.extend_from_slice(&packet.bytes[TAG_PLACE..]);
    tagged.truncate(snap_bytes);
    record.original_bytes += TAG_BYTES as u32;
    record.bytes = &tagged;
    store.add(&record)
}
