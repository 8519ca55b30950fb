//! Joins the pure crates to Linux and a clock: the running fabric, the generators of streams and requests,
//! the meters, a host's settings, its processes and handshakes. It follows orders and takes no decision.
#![allow(clippy::disallowed_methods)]

pub mod bare;
pub mod capture;
mod closing;
pub mod cpu;
mod edge;
pub mod fabric;
mod fabric_loop;
mod fabric_meter;
pub mod facts;
pub mod handover;
pub mod held;
pub mod host;
pub mod kernel_switch;
pub mod meters;
mod mss_clamps;
mod napi;
pub mod network;
pub mod nics;
mod outbox;
mod overlay;
pub mod path;
pub mod ports;
pub mod processes;
pub mod rack;
mod receive_path;
pub mod record;
pub mod requirements;
pub mod rr_client;
mod rr_message;
pub mod rr_serving;
mod sender_log;
mod sent;
mod series;
pub mod serving;
pub mod settings;
mod shaping;
pub mod sockets;
pub mod spool;
pub mod streaming;
pub mod visit;
pub mod waits;
pub mod watching;
pub mod wire;

pub use framegauge_fabric as model;
pub use framegauge_frames as frames;
pub use framegauge_linux::listening::PortRange;
pub use framegauge_linux::{OsError, Result, clock, namespace, poll, process, sched, user};
pub use framegauge_packets::pcapng;
pub use framegauge_pathmtu as pathmtu;
pub use framegauge_traffic as traffic;
