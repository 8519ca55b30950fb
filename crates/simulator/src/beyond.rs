//! What a receiver has beyond a hole, and how the SACK option tells it (RFC 2018, RFC 2883).

use crate::segment::Blocks;

/// Ranges of sequence numbers: first and past the last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beyond {
    /// In order, without overlap.
    ranges: Vec<(u64, u64)>,
    /// The same as the option tells it: what came last first.
    told: Vec<(u64, u64)>,
    /// What came twice, until it was told.
    duplicate: Option<(u64, u64)>,
}

impl Beyond {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Bytes beyond the hole.
    pub(crate) fn bytes(&self) -> u64 {
        self.ranges.iter().map(|(begin, end)| end - begin).sum()
    }

    /// Whether a range ends there.
    pub(crate) fn ends_at(&self, sequence: u64) -> bool {
        self.ranges.iter().any(|(_, end)| *end == sequence)
    }

    /// From the hole to the end of all.
    pub(crate) fn reach(&self, next: u64) -> u64 {
        self.ranges.last().map_or(0, |(_, end)| end.saturating_sub(next))
    }

    pub(crate) fn note_duplicate(&mut self, begin: u64, end: u64) {
        self.duplicate = Some((begin, end));
    }

    /// Takes a segment in that came beyond a hole.
    pub(crate) fn keep(&mut self, begin: u64, end: u64) {
        let place = self.ranges.partition_point(|(_, until)| *until < begin);
        let mut whole = (begin, end);
        let mut after = place;
        let mut has_new = true;
        while let Some((from, until)) = self.ranges.get(after).copied().filter(|(from, _)| *from <= end) {
            has_new &= !(from <= begin && end <= until);
            whole = (whole.0.min(from), whole.1.max(until));
            after += 1;
        }
        if !has_new {
            self.duplicate = Some((begin, end));
        }
        self.ranges.splice(place..after, [whole]);
        self.told.retain(|(from, until)| *until < whole.0 || whole.1 < *from);
        self.told.insert(0, whole);
        self.told.truncate(Blocks::MOST);
    }

    /// Everything before `next` is there now; returns up to where there is no hole.
    pub(crate) fn close(&mut self, next: u64) -> u64 {
        let filled = self.ranges.iter().take_while(|(begin, _)| *begin <= next).count();
        let next = self.ranges.drain(..filled).fold(next, |next, (_, end)| next.max(end));
        self.told.retain(|(begin, _)| *begin > next);
        next
    }

    /// The blocks of an option that holds `most` of them.
    pub(crate) fn tell(&mut self, most: usize, push: impl FnMut((u64, u64))) {
        self.duplicate.take().into_iter().chain(self.told.iter().copied()).take(most).for_each(push);
    }
}
