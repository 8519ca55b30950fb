//! Joins the pure crates to Linux and a clock: the running fabric, the stream generator, the meters,
//! a host's settings, its processes and handshakes. It follows orders and takes no decision.
#![allow(clippy::disallowed_methods)]

mod closing;
mod edge;
pub mod fabric;
pub mod host;
pub mod meters;
pub mod ports;
pub mod processes;
pub mod rack;
pub mod requirements;
mod sender_log;
pub mod serving;
pub mod spool;
pub mod streaming;
pub mod visit;
pub mod wire;

pub use framegauge_frames as frames;
pub use framegauge_linux::{OsError, Result, clock, namespace, poll, process, sched, user};
pub use framegauge_traffic as traffic;
