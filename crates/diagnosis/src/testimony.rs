//! What all connections together say of each place where the stamps leap. A file may have as many of both as it has packets: it is
//! found by passing over them in order, and not by asking each for each.

use crate::steps::{Leap, Witness};
use std::collections::BTreeSet;

/// What is said of one leap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Testimony {
    /// Of what all say.
    pub(crate) weight: i64,
    /// The least RTT of those who say something, or 0.
    pub(crate) rtt: i64,
}

impl Testimony {
    /// Several witnesses of one host who say the same are as one.
    fn of<'a>(witnesses: impl Iterator<Item = &'a Witness>) -> Testimony {
        let (mut found, mut hosts) = (Testimony::default(), BTreeSet::new());
        for witness in witnesses {
            let is_again = witness.host.is_some_and(|host| !hosts.insert((host, witness.says)));
            found.weight += if is_again { 0 } else { witness.says.weight() };
            found.rtt = least_of(found.rtt, witness.rtt);
        }
        found
    }
}

/// Of RTTs of which those that are 0 are not known.
fn least_of(one: i64, other: i64) -> i64 {
    if one == 0 || other == 0 { one.max(other) } else { one.min(other) }
}

/// What witnesses say of each of these leaps.
pub(crate) fn testimonies(leaps: &[Leap], witnesses: &[Witness]) -> Vec<Testimony> {
    let mut found = vec![Testimony::default(); leaps.len()];
    ahead(leaps, witnesses, &mut found);
    back(leaps, witnesses, &mut found);
    found
}

/// Leaps ahead, as the stamps behind them rise: those who have begun and not ended are asked.
fn ahead(leaps: &[Leap], witnesses: &[Witness], found: &mut [Testimony]) {
    let mut order: Vec<usize> = (0..leaps.len()).filter(|place| leaps[*place].by() >= 0).collect();
    order.sort_unstable_by_key(|place| leaps[*place].after);
    let mut coming: Vec<&Witness> = witnesses.iter().filter(|one| one.begin <= one.end).collect();
    coming.sort_unstable_by_key(|witness| std::cmp::Reverse(witness.begin));
    let mut begun: Vec<&Witness> = Vec::new();
    for place in order {
        let leap = &leaps[place];
        while let Some(witness) = coming.pop_if(|witness| witness.begin < leap.after) {
            begun.push(witness);
        }
        begun.retain(|witness| witness.end >= leap.after);
        found[place] = Testimony::of(begun.iter().copied().filter(|witness| leap.is_between(witness)));
    }
}

/// Leaps back, which need no witness: only the least RTT of those who went back within them, as the stamps before them rise. Of
/// those that have come so far it is kept by their ends, as the least of each part of them (a Fenwick tree).
fn back(leaps: &[Leap], witnesses: &[Witness], found: &mut [Testimony]) {
    let mut order: Vec<usize> = (0..leaps.len()).filter(|place| leaps[*place].by() < 0).collect();
    order.sort_unstable_by_key(|place| leaps[*place].before);
    let mut coming: Vec<&Witness> =
        witnesses.iter().filter(|one| one.end < one.begin && one.rtt > 0).collect();
    coming.sort_unstable_by_key(|witness| std::cmp::Reverse(witness.begin));
    let mut ends: Vec<i64> = coming.iter().map(|witness| witness.end).collect();
    ends.sort_unstable();
    // So many ends are at a stamp or later.
    let later = |stamp: i64| ends.len() - ends.partition_point(|end| *end < stamp);
    let mut least = vec![0i64; ends.len() + 1];
    for place in order {
        let leap = &leaps[place];
        while let Some(witness) = coming.pop_if(|witness| witness.begin <= leap.before) {
            let mut node = later(witness.end);
            while node < least.len() {
                least[node] = least_of(least[node], witness.rtt);
                node += node & node.wrapping_neg();
            }
        }
        let mut node = later(leap.after);
        while node > 0 {
            found[place].rtt = least_of(found[place].rtt, least[node]);
            node &= node - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::Says;
    use proptest::prelude::*;
    use std::net::{IpAddr, Ipv4Addr};

    const SECOND: i64 = 1_000_000_000;

    fn leap() -> impl Strategy<Value = Leap> {
        (0i64..60, -40i64..40).prop_filter("a leap", |(_, by)| *by != 0).prop_map(|(before, by)| Leap {
            number: 0,
            before: before * SECOND,
            after: (before + by) * SECOND,
            is_undone: false,
        })
    }

    fn witness() -> impl Strategy<Value = Witness> {
        let says = prop_oneof![Just(Says::Against), Just(Says::Hint), Just(Says::Proof)];
        (0i64..70, 0i64..70, 0i64..5, says, 0u8..6).prop_map(|(begin, end, rtt, says, host)| Witness {
            begin: begin * SECOND,
            end: end * SECOND,
            rtt,
            says,
            host: (host > 0).then(|| IpAddr::V4(Ipv4Addr::new(10, 0, 0, host))),
        })
    }

    proptest! {
        #[test]
        fn each_leap_is_told_what_each_witness_says_of_it(
            leaps in proptest::collection::vec(leap(), 0..40),
            witnesses in proptest::collection::vec(witness(), 0..60),
        ) {
            for (leap, told) in leaps.iter().zip(testimonies(&leaps, &witnesses)) {
                let all = Testimony::of(witnesses.iter().filter(|witness| leap.is_between(witness)));
                prop_assert_eq!(told.rtt, all.rtt);
                // Nobody has to say that stamps went back.
                prop_assert_eq!(told.weight, if leap.by() < 0 { 0 } else { all.weight });
            }
        }
    }
}
