//! Everything that went into a running fabric and everything that came out: with it the model can be run once more, on
//! any other clock.

use framegauge_fabric::{Aggregate, HostIndex};
use framegauge_frames::Picoseconds;

/// In the order in which it happened. Numbers of aggregates are used again once all of their frames have met their end.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Record {
    /// What hosts handed over, when.
    pub handed_over: Vec<(Picoseconds, HostIndex, Aggregate)>,
    /// When each frame was due at which host: aggregate and frame.
    pub delivered: Vec<(Picoseconds, HostIndex, u32, u16)>,
    /// Aggregate and frame.
    pub discarded: Vec<(u32, u16)>,
    /// Aggregate and frame.
    pub marked: Vec<(u32, u16)>,
    /// When it was last seen to.
    pub until: Picoseconds,
}
