//! A NIC of a host or a router, and what gives it its address, neighbours and routes. All of them are static.

use crate::host::subnet::{network, quiet_sysctls_of};
use framegauge_linux::initial_windows::{self, InitialWindows};
use framegauge_linux::{OsError, Result, clock, routes, rtnetlink};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;

/// How long the kernel may take to use an address; it takes a millisecond when it is not busy.
const PATIENCE_NANOSECONDS: u64 = 5_000_000_000;

/// One NIC, and where packets go by it.
#[derive(Debug, Clone)]
pub struct Nic {
    /// Its interface.
    pub interface: String,
    /// Its Ethernet address.
    pub hardware: [u8; 6],
    /// MTU in bytes.
    pub mtu: u32,
    /// Its address.
    pub address: IpAddr,
    /// Everybody else in its subnet.
    pub neighbours: Vec<(IpAddr, [u8; 6])>,
    /// Subnets that packets go to through a router: an address of each, and the router's.
    pub routes: Vec<(IpAddr, IpAddr)>,
    /// What its shaper lets pass, where that is not what the host's shaping says.
    pub bits_per_second: Option<u64>,
    /// The largest packet that leaves by it, which says to its shaper of how many frames an aggregate is; none: its MTU.
    pub packet_bytes: Option<u32>,
}

impl Nic {
    /// The IP version of its address.
    pub(crate) fn version(&self) -> u8 {
        if self.address.is_ipv4() { 4 } else { 6 }
    }

    /// Gives it its address, its neighbours and its routes; the interface is up.
    pub(crate) fn address(&self, congestion_control: &str) -> Result<()> {
        let (name, (net, prefix)) = (self.interface.as_str(), network(self.address));
        rtnetlink::add_address(name, self.address, prefix)?;
        rtnetlink::set_route(name, net, prefix, None, congestion_control)?;
        rtnetlink::add_neighbours(name, &self.neighbours)?;
        self.routes.iter().try_for_each(|(destination, gateway)| {
            let (net, prefix) = network(*destination);
            rtnetlink::set_route(name, net, prefix, Some(*gateway), congestion_control)
        })
    }
}

/// The place of a NIC among all of them, or all places.
pub(crate) fn places(nics: &[Nic], nic: Option<usize>) -> Result<Range<usize>> {
    match nic {
        None => Ok(0..nics.len()),
        Some(nic) if nic < nics.len() => Ok(nic..nic + 1),
        Some(nic) => Err(OsError::errno(format!("find NIC {}", nic + 1), 19)),
    }
}

/// Gives the routes of interfaces initial windows, if any are asked for; their addresses are of the IP version of `nic`.
pub(crate) fn set_windows(nic: &Nic, interfaces: &[&str], windows: InitialWindows) -> Result<()> {
    if windows == InitialWindows::default() {
        return Ok(());
    }
    interfaces.iter().try_for_each(|name| initial_windows::set(name, nic.version(), windows))
}

/// Holds the path MTU of all routes of these interfaces; 0 releases it.
pub(crate) fn hold_routes(nics: &[Nic], mtu: u32) -> Result<()> {
    nics.iter().try_for_each(|nic| initial_windows::hold_mtu(&nic.interface, nic.version(), mtu))
}

/// Waits until this host takes in packets to an address that it was given. Of IPv6 the kernel sees to that later, when a
/// worker has found the link to be up; what comes before is dropped, and a SYN that is sent again after a second asks for
/// no ECN.
pub fn await_own(address: IpAddr) -> Result<()> {
    let deadline = clock::monotonic_nanoseconds() + PATIENCE_NANOSECONDS;
    while !routes::is_own(address)? {
        if clock::monotonic_nanoseconds() > deadline {
            return Err(OsError::errno(format!("wait for the kernel to use {address}"), 110));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}

/// What makes a router of a host: it takes packets on, whichever way they came, and tells nobody of shorter ways.
pub(crate) fn forwarding_sysctls(forwards: bool, nics: &[Nic]) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut set = |name: String, value: &str| all.insert(name, value.to_owned());
    if !forwards {
        return all;
    }
    if nics.iter().any(|nic| nic.address.is_ipv6()) {
        set("net.ipv6.conf.all.forwarding".into(), "1");
        return all;
    }
    set("net.ipv4.ip_forward".into(), "1");
    for conf in nics.iter().map(|nic| nic.interface.as_str()).chain(["all"]) {
        set(format!("net.ipv4.conf.{conf}.rp_filter"), "0");
        set(format!("net.ipv4.conf.{conf}.send_redirects"), "0");
    }
    all
}

/// What keeps the kernel's own background traffic off every NIC.
pub(crate) fn quiet_sysctls(nics: &[Nic]) -> BTreeMap<String, String> {
    nics.iter().flat_map(|nic| quiet_sysctls_of(&nic.interface, nic.address)).collect()
}
