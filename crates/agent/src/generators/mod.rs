//! Commands of the load generators.

pub mod rr;
pub mod streams;
