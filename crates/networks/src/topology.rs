//! The shape of a network as the pipe describes it.

use framegauge_fabric::{Ends, Graph, TopologyError};
use serde::Deserialize;

/// A router: a host that takes packets on.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct RouterSpec {
    pub name: String,
    pub mtu: Option<u32>,
    #[serde(default)]
    pub icmp: IcmpSpec,
}

/// Whether a router's ICMP errors get to anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub enum IcmpSpec {
    #[default]
    On,
    Filtered,
}

impl IcmpSpec {
    /// Its word: `on`, `filtered`.
    pub const fn name(self) -> &'static str {
        match self {
            IcmpSpec::On => "on",
            IcmpSpec::Filtered => "filtered",
        }
    }
}

/// The shape.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub enum TopologySpec {
    Rack {
        #[serde(default = "one_nic")]
        nics: u16,
    },
    Dumbbell {
        left: usize,
    },
    LeafSpine {
        leaves: usize,
        spines: usize,
    },
    FatTree {
        k: usize,
    },
    Custom {
        switches: Vec<String>,
        #[serde(default)]
        routers: Vec<RouterSpec>,
        links: Vec<(String, String)>,
    },
}

const fn one_nic() -> u16 {
    1
}

impl Default for TopologySpec {
    fn default() -> Self {
        TopologySpec::Rack { nics: 1 }
    }
}

impl TopologySpec {
    /// Its nodes and links with these hosts.
    pub(crate) fn graph(&self, hosts: &[String]) -> Result<Graph, TopologyError> {
        match self {
            TopologySpec::Rack { nics } => Graph::rack(hosts, *nics),
            TopologySpec::Dumbbell { left } => Graph::dumbbell(hosts, *left),
            TopologySpec::LeafSpine { leaves, spines } => Graph::leaf_spine(hosts, *leaves, *spines),
            TopologySpec::FatTree { k } => Graph::fat_tree(hosts, *k),
            TopologySpec::Custom { switches, routers, links } => {
                let routers: Vec<String> = routers.iter().map(|router| router.name.clone()).collect();
                Graph::custom(hosts, &routers, switches, links)
            }
        }
    }

    /// Its routers: only where links are said one by one.
    pub fn routers(&self) -> &[RouterSpec] {
        match self {
            TopologySpec::Custom { routers, .. } => routers,
            _ => &[],
        }
    }

    /// Its ends: their owners, and the way from one to another.
    pub fn ends(&self, hosts: &[String]) -> Result<Ends, String> {
        self.graph(hosts).map(|graph| graph.ends()).map_err(|error| error.to_string())
    }
}
