//! Probes for a larger packet size (RFC 4821 section 7): one segment above the size in use, between others of that size.
//!
//! ```text
//!   1000  1000  1400  1000  1000 ──▶      the probe is lost, SACK asks for it, and its bytes come again as 1000 and 400
//! ```
//!
//! That a probe is lost says how large packets may be. It is no sign of congestion, nothing becomes slower by it, and nobody must look
//! for what drops packets (section 7.4). A loss of another kind is repeated as it was.

use crate::connection::{Connection, Side};

impl Connection {
    /// Whether `bytes` that are sent again from a place on were those of such a probe, of which the capture has the packet. Before they
    /// are taken in.
    pub(crate) fn repeats_size_probe(&self, from: Side, begin: u64, bytes: u32) -> bool {
        let half = self.half(from);
        let flight = half.way.flight();
        let Some(probe) = flight.at(begin) else { return false };
        let Some(next) = flight.at(probe.end) else { return false };
        // What is larger than a segment is an aggregate, whatever the size in use.
        let is_segment = half.opening.mss().is_some_and(|mss| probe.bytes <= mss);
        let in_use = half.delivered();
        let is_alone = in_use < probe.bytes && in_use == next.bytes;
        is_segment && is_alone && bytes <= in_use
    }
}
