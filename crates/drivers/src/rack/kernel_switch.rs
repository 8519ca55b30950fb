//! A switch made of the kernel's own parts: a bridge in a network namespace of its own, a veth pair to each host,
//! and on the switch's end of each a token bucket whose queue is that port's buffer.

use crate::host::aggregates;
use crate::host::receive_path::receive_on;
use crate::host::shaping::{Shaping, bucket};
use crate::rack::addresses::{hardware, interface};
use framegauge_frames::Family;
use framegauge_linux::ethtool::{self, Offload};
use framegauge_linux::namespace::{self, Network};
use framegauge_linux::qdisc::{self, QdiscReading};
use framegauge_linux::rtnetlink::{self, LinkChange};
use framegauge_linux::{OsError, Result, bridge, clock, sysctl};
use std::collections::BTreeMap;
use std::time::Duration;

const BRIDGE: &str = "fgswitch";
/// Packets that a port's transmit queue may hold; its bucket bounds it in bytes.
const QUEUE_PACKETS: u32 = 4000;
/// How long the ports may take until they forward.
const PATIENCE_NANOSECONDS: u64 = 5_000_000_000;

/// The ports of the switch.
#[derive(Debug, Clone)]
pub struct KernelSwitchSpec {
    /// Rate and buffer of each port, if the links are shaped.
    pub shaping: Option<Shaping>,
    /// MTU of the switch's ports.
    pub port_mtu: u32,
    /// Aggregates pass whole.
    pub tso: bool,
    /// The largest aggregates that they pass on.
    pub aggregates: aggregates::Asked,
    /// What the hosts speak.
    pub family: Family,
    /// CPUs that may work for the switch.
    pub cpus: Vec<usize>,
}

/// A host that is to be joined.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// A thread that works in it.
    pub thread: u32,
    /// Its MTU in bytes.
    pub mtu: u32,
}

/// What a port sent in an interval, as its token bucket counts it.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct KernelPort {
    pub port: String,
    pub sent_bytes: u64,
    pub sent_packets: u32,
    pub drops: u32,
    pub backlog_bytes: i64,
}

/// A switch at work. It is gone, with the hosts' interfaces, when this is dropped or its process ends.
pub struct KernelSwitch {
    network: Network,
    /// Names and indices of the ports towards the hosts.
    ports: Vec<(String, i32)>,
    shaped: bool,
    begun: BTreeMap<i32, QdiscReading>,
}

impl KernelSwitch {
    /// Joins the hosts. Their ends are called as [`interface`] says.
    pub fn build(spec: &KernelSwitchSpec, hosts: &[Member]) -> Result<Self> {
        let network = Network::fresh()?;
        let ports = network.run(|| {
            quiet()?;
            namespace::show_network()?;
            bridge::create(BRIDGE)?;
            let switch = rtnetlink::link(BRIDGE)?.index;
            let port = |(index, host): (usize, &Member)| {
                Ok((format!("switch>{}", host.name), attach(spec, switch, index, host)?))
            };
            hosts.iter().enumerate().map(port).collect::<Result<Vec<_>>>()
        })?;
        Ok(Self { network, ports, shaped: spec.shaping.is_some(), begun: BTreeMap::new() })
    }

    /// Waits until every port forwards, which the kernel sees to once the hosts' ends are up.
    pub fn await_forwarding(&self) -> Result<()> {
        self.network.run(|| {
            let deadline = clock::monotonic_nanoseconds() + PATIENCE_NANOSECONDS;
            loop {
                let forwarding = bridge::ports()?.iter().filter(|(_, forwards)| *forwards).count();
                if forwarding == self.ports.len() {
                    return Ok(());
                }
                if clock::monotonic_nanoseconds() > deadline {
                    let operation = format!("wait for {} ports to forward", self.ports.len() - forwarding);
                    return Err(OsError::errno(operation, 110));
                }
                std::thread::sleep(Duration::from_micros(500));
            }
        })
    }

    /// Begins an interval.
    pub fn begin(&mut self) -> Result<()> {
        self.begun = self.network.run(qdisc::read_every)?;
        Ok(())
    }

    /// What happened in it; nothing is known of ports that are not shaped.
    pub fn end(&self) -> Result<Option<Vec<KernelPort>>> {
        if !self.shaped {
            return Ok(None);
        }
        let now = self.network.run(qdisc::read_every)?;
        let missing = || OsError::errno("read the shaper of a switch's port", 2);
        let change = |(port, index): &(String, i32)| {
            let after = now.get(index).ok_or_else(missing)?;
            let before = self.begun.get(index).ok_or_else(missing)?;
            Ok(KernelPort {
                port: port.clone(),
                sent_bytes: after.sent_bytes - before.sent_bytes,
                sent_packets: after.sent_packets.wrapping_sub(before.sent_packets),
                drops: after.drops.wrapping_sub(before.drops),
                backlog_bytes: i64::from(after.backlog_bytes) - i64::from(before.backlog_bytes),
            })
        };
        self.ports.iter().map(change).collect::<Result<_>>().map(Some)
    }
}

/// Nothing but the hosts' frames crosses the switch.
fn quiet() -> Result<()> {
    match sysctl::write("net.ipv6.conf.default.disable_ipv6", "1") {
        Err(error) if error.source.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Makes the port of a host and the link to it; gives the port's index. The shaper comes before the port is up,
/// where the kernel can put it in without waiting.
fn attach(spec: &KernelSwitchSpec, switch: i32, index: usize, host: &Member) -> Result<i32> {
    let name = format!("fgp{index}");
    rtnetlink::create_veth(&name, &interface(index), host.thread)?;
    let change =
        LinkChange { mtu: Some(spec.port_mtu), queue_packets: Some(QUEUE_PACKETS), ..LinkChange::default() };
    rtnetlink::change_link(&name, change)?;
    spec.aggregates.set(&name)?;
    for offload in [Offload::Gso, Offload::Tso] {
        // A port that could pass aggregates whole would keep GRO from running at the host (`veth_xmit`).
        ethtool::set(&name, offload, spec.tso)?;
    }
    if let Some(cpu) = spec.cpus.get(index % spec.cpus.len().max(1)) {
        receive_on(&name, *cpu)?;
    }
    if let Some(shaping) = &spec.shaping {
        qdisc::set_token_bucket(&name, &bucket(shaping, host.mtu, spec.family, 0)?)?;
    }
    let port = rtnetlink::link(&name)?.index;
    bridge::attach(port, switch)?;
    bridge::pin(port, hardware(index))?;
    Ok(port)
}
