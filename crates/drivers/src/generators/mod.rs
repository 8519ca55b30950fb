//! The load generators: clients and servers of streams, requests, datagrams and QUIC, and the sockets that programs have open.

pub mod datagrams;
pub mod incast;
mod progress;
pub mod quic;
pub mod rr;
pub mod sockets;
pub mod stream;
