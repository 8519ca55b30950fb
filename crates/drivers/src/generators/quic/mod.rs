//! QUIC (RFC 9000) by quinn's state machines: both ends have a thread of their own, a UDP socket that does not block, and
//! the clock. Path MTUs are found by probes (RFC 8899), and every datagram that is handed over is counted by its size.
//!
//! ```text
//!   traffic (rounds, flows) --> client ---- wire ----> kernel ----> wire ----> server
//!                                 |          |                        |          |
//!                               transfers   quinn-proto: `now` in,   the same   bytes
//!                                           datagrams and deadlines out
//! ```

pub mod client;
mod keys;
pub mod server;
mod settings;
mod wire;

pub use keys::Key;
pub use settings::{Congestion, QuicSettings};
pub use wire::QuicSummary;
