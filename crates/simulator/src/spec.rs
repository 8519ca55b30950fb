//! A scenario as `framegauge-agent simulate` reads it: the network in the words of `rack.up`, the hosts' TCP, the work.

mod changes;
mod cpu;
mod tcp;
mod work;

use std::collections::BTreeMap;

use framegauge_fabric::{Ends, HostIndex, NodeIndex, Owner, PortConfig, PortIndex};
use framegauge_frames::{BitRate, Family, Fit, Mtu, Picoseconds, Stack};
use framegauge_networks::{
    BackgroundSpec, LinkOverride, Network, NetworkSpec, QueueSpec, RoutingSpec, SharedBufferSpec,
    TopologySpec,
};
use serde::Deserialize;

pub use self::changes::{ChangeSpec, SetSpec};
pub use self::cpu::{CostSpec, CpuSpec};
pub use self::tcp::{HystartSpec, TcpSpec};
pub use self::work::{FlowSpec, RepeatSpec, RequestsSpec, SideSpec, StepSpec};
use crate::{Cpu, Point, Routers, Scenario};

/// The longest time that a scenario may last, in seconds of its own: what picoseconds in 64 bits hold, and half of it.
const LONGEST_SECONDS: f64 = 9_000_000.0;
/// The least path MTU that Linux believes with IPv4 (`net.ipv4.route.min_pmtu`); of less it sends fragments.
const LEAST_PATH_MTU: u32 = 552;

/// All of it. Times are in seconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub struct ScenarioSpec {
    pub hosts: Vec<HostSpec>,
    pub overlay: Option<OverlaySpec>,
    pub link: LinkSpec,
    #[serde(default)]
    pub topology: TopologySpec,
    #[serde(default)]
    pub queue: QueueSpec,
    #[serde(default)]
    pub links: Vec<LinkOverride>,
    #[serde(default)]
    pub routing: RoutingSpec,
    pub shared_buffer: Option<SharedBufferSpec>,
    #[serde(default)]
    pub background: Vec<BackgroundSpec>,
    #[serde(default = "one")]
    pub seed: u64,
    #[serde(default)]
    pub nic: NicSpec,
    pub shaper: Option<ShaperSpec>,
    pub cpu: Option<CpuSpec>,
    #[serde(default)]
    pub tcp: TcpSpec,
    pub flows: Vec<FlowSpec>,
    #[serde(default)]
    pub requests: Vec<RequestsSpec>,
    #[serde(default)]
    pub changes: Vec<ChangeSpec>,
    pub end_seconds: f64,
    #[serde(default)]
    pub jitter_seconds: f64,
    #[serde(default)]
    pub sample_seconds: f64,
    #[serde(default)]
    pub port_sample_seconds: f64,
    #[serde(default)]
    pub capture: Vec<String>,
    #[serde(default)]
    pub log: bool,
}

/// A host.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub struct HostSpec {
    pub name: String,
    pub mtu: u32,
}

/// What hosts put their packets into; their MTUs are those of the underlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub enum OverlaySpec {
    Vxlan,
    Geneve,
}

impl OverlaySpec {
    /// Its word.
    pub const fn name(self) -> &'static str {
        match self {
            OverlaySpec::Vxlan => "vxlan",
            OverlaySpec::Geneve => "geneve",
        }
    }
}

/// What every link is unless `links` says otherwise.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub struct LinkSpec {
    pub bits_per_second: u64,
    pub rtt_seconds: f64,
    pub buffer_bytes: u64,
    pub port_mtu: u32,
}

/// Every host's NIC.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub struct NicSpec {
    pub moderation_seconds: f64,
    pub coalesces: bool,
}

/// What keeps hosts below their links' rates.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub struct ShaperSpec {
    pub factor: f64,
    #[serde(default)]
    pub burst_bytes: u32,
}

const fn one() -> u64 {
    1
}

/// A time that is not negative and not too long.
fn span(name: &str, seconds: f64) -> Result<Picoseconds, String> {
    if (0.0..=LONGEST_SECONDS).contains(&seconds) {
        return Ok(Picoseconds::from_seconds_f64(seconds));
    }
    Err(format!("{name}: found {seconds}, expected 0 to {LONGEST_SECONDS} s"))
}

impl ScenarioSpec {
    /// The scenario, and its network with names; the message says where, what was found and what was expected.
    pub fn scenario(&self) -> Result<(Scenario, Network), String> {
        let names: Vec<String> = self.hosts.iter().map(|host| host.name.clone()).collect();
        if !self.topology.routers().is_empty() && self.shared_buffer.is_some_and(|shared| shared.lossless) {
            return Err("shared_buffer.lossless: found routers, expected none: they pause nobody".into());
        }
        if !self.topology.routers().is_empty() && self.overlay.is_some() {
            return Err("overlay: found routers, expected none: it spans one segment".into());
        }
        let mut network = self.network_spec().network(&names)?;
        let changes = self.changes(&names, &network)?;
        self.shape(&mut network)?;
        let ends = &network.ends;
        let mtus: Vec<Mtu> = (0..ends.len()).map(|end| self.mtu_of(ends, end)).collect::<Result<_, _>>()?;
        let sizes: Vec<u32> = mtus.iter().map(|mtu| mtu.bytes()).collect();
        // A host is its first NIC; with several, each has a name of its own, too.
        let hosts = (0..ends.len()).rev().filter(|end| matches!(ends.owner(*end), Owner::Host(_)));
        let named = |end: usize| {
            [ends.owner_name(end), &network.config.hosts[end].name].map(|name| (name, HostIndex(end as u16)))
        };
        let mut places: BTreeMap<&str, HostIndex> = hosts.flat_map(named).collect();
        if self.topology.bond().is_some() {
            // NICs of a bond have no addresses of their own.
            places.retain(|name, _| names.iter().any(|host| host == name));
        }
        let smallest = places.values().map(|host| mtus[usize::from(host.0)]).min();
        let flow = |(number, flow): (usize, &FlowSpec)| {
            flow.flow(&places).map_err(|problem| format!("flow {}: {problem}", number + 1))
        };
        let burst_bytes = self.shaper.as_ref().map_or(0, |shaper| shaper.burst_bytes.into());
        let scenario = Scenario {
            network: network.config.clone(),
            mtus,
            tunnel_bytes: self
                .hosts
                .first()
                .map_or(Ok(0), |host| self.fit(host.mtu).map(|fit| fit.overhead_bytes()))?,
            burst_bytes,
            routers: Routers::of(ends, &sizes),
            cpus: self.cpus(ends)?,
            tcp: self.tcp.settings(self.nic.coalesces, self.seed, smallest, burst_bytes)?,
            flows: self.flows.iter().enumerate().map(flow).collect::<Result<_, _>>()?,
            changes,
            requests: self.requests.iter().map(RequestsSpec::requests).collect::<Result<_, _>>()?,
            end: span("end_seconds", self.end_seconds)?,
            jitter: span("jitter_seconds", self.jitter_seconds)?,
            sample_interval: span("sample_seconds", self.sample_seconds)?,
            port_interval: span("port_sample_seconds", self.port_sample_seconds)?,
            logs_segments: self.log,
            watch: self.watched(&network)?,
            seed: self.seed,
        };
        Ok((scenario, network))
    }

    /// By end: the model of its host's CPUs, if there is one; routers have none.
    fn cpus(&self, ends: &Ends) -> Result<Vec<Option<Cpu>>, String> {
        let Some(cpu) = &self.cpu else { return Ok(Vec::new()) };
        let of_hosts = (0..ends.len()).map(|end| match ends.owner(end) {
            Owner::Host(_) => ends.owner_name(end),
            Owner::Router(_) => "",
        });
        let names: Vec<&str> = of_hosts.collect();
        let mut models = cpu.models(&names, self.nic.coalesces)?;
        names
            .iter()
            .zip(&mut models)
            .filter(|(name, _)| name.is_empty())
            .for_each(|(_, model)| *model = None);
        Ok(models)
    }

    fn network_spec(&self) -> NetworkSpec {
        NetworkSpec {
            topology: self.topology.clone(),
            routing: self.routing,
            bits_per_second: self.link.bits_per_second,
            rtt_seconds: self.link.rtt_seconds,
            buffer_bytes: self.link.buffer_bytes,
            port_mtu: self.link.port_mtu,
            queue: self.queue.clone(),
            links: self.links.clone(),
            shared_buffer: self.shared_buffer,
            background: self.background.clone(),
            host_mtu: self.hosts.iter().map(|host| host.mtu).max().unwrap_or(1500),
            moderation_seconds: self.nic.moderation_seconds,
            seed: self.seed,
        }
    }

    /// The ports and hosts of these names.
    fn watched(&self, network: &Network) -> Result<Vec<Point>, String> {
        if self.capture.is_empty() {
            return Ok(Vec::new());
        }
        let config = &network.config;
        let names = config.port_names();
        let is_bond = self.topology.bond().is_some();
        let is_called = |node: usize, name: &str| {
            let is_own = is_bond && node < network.ends.len() && network.ends.owner_name(node) == name;
            is_own || config.node_name(NodeIndex(node as u16)) == name
        };
        let ports_of = |end: fn(&PortConfig) -> NodeIndex, name: &str| {
            let is_own = |(_, port): &(usize, &PortConfig)| is_called(usize::from(end(port).0), name);
            config.ports.iter().enumerate().filter(is_own).map(|(place, _)| PortIndex(place as u16)).collect()
        };
        let find = |name: &String| {
            if let Some(place) = names.iter().position(|known| known == name) {
                return Ok(Point::Port(PortIndex(place as u16)));
            }
            if (0..config.hosts.len()).any(|host| is_called(host, name)) {
                let (sends, receives) = (ports_of(|port| port.from, name), ports_of(|port| port.to, name));
                return Ok(Point::Host { name: name.clone(), sends, receives });
            }
            let examples = names.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
            Err(format!("capture: found {name:?}, expected a host, or a port such as {examples}"))
        };
        self.capture.iter().map(find).collect()
    }

    fn shaper_factor(&self) -> Result<Option<f64>, String> {
        match self.shaper {
            Some(ShaperSpec { factor, .. }) if !(0.01..=1.0).contains(&factor) => {
                Err(format!("shaper.factor: found {factor}, expected 0.01 to 1"))
            }
            _ => Ok(self.shaper.as_ref().map(|shaper| shaper.factor)),
        }
    }

    /// Hosts send a little slower than their links, as those of the rack do behind their shapers.
    fn shape(&self, network: &mut Network) -> Result<(), String> {
        let Some(factor) = self.shaper_factor()? else { return Ok(()) };
        let hosts = (0..network.ends.len()).filter(|end| matches!(network.ends.owner(*end), Owner::Host(_)));
        for end in hosts.collect::<Vec<_>>() {
            let rate = network.shaped_bits_per_second(end, factor);
            let port = usize::from(network.config.uplinks[end].0);
            network.config.ports[port].rate = BitRate::new(rate).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// The MTU of an end: of its host, or of its router.
    fn mtu_of(&self, ends: &Ends, end: usize) -> Result<Mtu, String> {
        let name = ends.owner_name(end);
        let mtu = match ends.owner(end) {
            Owner::Host(_) => self.hosts.iter().find(|host| host.name == name).map_or(0, |host| host.mtu),
            Owner::Router(router) => {
                let mtu = self.topology.routers().get(router).and_then(|router| router.mtu);
                mtu.unwrap_or(self.link.port_mtu)
            }
        };
        self.inner_mtu(ends.owner(end), name, mtu)
    }

    /// The largest packet of somebody with an MTU: inside of the overlay, if there is one.
    fn inner_mtu(&self, owner: Owner, name: &str, mtu: u32) -> Result<Mtu, String> {
        let family = self.tcp.family()?;
        let role = if matches!(owner, Owner::Host(_)) { "host" } else { "router" };
        if role == "router" && family == Family::V4 && mtu < LEAST_PATH_MTU {
            return Err(format!(
                "router {name}: found MTU {mtu}, expected {LEAST_PATH_MTU} or more: below it hosts send fragments"
            ));
        }
        let mtu = self.fit(mtu).map_err(|problem| format!("{role} {name}: {problem}"))?.inner_mtu;
        mtu.check(family).map_err(|error| format!("{role} {name}: {error}"))
    }

    /// How large packets are that fit into an MTU, in the overlay if there is one.
    pub fn fit(&self, mtu: u32) -> Result<Fit, String> {
        let underlay = if self.tcp.family()? == Family::V6 { "ipv6" } else { "ipv4" };
        let words = self.overlay.map(|overlay| [overlay.name(), underlay]);
        let stack = Stack::parse(words.into_iter().flatten()).map_err(|error| error.to_string())?;
        let mtu = Mtu::new(mtu).map_err(|error| error.to_string())?;
        stack.fit(mtu).map_err(|error| error.to_string())
    }
}
