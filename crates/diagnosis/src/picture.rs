//! The time-sequence picture of a connection (Stevens, TCP/IP Illustrated, chapter 20; tcptrace's xplot graphs): what
//! each end sent and the other acknowledged, the window's edge, bytes under way, RTT samples, and when which cause
//! held. Collected only for connections that are asked for.

use crate::Thresholds;
use crate::connection::{Connection, Side};
use crate::findings::Ends;
use crate::half::Half;
use crate::kinds::Kind;
use crate::marks::{AckMark, SackMark, SegmentMark, Series, StretchMark, ValueMark};
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::{SACK_BLOCKS, Segment};
use serde::Serialize;

/// Flags of a segment: it was sent again; it came later than what follows it; SYN; FIN; RST; it asks whether the other
/// end lives or has opened its window.
const RESENT: u8 = 1;
const LATE: u8 = 2;
const SYN: u8 = 4;
const FIN: u8 = 8;
const RST: u8 = 16;
const PROBE: u8 = 32;
/// Stretches that are kept of a kind.
const MOST_STRETCHES: usize = 2_000;

/// All that is drawn of a connection. Times are in nanoseconds since `begin_seconds`, sequence numbers count from the
/// SYN or from the first byte that the capture has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Picture {
    /// The connection's number.
    pub connection: u64,
    /// Its ends.
    #[serde(flatten)]
    pub ends: Ends,
    /// Its first packet, in seconds since that of the capture.
    pub begin_seconds: f64,
    directions: [Direction; 2],
    stretches: Vec<Stretches>,
    #[serde(skip)]
    first: i64,
}

/// What one end sent, and what the other said of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Direction {
    segments: Series<SegmentMark>,
    acks: Series<AckMark>,
    sacks: Series<SackMark>,
    /// Bytes neither acknowledged nor SACKed.
    flight: Series<ValueMark>,
    /// From a segment to its acknowledgement, seen from the tap, in nanoseconds.
    rtt: Series<ValueMark>,
    /// Marks of all kinds that found no room.
    left_out: u64,
    /// The place of sequence number 0.
    #[serde(skip)]
    base: Option<u64>,
    #[serde(skip)]
    flight_bytes: i64,
    #[serde(skip)]
    blocks: [(u32, u32); SACK_BLOCKS],
}

/// The stretches that belong to a cause, or the moments at which something happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Stretches {
    kind: Kind,
    #[serde(flatten)]
    found: Series<StretchMark>,
}

/// What a segment changes.
#[derive(Debug, Clone, Copy)]
struct Before {
    segments: u64,
    resent_segments: u64,
    high: u64,
    samples: u64,
}

impl Picture {
    pub(crate) fn new(connection: u64, ends: Ends, first: i64, origin: i64) -> Picture {
        Picture {
            connection,
            ends,
            begin_seconds: (first - origin) as f64 / 1e9,
            directions: Default::default(),
            stretches: Vec::new(),
            first,
        }
    }

    /// A stretch that was given to a cause. What every connection has is not kept: somebody is always the limit.
    pub(crate) fn note(&mut self, kind: Kind, begin: i64, end: i64) {
        if matches!(kind, Kind::ApplicationLimited | Kind::NetworkLimited) || kind.is_quality() {
            return;
        }
        let (begin, end) = (begin - self.first, end - self.first);
        let place = self.stretches.iter().position(|entry| entry.kind == kind).unwrap_or_else(|| {
            self.stretches.push(Stretches { kind, found: Series::with_room(MOST_STRETCHES) });
            self.stretches.len() - 1
        });
        let marks = &mut self.stretches[place].found;
        match marks.last_mut() {
            Some(last) if last.end == begin => last.end = end,
            _ => marks.push(StretchMark { begin, end }),
        }
    }

    /// A cause turned out to be another.
    pub(crate) fn rename(&mut self, kind: Kind, other: Kind) {
        match other {
            Kind::ApplicationLimited => self.stretches.retain(|entry| entry.kind != kind),
            _ => self
                .stretches
                .iter_mut()
                .filter(|entry| entry.kind == kind)
                .for_each(|entry| entry.kind = other),
        }
    }

    /// The connection has ended.
    pub(crate) fn finish(&mut self) {
        for direction in &mut self.directions {
            direction.left_out = direction.segments.left_out()
                + direction.acks.left_out()
                + direction.sacks.left_out()
                + direction.flight.left_out()
                + direction.rtt.left_out();
        }
    }
}

impl Connection {
    /// As `take`, for a connection that is drawn.
    pub(crate) fn take_drawn(&mut self, segment: &Segment, limits: &Thresholds) {
        let from = if segment.source == self.ends.client { Side::Client } else { Side::Server };
        let (own, their) = (self.half(from), self.half(from.other()));
        let before = Before {
            segments: own.counts.segments(),
            resent_segments: own.counts.resent_segments(),
            high: own.way.high(),
            samples: their.round_trip.samples(),
        };
        self.take(segment, limits);
        // A copy that the capture has twice is no packet.
        if self.half(from).counts.segments() == before.segments {
            return;
        }
        let Some(mut picture) = self.picture.take() else { return };
        let now = self.last - picture.first;
        let (own, their) = (self.half(from), self.half(from.other()));
        let [client, server] = &mut picture.directions;
        let (forward, backward) = match from {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        forward.take_segment(segment, own, before, now);
        if segment.flags.contains(TcpFlags::ACK) && !segment.flags.contains(TcpFlags::RST) {
            backward.take_ack(segment, their, now);
        }
        if their.round_trip.samples() > before.samples {
            backward.rtt.push(ValueMark { time: now, value: their.round_trip.latest() });
        }
        forward.take_flight(own, now);
        backward.take_flight(their, now);
        self.picture = Some(picture);
    }
}

impl Direction {
    /// A place, counted from the SYN.
    fn place(&mut self, half: &Half, place: u64) -> i64 {
        let start = if half.opening.count() > 0 { half.opening.place() } else { half.way.una().min(place) };
        place.wrapping_sub(*self.base.get_or_insert(start)) as i64
    }

    fn take_segment(&mut self, segment: &Segment, half: &Half, before: Before, now: i64) {
        let has = |flag| segment.flags.contains(flag);
        let (syn, fin, rst) = (has(TcpFlags::SYN), has(TcpFlags::FIN), has(TcpFlags::RST));
        if segment.payload_bytes == 0 && !syn && !fin && !rst {
            return;
        }
        let place = half.way.near(segment.seq) + u64::from(syn && segment.payload_bytes > 0);
        let end = place + u64::from(segment.payload_bytes);
        let old = segment.payload_bytes > 0 && end <= before.high;
        let resent =
            half.counts.resent_segments() > before.resent_segments || (syn && half.opening.count() > 1);
        let flags = match (resent, old) {
            (true, _) => RESENT,
            (false, true) if segment.payload_bytes == 1 => PROBE,
            (false, true) => LATE,
            (false, false) => 0,
        } | if syn { SYN } else { 0 }
            | if fin { FIN } else { 0 }
            | if rst { RST } else { 0 };
        let begin = self.place(half, place);
        let bytes = i64::from(segment.payload_bytes);
        self.segments.push(SegmentMark { time: now, begin, bytes, number: segment.number, flags, count: 1 });
    }

    /// An acknowledgement of this direction's data.
    fn take_ack(&mut self, segment: &Segment, half: &Half, now: i64) {
        if !half.way.has_begun() {
            return;
        }
        let place = half.way.near(segment.ack);
        let ack = self.place(half, place);
        let window = if half.way.knows_window() { half.way.window() as i64 } else { -1 };
        self.acks.push(AckMark { time: now, ack, window, number: segment.number, count: 1 });
        let blocks = segment.sack.as_slice();
        for (at, block) in blocks.iter().enumerate() {
            // The first one is new (RFC 2018 section 4); the others are repeated for those who missed them.
            if at > 0 && self.blocks.contains(block) {
                continue;
            }
            let (begin, end) = (half.way.near(block.0), half.way.near(block.1));
            let inside =
                |outer: &(u32, u32)| half.way.near(outer.0) <= begin && end <= half.way.near(outer.1);
            let duplicate = at == 0 && (end <= place || blocks.get(1).is_some_and(inside));
            let bytes = end.saturating_sub(begin) as i64;
            let begin = self.place(half, begin);
            let number = segment.number;
            self.sacks.push(SackMark { time: now, begin, bytes, number, duplicate: duplicate.into() });
        }
        self.blocks = segment.sack.blocks;
    }

    fn take_flight(&mut self, half: &Half, time: i64) {
        let value = half.way.flight().bytes() as i64;
        if value != self.flight_bytes {
            self.flight_bytes = value;
            self.flight.push(ValueMark { time, value });
        }
    }
}
