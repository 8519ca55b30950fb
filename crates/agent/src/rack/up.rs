//! `rack.up` and `rack.down`: builds a rack and takes it down.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Failure, Nothing, params};
use crate::rack::members::{self, Member};
use crate::rack::outside::Outside;
use crate::rack::params::{Host, Up};
use crate::rack::requirements::Testbed;
use crate::rack::speed;
use crate::rack::state::Rack;
use framegauge_drivers::host::aggregates::Asked as Aggregates;
use framegauge_drivers::host::{Shaping, names};
use framegauge_drivers::rack::cpus::plan_cpus;
use framegauge_drivers::rack::join::{self, NicSpec};
use framegauge_drivers::rack::kernel_switch::{self, KernelSwitch, KernelSwitchSpec};
use framegauge_frames::{BitRate, Family};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Builds a rack.
pub fn up(call: &Call) -> Answer {
    let spec: Up = params(&call.request)?;
    spec.check()?;
    let state = &call.session.rack;
    let fabric = spec.testbed == Testbed::Fabric;
    let network = fabric.then(|| spec.network()).transpose()?;
    let mut current = state.vacant(fabric, spec.link.bits_per_second.is_some())?;
    let mut rack = Rack::empty(plan_cpus(fabric));
    if let Some((_, network)) = &network {
        speed::check(network, state.most_bits_per_second())?;
    }
    rack.network = network;
    rack.shaper_factor = spec.shaper.as_ref().map(|shaper| shaper.factor);
    match spec.build(call, &mut rack) {
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

impl Up {
    fn build(&self, call: &Call, rack: &mut Rack) -> Answer {
        let ends = self.ends()?;
        let members = self.members(&ends, rack.network.as_ref().map(|(_, network)| network));
        let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
        rack.mtus = (0..ends.len()).map(|end| self.mtu_of_end(&ends, end)).collect();
        let is_limited = self.testbed == Testbed::Fabric || self.link.bits_per_second.is_some();
        let threads = members::start(call, &names, rack, !is_limited)?;
        match (&rack.network, threads.as_slice()) {
            (Some((_, network)), _) => {
                let thread = |owner| {
                    let place = members.iter().position(|member| member.owner == owner);
                    place.map_or(0, |place| threads[place].1)
                };
                rack.fabric = Some(join::join_by_fabric(network, self.nics(), thread, rack.cpus.fabric)?);
            }
            (None, [first, second]) => join::join_by_veth(first.1, second.1)?,
            (None, _) => rack.switch = Some(self.switch(&threads, &rack.cpus.hosts)?),
        }
        let names = names::can_be_shown().then(|| self.names_entries(&members));
        let outside = Outside::read(self.sysctls.keys());
        let applied = self.apply(rack, &members, names.as_ref());
        outside.put_back()?;
        applied?;
        if let Some(switch) = &rack.switch {
            switch.await_forwarding()?;
        }
        let mut answer = self.describe(rack, &members, &threads)?;
        answer["names"] = names.is_some().into();
        Ok(answer)
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
            aggregates: self.aggregates(),
            family: self.family(),
            cpus: cpus.to_vec(),
        };
        let member = |((name, thread), host): (&(String, u32), &Host)| kernel_switch::Member {
            name: name.clone(),
            thread: *thread,
            mtu: host.mtu,
        };
        let members: Vec<_> = threads.iter().zip(&self.hosts).map(member).collect();
        Ok(KernelSwitch::build(&spec, &members)?)
    }

    fn aggregates(&self) -> Aggregates {
        Aggregates { gso_bytes: self.nic.gso_bytes, gro_bytes: self.nic.gro_bytes }
    }

    fn family(&self) -> Family {
        if self.family == 6 { Family::V6 } else { Family::V4 }
    }

    /// Sets all of them up, and tells them the names of all if there are any to tell.
    fn apply(&self, rack: &Rack, members: &[Member], names: Option<&Value>) -> Result<(), Failure> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = members
                .iter()
                .map(|member| {
                    let agent = &rack.hosts[&member.name];
                    let settings = self.settings(member, &rack.cpus.hosts);
                    scope.spawn(move || {
                        agent.call("host.apply", settings)?;
                        names.map_or(Ok(json!({})), |entries| {
                            agent.call("host.names", json!({"entries": entries}))
                        })
                    })
                })
                .collect();
            threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| Err(Failure::lost("a host"))).map(drop)
            })
        })
    }

    fn describe(&self, rack: &Rack, members: &[Member], threads: &[(String, u32)]) -> Answer {
        let family = self.family();
        let rate = self.link.bits_per_second.and_then(|rate| BitRate::new(rate).ok());
        let description = |member: &Member, thread| self.describe_member(member, thread, rack);
        let mut description =
            members.iter().zip(threads).map(|(member, (_, thread))| description(member, *thread));
        let hosts: Vec<Value> = description.by_ref().take(self.hosts.len()).collect();
        let routers: Vec<Value> = description.collect();
        let mut ceilings = BTreeMap::new();
        for Host { name, mtu, .. } in &self.hosts {
            let fit = self.fit(*mtu)?;
            let inside = fit.ceilings(rate).into_iter().find(|ceiling| ceiling.family == family);
            ceilings.insert(
                name.clone(),
                json!({"mtu": fit.mtu.bytes(), "inner_mtu": fit.inner_mtu.bytes(), "frame_bytes": fit.frame_bytes,
                       "wire_bytes": fit.wire_bytes, "mss_bytes": fit.inner_mtu.mss(family),
                       "segment_payload_bytes": fit.inner_mtu.segment_payload(family, true),
                       "goodput_bits_per_second": inside.and_then(|ceiling| ceiling.goodput_bits_per_second)}),
            );
        }
        let network = rack.network.as_ref().map(|(_, network)| network.describe());
        Ok(json!({"hosts": hosts, "routers": routers, "ceilings": ceilings, "network": network}))
    }
}
