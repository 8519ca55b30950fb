//! Commands of a host agent: its settings, its counters, its programs.

pub mod adopt;
pub mod apply;
pub mod capture;
pub mod counters;
pub mod cpu;
pub mod estimate;
pub mod folder;
pub mod foreign;
pub mod frames;
pub mod handshakes;
pub mod held;
pub mod lease;
pub mod meter;
pub mod names;
pub mod processes;
pub mod read;
pub mod ready;
pub mod routes;
pub mod set;
pub mod sockets;
pub mod state;
pub mod totals;
