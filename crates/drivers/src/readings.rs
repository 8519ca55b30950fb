//! What a host says of its traffic over an interval, without any change to it: counters of interfaces and of the NICs
//! behind them, CPU states, protocol counters, and how its connections were limited; beside it a sample of headers.

use crate::meters::sockets::{self, Held, Unread};
use crate::meters::{self, CpuInterval, CpuSnapshot};
use crate::sample::{Sampled, Sampling};
use crate::tap::Interface;
use crate::tap::kernel::{Connection, KernelWatch};
use framegauge_linux::nic_counters::nic_counters;
pub use framegauge_linux::nic_counters::{NicCounters, SizeRange};
use framegauge_linux::rtnetlink::{self, LinkStatistics};
use framegauge_linux::{OsError, Result, clock, ethtool, links};
use framegauge_metering::{Counters, difference};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// What an interface is.
#[derive(Debug, Clone)]
pub struct About {
    /// The interface.
    pub interface: Interface,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// The largest that its device takes, where it says so.
    pub maximum_mtu: Option<u32>,
    /// The name of its driver.
    pub driver: Option<String>,
    /// The speed that the device says it has.
    pub bits_per_second: Option<u64>,
    /// Whether the kernel or the NIC segments what it sends (TSO or GSO), and merges what it receives (GRO or LRO).
    pub offloads: Option<BTreeMap<&'static str, bool>>,
    /// The index of the interface that it stands on.
    parent: Option<u32>,
}

/// Every interface that is up, or those of these names; without names, those with an address, and of interfaces that
/// stand on one another the lowest, whose counters have all of their packets.
pub fn interfaces(names: &[String]) -> Result<Vec<About>> {
    let all_links = links::interfaces()?;
    let all: Vec<About> = crate::tap::interfaces::interfaces()?
        .into_iter()
        .filter(|entry| if names.is_empty() { entry.usual } else { names.contains(&entry.name) })
        .filter_map(|interface| {
            let link = all_links.iter().find(|entry| entry.index == interface.index)?;
            let name = interface.name.clone();
            let offload = |(word, which)| Some((word, ethtool::get(&name, which).ok()?));
            Some(About {
                mtu: link.mtu,
                maximum_mtu: link.maximum_mtu,
                driver: ethtool::driver(&name).ok().filter(|driver| !driver.is_empty()),
                bits_per_second: ethtool::speed(&name).ok().flatten(),
                offloads: ethtool::Offload::NAMED.into_iter().map(offload).collect(),
                parent: link.parent,
                interface,
            })
        })
        .collect();
    let indices: BTreeSet<u32> = all.iter().map(|entry| entry.interface.index).collect();
    let stands_on_another = |entry: &About| entry.parent.is_some_and(|parent| indices.contains(&parent));
    Ok(all.into_iter().filter(|entry| !names.is_empty() || !stands_on_another(entry)).collect())
}

/// A tunnel that ends here, whose packets a link beneath it sees enciphered.
#[derive(Debug, Clone)]
pub struct TunnelHere {
    /// Its name.
    pub interface: String,
    /// What it is, as `ip -d link` names it.
    pub kind: String,
    /// Its MTU: the inner one.
    pub mtu: u32,
}

/// Kinds of interfaces behind which packets are enciphered, or handed to a program that may do so.
const SEALING: [&str; 7] = ["wireguard", "tun", "xfrm", "vti", "vti6", "ovpn", "ppp"];

/// The tunnels that end here and may encipher, of all interfaces.
pub fn tunnels_here() -> Result<Vec<TunnelHere>> {
    let tunnel = |link: links::Interface| {
        let kind = link.kind.filter(|kind| SEALING.contains(&kind.as_str()))?;
        Some(TunnelHere { interface: link.name, kind, mtu: link.mtu })
    };
    Ok(links::interfaces()?.into_iter().filter_map(tunnel).collect())
}

/// What an interface counted in an interval.
#[derive(Debug, Clone)]
pub struct Counted {
    /// What it is, as it was at the beginning.
    pub about: About,
    /// Its MTU at the end.
    pub mtu_after: u32,
    /// Packets and bytes, as the driver counts them: an aggregate is one packet for some.
    pub link: LinkStatistics,
    /// What the NIC itself counted, or why it does not.
    pub nic: std::result::Result<NicCounters, String>,
}

/// What an interval came to.
#[derive(Debug)]
pub struct Read {
    /// How long it was.
    pub seconds: f64,
    /// By interface.
    pub interfaces: Vec<Counted>,
    /// How each CPU spent its time.
    pub cpu: CpuInterval,
    /// What the protocols counted, named as `nstat` names it; without what did not count.
    pub counters: Counters,
    /// Packets that went from the host to itself.
    pub loopback_packets: u64,
    /// Connections to other hosts that moved something.
    pub connections: Vec<Connection>,
    /// Others that did.
    pub more_connections: u64,
    /// The sample, or why there is none.
    pub sample: std::result::Result<Sampled, String>,
    /// Sockets that sent messages between two MTUs: who holds them, and whether Nagle's algorithm is on.
    pub held: Vec<Held>,
    /// Programs whose sockets could not be asked.
    pub unread: Unread,
}

/// An interval under way.
pub struct Readings {
    began: u64,
    interfaces: Vec<(About, LinkStatistics, std::result::Result<NicCounters, String>)>,
    cpu: CpuSnapshot,
    loopback_packets: u64,
    kernel: KernelWatch,
    sampling: std::result::Result<Sampling, String>,
    left_out: Option<(SocketAddr, SocketAddr)>,
}

impl Readings {
    /// Begins on these interfaces. `left_out`: a connection by which the host is controlled.
    pub fn begin(
        interfaces: Vec<About>,
        sampling: std::result::Result<Sampling, String>,
        left_out: Option<(SocketAddr, SocketAddr)>,
    ) -> Result<Self> {
        let counted = |about: About| {
            let name = about.interface.name.clone();
            Ok((about, rtnetlink::link(&name)?.statistics, of_nic(&name)))
        };
        Ok(Self {
            began: clock::monotonic_nanoseconds(),
            interfaces: interfaces.into_iter().map(counted).collect::<Result<_>>()?,
            cpu: meters::cpu_snapshot()?,
            loopback_packets: loopback_packets(),
            kernel: KernelWatch::begin(Vec::new())?,
            sampling,
            left_out,
        })
    }

    /// Ends the interval.
    pub fn end(self) -> Result<Read> {
        let seconds = clock::monotonic_nanoseconds().saturating_sub(self.began) as f64 * 1e-9;
        let cpu = meters::cpu_snapshot()?.since(&self.cpu);
        let interfaces = self.interfaces.into_iter().map(counted_since).collect::<Result<Vec<Counted>>>()?;
        let loopback_packets = loopback_packets().saturating_sub(self.loopback_packets);
        let sample = self.sampling.and_then(|sampling| sampling.end().map_err(|error| error.to_string()));
        let watched = self.kernel.end()?;
        let mut counters = difference(&watched.before, &watched.after);
        counters.retain(|_, count| *count != 0);
        let own: BTreeSet<IpAddr> = links::addresses()?.iter().map(|entry| entry.address).collect();
        let leads_away = |entry: &Connection| {
            let is_ours = self.left_out.is_some_and(|(one, other)| {
                (entry.local, entry.remote) == (one, other) || (entry.local, entry.remote) == (other, one)
            });
            !is_ours && !entry.remote.ip().is_loopback() && !own.contains(&entry.remote.ip())
        };
        let connections = watched.connections.into_iter().filter(leads_away).collect();
        let pairs: BTreeSet<(SocketAddr, SocketAddr)> = sample
            .iter()
            .flat_map(|sampled| sampled.sizes.iter().flat_map(|sizes| sizes.between()))
            .collect();
        let (held, unread) = sockets::holders_of(&pairs)?;
        Ok(Read {
            seconds,
            interfaces,
            cpu,
            counters,
            loopback_packets,
            connections,
            more_connections: watched.more,
            sample,
            held,
            unread,
        })
    }
}

fn loopback_packets() -> u64 {
    rtnetlink::link("lo").map_or(0, |link| link.statistics.tx_packets)
}

fn of_nic(name: &str) -> std::result::Result<NicCounters, String> {
    const NOT_SUPPORTED: i32 = 95;
    const NO_ENTRY: i32 = 2;
    nic_counters(name).map_err(|error: OsError| match error.code() {
        NOT_SUPPORTED => "the driver has no histogram of frame sizes (RMON)".into(),
        NO_ENTRY => "this kernel does not tell what NICs count (ethtool over netlink)".into(),
        _ => error.to_string(),
    })
}

fn counted_since(
    (about, before, nic): (About, LinkStatistics, std::result::Result<NicCounters, String>),
) -> Result<Counted> {
    let name = about.interface.name.clone();
    let after = rtnetlink::link(&name)?;
    let nic = nic.and_then(|before| Ok(nic_since(&of_nic(&name)?, &before)));
    Ok(Counted { about, mtu_after: after.mtu, link: link_since(after.statistics, before), nic })
}

/// What was counted in between; 0 where a driver began anew.
fn link_since(after: LinkStatistics, before: LinkStatistics) -> LinkStatistics {
    LinkStatistics {
        rx_packets: after.rx_packets.saturating_sub(before.rx_packets),
        tx_packets: after.tx_packets.saturating_sub(before.tx_packets),
        rx_bytes: after.rx_bytes.saturating_sub(before.rx_bytes),
        tx_bytes: after.tx_bytes.saturating_sub(before.tx_bytes),
        rx_errors: after.rx_errors.saturating_sub(before.rx_errors),
        tx_errors: after.tx_errors.saturating_sub(before.tx_errors),
        rx_dropped: after.rx_dropped.saturating_sub(before.rx_dropped),
        tx_dropped: after.tx_dropped.saturating_sub(before.tx_dropped),
    }
}

fn nic_since(after: &NicCounters, before: &NicCounters) -> NicCounters {
    let ranges = |after: &[SizeRange], before: &[SizeRange]| {
        let earlier = |range: &SizeRange| {
            let same = |other: &&SizeRange| {
                (other.least_bytes, other.most_bytes) == (range.least_bytes, range.most_bytes)
            };
            before.iter().find(same).map_or(0, |other| other.frames)
        };
        after
            .iter()
            .map(|range| SizeRange { frames: range.frames.saturating_sub(earlier(range)), ..*range })
            .collect()
    };
    let frames = |after: Option<u64>, before: Option<u64>| Some(after?.saturating_sub(before?));
    NicCounters {
        received: ranges(&after.received, &before.received),
        sent: ranges(&after.sent, &before.sent),
        received_frames: frames(after.received_frames, before.received_frames),
        sent_frames: frames(after.sent_frames, before.sent_frames),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_nic_counted_is_what_came_on_top() {
        let range = |least_bytes, frames| SizeRange { least_bytes, most_bytes: least_bytes + 9, frames };
        let counters =
            |received, sent_frames| NicCounters { received, sent_frames, ..NicCounters::default() };
        let before = counters(vec![range(64, 100), range(74, 7)], Some(5));
        let after = counters(vec![range(64, 130), range(74, 7), range(84, 2)], Some(9));
        let growth = nic_since(&after, &before);
        assert_eq!(growth, counters(vec![range(64, 30), range(74, 0), range(84, 2)], Some(4)));
        // A driver that was loaded anew counts from 0 on.
        assert_eq!(nic_since(&before, &after).received, [range(64, 0), range(74, 0)]);
    }
}
