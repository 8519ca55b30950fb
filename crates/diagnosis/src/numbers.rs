//! Which of the newest numbers (IPv4's identification) of a sender have passed: a number that passed before is the same packet
//! again, however late.
//!
//! ```text
//!   floor                                     newest      a number comes again after 65,536 packets: what is older than
//!     ├──────────────┤  ├────────────┤   ├───────┤        that is forgotten
//!        passed      gap    passed    gap  passed
//! ```
//!
//! Of a sender that counts nearly all numbers pass in their order, so that only the gaps are kept: 16 KiB for each direction at
//! the most, whatever passes, and nothing where nothing is missing. What lies before the gaps that are kept is not known.
//!
//! It tells nothing of senders whose numbers do not go up: fixed ones, and those drawn at random, which RFC 6864 section 4.1
//! allows for packets that are not to be fragmented. Those that go up are those of one counter, for this connection or for
//! all of the host, and such a counter gives a repeat a number of its own.

use std::collections::VecDeque;

/// More gaps are forgotten, the oldest first.
const MOST_GAPS: usize = 1024;
/// So many steps up show that a sender counts, and for each that is none there must be so many.
const ENOUGH: u64 = 5;
const SHARE: u64 = 4;
/// All that a number can be.
const ALL: u64 = 1 << u16::BITS;

/// Numbers that have not passed.
#[derive(Debug, Clone, Copy)]
struct Gap {
    begin: u64,
    end: u64,
}

/// The numbers of one direction, in places: each number that the sender has counted has one, from 0 at the first that passed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Numbers {
    /// The place after the newest.
    end: u64,
    /// Nothing before this place is known.
    floor: u64,
    gaps: VecDeque<Gap>,
    /// Packets whose number was above the newest, not far; and those whose number was far from it.
    up: u64,
    jumps: u64,
    /// The last packet had a number behind the newest.
    is_behind: bool,
}

impl Numbers {
    /// So many numbers pass that follow the newest.
    #[inline]
    pub(crate) fn follow(&mut self, count: u16) {
        self.end += u64::from(count);
        self.up += 1;
        self.is_behind = false;
    }

    /// So many numbers have not passed.
    pub(crate) fn skip(&mut self, count: u16) {
        let begin = self.end;
        self.end += u64::from(count);
        if count > 0 {
            self.gaps.push_back(Gap { begin, end: self.end });
        }
        while let Some(oldest) = self.gaps.front().copied()
            && (self.gaps.len() > MOST_GAPS || oldest.end + ALL <= self.end)
        {
            self.floor = oldest.end;
            self.gaps.pop_front();
        }
    }

    /// A number that was overtaken passes, so far back from the newest.
    pub(crate) fn fill(&mut self, back: u16) {
        self.is_behind = true;
        let Some(place) = self.place(back) else { return };
        let at = self.gaps.partition_point(|gap| gap.end <= place);
        let Some(gap) = self.gaps.get_mut(at).filter(|gap| gap.begin <= place) else { return };
        let (begin, end) = (gap.begin, gap.end);
        gap.begin = place + 1;
        if place + 1 == end {
            self.gaps.remove(at);
        }
        if begin < place {
            self.gaps.insert(at, Gap { begin, end: place });
        }
    }

    /// A number passes that is far from the newest: another count begins.
    pub(crate) fn jump(&mut self) {
        self.jumps += 1;
        self.floor = self.end;
        self.gaps.clear();
        self.is_behind = false;
    }

    /// Whether the number so far back from the newest has passed.
    pub(crate) fn has_passed(&self, back: u16) -> bool {
        let Some(place) = self.place(back).filter(|_| self.counts()) else { return false };
        let at = self.gaps.partition_point(|gap| gap.end <= place);
        self.gaps.get(at).is_none_or(|gap| place < gap.begin)
    }

    fn place(&self, back: u16) -> Option<u64> {
        self.end.checked_sub(u64::from(back) + 1).filter(|place| *place >= self.floor)
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

    /// Whether the sender counts, as far as its packets tell.
    pub(crate) fn counts(&self) -> bool {
        self.up >= ENOUGH && self.up >= SHARE.saturating_mul(self.jumps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_number_that_passed_is_known_until_it_comes_again() {
        let mut all = Numbers::default();
        (0..200_000).for_each(|_| all.follow(1));
        assert!((0..=u16::MAX).all(|back| all.has_passed(back)));
        assert_eq!(all.gaps.capacity(), 0);
    }

    #[test]
    fn what_jumps_mostly_tells_nothing() {
        let mut all = Numbers::default();
        for place in 0..400 {
            if place % 4 != 0 {
                all.jump();
            }
            all.follow(1);
        }
        assert!(!all.has_passed(0) && !all.last_is_newest());
    }

    #[test]
    fn gaps_are_bounded_and_what_lies_before_them_is_not_known() {
        let mut all = Numbers::default();
        for _ in 0..4 * MOST_GAPS {
            all.skip(1);
            all.follow(1);
        }
        assert_eq!(all.gaps.len(), MOST_GAPS);
        let back = 2 * MOST_GAPS as u16;
        assert!(all.has_passed(back) && !all.has_passed(back - 1));
        assert!((1..9).all(|more| !all.has_passed(back + more)));
        let bytes = MOST_GAPS * size_of::<Gap>();
        assert_eq!(bytes, 16 << 10);
    }

    proptest! {
        /// Steps up of any size, aggregates, and some that were overtaken: what it says is what passed.
        #[test]
        fn it_says_what_passed(
            steps in proptest::collection::vec((0u16..40, 1u16..20, 0u16..60), 6..400),
        ) {
            let (mut all, mut truth, mut end) = (Numbers::default(), BTreeSet::new(), 0u64);
            for (step, count, late) in steps {
                all.skip(step);
                all.follow(count);
                end += u64::from(step);
                truth.extend(end..end + u64::from(count));
                end += u64::from(count);
                if late > 30 {
                    all.fill(late - 30);
                    truth.extend(end.checked_sub(u64::from(late - 30) + 1));
                }
            }
            for back in 0..end.min(ALL) {
                let is_known = truth.contains(&(end - 1 - back));
                prop_assert_eq!(all.has_passed(back as u16), is_known, "{} of {}", back, end);
            }
        }
    }
}
