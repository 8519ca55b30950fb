//! What a host has counted since it began: one reading, to be compared with others of the same life.

use crate::meters::{self, CpuSeconds, NetworkSoftirqs};
use crate::readings;
use framegauge_linux::rtnetlink::{self, LinkStatistics};
use framegauge_linux::{OsError, Result, clock, namespace};
use framegauge_metering::Counters;

/// The counters of a host at one moment.
#[derive(Debug, Clone)]
pub struct Totals {
    /// The same as long as the counters go on: the boot, and the network namespace in it.
    pub life: String,
    /// Those of each interface.
    pub interfaces: Vec<Counted>,
    /// How the CPUs of the machine together have spent their time.
    pub cpu: CpuSeconds,
    /// How often they worked through the network's softirqs.
    pub softirqs: NetworkSoftirqs,
    /// What the protocols counted, named as `nstat` names it.
    pub counters: Counters,
}

/// An interface and its counters.
#[derive(Debug, Clone)]
pub struct Counted {
    /// Its name.
    pub name: String,
    /// Its index, which a new interface of that name does not have.
    pub index: u32,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Packets and bytes, as the driver counts them.
    pub statistics: LinkStatistics,
}

/// Reads them in this thread's network namespace, of the interfaces that are named, or of the usual ones
/// (`readings::interfaces`). What is not there, or goes while it is read, is left out.
pub fn totals(names: &[String]) -> Result<Totals> {
    let rows = readings::interfaces(names)?.into_iter().filter_map(|about| {
        let link = match rtnetlink::link(&about.interface.name) {
            Err(error) if error.code() == NO_DEVICE => return None,
            link => link,
        };
        Some(link.map(|link| Counted {
            name: about.interface.name,
            index: about.interface.index,
            mtu: link.mtu,
            statistics: link.statistics,
        }))
    });
    let interfaces = rows.collect::<Result<Vec<Counted>>>()?;
    let (cpu, softirqs) = meters::cpu_snapshot()?.totals();
    Ok(Totals { life: life()?, interfaces, cpu, softirqs, counters: meters::protocol_counters()? })
}

const NO_DEVICE: i32 = 19;

fn life() -> Result<String> {
    Ok(format!("{}:{}", clock::boot()?, network()?))
}

/// A number of this network namespace that no other has had since the boot; before Linux 5.14 one that another may get
/// once this has ended.
fn network() -> Result<u64> {
    namespace::cookie().or_else(|_: OsError| namespace::inode())
}

#[cfg(test)]
mod tests {
    use super::*;
    use framegauge_linux::namespace::Network;

    #[test]
    fn counters_grow_within_a_life_and_another_network_is_another_life() {
        let first = totals(&["lo".into()]).expect("the kernel answers");
        assert_eq!((first.interfaces.len(), first.interfaces[0].index), (1, 1));
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let own = socket.local_addr().expect("its address");
        for _ in 0..100 {
            socket.send_to(&[0; 1000], own).expect("a datagram to itself");
        }
        let second = totals(&["lo".into(), "not there".into()]).expect("the kernel answers");
        assert_eq!((second.life.as_str(), second.interfaces.len()), (first.life.as_str(), 1));
        let grown = |of: fn(&Totals) -> u64| of(&second) - of(&first);
        assert!(grown(|totals| totals.interfaces[0].statistics.tx_packets) >= 100);
        assert!(grown(|totals| totals.interfaces[0].statistics.tx_bytes) >= 100_000);
        let sent = |totals: &Totals| totals.counters.get("UdpOutDatagrams").copied().unwrap_or(0);
        assert!(sent(&second) - sent(&first) >= 100);
        assert!(second.cpu.user >= first.cpu.user && second.cpu.idle > 0.0);
        let lives: Result<Vec<String>> = (0..2).map(|_| Network::fresh()?.run(life)).collect();
        match lives {
            Ok(lives) => assert!(lives[0] != lives[1] && !lives.contains(&first.life), "{lives:?}"),
            Err(error) => {
                assert!(std::env::var("CI").as_deref() != Ok("true"), "{error}");
                eprintln!("not run: needs the right to make namespaces: {error}");
            }
        }
    }
}
