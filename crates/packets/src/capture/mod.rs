//! Captures as segments.

mod segment;

pub use segment::{SACK_BLOCKS, SackBlocks, Segment};
