//! Commands of the load generators.

pub mod incast;
pub mod rr;
pub mod streams;
