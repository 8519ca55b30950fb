//! Commands that every agent has.

pub mod frames_wire;
pub mod hello;
pub mod spool;
