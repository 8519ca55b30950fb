//! The load generators: clients and servers of streams and of requests, and the sockets that programs have open.

pub mod incast;
mod progress;
pub mod rr;
pub mod sockets;
pub mod stream;
