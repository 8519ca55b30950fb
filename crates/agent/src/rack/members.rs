//! The hosts and routers of a rack: starting them, their settings, their description.

use crate::pipe::call::Call;
use crate::pipe::message::Failure;
use crate::rack::child::ChildAgent;
use crate::rack::params::{Host, OverlayKind, Shaper, Up};
use crate::rack::requirements::Testbed;
use crate::rack::state::Rack;
use framegauge_drivers::host::SHAPER_LIMIT_BYTES;
use framegauge_drivers::host::nics::Nic;
use framegauge_drivers::own;
use framegauge_drivers::rack::addresses as rack;
use framegauge_drivers::rack::cpus::KernelReceivers;
use framegauge_drivers::rack::nics;
use framegauge_fabric::{Ends, Owner};
use framegauge_networks::Network;
use serde_json::{Value, json};
use std::net::IpAddr;

/// Starts an agent each, in fresh namespaces and a cgroup of its own; for each of `names` a thread that works in it.
/// They give way to other programs where the CPU is the limit on purpose: in real time they would take all of it.
pub fn start(
    call: &Call,
    names: &[String],
    rack: &mut Rack,
    gives_way: bool,
) -> Result<Vec<(String, u32)>, Failure> {
    let group = call.session.rack.group()?;
    let cpus = rack.cpus.hosts.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let started: Vec<Result<_, Failure>> = std::thread::scope(|scope| {
        let start = |host: &String| {
            let group = group.join(host).display().to_string();
            let mut words = vec!["host", "--fresh", "--group", &group, "--name", host, "--cpus", &cpus];
            words.extend(gives_way.then_some("--gives-way"));
            ChildAgent::start(host, &words)
        };
        let threads: Vec<_> = names.iter().map(|host| scope.spawn(move || start(host))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(Failure::lost("a host"))))
            .collect()
    });
    // All that did start are the rack's before one that did not is told: they must go with it.
    let mut failed = None;
    for (host, agent) in names.iter().zip(started) {
        match agent {
            Ok(agent) => drop(rack.hosts.insert(host.clone(), agent)),
            Err(failure) => failed = Some(failure),
        }
    }
    match failed {
        Some(failure) => Err(failure),
        None => {
            names.iter().map(|host| Ok((host.clone(), own::second_thread(rack.hosts[host].pid())?))).collect()
        }
    }
}

/// A host or a router of a rack that is being built.
pub struct Member {
    /// The host or router that owns its NICs.
    pub owner: Owner,
    /// Its name.
    pub name: String,
    /// Its NICs.
    pub nics: Vec<Nic>,
}

impl Member {
    /// The name of one of its NICs, from 0.
    fn end(&self, place: usize) -> String {
        if self.nics.len() > 1 { format!("{}.{}", self.name, place + 1) } else { self.name.clone() }
    }
}

impl Up {
    /// Hosts, then routers.
    pub fn members(&self, ends: &Ends, network: Option<&Network>) -> Vec<Member> {
        let hosts = self.hosts.iter().enumerate().map(|(host, Host { name, .. })| (Owner::Host(host), name));
        let routers = self.topology.routers().iter().enumerate();
        let routers = routers.map(|(router, spec)| (Owner::Router(router), &spec.name));
        let member = |(owner, name): (Owner, &String)| Member {
            owner,
            name: name.clone(),
            nics: self.nics_of(owner, ends, network),
        };
        hosts.chain(routers).map(member).collect()
    }

    /// The NICs of a host or router, shaped to the rates of their own links where there is a fabric.
    fn nics_of(&self, owner: Owner, ends: &Ends, network: Option<&Network>) -> Vec<Nic> {
        let mut own_nics =
            nics::of(ends, owner, self.hosts.len(), self.family, |end| self.mtu_of_end(ends, end));
        if let (Some(network), Some(shaper)) = (network, &self.shaper) {
            for (nic, end) in own_nics.iter_mut().zip(ends.ends_of(owner).iter().copied()) {
                nic.bits_per_second = Some(network.shaped_bits_per_second(end, shaper.factor));
            }
        }
        own_nics
    }

    /// The rate of the links and what bounds the hosts' queues, where both are given.
    pub fn shaped(&self) -> Option<(u64, &Shaper)> {
        self.link.bits_per_second.zip(self.shaper.as_ref())
    }

    fn shaping(&self) -> Option<Value> {
        let kernel = self.testbed == Testbed::Kernel;
        self.shaped().map(|(rate, shaper)| {
            // Between two hosts the bucket is the link and its buffer; a switch has buffers of its own.
            let limit = if kernel && self.hosts.len() == 2 {
                self.link.buffer_bytes
            } else {
                u64::from(SHAPER_LIMIT_BYTES)
            };
            json!({"bits_per_second": rate, "burst_bytes": shaper.burst_bytes, "limit_bytes": limit,
                   "aggregate_bytes": self.nic.aggregate_bytes})
        })
    }

    /// What `host.apply` is told for one of them. A router hands on what it gets: it merges nothing and is not shaped, its
    /// ports' queues are the fabric's.
    pub fn settings(&self, member: &Member, cpus: &[usize]) -> Value {
        let kernel = self.testbed == Testbed::Kernel;
        let host = match member.owner {
            Owner::Host(host) => Some(host),
            Owner::Router(_) => None,
        };
        let receivers = KernelReceivers { hosts: self.hosts.len(), gro: self.nic.gro, tso: self.nic.tso };
        let receive_cpu = host.filter(|_| kernel).and_then(|host| receivers.receive_cpu(host, cpus));
        json!({
            "host": member.name,
            "nics": member.nics.iter().map(nic_value).collect::<Vec<_>>(),
            "forwards": host.is_none(),
            "tso": self.nic.tso && host.is_some(),
            "gro": self.nic.gro && host.is_some(),
            "checksum": self.nic.checksum,
            "gso_bytes": self.nic.gso_bytes.filter(|_| host.is_some()),
            "gro_bytes": self.nic.gro_bytes.filter(|_| host.is_some()),
            "congestion_control": self.congestion_control,
            "initial_window_segments": self.initial_window_segments.filter(|_| host.is_some()),
            "initial_receive_window_segments": self.initial_receive_window_segments.filter(|_| host.is_some()),
            "shaping": host.and_then(|_| self.shaping()),
            "sysctls": self.sysctls,
            "cpus": cpus,
            "threaded": !kernel || receivers.can_be_threaded(),
            "receive_cpu": receive_cpu,
            "moderation_seconds": kernel.then_some(self.nic.moderation_seconds),
            "overlay": host.filter(|_| self.overlay.is_some()).map(|host| self.inside(host)),
        })
    }

    /// One host's place in the overlay.
    fn inside(&self, index: usize) -> Value {
        let peers: Vec<Value> = (0..self.hosts.len())
            .filter(|other| *other != index)
            .map(|other| {
                json!({"address": rack::overlay_address(other, self.family), "hardware": rack::overlay_hardware(other),
                       "outside": rack::address(other, self.family)})
            })
            .collect();
        let inner_mtu = self.fit(self.hosts[index].mtu).map(|fit| fit.inner_mtu.bytes()).unwrap_or_default();
        json!({"interface": rack::overlay_interface(index), "mtu": inner_mtu,
               "hardware": rack::overlay_hardware(index), "address": rack::overlay_address(index, self.family),
               "peers": peers})
    }

    /// The address that programs use.
    fn used_address(&self, member: &Member) -> IpAddr {
        match (self.overlay, member.owner) {
            (Some(OverlayKind::Vxlan), Owner::Host(index)) => rack::overlay_address(index, self.family),
            _ => member.nics[0].address,
        }
    }

    /// What `host.names` is told: all of them by name, those with several NICs by each NIC's name too.
    pub fn names_entries(&self, members: &[Member]) -> Value {
        let of = |member: &Member| {
            let own = json!({"name": member.name, "addresses": [self.used_address(member)]});
            let nics = member.nics.iter().filter(|_| member.nics.len() > 1).enumerate();
            let ends =
                nics.map(|(place, nic)| json!({"name": member.end(place), "addresses": [nic.address]}));
            std::iter::once(own).chain(ends).collect::<Vec<_>>()
        };
        members.iter().flat_map(of).collect()
    }

    /// What is said of one of them.
    pub fn describe_member(&self, member: &Member, thread: u32, rack: &Rack) -> Value {
        let Member { owner, name, nics, .. } = member;
        let pid = rack.hosts[name].pid();
        let described = nics.iter().enumerate().map(|(place, nic)| {
            let address = if nics.len() > 1 { nic.address } else { self.used_address(member) };
            json!({"interface": nic.interface, "address": address, "mac": text(nic.hardware), "end": member.end(place)})
        });
        let described: Vec<Value> = described.collect();
        match owner {
            Owner::Host(_) => {
                json!({"name": name, "pid": pid, "thread": thread, "mac": text(nics[0].hardware),
                   "interface": nics[0].interface, "address": self.used_address(member), "nics": described})
            }
            Owner::Router(router) => {
                json!({"name": name, "pid": pid, "thread": thread, "mtu": self.mtu(*owner),
                   "icmp": self.topology.routers()[*router].icmp.name(), "nics": described})
            }
        }
    }
}

fn nic_value(nic: &Nic) -> Value {
    let neighbours = nic.neighbours.iter();
    let routes = nic.routes.iter();
    json!({
        "interface": nic.interface, "hardware": nic.hardware, "mtu": nic.mtu, "address": nic.address,
        "bits_per_second": nic.bits_per_second, "packet_bytes": nic.packet_bytes,
        "neighbours": neighbours
            .map(|(address, hardware)| json!({"address": address, "hardware": hardware}))
            .collect::<Vec<_>>(),
        "routes": routes
            .map(|(subnet, gateway)| json!({"subnet": subnet, "gateway": gateway}))
            .collect::<Vec<_>>(),
    })
}

fn text(hardware: [u8; 6]) -> String {
    hardware.map(|byte| format!("{byte:02x}")).join(":")
}
