//! Commands of the load generators.

pub mod datagrams;
pub mod incast;
pub mod quic;
pub mod rr;
pub mod streams;
