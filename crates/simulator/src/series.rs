//! The ports of a network over time.

use framegauge_fabric::{Fabric, PortCounters, PortIndex};
use framegauge_frames::Picoseconds;

/// Samples that are kept; more are counted.
const MOST: usize = 2_000_000;

/// What a port did between two samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortSample {
    /// When the interval ended.
    pub time: Picoseconds,
    /// Which port.
    pub port: PortIndex,
    /// What it held then, in `frame_bytes`.
    pub queue_bytes: u64,
    /// The most that it held since the sample before.
    pub peak_queue_bytes: u64,
    /// Of frames that left.
    pub sent_bytes: u64,
    /// Frames that were dropped.
    pub dropped_frames: u64,
    /// Frames that were marked.
    pub marked_frames: u64,
}

/// Samples of all ports at which anything happened.
#[derive(Debug, Clone, Default)]
pub(crate) struct Series {
    pub(crate) samples: Vec<PortSample>,
    pub(crate) left_out: u64,
    last: Vec<PortCounters>,
    /// The longest queues before the last sample.
    peaks: Vec<u64>,
}

impl Series {
    pub(crate) fn take(&mut self, time: Picoseconds, fabric: &mut Fabric) {
        let ports = fabric.counters().ports;
        self.last.resize(ports.len(), PortCounters::default());
        self.peaks.resize(ports.len(), 0);
        for (index, (later, earlier)) in ports.iter().zip(&self.last).enumerate() {
            self.peaks[index] = self.peaks[index].max(later.peak_queue_bytes);
            let spent = later.since(earlier);
            if spent.sent_bytes == 0 && spent.dropped_frames == 0 && later.peak_queue_bytes == 0 {
                continue;
            }
            if self.samples.len() == MOST {
                self.left_out += 1;
                continue;
            }
            self.samples.push(PortSample {
                time,
                port: PortIndex(index as u16),
                queue_bytes: later.queued_bytes,
                peak_queue_bytes: later.peak_queue_bytes,
                sent_bytes: spent.sent_bytes,
                dropped_frames: spent.dropped_frames,
                marked_frames: spent.marked_frames,
            });
        }
        self.last = ports;
        fabric.reset_peaks();
    }

    /// Gives ports the longest queues of the whole time.
    pub(crate) fn restore_peaks(&self, ports: &mut [PortCounters]) {
        for (port, peak) in ports.iter_mut().zip(&self.peaks) {
            port.peak_queue_bytes = port.peak_queue_bytes.max(*peak);
        }
    }
}
