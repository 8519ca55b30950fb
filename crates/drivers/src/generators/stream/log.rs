//! What the sending end of a stream reads from its live sockets.

use crate::generators::stream::client::Sizes;
use crate::spool::{self, Column};
use framegauge_linux::Result;
use framegauge_linux::multipath;
use framegauge_linux::tcp::{self, Buffers, TcpInfo};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

/// One reading of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub time: u64,
    pub round: u32,
    pub flow: u32,
    pub info: TcpInfo,
}

/// What the senders of a stream read from their sockets.
#[derive(Default)]
pub(crate) struct SenderLog {
    pub sizes: Sizes,
    pub samples: Vec<Sample>,
    /// The most that each connection had, by round and flow.
    subflows: BTreeMap<(u32, u32), usize>,
    pub congestion_control: BTreeSet<String>,
    pub path_mtu: BTreeSet<u32>,
    pub mss: BTreeSet<u32>,
    pub max_pacing: BTreeSet<Option<u64>>,
    pub retransmits: u64,
    pub payload_bytes: u64,
    pub payload_segments: u64,
    buffers: Option<Buffers>,
    largest_call_bytes: Option<u64>,
}

impl SenderLog {
    /// Of sockets with these sizes.
    pub fn of(sizes: Sizes) -> Self {
        Self { sizes, ..Self::default() }
    }

    /// A reading of a connection, of its subflows together.
    pub fn sample(&mut self, socket: i32, time: u64, round: u32, flow: u32) -> Result<TcpInfo> {
        let info = match self.sizes.subflows {
            None => tcp::info(socket)?,
            Some(_) => {
                let subflows = multipath::subflows(socket)?;
                let most = self.subflows.entry((round, flow)).or_default();
                *most = subflows.len().max(*most);
                multipath::together(&subflows)
            }
        };
        self.samples.push(Sample { time, round, flow, info });
        Ok(info)
    }

    /// What is read of every socket when all is done, whichever end sent.
    pub fn socket(&mut self, socket: i32) -> Result<()> {
        self.congestion_control.insert(tcp::congestion_control(socket)?);
        let buffers = tcp::buffers(socket)?;
        self.buffers = Some(self.buffers.map_or(buffers, |least| Buffers {
            send_bytes: least.send_bytes.min(buffers.send_bytes),
            receive_bytes: least.receive_bytes.min(buffers.receive_bytes),
        }));
        Ok(())
    }

    /// One call has sent or received so many bytes of payload.
    pub fn call(&mut self, bytes: usize) {
        self.largest_call_bytes = self.largest_call_bytes.max(Some(bytes as u64));
    }

    /// The last reading of a connection whose bytes are all delivered; returns its retransmits.
    pub fn finish(&mut self, socket: i32, time: u64, round: u32, flow: u32) -> Result<u32> {
        let info = self.sample(socket, time, round, flow)?;
        self.socket(socket)?;
        self.path_mtu.insert(info.path_mtu);
        self.mss.insert(info.mss_bytes);
        self.max_pacing.insert(info.max_pacing_bits_per_second);
        self.retransmits += u64::from(info.retransmits);
        self.payload_bytes += info.bytes_sent;
        self.payload_segments += u64::from(info.data_segments_sent);
        Ok(info.retransmits)
    }

    /// The readings in the form that the pipe reports.
    pub fn summary(mut self) -> Result<SenderSummary> {
        let mut srtt: Vec<f64> =
            self.samples.iter().map(|sample| sample.info.srtt_seconds).filter(|srtt| *srtt > 0.0).collect();
        srtt.sort_by(f64::total_cmp);
        let samples = write_samples(std::mem::take(&mut self.samples))?;
        Ok(SenderSummary {
            congestion_control: self.congestion_control.into_iter().collect(),
            path_mtu: self.path_mtu.into_iter().collect(),
            sender_mss_bytes: self.mss.into_iter().collect(),
            max_pacing_bits_per_second: self.max_pacing.into_iter().collect(),
            retransmits: self.retransmits,
            srtt_median_seconds: srtt.get(srtt.len() / 2).copied(),
            mean_segment_payload_bytes: (self.payload_segments > 0)
                .then(|| self.payload_bytes as f64 / self.payload_segments as f64),
            subflows: self.sizes.subflows.map(|_| BTreeSet::from_iter(self.subflows.into_values())),
            buffers: self.buffers,
            largest_call_bytes: self.largest_call_bytes,
            samples,
        })
    }
}

/// What the sending end of a stream reports.
pub struct SenderSummary {
    /// The algorithms read back from its live sockets.
    pub congestion_control: Vec<String>,
    /// The route MTUs its connections used.
    pub path_mtu: Vec<u32>,
    /// Their segment payloads.
    pub sender_mss_bytes: Vec<u32>,
    /// The most that they were allowed to send (`SO_MAX_PACING_RATE`); `None` of those that were not paced.
    pub max_pacing_bits_per_second: Vec<Option<u64>>,
    /// Segments sent again.
    pub retransmits: u64,
    /// Median over all samples.
    pub srtt_median_seconds: Option<f64>,
    /// Payload bytes a segment, as its TCP counted them.
    pub mean_segment_payload_bytes: Option<f64>,
    /// How many subflows its connections had; `None` of TCP.
    pub subflows: Option<BTreeSet<usize>>,
    /// The least buffers of any socket, whichever end sent; `None` without sockets.
    pub buffers: Option<Buffers>,
    /// The most payload that one call sent or received.
    pub largest_call_bytes: Option<u64>,
    /// The samples, as a spool file.
    pub samples: File,
}

fn write_samples(samples: Vec<Sample>) -> Result<File> {
    let float = |value: fn(&Sample) -> f64| Column::Float(samples.iter().map(value).collect());
    let word = |value: fn(&Sample) -> u32| Column::Word(samples.iter().map(value).collect());
    let long = |value: fn(&Sample) -> u64| Column::Long(samples.iter().map(value).collect());
    spool::write(vec![
        ("time_seconds", float(|sample| sample.time as f64 * 1e-9)),
        ("round", word(|sample| sample.round)),
        ("flow", word(|sample| sample.flow)),
        ("srtt_seconds", float(|sample| sample.info.srtt_seconds)),
        ("rttvar_seconds", float(|sample| sample.info.rttvar_seconds)),
        ("cwnd_segments", word(|sample| sample.info.cwnd_segments)),
        ("ssthresh_segments", float(|sample| sample.info.ssthresh_segments.map_or(f64::NAN, f64::from))),
        ("mss_bytes", word(|sample| sample.info.mss_bytes)),
        ("path_mtu", word(|sample| sample.info.path_mtu)),
        ("retransmits", word(|sample| sample.info.retransmits)),
        ("unacked_segments", word(|sample| sample.info.unacked_segments)),
        ("sacked_segments", word(|sample| sample.info.sacked_segments)),
        ("not_sent_bytes", word(|sample| sample.info.not_sent_bytes)),
        ("delivery_rate_bits_per_second", long(|sample| sample.info.delivery_rate_bits_per_second)),
        (
            "pacing_bits_per_second",
            float(|sample| sample.info.pacing_bits_per_second.map_or(f64::NAN, |rate| rate as f64)),
        ),
        ("bytes_acked", long(|sample| sample.info.bytes_acked)),
    ])
}
