//! Joins the pure crates to Linux and a clock: the running fabric, the generators of streams and requests,
//! the meters, a host's settings, its processes and handshakes. It follows orders and takes no decision.
#![allow(clippy::disallowed_methods)]

mod ahead;
pub mod captures;
pub mod check;
mod door;
pub mod fabric;
pub mod generators;
pub mod host;
pub mod joins;
pub mod meters;
pub mod own;
pub mod rack;
pub mod readings;
pub mod sample;
pub mod simulations;
pub mod spool;
pub mod tap;

pub use framegauge_linux::listening::PortRange;
pub use framegauge_linux::{OsError, Result};
