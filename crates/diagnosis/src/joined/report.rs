//! What the captures tell together, in the form in which it is told.

use super::sizes::LostSizes;
use super::unscaled::Unscaled;
use serde::Serialize;
use std::net::SocketAddr;

/// Captures that share connections.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Joined {
    /// Where packets were captured; numbered from 1.
    pub taps: Vec<JoinedTap>,
    /// The connections that two taps or more saw.
    pub connections: Vec<JoinedConnection>,
    /// Segments that there was no more room for.
    pub left_out_segments: u64,
}

/// A place where packets were captured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JoinedTap {
    /// Its number.
    pub tap: usize,
    /// Its name.
    pub name: String,
    /// The number of its file, from 1, in the order in which they were given.
    pub file: usize,
    /// The interface in its file; `None` if there is one only.
    pub interface: Option<String>,
    /// Whether it holds packets that passed or those that were dropped.
    pub holds: &'static str,
    /// TCP segments.
    pub segments: u64,
    /// Packets that it has twice.
    pub copies: u64,
    /// Its clock by that of the first tap; `None` if they cannot be aligned: packets of one direction only passed both.
    pub clock: Option<TapClock>,
}

/// How far a clock is ahead of the first tap's.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct TapClock {
    /// At the first packet that both saw, in seconds.
    pub offset_seconds: f64,
    /// By how many seconds a second it gains.
    pub drift: f64,
    /// By how much the offset may be wrong, whatever the delays were: the most of all pieces.
    pub uncertainty_seconds: f64,
    /// Packets that tell it; 0 if it was found by way of other clocks, `None` for the first clock itself.
    pub sightings: Option<u64>,
    /// Stretches over which the clock runs straight; a step is between two of them.
    pub pieces: Vec<ClockPiece>,
}

/// A stretch over which a clock runs straight by another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClockPiece {
    /// From here on, in seconds since 1970 by the clock of the file that was given first of the two.
    pub begin_seconds: f64,
    /// Up to here.
    pub end_seconds: f64,
    /// At its begin.
    pub offset_seconds: f64,
    /// By how many seconds a second it gains.
    pub drift: f64,
    /// By how much the offset may be wrong.
    pub uncertainty_seconds: f64,
}

/// A connection at several taps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JoinedConnection {
    /// Who opened it.
    pub client: SocketAddr,
    /// The other end.
    pub server: SocketAddr,
    /// By tap: its number, and when it saw the connection's first packet, in seconds since 1970 by its own clock.
    pub seen: Vec<Seen>,
    /// From the client to the server, and back.
    pub directions: [JoinedDirection; 2],
}

/// A connection at one tap.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Seen {
    /// The tap.
    pub tap: usize,
    /// Its first packet.
    pub begin_seconds: f64,
}

/// One direction of a connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JoinedDirection {
    /// The taps in the order in which its packets pass them.
    pub taps: Vec<usize>,
    /// From each tap to the next.
    pub hops: Vec<Hop>,
    /// How long this direction's answers let it wait; `None` without two taps that saw both directions.
    pub wait: Option<Wait>,
}

/// Who kept the sender of a direction waiting for answers.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Wait {
    /// The tap nearest to who asked, and that nearest to who answered.
    pub between: [usize; 2],
    /// Answers: data that followed data of this direction.
    pub answers: u64,
    /// From the request's end to the answer's begin, at the tap nearest to who asked, in all.
    pub waited_seconds: f64,
    /// The part of it at the tap nearest to who answered: that end held the answer back.
    pub held_seconds: f64,
    /// The longest of those.
    pub longest_held_seconds: f64,
    /// Packets at that tap with which the answers began that were held back longest.
    pub packets: Vec<u64>,
    /// Acknowledgements that left that end 30 ms or more after the data had come.
    pub acknowledgements: Held,
}

/// What was held back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Default)]
pub struct Held {
    /// How often.
    pub count: u64,
    /// How long in all.
    pub seconds: f64,
}

/// One-way delays of packets whose first or last byte is that of a packet at both taps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Delay {
    /// How many.
    pub packets: u64,
    /// The least. Below 0 only within the uncertainty.
    pub least_seconds: f64,
    /// The median.
    pub median_seconds: f64,
    /// 99 % are not above it.
    pub p99_seconds: f64,
    /// The most.
    pub most_seconds: f64,
    /// All of them may be wrong by this, together: the clocks'.
    pub uncertainty_seconds: f64,
    /// When they were far above the least.
    pub rises: Vec<Rise>,
    /// Up to 100 parts of equal time, without those that have no packets.
    pub series: Vec<DelayPart>,
}

/// Delays of a part of the time, by the clock of the first tap, in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DelayPart {
    /// Its first packet.
    pub begin_seconds: f64,
    /// Its last.
    pub end_seconds: f64,
    /// The least.
    pub least_seconds: f64,
    /// The median.
    pub median_seconds: f64,
    /// The most.
    pub most_seconds: f64,
}

/// A time in which the delay was more than five times the least, and 1 ms more: a queue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rise {
    /// From.
    pub begin_seconds: f64,
    /// To.
    pub end_seconds: f64,
    /// The highest median of its parts.
    pub median_seconds: f64,
}

/// What became of packets between two taps.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Hop {
    /// The two taps.
    pub between: [usize; 2],
    /// Packets of the second tap that the first saw, too.
    pub arrived_packets: u64,
    /// Packets that were lost between them; of an aggregate, as many as it stands for.
    pub lost_packets: u64,
    /// Their sequence numbers.
    pub lost_bytes: u64,
    /// Packets that arrived although the second tap has not got them: a loss of its capture.
    pub missed_packets: u64,
    /// Packets of the second tap that the first has not.
    pub unseen_packets: u64,
    /// Packets of which it cannot be said: the other capture had not begun, or had ended.
    pub unjudged_packets: u64,
    /// Why nothing is said of this hop.
    pub abstained: Option<&'static str>,
    /// How long packets took; `None` if the clocks cannot be aligned.
    pub delay: Option<Delay>,
    /// Data beyond the window as it is written, where both ends scale theirs.
    pub unscaled: Option<Unscaled>,
    /// Which sizes were lost and which arrived, where that explains the losses.
    pub sizes: Option<LostSizes>,
    /// What was lost, in the order of the first tap's capture.
    pub drops: Vec<Drop>,
}

/// What was lost of a packet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drop {
    /// The packet's number at the first tap.
    pub packet: u64,
    /// When it passed the first tap, in seconds since 1970 by its clock.
    pub at_seconds: f64,
    /// The sequence numbers that were lost: the first ...
    pub begin: u32,
    /// ... and that after the last; the same for what takes none, such as a pure acknowledgement.
    pub end: u32,
    /// As how many packets they were lost.
    pub packets: u64,
    /// The IPv4 identification of the first of them; 0 without one, and in the middle of an aggregate.
    pub identification: u16,
    /// The tap of a port that says itself that it dropped them.
    pub dropped_at: Option<usize>,
    /// The record at the first tap.
    #[serde(skip)]
    pub(super) place: usize,
}
