//! A network as the pipe describes it, made into what the fabric is made of.

mod background;
mod changes;
mod links;
mod queues;

use framegauge_fabric::{
    Choice, FabricConfig, Graph, Impairments, NicConfig, NodeIndex, Paths, PortConfig, PortIndex,
    QueueConfig, Routing, SharedBufferConfig, Topology,
};
use framegauge_frames::{BitRate, Mtu, Picoseconds, mixed};
use serde::Deserialize;

pub use background::BackgroundSpec;
pub use changes::NetworkChange;
pub use links::LinkOverride;
pub use queues::{QueueNumbers, QueueSpec};

/// The shape.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub enum TopologySpec {
    Rack {},
    Dumbbell { left: usize },
    LeafSpine { leaves: usize, spines: usize },
    FatTree { k: usize },
    Custom { switches: Vec<String>, links: Vec<(String, String)> },
}

impl Default for TopologySpec {
    fn default() -> Self {
        TopologySpec::Rack {}
    }
}

impl TopologySpec {
    fn topology(&self) -> Topology {
        match self.clone() {
            TopologySpec::Rack {} => Topology::Rack { nics: 1 },
            TopologySpec::Dumbbell { left } => Topology::Dumbbell { left },
            TopologySpec::LeafSpine { leaves, spines } => Topology::LeafSpine { leaves, spines },
            TopologySpec::FatTree { k } => Topology::FatTree { k },
            TopologySpec::Custom { switches, links } => Topology::Custom { switches, links },
        }
    }
}

/// Which ways frames may take, and which of several one takes.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct RoutingSpec {
    #[serde(default)]
    pub paths: PathsSpec,
    #[serde(default)]
    pub choice: ChoiceSpec,
}

/// Which ways frames may take.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub enum PathsSpec {
    #[default]
    Shortest,
    EqualLength,
}

/// Which of several ways a frame takes.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub enum ChoiceSpec {
    #[default]
    Flow,
    Packet,
    Destination,
}

impl RoutingSpec {
    /// Whether it is what nobody has to ask for.
    pub fn is_usual(self) -> bool {
        matches!(self, RoutingSpec { paths: PathsSpec::Shortest, choice: ChoiceSpec::Flow })
    }

    fn routing(self, seed: u64) -> Routing {
        let paths = match self.paths {
            PathsSpec::Shortest => Paths::Shortest,
            PathsSpec::EqualLength => Paths::EqualLength,
        };
        let choice = match self.choice {
            ChoiceSpec::Flow => Choice::Flow,
            ChoiceSpec::Packet => Choice::Packet,
            ChoiceSpec::Destination => Choice::Destination,
        };
        Routing { paths, choice, seed }
    }
}

/// A whole network.
#[derive(Debug, Clone)]
pub struct NetworkSpec {
    /// Its shape.
    pub topology: TopologySpec,
    /// How frames find their way.
    pub routing: RoutingSpec,
    /// Line rate of every link, in bits a second.
    pub bits_per_second: u64,
    /// Propagation there and back between the hosts that are furthest apart, in seconds.
    pub rtt_seconds: f64,
    /// Buffer of each port of a switch, in bytes.
    pub buffer_bytes: u64,
    /// MTU of the switches' ports.
    pub port_mtu: u32,
    /// The discipline of the switches' ports.
    pub queue: QueueSpec,
    /// What is different from all that, by direction of a link; the last that fits goes before the others.
    pub links: Vec<LinkOverride>,
    /// What the ports of each switch share, if anything.
    pub shared_buffer: Option<SharedBufferSpec>,
    /// Load that the fabric makes itself.
    pub background: Vec<BackgroundSpec>,
    /// The largest MTU of a host.
    pub host_mtu: u32,
    /// Interrupt moderation of the hosts' NICs, in seconds.
    pub moderation_seconds: f64,
    /// Of everything that is drawn.
    pub seed: u64,
}

/// A buffer that the ports of a switch share, with a dynamic threshold.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct SharedBufferSpec {
    pub bytes: u64,
    pub alpha: f64,
}

/// A port before its numbers are known.
struct Direction {
    from: NodeIndex,
    to: NodeIndex,
    /// It is a host's.
    of_host: bool,
    /// It leads to a host.
    to_host: bool,
}

impl NetworkSpec {
    /// The fabric that joins these hosts; the message says where, what was found and what was expected.
    pub fn fabric(&self, hosts: &[String]) -> Result<FabricConfig, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let graph = Graph::new(&self.topology.topology(), hosts).map_err(|error| text(&error))?;
        let rate = BitRate::new(self.bits_per_second).map_err(|error| text(&error))?;
        let plain = |from, to| PortConfig {
            from,
            to,
            rate,
            delay: Picoseconds::ZERO,
            queue: QueueConfig::taildrop(u64::MAX),
            output_mtu: None,
            input_mtu: None,
            impairments: Impairments::default(),
        };
        let nic = NicConfig { moderation: Picoseconds::from_seconds_f64(self.moderation_seconds) };
        let mut config =
            graph.fabric(self.routing.routing(self.seed), nic, plain).map_err(|error| text(&error))?;
        let links = config.spans().map_or(2, |spans| spans.links.most);
        let delay = Picoseconds::from_seconds_f64(self.rtt_seconds / (2.0 * f64::from(links)));
        for (port, special) in self.matched(&graph, &config)?.iter().enumerate() {
            let PortConfig { from, to, .. } = config.ports[port];
            let direction = Direction { from, to, of_host: graph.is_host(from), to_host: graph.is_host(to) };
            config.ports[port] = self
                .port(&direction, delay, rate, special, &config, port)
                .map_err(|problem| format!("port {}: {problem}", config.port_name(PortIndex(port as u16))))?;
        }
        config.shared_buffer =
            self.shared_buffer.map(|shared| SharedBufferConfig { bytes: shared.bytes, alpha: shared.alpha });
        for (number, background) in self.background.iter().enumerate() {
            let made = background.config(&config, mixed(!self.seed ^ (number as u64) << 32));
            config.background.push(made.map_err(|problem| format!("background {}: {problem}", number + 1))?);
        }
        config.check().map_err(|error| text(&error))?;
        Ok(config)
    }

    /// By port: what is said of it in particular. Whatever is said of nothing is a mistake.
    fn matched(&self, graph: &Graph, config: &FabricConfig) -> Result<Vec<LinkOverride>, String> {
        let mut found = vec![LinkOverride::default(); config.ports.len()];
        for each in &self.links {
            let mut used = false;
            for (port, found) in config.ports.iter().zip(&mut found) {
                if each.fits(graph.name(port.from), graph.name(port.to)) {
                    found.overlay(each);
                    used = true;
                }
            }
            if !used {
                return Err(format!(
                    "links: found none from {:?} to {:?}, expected names such as {:?} and {:?}",
                    each.from,
                    each.to,
                    graph.name(config.ports[0].from),
                    graph.name(config.ports[0].to)
                ));
            }
        }
        Ok(found)
    }

    fn port(
        &self,
        direction: &Direction,
        delay: Picoseconds,
        rate: BitRate,
        special: &LinkOverride,
        config: &FabricConfig,
        index: usize,
    ) -> Result<PortConfig, String> {
        let mtu = Mtu::new(special.mtu.unwrap_or(self.port_mtu)).map_err(|error| error.to_string())?;
        let host_mtu = Mtu::new(self.host_mtu).map_err(|error| error.to_string())?;
        let rate = special.rate(rate)?;
        // Ports with the same draws would drop in step.
        let seed = mixed(self.seed ^ (index as u64) << 32);
        let queue = if direction.of_host {
            if special.queue.is_some() || special.buffer_bytes.is_some() {
                return Err("found a queue or a buffer for a host's NIC, expected them at a switch".into());
            }
            QueueConfig::taildrop(u64::MAX)
        } else {
            let numbers = QueueNumbers {
                buffer_bytes: special.buffer_bytes.unwrap_or(self.buffer_bytes),
                frame_bytes: mtu.frame_bytes().min(host_mtu.frame_bytes()),
                rate,
                seed,
            };
            special.queue.as_ref().unwrap_or(&self.queue).config(&numbers, config)?
        };
        Ok(PortConfig {
            from: direction.from,
            to: direction.to,
            rate,
            delay: special.delay(delay)?,
            queue,
            output_mtu: (!direction.of_host).then_some(mtu),
            input_mtu: (!direction.to_host).then_some(mtu),
            impairments: special.impairments(seed)?,
        })
    }
}
