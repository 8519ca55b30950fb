//! The fabric's edge: packets in from the hosts' TAPs, frames out to them.

use crate::ports::HostMeasurement;
use crate::waits::Waits;
use framegauge_fabric::{Aggregate, Ecn, HostIndex, PortEvent, PortIndex, Sink};
use framegauge_frames::Picoseconds;
use framegauge_linux::Result;
use framegauge_linux::clock::monotonic_nanoseconds;
use framegauge_linux::tap::{Tap, VNET_HEADER_BYTES};
use framegauge_metering::Delays;
use framegauge_packets::{
    Coalesced, Coalescer, MAX_HEADER_BYTES, PIECES_MAXIMUM, Piece, Received, Segmentation, VirtioNetHeader,
};
use std::collections::HashMap;
use std::io::IoSlice;

/// Room for the largest aggregate with its headers.
const BUFFER_BYTES: usize = VNET_HEADER_BYTES + 65_536 + 256;

/// A host's end of the fabric.
pub struct Attachment {
    /// Its TAP.
    pub tap: Tap,
    /// Its Ethernet address.
    pub hardware: [u8; 6],
}

/// A packet from a host, alive until its last frame is delivered or dropped.
struct Parcel {
    bytes: Box<[u8]>,
    plan: Segmentation,
    length: usize,
    frames_left: u16,
}

/// The hosts' ends and the packets under way; what the model tells is done here.
pub(crate) struct Edge {
    pub(crate) attachments: Vec<Attachment>,
    by_address: HashMap<[u8; 6], HostIndex>,
    parcels: Vec<Option<Parcel>>,
    free: Vec<u32>,
    spare: Vec<Box<[u8]>>,
    pub(crate) counts: Vec<HostMeasurement>,
    pub(crate) lateness: Delays,
    pub(crate) waits: Waits,
    /// Large receive offload; empty between interrupts.
    coalescer: Option<Coalescer>,
    epoch: u64,
}

impl Edge {
    pub(crate) fn new(attachments: Vec<Attachment>, large_receive: bool, epoch: u64) -> Self {
        Self {
            coalescer: large_receive.then(Coalescer::default),
            by_address: attachments
                .iter()
                .enumerate()
                .map(|(place, attachment)| (attachment.hardware, HostIndex(place as u16)))
                .collect(),
            counts: vec![HostMeasurement::default(); attachments.len()],
            attachments,
            parcels: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            lateness: Delays::new(),
            waits: Waits::default(),
            epoch,
        }
    }

    pub(crate) fn now(&self) -> Picoseconds {
        Picoseconds::from_nanoseconds(monotonic_nanoseconds() - self.epoch)
    }

    /// Reads one packet of a host: `Ok(None)` when there is none, `Some(None)` when it goes nowhere.
    pub(crate) fn read(&mut self, host: usize) -> Result<Option<Option<Aggregate>>> {
        let mut bytes = self.spare.pop().unwrap_or_else(|| vec![0; BUFFER_BYTES].into_boxed_slice());
        let Some(length) = self.attachments[host].tap.read(&mut bytes)? else {
            self.spare.push(bytes);
            return Ok(None);
        };
        let counts = &mut self.counts[host];
        counts.read_packets += 1;
        let Some(frame) = bytes.get(VNET_HEADER_BYTES..length) else {
            counts.unroutable_packets += 1;
            return Ok(Some(None));
        };
        counts.read_bytes += frame.len() as u64;
        counts.unfinished_checksums += u64::from(bytes[0] & VirtioNetHeader::NEEDS_CSUM != 0);
        counts.largest_packet_bytes = counts.largest_packet_bytes.max(frame.len() as u64);
        let destination = frame.get(..6).and_then(|address| self.by_address.get(address)).copied();
        let plan = VirtioNetHeader::parse(&bytes).and_then(|header| Segmentation::plan(&header, frame));
        let frames = plan.as_ref().map_or(1, Segmentation::frames);
        counts.read_frames += u64::from(frames);
        let (Some(destination), Ok(plan)) = (destination, plan) else {
            counts.unroutable_packets += 1;
            self.spare.push(bytes);
            return Ok(Some(None));
        };
        counts.aggregates += u64::from(frames > 1);
        let data = plan.tcp_payload_bytes(0) > 0;
        let (each, last) = (plan.captured_bytes(0), plan.captured_bytes(frames - 1));
        if data {
            let sizes = [each, last].map(framegauge_frames::frame_bytes).map(u64::from);
            counts.data_frames += u64::from(frames);
            counts.data_frame_bytes += u64::from(frames - 1) * sizes[0] + sizes[1];
            counts.largest_frame_bytes = counts.largest_frame_bytes.max(sizes[0]);
        }
        let flow = plan.flow();
        let id = self.keep(Parcel { bytes, plan, length, frames_left: frames });
        Ok(Some(Some(Aggregate {
            id,
            frames,
            captured_bytes: each,
            last_captured_bytes: last,
            destination,
            flow,
            data,
            ecn: Ecn::NOT_CAPABLE,
            band: 0,
        })))
    }

    fn keep(&mut self, parcel: Parcel) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.parcels.push(None);
            self.parcels.len() as u32 - 1
        });
        self.parcels[id as usize] = Some(parcel);
        id
    }

    fn release(&mut self, id: u32) {
        let place = &mut self.parcels[id as usize];
        if let Some(parcel) = place {
            parcel.frames_left -= 1;
            if parcel.frames_left == 0 {
                if let Some(parcel) = place.take() {
                    self.spare.push(parcel.bytes);
                }
                self.free.push(id);
            }
        }
    }
}

impl Parcel {
    /// Frame `index` of this packet, which is number `id`.
    fn frame<'a>(&self, id: u32, index: u16, scratch: &'a mut [u8; MAX_HEADER_BYTES]) -> Received<'a> {
        let packet = &self.bytes[VNET_HEADER_BYTES..self.length];
        let length = self.plan.write_header(packet, index, scratch);
        let range = self.plan.payload_range(index);
        Received {
            vnet: self.plan.vnet_header(),
            header: &scratch[..length],
            payload: Piece { packet: id, start: range.start as u32, end: range.end as u32 },
        }
    }
}

/// Writes what one interrupt hands to a host.
struct Writer<'a> {
    tap: &'a Tap,
    parcels: &'a [Option<Parcel>],
    counts: &'a mut HostMeasurement,
}

impl Writer<'_> {
    fn write(&mut self, packet: &Coalesced<'_>) {
        let vnet = packet.vnet.to_bytes();
        let mut pieces = [IoSlice::new(&[]); 2 + PIECES_MAXIMUM];
        pieces[0] = IoSlice::new(&vnet);
        pieces[1] = IoSlice::new(packet.header);
        let mut bytes = packet.header.len();
        for (slice, piece) in pieces[2..].iter_mut().zip(packet.payload) {
            let Some(parcel) = &self.parcels[piece.packet as usize] else { continue };
            *slice =
                IoSlice::new(&parcel.bytes[VNET_HEADER_BYTES..][piece.start as usize..piece.end as usize]);
            bytes += piece.bytes();
        }
        let written = self.tap.write(&pieces[..2 + packet.payload.len()]);
        self.note(written, bytes, u64::from(packet.frames));
    }

    /// A packet that goes up as it came down, in one piece: most of them.
    fn write_whole(&mut self, parcel: &Parcel) {
        let bytes = &parcel.bytes[..parcel.length];
        self.note(self.tap.write_whole(bytes), bytes.len() - VNET_HEADER_BYTES, 1);
    }

    /// Counts what was handed over.
    fn note(&mut self, written: Result<()>, bytes: usize, frames: u64) {
        match written {
            Ok(()) => {
                self.counts.written_packets += 1;
                self.counts.written_frames += frames;
                self.counts.written_bytes += bytes as u64;
                self.counts.merged_frames += if frames > 1 { frames } else { 0 };
            }
            Err(_) => self.counts.write_errors += 1,
        }
    }
}

impl Sink for Edge {
    fn deliver(&mut self, host: HostIndex, frames: &[(u32, u16)], due: Picoseconds) {
        let host = usize::from(host.0);
        let mut writer = Writer {
            tap: &self.attachments[host].tap,
            parcels: &self.parcels,
            counts: &mut self.counts[host],
        };
        let mut scratch = [0; MAX_HEADER_BYTES];
        for &(id, index) in frames {
            let Some(parcel) = &self.parcels[id as usize] else { continue };
            match &mut self.coalescer {
                Some(coalescer) if frames.len() > 1 => {
                    let frame = parcel.frame(id, index, &mut scratch);
                    coalescer.push(&frame, &mut |packet| writer.write(packet));
                }
                _ if parcel.plan.frames() == 1 => writer.write_whole(parcel),
                _ => writer.write(&parcel.frame(id, index, &mut scratch).alone()),
            }
        }
        if let Some(coalescer) = &mut self.coalescer {
            coalescer.flush(&mut |packet| writer.write(packet));
        }
        // One look at the clock for all that an interrupt hands over, after the last of it.
        let late = self.now().as_nanoseconds().saturating_sub(due.as_nanoseconds());
        for &(id, _) in frames {
            self.lateness.record(late);
            self.release(id);
        }
    }

    fn discard(&mut self, aggregate: u32, _frame: u16) {
        self.release(aggregate);
    }

    /// Never happens: every frame is handed over as one that cannot be marked.
    fn mark(&mut self, _aggregate: u32, _frame: u16) {}

    /// Never happens: no port is watched.
    fn seen(&mut self, _event: &PortEvent) {}

    fn waited(&mut self, port: PortIndex, input_port: PortIndex, wait: Picoseconds) {
        self.waits.record(port, input_port, wait);
    }
}
