//! Joins the hosts of a rack: by a fabric between TAPs, or by the kernel's own veth pair.

use crate::fabric::{Attachment, RunningFabric};
use crate::rack::addresses::{hardware, interface};
use crate::rack::workshop::workshop;
use framegauge_fabric::Owner;
use framegauge_linux::{Result, namespace, rtnetlink, tap::Tap};
use framegauge_networks::Network;

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
        let owner_thread = thread(owner);
        let forwards = matches!(owner, Owner::Router(_));
        let tap = workshop.run(|| {
            let tap = Tap::create(&name, nic.checksum, nic.tso && !forwards)?;
            rtnetlink::move_link(&name, owner_thread)?;
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
