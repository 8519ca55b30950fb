//! What a connection has handed to the NIC and what has not left it: TCP small queues (`tcp_small_queue_check`).
//!
//! Times are those of the NIC's own clock, which stands still while a switch has paused it.

use std::collections::VecDeque;

use framegauge_frames::{BitRate, Picoseconds};

/// Super-segments, or what they were cut into, in the NIC: by the time at which it is done with each, with what each takes in
/// memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct SmallQueue {
    bytes: u64,
    parts: VecDeque<(Picoseconds, u64)>,
}

impl SmallQueue {
    pub(crate) fn add(&mut self, departs: Picoseconds, bytes: u64) {
        self.bytes += bytes;
        self.parts.push_back((departs, bytes));
    }

    /// The NIC has another rate from now on.
    pub(crate) fn stretch(&mut self, now: Picoseconds, (before, after): (BitRate, BitRate)) {
        let [before, after] = [before, after].map(|rate| u128::from(rate.bits_per_second()));
        for (departs, _) in &mut self.parts {
            let left = u128::from(departs.saturating_sub(now).get()) * before / after;
            *departs = now + Picoseconds::new(left.min(u128::from(u64::MAX / 2)) as u64);
        }
    }

    fn leave(&mut self, now: Picoseconds) {
        while let Some((_, bytes)) = self.parts.front().filter(|(departs, _)| *departs <= now) {
            self.bytes -= bytes;
            self.parts.pop_front();
        }
    }

    /// Whether another of that size has to wait, and until when. `rate` in bytes per second is that of pacing; `most` is
    /// `tcp_limit_output_bytes`, and `times` how often the limit may be filled.
    pub(crate) fn waits(
        &mut self,
        now: Picoseconds,
        bytes: u64,
        rate: Option<u64>,
        most: u64,
        times: u64,
    ) -> Option<Picoseconds> {
        self.leave(now);
        let limit = ((2 * bytes).max(rate.unwrap_or(0) >> 10).min(most)).saturating_mul(times);
        // The kernel compares a count that begins at 1 (`sk_wmem_alloc`): what is just at the limit waits.
        if self.bytes < limit {
            return None;
        }
        let mut left = self.bytes;
        self.parts.iter().find_map(|(departs, bytes)| {
            left -= bytes;
            (left < limit).then_some(*departs)
        })
    }

    /// Whether anything of it has not left the NIC.
    pub(crate) fn holds_any(&mut self, now: Picoseconds) -> bool {
        self.leave(now);
        !self.parts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_super_segments_and_then_the_next_waits_until_one_has_left() {
        let at = |us: u64| Picoseconds::from_nanoseconds(us * 1000);
        let mut held = SmallQueue::default();
        for departs in [500, 1000] {
            assert_eq!(held.waits(at(0), 64_000, None, 4_194_304, 1), None);
            held.add(at(departs), 64_000);
        }
        assert_eq!(held.waits(at(0), 64_000, None, 4_194_304, 1), Some(at(500)));
        assert_eq!(held.waits(at(500), 64_000, None, 4_194_304, 1), None);
    }

    /// Of what is sent again twice as much (`tcp_small_queue_check` with a factor of 1).
    #[test]
    fn what_is_sent_again_waits_at_twice_the_limit() {
        let at = |us: u64| Picoseconds::from_nanoseconds(us * 1000);
        let mut held = SmallQueue::default();
        (1..=2).for_each(|number| held.add(at(100 * number), 2280));
        assert_eq!(held.waits(at(0), 2280, None, 32_768, 2), None);
        (3..=4).for_each(|number| held.add(at(100 * number), 2280));
        assert_eq!(held.waits(at(0), 2280, None, 32_768, 2), Some(at(100)));
        assert_eq!(held.waits(at(0), 2280, None, 32_768, 1), Some(at(300)));
    }
}
