//! What a simulation came to.

use framegauge_fabric::{Counters, Drop};
use framegauge_frames::Picoseconds;

use crate::SenderCounts;
use crate::capture::Passed;
use crate::cores::CpuCounts;
use crate::log::Logged;
use crate::requests::RequestCounts;
use crate::series::PortSample;
use crate::work::Transfer;

/// The state of one flow's connection at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub time: Picoseconds,
    /// Which flow.
    pub flow: u32,
    /// Bytes that were read over the connection, by the server and by the client.
    pub read_bytes: [u64; 2],
    /// Of the side that sends: its cwnd and what is under way, in segments.
    pub cwnd_segments: u32,
    /// In segments.
    pub in_flight_segments: u32,
    /// Its smoothed RTT; zero without a sample.
    pub smoothed_rtt: Picoseconds,
}

/// What a flow's connections did, both ends together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowCounts {
    /// Connections that were opened.
    pub connections: u64,
    /// Of both ends.
    pub sender: SenderCounts,
    /// The ends by which client and server of its last connection sent, by their places in the network.
    pub exits: [u16; 2],
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Messages, in the order of their ends; those that were under way at the end come last, by connection.
    pub transfers: Vec<Transfer>,
    /// By flow.
    pub flows: Vec<FlowCounts>,
    /// By client with requests at a rate.
    pub requests: Vec<RequestCounts>,
    /// In the order of time and flow.
    pub samples: Vec<Sample>,
    /// Segments in the order in which they were sent, if the scenario asks for them.
    pub log: Vec<Logged>,
    /// Of ports, in the order of time and port, the last at the end.
    pub port_samples: Vec<PortSample>,
    /// Of the network at the end.
    pub counters: Counters,
    /// The first million of drops and marks.
    pub drops: Vec<Drop>,
    /// What passed the ports that were watched, in the order of time, and how much more did than was kept.
    pub passed: Vec<Passed>,
    /// See there.
    pub passed_left_out: u64,
    /// Of the hosts whose CPUs are modelled.
    pub cpus: Vec<CpuCounts>,
    /// What happened at hosts by the clock; frames and interrupts in the network are in the counters.
    pub events: u64,
    /// Segments that endpoints have sent.
    pub segments: u64,
    /// Of these, segments that hosts have got.
    pub delivered: u64,
    /// Segments that were neither delivered nor dropped at the end.
    pub under_way: u64,
    /// When it ended: all was done, or the time was up.
    pub end: Picoseconds,
}
