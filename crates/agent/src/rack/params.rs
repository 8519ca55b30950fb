//! The parameters of `rack.up`, and the checks that refuse what cannot be built.

use crate::pipe::message::Failure;
use crate::rack::names::check_names;
use crate::rack::requirements::Testbed;
use framegauge_drivers::host::allowed;
use framegauge_fabric::{Ends, Owner};
use framegauge_frames::{Fit, Mtu, Stack};
use framegauge_networks::{
    BackgroundSpec, LinkOverride, Network, NetworkSpec, QueueSpec, RoutingSpec, SharedBufferSpec,
    TopologySpec,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// What has room in a subnet.
const MOST_MEMBERS: usize = 254;

/// Bytes of an aggregate, up to what the kernel's largest holds.
const AGGREGATES: RangeInclusive<u32> = 10_000..=524_280;
/// Segments of an initial window.
const WINDOWS: RangeInclusive<u32> = 1..=1000;

/// All of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct Up {
    pub testbed: Testbed,
    pub hosts: Vec<Host>,
    pub link: Link,
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
    pub nic: Nic,
    pub shaper: Option<Shaper>,
    pub overlay: Option<OverlayKind>,
    pub congestion_control: String,
    pub family: u8,
    pub sysctls: BTreeMap<String, String>,
    pub initial_window_segments: Option<u32>,
    pub initial_receive_window_segments: Option<u32>,
}

/// What hosts' packets travel in.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum OverlayKind {
    /// The kernel's own, one segment, peers known beforehand.
    Vxlan,
}

/// A host.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct Host {
    pub name: String,
    pub mtu: u32,
    pub second_mtu: Option<u32>,
}

/// What every link is unless `links` says otherwise.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct Link {
    pub bits_per_second: Option<u64>,
    pub rtt_seconds: f64,
    pub buffer_bytes: u64,
    pub port_mtu: u32,
}

/// Every host's NIC.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct Nic {
    pub tso: bool,
    pub lro: bool,
    pub gro: bool,
    pub checksum: bool,
    pub moderation_seconds: f64,
    pub aggregate_bytes: u32,
    pub gso_bytes: Option<u32>,
    pub gro_bytes: Option<u32>,
}

const fn one() -> u64 {
    1
}

/// What bounds the queue of a sending host.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct Shaper {
    pub factor: f64,
    pub burst_bytes: u32,
}

impl Up {
    /// The names of its hosts, in order.
    pub fn names(&self) -> Vec<String> {
        self.hosts.iter().map(|host| host.name.clone()).collect()
    }

    /// What cannot be is refused before anything is built.
    pub fn check(&self) -> Result<(), Failure> {
        let refusal = |message: &str| Err(Failure::invalid_params("rack.up", message));
        let kernel = self.testbed == Testbed::Kernel;
        let routers = self.topology.routers().iter().map(|router| router.name.clone());
        check_names("rack.up", &self.names().into_iter().chain(routers).collect::<Vec<_>>())?;
        if !matches!(self.family, 4 | 6) {
            return refusal("family is 4 or 6");
        }
        if (self.nic.tso || self.nic.lro) && !self.nic.checksum {
            return refusal(
                "nic.tso and nic.lro need nic.checksum: a NIC that cuts or merges writes checksums",
            );
        }
        if !(0.0..=10.0).contains(&self.link.rtt_seconds)
            || !(0.0..=0.1).contains(&self.nic.moderation_seconds)
        {
            return refusal("rtt_seconds is 0 to 10, moderation_seconds 0 to 0.1");
        }
        if !(10_000..=65_536).contains(&self.nic.aggregate_bytes) {
            return refusal("nic.aggregate_bytes is 10000 to 65536");
        }
        let sizes = [self.nic.gso_bytes, self.nic.gro_bytes];
        if let Some(bytes) = sizes.into_iter().flatten().find(|bytes| !AGGREGATES.contains(bytes)) {
            let limit = format!("{} to {}", AGGREGATES.start(), AGGREGATES.end());
            return Err(Failure::refused("nic.gso_bytes and nic.gro_bytes", bytes, limit));
        }
        self.check_windows()?;
        if let Some(shaper) = &self.shaper
            && (!(0.01..=1.0).contains(&shaper.factor) || shaper.burst_bytes < 2000)
        {
            return refusal("shaper.factor is 0.01 to 1, shaper.burst_bytes at least 2000");
        }
        if self.overlay.is_some() && (self.nic.tso || self.nic.lro) {
            return refusal(
                "overlay needs nic.tso and nic.lro off: these NICs know no packets inside others",
            );
        }
        if self.topology.bond().is_some() {
            return refusal("found topology.bond, expected none: the NICs of the rack are no bonds");
        }
        let ends = self.ends()?;
        if self.overlay.is_some() && ends.len() > self.hosts.len() {
            return refusal("overlay needs hosts with one NIC each, and no router between them");
        }
        self.check_mtus(&ends)?;
        for (name, value) in &self.sysctls {
            allowed::sysctl_value(name, value)
                .map_err(|problem| Failure::invalid_params("rack.up", format!("sysctls: {problem}")))?;
        }
        if kernel { self.check_kernel() } else { self.check_fabric() }
    }

    fn check_mtus(&self, ends: &Ends) -> Result<(), Failure> {
        let smallest = if self.family == 6 { 1280 } else { 68 };
        let routers = self.topology.routers().iter().filter_map(|router| Some((&router.name, router.mtu?)));
        let second = self.hosts.iter().filter_map(|host| Some((&host.name, host.second_mtu?)));
        let hosts = self.hosts.iter().map(|host| (&host.name, host.mtu)).chain(second);
        for (name, mtu) in hosts.chain(routers) {
            if !(smallest..=65_535).contains(&mtu) {
                let limit = format!("{smallest} to 65535");
                return Err(Failure::refused(&format!("the MTU of {name}"), mtu, limit));
            }
        }
        for host in &self.hosts {
            let inner = self.fit(host.mtu)?.inner_mtu.bytes();
            if inner < smallest {
                let subject = format!("the MTU of {} inside the overlay", host.name);
                return Err(Failure::refused(&subject, inner, format!("at least {smallest}")));
            }
        }
        let alone = |host: &usize| {
            self.hosts[*host].second_mtu.is_some() && ends.ends_of(Owner::Host(*host)).len() < 2
        };
        if let Some(host) = (0..self.hosts.len()).find(alone) {
            let message =
                format!("found second_mtu of {}, expected none: it has one NIC", self.hosts[host].name);
            return Err(Failure::invalid_params("rack.up", message));
        }
        Ok(())
    }

    fn check_windows(&self) -> Result<(), Failure> {
        let windows = [self.initial_window_segments, self.initial_receive_window_segments];
        if windows.into_iter().flatten().all(|segments| WINDOWS.contains(&segments)) {
            return Ok(());
        }
        let message = "initial_window_segments and initial_receive_window_segments are 1 to 1000";
        Err(Failure::invalid_params("rack.up", message))
    }

    fn check_fabric(&self) -> Result<(), Failure> {
        if !(2..=250).contains(&self.hosts.len()) {
            return Err(Failure::refused("hosts in a rack", self.hosts.len(), "2 to 250"));
        }
        let members = self.hosts.len() + self.topology.routers().len();
        if members > MOST_MEMBERS {
            return Err(Failure::refused("hosts and routers", members, format!("at most {MOST_MEMBERS}")));
        }
        if self.link.bits_per_second.is_none() {
            return Err(Failure::refused("bits_per_second on the fabric", "unshaped", "a rate"));
        }
        if self.shared_buffer.is_some_and(|shared| shared.lossless) {
            let limit = "a lossy one: hosts' kernels cannot be paused";
            return Err(Failure::refused("shared_buffer of the rack", "a lossless one", limit));
        }
        Ok(())
    }

    /// What of the network is said that only the fabric has.
    fn beyond_kernel(&self) -> Option<&'static str> {
        let in_use = [
            ("topology", !matches!(self.topology, TopologySpec::Rack { nics: 1, bond: None })),
            ("queue", !matches!(self.queue, QueueSpec::Taildrop { limit_frames: None })),
            ("links", !self.links.is_empty()),
            ("routing", !self.routing.is_usual()),
            ("shared_buffer", self.shared_buffer.is_some()),
            ("background", !self.background.is_empty()),
            ("shaper", self.shaper.is_none()),
        ];
        in_use.into_iter().find_map(|(feature, in_use)| in_use.then_some(feature))
    }

    /// What only the fabric can do is refused on the kernel testbed.
    fn check_kernel(&self) -> Result<(), Failure> {
        let (nic, link) = (&self.nic, &self.link);
        if let Some(subject) = self.beyond_kernel() {
            return Err(Failure::refused(
                &format!("{subject} on the kernel testbed"),
                "its own",
                "the kernel's",
            ));
        }
        if !(2..=64).contains(&self.hosts.len()) {
            return Err(Failure::refused("hosts on the kernel testbed", self.hosts.len(), "2 to 64"));
        }
        if link.rtt_seconds != 0.0 {
            let subject = "rtt_seconds on the kernel testbed, which has no delay";
            return Err(Failure::refused(subject, link.rtt_seconds, 0));
        }
        if nic.lro != nic.tso {
            let subject = "nic.lro on the kernel testbed, where the aggregates of nic.tso arrive whole";
            return Err(Failure::refused(subject, nic.lro, nic.tso));
        }
        if nic.moderation_seconds > 0.0 && (!nic.gro || nic.tso) {
            let subject =
                "nic.moderation_seconds on the kernel testbed, where only nic.gro without nic.tso polls";
            return Err(Failure::refused(subject, nic.moderation_seconds, 0));
        }
        // The bridge lets aggregates pass whatever the frames in them measure.
        let too_large = self.hosts.iter().find(|host| nic.tso && host.mtu > link.port_mtu);
        if let Some(host) = too_large.filter(|_| self.hosts.len() > 2) {
            let subject = format!("the MTU of {} with nic.tso on the kernel testbed", host.name);
            return Err(Failure::refused(&subject, host.mtu, link.port_mtu));
        }
        Ok(())
    }

    /// The MTU that programs of a host find: inside the overlay, if there is one.
    pub fn fit(&self, mtu: u32) -> Result<Fit, Failure> {
        let failure = |error: &dyn std::fmt::Display| Failure::invalid_params("rack.up", error);
        let underlay = if self.family == 6 { "ipv6" } else { "ipv4" };
        let words: &[&str] = if self.overlay.is_some() { &["vxlan", underlay] } else { &[] };
        let stack = Stack::parse(words.iter().copied()).map_err(|error| failure(&error))?;
        stack.fit(Mtu::new(mtu).map_err(|error| failure(&error))?).map_err(|error| failure(&error))
    }

    /// The fabric that is asked for, as it is said and in numbers.
    pub fn network(&self) -> Result<(NetworkSpec, Network), Failure> {
        let (link, nic) = (&self.link, &self.nic);
        let spec = NetworkSpec {
            topology: self.topology.clone(),
            routing: self.routing,
            bits_per_second: link.bits_per_second.unwrap_or(0),
            rtt_seconds: link.rtt_seconds,
            buffer_bytes: link.buffer_bytes,
            port_mtu: link.port_mtu,
            queue: self.queue.clone(),
            links: self.links.clone(),
            shared_buffer: self.shared_buffer,
            background: self.background.clone(),
            host_mtu: self
                .hosts
                .iter()
                .flat_map(|host| host.second_mtu.max(Some(host.mtu)))
                .max()
                .unwrap_or(0),
            moderation_seconds: nic.moderation_seconds,
            seed: self.seed,
        };
        let network =
            spec.network(&self.names()).map_err(|problem| Failure::invalid_params("rack.up", problem))?;
        Ok((spec, network))
    }

    /// The ends of the network: their owners, and the way from one to another.
    pub fn ends(&self) -> Result<Ends, Failure> {
        self.topology.ends(&self.names()).map_err(|problem| Failure::invalid_params("rack.up", problem))
    }

    /// The MTU of an end: of a host's second NIC it may be another than of the first.
    pub fn mtu_of_end(&self, ends: &Ends, end: usize) -> u32 {
        let owner = ends.owner(end);
        let second = match owner {
            Owner::Host(host) if ends.ends_of(owner)[0] != end => self.hosts[host].second_mtu,
            _ => None,
        };
        second.unwrap_or_else(|| self.mtu(owner))
    }

    /// A host's MTU, or a router's.
    pub fn mtu(&self, owner: Owner) -> u32 {
        match owner {
            Owner::Host(host) => self.hosts[host].mtu,
            Owner::Router(router) => self.topology.routers()[router].mtu.unwrap_or(self.link.port_mtu),
        }
    }
}
