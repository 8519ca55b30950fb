//! `rack.up` and `rack.down`.

use super::rack_network;
use super::rack_params::{Host, OverlayKind, Shaper, Up};
use super::rack_speed;
use super::requirements::Testbed;
use crate::child::ChildAgent;
use crate::message::{Answer, Failure, Nothing, params};
use crate::rack_state::Rack;
use crate::session::Call;
use framegauge_drivers::frames::{BitRate, Family};
use framegauge_drivers::host::{SHAPER_LIMIT_BYTES, Shaping};
use framegauge_drivers::kernel_switch::{KernelSwitch, KernelSwitchSpec, Member};
use framegauge_drivers::process;
use framegauge_drivers::rack::{self, NicSpec};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Builds a rack.
pub fn up(call: &Call) -> Answer {
    let asked: Up = params(&call.request)?;
    asked.check()?;
    let state = &call.session.rack;
    let fabric = asked.testbed == Testbed::Fabric;
    let network = fabric.then(|| asked.network()).transpose()?;
    let mut current = state.vacant(fabric, asked.link.bits_per_second.is_some())?;
    let mut rack = Rack::empty(rack::plan_cpus(fabric));
    if let Some((_, network)) = &network {
        rack_speed::check(network, asked.shaped().map(|(rate, _)| rate), state.most_bits_per_second())?;
    }
    rack.network = network;
    match asked.build(call, &mut rack) {
        Ok(answer) => {
            *current = Some(rack);
            Ok(answer)
        }
        Err(failure) => {
            let _ = state.take_down(rack);
            Err(failure)
        }
    }
}

/// Takes the rack down.
pub fn down(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let rack = call.session.rack.current().take().ok_or_else(|| Failure::state("no rack is up"))?;
    call.session.rack.take_down(rack)?;
    Ok(json!({}))
}

/// Names become cgroups, and words on command lines.
pub fn check_names(method: &str, hosts: &[String]) -> Result<(), Failure> {
    let different: BTreeSet<&String> = hosts.iter().collect();
    let plain =
        |name: &String| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if different.len() != hosts.len() || !hosts.iter().all(plain) {
        let message = "hosts need different names of letters, digits and hyphens";
        return Err(Failure::invalid_params(method, message));
    }
    Ok(())
}

/// Starts an agent a host, in fresh namespaces and a cgroup of its own; for each of `hosts` a thread that works in it.
pub fn start_hosts(call: &Call, hosts: &[String], rack: &mut Rack) -> Result<Vec<(String, u32)>, Failure> {
    let group = call.session.rack.group()?;
    let cpus = rack.cpus.hosts.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let started: Vec<Result<_, Failure>> = std::thread::scope(|scope| {
        let start = |host: &String| {
            let group = group.join(host).display().to_string();
            ChildAgent::start(host, &["host", "--fresh", "--group", &group, "--cpus", &cpus])
        };
        let threads: Vec<_> = hosts.iter().map(|host| scope.spawn(move || start(host))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(Failure::lost("a host"))))
            .collect()
    });
    // All that did start are the rack's before one that did not is told: they must go with it.
    let mut failed = None;
    for (host, agent) in hosts.iter().zip(started) {
        match agent {
            Ok(agent) => drop(rack.hosts.insert(host.clone(), agent)),
            Err(failure) => failed = Some(failure),
        }
    }
    match failed {
        Some(failure) => Err(failure),
        None => hosts
            .iter()
            .map(|host| Ok((host.clone(), process::second_thread(rack.hosts[host].pid())?)))
            .collect(),
    }
}

impl Up {
    fn build(&self, call: &Call, rack: &mut Rack) -> Answer {
        let threads = start_hosts(call, &self.names(), rack)?;
        match (&rack.network, threads.as_slice()) {
            (Some((_, network)), _) => {
                let ids: Vec<u32> = threads.iter().map(|(_, thread)| *thread).collect();
                rack.fabric = Some(rack::join_by_fabric(network, self.nics(), &ids, rack.cpus.fabric)?);
            }
            (None, [first, second]) => rack::join_by_veth(first.1, second.1)?,
            (None, _) => rack.switch = Some(self.switch(&threads, &rack.cpus.hosts)?),
        }
        self.apply(rack)?;
        if let Some(switch) = &rack.switch {
            switch.await_forwarding()?;
        }
        self.describe(rack, &threads)
    }

    fn nics(&self) -> NicSpec {
        NicSpec { tso: self.nic.tso, lro: self.nic.lro, checksum: self.nic.checksum }
    }

    fn switch(&self, threads: &[(String, u32)], cpus: &[usize]) -> Result<KernelSwitch, Failure> {
        let spec = KernelSwitchSpec {
            shaping: self.shaped().map(|(bits_per_second, shaper)| Shaping {
                bits_per_second,
                burst_bytes: shaper.burst_bytes,
                limit_bytes: u32::try_from(self.link.buffer_bytes).unwrap_or(u32::MAX),
                aggregate_bytes: self.nic.aggregate_bytes,
            }),
            port_mtu: self.link.port_mtu,
            tso: self.nic.tso,
            family: self.family(),
            cpus: cpus.to_vec(),
        };
        let member = |((name, thread), host): (&(String, u32), &Host)| Member {
            name: name.clone(),
            thread: *thread,
            mtu: host.mtu,
        };
        let members: Vec<Member> = threads.iter().zip(&self.hosts).map(member).collect();
        Ok(KernelSwitch::build(&spec, &members)?)
    }

    /// The rate of the links and what bounds the hosts' queues, where both are given.
    fn shaped(&self) -> Option<(u64, &Shaper)> {
        self.link.bits_per_second.zip(self.shaper.as_ref())
    }

    fn family(&self) -> Family {
        if self.family == 6 { Family::V6 } else { Family::V4 }
    }

    fn apply(&self, rack: &Rack) -> Result<(), Failure> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.hosts.len())
                .map(|index| {
                    let agent = &rack.hosts[&self.hosts[index].name];
                    let settings = self.settings(index, &rack.cpus.hosts);
                    scope.spawn(move || agent.call("host.apply", settings))
                })
                .collect();
            threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| Err(Failure::lost("a host"))).map(drop)
            })
        })
    }

    /// What `host.apply` is told for one host.
    fn settings(&self, index: usize, cpus: &[usize]) -> Value {
        let kernel = self.testbed == Testbed::Kernel;
        let neighbours: Vec<Value> = (0..self.hosts.len())
            .filter(|other| *other != index)
            .map(|other| json!({"address": rack::address(other, self.family), "hardware": rack::hardware(other)}))
            .collect();
        let shaping = self.shaped().map(|(rate, shaper)| {
            let rate = if kernel { rate } else { (rate as f64 * shaper.factor) as u64 };
            // Between two hosts the bucket is the link and its buffer; a switch has buffers of its own.
            let limit = if kernel && self.hosts.len() == 2 {
                self.link.buffer_bytes
            } else {
                u64::from(SHAPER_LIMIT_BYTES)
            };
            json!({"bits_per_second": rate, "burst_bytes": shaper.burst_bytes, "limit_bytes": limit,
                   "aggregate_bytes": self.nic.aggregate_bytes})
        });
        // Behind a kernel switch packets can overtake each other unless the host polls, or one CPU takes them in.
        let polls = self.nic.gro && !self.nic.tso;
        let unordered = kernel && self.hosts.len() > 2 && !polls;
        json!({
            "host": self.hosts[index].name,
            "interface": rack::interface(index),
            "mtu": self.hosts[index].mtu,
            "hardware": rack::hardware(index),
            "address": rack::address(index, self.family),
            "neighbours": neighbours,
            "tso": self.nic.tso,
            "gro": self.nic.gro,
            "checksum": self.nic.checksum,
            "congestion_control": self.congestion_control,
            "shaping": shaping,
            "sysctls": self.sysctls,
            "cpus": cpus,
            // Only with GRO a veth has a receive path of its own, which can be a thread.
            "threaded": !kernel || self.nic.gro,
            "receive_cpu": unordered.then(|| cpus[index % cpus.len()]),
            "moderation_seconds": kernel.then_some(self.nic.moderation_seconds),
            "overlay": self.overlay.map(|_| self.inside(index)),
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
    fn address(&self, index: usize) -> IpAddr {
        match self.overlay {
            Some(OverlayKind::Vxlan) => rack::overlay_address(index, self.family),
            None => rack::address(index, self.family),
        }
    }

    fn describe(&self, rack: &Rack, threads: &[(String, u32)]) -> Answer {
        let family = self.family();
        let rate = self.link.bits_per_second.and_then(|rate| BitRate::new(rate).ok());
        let mut hosts = Vec::new();
        let mut ceilings = BTreeMap::new();
        for (index, (name, thread)) in threads.iter().enumerate() {
            let mac = rack::hardware(index).map(|byte| format!("{byte:02x}")).join(":");
            hosts.push(json!({"name": name, "pid": rack.hosts[name].pid(), "thread": thread, "mac": mac,
                              "interface": rack::interface(index), "address": self.address(index)}));
            let fit = self.fit(self.hosts[index].mtu)?;
            let inside = fit.ceilings(rate).into_iter().find(|ceiling| ceiling.family == family);
            ceilings.insert(
                name.clone(),
                json!({"mtu": fit.mtu.bytes(), "inner_mtu": fit.inner_mtu.bytes(), "frame_bytes": fit.frame_bytes,
                       "wire_bytes": fit.wire_bytes, "mss_bytes": fit.inner_mtu.mss(family),
                       "segment_payload_bytes": fit.inner_mtu.segment_payload(family, true),
                       "goodput_bits_per_second": inside.and_then(|ceiling| ceiling.goodput_bits_per_second)}),
            );
        }
        let network = rack.network.as_ref().map(|(_, network)| rack_network::describe(network));
        Ok(json!({"hosts": hosts, "ceilings": ceilings, "network": network}))
    }
}
