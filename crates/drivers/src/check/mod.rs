//! The path MTU check on one host: probes and echoes, and the facts that explain what they find.

pub mod facts;
mod mss_clamps;
pub mod path;
