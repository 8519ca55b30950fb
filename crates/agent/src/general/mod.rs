//! Commands that every agent has.

pub mod frames_datagram;
pub mod frames_rdma;
pub mod frames_wire;
pub mod hello;
pub mod spool;
