//! What was lost between two taps, and what only a capture has missed.
//!
//! A packet that the second tap has not is a drop, unless
//! - it could not be there: the capture began later, or ended before (`unjudged`);
//! - it arrived all the same: a tap behind has it, or the receiver acknowledged it although no copy passed the second
//!   tap (`missed`: a loss of the capture);
//! - it is a pure acknowledgement, and the second tap missed more than one byte in a thousand: nothing tells then.

use super::groups::Group;
use super::matching::{Matched, Part, matched};
use super::record::Record;
use super::report::{Drop, Hop};
use super::sizes;
use super::unscaled;
use super::{Place, Span, Tap};

/// A packet that a capture's end may have cut off is none that was lost: this long, and as much longer as the delays
/// between the taps differ.
const GRACE_NANOSECONDS: i64 = 10_000_000;
/// The part of bytes that a tap may miss before its silence on acknowledgements counts for nothing.
const MISSED_SHARE: f64 = 0.001;

/// The hops of a lane along its taps, with the packets that passed each.
pub(super) fn hops(
    group: &Group,
    lane: usize,
    way: &[usize],
    taps: &[Tap],
    in_time: impl Fn(usize, usize, &Record, &Record) -> bool,
) -> Vec<(Hop, Vec<(u32, u32)>)> {
    let records = |tap: usize| group.trace(tap).map_or(&[][..], |trace| &trace.lanes[lane].records[..]);
    let matchings: Vec<Matched> = way
        .windows(2)
        .map(|two| {
            let (one, other) = (two[0], two[1]);
            matched(records(one), records(other), |here, there| in_time(one, other, here, there))
        })
        .collect();
    let mut hops = Vec::new();
    for (place, two) in way.windows(2).enumerate() {
        let behind = matchings.get(place + 1).zip(way.get(place + 2));
        let late = behind.map_or(Vec::new(), |(next, tap)| pieces(records(*tap), &next.unseen));
        let pair =
            Pair { group, lane, sent: records(two[0]), received: records(two[1]), span: taps[two[1]].span };
        let dropping = group.traces.iter().filter(|(tap, _)| taps[*tap].place == Place::Dropped);
        let places: Vec<(usize, &[Record])> =
            dropping.map(|(tap, trace)| (*tap, &trace.lanes[lane].records[..])).collect();
        let mut hop = pair.hop(&matchings[place], &late, &places);
        hop.between = [two[0] + 1, two[1] + 1];
        hops.push((hop, matchings[place].passed.clone()));
    }
    hops
}

/// Parts of records as records of their own.
fn pieces(records: &[Record], parts: &[Part]) -> Vec<Record> {
    let piece = |(place, begin, end): &Part| Record {
        begin: *begin,
        bytes: (end - begin) as u32,
        identification: if records[*place].begin == *begin { records[*place].identification } else { 0 },
        ..records[*place]
    };
    parts.iter().map(piece).collect()
}

/// A lane at two taps.
struct Pair<'a> {
    group: &'a Group,
    lane: usize,
    sent: &'a [Record],
    received: &'a [Record],
    /// When the second tap's capture began and ended.
    span: Span,
}

impl Pair<'_> {
    fn hop(&self, matching: &Matched, late: &[Record], dropping: &[(usize, &[Record])]) -> Hop {
        let mut hop = Hop {
            arrived_packets: matching.arrived,
            unseen_packets: count(&matching.unseen),
            ..Hop::default()
        };
        if matching.arrived == 0 {
            hop.abstained = Some("no packet of this direction is the same at both taps");
            return hop;
        }
        let (absent, unjudged): (Vec<Part>, Vec<Part>) =
            matching.absent.iter().partition(|part| self.is_judged(part.0, matching));
        hop.unjudged_packets = unjudged.len() as u64;
        // What a tap behind has was there.
        let candidates = pieces(self.sent, &absent);
        let seen_behind = matched(&candidates, late, |_, _| true);
        hop.missed_packets += count_of(&candidates, &seen_behind);
        let absent: Vec<_> =
            seen_behind.absent.iter().map(|(of, begin, end)| (absent[*of].0, *begin, *end)).collect();
        let (lost, missed) = self.split_missed(&absent);
        hop.missed_packets += missed.iter().map(|part| self.packets(part)).sum::<u64>();
        let missed_bytes: i64 = missed.iter().map(|(_, begin, end)| end - begin).sum();
        let bytes: i64 = self.received.iter().map(|record| i64::from(record.bytes)).sum();
        let unsure = missed_bytes as f64 > MISSED_SHARE * bytes as f64;
        let unjudged: Vec<usize> = unjudged.iter().map(|part| part.0).collect();
        let scale =
            self.group.traces.iter().any(|(_, trace)| trace.lanes.iter().all(|lane| lane.written.scales()));
        hop.unscaled = scale.then(|| unscaled::judged(self.sent, &lost, &unjudged));
        let segment_bytes = self.group.segment_bytes(self.lane);
        hop.sizes = sizes::judged(self.sent, &lost, &unjudged, segment_bytes);
        for part in lost {
            if unsure && self.sent[part.0].bytes == 0 {
                hop.unjudged_packets += 1;
                continue;
            }
            hop.lost_packets += self.packets(&part);
            hop.lost_bytes += (part.2 - part.1) as u64;
            hop.drops.push(self.drop(&part));
        }
        self.place_drops(&mut hop.drops, dropping);
        hop
    }

    /// Whether the second tap would have seen this record, had it come.
    fn is_judged(&self, place: usize, matching: &Matched) -> bool {
        let Some((first, last)) = matching.span else { return false };
        // Of the first and the last one, a part may have been outside the capture.
        if first < place && place < last {
            return true;
        }
        let times = |(here, there): &(u32, u32)| {
            let (here, there) = (&self.sent[*here as usize], &self.received[*there as usize]);
            there.nanoseconds - here.nanoseconds
        };
        let later = matching.passed.iter().map(times);
        let (Some(least), Some(most)) = (later.clone().min(), later.max()) else { return false };
        let near = if place <= first { matching.passed.first() } else { matching.passed.last() };
        let at = self.sent[place].nanoseconds + near.map_or(0, times);
        let grace = GRACE_NANOSECONDS + most - least;
        self.span.first.saturating_add(grace) <= at && at.saturating_add(grace) <= self.span.last
    }

    /// Tells apart what was lost from what only the second tap's capture missed: acknowledged data of which no copy is
    /// there. Of several copies it is the last that must have arrived.
    fn split_missed(&self, absent: &[Part]) -> (Vec<Part>, Vec<Part>) {
        let acknowledged = self.group.acknowledged(self.lane).unwrap_or(i64::MIN);
        let there = covered(self.received.iter().map(|record| (record.begin, record.end())));
        let mut missed_ranges = Vec::new();
        let (mut lost, mut missed) = (Vec::new(), Vec::new());
        for (place, begin, end) in absent.iter().rev() {
            if begin == end {
                lost.push((*place, *begin, *end));
                continue;
            }
            let beyond = (*begin).max(acknowledged.min(*end));
            let known = covered(there.iter().chain(&missed_ranges).copied());
            for (from, to) in outside(&known, *begin, beyond) {
                missed.push((*place, from, to));
                missed_ranges.push((from, to));
            }
            let gone = outside(&known, *begin, beyond);
            lost.extend(outside(&gone, *begin, *end).into_iter().map(|(from, to)| (*place, from, to)));
        }
        lost.sort_unstable();
        (lost, missed)
    }

    fn packets(&self, part: &Part) -> u64 {
        let segment = u64::from(self.group.segment_bytes(self.lane)).max(1);
        let record = &self.sent[part.0];
        let marks = u64::from(record.bytes - record.payload());
        ((part.2 - part.1) as u64).saturating_sub(marks).div_ceil(segment).max(1)
    }

    fn drop(&self, part: &Part) -> Drop {
        let record = &self.sent[part.0];
        Drop {
            packet: u64::from(record.number),
            at_seconds: record.nanoseconds as f64 / 1e9,
            begin: part.1 as u32,
            end: part.2 as u32,
            packets: self.packets(part),
            // Of an aggregate, only its first packet surely has it.
            identification: if part.1 == record.begin { record.identification } else { 0 },
            place: part.0,
            dropped_at: None,
        }
    }

    /// Names the ports that say of themselves that they dropped these.
    fn place_drops(&self, drops: &mut [Drop], dropping: &[(usize, &[Record])]) {
        for (tap, records) in dropping {
            let open: Vec<usize> =
                (0..drops.len()).filter(|place| drops[*place].dropped_at.is_none()).collect();
            let parts: Vec<Part> = open
                .iter()
                .map(|place| {
                    let drop = &drops[*place];
                    let record = &self.sent[drop.place];
                    let begin = record.begin + i64::from(drop.begin.wrapping_sub(record.begin as u32));
                    (drop.place, begin, begin + i64::from(drop.end.wrapping_sub(drop.begin)))
                })
                .collect();
            let candidates = pieces(self.sent, &parts);
            let matching = matched(&candidates, records, |_, _| true);
            let mut whole = vec![true; open.len()];
            matching.absent.iter().for_each(|(place, ..)| whole[*place] = false);
            for (place, _) in open.iter().zip(whole).filter(|(_, whole)| *whole) {
                drops[*place].dropped_at = Some(tap + 1);
            }
        }
    }
}

/// How many records some parts are of.
fn count(parts: &[Part]) -> u64 {
    let mut records: Vec<usize> = parts.iter().map(|(record, ..)| *record).collect();
    records.dedup();
    records.len() as u64
}

/// How many of these records have no part that is absent.
fn count_of(records: &[Record], matching: &Matched) -> u64 {
    (records.len() as u64).saturating_sub(count(&matching.absent))
}

/// The union of ranges, in order.
fn covered(ranges: impl Iterator<Item = (i64, i64)>) -> Vec<(i64, i64)> {
    let mut all: Vec<(i64, i64)> = ranges.filter(|(begin, end)| begin < end).collect();
    all.sort_unstable();
    all.dedup_by(|next, range| {
        let joins = next.0 <= range.1;
        if joins {
            range.1 = range.1.max(next.1);
        }
        joins
    });
    all
}

/// What of a range is in none of these, which are in order.
fn outside(ranges: &[(i64, i64)], begin: i64, end: i64) -> Vec<(i64, i64)> {
    let mut gaps = Vec::new();
    let mut from = begin;
    for (first, last) in &ranges[ranges.partition_point(|(_, last)| *last <= begin)..] {
        if *first >= end || from >= end {
            break;
        }
        if *first > from {
            gaps.push((from, *first));
        }
        from = from.max(*last);
    }
    if from < end {
        gaps.push((from, end));
    }
    gaps
}
