//! A scenario as `framegauge-agent simulate` reads it: the network in the words of `rack.up`, the hosts' TCP, the work.

mod tcp;

use std::collections::BTreeMap;

use framegauge_fabric::{Ends, HostIndex, NodeIndex, Owner, PortConfig, PortIndex};
use framegauge_frames::{BitRate, Family, Fit, Mtu, Picoseconds, Stack};
use framegauge_networks::{
    BackgroundSpec, LinkOverride, Network, NetworkSpec, QueueSpec, RoutingSpec, SharedBufferSpec,
    TopologySpec,
};
use framegauge_traffic::Arrivals;
use serde::Deserialize;

pub use self::tcp::{HystartSpec, TcpSpec};
use crate::{Flow, Point, Repeat, Requests, Routers, Scenario, Step};

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
    #[serde(default)]
    pub tcp: TcpSpec,
    pub flows: Vec<FlowSpec>,
    #[serde(default)]
    pub requests: Vec<RequestsSpec>,
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
}

/// The work of a connection.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub struct FlowSpec {
    pub client: String,
    pub server: String,
    #[serde(default)]
    pub begin_seconds: f64,
    #[serde(default)]
    pub after: Vec<u32>,
    pub over: Option<u32>,
    pub steps: Vec<StepSpec>,
    pub repeat: Option<RepeatSpec>,
    pub barrier: Option<u32>,
    pub pacing_bits_per_second: Option<u64>,
}

/// A message.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub struct StepSpec {
    pub from: SideSpec,
    pub bytes: Option<u64>,
    #[serde(default)]
    pub first_write_bytes: u64,
    #[serde(default)]
    pub write_bytes: u64,
    #[serde(default)]
    pub write_gap_seconds: f64,
    #[serde(default)]
    pub think_seconds: f64,
    #[serde(default)]
    pub reader_waits_seconds: f64,
    #[serde(default)]
    pub closes: bool,
}

/// An end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub enum SideSpec {
    Client,
    Server,
}

/// How often messages are repeated.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub enum RepeatSpec {
    Rounds(u64),
    UntilSeconds(f64),
    NewUntilSeconds(f64),
    Requests(u32),
}

/// Requests at a rate; arrivals are `uniform` or `poisson`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub struct RequestsSpec {
    pub rate_per_second: f64,
    pub arrivals: String,
    #[serde(default)]
    pub seed: u64,
    pub duration_seconds: f64,
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
        let mut network = self.network(&names)?;
        self.shape(&mut network)?;
        let ends = &network.ends;
        let mtus: Vec<Mtu> = (0..ends.len()).map(|end| self.mtu_of(ends, end)).collect::<Result<_, _>>()?;
        let sizes: Vec<u32> = mtus.iter().map(|mtu| mtu.bytes()).collect();
        let hosts = (0..ends.len()).rev().filter(|end| matches!(ends.owner(*end), Owner::Host(_)));
        let places: BTreeMap<&str, HostIndex> =
            hosts.map(|end| (ends.owner_name(end), HostIndex(end as u16))).collect();
        let smallest = places.values().map(|host| mtus[usize::from(host.0)]).min();
        let flow = |(number, flow): (usize, &FlowSpec)| {
            flow.flow(&places).map_err(|problem| format!("flow {}: {problem}", number + 1))
        };
        let scenario = Scenario {
            network: network.config.clone(),
            mtus,
            tunnel_bytes: self
                .hosts
                .first()
                .map_or(Ok(0), |host| self.fit(host.mtu).map(|fit| fit.overhead_bytes()))?,
            routers: Routers::of(ends, &sizes),
            tcp: self.tcp.settings(self.nic.coalesces, self.seed, smallest)?,
            flows: self.flows.iter().enumerate().map(flow).collect::<Result<_, _>>()?,
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

    fn network(&self, names: &[String]) -> Result<Network, String> {
        let spec = NetworkSpec {
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
        };
        spec.network(names)
    }

    /// The ports and hosts of these names.
    fn watched(&self, network: &Network) -> Result<Vec<Point>, String> {
        if self.capture.is_empty() {
            return Ok(Vec::new());
        }
        let config = &network.config;
        let names = config.port_names();
        let ports_of = |end: fn(&PortConfig) -> NodeIndex, name: &str| {
            let mine = |(_, port): &(usize, &PortConfig)| config.node_name(end(port)) == name;
            config.ports.iter().enumerate().filter(mine).map(|(place, _)| PortIndex(place as u16)).collect()
        };
        let find = |name: &String| {
            if let Some(place) = names.iter().position(|known| known == name) {
                return Ok(Point::Port(PortIndex(place as u16)));
            }
            if config.hosts.iter().any(|host| host.name == *name) {
                let (sends, receives) = (ports_of(|port| port.from, name), ports_of(|port| port.to, name));
                return Ok(Point::Host { name: name.clone(), sends, receives });
            }
            let some = names.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
            Err(format!("capture: found {name:?}, expected a host, or a port such as {some}"))
        };
        self.capture.iter().map(find).collect()
    }

    /// Hosts send a little slower than their links, as those of the rack do behind their shapers.
    fn shape(&self, network: &mut Network) -> Result<(), String> {
        let Some(ShaperSpec { factor }) = self.shaper else { return Ok(()) };
        if !(0.01..=1.0).contains(&factor) {
            return Err(format!("shaper.factor: found {factor}, expected 0.01 to 1"));
        }
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
        let (family, name) = (self.tcp.family()?, ends.owner_name(end));
        let (what, mtu) = match ends.owner(end) {
            Owner::Host(_) => {
                ("host", self.hosts.iter().find(|host| host.name == name).map_or(0, |host| host.mtu))
            }
            Owner::Router(router) => {
                let mtu = self.topology.routers().get(router).and_then(|router| router.mtu);
                ("router", mtu.unwrap_or(self.link.port_mtu))
            }
        };
        if what == "router" && family == Family::V4 && mtu < LEAST_PATH_MTU {
            return Err(format!(
                "router {name}: found MTU {mtu}, expected {LEAST_PATH_MTU} or more: below it hosts send fragments"
            ));
        }
        let mtu = self.fit(mtu).map_err(|problem| format!("{what} {name}: {problem}"))?.inner_mtu;
        mtu.check(family).map_err(|error| format!("{what} {name}: {error}"))
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

impl FlowSpec {
    fn flow(&self, places: &BTreeMap<&str, HostIndex>) -> Result<Flow, String> {
        let place = |role: &str, name: &String| {
            let found = places.get(name.as_str()).copied();
            found.ok_or_else(|| format!("{role}: found {name:?}, which is no host"))
        };
        Ok(Flow {
            client: place("client", &self.client)?,
            server: place("server", &self.server)?,
            begin: span("begin_seconds", self.begin_seconds)?,
            after: self.after.clone(),
            over: self.over,
            steps: self.steps.iter().map(StepSpec::step).collect::<Result<_, _>>()?,
            repeat: match self.repeat {
                None => Repeat::Never,
                Some(RepeatSpec::Rounds(rounds)) => Repeat::Rounds(rounds),
                Some(RepeatSpec::UntilSeconds(time)) => Repeat::Until(span("until_seconds", time)?),
                Some(RepeatSpec::Requests(client)) => Repeat::Requests(client),
                Some(RepeatSpec::NewUntilSeconds(time)) => Repeat::NewUntil(span("new_until_seconds", time)?),
            },
            barrier: self.barrier,
            pacing_bits_per_second: self.pacing_bits_per_second,
        })
    }
}

impl RequestsSpec {
    fn requests(&self) -> Result<Requests, String> {
        let arrivals = match self.arrivals.as_str() {
            "uniform" => Arrivals::Uniform,
            "poisson" => Arrivals::Poisson { seed: self.seed },
            found => return Err(format!("requests.arrivals: found {found:?}, expected uniform or poisson")),
        };
        let duration = span("requests.duration_seconds", self.duration_seconds)?;
        Ok(Requests { rate_per_second: self.rate_per_second, arrivals, duration })
    }
}

impl StepSpec {
    fn step(&self) -> Result<Step, String> {
        Ok(Step {
            from_client: self.from == SideSpec::Client,
            bytes: self.bytes,
            first_write_bytes: self.first_write_bytes,
            write_bytes: self.write_bytes,
            write_gap: span("write_gap_seconds", self.write_gap_seconds)?,
            think: span("think_seconds", self.think_seconds)?,
            reader_waits: span("reader_waits_seconds", self.reader_waits_seconds)?,
            closes: self.closes,
        })
    }
}
