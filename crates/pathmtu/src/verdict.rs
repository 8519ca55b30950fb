//! What is found out.

use std::net::IpAddr;

/// What a flow was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// A packet of the target's size arrived.
    CarriesTarget,
    /// It does not pass, and somebody says so; or it arrived, but in fragments.
    TooSmall,
    /// It vanishes without a word, while small packets arrive.
    BlackHole,
    /// Nothing arrives.
    Unreachable,
    /// Could not tell.
    Unknown,
}

/// Who said that a packet is too big.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Told {
    /// Its address; none: this host itself.
    pub by: Option<IpAddr>,
    /// The MTU that it named.
    pub mtu_bytes: Option<u32>,
}

/// Small probes that should have been answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "they say it")]
pub struct Controls {
    pub sent: u32,
    pub lost: u32,
}

/// What is known of one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowReport {
    /// What it was found to be.
    pub verdict: Verdict,
    /// The largest IP packet that passes; none if that could not be told. The target if it carries it.
    pub path_mtu_bytes: Option<u32>,
    /// The largest that was seen to arrive; 0: none.
    pub delivered_bytes: u32,
    /// Who said what, as far as no packet has disproved it.
    pub told: Option<Told>,
    /// Who named an MTU that a larger packet has passed.
    pub disproved: Option<Told>,
    /// The pieces in which packets arrived (or echoes came back) although they must not be fragmented; a size that did is too
    /// big, whoever cut it.
    pub fragment_bytes: Option<u32>,
}

/// What asking more slowly has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Slowly {
    /// Flows that carry the target, as was seen only then.
    pub arrived: u16,
    /// The rate at which most of what was asked arrived; none: at none.
    pub bytes_per_second: Option<u32>,
}

/// What is known of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "they say it")]
pub struct Report {
    pub flows: Vec<FlowReport>,
    pub controls: Controls,
    pub sent_packets: u64,
    pub sent_bytes: u64,
    /// None: nothing had to be asked more slowly.
    pub slowly: Option<Slowly>,
}
