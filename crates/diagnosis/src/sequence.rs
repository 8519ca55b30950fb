//! Sequence numbers without wrapping: 64 bits, of which the lower 32 are those on the wire.

/// A stream's place, from the first number that was seen.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unwrapper {
    last: Option<u64>,
}

impl Unwrapper {
    /// The place that a number on the wire means: that which is nearest to the newest one (RFC 9293 section 3.4).
    pub(crate) fn near(&self, number: u32) -> u64 {
        // The first one starts a turn above 0, so that older numbers have places, too.
        let Some(last) = self.last else { return (1 << 32) + u64::from(number) };
        last.wrapping_add_signed(i64::from(number.wrapping_sub(last as u32) as i32))
    }

    /// Numbers are near this place from now on, unless they were near a later one.
    pub(crate) fn reach(&mut self, place: u64) {
        self.last = Some(self.last.map_or(place, |last| last.max(place)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn places_keep_their_distances(first: u32, steps in proptest::collection::vec(-1_000_000i64..1_000_000, 1..50)) {
            let mut unwrapper = Unwrapper::default();
            let begin = unwrapper.near(first);
            unwrapper.reach(begin);
            let mut place = begin;
            for step in steps {
                let next = place.wrapping_add_signed(step);
                // Never farther behind the newest than half the numbers.
                prop_assume!(begin.abs_diff(next) < 1 << 30);
                prop_assert_eq!(unwrapper.near(next as u32), next);
                unwrapper.reach(next);
                place = next;
            }
        }
    }
}
