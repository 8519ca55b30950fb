//! A host's place in an overlay.

use crate::host::{HostSettings, network, quiet_sysctls_of};
use framegauge_linux::rtnetlink::{self, LinkChange};
use framegauge_linux::{Result, sysctl, vxlan};
use std::net::IpAddr;

/// A host's place in an overlay: programs use its address, packets leave by the host's interface.
#[derive(Debug, Clone)]
pub struct Overlay {
    /// Its VXLAN interface.
    pub interface: String,
    /// MTU inside.
    pub mtu: u32,
    /// Its Ethernet address there.
    pub hardware: [u8; 6],
    /// Its address there.
    pub address: IpAddr,
    /// Every other host there, with its address outside.
    pub peers: Vec<(IpAddr, [u8; 6], IpAddr)>,
}

impl Overlay {
    /// The MTU that its interface has now.
    pub(crate) fn mtu_now(&self) -> Result<u32> {
        rtnetlink::link(&self.interface).map(|link| link.mtu)
    }

    /// Makes it, on top of a host's interface that is up. Address resolution there is none: everybody is known.
    pub(crate) fn join(&self, host: &HostSettings) -> Result<()> {
        let name = self.interface.as_str();
        let outside = &host.nics[0];
        vxlan::create(name, &outside.interface, outside.address, self.mtu, self.hardware)?;
        // The interface goes with its host: there is nothing to put back.
        for (setting, value) in quiet_sysctls_of(name, self.address) {
            sysctl::write(&setting, &value)?;
        }
        let aggregate_bytes = host.shaping.map(|shaping| shaping.aggregate_bytes);
        let up = LinkChange { up: Some(true), aggregate_bytes, ..LinkChange::default() };
        rtnetlink::change_link(name, up)?;
        let (net, prefix) = network(self.address);
        rtnetlink::add_address(name, self.address, prefix)?;
        rtnetlink::set_route(name, net, prefix, None, &host.congestion_control)?;
        let inside: Vec<_> = self.peers.iter().map(|(address, hardware, _)| (*address, *hardware)).collect();
        let outside: Vec<_> = self.peers.iter().map(|(_, hardware, address)| (*hardware, *address)).collect();
        rtnetlink::add_neighbours(name, &inside)?;
        vxlan::add_peers(name, &outside)
    }
}
