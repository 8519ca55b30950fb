//! An end of the fabric, and a packet of a host while its frames are under way.

use crate::fabric::watching::SNAP_BYTES;
use framegauge_fabric::Frame;
use framegauge_linux::tap::{Tap, VNET_HEADER_BYTES};
use framegauge_packets::{MAX_HEADER_BYTES, Piece, Received, Segmentation};

/// An end of the fabric.
pub struct Attachment {
    /// Its TAP.
    pub tap: Tap,
    /// Its Ethernet address.
    pub hardware: [u8; 6],
    /// The name of its host or router.
    pub host: String,
    /// It is a router's: nothing is merged for it, and it never has to wait for its NIC, whose queue drops.
    pub forwards: bool,
    /// Its packets are taken in as of when they were sent, where the kernel can tell; otherwise as of when they are read.
    pub is_timed: bool,
}

/// A packet from a host, alive until its last frame is delivered or dropped.
pub(super) struct Parcel {
    pub(super) bytes: Box<[u8]>,
    pub(super) plan: Segmentation,
    pub(super) length: usize,
    pub(super) frames_left: u16,
    /// Which frames of an aggregate were marked, a bit each; empty, and without memory, as long as none is.
    pub(super) marks: Vec<u64>,
}

impl Parcel {
    /// A packet of which no frame has been delivered, dropped or marked.
    pub(super) fn new(bytes: Box<[u8]>, plan: Segmentation, length: usize) -> Self {
        Self { frames_left: plan.frames(), bytes, plan, length, marks: Vec::new() }
    }

    /// All of it, virtio header first.
    pub(super) fn packet(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// A packet that goes up as it came is marked where it lies; an aggregate cannot be, its frames share a header.
    pub(super) fn mark(&mut self, index: u16) {
        if self.plan.frames() == 1 {
            return self.plan.mark(&mut self.bytes[VNET_HEADER_BYTES..self.length]);
        }
        let word = usize::from(index / 64);
        if word >= self.marks.len() {
            self.marks.resize(word + 1, 0);
        }
        self.marks[word] |= 1 << (index % 64);
    }

    pub(super) fn is_marked(&self, index: u16) -> bool {
        self.marks.get(usize::from(index / 64)).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// The first bytes of a frame of this packet, as it is at that moment; how many there are.
    pub(super) fn first_bytes(&self, frame: Frame, out: &mut [u8; SNAP_BYTES]) -> usize {
        let mut scratch = [0; MAX_HEADER_BYTES];
        let received = self.frame(frame.aggregate, frame.index, &mut scratch);
        let payload = &self.bytes[VNET_HEADER_BYTES..self.length]
            [received.payload.start as usize..received.payload.end as usize];
        let pieces = received.header.iter().chain(payload);
        out.iter_mut().zip(pieces).map(|(out, byte)| *out = *byte).count()
    }

    /// Frame `index` of this packet, which is number `id`.
    pub(super) fn frame<'a>(
        &self,
        id: u32,
        index: u16,
        scratch: &'a mut [u8; MAX_HEADER_BYTES],
    ) -> Received<'a> {
        let packet = &self.bytes[VNET_HEADER_BYTES..self.length];
        let length = self.plan.write_header(packet, index, scratch);
        if self.is_marked(index) {
            self.plan.mark(&mut scratch[..length]);
        }
        let range = self.plan.payload_range(index);
        Received {
            vnet: self.plan.vnet_header(),
            header: &scratch[..length],
            payload: Piece { packet: id, start: range.start as u32, end: range.end as u32 },
        }
    }
}
