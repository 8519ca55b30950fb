//! What this kernel and its devices can.

use framegauge_linux::{Result, rtnetlink, sysctl};

/// The congestion controls that this kernel has.
pub fn available_congestion_control() -> Result<Vec<String>> {
    let text = sysctl::read("net.ipv4.tcp_available_congestion_control")?;
    Ok(text.split(' ').map(String::from).collect())
}

/// The largest MTU that a device takes, where it says so.
pub fn maximum_mtu(interface: &str) -> Result<Option<u32>> {
    rtnetlink::link(interface).map(|link| link.maximum_mtu)
}
