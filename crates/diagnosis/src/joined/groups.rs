//! The same connection at several taps.

use super::record::Trace;
use std::collections::HashMap;
use std::net::SocketAddr;

pub(super) type Key = (SocketAddr, SocketAddr);

/// A connection, and what each tap saw of it.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) key: Key,
    /// By tap, in the order of the taps; the places of all are the same.
    pub(super) traces: Vec<(usize, Trace)>,
}

impl Group {
    pub(super) fn trace(&self, tap: usize) -> Option<&Trace> {
        self.traces.iter().find(|(of, _)| *of == tap).map(|(_, trace)| trace)
    }

    /// The client's lane: of a tap that saw the handshake, or of the first.
    pub(super) fn client(&self) -> usize {
        let opening = self.traces.iter().find(|(_, trace)| trace.first_number.is_some());
        opening.or(self.traces.first()).map_or(0, |(_, trace)| trace.client)
    }

    pub(super) fn first_nanoseconds(&self) -> i64 {
        self.traces.first().map_or(0, |(_, trace)| trace.first_nanoseconds)
    }

    /// The largest payload of one packet of a lane, as far as it is known.
    pub(super) fn segment_bytes(&self, lane: usize) -> u32 {
        let of = |lane: usize| self.traces.iter().find_map(|(_, trace)| trace.lanes[lane].mss);
        let mss = of(0).into_iter().chain(of(1)).min().map_or(u32::MAX, u32::from);
        let records = || self.traces.iter().flat_map(|(_, trace)| &trace.lanes[lane].records);
        let largest =
            records().map(|record| record.payload()).filter(|payload| *payload <= mss).max().unwrap_or(0);
        if largest > 0 { largest } else { mss.min(1448) }
    }

    /// Up to where a lane was acknowledged at any tap.
    pub(super) fn acknowledged(&self, lane: usize) -> Option<i64> {
        self.traces.iter().filter_map(|(_, trace)| trace.lanes[lane].acknowledged).max()
    }

    fn add(&mut self, tap: usize, mut trace: Trace) {
        for lane in 0..2 {
            let first = |trace: &Trace| trace.lanes[lane].records.first().map(|record| record.begin);
            let there = self.traces.iter().find_map(|(_, other)| first(other));
            if let (Some(here), Some(there)) = (first(&trace), there) {
                trace.lanes[lane].move_places(here, there);
            }
        }
        self.traces.push((tap, trace));
    }

    /// Whether a trace without a handshake may be of this connection: its numbers are among those here.
    fn may_hold(&self, tap: usize, trace: &Trace) -> bool {
        let is_free = self.trace(tap).is_none();
        is_free
            && (0..2).any(|lane| {
                let Some(record) = trace.lanes[lane].records.first() else { return false };
                self.traces.iter().any(|(_, other)| {
                    let others = &other.lanes[lane].records;
                    let (Some(first), Some(last)) = (others.first(), others.last()) else { return false };
                    let near = |of: i64| record.begin.wrapping_sub(of) as u32 as i32;
                    near(first.begin) >= 0 && near(last.begin) <= 0
                        || i64::from(near(first.begin)).abs() < 1 << 24
                })
            })
    }
}

/// The connections of all taps; those that one tap saw only are left out. In the order of the first tap's packets.
pub(super) fn groups(taps: Vec<HashMap<Key, Vec<Trace>>>) -> Vec<Group> {
    let mut by_key: HashMap<Key, Vec<(usize, Trace)>> = HashMap::new();
    for (tap, traces) in taps.into_iter().enumerate() {
        for (key, of_key) in traces {
            by_key.entry(key).or_default().extend(of_key.into_iter().map(|trace| (tap, trace)));
        }
    }
    let mut all: Vec<Group> = by_key.into_iter().flat_map(|(key, traces)| of_key(key, traces)).collect();
    all.retain(|group| group.traces.len() > 1);
    all.sort_by_key(|group| (group.traces[0].0, group.first_nanoseconds(), group.key));
    all
}

/// The connections between the same two ends, told apart by the client's first sequence number.
fn of_key(key: Key, traces: Vec<(usize, Trace)>) -> Vec<Group> {
    let mut numbered: Vec<(Option<u32>, Group)> = Vec::new();
    let (met, joined_later): (Vec<_>, Vec<_>) =
        traces.into_iter().partition(|(_, trace)| trace.first_number.is_some());
    for (tap, trace) in met {
        let number = trace.first_number;
        match numbered.iter_mut().find(|(of, group)| *of == number && group.trace(tap).is_none()) {
            Some((_, group)) => group.add(tap, trace),
            None => numbered.push((number, Group { key, traces: vec![(tap, trace)] })),
        }
    }
    for (tap, trace) in joined_later {
        match numbered.iter_mut().find(|(_, group)| group.may_hold(tap, &trace)) {
            Some((_, group)) => group.add(tap, trace),
            None => numbered.push((None, Group { key, traces: vec![(tap, trace)] })),
        }
    }
    let mut groups: Vec<Group> = numbered.into_iter().map(|(_, group)| group).collect();
    groups.iter_mut().for_each(|group| group.traces.sort_by_key(|(tap, _)| *tap));
    groups
}
