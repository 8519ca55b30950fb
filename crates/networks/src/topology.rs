//! The shape of a network as the pipe describes it.

use framegauge_fabric::{BondHash, Ends, Graph, TopologyError};
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

/// By what the NICs of a bond are chosen: the words of `xmit_hash_policy` of Linux' bonding.
///
/// `layer2` is by Ethernet addresses, `layer2+3` by those of IP, too: hosts have one of each, so both tell pairs of hosts apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub enum BondSpec {
    #[serde(rename = "layer2")]
    Layer2,
    #[serde(rename = "layer2+3")]
    Layer23,
    #[serde(rename = "layer3+4")]
    Layer34,
}

impl BondSpec {
    /// Its word.
    pub const fn name(self) -> &'static str {
        match self {
            BondSpec::Layer2 => "layer2",
            BondSpec::Layer23 => "layer2+3",
            BondSpec::Layer34 => "layer3+4",
        }
    }

    /// What is hashed.
    pub const fn hash(self) -> BondHash {
        match self {
            BondSpec::Layer2 | BondSpec::Layer23 => BondHash::Addresses,
            BondSpec::Layer34 => BondHash::Ports,
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
        bond: Option<BondSpec>,
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
        TopologySpec::Rack { nics: 1, bond: None }
    }
}

impl TopologySpec {
    /// Its nodes and links with these hosts.
    pub(crate) fn graph(&self, hosts: &[String]) -> Result<Graph, TopologyError> {
        match self {
            TopologySpec::Rack { nics, bond: None } => Graph::rack(hosts, *nics),
            TopologySpec::Rack { nics, bond: Some(bond) } => Graph::bonded_rack(hosts, *nics, bond.hash()),
            TopologySpec::Dumbbell { left } => Graph::dumbbell(hosts, *left),
            TopologySpec::LeafSpine { leaves, spines } => Graph::leaf_spine(hosts, *leaves, *spines),
            TopologySpec::FatTree { k } => Graph::fat_tree(hosts, *k),
            TopologySpec::Custom { switches, routers, links } => {
                let routers: Vec<String> = routers.iter().map(|router| router.name.clone()).collect();
                Graph::custom(hosts, &routers, switches, links)
            }
        }
    }

    /// By what hosts choose among their NICs, if these are bonds.
    pub fn bond(&self) -> Option<BondSpec> {
        match self {
            TopologySpec::Rack { bond, .. } => *bond,
            _ => None,
        }
    }

    /// Its routers: only where links are said one by one.
    pub fn routers(&self) -> &[RouterSpec] {
        match self {
            TopologySpec::Custom { routers, .. } => routers,
            _ => &[],
        }
    }

    /// The router of this name, for a change.
    pub(crate) fn router_mut(&mut self, name: &str) -> Option<&mut RouterSpec> {
        match self {
            TopologySpec::Custom { routers, .. } => routers.iter_mut().find(|router| router.name == name),
            _ => None,
        }
    }

    /// Its ends: their owners, and the way from one to another.
    pub fn ends(&self, hosts: &[String]) -> Result<Ends, String> {
        self.graph(hosts).map(|graph| graph.ends()).map_err(|error| error.to_string())
    }
}
