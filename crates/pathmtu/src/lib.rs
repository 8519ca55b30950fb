//! Searches for the path MTU of many flows at once, from one end to the other, and says how sure it is.
//!
//! Nothing here opens a socket or looks at a clock: a [`Search`] is asked what to send ([`Search::poll`]) and told what
//! became of it; `now` is the time since any moment that the caller likes, and never goes back. Sizes are those of IP
//! packets in bytes, the unit of an MTU.
//!
//! A probe of some size has one of three outcomes: it is delivered (the far end acknowledges it), it is refused as too
//! big by somebody who says so, or there is silence. Only the first is proof. Silence may also be loss, and loss may
//! depend on size without an MTU: a limit of the rate lets small packets pass. So silence is repeated beside packets that
//! are one byte smaller, in random order, until chance explains it no more ([`silence_by_loss`], and the module `rounds`);
//! what does not hold then is asked again, slowly.
//!
//! Beside it, [`mss_clamps`] reads which rules of a host make TCP stay below the size of its path, and [`error_filters`]
//! which ones keep routers' messages from it; [`length_filters`] reads which ones drop packets by their length.

mod carrier;
mod claim;
mod clamps;
mod config;
mod filters;
mod flow;
mod hooked;
mod iptables;
mod lengths;
mod message;
mod pace;
mod random;
mod round_trip;
mod rounds;
mod search;
mod sizes;
mod steps;
mod trace;
mod traces;
mod verdict;
mod walk;

pub use carrier::{Answer, Carrier, Datagram, Echo};
pub use claim::{coverage, flows_for_coverage, silence_by_loss};
pub use clamps::{ClampedTo, MssClamp, RulesetError, mss_clamps, mss_clamps_of_iptables};
pub use config::Config;
pub use filters::{ErrorFilter, error_filters, error_filters_of_iptables};
pub use hooked::{lacks_device, with_devices};
pub use iptables::tables_of_iptables;
pub use lengths::{LengthFilter, has_unread, length_filters, length_filters_of_iptables};
pub use message::{
    Acknowledgement, MESSAGE_BYTES, MessageError, Probe, SMALLEST_PROBE_BYTES, TOKEN_BYTES, Token,
    header_bytes, same_token,
};
pub use search::{Next, Search};
pub use trace::{Hop, HopOutcome, Trace, TraceConfig, TraceProbe, TraceSize};
pub use traces::Traces;
pub use verdict::{Controls, FlowReport, Report, Slowly, Told, Verdict};
