//! The path MTU check on one host: probes and echoes, and the facts that explain what they find.

pub mod facts;
pub mod path;
mod programs;
pub mod rdma;
mod ruleset;
