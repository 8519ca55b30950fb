//! Samples of the fabric's queues over time.

use crate::spool::{self, Column};
use framegauge_fabric::{Fabric, PortCounters};
use framegauge_linux::Result;
use std::fs::File;

/// Rows that are kept; more are left out, and counted.
const MOST_ROWS: usize = 2_000_000;

/// Since when a longest queue is asked for. The fabric itself keeps one only.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Since {
    /// The measured interval's begin.
    Begin,
    /// The last look from outside.
    Look,
    /// The last sample.
    Sample,
}

/// The longest queue of each port since several moments.
#[derive(Debug, Default)]
pub(crate) struct Peaks([Vec<u64>; 3]);

impl Peaks {
    /// By port; it begins anew from what is queued now.
    pub fn take(&mut self, fabric: &mut Fabric, since: Since) -> Vec<u64> {
        let peaks = |fabric: &Fabric| -> Vec<u64> {
            fabric.counters().ports.iter().map(|port| port.peak_queue_bytes).collect()
        };
        let lately = peaks(fabric);
        for known in &mut self.0 {
            known.resize(lately.len(), 0);
            for (known, lately) in known.iter_mut().zip(&lately) {
                *known = (*known).max(*lately);
            }
        }
        fabric.reset_peaks();
        std::mem::replace(&mut self.0[since as usize], peaks(fabric))
    }
}

/// Samples of all ports at regular times.
#[derive(Debug)]
pub struct Series {
    interval: u64,
    next: u64,
    began: u64,
    last: Vec<PortCounters>,
    rows: Vec<Row>,
    left_out: u64,
}

#[derive(Debug)]
struct Row {
    time: u64,
    port: usize,
    queue_bytes: u64,
    peak_queue_bytes: u64,
    sent_bytes: u64,
    dropped_frames: u64,
    marked_frames: u64,
}

impl Series {
    /// Begins now (nanoseconds), with a sample every `interval` nanoseconds.
    pub(crate) fn begin(interval: u64, now: u64, ports: Vec<PortCounters>) -> Self {
        Self { interval, next: now + interval, began: now, last: ports, rows: Vec::new(), left_out: 0 }
    }

    /// When the next sample is due.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Takes a sample of counters that are of `now`. Ports at which nothing happened have no row.
    pub(crate) fn take(&mut self, now: u64, ports: Vec<PortCounters>, peaks: &[u64]) {
        for (port, (later, earlier)) in ports.iter().zip(&self.last).enumerate() {
            let spent = later.since(earlier);
            if spent.sent_bytes == 0 && spent.dropped_frames == 0 && peaks[port] == 0 {
                continue;
            }
            if self.rows.len() == MOST_ROWS {
                self.left_out += 1;
                continue;
            }
            self.rows.push(Row {
                time: now - self.began,
                port,
                queue_bytes: later.queued_bytes,
                peak_queue_bytes: peaks[port],
                sent_bytes: spent.sent_bytes,
                dropped_frames: spent.dropped_frames,
                marked_frames: spent.marked_frames,
            });
        }
        self.last = ports;
        // A loop that was held up takes one sample, not all that it missed.
        self.next = self.next.max(now.saturating_sub(self.interval)) + self.interval;
    }

    /// As a spool file, with the names of the ports; how many rows were left out.
    pub fn write(self, names: &[String]) -> Result<(File, u64)> {
        let long = |value: fn(&Row) -> u64| Column::Long(self.rows.iter().map(value).collect());
        let file = spool::write(vec![
            ("time_seconds", Column::Float(self.rows.iter().map(|row| row.time as f64 * 1e-9).collect())),
            ("port", Column::Text(self.rows.iter().map(|row| names[row.port].clone()).collect())),
            ("queue_bytes", long(|row| row.queue_bytes)),
            ("peak_queue_bytes", long(|row| row.peak_queue_bytes)),
            ("sent_bytes", long(|row| row.sent_bytes)),
            ("dropped_frames", long(|row| row.dropped_frames)),
            ("marked_frames", long(|row| row.marked_frames)),
        ])?;
        Ok((file, self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(sent_bytes: u64, queued_bytes: u64) -> PortCounters {
        PortCounters { sent_bytes, queued_bytes, ..PortCounters::default() }
    }

    #[test]
    fn samples_are_of_ports_at_which_something_happened() {
        let mut series = Series::begin(10, 100, vec![port(0, 0), port(5, 0)]);
        assert_eq!(series.next(), 110);
        series.take(110, vec![port(7, 3), port(5, 0)], &[9, 0]);
        assert_eq!(series.next(), 120);
        // Held up: the two samples that were missed are one.
        series.take(147, vec![port(7, 0), port(6, 0)], &[0, 0]);
        assert_eq!(series.next(), 147);
        let rows: Vec<_> = series
            .rows
            .iter()
            .map(|row| (row.time, row.port, row.sent_bytes, row.peak_queue_bytes))
            .collect();
        assert_eq!(rows, [(10, 0, 7, 9), (47, 1, 1, 0)]);
    }
}
