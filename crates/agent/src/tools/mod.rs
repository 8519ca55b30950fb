//! Other faces of the binary: what it is when it does not speak on the pipe.

pub mod counters;
pub mod diagnose;
pub mod exec;
pub mod helper;
pub mod keep;
pub mod lease;
mod permitted;
pub mod simulate;
pub mod sockets;
