//! What is simulated.

use std::collections::BTreeSet;

use framegauge_fabric::{FabricConfig, HostIndex};
use framegauge_frames::{Mtu, Picoseconds, TIMESTAMPS_OPTION_BYTES};

use crate::{Change, Cpu, Flow, Point, Repeat, Requests, Routers, SimulationError, TcpSettings};

/// What is simulated.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The network.
    pub network: FabricConfig,
    /// By host of the network; of an end of a router, what it sends on at most.
    pub mtus: Vec<Mtu>,
    /// What an overlay puts before every packet, in bytes; MTUs are those inside.
    pub tunnel_bytes: u32,
    /// What the shapers of hosts let through at once, in bytes on the wire (`burst` of `tc-tbf`); 0 without shapers.
    pub burst_bytes: u64,
    /// The ways through routers, if there are any.
    pub routers: Option<Routers>,
    /// What every endpoint is set to.
    pub tcp: TcpSettings,
    /// By host: what its CPUs take for packets, if that is modelled; or nothing at all.
    pub cpus: Vec<Option<Cpu>>,
    /// The work.
    pub flows: Vec<Flow>,
    /// What is requested at a rate, by client ([`crate::Repeat::Requests`]).
    pub requests: Vec<Requests>,
    /// What becomes different meanwhile, in the order of time.
    pub changes: Vec<Change>,
    /// When it ends, whatever is under way.
    pub end: Picoseconds,
    /// A host takes up to so long to handle what its NIC hands over: an even draw for each, in order.
    pub jitter: Picoseconds,
    /// How often samples are taken; zero: never.
    pub sample_interval: Picoseconds,
    /// How often samples of ports are taken at first, which becomes less often if there are too many; zero: as of flows.
    pub port_interval: Picoseconds,
    /// Every segment is written down ([`crate::Outcome::log`]).
    pub logs_segments: bool,
    /// Ports and hosts of which all that passes is kept.
    pub watch: Vec<Point>,
    /// Of all draws.
    pub seed: u64,
}

impl Scenario {
    /// Payload of a full segment between two hosts, in bytes: by the smaller of their MTUs.
    pub(crate) fn segment_payload(&self, one: HostIndex, other: HostIndex) -> u32 {
        let mtu = self.mtus[usize::from(one.0)].min(self.mtus[usize::from(other.0)]);
        let options = if self.tcp.timestamps { TIMESTAMPS_OPTION_BYTES } else { 0 };
        mtu.mss(self.tcp.family) - options
    }

    /// By which end one host sends to an end of another, and to which next one.
    pub(crate) fn first_leg(&self, from: HostIndex, to: HostIndex) -> Option<(HostIndex, HostIndex)> {
        match &self.routers {
            None => Some((from, to)),
            Some(routers) => routers.first_leg(from, to),
        }
    }

    fn has_ways(&self, one: HostIndex, other: HostIndex) -> bool {
        self.first_leg(one, other).is_some() && self.first_leg(other, one).is_some()
    }

    pub(crate) fn check(&self) -> Result<(), SimulationError> {
        let hosts = self.network.hosts.len();
        if self.mtus.len() != hosts {
            return Err(SimulationError::Mtus { found: self.mtus.len(), expected: hosts });
        }
        for (number, requests) in self.requests.iter().enumerate() {
            requests.check(number)?;
        }
        let mut predecessors = BTreeSet::new();
        for (number, flow) in self.flows.iter().enumerate() {
            let wrong = |problem: &'static str| Err(SimulationError::Flow { number, problem });
            if usize::from(flow.client.0) >= hosts || usize::from(flow.server.0) >= hosts {
                return wrong("has an end that is no host");
            }
            if flow.client == flow.server {
                return wrong("goes from a host to itself");
            }
            if !self.has_ways(flow.client, flow.server) {
                return wrong("has no way from one end to the other");
            }
            if flow.steps.is_empty() || flow.steps.iter().any(|step| step.bytes == Some(0)) {
                return wrong("has no message, or one of no bytes");
            }
            if matches!(flow.repeat, Repeat::Requests(client) if client as usize >= self.requests.len()) {
                return wrong("is for requests that are not there");
            }
            if flow.after.iter().any(|before| *before as usize >= number) {
                return wrong("waits for one that does not come before it");
            }
            if let Some(before) = flow.over {
                let known = self.flows[..number].get(before as usize);
                if !known.is_some_and(|known| flow.can_follow(known)) || !predecessors.insert(before) {
                    return wrong("cannot go on over the connection of the flow that it names");
                }
            }
        }
        Ok(())
    }
}
