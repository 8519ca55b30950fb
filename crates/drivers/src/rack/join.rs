//! Pieces of an emulated rack: names and addresses, CPUs, cgroups, links.

use crate::fabric::{Attachment, RunningFabric};
use crate::network::Network;
use crate::rack::requirements::cgroup_root;
use framegauge_fabric::Owner;
use framegauge_linux::cgroup::Group;
use framegauge_linux::namespace;
use framegauge_linux::{OsError, Result, process, rtnetlink, sched, tap::Tap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const GROUP_PREFIX: &str = "framegauge-";

/// The Ethernet address of end `index` (from 0): locally administered.
pub fn hardware(index: usize) -> [u8; 6] {
    let [high, low] = (index as u16 + 1).to_be_bytes();
    [0x02, 0x66, 0x67, 0x00, high, low]
}

/// The Ethernet address of host `index` (from 0) in an overlay.
pub fn overlay_hardware(index: usize) -> [u8; 6] {
    let [high, low] = (index as u16 + 1).to_be_bytes();
    [0x02, 0x66, 0x67, 0x01, high, low]
}

/// The address of host `index` (from 0) in the first subnet, inside its own namespace only.
pub fn address(index: usize, version: u8) -> IpAddr {
    address_in_subnet(0, index, version)
}

/// The address of host or router `index` (from 0) in a subnet (from 0): 10.77.0.0 and up by 256, or fd77:: and up by a
/// /64.
pub fn address_in_subnet(subnet: usize, index: usize, version: u8) -> IpAddr {
    address_in(77, subnet, index, version)
}

/// The address of host `index` (from 0) in an overlay.
pub fn overlay_address(index: usize, version: u8) -> IpAddr {
    address_in(78, 0, index, version)
}

fn address_in(network: u8, subnet: usize, index: usize, version: u8) -> IpAddr {
    let number = index as u16 + 1;
    match version {
        // fd77:: and fd78::, as 10.77.0.0 and 10.78.0.0.
        6 => {
            let subnet = subnet as u16;
            Ipv6Addr::new(0xfd77 + u16::from(network - 77), 0, 0, subnet, 0, 0, 0, number).into()
        }
        _ => Ipv4Addr::new(10, network, subnet as u8, number as u8).into(),
    }
}

/// The interface of end `index` (from 0); unique on this machine, so that its kernel threads can be told apart.
pub fn interface(index: usize) -> String {
    format!("fg{}", index + 1)
}

/// The overlay's interface of host `index` (from 0).
pub fn overlay_interface(index: usize) -> String {
    format!("fgx{}", index + 1)
}

/// Which CPUs work for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuPlan {
    /// The fabric's, if it has one for itself.
    pub fabric: Option<usize>,
    /// The hosts'.
    pub hosts: Vec<usize>,
}

/// The fabric gets the last CPU for itself where there are two or more.
pub fn plan_cpus(fabric: bool) -> CpuPlan {
    let mut hosts = sched::allowed_cpus();
    let own = if fabric && hosts.len() > 1 { hosts.pop() } else { None };
    CpuPlan { fabric: own, hosts }
}

/// Makes the cgroup of this agent; its hosts' lie below.
pub fn create_group() -> Result<Group> {
    let root = cgroup_root().ok_or_else(|| OsError::errno("find the cgroup2 tree", 2))?;
    let pid = std::process::id();
    let name = format!("{GROUP_PREFIX}{pid}-{}", process::start_ticks(pid).unwrap_or(0));
    Group::create(&root, &name)
}

/// Ends and removes what agents left that were killed together with all of their children.
pub fn sweep() {
    let Some(entries) = cgroup_root().and_then(|root| std::fs::read_dir(root).ok()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(GROUP_PREFIX)).and_then(|rest| {
            let (pid, ticks) = rest.split_once('-')?;
            Some((pid.parse::<u32>().ok()?, ticks.parse::<u64>().ok()?))
        });
        if let Some((pid, ticks)) = owner
            && process::start_ticks(pid) != Some(ticks)
        {
            let _ = Group::existing(entry.path()).remove();
        }
    }
}

/// Whether a cgroup folder is that of a rack agent.
pub(crate) fn is_group(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(GROUP_PREFIX))
}

/// Removes the group of one host, with whatever still runs in it.
pub fn remove_group(path: &Path) -> Result<()> {
    Group::existing(PathBuf::from(path)).remove()
}

/// The hosts' NICs.
#[derive(Debug, Clone, Copy)]
pub struct NicSpec {
    /// The kernel hands over aggregates.
    pub tso: bool,
    /// The NICs merge the frames of an interrupt into aggregates.
    pub lro: bool,
    /// The kernel leaves checksums to the NIC.
    pub checksum: bool,
}

/// Where TAPs are made, one namespace for as long as this process lives.
///
/// A TAP's descriptor holds the namespace in which it was opened, for ever if GRO has merged packets of it (Linux 6.18:
/// what GRO frees of merged packets is never given back to the socket that they are charged to). Opened in a host's own,
/// every run would leave namespaces behind, some hundred a minute on a busy rack, until the machine is slow.
pub(crate) fn workshop() -> Result<&'static namespace::Network> {
    static WORKSHOP: Mutex<Option<&'static namespace::Network>> = Mutex::new(None);
    let mut made = WORKSHOP.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match *made {
        Some(network) => Ok(network),
        None => Ok(*made.insert(Box::leak(Box::new(namespace::Network::fresh()?)))),
    }
}

/// Gives each end a TAP in its owner's network (`thread` says a thread that works there) and joins them by a fabric.
pub fn join_by_fabric(
    network: &Network,
    nic: NicSpec,
    thread: impl Fn(Owner) -> u32,
    cpu: Option<usize>,
) -> Result<RunningFabric> {
    let ends = &network.ends;
    let mut attachments = Vec::with_capacity(ends.len());
    let workshop = workshop()?;
    for index in 0..ends.len() {
        let (name, owner) = (interface(index), ends.owner(index));
        let there = thread(owner);
        let forwards = matches!(owner, Owner::Router(_));
        let tap = workshop.run(|| {
            let tap = Tap::create(&name, nic.checksum, nic.tso && !forwards)?;
            rtnetlink::move_link(&name, there)?;
            Ok(tap)
        })?;
        let host = ends.owner_name(index).to_owned();
        attachments.push(Attachment { tap, hardware: hardware(index), host, forwards, is_timed: true });
    }
    RunningFabric::start(&network.config, attachments, nic.lro, cpu)
}

/// Joins two hosts (each by a thread that works in it) by the kernel's own veth pair.
pub fn join_by_veth(first: u32, second: u32) -> Result<()> {
    let (near, far) = (interface(0), interface(1));
    namespace::Network::of_thread(first)?.run(|| rtnetlink::create_veth(&near, &far, second))
}
