//! Bytes that a tap has not seen while later ones passed: reordered, lost on the way to the tap, or not captured.

use crate::copies::LEAST_TIMEOUT;
use crate::lag::Lag;
use framegauge_packets::capture::Segment;

/// More are forgotten: the oldest first.
const MOST_HOLES: usize = 256;

/// Bytes that were skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// When the bytes below it passed, in nanoseconds: its own were sent after them.
    after: i64,
    /// When later bytes passed.
    pub(crate) since: i64,
    /// The packet that passed.
    pub(crate) number: u64,
    pub(crate) hops: u8,
    /// Its timestamps and identification, which tell the order in which the sender sent.
    timestamps: Option<(u32, u32)>,
    identification: Option<u16>,
    /// The timestamp of the first that the other end said since.
    asked: Option<u32>,
}

/// The holes of a direction, in order of sequence.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holes(Vec<Hole>);

impl Holes {
    /// A segment came after `[begin, end)`, which was not seen.
    pub(crate) fn open(&mut self, (begin, end): (u64, u64), by: &Segment, after: i64, now: i64) {
        if self.0.len() == MOST_HOLES {
            self.0.remove(0);
        }
        self.0.push(Hole {
            begin,
            end,
            after,
            since: now,
            number: by.number,
            hops: by.hops,
            timestamps: by.timestamps,
            identification: by.identification,
            asked: None,
        });
    }

    /// The other end says something with a timestamp: the sender hears that it lacks them.
    pub(crate) fn ask(&mut self, value: u32) {
        self.0.iter_mut().for_each(|hole| hole.asked = hole.asked.or(Some(value)));
    }

    /// Fills `[begin, end)`: the first hole that this touched, as it was.
    pub(crate) fn fill(&mut self, begin: u64, end: u64) -> Option<Hole> {
        let mut filled = None;
        let mut place = 0;
        while place < self.0.len() {
            let hole = self.0[place];
            if hole.end <= begin || hole.begin >= end {
                place += 1;
                continue;
            }
            filled = filled.or(Some(hole));
            self.0.remove(place);
            if end < hole.end {
                self.0.insert(place, Hole { begin: end, ..hole });
            }
            if hole.begin < begin {
                self.0.insert(place, Hole { end: begin, ..hole });
                place += 1;
            }
            place += usize::from(end < hole.end);
        }
        filled
    }

    /// The first that touches `[begin, end)`.
    pub(crate) fn touching(&self, begin: u64, end: u64) -> Option<&Hole> {
        self.0.iter().find(|hole| hole.begin < end && begin < hole.end)
    }

    /// From the time when the first of them opened until the last did.
    pub(crate) fn span(&self) -> i64 {
        let times = self.0.iter().map(|hole| hole.since);
        times.clone().max().unwrap_or(0) - times.min().unwrap_or(0)
    }

    /// Takes off what lies below `una`: the other end has it, so the capture lacks it. Bytes.
    pub(crate) fn acknowledge(&mut self, una: u64) -> u64 {
        if self.0.is_empty() {
            return 0;
        }
        let bytes = self.0.iter().map(|hole| hole.end.min(una).saturating_sub(hole.begin)).sum();
        self.0.retain_mut(|hole| {
            hole.begin = hole.begin.max(una);
            hole.begin < hole.end
        });
        bytes
    }
}

impl Hole {
    /// Whether a segment that fills it was sent before that which had passed it, as its marks tell: timestamps (RFC 7323), also
    /// those that they echo, of which a sender has the newest in what it sends next; or IPv4's identification, but only of a sender
    /// that counts (`counts`): others draw theirs at random (RFC 6864 section 4.1).
    pub(crate) fn marks_tell(&self, by: &Segment, counts: bool) -> Option<bool> {
        if let (Some(own), Some(later)) = (by.timestamps, self.timestamps)
            && own != later
        {
            let (own, later) = if own.0 == later.0 { (own.1, later.1) } else { (own.0, later.0) };
            return Some((own.wrapping_sub(later) as i32) < 0);
        }
        if counts
            && let (Some(own), Some(later)) = (by.identification, self.identification)
            && own != later
            && own != 0
        {
            return Some((own.wrapping_sub(later) as i16) < 0);
        }
        None
    }

    /// Whether a segment that fills it was sent before that which had passed it: then the network reordered them, and nothing
    /// was lost. The time tells it where marks do not: a repair takes at least half an RTT, unless the sender knew of losses
    /// before (`is_calm`: it did not), but not of what it had sent less than half an RTT ago; with an RTT that nobody knows,
    /// it tells only of timers. `clock`: that of the sender, which has taken the segment.
    pub(crate) fn was_overtaken(&self, by: &Segment, now: i64, rtt: i64, is_calm: bool, clock: &Lag) -> bool {
        let has_clock = by.timestamps.is_some();
        // It left within a tick of what passed it, in which no timer runs out, and its sender had not heard of the hole: it would
        // echo that (RFC 7323 section 4.3).
        let is_unasked = |(_, echo)| self.asked.is_some_and(|stamp| (stamp.wrapping_sub(echo) as i32) > 0);
        let left_together =
            by.timestamps.filter(|own| self.timestamps == Some(*own) && clock.tick() < i64::MAX);
        if left_together.is_some_and(is_unasked) {
            return true;
        }
        // They left within a tick of the sender's clock, whenever they came here.
        let left_within = if has_clock { clock.tick().min(now - self.since) } else { now - self.since };
        let is_soon = match rtt {
            0 => now - self.since < LEAST_TIMEOUT,
            _ => now - self.after < rtt / 2 || (is_calm && left_within < rtt / 2),
        };
        (has_clock && clock.is_older()) || is_soon
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holes(ranges: &[(u64, u64)]) -> Holes {
        let hole = |&(begin, end)| Hole {
            begin,
            end,
            after: 0,
            since: 0,
            number: 1,
            hops: 64,
            timestamps: None,
            identification: None,
            asked: None,
        };
        Holes(ranges.iter().map(hole).collect())
    }

    fn ranges(holes: &Holes) -> Vec<(u64, u64)> {
        holes.0.iter().map(|hole| (hole.begin, hole.end)).collect()
    }

    #[test]
    fn filling_cuts_holes_where_it_must() {
        for (begin, end, left) in [
            (0, 10, vec![(10, 20), (30, 40)]),
            (10, 20, vec![(30, 40)]),
            (12, 15, vec![(10, 12), (15, 20), (30, 40)]),
            (15, 35, vec![(10, 15), (35, 40)]),
            (5, 50, vec![]),
        ] {
            let mut all = holes(&[(10, 20), (30, 40)]);
            let touched = all.fill(begin, end).is_some();
            assert_eq!(ranges(&all), left, "{begin} to {end}");
            assert_eq!(touched, left != [(10, 20), (30, 40)]);
        }
    }

    #[test]
    fn what_is_acknowledged_was_not_captured() {
        let mut all = holes(&[(10, 20), (30, 40)]);
        assert_eq!(all.acknowledge(35), 15);
        assert_eq!(ranges(&all), [(35, 40)]);
        assert_eq!(all.acknowledge(100), 5);
    }
}
