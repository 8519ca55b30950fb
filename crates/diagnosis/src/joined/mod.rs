//! Several captures of the same connections, joined: where packets were lost, how long they took, and who waited.
//!
//! ```text
//!   segments of each tap ──> Record ──> Group ──> ways ──> matched ──> drops
//!                            40 bytes   of one    order    bytes,      between two taps
//!                                       connection          not packets
//! ```
//!
//! Matching needs all of a connection at both taps, because what is lost is known only when its repair has come, and
//! clocks may be apart by any time: so each segment is kept, as a record of 40 bytes, up to [`Joiner::MOST_SEGMENTS`].
//! Beyond that the rest of the captures is left out, and counted. While a hop is looked at, its packets take 70 bytes more.
//!
//! No part of this needs a common clock to find what was lost. Delays do: `clock.rs` aligns clocks by packets that came both
//! ways, and says how wrong it may be. Who held an answer back is told by single clocks again (`waits.rs`).

mod clock;
mod clocks;
mod delays;
mod drops;
mod groups;
mod hull;
mod matching;
mod path;
mod record;
mod report;
mod samples;
mod sizes;
mod unscaled;
mod waits;

pub use clock::{Clock, Piece, Sighting};
pub use report::{
    ClockPiece, Delay, DelayPart, Drop, Held, Hop, Joined, JoinedConnection, JoinedDirection, JoinedTap,
    Rise, Seen, TapClock, Wait,
};
pub use sizes::LostSizes;
pub use unscaled::Unscaled;

use clocks::Clocks;
use framegauge_packets::capture::Segment;
use groups::{Group, Key};
use path::Ways;
use record::{Record, Trace, ends_of};
use std::collections::HashMap;

/// What a tap holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Packets that passed it.
    Path,
    /// Packets that were dropped there.
    Dropped,
}

/// From the first to the last stamp of a clock, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    first: i64,
    last: i64,
}

/// A place where packets were captured.
#[derive(Debug, Clone)]
struct Tap {
    name: String,
    interface: Option<String>,
    /// Taps of one file share its clock.
    clock: usize,
    place: Place,
    segments: u64,
    span: Span,
}

/// Takes the segments of all taps, each in the order of its capture, and joins them in the end.
#[derive(Debug, Default)]
pub struct Joiner {
    taps: Vec<Tap>,
    traces: Vec<HashMap<Key, Vec<Trace>>>,
    kept: u64,
    left_out: u64,
}

impl Joiner {
    /// Segments that are kept of all taps together: 1.3 GB.
    pub const MOST_SEGMENTS: u64 = 1 << 25;

    /// Adds a tap; gives its number, from 0. `file`: taps with the same number share a clock.
    pub fn tap(&mut self, name: String, interface: Option<String>, file: usize, place: Place) -> usize {
        let span = Span { first: i64::MAX, last: i64::MIN };
        self.taps.push(Tap { name, interface, clock: file, place, segments: 0, span });
        self.traces.push(HashMap::new());
        self.taps.len() - 1
    }

    /// The capture of a tap's file ran at this time, whether or not it has a segment of then.
    pub fn ran(&mut self, tap: usize, nanoseconds: i64) {
        let span = &mut self.taps[tap].span;
        span.first = span.first.min(nanoseconds);
        span.last = span.last.max(nanoseconds);
    }

    /// Takes the next segment of a tap.
    pub fn take(&mut self, tap: usize, segment: &Segment) {
        self.taps[tap].segments += 1;
        self.ran(tap, segment.nanoseconds);
        if self.kept >= Self::MOST_SEGMENTS {
            self.left_out += 1;
            return;
        }
        let (key, lane) = ends_of(segment);
        let traces = self.traces[tap].entry(key).or_default();
        if traces.last().is_none_or(|trace| trace.is_another(segment)) {
            traces.push(Trace::begin(segment, lane));
        }
        if let Some(trace) = traces.last_mut() {
            self.kept += u64::from(trace.take(segment, lane));
        }
    }

    /// Joins what was taken. `None` if no two taps saw the same connection.
    pub fn finish(self) -> Option<Joined> {
        let mut taps = self.taps;
        share_spans(&mut taps);
        let copies: Vec<u64> = self
            .traces
            .iter()
            .map(|traces| traces.values().flatten().map(|trace| trace.copies).sum())
            .collect();
        let is_path = |(tap, _): &&(usize, Trace)| taps[*tap].place == Place::Path;
        let mut groups = groups::groups(self.traces);
        groups.retain(|group| group.traces.iter().filter(is_path).count() > 1);
        if groups.is_empty() {
            return None;
        }
        let mut ways: Vec<Ways> = groups.iter().map(|group| path::ways(group, &taps)).collect();
        let clocks = Clocks::align(&mut ways);
        let connections =
            groups.iter().zip(&ways).map(|(group, ways)| connection(group, ways, &taps, &clocks)).collect();
        let first = (taps[0].clock, taps[0].span.first);
        let joined_tap = |(number, (tap, copies)): (usize, (Tap, u64))| JoinedTap {
            tap: number + 1,
            name: tap.name,
            file: tap.clock + 1,
            interface: tap.interface,
            holds: if tap.place == Place::Path { "passed" } else { "dropped" },
            segments: tap.segments,
            copies,
            clock: clocks.told(tap.clock, first),
        };
        let taps = taps.clone().into_iter().zip(copies).enumerate().map(joined_tap).collect();
        Some(Joined { taps, connections, left_out_segments: self.left_out })
    }
}

/// A capture runs as long as any tap of its file says.
fn share_spans(taps: &mut [Tap]) {
    let mut spans: HashMap<usize, Span> = HashMap::new();
    for tap in &*taps {
        let span = spans.entry(tap.clock).or_insert(tap.span);
        span.first = span.first.min(tap.span.first);
        span.last = span.last.max(tap.span.last);
    }
    taps.iter_mut().for_each(|tap| tap.span = spans[&tap.clock]);
}

fn connection(group: &Group, ways: &Ways, taps: &[Tap], clocks: &Clocks) -> JoinedConnection {
    let client = group.client();
    let in_time = |one: usize, other: usize, here: &Record, there: &Record| {
        let files = (taps[one].clock, taps[other].clock);
        let delay = clocks.delay(files, here.nanoseconds, there.nanoseconds);
        delay.is_none_or(|(delay, uncertainty)| delay >= -uncertainty)
    };
    let directions = [client, 1 - client].map(|lane| {
        let way = &ways.taps[lane];
        let records = |tap: usize| group.trace(tap).map_or(&[][..], |trace| &trace.lanes[lane].records[..]);
        let mut hops = Vec::new();
        for (mut hop, passed) in drops::hops(group, lane, way, taps, in_time) {
            let (one, other) = (hop.between[0] - 1, hop.between[1] - 1);
            let files = (taps[one].clock, taps[other].clock);
            hop.delay = delays::delays(clocks, files, (records(one), records(other)), &passed);
            hops.push(hop);
        }
        let both = |tap: &usize| {
            let trace =
                group.trace(*tap).filter(|trace| trace.lanes.iter().all(|lane| !lane.records.is_empty()));
            trace.map(|trace| (*tap, trace))
        };
        let wait = match (way.iter().find_map(both), way.iter().rev().find_map(both)) {
            (Some((near, asking)), Some((far, answering))) if near != far => {
                Some(Wait { between: [near + 1, far + 1], ..waits::waits(asking, answering, lane) })
            }
            _ => None,
        };
        JoinedDirection { taps: way.iter().map(|tap| tap + 1).collect(), hops, wait }
    });
    let (one, other) = group.key;
    let (client, server) = if client == 0 { (one, other) } else { (other, one) };
    let sightings = group
        .traces
        .iter()
        .map(|(tap, trace)| Seen { tap: tap + 1, begin_seconds: trace.first_nanoseconds as f64 / 1e9 })
        .collect();
    JoinedConnection { client, server, seen: sightings, directions }
}
