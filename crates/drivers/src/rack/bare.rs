//! Hosts without any link, which the kernel's own tools join afterwards.

use framegauge_linux::ethtool::{self, Offload};
use framegauge_linux::namespace::Network;
use framegauge_linux::rtnetlink::{self, LinkChange};
use framegauge_linux::{OsError, Result};

/// Brings the loopback interface of the host up in which thread `id` works.
pub fn raise_loopback(id: u32) -> Result<()> {
    let up = LinkChange { up: Some(true), ..LinkChange::default() };
    Network::of_thread(id)?.run(|| rtnetlink::change_link("lo", up))
}

/// Lets nothing build or merge aggregates on `interface`, so that what passes it are frames; read back.
pub fn stop_aggregates(interface: &str) -> Result<()> {
    for offload in [Offload::Tso, Offload::Gso, Offload::Gro] {
        ethtool::set(interface, offload, false)?;
        if ethtool::get(interface, offload)? {
            return Err(OsError::errno(format!("switch {offload:?} of {interface} off"), 95));
        }
    }
    Ok(())
}
