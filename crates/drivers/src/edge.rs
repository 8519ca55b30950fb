//! The fabric's edge: packets in from the hosts' TAPs, frames out to them.

use crate::ports::HostMeasurement;
use framegauge_fabric::{Aggregate, HostIndex, Sink};
use framegauge_frames::Picoseconds;
use framegauge_linux::Result;
use framegauge_linux::clock::monotonic_nanoseconds;
use framegauge_linux::tap::{Tap, VNET_HEADER_BYTES};
use framegauge_metering::Lateness;
use framegauge_packets::{MAX_HEADER_BYTES, Segmentation, VirtioNetHeader, parse};
use std::collections::HashMap;

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
    pub(crate) lateness: Lateness,
    epoch: u64,
}

impl Edge {
    pub(crate) fn new(attachments: Vec<Attachment>, epoch: u64) -> Self {
        Self {
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
            lateness: Lateness::new(),
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
        let flow = parse(frame).map_or(0, |packet| packet.flow_hash());
        let id = self.keep(Parcel { bytes, plan, length, frames_left: frames });
        Ok(Some(Some(Aggregate {
            id,
            frames,
            captured_bytes: each,
            last_captured_bytes: last,
            destination,
            flow,
            data,
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

    fn write(&mut self, host: usize, id: u32, frame: u16) {
        let Some(parcel) = &self.parcels[id as usize] else { return };
        let packet = &parcel.bytes[VNET_HEADER_BYTES..parcel.length];
        let header = parcel.plan.vnet_header().to_bytes();
        let tap = &self.attachments[host].tap;
        let written = if parcel.plan.frames() == 1 {
            tap.write([&header, packet, &[]])
        } else {
            let mut scratch = [0; MAX_HEADER_BYTES];
            let length = parcel.plan.write_header(packet, frame, &mut scratch);
            tap.write([&header, &scratch[..length], &packet[parcel.plan.payload_range(frame)]])
        };
        let counts = &mut self.counts[host];
        match written {
            Ok(()) => {
                counts.written_packets += 1;
                counts.written_frames += 1;
                counts.written_bytes += u64::from(parcel.plan.captured_bytes(frame));
            }
            Err(_) => counts.write_errors += 1,
        }
    }
}

impl Sink for Edge {
    fn deliver(&mut self, host: HostIndex, frames: &[(u32, u16)], due: Picoseconds) {
        for &(aggregate, frame) in frames {
            self.write(usize::from(host.0), aggregate, frame);
            self.release(aggregate);
            let late = self.now().as_nanoseconds().saturating_sub(due.as_nanoseconds());
            self.lateness.record(late);
        }
    }

    fn discard(&mut self, aggregate: u32, _frame: u16) {
        self.release(aggregate);
    }
}
