//! A committed prediction for short transfers.

use crate::{BitRate, Family, Mtu, Picoseconds, ceiling};

/// The largest window that a SYN can offer, in bytes.
const UNSCALED_WINDOW_BYTES: u32 = 65_535;
/// The initial window of Linux and of RFC 6928.
const INITIAL_WINDOW_SEGMENTS: u32 = 10;

/// Predicted completion time of one short TCP transfer, from connect to the confirmation of the last byte.
///
/// The model, fixed before anything is measured:
///
/// 1. The handshake takes one `rtt` (RFC 9293); the serialisation of SYN and SYN-ACK is neglected. Data
///    leaves at its end.
/// 2. Data leaves in rounds. The first round has `initial_window_segments` segments (10: RFC 6928), or as
///    many as fit the 65,535 bytes that a receiver can offer before windows are scaled (RFC 7323, 2.2: the
///    window of a SYN never is), which binds jumbo segments; every further round has twice the one before. Linux counts acknowledged *segments*, not ACKs (appropriate
///    byte counting, RFC 3465), so delayed ACKs do not slow the growth down.
/// 3. A round leaves back to back at the goodput ceiling: a segment takes `s = segment_payload × 8 ÷
///    goodput_bits_per_second`.
/// 4. The next round begins when the first ACK of this one is back, `rtt + s` after it began — `rtt + 2 s`
///    with `delayed_acks`, which wait for a second segment — but not before this round has left: once the
///    window exceeds the bandwidth-delay product the line never falls idle and the transfer is limited by
///    the line rate.
/// 5. The transfer ends one `rtt` after its last segment has left: half for the way there, half for the
///    confirmation.
///
/// Not in the model: loss, HyStart (it acts only once a queue has grown), send and receive buffers, the
/// queueing of ACKs, store-and-forward in switches and interrupt moderation (add both to `rtt`).
///
/// `size_bytes` 0 takes the handshake and one `rtt`. A goodput that is not a positive number, or a payload
/// or window of zero, never finishes: [`Picoseconds::MAX`].
pub fn slow_start_transfer_time(
    size_bytes: u64,
    segment_payload: u32,
    goodput_bits_per_second: f64,
    rtt: Picoseconds,
    initial_window_segments: u32,
    delayed_acks: bool,
) -> Picoseconds {
    let usable = goodput_bits_per_second.is_finite() && goodput_bits_per_second > 0.0;
    if !usable || segment_payload == 0 || initial_window_segments == 0 {
        return Picoseconds::MAX;
    }
    let leaving = |bytes: u64| Picoseconds::from_seconds_f64(bytes as f64 * 8.0 / goodput_bits_per_second);
    let first_ack_segments = if delayed_acks { 2 } else { 1 };
    let first_ack_after = rtt + leaving(u64::from(segment_payload) * first_ack_segments);

    let mut began = rtt;
    let mut remaining = size_bytes;
    let offered_segments = (UNSCALED_WINDOW_BYTES / segment_payload).max(1);
    let mut window = u64::from(initial_window_segments.min(offered_segments)) * u64::from(segment_payload);
    while remaining > window {
        began += leaving(window).max(first_ack_after);
        remaining -= window;
        window = window.saturating_mul(2);
    }
    began + leaving(remaining) + rtt
}

/// [`slow_start_transfer_time`] between two hosts on one switch, with timestamps, delayed acknowledgements and an initial
/// window of ten segments.
///
/// The switch stores each frame before it forwards it: the second serialisation on the way is added to `rtt`.
pub fn switched_transfer_time(
    size_bytes: u64,
    mtu: Mtu,
    family: Family,
    rate: BitRate,
    rtt: Picoseconds,
) -> Picoseconds {
    let best = ceiling(mtu, family, true, rate);
    let rtt = rtt + rate.serialisation(u64::from(best.wire_bytes));
    let (payload, goodput) = (best.segment_payload_bytes, best.goodput_bits_per_second);
    slow_start_transfer_time(size_bytes, payload, goodput, rtt, INITIAL_WINDOW_SEGMENTS, true)
}
