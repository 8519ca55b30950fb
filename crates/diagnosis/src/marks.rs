//! The marks of a picture: few enough to be drawn, however many packets there were.
//!
//! A [`Series`] keeps [`MOST_MARKS`]. When it is full, neighbours are joined that lie closer together than its
//! resolution, which doubles until a quarter of the room is free: two segments of which one follows the other, two
//! acknowledgements of which the later one says more. What differs stays apart, as far as there is room for it.
//!
//! ```text
//!   time ──┬─┬──┬─┬───┬──▶      ──┬────┬─────┬──▶
//!          a b  c d   e    join   ab   cd    e        resolution: as long as b - a
//! ```

use serde::ser::{Serialize, SerializeMap, Serializer};

/// Marks that one series keeps.
pub const MOST_MARKS: usize = 50_000;

/// What a series consists of.
pub(crate) trait Mark: Copy {
    /// The names of its columns.
    const COLUMNS: &'static [&'static str];

    /// When, in nanoseconds.
    fn time(&self) -> i64;

    /// Both in one, if they say the same thing about neighbouring places.
    fn joined(&self, next: &Self) -> Option<Self>;

    /// The value of a column.
    fn value(&self, column: usize) -> i64;
}

/// Marks in the order of time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series<M> {
    marks: Vec<M>,
    most: usize,
    /// Neighbours closer together than this are joined, in nanoseconds.
    resolution: i64,
    /// Marks that found no room.
    left_out: u64,
}

impl<M> Default for Series<M> {
    fn default() -> Series<M> {
        Series::with_room(MOST_MARKS)
    }
}

impl<M> Series<M> {
    pub(crate) fn with_room(most: usize) -> Series<M> {
        Series { marks: Vec::new(), most, resolution: 0, left_out: 0 }
    }
}

impl<M: Mark> Series<M> {
    pub(crate) fn last_mut(&mut self) -> Option<&mut M> {
        self.marks.last_mut()
    }

    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Adds a mark, which is not earlier than those before.
    pub(crate) fn push(&mut self, mark: M) {
        if let Some(last) = self.marks.last_mut()
            && mark.time() - last.time() < self.resolution
            && let Some(both) = last.joined(&mark)
        {
            *last = both;
            return;
        }
        if self.marks.len() == self.most {
            self.make_room();
        }
        self.marks.push(mark);
    }

    fn make_room(&mut self) {
        let first = self.marks.first().map_or(0, Mark::time);
        let span = self.marks.last().map_or(0, |last| last.time() - first);
        self.resolution = self.resolution.max(span / self.most as i64).max(1);
        while self.marks.len() > self.most / 4 * 3 {
            self.join();
            if self.resolution > span {
                break;
            }
            self.resolution *= 2;
        }
        if self.marks.len() > self.most / 4 * 3 {
            // All differ: every other one goes.
            let mut is_odd = false;
            let before = self.marks.len();
            self.marks.retain(|_| {
                is_odd = !is_odd;
                is_odd
            });
            self.left_out += (before - self.marks.len()) as u64;
        }
    }

    /// Joins neighbours that are closer together than the resolution.
    fn join(&mut self) {
        let resolution = self.resolution;
        self.marks.dedup_by(|next, last| {
            let both = (next.time() - last.time() < resolution).then(|| last.joined(next)).flatten();
            if let Some(both) = both {
                *last = both;
            }
            both.is_some()
        });
    }
}

/// A list for each column, of differences: each value less that of the mark before, the first one as it is.
impl<M: Mark> Serialize for Series<M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(M::COLUMNS.len()))?;
        for (column, name) in M::COLUMNS.iter().enumerate() {
            let mut before = 0i64;
            let differences: Vec<i64> = self
                .marks
                .iter()
                .map(|mark| {
                    let value = mark.value(column);
                    value.wrapping_sub(std::mem::replace(&mut before, value))
                })
                .collect();
            map.serialize_entry(name, &differences)?;
        }
        map.end()
    }
}

/// A segment with data, SYN, FIN or RST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentMark {
    pub(crate) time: i64,
    /// Its first byte, counted from the SYN.
    pub(crate) begin: i64,
    pub(crate) bytes: i64,
    /// Its packet; the first one of several.
    pub(crate) number: u64,
    /// See `picture.rs`.
    pub(crate) flags: u8,
    /// How many were joined.
    pub(crate) count: u64,
}

impl Mark for SegmentMark {
    const COLUMNS: &'static [&'static str] = &["time", "begin", "bytes", "number", "flags", "count"];

    fn time(&self) -> i64 {
        self.time
    }

    fn joined(&self, next: &SegmentMark) -> Option<SegmentMark> {
        let follows = self.begin + self.bytes == next.begin && self.flags == next.flags;
        follows.then(|| SegmentMark {
            bytes: self.bytes + next.bytes,
            count: self.count + next.count,
            ..*self
        })
    }

    fn value(&self, column: usize) -> i64 {
        [self.time, self.begin, self.bytes, self.number as i64, i64::from(self.flags), self.count as i64]
            [column]
    }
}

/// An acknowledgement, and the window that it tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AckMark {
    pub(crate) time: i64,
    pub(crate) ack: i64,
    /// In bytes; -1 where nobody knows its scale.
    pub(crate) window: i64,
    pub(crate) number: u64,
    pub(crate) count: u64,
}

impl Mark for AckMark {
    const COLUMNS: &'static [&'static str] = &["time", "ack", "window", "number", "count"];

    fn time(&self) -> i64 {
        self.time
    }

    /// The later one says more, but a closed window is told apart from an open one.
    fn joined(&self, next: &AckMark) -> Option<AckMark> {
        let alike = (self.window == 0) == (next.window == 0) && (self.window < 0) == (next.window < 0);
        alike.then(|| AckMark { time: self.time, count: self.count + next.count, ..*next })
    }

    fn value(&self, column: usize) -> i64 {
        [self.time, self.ack, self.window, self.number as i64, self.count as i64][column]
    }
}

/// A range that an acknowledgement SACKs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SackMark {
    pub(crate) time: i64,
    pub(crate) begin: i64,
    pub(crate) bytes: i64,
    pub(crate) number: u64,
    /// 1: it arrived twice (D-SACK, RFC 2883).
    pub(crate) duplicate: u8,
}

impl Mark for SackMark {
    const COLUMNS: &'static [&'static str] = &["time", "begin", "bytes", "number", "duplicate"];

    fn time(&self) -> i64 {
        self.time
    }

    fn joined(&self, next: &SackMark) -> Option<SackMark> {
        let grew = self.begin == next.begin && self.duplicate == next.duplicate && self.bytes <= next.bytes;
        grew.then_some(SackMark { time: self.time, ..*next })
    }

    fn value(&self, column: usize) -> i64 {
        [self.time, self.begin, self.bytes, self.number as i64, i64::from(self.duplicate)][column]
    }
}

/// A quantity at a time; of neighbours the largest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValueMark {
    pub(crate) time: i64,
    pub(crate) value: i64,
}

impl Mark for ValueMark {
    const COLUMNS: &'static [&'static str] = &["time", "value"];

    fn time(&self) -> i64 {
        self.time
    }

    fn joined(&self, next: &ValueMark) -> Option<ValueMark> {
        Some(ValueMark { time: self.time, value: self.value.max(next.value) })
    }

    fn value(&self, column: usize) -> i64 {
        [self.time, self.value][column]
    }
}

/// A stretch that belongs to a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StretchMark {
    pub(crate) begin: i64,
    pub(crate) end: i64,
}

impl Mark for StretchMark {
    const COLUMNS: &'static [&'static str] = &["begin", "end"];

    fn time(&self) -> i64 {
        self.begin
    }

    fn joined(&self, next: &StretchMark) -> Option<StretchMark> {
        Some(StretchMark { begin: self.begin.min(next.begin), end: self.end.max(next.end) })
    }

    fn value(&self, column: usize) -> i64 {
        [self.begin, self.end][column]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn segment(time: i64, begin: i64, bytes: i64) -> SegmentMark {
        SegmentMark { time, begin, bytes, number: time as u64 + 1, flags: 0, count: 1 }
    }

    proptest! {
        /// However many there are, the room is kept, and every byte and every segment is accounted for.
        #[test]
        fn a_stream_is_joined_into_its_room(
            gaps in proptest::collection::vec(0i64..1000, 1..2000), most in 8usize..64
        ) {
            let mut series = Series::with_room(most);
            let (mut now, mut begin) = (0, 0);
            for gap in &gaps {
                now += gap;
                series.push(segment(now, begin, 100));
                begin += 100;
            }
            prop_assert!(series.marks.len() <= most);
            prop_assert_eq!(series.left_out, 0);
            prop_assert_eq!(series.marks.iter().map(|mark| mark.bytes).sum::<i64>(), begin);
            prop_assert_eq!(series.marks.iter().map(|mark| mark.count).sum::<u64>(), gaps.len() as u64);
            prop_assert!(series.marks.windows(2).all(|pair| pair[0].time <= pair[1].time));
        }

        /// What cannot be joined is left out, and counted.
        #[test]
        fn what_differs_is_counted_when_it_has_no_room(count in 1usize..500, most in 8usize..64) {
            let mut series = Series::with_room(most);
            (0..count).for_each(|at| series.push(segment(at as i64, at as i64 * 1000, 1)));
            prop_assert!(series.marks.len() <= most);
            prop_assert_eq!(series.marks.len() as u64 + series.left_out, count as u64);
        }

        /// The largest value of all stays.
        #[test]
        fn a_peak_is_kept(values in proptest::collection::vec(0i64..1_000_000, 1..1000)) {
            let mut series = Series::with_room(16);
            values.iter().enumerate().for_each(|(at, value)| series.push(ValueMark { time: at as i64, value: *value }));
            prop_assert_eq!(series.marks.iter().map(|mark| mark.value).max(), values.iter().copied().max());
        }
    }

    #[test]
    fn a_closed_window_is_not_joined_with_an_open_one() {
        let mark = |time, window| AckMark { time, ack: 1, window, number: 1, count: 1 };
        assert_eq!(mark(1, 0).joined(&mark(2, 5)), None);
        assert_eq!(mark(1, 5).joined(&mark(2, 6)), Some(AckMark { count: 2, ..mark(1, 6) }));
    }

    #[test]
    fn columns_are_written_as_differences() {
        let mut series = Series::default();
        for (time, value) in [(5, 7), (6, 3), (9, 3)] {
            series.push(ValueMark { time, value });
        }
        let written = serde_json::to_string(&series).expect("numbers");
        assert_eq!(written, r#"{"time":[5,1,3],"value":[7,-4,0]}"#);
    }
}
