//! What a search is asked.

use std::time::Duration;

/// What to find out, and how sure to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// The size that the path should carry, in bytes.
    pub target: u32,
    /// How many flows.
    pub flows: u16,
    /// Find the exact path MTU of flows on which the target is refused; otherwise only that it is. Where it is lost silently
    /// the size is found in any case.
    pub exact: bool,
    /// The chance that one flow's claim is wrong that a size does not pass. Times `flows`, it is the chance that a path has
    /// no such limit, whatever its losses depend on.
    pub false_claim: f64,
    /// Packets of a size that passes beside each one that is to prove silence, at least one.
    pub controls_a_probe: u32,
    /// Bytes that may be under way at once: more would overflow the far end's socket, and loss costs time. Small packets
    /// count for a kilobyte at least. Where controls are lost, less is.
    pub in_flight_bytes: u32,
    /// After so long, flows without a verdict could not be told.
    pub patience: Duration,
    /// Mean time from one packet to the next; zero: as fast as may be. For far ends that limit how often they answer: where
    /// controls are lost it grows, up to eight times.
    pub gap: Duration,
    /// Of the order in which sizes are sent at an edge; drawn anew for every search, so that nothing can foresee it.
    pub seed: u64,
}
