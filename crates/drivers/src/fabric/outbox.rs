//! Writes packets to the hosts' TAPs, many with one call of the kernel.

use crate::fabric::parcel::{Attachment, Parcel};
use crate::fabric::ports::HostMeasurement;
use framegauge_frames::Picoseconds;
use framegauge_linux::tap::VNET_HEADER_BYTES;
use framegauge_linux::uring::{CALL_MAXIMUM, Writes};
use framegauge_packets::{Coalesced, PIECES_MAXIMUM};
use std::io::IoSlice;

/// Packets that go up as they came down, most of them, wait here for one call of the kernel that writes them all.
pub(crate) struct Outbox {
    /// None where the kernel does not do that: each is written at once.
    writes: Option<Writes>,
    /// For which host, and the packet's number.
    waiting: Vec<(usize, u32)>,
    /// Frames since the last look at the clock, written or waiting: their packet, and when they were due.
    pub(crate) frames: Vec<(u32, Picoseconds)>,
}

/// Those who get it, what they may get, and what they have got.
pub(crate) struct Hosts<'a> {
    pub(crate) attachments: &'a [Attachment],
    pub(crate) parcels: &'a [Option<Parcel>],
    pub(crate) counts: &'a mut [HostMeasurement],
}

impl Outbox {
    pub(crate) fn new() -> Self {
        Self { writes: Writes::new().ok(), waiting: Vec::new(), frames: Vec::new() }
    }

    /// Whether nothing waits, or so much that it had better be written now.
    pub(crate) fn is_due(&self) -> bool {
        self.waiting.is_empty() || self.waiting.len() >= CALL_MAXIMUM
    }

    /// A packet that goes up as it came down, in one piece.
    pub(crate) fn add(&mut self, host: usize, id: u32, hosts: &mut Hosts<'_>) {
        if self.writes.is_some() {
            return self.waiting.push((host, id));
        }
        let packet = hosts.packet(id);
        let is_written = hosts.attachments[host].tap.write_whole(packet).is_ok();
        hosts.counts[host].note_written(is_written, frame(packet).len(), 1);
    }

    /// A packet put together from several, written at once, after what came before it.
    pub(crate) fn write(&mut self, host: usize, packet: &Coalesced<'_>, hosts: &mut Hosts<'_>) {
        self.flush(hosts);
        let vnet = packet.vnet.to_bytes();
        let mut pieces = [IoSlice::new(&[]); 2 + PIECES_MAXIMUM];
        pieces[0] = IoSlice::new(&vnet);
        pieces[1] = IoSlice::new(packet.header);
        let mut bytes = packet.header.len();
        for (slice, piece) in pieces[2..].iter_mut().zip(packet.payload) {
            let from = frame(hosts.packet(piece.packet));
            *slice = IoSlice::new(&from[piece.start as usize..piece.end as usize]);
            bytes += piece.bytes();
        }
        let is_written = hosts.attachments[host].tap.write(&pieces[..2 + packet.payload.len()]).is_ok();
        hosts.counts[host].note_written(is_written, bytes, u64::from(packet.frames));
    }

    /// Writes what waits.
    pub(crate) fn flush(&mut self, hosts: &mut Hosts<'_>) {
        let (Some(writes), false) = (&mut self.writes, self.waiting.is_empty()) else { return };
        let (waiting, attachments, parcels) = (&self.waiting, hosts.attachments, hosts.parcels);
        let packets = waiting.iter().map(|&(host, id)| (&attachments[host].tap, packet(parcels, id)));
        for (&(host, id), is_written) in waiting.iter().zip(writes.write(packets)) {
            hosts.counts[host].note_written(*is_written, frame(packet(parcels, id)).len(), 1);
        }
        if writes.has_failed() {
            self.writes = None;
        }
        self.waiting.clear();
    }
}

impl Hosts<'_> {
    fn packet(&self, id: u32) -> &[u8] {
        packet(self.parcels, id)
    }
}

/// A packet, virtio header first. What is handed over is there: its last frame has not been released.
fn packet(parcels: &[Option<Parcel>], id: u32) -> &[u8] {
    parcels[id as usize].as_ref().map_or(&[], Parcel::packet)
}

/// A packet without its virtio header.
fn frame(packet: &[u8]) -> &[u8] {
    packet.get(VNET_HEADER_BYTES..).unwrap_or_default()
}
