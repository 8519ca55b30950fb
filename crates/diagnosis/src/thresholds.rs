//! Every limit that decides a finding, in one table. Times are in nanoseconds.

use serde::{Deserialize, Serialize};

/// The limits; `docs/reference/diagnose.md` says where each comes from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Thresholds {
    /// A pause is a gap of more than this many RTTs ...
    pub pause_rtts: f64,
    /// ... and of more than this.
    pub pause_nanoseconds: i64,
    /// An acknowledgement that comes later than this may have been delayed on purpose (Linux: 40 ms, RFC 1122: 500 ms).
    pub delayed_ack_least: i64,
    /// Later than this it is something else.
    pub delayed_ack_most: i64,
    /// What leaves within this after an acknowledgement had waited for it.
    pub held_nanoseconds: i64,
    /// Repeats of a pattern before it has a name.
    pub repeats: u32,
    /// Duplicate acknowledgements that reveal a loss (RFC 5681).
    pub duplicate_acks: u32,
    /// An RTT this many times the smallest ...
    pub bloat_factor: f64,
    /// ... and this much above it is a queue.
    pub bloat_nanoseconds: i64,
    /// Segments within this of the window's edge are limited by it.
    pub window_slack_segments: u32,
    /// The part of a connection's life from which a limit is worth a finding.
    pub share_of_life: f64,
    /// The part of resent bytes within a second that is a storm.
    pub storm_share: f64,
    /// Resends within a second below which there is no storm.
    pub storm_resends: u32,
    /// Segments below half an MSS at the window's edge.
    pub silly_segments: u32,
    /// The part of a connection's segments with data that they are.
    pub silly_share: f64,
    /// Senders that fall silent together.
    pub incast_senders: u32,
    /// How many times as fast as few flows by one port many by another are ...
    pub outcast_ratio: f64,
    /// ... if the few have lost so many segments in a row.
    pub outcast_run: u32,
    /// Connections to one service that are peers.
    pub peers: u32,
    /// Standard deviations by which one of them is slower than their median.
    pub peer_distance: f64,
    /// Resets of one host within a second.
    pub resets: u32,
    /// The part of bytes that a capture may lack.
    pub capture_loss: f64,
    /// The same packet again within this is a duplicate of the capture.
    pub duplicate_nanoseconds: i64,
    /// The part of the bytes under way before a loss or a pause to which they must have fallen ...
    pub fallen_share: f64,
    /// ... from at least so many segments.
    pub fallen_segments: u32,
    /// Growing rounds of a transfer that ended in slow start.
    pub slow_start_rounds: u32,
    /// The part of its life that a connection may leave unexplained.
    pub unexplained_share: f64,
    /// The least time that is worth a warning without a name, in nanoseconds.
    pub unexplained_nanoseconds: i64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds {
            pause_rtts: 2.0,
            pause_nanoseconds: 2_000_000,
            delayed_ack_least: 30_000_000,
            delayed_ack_most: 520_000_000,
            held_nanoseconds: 2_000_000,
            repeats: 3,
            duplicate_acks: 3,
            bloat_factor: 5.0,
            bloat_nanoseconds: 1_000_000,
            window_slack_segments: 3,
            share_of_life: 0.1,
            storm_share: 0.05,
            storm_resends: 30,
            silly_segments: 10,
            silly_share: 0.2,
            incast_senders: 3,
            outcast_ratio: 3.0,
            outcast_run: 3,
            peers: 10,
            peer_distance: 6.0,
            resets: 10,
            capture_loss: 0.001,
            duplicate_nanoseconds: 500_000,
            fallen_share: 0.5,
            fallen_segments: 10,
            slow_start_rounds: 3,
            unexplained_share: 0.2,
            unexplained_nanoseconds: 10_000_000,
        }
    }
}
