//! How far hosts are from each other.

use std::collections::{BTreeMap, HashMap};

use framegauge_frames::Picoseconds;

use super::{Ends, Owner};
use crate::{FabricConfig, NodeIndex, PortIndex};

/// The least and the most of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread<T> {
    /// The smallest.
    pub least: T,
    /// The largest.
    pub most: T,
}

impl<T: Ord + Copy> Spread<T> {
    fn widen(&mut self, other: Spread<T>) {
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
    }
}

/// Of all pairs of different hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spans {
    /// Links on a way.
    pub links: Spread<u32>,
    /// Propagation there and back, each by any of its ways.
    pub round_trip: Spread<Picoseconds>,
}

/// From a port to a destination.
#[derive(Debug, Clone, Copy)]
struct Reach {
    links: Spread<u32>,
    delay: Spread<Picoseconds>,
}

impl Ends {
    /// How far hosts are from each other in a fabric of these ends, NIC by NIC, over routers too; `None` with one host.
    /// The configuration must be one that [`FabricConfig::check`] finds right.
    pub fn spans(&self, config: &FabricConfig) -> Option<Spans> {
        let pairs = self.pairs(&self.unlike(config));
        let mut ways: HashMap<(usize, usize), Reach> = HashMap::new();
        let mut partners: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (one, other) in &pairs {
            partners.entry(*one).or_default().push(*other);
            partners.entry(*other).or_default().push(*one);
        }
        for (to, froms) in partners {
            // What is known of one destination is of no use for others, and there may be thousands.
            let mut known: HashMap<usize, Vec<Option<Reach>>> = HashMap::new();
            for from in froms {
                let Some(legs) = self.legs(self.owner(from), to) else { continue };
                let reach = legs.into_iter().map(|leg| {
                    let known = known.entry(leg.to).or_insert_with(|| vec![None; config.ports.len()]);
                    config.reach(config.uplinks[leg.from], leg.to, known)
                });
                ways.extend(reach.reduce(Reach::followed_by).map(|reach| ((from, to), reach)));
            }
        }
        let mut widest: Option<Spans> = None;
        for (one, other) in pairs {
            if let (Some(there), Some(back)) = (ways.get(&(one, other)), ways.get(&(other, one))) {
                let both = Spread {
                    least: there.delay.least + back.delay.least,
                    most: there.delay.most + back.delay.most,
                };
                let spans = widest.get_or_insert(Spans { links: there.links, round_trip: both });
                spans.links.widen(there.links);
                spans.links.widen(back.links);
                spans.round_trip.widen(both);
            }
        }
        widest
    }
}

impl Ends {
    /// Of hosts on the same switches by links of the same delays two, which stand for all of them.
    fn unlike(&self, config: &FabricConfig) -> Vec<usize> {
        let mut down: Vec<Picoseconds> = vec![Picoseconds::ZERO; config.hosts.len()];
        for port in &config.ports {
            if let Some(delay) = down.get_mut(usize::from(port.to.0)) {
                *delay = port.delay + port.impairments.phase;
            }
        }
        let mut counts: HashMap<Vec<(NodeIndex, Picoseconds, Picoseconds)>, u32> = HashMap::new();
        let is_needed = |host: &usize| {
            let ends = self.ends_of(Owner::Host(*host)).iter().map(|end| {
                let up = &config.ports[usize::from(config.uplinks[*end].0)];
                (up.to, up.delay + up.impairments.phase, down[*end])
            });
            let count = counts.entry(ends.collect()).or_insert(0);
            *count += 1;
            *count <= 2
        };
        (0..self.hosts()).filter(is_needed).collect()
    }
}

impl Reach {
    fn followed_by(self, next: Reach) -> Reach {
        Reach {
            links: Spread {
                least: self.links.least + next.links.least,
                most: self.links.most + next.links.most,
            },
            delay: Spread {
                least: self.delay.least + next.delay.least,
                most: self.delay.most + next.delay.most,
            },
        }
    }
}

impl FabricConfig {
    fn reach(&self, port: PortIndex, destination: usize, known: &mut Vec<Option<Reach>>) -> Reach {
        let index = usize::from(port.0);
        if let Some(reach) = known[index] {
            return reach;
        }
        let delay = self.ports[index].delay + self.ports[index].impairments.phase;
        let mut reach: Option<Reach> = None;
        if usize::from(self.ports[index].to.0) >= self.hosts.len() {
            for next in self.routes.outputs(port, destination) {
                let further = self.reach(*next, destination, known);
                let reach = reach.get_or_insert(further);
                reach.links.widen(further.links);
                reach.delay.widen(further.delay);
            }
        }
        let rest = reach.unwrap_or(Reach {
            links: Spread { least: 0, most: 0 },
            delay: Spread { least: Picoseconds::ZERO, most: Picoseconds::ZERO },
        });
        let total = Reach {
            links: Spread { least: rest.links.least + 1, most: rest.links.most + 1 },
            delay: Spread { least: rest.delay.least + delay, most: rest.delay.most + delay },
        };
        known[index] = Some(total);
        total
    }
}
