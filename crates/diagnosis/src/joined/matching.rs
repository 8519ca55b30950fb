//! Which packets of a tap are those of the next one.
//!
//! TSO and GRO move the boundaries of packets, so bytes are matched, not packets: a byte at the second tap is the copy of
//! a byte at the first with the same place and the same timestamp value. Where several copies were sent that are alike in
//! these, IPv4's identification decides, and then their order: packets seldom overtake each other, so the one sequence
//! is nearly a part of the other, and what arrived are the latest copies that were there in time, because a sender repeats
//! what it takes for lost. So the second tap's packets are taken from the last to the first. Where packets are seen to
//! overtake each other, the nearest copy counts, also if it was sent later than the one before.
//!
//! ```text
//!   first tap    1 2 3 4 1' 2' 5        4 <-> 4, 3 <-> 3, and 1' and 2' stand between 4 and 5
//!   second tap       3 4 1  2  5        lost: 1, 2
//! ```

use super::record::Record;
use std::collections::HashMap;

/// A part of a record: its number in its lane, the first place, and that after the last.
pub(super) type Part = (usize, i64, i64);

/// How likely a copy is: in time, of the same identification, in order or no matter, how near, in order.
type Rank = (bool, bool, bool, i64, bool);

/// Of a lane at two taps.
#[derive(Debug, Default)]
pub(super) struct Matched {
    /// What of the first tap's packets did not come to the second: the record, and the places.
    pub(super) absent: Vec<Part>,
    /// Packets of the second tap that are the first's, in part or wholly.
    pub(super) arrived: u64,
    /// What of the second tap's packets the first tap has not: the record, and the places.
    pub(super) unseen: Vec<Part>,
    /// Where packets are the same from their first byte or to their last: record here, record there.
    pub(super) passed: Vec<(u32, u32)>,
    /// The first and the last record of the first tap that came to the second.
    pub(super) span: Option<(usize, usize)>,
}

/// What of a record was matched.
#[derive(Debug, Clone)]
enum Cover {
    Nothing,
    Parts(Vec<(i64, i64)>),
    Whole,
}

impl Cover {
    fn has(&self, place: i64) -> bool {
        match self {
            Cover::Nothing => false,
            Cover::Parts(parts) => parts.iter().any(|(begin, end)| *begin <= place && place < *end),
            Cover::Whole => true,
        }
    }

    /// Where the next part after a place begins.
    fn next(&self, place: i64) -> i64 {
        match self {
            Cover::Parts(parts) => {
                parts.iter().map(|(begin, _)| *begin).filter(|begin| *begin > place).min().unwrap_or(i64::MAX)
            }
            _ => i64::MAX,
        }
    }

    fn add(&mut self, record: &Record, begin: i64, end: i64) {
        if let Cover::Nothing = self {
            *self = Cover::Parts(Vec::new());
        }
        let Cover::Parts(parts) = self else { return };
        parts.push((begin, end));
        parts.sort_unstable();
        parts.dedup_by(|next, part| {
            let joins = next.0 <= part.1;
            if joins {
                part.1 = part.1.max(next.1);
            }
            joins
        });
        if parts[..] == [(record.begin, record.end())] {
            *self = Cover::Whole;
        }
    }

    /// The places that were not matched.
    fn rest(&self, record: &Record) -> Vec<(i64, i64)> {
        match self {
            Cover::Nothing => vec![(record.begin, record.end())],
            Cover::Whole => Vec::new(),
            Cover::Parts(parts) => {
                let begins = std::iter::once(record.begin).chain(parts.iter().map(|(_, end)| *end));
                let ends = parts.iter().map(|(begin, _)| *begin).chain(std::iter::once(record.end()));
                begins.zip(ends).filter(|(begin, end)| begin < end).collect()
            }
        }
    }
}

/// The records of the first tap, to be found by place.
struct Sent<'a> {
    records: &'a [Record],
    /// Those with bytes, by their first place.
    by_place: Vec<(i64, u32)>,
    longest: i64,
    /// Pure acknowledgements, by what they say.
    pure: HashMap<(i64, u32, u32), Vec<u32>>,
    cover: Vec<Cover>,
    /// The one that the last packet began with: those before it come next.
    last: usize,
    /// The one with the last part of the present packet, if any of it was matched: GRO has put those after it behind it.
    part: Option<usize>,
    /// The nearest copy counts, also after the last one.
    nearest: bool,
    /// Of packets that have one copy only: the last one, and whether they came in another order.
    last_alone: usize,
    overtaken: bool,
}

/// Matches the packets of a lane at two taps, of which `sent` is nearer to the sender. `in_time` says whether a packet of
/// the first tap may be that of the second, as far as their clocks tell.
pub(super) fn matched(
    sent: &[Record],
    received: &[Record],
    in_time: impl Fn(&Record, &Record) -> bool,
) -> Matched {
    let (matching, overtaken) = matched_by(sent, received, &in_time, false);
    if overtaken { matched_by(sent, received, &in_time, true).0 } else { matching }
}

/// With whether packets of which there is one copy only came in another order.
fn matched_by(
    sent: &[Record],
    received: &[Record],
    in_time: &impl Fn(&Record, &Record) -> bool,
    nearest: bool,
) -> (Matched, bool) {
    let mut here = Sent::new(sent, nearest);
    let mut matching = Matched::default();
    for (number, record) in received.iter().enumerate().rev() {
        let (mut begin, mut any) = (record.begin, false);
        here.part = None;
        loop {
            let end = if let Some((place, end)) = here.copy(record, begin, in_time) {
                any = true;
                here.take(place, begin, end);
                matching.note(&sent[place], record, (place, number), (begin, end));
                end
            } else {
                let end = here.next(begin).min(record.end());
                matching.unseen.push((number, begin, end));
                end
            };
            begin = end;
            if begin >= record.end() {
                break;
            }
        }
        matching.arrived += u64::from(any);
    }
    matching.absent = here.absent();
    matching.passed.reverse();
    matching.unseen.reverse();
    (matching, here.overtaken)
}

impl Matched {
    /// Some places of a record there are those of a record here.
    fn note(&mut self, here: &Record, there: &Record, records: (usize, usize), (begin, end): (i64, i64)) {
        let place = records.0;
        self.span =
            Some(self.span.map_or((place, place), |(first, last)| (first.min(place), last.max(place))));
        let same_begin = begin == there.begin && here.begin == there.begin && here.end() >= there.end();
        let same_end = end == there.end() && here.end() == there.end() && here.begin >= there.begin;
        if same_begin || same_end {
            self.passed.push((place as u32, records.1 as u32));
        }
    }
}

impl<'a> Sent<'a> {
    fn new(records: &'a [Record], nearest: bool) -> Sent<'a> {
        let mut by_place = Vec::new();
        let mut pure: HashMap<_, Vec<u32>> = HashMap::new();
        for (place, record) in records.iter().enumerate() {
            if record.bytes > 0 {
                by_place.push((record.begin, place as u32));
            } else {
                pure.entry((record.begin, record.value, record.print)).or_default().push(place as u32);
            }
        }
        by_place.sort_unstable();
        let longest = records.iter().map(|record| i64::from(record.bytes)).max().unwrap_or(0);
        let cover = vec![Cover::Nothing; records.len()];
        let (last, last_alone) = (usize::MAX, usize::MAX);
        Sent {
            records,
            by_place,
            longest,
            pure,
            cover,
            last,
            part: None,
            nearest,
            last_alone,
            overtaken: false,
        }
    }

    /// The record whose byte at `begin` is that of `record`, and up to where.
    fn copy(
        &mut self,
        record: &Record,
        begin: i64,
        in_time: &impl Fn(&Record, &Record) -> bool,
    ) -> Option<(usize, i64)> {
        let mut best: Option<(usize, Rank)> = None;
        let mut offers = 0;
        let mut offer = |place: usize| {
            let copy = &self.records[place];
            let same = copy.begin == record.begin
                && copy.identification != 0
                && copy.identification == record.identification;
            // The nearest before the last packet's, or else the nearest after it; within a packet the other way round.
            let from = self.part.unwrap_or(self.last);
            let fits = if self.part.is_some() { place >= from } else { place <= from };
            offers += 1;
            let distance = -(place as i64).abs_diff(from.min(self.records.len()) as i64).cast_signed();
            let rank = (in_time(copy, record), same, self.nearest || fits, distance, fits);
            if best.is_none_or(|(_, least)| rank > least) {
                best = Some((place, rank));
            }
        };
        if record.bytes == 0 {
            let of = self.pure.get(&(record.begin, record.value, record.print));
            let free = of.into_iter().flatten().map(|place| *place as usize);
            free.filter(|place| matches!(self.cover[*place], Cover::Nothing)).for_each(&mut offer);
            self.note_order(best.map(|(place, _)| place).filter(|_| offers == 1));
            return best.map(|(place, _)| (place, begin));
        }
        let after = self.by_place.partition_point(|(first, _)| *first <= begin);
        for (first, place) in self.by_place[..after].iter().rev() {
            if *first <= begin - self.longest {
                break;
            }
            let (place, copy) = (*place as usize, &self.records[*place as usize]);
            if copy.end() > begin && copy.value == record.value && !self.cover[place].has(begin) {
                offer(place);
            }
        }
        self.note_order(best.map(|(place, _)| place).filter(|_| offers == 1));
        best.map(|(place, _)| {
            (place, self.records[place].end().min(record.end()).min(self.cover[place].next(begin)))
        })
    }

    /// Packets are compared by what they begin with: within one, parts have their order.
    fn note_order(&mut self, alone: Option<usize>) {
        if let Some(place) = alone.filter(|_| self.part.is_none()) {
            self.overtaken |= place > self.last_alone;
            self.last_alone = place;
        }
    }

    fn take(&mut self, place: usize, begin: i64, end: i64) {
        if self.part.replace(place).is_none() {
            self.last = place;
        }
        if self.records[place].bytes == 0 {
            self.cover[place] = Cover::Whole;
        } else {
            self.cover[place].add(&self.records[place], begin, end);
        }
    }

    /// The next place after this one where a record begins or ends.
    fn next(&self, begin: i64) -> i64 {
        let after = self.by_place.partition_point(|(first, _)| *first <= begin);
        self.by_place.get(after).map_or(i64::MAX, |(first, _)| *first)
    }

    fn absent(&self) -> Vec<Part> {
        let records = self.records.iter().zip(&self.cover).enumerate();
        records
            .flat_map(|(place, (record, cover))| {
                cover.rest(record).into_iter().map(move |(begin, end)| (place, begin, end))
            })
            .collect()
    }
}
