//! Decides what to send when, and never sends: a driver asks, does it, and tells what came of it.
//! Times are nanoseconds on the driver's clock.

mod arrivals;
mod datagram_head;
mod datagrams;
mod hello;
mod incast;
mod message;
mod rr;
mod rr_hello;
mod stream;

pub use arrivals::{Arrivals, Schedule};
pub use datagram_head::DatagramHead;
pub use datagrams::{Datagrams, DatagramsSpec, DueDatagram, Periods};
pub use hello::{Hello, HelloError, TOKEN_BYTES, Token};
pub use incast::{Incast, IncastSpec, Silence, Span};
pub use message::next_write_bytes;
pub use rr::{Load, Rr, RrSpec, RrSummary, Transaction};
pub use rr_hello::RrHello;
pub use stream::{Action, Amount, Stream, StreamSpec, Transfer};
