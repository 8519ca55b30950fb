//! What a search is asked.

use std::time::Duration;

/// What to find out, and how sure to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// The size that the path should carry, in bytes.
    pub target: u32,
    /// How many flows.
    pub flows: u16,
    /// Find the exact path MTU of flows that do not carry the target; otherwise only that they do not.
    pub exact: bool,
    /// The chance that one flow's claim is wrong that a size does not pass.
    pub false_claim: f64,
    /// Controls beside each probe that is to prove silence, at least one. The fewer of them are lost, the fewer such probes it
    /// takes: more spare bytes, fewer spare packets.
    pub controls_a_probe: u32,
    /// Bytes that may be under way at once: more would overflow the far end's socket, and loss costs time. Small packets
    /// count for a kilobyte at least. Where controls are lost, less is.
    pub in_flight_bytes: u32,
    /// After so long, flows without a verdict could not be told.
    pub patience: Duration,
    /// Mean time from one packet to the next; zero: as fast as may be. For far ends that limit how often they answer: where
    /// controls are lost it grows, up to eight times.
    pub gap: Duration,
}
