//! What a fabric is made of, and builders of topologies.

use std::collections::HashMap;

use framegauge_frames::{BitRate, Mtu, Picoseconds};
use thiserror::Error;

use crate::topology::labels;
use crate::{
    BackgroundConfig, BondConfig, Choice, Impairments, QueueConfig, RouteConfig, RouteTable, Script,
    SharedBufferConfig,
};

/// A host, by its position in [`FabricConfig::hosts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostIndex(pub u16);

/// An output port, by its position in [`FabricConfig::ports`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortIndex(pub u16);

/// A host or a switch: hosts come first, in their order, then the switches in theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub u16);

/// A host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostConfig {
    /// Its name in port names.
    pub name: String,
}

/// A link between a host and a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkConfig {
    /// Line rate from the host to the switch.
    pub uplink: BitRate,
    /// Line rate from the switch to the host.
    pub downlink: BitRate,
    /// Propagation one way.
    pub delay: Picoseconds,
}

impl LinkConfig {
    /// The same rate both ways.
    pub const fn symmetric(rate: BitRate, delay: Picoseconds) -> LinkConfig {
        LinkConfig { uplink: rate, downlink: rate, delay }
    }
}

/// A switch, the same for all of its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchConfig {
    /// Buffer of each output port, in `frame_bytes`; includes the frame being sent.
    pub buffer_bytes: u64,
    /// Largest MTU that a port lets in or out.
    pub port_mtu: Mtu,
}

/// A host's NIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NicConfig {
    /// Interrupt moderation: the least time between two interrupts; 0: one for every frame.
    pub moderation: Picoseconds,
}

/// One output port and the link behind it, in one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PortConfig {
    /// Whose port it is.
    pub from: NodeIndex,
    /// Where the link ends.
    pub to: NodeIndex,
    /// Line rate.
    pub rate: BitRate,
    /// Propagation.
    pub delay: Picoseconds,
    /// What holds frames that wait.
    pub queue: QueueConfig,
    /// Larger packets are not let out by this port.
    pub output_mtu: Option<Mtu>,
    /// Larger packets are not let in at the far end of the link.
    pub input_mtu: Option<Mtu>,
    /// What makes the link other than ideal.
    pub impairments: Impairments,
}

/// A whole fabric: nodes, ports and static routes.
#[derive(Debug, Clone, PartialEq)]
pub struct FabricConfig {
    /// The hosts: nodes 0 and up.
    pub hosts: Vec<HostConfig>,
    /// The names of the switches: the nodes after the hosts.
    pub switches: Vec<String>,
    /// The NIC of every host.
    pub nic: NicConfig,
    /// All ports.
    pub ports: Vec<PortConfig>,
    /// By host: the port that it sends by, which leads to a switch.
    pub uplinks: Vec<PortIndex>,
    /// Where switches send frames on.
    pub routes: RouteConfig,
    /// What the ports of each switch share; without it each has what its queue says.
    pub shared_buffer: Option<SharedBufferConfig>,
    /// Hosts that are members of bonds.
    pub bonds: Option<BondConfig>,
    /// Load that the fabric makes itself.
    pub background: Vec<BackgroundConfig>,
    /// What links do to single frames; at most one per port.
    pub scripts: Vec<Script>,
}

/// Why a configuration is no fabric.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// Too few or too many of something.
    #[error("a fabric has {found} {what}, expected {expected}")]
    Count {
        /// What was counted.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there may be.
        expected: &'static str,
    },
    /// A queue that cannot work.
    #[error("port {port}: {problem}")]
    Queue {
        /// The port.
        port: usize,
        /// What is wrong with its queue.
        problem: String,
    },
    /// A link that cannot be.
    #[error("port {port}: {problem}")]
    Link {
        /// The port that it is behind.
        port: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A shared buffer that cannot work.
    #[error("shared buffer: {problem}")]
    SharedBuffer {
        /// What is wrong with it.
        problem: String,
    },
    /// A bond whose members do not follow each other.
    #[error("the bond of host {host} has other members, expected hosts that follow each other, this one too")]
    Bond {
        /// The host.
        host: usize,
    },
    /// A script that cannot work.
    #[error("port {port}: script: {problem}")]
    Script {
        /// The port that it is behind.
        port: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A background that cannot work.
    #[error("background {background}: {problem}")]
    Background {
        /// Which, by its position.
        background: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A host's uplink names something that is not there or does not fit.
    #[error("the uplink of host {host} {problem}")]
    Uplink {
        /// The host.
        host: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A route names something that is not there or does not fit.
    #[error("node {node}: the route to host {destination} {problem}")]
    Route {
        /// The switch at which the route begins, counted after the hosts.
        node: usize,
        /// The destination host.
        destination: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// `hosts` hosts, each joined by one link to one switch called `switch`.
///
/// Port 2 i leads from host i to the switch, port 2 i + 1 back. The NICs queue without limit: a driver stops
/// handing over while [`crate::Fabric::uplink_backlog_bytes`] is high.
pub fn star(hosts: Vec<HostConfig>, link: LinkConfig, switch: SwitchConfig, nic: NicConfig) -> FabricConfig {
    let count = hosts.len();
    let node = |index: usize| NodeIndex(index as u16);
    let mut ports = Vec::with_capacity(2 * count);
    for host in 0..count {
        ports.push(PortConfig {
            from: node(host),
            to: node(count),
            rate: link.uplink,
            delay: link.delay,
            queue: QueueConfig::taildrop(u64::MAX),
            output_mtu: None,
            input_mtu: Some(switch.port_mtu),
            impairments: Impairments::default(),
        });
        ports.push(PortConfig {
            from: node(count),
            to: node(host),
            rate: link.downlink,
            delay: link.delay,
            queue: QueueConfig::taildrop(switch.buffer_bytes),
            output_mtu: Some(switch.port_mtu),
            input_mtu: None,
            impairments: Impairments::default(),
        });
    }
    let port = |index: usize| PortIndex(index as u16);
    FabricConfig {
        hosts,
        switches: vec!["switch".to_owned()],
        nic,
        ports,
        uplinks: (0..count).map(|host| port(2 * host)).collect(),
        routes: RouteConfig {
            tables: vec![RouteTable::new((0..count).map(|host| vec![port(2 * host + 1)]), 1)],
            asked: vec![0; 2 * count],
            choice: Choice::Flow,
            seed: 0,
        },
        shared_buffer: None,
        bonds: None,
        background: Vec::new(),
        scripts: Vec::new(),
    }
}

impl FabricConfig {
    /// For each node a number that is the same for all that switches join.
    pub fn segments(&self) -> Vec<usize> {
        let nodes = self.nodes();
        let ends = |port: &PortConfig| (usize::from(port.from.0), usize::from(port.to.0));
        // Ports that lead nowhere are found by [`FabricConfig::check`].
        labels(nodes, self.ports.iter().map(ends).filter(|(from, to)| *from < nodes && *to < nodes))
    }

    /// Hosts and switches.
    pub fn nodes(&self) -> usize {
        self.hosts.len() + self.switches.len()
    }

    /// The name of a port: `h1>switch`; of a second one between the same nodes `left>right#2`.
    pub fn port_name(&self, port: PortIndex) -> String {
        let index = usize::from(port.0);
        let PortConfig { from, to, .. } = self.ports[index];
        let alike = self.ports[..index].iter().filter(|port| (port.from, port.to) == (from, to)).count();
        let name = format!("{}>{}", self.node_name(from), self.node_name(to));
        if alike == 0 { name } else { format!("{name}#{}", alike + 1) }
    }

    /// The names of all ports, in order.
    pub fn port_names(&self) -> Vec<String> {
        let mut alike: HashMap<(NodeIndex, NodeIndex), usize> = HashMap::new();
        let name = |port: &PortConfig| {
            let count = alike.entry((port.from, port.to)).or_insert(0);
            *count += 1;
            let name = format!("{}>{}", self.node_name(port.from), self.node_name(port.to));
            if *count == 1 { name } else { format!("{name}#{count}") }
        };
        self.ports.iter().map(name).collect()
    }

    /// The name of a node.
    ///
    /// # Panics
    ///
    /// If the node is not one of this fabric.
    pub fn node_name(&self, node: NodeIndex) -> &str {
        let index = usize::from(node.0);
        match self.hosts.get(index) {
            Some(host) => &host.name,
            None => &self.switches[index - self.hosts.len()],
        }
    }
}
