//! Joins the pure crates to Linux and a clock: the running fabric, the generators of streams and requests,
//! the meters, a host's settings, its processes and handshakes. It follows orders and takes no decision.
#![allow(clippy::disallowed_methods)]

pub mod check;
pub mod fabric;
pub mod generators;
pub mod host;
pub mod meters;
pub mod rack;
pub mod spool;

pub use framegauge_fabric as model;
pub use framegauge_frames as frames;
pub use framegauge_linux::listening::PortRange;
pub use framegauge_linux::{OsError, Result, clock, namespace, poll, process, sched, user};
pub use framegauge_packets::pcapng;
pub use framegauge_pathmtu as pathmtu;
pub use framegauge_traffic as traffic;
