//! The clocks of all files, and how far each is ahead of the others.

use super::clock::{Clock, Sighting};
use super::path::Ways;
use super::report::{ClockPiece, TapClock};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the clocks of pairs of files.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    /// By the two files, the smaller number first: how far the second is ahead.
    pairs: BTreeMap<(usize, usize), (Clock, u64)>,
}

impl Clocks {
    /// Aligns clocks by the packets that they saw of all connections.
    pub(super) fn align(ways: &mut [Ways]) -> Clocks {
        let mut sightings: BTreeMap<(usize, usize), Vec<Sighting>> = BTreeMap::new();
        for crossing in ways.iter_mut().flat_map(|ways| &mut ways.crossings) {
            let passed = std::mem::take(&mut crossing.passed);
            let Some(ahead) = crossing.ahead else { continue };
            let of_pair = sightings.entry(crossing.clocks).or_default();
            for (lane, some) in passed.iter().enumerate() {
                let sighting =
                    |(at, then): &(i64, i64)| Sighting { at: *at, ahead: then - at, forward: lane == ahead };
                of_pair.extend(some.iter().map(sighting));
            }
        }
        let aligned = |(key, all): ((usize, usize), Vec<Sighting>)| {
            let count = all.len() as u64;
            Clock::align(all).map(|clock| (key, (clock, count)))
        };
        Clocks { pairs: sightings.into_iter().filter_map(aligned).collect() }
    }

    /// How long a packet took from one clock to another, and how wrong that may be, in nanoseconds. `None` if the
    /// clocks could not be aligned.
    pub(super) fn delay(&self, clocks: (usize, usize), here: i64, there: i64) -> Option<(i64, i64)> {
        if clocks.0 == clocks.1 {
            return Some((there - here, 0));
        }
        let (clock, _) = self.pairs.get(&(clocks.0.min(clocks.1), clocks.0.max(clocks.1)))?;
        Some(if clocks.0 < clocks.1 {
            let (ahead, uncertainty) = clock.ahead(here);
            ((there - here).saturating_sub(ahead), uncertainty)
        } else {
            let (ahead, uncertainty) = clock.ahead(there);
            ((there - here).saturating_add(ahead), uncertainty)
        })
    }

    /// A clock relative to the first, for a tap that began at `begin` by its own; by way of others if need be.
    pub(super) fn told(&self, file: usize, first: (usize, i64)) -> Option<TapClock> {
        if file == first.0 {
            return Some(TapClock { sightings: None, ..TapClock::default() });
        }
        if let Some((clock, count)) = self.pairs.get(&(first.0.min(file), first.0.max(file))) {
            let sign = if first.0 < file { 1 } else { -1 };
            let pieces: Vec<ClockPiece> = clock
                .pieces
                .iter()
                .map(|piece| ClockPiece {
                    begin_seconds: piece.begin as f64 / 1e9,
                    end_seconds: piece.end as f64 / 1e9,
                    offset_seconds: piece.offset.saturating_mul(sign) as f64 / 1e9,
                    drift: sign as f64 * piece.drift,
                    uncertainty_seconds: piece.uncertainty as f64 / 1e9,
                })
                .collect();
            let most = pieces.iter().map(|piece| piece.uncertainty_seconds).fold(0.0, f64::max);
            return Some(TapClock {
                offset_seconds: pieces[0].offset_seconds,
                drift: pieces[0].drift,
                uncertainty_seconds: most,
                sightings: Some(*count),
                pieces,
            });
        }
        self.chain(file, first)
    }

    /// By the way with the fewest clocks between; the uncertainties add up.
    fn chain(&self, file: usize, (first, at): (usize, i64)) -> Option<TapClock> {
        let mut reached: BTreeMap<usize, (i64, i64)> = BTreeMap::from([(first, (0, 0))]);
        let mut edge: BTreeSet<usize> = BTreeSet::from([first]);
        while !edge.is_empty() && !reached.contains_key(&file) {
            let mut next = BTreeSet::new();
            for (pair, (clock, _)) in &self.pairs {
                for (from, to, sign) in [(pair.0, pair.1, 1), (pair.1, pair.0, -1)] {
                    if edge.contains(&from) && !reached.contains_key(&to) {
                        let (offset, uncertainty) = reached[&from];
                        let (ahead, more) = clock.ahead(at.saturating_add(offset));
                        let offset = offset.saturating_add(ahead.saturating_mul(sign));
                        reached.insert(to, (offset, uncertainty.saturating_add(more)));
                        next.insert(to);
                    }
                }
            }
            edge = next;
        }
        let (offset, uncertainty) = reached.get(&file)?;
        Some(TapClock {
            offset_seconds: *offset as f64 / 1e9,
            uncertainty_seconds: *uncertainty as f64 / 1e9,
            sightings: Some(0),
            ..TapClock::default()
        })
    }
}
