//! What ports count.

use framegauge_frames::Picoseconds;

use crate::nic::Nic;
use crate::{BackgroundCounters, Drop, Fabric};

/// The state of a whole fabric at its present time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters {
    /// When.
    pub time: Picoseconds,
    /// By port, in the order of [`crate::FabricConfig::ports`].
    pub ports: Vec<PortCounters>,
    /// By background, in the order of [`crate::FabricConfig::background`].
    pub background: Vec<BackgroundCounters>,
    /// By host: how often its NIC has told it of frames.
    pub interrupts: Vec<u64>,
    /// How often a caller's `now` was earlier than one before; it was taken for the latest one.
    pub clock_violations: u64,
    /// Drops and marks that were counted but not recorded because [`crate::DROP_RECORDS_MAXIMUM`] records lay untaken.
    pub unrecorded_drops: u64,
}

/// Counters of one port since the beginning. Bytes are `frame_bytes`.
///
/// Always: received = sent + dropped + queued, in frames and in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortCounters {
    /// Frames that came to the port.
    pub received_frames: u64,
    /// Bytes of these.
    pub received_bytes: u64,
    /// Frames whose last bit has left.
    pub sent_frames: u64,
    /// Bytes of these.
    pub sent_bytes: u64,
    /// Frames that were dropped, giants included.
    pub dropped_frames: u64,
    /// Bytes of these.
    pub dropped_bytes: u64,
    /// Frames that were dropped because they were too large.
    pub giant_frames: u64,
    /// Frames dropped as ICMP errors; also in the dropped ones.
    pub filtered_frames: u64,
    /// Frames that were marked instead of being dropped.
    pub marked_frames: u64,
    /// Frames that were sent and lost on the link behind the port.
    pub lost_frames: u64,
    /// Bytes of these.
    pub lost_bytes: u64,
    /// Frames in the buffer, the one being sent included.
    pub queued_frames: u64,
    /// Bytes of these.
    pub queued_bytes: u64,
    /// The most bytes that have been in the buffer since [`crate::Fabric::reset_peaks`].
    pub peak_queue_bytes: u64,
    /// Time spent sending, preamble and gap included.
    pub busy: Picoseconds,
    /// Time with at least one frame waiting or leaving. Equals `busy` as long as no discipline holds frames
    /// back from an idle line and no neighbour pauses it.
    pub occupied: Picoseconds,
    /// PAUSE frames that it has sent, in a lossless network; in no other count.
    pub pauses_sent: u64,
    /// Time during which it was to pause; a frame that was being sent was finished.
    pub paused: Picoseconds,
}

/// What a port counted between two readings; `queued_*` is the change, so it may be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the same names as in PortCounters")]
pub struct PortInterval {
    pub received_frames: u64,
    pub received_bytes: u64,
    pub sent_frames: u64,
    pub sent_bytes: u64,
    pub dropped_frames: u64,
    pub dropped_bytes: u64,
    pub giant_frames: u64,
    pub filtered_frames: u64,
    pub marked_frames: u64,
    pub lost_frames: u64,
    pub lost_bytes: u64,
    pub queued_frames: i64,
    pub queued_bytes: i64,
    pub peak_queue_bytes: u64,
    pub busy: Picoseconds,
    pub occupied: Picoseconds,
    pub pauses_sent: u64,
    pub paused: Picoseconds,
}

impl PortCounters {
    /// The interval since an earlier reading of the same port. The peak is that of the later reading:
    /// call [`crate::Fabric::reset_peaks`] where the interval begins.
    pub fn since(&self, earlier: &PortCounters) -> PortInterval {
        PortInterval {
            received_frames: self.received_frames - earlier.received_frames,
            received_bytes: self.received_bytes - earlier.received_bytes,
            sent_frames: self.sent_frames - earlier.sent_frames,
            sent_bytes: self.sent_bytes - earlier.sent_bytes,
            dropped_frames: self.dropped_frames - earlier.dropped_frames,
            dropped_bytes: self.dropped_bytes - earlier.dropped_bytes,
            giant_frames: self.giant_frames - earlier.giant_frames,
            filtered_frames: self.filtered_frames - earlier.filtered_frames,
            marked_frames: self.marked_frames - earlier.marked_frames,
            lost_frames: self.lost_frames - earlier.lost_frames,
            lost_bytes: self.lost_bytes - earlier.lost_bytes,
            queued_frames: self.queued_frames.wrapping_sub(earlier.queued_frames) as i64,
            queued_bytes: self.queued_bytes.wrapping_sub(earlier.queued_bytes) as i64,
            peak_queue_bytes: self.peak_queue_bytes,
            busy: self.busy - earlier.busy,
            occupied: self.occupied - earlier.occupied,
            pauses_sent: self.pauses_sent - earlier.pauses_sent,
            paused: self.paused - earlier.paused,
        }
    }
}

impl Fabric {
    /// All counters as of when everything has happened; call [`Fabric::advance`] first, or what arrives by then is missing.
    pub fn counters(&self) -> Counters {
        Counters {
            time: self.clock,
            ports: self.ports.iter().map(|port| port.counters(self.clock)).collect(),
            background: self.backgrounds.counters(),
            interrupts: self.nics.iter().map(Nic::interrupts).collect(),
            clock_violations: self.clock_violations,
            unrecorded_drops: self.drops.overflow(),
        }
    }

    /// Lets the peaks of all queues begin anew from what is queued now.
    pub fn reset_peaks(&mut self) {
        for port in &mut self.ports {
            port.reset_peak(self.heard);
        }
    }

    /// The drops and marks since the last call.
    pub fn take_drops(&mut self) -> Vec<Drop> {
        self.drops.take()
    }
}
