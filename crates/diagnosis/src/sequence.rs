//! Sequence numbers without wrapping: 64 bits, of which the lower 32 are those on the wire.

/// A stream's place, from the first number that was seen.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unwrapper {
    last: Option<u64>,
}

impl Unwrapper {
    /// The place that a number on the wire means: that which is nearest to the last one (RFC 9293 section 3.4).
    pub(crate) fn place(&mut self, number: u32) -> u64 {
        let place = self.near(number);
        self.last = Some(self.last.map_or(place, |last| last.max(place)));
        place
    }

    /// The same without taking it as the newest.
    pub(crate) fn near(&self, number: u32) -> u64 {
        // The first one starts a turn above 0, so that older numbers have places, too.
        let Some(last) = self.last else { return (1 << 32) + u64::from(number) };
        last.wrapping_add_signed(i64::from(number.wrapping_sub(last as u32) as i32))
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
            let begin = unwrapper.place(first);
            let mut place = begin;
            for step in steps {
                let next = place.wrapping_add_signed(step);
                // Never farther behind the newest than half the numbers.
                prop_assume!(begin.abs_diff(next) < 1 << 30);
                prop_assert_eq!(unwrapper.place(next as u32), next);
                place = next;
            }
        }
    }
}
