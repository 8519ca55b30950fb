//! A host's interface in a VXLAN overlay.

use crate::host::nics::Nic;
use crate::host::subnet::{network, quiet_sysctls_of};
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

    /// Makes it, on top of a NIC of the host that is up. There is no address resolution: every host is known.
    pub(super) fn join(
        &self,
        outside: &Nic,
        aggregate_bytes: Option<u32>,
        congestion_control: &str,
    ) -> Result<()> {
        let name = self.interface.as_str();
        vxlan::create(name, &outside.interface, outside.address, self.mtu, self.hardware)?;
        // The interface goes with its host: there is nothing to put back.
        for (setting, value) in quiet_sysctls_of(name, self.address) {
            sysctl::write(&setting, &value)?;
        }
        let up = LinkChange { up: Some(true), aggregate_bytes, ..LinkChange::default() };
        rtnetlink::change_link(name, up)?;
        let (net, prefix) = network(self.address);
        rtnetlink::add_address(name, self.address, prefix)?;
        rtnetlink::set_route(name, net, prefix, None, congestion_control)?;
        let inside: Vec<_> = self.peers.iter().map(|(address, hardware, _)| (*address, *hardware)).collect();
        let outside: Vec<_> = self.peers.iter().map(|(_, hardware, address)| (*hardware, *address)).collect();
        rtnetlink::add_neighbours(name, &inside)?;
        vxlan::add_peers(name, &outside)
    }
}
