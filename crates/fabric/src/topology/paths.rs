//! How far hosts are from each other.

use framegauge_frames::Picoseconds;

use crate::{FabricConfig, PortIndex};

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

impl FabricConfig {
    /// How far hosts are from each other by these routes; `None` with one host. The configuration must be one that
    /// [`FabricConfig::check`] finds right.
    pub fn spans(&self) -> Option<Spans> {
        let hosts = self.hosts.len();
        // By destination, then by source.
        let mut delays = vec![vec![None; hosts]; hosts];
        let mut links: Option<Spread<u32>> = None;
        for (destination, from) in delays.iter_mut().enumerate() {
            let mut known = vec![None; self.ports.len()];
            for (source, delay) in from.iter_mut().enumerate().filter(|(source, _)| *source != destination) {
                let reach = self.reach(self.uplinks[source], destination, &mut known);
                *delay = Some(reach.delay);
                links.get_or_insert(reach.links).widen(reach.links);
            }
        }
        let mut round_trip: Option<Spread<Picoseconds>> = None;
        for (one, other) in (0..hosts).flat_map(|one| (0..one).map(move |other| (one, other))) {
            if let (Some(there), Some(back)) = (delays[one][other], delays[other][one]) {
                let both = Spread { least: there.least + back.least, most: there.most + back.most };
                round_trip.get_or_insert(both).widen(both);
            }
        }
        Some(Spans { links: links?, round_trip: round_trip? })
    }

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
        let found = Reach {
            links: Spread { least: rest.links.least + 1, most: rest.links.most + 1 },
            delay: Spread { least: rest.delay.least + delay, most: rest.delay.most + delay },
        };
        known[index] = Some(found);
        found
    }
}
