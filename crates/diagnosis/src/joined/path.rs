//! In which order the packets of a connection pass its taps. It needs no common clock.

use super::groups::Group;
use super::samples::{Passed, lead, median, shared, unique};
use super::{Place, Tap};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// When packets of a connection passed two clocks, by lane.
type Both = [Vec<Passed>; 2];

/// Packets that two clocks saw, with what is known of their order.
#[derive(Debug)]
pub(super) struct Crossing {
    /// The clocks, the smaller number first.
    pub(super) clocks: (usize, usize),
    pub(super) passed: Both,
    /// The lane whose packets the first clock saw first; `None` if one lane only passed both.
    pub(super) ahead: Option<usize>,
}

/// The way of a connection's packets.
#[derive(Debug)]
pub(super) struct Ways {
    /// By lane: the taps in the order in which packets pass them.
    pub(super) taps: [Vec<usize>; 2],
    pub(super) crossings: Vec<Crossing>,
}

/// Finds the way of a connection's packets.
///
/// By one clock, the earlier tap is before the later one. By two, the raw delays of both directions differ by the round
/// trip between them, whatever the clocks say: which is positive tells who was first. Where packets of one direction
/// only passed two clocks, the larger TTL is before the smaller one, and the tap that saw more before the one that saw less.
pub(super) fn ways(group: &Group, taps: &[Tap]) -> Ways {
    let path: Vec<usize> =
        group.traces.iter().map(|(tap, _)| *tap).filter(|tap| taps[*tap].place == Place::Path).collect();
    let mut between: BTreeMap<(usize, usize), Both> = BTreeMap::new();
    let mut over: BTreeMap<(usize, usize), Both> = BTreeMap::new();
    for lane in 0..2 {
        let names: Vec<_> = path
            .iter()
            .map(|tap| group.trace(*tap).map_or(Vec::new(), |trace| unique(&trace.lanes[lane].records)))
            .collect();
        for (one, two) in pairs(path.len()) {
            let mut passed = shared(&names[one], &names[two]);
            let clocks = (taps[path[one]].clock, taps[path[two]].clock);
            if clocks.0 > clocks.1 {
                passed.iter_mut().for_each(|(here, there)| std::mem::swap(here, there));
            }
            if clocks.0 != clocks.1 {
                let key = (clocks.0.min(clocks.1), clocks.0.max(clocks.1));
                over.entry(key).or_default()[lane].extend_from_slice(&passed);
            } else {
                between.entry((path[one], path[two])).or_default()[lane] = passed;
            }
        }
    }
    let crossings: Vec<Crossing> = over
        .into_iter()
        .map(|(clocks, mut passed)| {
            passed.iter_mut().for_each(|some| some.sort_unstable());
            let ahead = lead(&passed[0], &passed[1]).map(|lead| usize::from(lead < 0));
            Crossing { clocks, passed, ahead }
        })
        .collect();
    let order = |lane: usize| {
        let mut on: Vec<usize> = path
            .iter()
            .copied()
            .filter(|tap| group.trace(*tap).is_some_and(|trace| !trace.lanes[lane].records.is_empty()))
            .collect();
        let before = |one: usize, two: usize| is_before(group, taps, (&between, &crossings), lane, one, two);
        let rank: BTreeMap<usize, usize> = on
            .iter()
            .map(|tap| (*tap, on.iter().filter(|other| *other != tap && before(**other, *tap)).count()))
            .collect();
        on.sort_by_key(|tap| rank[tap]);
        on
    };
    Ways { taps: [order(0), order(1)], crossings }
}

fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |one| (one + 1..count).map(move |two| (one, two)))
}

fn is_before(
    group: &Group,
    taps: &[Tap],
    (between, crossings): (&BTreeMap<(usize, usize), Both>, &[Crossing]),
    lane: usize,
    one: usize,
    two: usize,
) -> bool {
    let clocks = (taps[one].clock, taps[two].clock);
    if clocks.0 == clocks.1 {
        let key = (one.min(two), one.max(two));
        let later = between.get(&key).and_then(|both| {
            let step =
                |lane: usize| median(&mut both[lane].iter().map(|(at, then)| then - at).collect::<Vec<_>>());
            step(lane).or_else(|| step(1 - lane).map(|back| -back))
        });
        if let Some(later) = later {
            return if key.0 == one { later >= 0 } else { later < 0 };
        }
    }
    let key = (clocks.0.min(clocks.1), clocks.0.max(clocks.1));
    if let Some(ahead) =
        crossings.iter().find(|crossing| crossing.clocks == key).and_then(|crossing| crossing.ahead)
    {
        return (ahead == lane) == (key.0 == clocks.0);
    }
    let rank = |tap: usize| {
        let records = group.trace(tap).map_or(&[][..], |trace| &trace.lanes[lane].records[..]);
        let hops = records.first().map_or(0, |record| record.hops);
        let bytes: u64 = records.iter().map(|record| u64::from(record.bytes)).sum();
        (Reverse(hops), Reverse(bytes), tap)
    };
    rank(one) < rank(two)
}
