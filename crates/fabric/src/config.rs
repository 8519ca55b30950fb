//! What a fabric is made of, and builders of topologies.

use framegauge_frames::{BitRate, Mtu, Picoseconds};
use thiserror::Error;

use crate::{BackgroundConfig, Impairments, QueueConfig, SharedBufferConfig};

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
    /// By switch, then by destination host: the port to take.
    pub routes: Vec<Vec<PortIndex>>,
    /// What the ports of each switch share; without it each has what its queue says.
    pub shared_buffer: Option<SharedBufferConfig>,
    /// Load that the fabric makes itself.
    pub background: Vec<BackgroundConfig>,
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
        routes: vec![(0..count).map(|host| port(2 * host + 1)).collect()],
        shared_buffer: None,
        background: Vec::new(),
    }
}

impl FabricConfig {
    /// Hosts and switches.
    pub fn nodes(&self) -> usize {
        self.hosts.len() + self.switches.len()
    }

    /// The name of a port: `h1>switch`.
    pub fn port_name(&self, port: PortIndex) -> String {
        let port = &self.ports[usize::from(port.0)];
        format!("{}>{}", self.node_name(port.from), self.node_name(port.to))
    }

    fn node_name(&self, node: NodeIndex) -> &str {
        let index = usize::from(node.0);
        match self.hosts.get(index) {
            Some(host) => &host.name,
            None => &self.switches[index - self.hosts.len()],
        }
    }

    /// Whether every frame finds its way, in a fabric that the indices can number.
    pub fn check(&self) -> Result<(), ConfigError> {
        const SIXTEEN_BITS: usize = 1 << 16;
        // The last port number means "from no port", the last host number is left over.
        let within = |what, found, low: usize, expected| match (low..SIXTEEN_BITS).contains(&found) {
            true => Ok(()),
            false => Err(ConfigError::Count { what, found, expected }),
        };
        within("hosts", self.hosts.len(), 1, "1 to 65535")?;
        within("nodes", self.nodes(), 1, "1 to 65535")?;
        within("ports", self.ports.len(), 1, "1 to 65535")?;
        let exactly = |what, found, required, expected| match found == required {
            true => Ok(()),
            false => Err(ConfigError::Count { what, found, expected }),
        };
        exactly("uplinks", self.uplinks.len(), self.hosts.len(), "one a host")?;
        exactly("route tables", self.routes.len(), self.switches.len(), "one a switch")?;
        for routes in &self.routes {
            exactly("routes at a switch", routes.len(), self.hosts.len(), "one a host")?;
        }
        for (port, config) in self.ports.iter().enumerate() {
            config.check(port)?;
        }
        self.shared_buffer.map_or(Ok(()), |shared| shared.check())?;
        for (host, uplink) in self.uplinks.iter().enumerate() {
            let next = self.follow(host, *uplink);
            next.and_then(|next| if next < self.hosts.len() { Err("leads to a host") } else { Ok(()) })
                .map_err(|problem| ConfigError::Uplink { host, problem })?;
        }
        for (number, background) in self.background.iter().enumerate() {
            let said = background.check(self);
            said.map_err(|problem| ConfigError::Background { background: number, problem })?;
        }
        let switches = self.hosts.len()..self.nodes();
        for (node, destination) in
            switches.flat_map(|node| (0..self.hosts.len()).map(move |host| (node, host)))
        {
            self.check_path(node, destination).map_err(|problem| ConfigError::Route {
                node,
                destination,
                problem,
            })?;
        }
        Ok(())
    }

    /// Where a port of this node leads.
    fn follow(&self, node: usize, port: PortIndex) -> Result<usize, &'static str> {
        let port = self.ports.get(usize::from(port.0)).ok_or("names a port that does not exist")?;
        let next = usize::from(port.to.0);
        match (usize::from(port.from.0) == node, next < self.nodes()) {
            (false, _) => Err("names a port of another node"),
            (true, false) => Err("names a port that leads nowhere"),
            (true, true) => Ok(next),
        }
    }

    /// From this switch the routes to a host end there.
    fn check_path(&self, start: usize, destination: usize) -> Result<(), &'static str> {
        let mut node = start;
        for _ in 0..=self.switches.len() {
            if node == destination {
                return Ok(());
            }
            let Some(switch) = node.checked_sub(self.hosts.len()) else {
                return Err("ends at another host");
            };
            node = self.follow(node, self.routes[switch][destination])?;
        }
        Err("runs in a circle")
    }
}
