//! A network in the numbers of the fabric, with the owners of its ends.

use framegauge_fabric::{Ends, FabricConfig, NodeIndex, Owner};
use framegauge_frames::BitRate;

/// A network in numbers, and whose its ends are.
#[derive(Debug, Clone)]
pub struct Network {
    /// What the fabric is made of.
    pub config: FabricConfig,
    /// Its ends.
    pub ends: Ends,
}

impl Network {
    /// The rate of an end's own link, without skew.
    pub fn link_rate(&self, end: usize) -> BitRate {
        self.config.ports[usize::from(self.config.uplinks[end].0)].rate
    }

    /// The rate of a host's shaper that lets so much of its end's own link pass.
    pub fn shaped_bits_per_second(&self, end: usize, factor: f64) -> u64 {
        shaped(self.link_rate(end), factor)
    }

    /// The names of its hosts, in order.
    pub fn hosts(&self) -> Vec<String> {
        let ends = &self.ends;
        let first = |end: &usize| {
            matches!(ends.owner(*end), Owner::Host(_)) && ends.ends_of(ends.owner(*end))[0] == *end
        };
        (0..ends.len()).filter(first).map(|end| ends.owner_name(end).to_owned()).collect()
    }
}

/// What a node may be called: its own name, and that of whose NIC it is.
pub(crate) fn names_of<'a>(ends: &'a Ends, config: &'a FabricConfig, node: NodeIndex) -> [&'a str; 2] {
    let name = config.node_name(node);
    let end = usize::from(node.0);
    [name, if end < ends.len() { ends.owner_name(end) } else { name }]
}

/// That much of a rate.
pub(crate) fn shaped(rate: BitRate, factor: f64) -> u64 {
    (rate.bits_per_second() as f64 * factor) as u64
}
