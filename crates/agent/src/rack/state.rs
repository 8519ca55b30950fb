//! The state of a rack agent: at most one rack, its cgroup, the agents of its hosts.

use crate::arguments::Role;
use crate::pipe::lock::lock;
use crate::pipe::message::Failure;
use crate::rack::child::ChildAgent;
use framegauge_drivers::fabric::RunningFabric;
use framegauge_drivers::host::aggregates::Asked;
use framegauge_drivers::host::groups;
use framegauge_drivers::meters::held::HeldMeter;
use framegauge_drivers::meters::{CpuSnapshot, rivals};
use framegauge_drivers::rack::cpus::CpuPlan;
use framegauge_drivers::rack::kernel_switch::KernelSwitch;
use framegauge_drivers::rack::requirements::{Requirements, probe};
use framegauge_drivers::rack::speed::most_bits_per_second;
use framegauge_networks::{Network, NetworkSpec};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// A rack that is up.
pub struct Rack {
    /// The agents of its hosts, by name.
    pub hosts: BTreeMap<String, Arc<ChildAgent>>,
    /// Its fabric; none on the kernel testbed.
    pub fabric: Option<RunningFabric>,
    /// What the fabric is, as it was asked for and in numbers, changes included.
    pub network: Option<(NetworkSpec, Network)>,
    /// The MTU of each end of hosts and routers by now.
    pub mtus: Vec<u32>,
    /// Which share of its link a host's shaper lets pass, if there are shapers.
    pub shaper_factor: Option<f64>,
    /// What joins three or more hosts on the kernel testbed.
    pub switch: Option<KernelSwitch>,
    /// Which CPUs work for whom.
    pub cpus: CpuPlan,
    /// What was read at the beginning of the interval that is measured.
    pub begun: Option<Begun>,
}

/// Counters at the beginning of an interval, and a meter at work in it.
pub struct Begun {
    /// CPU times.
    pub cpus: CpuSnapshot,
    /// Every process of this machine.
    pub processes: rivals::Snapshot,
    /// Whether CPUs are held.
    pub held: HeldMeter,
}

impl Rack {
    /// A rack without anything.
    pub fn empty(cpus: CpuPlan) -> Self {
        Self {
            hosts: BTreeMap::new(),
            fabric: None,
            network: None,
            mtus: Vec::new(),
            shaper_factor: None,
            switch: None,
            cpus,
            begun: None,
        }
    }
}

/// The state of a rack agent; empty on a host agent.
#[derive(Default)]
pub struct RackState {
    current: Mutex<Option<Rack>>,
    group: Mutex<Option<PathBuf>>,
    /// What was found missing, by (fabric, shaped): probing costs as much as a small rack.
    probed: Mutex<BTreeMap<(bool, bool), Requirements>>,
    /// The most that this machine hands over, in bits per second; none where it cannot be measured.
    most: OnceLock<Option<u64>>,
}

impl RackState {
    /// Nothing is up; what killed agents left is swept away.
    pub fn new(role: &Role) -> Self {
        if *role == Role::Rack {
            groups::sweep();
        }
        Self::default()
    }

    /// The rack, for a change.
    pub fn current(&self) -> MutexGuard<'_, Option<Rack>> {
        lock(&self.current)
    }

    /// The place of the rack, if there is none yet and this machine can build one.
    pub fn vacant(&self, fabric: bool, shaped: bool) -> Result<MutexGuard<'_, Option<Rack>>, Failure> {
        let current = self.current();
        if current.is_some() {
            return Err(Failure::state("a rack is up already; take it down first"));
        }
        let requirements = lock(&self.probed)
            .entry((fabric, shaped))
            .or_insert_with(|| probe(fabric, shaped, Asked::default()))
            .clone();
        if requirements.missing.is_empty() {
            Ok(current)
        } else {
            Err(Failure::missing(&requirements.missing))
        }
    }

    /// The most that this machine hands over to a host, in bits per second, measured once; none where it cannot be.
    pub fn most_bits_per_second(&self) -> Option<u64> {
        let note =
            |error: &_| eprintln!("framegauge-agent: {error}; rates that are too high are not refused");
        *self.most.get_or_init(|| most_bits_per_second().inspect_err(note).ok())
    }

    /// The agent of a host.
    pub fn host(&self, name: &str) -> Result<Arc<ChildAgent>, Failure> {
        let current = self.current();
        let rack = current.as_ref().ok_or_else(|| Failure::state("no rack is up"))?;
        let names = || rack.hosts.keys().cloned().collect::<Vec<_>>().join(", ");
        rack.hosts
            .get(name)
            .cloned()
            .ok_or_else(|| Failure::state(format!("the rack has no host {name:?}; it has {}", names())))
    }

    /// The cgroup of this agent, made when needed: the last host to leave removes it.
    pub fn group(&self) -> Result<PathBuf, Failure> {
        let path = groups::create_group()?.path().to_path_buf();
        *lock(&self.group) = Some(path.clone());
        Ok(path)
    }

    /// Takes a rack down: its hosts put everything back, then the fabric or the switch goes.
    pub fn take_down(&self, mut rack: Rack) -> Result<(), Failure> {
        let group = lock(&self.group).clone();
        std::thread::scope(|scope| {
            for host in rack.hosts.values() {
                scope.spawn(|| host.stop());
            }
        });
        drop(rack.switch.take());
        let stopped = rack.fabric.take().map(RunningFabric::stop);
        if let Some(group) = group {
            // A host's agent that was killed cannot end what ran in its group.
            for name in rack.hosts.keys() {
                groups::remove_group(&group.join(name))?;
            }
        }
        stopped.transpose().map_err(Failure::from)?;
        Ok(())
    }

    /// Puts everything back at the end.
    pub fn end(&self) {
        let rack = self.current().take();
        if let Some(Err(failure)) = rack.map(|rack| self.take_down(rack)) {
            eprintln!("framegauge-agent: {}", failure.message);
        }
        if let Some(group) = lock(&self.group).take()
            && let Err(error) = groups::remove_group(&group)
        {
            eprintln!("framegauge-agent: {error}");
        }
    }
}
