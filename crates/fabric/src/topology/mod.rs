//! Topologies: hosts, switches and links by shape, with the routes that go with them.

mod ends;
mod paths;
mod routes;
mod shapes;

use thiserror::Error;

use crate::{
    BondConfig, BondHash, Choice, ConfigError, FabricConfig, HostConfig, HostIndex, NicConfig, NodeIndex,
    PortConfig, PortIndex,
};

pub(crate) use ends::labels;
pub use ends::{Ends, Leg, Owner};
pub use paths::{Spans, Spread};

/// Which ways frames may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Paths {
    /// The fewest links.
    #[default]
    Shortest,
    /// Through a switch of the highest level, however near the destination is: all paths have equal lengths.
    EqualLength,
}

/// How frames find their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Routing {
    /// Which ways there are.
    pub paths: Paths,
    /// Which of several is taken.
    pub choice: Choice,
    /// Of hashes and draws.
    pub seed: u64,
}

/// Subnets that a network may have, which their addresses must have room for.
const MOST_SUBNETS: usize = 250;

/// Why a description is no network.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// A number that does not fit.
    #[error("{what}: found {found}, expected {expected}")]
    Number {
        /// Of what.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there may be.
        expected: String,
    },
    /// A node that does not fit.
    #[error("{name:?} {problem}")]
    Node {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// Equal lengths where there are no levels.
    #[error(
        "equal-length routing: found topology {found}, expected fat-tree or leaf-spine, which have levels"
    )]
    Levels {
        /// The topology.
        found: &'static str,
    },
    /// The fabric is not one.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// A switch of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Switch {
    name: String,
    /// 1: hosts are joined to it; 0: there are no levels.
    level: u8,
    /// [`crate::RouteTable::stride`].
    stride: u16,
}

/// Nodes and links, without numbers. The ends come first, a NIC each, then switches, as in [`NodeIndex`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    kind: &'static str,
    ends: Vec<End>,
    switches: Vec<Switch>,
    links: Vec<(usize, usize)>,
    /// The NICs of every host are one bond.
    bond: Option<BondHash>,
}

/// A NIC, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct End {
    name: String,
    owner: Owner,
    owner_name: String,
}

impl Graph {
    /// All hosts on one switch called `switch`, each by `nics` links. A host or a router with several NICs is several ends,
    /// called `h1.1` and `h1.2`.
    pub fn rack(hosts: &[String], nics: u16) -> Result<Graph, TopologyError> {
        shapes::rack(hosts, nics)?.checked()
    }

    /// The same with the NICs of each host as one bond, which has one address.
    pub fn bonded_rack(hosts: &[String], nics: u16, hash: BondHash) -> Result<Graph, TopologyError> {
        if nics < 2 {
            let expected = "2 or more".to_owned();
            return Err(TopologyError::Number { what: "NICs of a bond", found: nics.into(), expected });
        }
        Graph { bond: Some(hash), ..shapes::rack(hosts, nics)? }.checked()
    }

    /// The first `left` hosts on the switch `left`, the others on `right`, one link between the two.
    pub fn dumbbell(hosts: &[String], left: usize) -> Result<Graph, TopologyError> {
        shapes::dumbbell(hosts, left)?.checked()
    }

    /// Hosts evenly on leaves, in order; each leaf joined to each spine.
    pub fn leaf_spine(hosts: &[String], leaves: usize, spines: usize) -> Result<Graph, TopologyError> {
        shapes::leaf_spine(hosts, leaves, spines)?.checked()
    }

    /// The three-level fat-tree of k-port switches (Al-Fares, Loukissas and Vahdat 2008): k³/4 hosts, 5k²/4 switches.
    pub fn fat_tree(hosts: &[String], k: usize) -> Result<Graph, TopologyError> {
        shapes::fat_tree(hosts, k)?.checked()
    }

    /// Link by link, each by the names of what it joins. A router takes packets on from one subnet to another.
    pub fn custom(
        hosts: &[String],
        routers: &[String],
        switches: &[String],
        links: &[(String, String)],
    ) -> Result<Graph, TopologyError> {
        shapes::custom(hosts, routers, switches, links)?.checked()
    }

    fn checked(self) -> Result<Graph, TopologyError> {
        self.check()?;
        let subnets = self.ends().subnets();
        if subnets > MOST_SUBNETS {
            let expected = format!("at most {MOST_SUBNETS}");
            return Err(TopologyError::Number { what: "subnets", found: subnets, expected });
        }
        Ok(self)
    }

    /// Whose its ends are, and how packets get from one to another.
    pub fn ends(&self) -> Ends {
        Ends::of(self)
    }

    /// The name of a node.
    ///
    /// # Panics
    ///
    /// If the node is not one of this graph.
    pub fn name(&self, node: NodeIndex) -> &str {
        let index = usize::from(node.0);
        match self.ends.get(index) {
            Some(end) => &end.name,
            None => &self.switches[index - self.ends.len()].name,
        }
    }

    /// Whose NIC a node is; `None` for a switch.
    pub fn owner(&self, node: NodeIndex) -> Option<Owner> {
        self.ends.get(usize::from(node.0)).map(|end| end.owner)
    }

    /// Whether a node is a host's.
    pub fn is_host(&self, node: NodeIndex) -> bool {
        matches!(self.owner(node), Some(Owner::Host(_)))
    }

    /// The fabric of this shape: `port` says what the port from one node to another is. Link i has the ports 2 i and
    /// 2 i + 1.
    pub fn fabric(
        &self,
        routing: Routing,
        nic: NicConfig,
        mut port: impl FnMut(NodeIndex, NodeIndex) -> PortConfig,
    ) -> Result<FabricConfig, TopologyError> {
        if routing.paths == Paths::EqualLength && self.switches.iter().any(|switch| switch.level == 0) {
            return Err(TopologyError::Levels { found: self.kind });
        }
        let node = |index: usize| NodeIndex(index as u16);
        let ends = self.links.iter().flat_map(|&(one, other)| [(one, other), (other, one)]);
        let ports: Vec<PortConfig> = ends.map(|(from, to)| port(node(from), node(to))).collect();
        let mut uplinks = vec![PortIndex(0); self.ends.len()];
        for (index, port) in ports.iter().enumerate() {
            if let Some(uplink) = uplinks.get_mut(usize::from(port.from.0)) {
                *uplink = PortIndex(index as u16);
            }
        }
        let config = FabricConfig {
            hosts: self.ends.iter().map(|end| HostConfig { name: end.name.clone() }).collect(),
            switches: self.switches.iter().map(|switch| switch.name.clone()).collect(),
            nic,
            routes: routes::of(self, &ports, routing),
            ports,
            uplinks,
            shared_buffer: None,
            bonds: self.bonds(routing.seed),
            background: Vec::new(),
            scripts: Vec::new(),
        };
        config.check()?;
        Ok(config)
    }

    /// The ends of a host follow each other.
    fn bonds(&self, seed: u64) -> Option<BondConfig> {
        let hash = self.bond?;
        let ends = self.ends();
        let member = |end: usize| {
            let own = ends.ends_of(ends.owner(end));
            (HostIndex(own[0] as u16), own.len() as u16)
        };
        Some(BondConfig { hash, members: (0..ends.len()).map(member).collect(), seed })
    }

    /// Every end has one link, names are different, and every host can be reached from every other.
    fn check(&self) -> Result<(), TopologyError> {
        let nodes = self.ends.len() + self.switches.len();
        let (links, most) = (self.links.len(), usize::from(u16::MAX) / 2);
        for (what, count, most) in [("nodes", nodes, usize::from(u16::MAX)), ("links", links, most)] {
            if count > most {
                return Err(TopologyError::Number {
                    what,
                    found: count,
                    expected: format!("at most {most}"),
                });
            }
        }
        let mut names = std::collections::HashSet::new();
        if let Some(twice) = (0..nodes).find(|index| !names.insert(self.name(NodeIndex(*index as u16)))) {
            return self.wrong(twice, "is the name of two nodes, expected different names");
        }
        let mut neighbours = vec![Vec::new(); nodes];
        for &(one, other) in &self.links {
            neighbours[one].push(other);
            neighbours[other].push(one);
        }
        for (end, at) in neighbours[..self.ends.len()].iter().enumerate() {
            if at.len() != 1 {
                return self.wrong(end, &format!("has {} links, expected one", at.len()));
            }
            if at[0] < self.ends.len() {
                return self.wrong(end, "has a link to a host or a router, expected one to a switch");
            }
        }
        self.check_reach()
    }

    fn wrong<T>(&self, index: usize, problem: &str) -> Result<T, TopologyError> {
        let name = self.name(NodeIndex(index as u16)).to_owned();
        Err(TopologyError::Node { name, problem: problem.to_owned() })
    }
}
