//! The newest places that a sender has sent again. A receiver that says of others that it has them twice (D-SACK, RFC 2883) speaks
//! of a packet that the network has doubled, or of a probe: nobody has sent them again (RFC 3708 section 3).

use crate::kinds::Kind;
use std::collections::VecDeque;

/// More are forgotten: then nobody knows of older ones.
const MOST_RANGES: usize = 256;

/// Of so many packets that came twice the receiver may still speak.
const MOST_DOUBLES: usize = 64;

/// The newest packets with data that the capture has twice, as which that is told: if the receiver has it twice as well, the
/// network has doubled it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Doubles(VecDeque<Double>);

#[derive(Debug, Clone)]
struct Double {
    range: (u64, u64),
    number: u64,
    kind: Kind,
    is_late: bool,
}

impl Doubles {
    /// `is_late`: its sender may have repeated it by then.
    pub(crate) fn take(&mut self, range: (u64, u64), number: u64, kind: Kind, is_late: bool) {
        if self.0.len() == MOST_DOUBLES {
            self.0.pop_front();
        }
        self.0.push_back(Double { range, number, kind, is_late });
    }

    /// The receiver has what lies in `range` twice: the number of the copy and what it was told as, once; and whether it was late.
    pub(crate) fn arrived(&mut self, range: (u64, u64)) -> Option<(u64, Kind, bool)> {
        let place = self.0.iter().position(|copy| copy.range.0 < range.1 && range.0 < copy.range.1)?;
        self.0.remove(place).map(|copy| (copy.number, copy.kind, copy.is_late))
    }
}

/// Ranges of places, the newest last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Repeated {
    ranges: VecDeque<(u64, u64)>,
    has_forgotten: bool,
}

impl Repeated {
    pub(crate) fn take(&mut self, range: (u64, u64)) {
        if let Some(last) = self.ranges.back_mut().filter(|last| last.1 == range.0) {
            last.1 = range.1;
            return;
        }
        if self.ranges.len() == MOST_RANGES {
            self.ranges.pop_front();
            self.has_forgotten = true;
        }
        self.ranges.push_back(range);
    }

    /// Whether some of `[begin, end)` may have been sent again.
    pub(crate) fn may_have(&self, (begin, end): (u64, u64)) -> bool {
        self.has_forgotten || self.ranges.iter().any(|range| range.0 < end && begin < range.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_forgotten_may_have_been_repeated() {
        let mut repeated = Repeated::default();
        (0..200).for_each(|place| repeated.take((place, place + 1)));
        repeated.take((500, 600));
        assert!(repeated.may_have((10, 20)) && repeated.may_have((599, 700)));
        assert!(!repeated.may_have((200, 500)) && !repeated.may_have((600, 700)));
        (0..400).for_each(|place| repeated.take((1_000 + 2 * place, 1_001 + 2 * place)));
        assert!(repeated.may_have((200, 500)));
    }
}
