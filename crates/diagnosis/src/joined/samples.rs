//! Packets that two taps surely both saw: what is there once at each.

use super::record::Record;

/// What a packet is known by: place, timestamp value, and of a pure acknowledgement what it says.
type Name = (i64, u32, u32);

/// When a packet passed two taps, each by its own clock, in nanoseconds.
pub(super) type Passed = (i64, i64);

/// The packets of a lane that no other one can be taken for, by name.
pub(super) fn unique(records: &[Record]) -> Vec<(Name, i64)> {
    let mut named: Vec<(Name, i64)> = records
        .iter()
        .map(|record| ((record.begin, record.value, record.print), record.nanoseconds))
        .collect();
    named.sort_unstable();
    let mut once = Vec::with_capacity(named.len());
    let mut at = 0;
    while at < named.len() {
        let same = named[at..].iter().take_while(|(name, _)| *name == named[at].0).count();
        if same == 1 {
            once.push(named[at]);
        }
        at += same;
    }
    once
}

/// When those passed that are in both, in the order of the first tap's clock.
pub(super) fn shared(here: &[(Name, i64)], there: &[(Name, i64)]) -> Vec<Passed> {
    let mut passed = Vec::new();
    let (mut one, mut other) = (here.iter().peekable(), there.iter().peekable());
    while let (Some((name, at)), Some((their, then))) = (one.peek(), other.peek()) {
        match name.cmp(their) {
            std::cmp::Ordering::Less => drop(one.next()),
            std::cmp::Ordering::Greater => drop(other.next()),
            std::cmp::Ordering::Equal => {
                passed.push((*at, *then));
                one.next();
                other.next();
            }
        }
    }
    passed.sort_unstable();
    passed
}

/// How much longer packets of the first list took than those of the second, in nanoseconds by both clocks: the median
/// of neighbours, which no step of a clock and no drift touches. `None` without any.
///
/// Is the one list of packets that passed the one way and the other of those that passed the other way, it is the
/// round trip between the taps: above 0 if packets of the first list came to the first tap first.
pub(super) fn lead(ahead: &[Passed], back: &[Passed]) -> Option<i64> {
    let mut all: Vec<(i64, i64, bool)> = ahead.iter().map(|(at, then)| (*at, then - at, true)).collect();
    all.extend(back.iter().map(|(at, then)| (*at, then - at, false)));
    all.sort_unstable();
    let mut leads: Vec<i64> = all
        .windows(2)
        .filter(|two| two[0].2 != two[1].2)
        .map(|two| if two[0].2 { two[0].1 - two[1].1 } else { two[1].1 - two[0].1 })
        .collect();
    median(&mut leads)
}

pub(super) fn median(values: &mut [i64]) -> Option<i64> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable(middle).1)
}
