//! Counters of this machine and of this network namespace.

pub mod cpu;
pub mod handshakes;
pub mod held;
pub mod rivals;
pub mod sockets;
pub mod totals;
pub mod waits;

use framegauge_linux::error::Context;
use framegauge_linux::{Result, clock, rtnetlink};
pub use framegauge_metering::CpuSeconds;
pub use framegauge_metering::NetworkSoftirqs;
use framegauge_metering::{CpuTimes, parse_netstat, parse_snmp, parse_snmp6, parse_softirqs, parse_stat};
use std::collections::BTreeMap;
use std::fs;

/// Counters of a host's interfaces together and of the protocols above them.
#[derive(Debug, Clone)]
pub struct HostCounters {
    /// The interfaces'.
    pub interface: rtnetlink::LinkStatistics,
    /// Packets that went from the host to itself.
    pub loopback_packets: u64,
    /// The protocols', named as `nstat` names them.
    pub nstat: BTreeMap<String, i64>,
}

fn text(path: &str) -> Result<String> {
    fs::read_to_string(path).during(format!("read {path}"))
}

fn malformed(error: impl std::fmt::Display) -> framegauge_linux::OsError {
    framegauge_linux::OsError {
        operation: "read the kernel's counters".into(),
        source: std::io::Error::other(error.to_string()),
    }
}

/// Reads the counters of this thread's network namespace, the interfaces' added up.
pub fn host(interfaces: &[&str]) -> Result<HostCounters> {
    let nstat = protocol_counters()?;
    let mut interface = rtnetlink::LinkStatistics::default();
    for name in interfaces {
        interface += rtnetlink::link(name)?.statistics;
    }
    // Within the host: what its programs send to each other is counted by nstat, too.
    let loopback_packets = rtnetlink::link("lo").map_or(0, |link| link.statistics.tx_packets);
    Ok(HostCounters { interface, loopback_packets, nstat })
}

/// The protocols' counters of this thread's network namespace, named as `nstat` names them.
pub fn protocol_counters() -> Result<BTreeMap<String, i64>> {
    let mut nstat = parse_snmp(&text("/proc/thread-self/net/snmp")?).map_err(malformed)?;
    nstat.extend(parse_netstat(&text("/proc/thread-self/net/netstat")?).map_err(malformed)?);
    if let Ok(six) = fs::read_to_string("/proc/thread-self/net/snmp6") {
        nstat.extend(parse_snmp6(&six).map_err(malformed)?);
    }
    Ok(nstat)
}

/// CPU states of every CPU at one moment, and what this process has used.
#[derive(Debug, Clone)]
pub struct CpuSnapshot {
    time_nanoseconds: u64,
    process_nanoseconds: u64,
    cpus: BTreeMap<u32, CpuTimes>,
    softirqs: BTreeMap<u32, NetworkSoftirqs>,
}

/// What happened between two snapshots.
#[derive(Debug, Clone)]
pub struct CpuInterval {
    /// Seconds between the two.
    pub elapsed_seconds: f64,
    /// Seconds on a CPU of this process, all threads.
    pub process_seconds: f64,
    /// How each CPU spent its time.
    pub cpus: Vec<(u32, CpuSeconds)>,
    /// How often each CPU ran the network's softirqs.
    pub softirqs: Vec<(u32, NetworkSoftirqs)>,
}

/// Reads the CPU states.
pub fn cpu_snapshot() -> Result<CpuSnapshot> {
    let cpus = parse_stat(&text("/proc/stat")?).map_err(malformed)?;
    let softirqs = parse_softirqs(&text("/proc/softirqs")?).map_err(malformed)?;
    let (time_nanoseconds, process_nanoseconds) =
        (clock::monotonic_nanoseconds(), clock::process_cpu_nanoseconds());
    Ok(CpuSnapshot { time_nanoseconds, process_nanoseconds, cpus, softirqs })
}

impl CpuSnapshot {
    /// The CPUs that are online.
    pub fn cpus(&self) -> impl Iterator<Item = u32> {
        self.cpus.keys().copied()
    }

    /// What all CPUs together have done since the machine was started.
    pub fn totals(&self) -> (CpuSeconds, NetworkSoftirqs) {
        let ticks = clock::ticks_per_second();
        let cpu = self.cpus.values().map(|entry| entry.seconds(ticks)).sum();
        let softirqs = self.softirqs.values().fold(NetworkSoftirqs::default(), |sum, entry| {
            NetworkSoftirqs { receive: sum.receive + entry.receive, transmit: sum.transmit + entry.transmit }
        });
        (cpu, softirqs)
    }

    /// What happened since `earlier`.
    pub fn since(&self, earlier: &Self) -> CpuInterval {
        let ticks = clock::ticks_per_second();
        let cpus = self.cpus.iter().filter_map(|(cpu, later)| {
            earlier.cpus.get(cpu).map(|earlier| (*cpu, later.since(earlier).seconds(ticks)))
        });
        let softirqs = self
            .softirqs
            .iter()
            .filter_map(|(cpu, later)| earlier.softirqs.get(cpu).map(|earlier| (*cpu, later.since(earlier))));
        CpuInterval {
            elapsed_seconds: (self.time_nanoseconds - earlier.time_nanoseconds) as f64 * 1e-9,
            process_seconds: (self.process_nanoseconds - earlier.process_nanoseconds) as f64 * 1e-9,
            cpus: cpus.collect(),
            softirqs: softirqs.collect(),
        }
    }
}
