//! Which of the newest numbers (IPv4's identification) of a sender have passed: a number that passed before is the same packet
//! again, however late. A bit each, so that it costs 8 KiB for each direction at the most, whatever passes.
//!
//! ```text
//!   newest - 65535 ............................ newest        a number comes again after 65,536 packets: what is
//!   1 1 1 0 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 0 0 1 1 1 1         older than that is forgotten
//! ```
//!
//! It tells nothing of senders whose numbers do not go up: fixed ones, and those drawn at random, which RFC 6864 section 4.1
//! allows for packets that are not to be fragmented. Those that go up are those of one counter, for this connection or for
//! all of the host, and such a counter gives a repeat a number of its own.

/// A larger step is no step of a counter.
const MOST_STEP: u16 = 4096;
/// So many steps up show that a sender counts, and for each that is none there must be so many.
const ENOUGH: u32 = 5;
const SHARE: u32 = 4;
/// A word of the bits.
const WORD: usize = u64::BITS as usize;
/// All that a number can be.
const ALL: usize = 1 << u16::BITS;

/// The numbers of one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Numbers {
    newest: Option<u16>,
    /// One for each number, by the lower bits of it; a power of two, as many as have passed.
    bits: Vec<u64>,
    up: u32,
    jumps: u32,
    /// From a jump on: how many numbers the bits know of.
    known: usize,
    /// The last packet that passed had a number behind the newest.
    is_behind: bool,
}

impl Numbers {
    /// A packet passes that is no copy; an aggregate has several numbers, from `first` on.
    #[inline]
    pub(crate) fn pass(&mut self, first: u16, count: u16) {
        let last = first.wrapping_add(count.saturating_sub(1));
        let Some(newest) = self.newest else { return self.begin(last, count) };
        let step = last.wrapping_sub(newest);
        // Nearly all are the next one.
        if step == 1 && (self.known < self.bits.len() * WORD || self.known == ALL) {
            self.known = (self.known + 1).min(ALL);
            (self.newest, self.is_behind) = (Some(last), false);
            self.up = self.up.saturating_add(1);
            return self.set(last, true);
        }
        self.is_behind = step > u16::MAX - MOST_STEP;
        if step == 0 {
            return;
        }
        if step <= MOST_STEP {
            self.up = self.up.saturating_add(1);
            self.go_on(newest, step, count);
        } else if self.is_behind {
            // It was overtaken.
            self.mark(first, last);
        } else {
            self.jumps = self.jumps.saturating_add(1);
            self.begin(last, count);
        }
    }

    /// Whether a packet with this number has passed.
    pub(crate) fn has_passed(&self, number: u16) -> bool {
        let Some(newest) = self.newest.filter(|_| self.counts()) else { return false };
        usize::from(newest.wrapping_sub(number)) < self.known && self.bit(number)
    }

    /// Whether the last packet that passed was sent after all others: its sender counts, its own packets alone or those of all
    /// the host.
    pub(crate) fn last_is_newest(&self) -> bool {
        self.counts() && !self.is_behind
    }

    /// Whether the last packet that passed was sent before another that had passed.
    pub(crate) fn last_is_behind(&self) -> bool {
        self.counts() && self.is_behind
    }

    fn counts(&self) -> bool {
        self.up >= ENOUGH && self.up >= SHARE.saturating_mul(self.jumps)
    }

    fn begin(&mut self, newest: u16, count: u16) {
        self.bits.clear();
        self.bits.push(0);
        self.newest = Some(newest);
        self.known = usize::from(count).min(WORD);
        self.mark(newest.wrapping_sub(self.known as u16 - 1), newest);
    }

    #[inline]
    fn go_on(&mut self, newest: u16, step: u16, count: u16) {
        self.known = (self.known + usize::from(step)).min(ALL);
        if self.known > self.bits.len() * WORD {
            self.grow(newest);
        }
        let last = newest.wrapping_add(step);
        // What lies between has not passed.
        for skipped in 1..=step.saturating_sub(count) {
            self.set(newest.wrapping_add(skipped), false);
        }
        self.newest = Some(last);
        self.mark(last.wrapping_sub(count.min(step) - 1), last);
    }

    /// Makes room for all that is known. `newest`: the newest number that the bits have.
    #[cold]
    fn grow(&mut self, newest: u16) {
        let had = self.bits.len() * WORD;
        let room = self.known.next_power_of_two();
        let old = std::mem::replace(&mut self.bits, vec![0; room / WORD]);
        for back in 0..had.min(ALL) {
            let number = newest.wrapping_sub(back as u16);
            let place = usize::from(number) & (had - 1);
            self.set(number, old[place / WORD] >> (place % WORD) & 1 == 1);
        }
    }

    #[inline]
    fn mark(&mut self, first: u16, last: u16) {
        for further in 0..=last.wrapping_sub(first) {
            self.set(first.wrapping_add(further), true);
        }
    }

    fn bit(&self, number: u16) -> bool {
        let place = usize::from(number) & (self.bits.len() * WORD - 1);
        self.bits[place / WORD] >> (place % WORD) & 1 == 1
    }

    #[inline]
    fn set(&mut self, number: u16, passed: bool) {
        let place = usize::from(number) & (self.bits.len() * WORD - 1);
        let (word, bit) = (&mut self.bits[place / WORD], 1 << (place % WORD));
        if passed { *word |= bit } else { *word &= !bit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn passed(numbers: impl IntoIterator<Item = u16>) -> Numbers {
        let mut all = Numbers::default();
        numbers.into_iter().for_each(|number| all.pass(number, 1));
        all
    }

    #[test]
    fn a_number_that_passed_is_known_until_it_comes_again() {
        let all = passed((0..200_000u32).map(|number| number as u16));
        assert!((0..=u16::MAX).all(|number| all.has_passed(number)));
        assert_eq!(all.bits.len() * 8, 8192);
        let few = passed(0..100);
        assert!(few.has_passed(0) && !few.has_passed(100) && !few.has_passed(u16::MAX));
    }

    #[test]
    fn numbers_that_are_fixed_or_drawn_tell_nothing() {
        let fixed = passed([7; 100]);
        assert!(!fixed.has_passed(7));
        let drawn: Vec<u16> =
            (0..400u32).map(|place| (place.wrapping_mul(2_654_435_761) >> 13) as u16).collect();
        let all = passed(drawn.iter().copied());
        assert!(drawn.iter().all(|number| !all.has_passed(*number)));
    }

    #[test]
    fn an_aggregate_has_the_numbers_of_all_its_segments() {
        let mut all = passed(0..20);
        all.pass(20, 44);
        assert!((20..64).all(|number| all.has_passed(number)));
        assert!(!all.has_passed(64));
    }

    proptest! {
        /// Steps up of any size, and some that were overtaken: what it says is what passed.
        #[test]
        fn it_says_what_passed(
            start in any::<u16>(),
            steps in proptest::collection::vec((1u16..40, 0u16..3), 6..400),
        ) {
            let (mut all, mut truth, mut newest) = (passed([start]), BTreeSet::from([start]), start);
            for (step, late) in steps {
                newest = newest.wrapping_add(step);
                all.pass(newest, 1);
                truth.insert(newest);
                if late > 0 {
                    let overtaken = newest.wrapping_sub(late);
                    all.pass(overtaken, 1);
                    // Before the first one, nothing is known.
                    if newest.wrapping_sub(start) >= late {
                        truth.insert(overtaken);
                    }
                }
            }
            for back in 0..=newest.wrapping_sub(start) {
                let number = newest.wrapping_sub(back);
                prop_assert_eq!(all.has_passed(number), truth.contains(&number), "{} of {}", number, newest);
            }
        }
    }
}
