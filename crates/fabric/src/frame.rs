//! What travels.

use framegauge_frames::Picoseconds;

use crate::{HostIndex, PortIndex};

/// What a frame's IP header says of congestion (RFC 3168).
///
/// No enum: `Option<Frame>` would hide its `None` in the one byte, and a frame that is written by the byte and read as a
/// whole costs a CPU as much as all else that happens to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Ecn(u8);

impl Ecn {
    /// It has to be dropped: its ends do not understand marks.
    pub const NOT_CAPABLE: Ecn = Ecn(0);
    /// It may be marked instead of dropped: ECT(0) or ECT(1).
    pub const CAPABLE: Ecn = Ecn(1);
    /// It was marked: CE.
    pub const MARKED: Ecn = Ecn(2);
}

/// A super-packet that a host hands over: as many frames, or one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Aggregate {
    /// The caller's name for it; comes back in [`crate::Sink`].
    pub id: u32,
    /// Frames that it is cut into; with 0 nothing is sent.
    pub frames: u16,
    /// Bytes of each frame but the last, without FCS and padding.
    pub captured_bytes: u32,
    /// Bytes of the last frame, without FCS and padding.
    pub last_captured_bytes: u32,
    /// Where it goes.
    pub destination: HostIndex,
    /// Hash of its flow; kept in drop records.
    pub flow: u64,
    /// Whether its frames carry TCP payload.
    pub data: bool,
    /// Whether it is an ICMP error: somebody tells that he could not send a packet on.
    pub icmp_error: bool,
    /// What its headers say of congestion.
    pub ecn: Ecn,
    /// Which band of a priority queue it belongs to: 0 goes first.
    pub band: u8,
}

/// One frame under way: 32 bytes, copied from queue to queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Hash of its flow.
    pub flow: u64,
    /// [`Aggregate::id`].
    pub aggregate: u32,
    /// Its size with header and FCS, at least 64.
    pub frame_bytes: u32,
    /// Which frame of the aggregate it is.
    pub index: u16,
    /// What its header says of congestion.
    pub ecn: Ecn,
    /// [`Aggregate::band`].
    pub band: u8,
    /// Where it goes.
    pub destination: HostIndex,
    /// The port by whose link it came to where it is; in a host's own NIC that NIC.
    pub input_port: PortIndex,
    /// When it came to where it waits.
    pub since: Picoseconds,
}

impl Frame {
    /// The frame number that no aggregate has: those of 65,535 frames, the most there can be, are 0 to 65,534.
    pub(crate) const BACKGROUND_INDEX: u16 = u16::MAX;

    /// Which background it belongs to, by its position in [`crate::FabricConfig::background`]; it has no aggregate then.
    pub fn background(&self) -> Option<usize> {
        (self.index == Frame::BACKGROUND_INDEX).then_some(self.aggregate as usize)
    }
}
