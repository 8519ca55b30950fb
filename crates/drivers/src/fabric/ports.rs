//! What the running fabric measured in an interval.

use crate::fabric::waits::WaitMeasurement;
use crate::spool::{self, Column};
use framegauge_fabric::{BackgroundCounters, PortCounters, PortInterval};
use framegauge_linux::Result;
use framegauge_metering::Delays;
use std::fs::File;

/// Counters of one host's ends of the fabric together. Bytes are without FCS, except `data_frame_bytes`.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct HostMeasurement {
    pub host: String,
    pub read_packets: u64,
    pub read_bytes: u64,
    pub read_frames: u64,
    pub largest_packet_bytes: u64,
    pub aggregates: u64,
    pub unroutable_packets: u64,
    pub unfinished_checksums: u64,
    pub interrupts: u64,
    pub written_packets: u64,
    pub written_bytes: u64,
    pub written_frames: u64,
    pub merged_frames: u64,
    pub write_errors: u64,
    pub data_frames: u64,
    pub data_frame_bytes: u64,
    pub largest_frame_bytes: u64,
    /// By end, in order: frames with data and their bytes, and the largest frame.
    pub nics: Vec<NicMeasurement>,
}

/// What one end of a host counted of what it sent.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct NicMeasurement {
    pub data_frames: u64,
    pub data_frame_bytes: u64,
    pub largest_frame_bytes: u64,
}

impl HostMeasurement {
    /// Adds what another end of the same host counted.
    fn add(&mut self, other: &Self) {
        self.nics.extend(&other.nics);
        self.read_packets += other.read_packets;
        self.read_bytes += other.read_bytes;
        self.read_frames += other.read_frames;
        self.largest_packet_bytes = self.largest_packet_bytes.max(other.largest_packet_bytes);
        self.aggregates += other.aggregates;
        self.unroutable_packets += other.unroutable_packets;
        self.unfinished_checksums += other.unfinished_checksums;
        self.interrupts += other.interrupts;
        self.written_packets += other.written_packets;
        self.written_bytes += other.written_bytes;
        self.written_frames += other.written_frames;
        self.merged_frames += other.merged_frames;
        self.write_errors += other.write_errors;
        self.data_frames += other.data_frames;
        self.data_frame_bytes += other.data_frame_bytes;
        self.largest_frame_bytes = self.largest_frame_bytes.max(other.largest_frame_bytes);
    }

    /// Counts a packet of so many frames that was handed over, or refused.
    pub(crate) fn note_written(&mut self, is_written: bool, bytes: usize, frames: u64) {
        if !is_written {
            self.write_errors += 1;
            return;
        }
        self.written_packets += 1;
        self.written_frames += frames;
        self.written_bytes += bytes as u64;
        self.merged_frames += if frames > 1 { frames } else { 0 };
    }

    /// Of one end.
    fn since(&self, earlier: &Self, host: &str) -> Self {
        let nic = NicMeasurement {
            data_frames: self.data_frames - earlier.data_frames,
            data_frame_bytes: self.data_frame_bytes - earlier.data_frame_bytes,
            largest_frame_bytes: self.largest_frame_bytes,
        };
        Self {
            host: host.to_string(),
            read_packets: self.read_packets - earlier.read_packets,
            read_bytes: self.read_bytes - earlier.read_bytes,
            read_frames: self.read_frames - earlier.read_frames,
            largest_packet_bytes: self.largest_packet_bytes,
            aggregates: self.aggregates - earlier.aggregates,
            unroutable_packets: self.unroutable_packets - earlier.unroutable_packets,
            unfinished_checksums: self.unfinished_checksums - earlier.unfinished_checksums,
            interrupts: self.interrupts - earlier.interrupts,
            written_packets: self.written_packets - earlier.written_packets,
            written_bytes: self.written_bytes - earlier.written_bytes,
            written_frames: self.written_frames - earlier.written_frames,
            merged_frames: self.merged_frames - earlier.merged_frames,
            write_errors: self.write_errors - earlier.write_errors,
            data_frames: nic.data_frames,
            data_frame_bytes: nic.data_frame_bytes,
            largest_frame_bytes: nic.largest_frame_bytes,
            nics: vec![nic],
        }
    }
}

/// What the fabric's thread used.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct ThreadMeasurement {
    pub cpu_seconds: f64,
    pub involuntary_switches: u64,
    pub waited_seconds: f64,
    pub wakeups: u64,
    pub scheduling: &'static str,
    pub cpu: Option<usize>,
}

/// How late deliveries were: real time after the write, less the time they were due.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct LatenessMeasurement {
    pub count: u64,
    pub p50_seconds: f64,
    pub p99_seconds: f64,
    pub max_seconds: f64,
}

/// All of an interval.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct FabricMeasurement {
    pub elapsed_seconds: f64,
    pub ports: Vec<(String, PortInterval)>,
    pub hosts: Vec<HostMeasurement>,
    pub lateness: LatenessMeasurement,
    pub waits: Vec<WaitMeasurement>,
    pub background: Vec<BackgroundCounters>,
    pub thread: ThreadMeasurement,
}

/// All ports at one moment, counted since the beginning; the peaks since the last look.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct PortLook {
    pub time_nanoseconds: u64,
    pub ports: Vec<(String, PortCounters)>,
}

/// Counters at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub time_nanoseconds: u64,
    pub ports: Vec<PortCounters>,
    pub hosts: Vec<HostMeasurement>,
    pub background: Vec<BackgroundCounters>,
}

impl FabricMeasurement {
    pub(crate) fn between(
        earlier: &Snapshot,
        later: &Snapshot,
        ports: Vec<String>,
        hosts: &[String],
        lateness: &Delays,
        waits: Vec<WaitMeasurement>,
        thread: ThreadMeasurement,
    ) -> Self {
        let intervals = later.ports.iter().zip(&earlier.ports).map(|(later, earlier)| later.since(earlier));
        let spent = |(later, earlier): (&BackgroundCounters, &BackgroundCounters)| BackgroundCounters {
            sent_frames: later.sent_frames - earlier.sent_frames,
            sent_bytes: later.sent_bytes - earlier.sent_bytes,
            delivered_frames: later.delivered_frames - earlier.delivered_frames,
            delivered_bytes: later.delivered_bytes - earlier.delivered_bytes,
        };
        let mut counts: Vec<HostMeasurement> = Vec::new();
        for ((later, earlier), host) in later.hosts.iter().zip(&earlier.hosts).zip(hosts) {
            let counted = later.since(earlier, host);
            // The ends of a host follow each other.
            match counts.last_mut().filter(|before| before.host == *host) {
                Some(before) => before.add(&counted),
                None => counts.push(counted),
            }
        }
        Self {
            elapsed_seconds: (later.time_nanoseconds - earlier.time_nanoseconds) as f64 * 1e-9,
            ports: ports.into_iter().zip(intervals).collect(),
            hosts: counts,
            lateness: LatenessMeasurement {
                count: lateness.count(),
                p50_seconds: lateness.quantile(0.5),
                p99_seconds: lateness.quantile(0.99),
                max_seconds: lateness.max_seconds(),
            },
            waits,
            background: later.background.iter().zip(&earlier.background).map(spent).collect(),
            thread,
        }
    }
}

/// The drops and marks of an interval, by column.
#[derive(Debug, Clone, Default)]
pub struct Drops {
    time_seconds: Vec<f64>,
    port: Vec<String>,
    input_port: Vec<String>,
    flow: Vec<u64>,
    frame_bytes: Vec<u32>,
    queue_bytes: Vec<u64>,
    action: Vec<String>,
    reason: Vec<String>,
    run_length: Vec<u32>,
}

impl Drops {
    /// Those of a network whose ports have these names, since `start_nanoseconds`.
    pub fn collect(drops: &[framegauge_fabric::Drop], names: &[String], start_nanoseconds: u64) -> Self {
        let start = start_nanoseconds as f64 * 1e-9;
        let mut all = Self::default();
        for drop in drops {
            all.time_seconds.push(drop.time.as_seconds_f64() - start);
            all.port.push(names[usize::from(drop.port.0)].clone());
            all.input_port.push(names[usize::from(drop.input_port.0)].clone());
            all.flow.push(drop.flow);
            all.frame_bytes.push(drop.frame_bytes);
            all.queue_bytes.push(drop.queue_bytes);
            all.action.push(if drop.marked { "marked" } else { "dropped" }.to_string());
            all.reason.push(drop.reason.name().to_string());
            all.run_length.push(drop.run_length);
        }
        all
    }

    /// As a spool file.
    pub fn write(self) -> Result<File> {
        spool::write(vec![
            ("time_seconds", Column::Float(self.time_seconds)),
            ("port", Column::Text(self.port)),
            ("input_port", Column::Text(self.input_port)),
            ("flow", Column::Long(self.flow)),
            ("frame_bytes", Column::Word(self.frame_bytes)),
            ("queue_bytes", Column::Long(self.queue_bytes)),
            ("action", Column::Text(self.action)),
            ("reason", Column::Text(self.reason)),
            ("run_length", Column::Word(self.run_length)),
        ])
    }
}
