//! The state of a host agent: settings in force, servers, meters, programs.

use crate::arguments::Role;
use crate::check::state::Check;
use crate::host::capture::CaptureHere;
use crate::host::estimate::EstimateHere;
use crate::host::folder::HostFolder;
use crate::host::meter::Meter;
use crate::pipe::lock::lock;
use crate::pipe::message::Failure;
use crate::tools::helper::Helper;
use framegauge_drivers::generators::datagrams::receiver::Receiving;
use framegauge_drivers::generators::quic::server::QuicServing;
use framegauge_drivers::generators::rr::server::RrServing;
use framegauge_drivers::generators::stream::server::Serving;
use framegauge_drivers::host::Applied;
use framegauge_drivers::host::names::Names;
use framegauge_drivers::host::processes::Processes;
use framegauge_drivers::meters::handshakes::WireMeter;
use framegauge_drivers::meters::held::HeldMeter;
use framegauge_drivers::meters::sockets::SocketWatch;
use framegauge_drivers::{PortRange, Result, own};
use std::path::PathBuf;
use std::sync::Mutex;

/// The state of a host agent; empty on a rack agent.
pub struct HostState {
    /// The settings in force.
    pub applied: Mutex<Option<Applied>>,
    /// The names of the others that it shows.
    pub names: Mutex<Option<Names>>,
    /// The captures and counts under way on the interfaces.
    pub capture: Mutex<Option<WireMeter>>,
    /// The capture of headers under way.
    pub tap: Mutex<Option<CaptureHere>>,
    /// The interval of an estimate.
    pub estimate: Mutex<Option<EstimateHere>>,
    /// The CPU meter at work.
    pub meter: Mutex<Option<Meter>>,
    /// The meter of held CPUs at work.
    pub held: Mutex<Option<HeldMeter>>,
    /// The watch on programs' sockets.
    pub watch: Mutex<Option<SocketWatch>>,
    /// The serving end of streams.
    pub serving: Mutex<Option<Serving>>,
    /// The serving end of requests.
    pub rr_serving: Mutex<Option<RrServing>>,
    /// The receiving end of datagrams.
    pub receiving: Mutex<Option<Receiving>>,
    /// The serving end of QUIC.
    pub quic_serving: Mutex<Option<QuicServing>>,
    /// The part in a check.
    pub check: Mutex<Option<Check>>,
    /// Changed settings that last while they are renewed.
    pub lease: Mutex<Option<Helper>>,
    /// The counters of the whole host, or why there are none; none of the two unless asked for.
    pub counters: Mutex<Option<std::result::Result<Helper, String>>>,
    /// Where others may be told to connect to it.
    pub ports: PortRange,
    /// Where its programs have their files.
    pub folder: Mutex<Option<HostFolder>>,
    /// The programs.
    pub processes: Processes,
    group: Option<PathBuf>,
    /// Ends what is in the group if this agent is killed.
    group_keeper: Mutex<Option<Helper>>,
}

impl HostState {
    /// Makes the cgroup it was told to keep its programs in.
    pub fn new(role: &Role) -> Result<Self> {
        let group = match role {
            Role::Host { group: Some(path), .. } => {
                Some(framegauge_drivers::host::processes::adopt_group(path)?)
            }
            Role::Host { group: None, .. } => framegauge_drivers::host::processes::own_group(),
            Role::Rack => None,
        };
        let ports = match role {
            Role::Host { ports, .. } => *ports,
            Role::Rack => PortRange::ANY,
        };
        Ok(Self {
            ports,
            applied: Mutex::default(),
            names: Mutex::default(),
            capture: Mutex::default(),
            tap: Mutex::default(),
            estimate: Mutex::default(),
            meter: Mutex::default(),
            held: Mutex::default(),
            watch: Mutex::default(),
            serving: Mutex::default(),
            rr_serving: Mutex::default(),
            receiving: Mutex::default(),
            quic_serving: Mutex::default(),
            check: Mutex::default(),
            lease: Mutex::default(),
            counters: Mutex::default(),
            folder: Mutex::default(),
            processes: Processes::new(group.clone()),
            group,
            group_keeper: Mutex::default(),
        })
    }

    /// Has the group, if there is one, looked after by a second process. Called before anything is started in it.
    pub fn keep_group(&self) -> std::result::Result<(), Failure> {
        let mut keeper = lock(&self.group_keeper);
        if let (Some(group), None) = (&self.group, keeper.as_ref()) {
            let path = group.display().to_string();
            *keeper = Some(Helper::of("keeper of the group", own::spawn_agent(&["keep", "group", &path])?)?);
        }
        Ok(())
    }

    /// The settings in force, or why there are none.
    pub fn with_applied<T>(
        &self,
        work: impl FnOnce(&Applied) -> Result<T>,
    ) -> std::result::Result<T, Failure> {
        let applied = lock(&self.applied);
        let applied = applied.as_ref().ok_or_else(|| Failure::state("this host has no settings yet"))?;
        work(applied).map_err(Failure::from)
    }

    /// Puts everything back.
    pub fn end(&self) {
        self.processes.end_all();
        if let Some(folder) = lock(&self.folder).take() {
            folder.end();
        }
        if let Some(mut lease) = lock(&self.lease).take() {
            lease.stop();
        }
        if let Some(Ok(mut counters)) = lock(&self.counters).take() {
            counters.stop();
        }
        if let Some(mut applied) = lock(&self.applied).take() {
            applied.restore();
        }
        if let Some(group) = &self.group {
            framegauge_drivers::host::processes::leave_group(group);
        }
        if let Some(mut keeper) = lock(&self.group_keeper).take() {
            keeper.stop();
        }
    }
}
