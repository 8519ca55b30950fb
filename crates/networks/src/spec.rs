//! A network as the pipe describes it, made into what the fabric is made of.

use crate::network::names_of;
use crate::queues::QueueNumbers;
use crate::{BackgroundSpec, IcmpSpec, LinkOverride, Network, QueueSpec, RoutingSpec, TopologySpec};
use framegauge_fabric::{
    FabricConfig, Graph, Impairments, LosslessConfig, NicConfig, NodeIndex, Owner, PortConfig, PortIndex,
    QueueConfig, SharedBufferConfig,
};
use framegauge_frames::{BitRate, Mtu, Picoseconds, mixed};
use serde::Deserialize;

/// A whole network.
#[derive(Debug, Clone)]
pub struct NetworkSpec {
    /// Its shape.
    pub topology: TopologySpec,
    /// How frames find their way.
    pub routing: RoutingSpec,
    /// Line rate of every link, in bits per second.
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
    /// The seed of everything that is drawn.
    pub seed: u64,
}

/// A buffer that the ports of a switch share, with a dynamic threshold; lossless: switches pause who sends too much.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct SharedBufferSpec {
    pub bytes: u64,
    pub alpha: f64,
    #[serde(default)]
    pub lossless: bool,
}

/// A port before its numbers are known.
struct Direction {
    from: NodeIndex,
    to: NodeIndex,
    /// The owner of the NIC; none for a port of a switch.
    of: Option<Owner>,
    /// It leads to a NIC.
    to_end: bool,
}

impl NetworkSpec {
    /// The network of these hosts; the message says where, what was found and what was expected.
    pub fn network(&self, hosts: &[String]) -> Result<Network, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let graph = self.topology.graph(hosts).map_err(|error| text(&error))?;
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
        let ends = graph.ends();
        let links = ends.spans(&config).map_or(2, |spans| spans.links.most);
        let delay = Picoseconds::from_seconds_f64(self.rtt_seconds / (2.0 * f64::from(links)));
        for (port, special) in self.matched(&graph, &config)?.iter().enumerate() {
            let PortConfig { from, to, .. } = config.ports[port];
            let direction = Direction { from, to, of: graph.owner(from), to_end: graph.owner(to).is_some() };
            let index = PortIndex(port as u16);
            let wrong = |problem| format!("port {}: {problem}", config.port_name(index));
            let made = self.port(&direction, delay, rate, special, &config, port).map_err(wrong)?;
            let script = special.script(index).map_err(wrong)?;
            config.ports[port] = made;
            config.scripts.extend(script);
        }
        config.shared_buffer = self.shared_buffer.map(|shared| SharedBufferConfig {
            bytes: shared.bytes,
            alpha: shared.alpha,
            lossless: shared
                .lossless
                .then(|| LosslessConfig { frame_bytes: self.largest_frame_bytes(), headroom_bytes: None }),
        });
        for (number, background) in self.background.iter().enumerate() {
            let made = background.config(&config, mixed(!self.seed ^ (number as u64) << 32));
            config.background.push(made.map_err(|problem| format!("background {}: {problem}", number + 1))?);
        }
        config.check().map_err(|error| text(&error))?;
        Ok(Network { config, ends })
    }

    /// Of all that hosts and backgrounds send.
    fn largest_frame_bytes(&self) -> u32 {
        let own = Mtu::new(self.host_mtu).map_or(0, Mtu::frame_bytes);
        self.background.iter().map(|background| background.frame_bytes).fold(own, u32::max)
    }

    /// The buffer that a port of a switch has for itself.
    fn own_buffer(&self, special: &LinkOverride) -> Result<u64, String> {
        match (self.shared_buffer.filter(|shared| shared.lossless), special.buffer_bytes) {
            (None, own) => Ok(own.unwrap_or(self.buffer_bytes)),
            (Some(shared), None) => Ok(shared.bytes),
            (Some(_), Some(own)) => {
                Err(format!("found a buffer of {own} bytes, expected none beside a lossless shared buffer"))
            }
        }
    }

    /// What is said about each port in particular. An entry that fits no port is a mistake.
    fn matched(&self, graph: &Graph, config: &FabricConfig) -> Result<Vec<LinkOverride>, String> {
        let (ends, mut settings) = (graph.ends(), vec![LinkOverride::default(); config.ports.len()]);
        let names = |node| names_of(&ends, config, node);
        for link in &self.links {
            let mut used = false;
            for (port, settings) in config.ports.iter().zip(&mut settings) {
                if link.fits(&names(port.from), &names(port.to)) {
                    settings.overlay(link);
                    used = true;
                }
            }
            if !used {
                return Err(format!(
                    "links: found none from {:?} to {:?}, expected names such as {:?} and {:?}",
                    link.from,
                    link.to,
                    graph.name(config.ports[0].from),
                    graph.name(config.ports[0].to)
                ));
            }
        }
        Ok(settings)
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
        let router = match direction.of {
            Some(Owner::Router(router)) => self.topology.routers().get(router),
            _ => None,
        };
        let port_mtu = special.mtu.unwrap_or(self.port_mtu);
        // A router keeps to its own, as every host does; its link's is that of the switch at the other end.
        let own_mtu = router.map_or(port_mtu, |router| router.mtu.unwrap_or(self.port_mtu));
        let valid = |mtu| Mtu::new(mtu).map_err(|error| error.to_string());
        let (mtu, far_mtu) = (valid(own_mtu)?, valid(port_mtu)?);
        let of_host = matches!(direction.of, Some(Owner::Host(_)));
        let host_mtu = Mtu::new(self.host_mtu).map_err(|error| error.to_string())?;
        let rate = special.rate(rate)?;
        // Ports with the same draws would drop in step.
        let seed = mixed(self.seed ^ (index as u64) << 32);
        let queue = if of_host {
            if special.queue.is_some() || special.buffer_bytes.is_some() {
                return Err("found a queue or a buffer for a host's NIC, expected them at a switch".into());
            }
            QueueConfig::taildrop(u64::MAX)
        } else {
            let numbers = QueueNumbers {
                buffer_bytes: self.own_buffer(special)?,
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
            output_mtu: (!of_host).then_some(mtu),
            input_mtu: (!direction.to_end).then_some(far_mtu),
            impairments: Impairments {
                filters_icmp_errors: router.is_some_and(|router| router.icmp == IcmpSpec::Filtered),
                ..special.impairments(seed)?
            },
        })
    }
}
