//! Searches for the path MTU of many flows at once, from one end to the other, and says how sure it is.
//!
//! Nothing here opens a socket or looks at a clock: a [`Search`] is asked what to send ([`Search::poll`]) and told what
//! became of it; `now` is the time since any moment that the caller likes, and never goes back. Sizes are those of IP
//! packets in bytes, the unit of an MTU.
//!
//! A probe of some size has one of three outcomes: it is delivered (the far end acknowledges it), it is refused as too
//! big by somebody who says so, or there is silence. Only the first is proof. Silence may also be loss: how
//! often it must be repeated follows from how many small probes, the controls, are lost on the same flow at the same
//! time ([`silence_by_loss`]).
//!
//! Beside it, [`mss_clamps`] reads which rules of a host make TCP stay below the size of its path.

mod carrier;
mod claim;
mod clamps;
mod config;
mod flow;
mod message;
mod pace;
mod round_trip;
mod search;
mod sizes;
mod trace;
mod traces;
mod verdict;

pub use carrier::{Answer, Carrier, Datagram, Echo};
pub use claim::{coverage, flows_for_coverage, silence_by_loss};
pub use clamps::{ClampedTo, MssClamp, RulesetError, mss_clamps};
pub use config::Config;
pub use message::{
    Acknowledgement, MESSAGE_BYTES, MessageError, Probe, SMALLEST_PROBE_BYTES, TOKEN_BYTES, Token,
    header_bytes, same_token,
};
pub use search::{Next, Search};
pub use trace::{Hop, HopOutcome, Trace, TraceConfig, TraceProbe, TraceSize};
pub use traces::Traces;
pub use verdict::{Controls, FlowReport, Report, Told, Verdict};
