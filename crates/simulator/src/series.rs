//! The ports of a network over time.
//!
//! How long a simulation takes is not known beforehand. So samples begin close to each other; when there are too many, every
//! two that follow each other become one, and the interval is twice as long from then on.

use std::collections::BTreeMap;

use framegauge_fabric::{Fabric, PortCounters, PortIndex};
use framegauge_frames::Picoseconds;

/// Samples that are kept of ports that have an interval of their own, and of others.
const MOST_OWN: usize = 20_000;
const MOST: usize = 2_000_000;
/// Ports that are looked at before the interval is doubled, all looks together, if nothing happens at most of them.
const MOST_LOOKS: usize = 4_000_000;
const LEAST_TAKES: usize = 64;

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
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) samples: Vec<PortSample>,
    /// Until the next sample; zero: there are none.
    pub(crate) interval: Picoseconds,
    most: usize,
    /// Samples of all ports since the interval was doubled.
    takes: usize,
    last: Vec<PortCounters>,
    /// The longest queues before the last sample.
    peaks: Vec<u64>,
}

impl Series {
    /// Of ports with an interval of their own, or with that of the flows.
    pub(crate) fn new(own: Picoseconds, of_flows: Picoseconds) -> Series {
        let (interval, most) = if own > Picoseconds::ZERO { (own, MOST_OWN) } else { (of_flows, MOST) };
        Series { samples: Vec::new(), interval, most, takes: 0, last: Vec::new(), peaks: Vec::new() }
    }

    /// A sample, and when the next is due.
    pub(crate) fn take(&mut self, time: Picoseconds, fabric: &mut Fabric) -> Picoseconds {
        let ports = fabric.counters().ports;
        self.last.resize(ports.len(), PortCounters::default());
        self.peaks.resize(ports.len(), 0);
        for (index, (later, earlier)) in ports.iter().zip(&self.last).enumerate() {
            self.peaks[index] = self.peaks[index].max(later.peak_queue_bytes);
            let spent = later.since(earlier);
            if spent.sent_bytes == 0 && spent.dropped_frames == 0 && later.peak_queue_bytes == 0 {
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
        self.takes += 1;
        let most_takes = (MOST_LOOKS / ports.len().max(1)).max(LEAST_TAKES);
        self.last = ports;
        fabric.reset_peaks();
        // Only where a longer interval ends, too.
        let ends = time.get().is_multiple_of(2 * self.interval.get());
        if ends && (self.samples.len() > self.most || self.takes > most_takes) {
            self.interval = self.interval.saturating_mul(2);
            self.samples = merged(&self.samples, self.interval);
            self.takes = 0;
        }
        time + self.interval
    }

    /// Gives ports the longest queues of the whole time.
    pub(crate) fn restore_peaks(&self, ports: &mut [PortCounters]) {
        for (port, peak) in ports.iter_mut().zip(&self.peaks) {
            port.peak_queue_bytes = port.peak_queue_bytes.max(*peak);
        }
    }
}

/// One sample for those of a port in each interval of this length. One that has none at its end holds nothing then.
fn merged(samples: &[PortSample], interval: Picoseconds) -> Vec<PortSample> {
    let mut by_time: BTreeMap<(Picoseconds, PortIndex), PortSample> = BTreeMap::new();
    for sample in samples {
        let time = Picoseconds::new(sample.time.get().div_ceil(interval.get()) * interval.get());
        let one = by_time.entry((time, sample.port)).or_insert(PortSample {
            time,
            port: sample.port,
            queue_bytes: 0,
            peak_queue_bytes: 0,
            sent_bytes: 0,
            dropped_frames: 0,
            marked_frames: 0,
        });
        one.queue_bytes = if sample.time == time { sample.queue_bytes } else { 0 };
        one.peak_queue_bytes = one.peak_queue_bytes.max(sample.peak_queue_bytes);
        one.sent_bytes += sample.sent_bytes;
        one.dropped_frames += sample.dropped_frames;
        one.marked_frames += sample.marked_frames;
    }
    by_time.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(time: u64, port: u16, queue: u64, peak: u64, dropped: u64) -> PortSample {
        PortSample {
            time: Picoseconds::new(time),
            port: PortIndex(port),
            queue_bytes: queue,
            peak_queue_bytes: peak,
            sent_bytes: 10,
            dropped_frames: dropped,
            marked_frames: 1,
        }
    }

    #[test]
    fn two_intervals_become_one_and_nothing_is_lost() {
        let before =
            [sample(0, 1, 5, 5, 0), sample(10, 1, 7, 9, 1), sample(20, 0, 3, 4, 0), sample(20, 1, 2, 8, 2)];
        let after = merged(&before, Picoseconds::new(20));
        let rows: Vec<_> = after
            .iter()
            .map(|one| {
                (one.time.get(), one.port.0, one.queue_bytes, one.peak_queue_bytes, one.dropped_frames)
            })
            .collect();
        assert_eq!(rows, [(0, 1, 5, 5, 0), (20, 0, 3, 4, 0), (20, 1, 2, 9, 3)]);
        assert_eq!(after.iter().map(|one| (one.sent_bytes, one.marked_frames)).max(), Some((20, 2)));
    }

    #[test]
    fn a_port_without_a_sample_at_the_end_holds_nothing_then() {
        let after = merged(&[sample(10, 0, 7, 9, 1)], Picoseconds::new(20));
        assert_eq!((after[0].time.get(), after[0].queue_bytes, after[0].peak_queue_bytes), (20, 0, 9));
    }
}
