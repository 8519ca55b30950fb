//! How late a sender's packets come to a tap, by the sender's own clock: its timestamps (RFC 7323).
//!
//! Between two packets the time at the tap grows by more than that of the sender if the second one waited longer on its way.
//! The least difference so far is that of an empty path (as in RFC 6817); what lies above it, a packet stood in queues.

/// Linux ticks once a millisecond.
const TICK: i64 = 1_000_000;
/// Clocks drift apart, by some milliseconds in two of these: the least difference is that of the newest two.
const WINDOW: i64 = 30_000_000_000;

/// The clock of one end, seen from the tap.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lag {
    /// A timestamp and when it passed: what others are compared with, and the newest.
    origin: Option<(u32, i64)>,
    last: (u32, i64),
    /// The least lag behind the origin, in the last window and in this one, which began then.
    before: i64,
    least: i64,
    since: i64,
    /// Whether the clock ticks once a millisecond or more often, as far as the packets before the newest tell.
    is_fine: bool,
    /// Whether the newest packet is older than one that passed before it.
    is_older: bool,
    /// Whether its stamp is as old as that of one which passed long before it, or older.
    is_stale: bool,
    /// The newest timestamp when the other end acknowledged something new last.
    answered: Option<u32>,
    /// The newest packet: how much later than the shortest way it came, and how long after the last one it left.
    queued: i64,
    step: i64,
}

impl Lag {
    /// Takes a packet's timestamp.
    pub(crate) fn take(&mut self, value: u32, now: i64) {
        let Some(origin) = self.origin else {
            *self = Lag { origin: Some((value, now)), last: (value, now), since: now, ..Lag::default() };
            return;
        };
        let lag = now - origin.1 - ticks(origin.0, value) * TICK;
        self.is_fine = ticks(origin.0, self.last.0) * TICK * 2 >= self.last.1 - origin.1;
        self.step = ticks(self.last.0, value) * TICK;
        self.is_older = self.step < 0;
        self.is_stale = self.is_older || (self.step == 0 && now - self.last.1 > 2 * TICK);
        if !self.is_older {
            self.last = (value, now);
        }
        self.least = self.least.min(lag);
        self.queued = (lag - self.before.min(self.least) - TICK).max(0);
        if now - self.since > WINDOW {
            (self.before, self.least, self.since) = (self.least - lag, 0, now);
            self.origin = Some((value, now));
        }
    }

    /// The other end acknowledges something new.
    #[inline]
    pub(crate) fn answer(&mut self) {
        self.answered = self.origin.map(|_| self.last.0);
    }

    /// Whether the newest packet was stamped after all that had passed when the other end acknowledged something new last: it is
    /// none of those.
    pub(crate) fn left_after_answer(&self) -> bool {
        !self.is_older && self.answered.is_some_and(|answered| ticks(answered, self.last.0) > 0)
    }

    /// How long the newest packet stood in queues on its way to the tap; 0 if the clock is too coarse to tell.
    pub(crate) fn queued(&self) -> i64 {
        if self.is_fine { self.queued } else { 0 }
    }

    /// Whether the newest packet was sent before one that passed before it.
    pub(crate) fn is_older(&self) -> bool {
        self.is_older
    }

    /// Whether the newest packet was stamped after all that passed before it.
    pub(crate) fn is_newer(&self) -> bool {
        self.step > 0
    }

    /// Whether the newest packet was stamped long before it came, as one that is repeated cannot be. Where an answer comes within
    /// a tick (not `is_slower`), only what is ticks older tells.
    pub(crate) fn is_stale(&self, is_slower: bool) -> bool {
        self.is_fine && ((self.is_stale && is_slower) || self.step < -2 * TICK)
    }

    /// Whether a stamp is newer than all that passed: its packet is no copy of any of them.
    #[inline]
    pub(crate) fn is_news(&self, value: u32) -> bool {
        self.origin.is_some() && ticks(self.last.0, value) > 0
    }

    /// How far apart packets may have left that have the same timestamp: any time, by a clock that is too coarse.
    pub(crate) fn tick(&self) -> i64 {
        if self.is_fine { TICK } else { i64::MAX }
    }

    /// Whether the newest packet, which ends a gap at the tap, left its sender after about as long a gap, as far as the clock
    /// tells.
    pub(crate) fn left_after(&self, gap: i64) -> bool {
        !self.is_fine || self.step * 2 >= gap
    }
}

fn ticks(from: u32, to: u32) -> i64 {
    i64::from(to.wrapping_sub(from) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet every 10 ms by a clock that ticks so often a second, each so late.
    fn taken(hertz: i64, late: impl Fn(i64) -> i64, count: i64) -> Lag {
        let mut lag = Lag::default();
        for number in 0..count {
            let at = number * 10 * TICK;
            lag.take((at * hertz / (1000 * TICK)) as u32, at + late(number));
        }
        lag
    }

    #[test]
    fn a_queue_is_what_lies_above_the_shortest_way() {
        let lag = taken(1000, |number| number.min(20) * TICK, 50);
        assert_eq!(lag.queued(), 19 * TICK);
        assert_eq!(taken(1000, |_| 0, 50).queued(), 0);
    }

    #[test]
    fn a_clock_that_drifts_shows_no_queue_that_grows() {
        // By 100 microseconds a second, for an hour.
        let lag = taken(1000, |number| number * 1000, 360_000);
        assert!(lag.queued() <= 6 * TICK, "{}", lag.queued());
    }

    #[test]
    fn a_clock_that_ticks_seldom_or_fast_tells_of_no_queue() {
        assert_eq!(taken(100, |number| number * TICK, 50).queued(), 0);
        assert_eq!(taken(1_000_000, |number| number.min(20) * TICK, 50).queued(), 0);
    }
}
