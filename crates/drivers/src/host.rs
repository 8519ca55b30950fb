//! A host's settings: applied in order, each old value remembered first, all put back at the end.

use framegauge_frames::{Family, Mtu, shaper_size_table};
use framegauge_linux::ethtool::{self, Offload};
use framegauge_linux::qdisc::{self, QdiscReading, TokenBucket};
use framegauge_linux::rtnetlink::{self, LinkChange};
use framegauge_linux::{OsError, Result, sched, sysctl};
use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Packets that the transmit queue of a device holds: more than the shaper's burst can ever put there.
const QUEUE_PACKETS: u32 = 4000;
/// Bytes that may wait in the shaper, more than TCP Small Queues lets any sensible number of flows queue.
pub const SHAPER_LIMIT_BYTES: u32 = 32 << 20;

/// What TCP Small Queues lets a flow keep below itself, beyond two aggregates.
const SMALL_QUEUE_BYTES: &str = "32768";
const TSO_BY_RTT: &str = "net.ipv4.tcp_tso_rtt_log";

/// A packet that arrives interrupts programs on a real host, so the thread that stands for that interrupt
/// goes before them; it stays below the fabric.
const RECEIVE_PRIORITY: i32 = 5;

/// The shaper that bounds the sender's queue.
#[derive(Debug, Clone, Copy)]
pub struct Shaping {
    /// Bits a second, counted in bytes on the wire.
    pub bits_per_second: u64,
    /// Burst in bytes.
    pub burst_bytes: u32,
    /// Bytes that may wait.
    pub limit_bytes: u32,
    /// Largest aggregate that TCP builds; one must fit the burst with room for a timer that is late.
    pub aggregate_bytes: u32,
}

/// What a host is to be.
#[derive(Debug, Clone)]
pub struct HostSettings {
    /// Its interface.
    pub interface: String,
    /// MTU in bytes.
    pub mtu: u32,
    /// Its Ethernet address.
    pub hardware: [u8; 6],
    /// Its address.
    pub address: IpAddr,
    /// Every other host.
    pub neighbours: Vec<(IpAddr, [u8; 6])>,
    /// Segmentation, receive and checksum offloads.
    pub offloads: bool,
    /// Congestion control of the route to the others.
    pub congestion_control: String,
    /// The shaper, if any.
    pub shaping: Option<Shaping>,
    /// Settings under `/proc/sys`.
    pub sysctls: BTreeMap<String, String>,
    /// CPUs that may work for hosts.
    pub cpus: Vec<usize>,
    /// The receive path runs on a kernel thread of its own (threaded NAPI).
    pub threaded: bool,
}

/// What the kernel says of a host now.
#[derive(Debug, Clone)]
pub struct HostReading {
    /// Its interface.
    pub interface: String,
    /// MTU in bytes.
    pub mtu: u32,
    /// The device's largest MTU.
    pub maximum_mtu: Option<u32>,
    /// TSO, GSO, GRO and transmit checksums.
    pub offloads: [bool; 4],
    /// The root queue discipline.
    pub qdisc: QdiscReading,
    /// What the route asks for.
    pub congestion_control_route: Option<String>,
    /// The settings that were applied, as they are now.
    pub sysctls: BTreeMap<String, String>,
    /// Peers whose window and RTT the kernel remembers from earlier connections.
    pub tcp_metrics_entries: usize,
}

enum Undo {
    Sysctl(String, String),
}

/// Applied settings; [`Applied::restore`] puts back what outlives the namespace's devices.
pub struct Applied {
    settings: HostSettings,
    undo: Vec<Undo>,
    pollers: Vec<i32>,
}

/// The on-link network of `address`, with its prefix length.
fn network(address: IpAddr) -> (IpAddr, u8) {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            (Ipv4Addr::new(a, b, c, 0).into(), 24)
        }
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            (Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into(), 64)
        }
    }
}

/// The kernel's own background traffic is off before the interface comes up: only what a workload
/// sends may cross the wire, or conservation could not be checked.
fn quiet_sysctls(settings: &HostSettings) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut set = |name: String, value: &str| all.insert(name, value.to_string());
    let six = u8::from(settings.address.is_ipv4()).to_string();
    set(format!("net.ipv6.conf.{}.disable_ipv6", settings.interface), &six);
    if settings.address.is_ipv6() {
        for (name, value) in
            [("accept_dad", "0"), ("router_solicitations", "0"), ("accept_ra", "0"), ("addr_gen_mode", "1")]
        {
            set(format!("net.ipv6.conf.{}.{name}", settings.interface), value);
        }
    }
    set("net.ipv4.tcp_no_metrics_save".into(), "1");
    if settings.shaping.is_some() {
        set("net.ipv4.tcp_limit_output_bytes".into(), SMALL_QUEUE_BYTES);
        if sysctl::read(TSO_BY_RTT).is_ok() {
            // With an RTT this short TCP would build the largest aggregates however slow the flow, and
            // eight flows would queue eight times two of them.
            set(TSO_BY_RTT.into(), "0");
        }
    }
    all.extend(settings.sysctls.clone());
    all
}

impl Applied {
    /// Applies `settings`; on failure everything that was changed is put back.
    pub fn apply(settings: HostSettings) -> Result<Self> {
        let mut applied = Self { settings, undo: Vec::new(), pollers: Vec::new() };
        match applied.apply_all() {
            Ok(()) => Ok(applied),
            Err(error) => {
                applied.restore();
                Err(error)
            }
        }
    }

    fn apply_all(&mut self) -> Result<()> {
        let settings = self.settings.clone();
        let interface = settings.interface.as_str();
        for (name, value) in quiet_sysctls(&settings) {
            let old = sysctl::read(&name)?;
            sysctl::write(&name, &value)?;
            self.undo.push(Undo::Sysctl(name, old));
        }
        let maximum = rtnetlink::link(interface)?.maximum_mtu;
        if maximum.is_some_and(|maximum| settings.mtu > maximum) {
            return Err(OsError::errno(format!("set MTU {} on {interface}", settings.mtu), 34));
        }
        let change = LinkChange {
            aggregate_bytes: settings.shaping.map(|shaping| shaping.aggregate_bytes),
            mtu: Some(settings.mtu),
            address: Some(settings.hardware),
            queue_packets: Some(QUEUE_PACKETS),
            up: None,
        };
        rtnetlink::change_link(interface, change)?;
        for offload in [Offload::ScatterGather, Offload::TxChecksum, Offload::Gso, Offload::Tso, Offload::Gro]
        {
            // What the device does not have cannot be switched; the reading afterwards tells.
            let _ = ethtool::set(interface, offload, settings.offloads);
        }
        rtnetlink::change_link("lo", LinkChange { up: Some(true), ..LinkChange::default() })?;
        rtnetlink::change_link(interface, LinkChange { up: Some(true), ..LinkChange::default() })?;
        self.shape()?;
        let (net, prefix) = network(settings.address);
        rtnetlink::add_address(interface, settings.address, prefix)?;
        rtnetlink::set_link_route(interface, net, prefix, &settings.congestion_control)?;
        for (address, hardware) in &settings.neighbours {
            rtnetlink::add_neighbour(interface, *address, *hardware)?;
        }
        if settings.threaded {
            self.pollers = thread_napi(interface, &settings.cpus)?;
        }
        Ok(())
    }

    fn shape(&self) -> Result<()> {
        let Some(shaping) = self.settings.shaping else { return Ok(()) };
        let family = if self.settings.address.is_ipv4() { Family::V4 } else { Family::V6 };
        let mtu = Mtu::new(self.settings.mtu).map_err(|error| OsError {
            operation: "shape".into(),
            source: std::io::Error::other(error.to_string()),
        })?;
        let bucket = TokenBucket {
            bits_per_second: shaping.bits_per_second,
            burst_bytes: shaping.burst_bytes,
            limit_bytes: shaping.limit_bytes,
            sizes: shaper_size_table(mtu, family),
        };
        qdisc::set_token_bucket(&self.settings.interface, &bucket)
    }

    /// Reads everything back.
    pub fn read(&self) -> Result<HostReading> {
        let interface = self.settings.interface.as_str();
        let link = rtnetlink::link(interface)?;
        let on = |offload| ethtool::get(interface, offload).unwrap_or(false);
        let version = if self.settings.address.is_ipv4() { 4 } else { 6 };
        let mut sysctls = BTreeMap::new();
        for name in quiet_sysctls(&self.settings).into_keys() {
            let value = sysctl::read(&name)?;
            sysctls.insert(name, value);
        }
        Ok(HostReading {
            interface: interface.to_string(),
            mtu: link.mtu,
            maximum_mtu: link.maximum_mtu,
            offloads: [on(Offload::Tso), on(Offload::Gso), on(Offload::Gro), on(Offload::TxChecksum)],
            qdisc: qdisc::read(interface)?,
            congestion_control_route: rtnetlink::route_congestion_control(interface, version)?,
            sysctls,
            tcp_metrics_entries: framegauge_linux::genetlink::tcp_metrics_entries()?,
        })
    }

    /// The interface of this host.
    pub fn interface(&self) -> &str {
        &self.settings.interface
    }

    /// The kernel threads that poll its interface; none without threaded NAPI.
    pub fn pollers(&self) -> &[i32] {
        &self.pollers
    }

    /// The CPUs of this host.
    pub fn cpus(&self) -> &[usize] {
        &self.settings.cpus
    }

    /// Puts the old values back, the last change first. Goes on past a failure and tells it.
    pub fn restore(&mut self) {
        while let Some(Undo::Sysctl(name, value)) = self.undo.pop() {
            // The device may be gone, and its settings with it.
            if let Err(error) = sysctl::write(&name, &value)
                && error.source.kind() != std::io::ErrorKind::NotFound
            {
                eprintln!("framegauge-agent: {error}");
            }
        }
    }
}

/// Moves the receive path of `interface` to a kernel thread and binds that to `cpus`; the thread's id.
fn thread_napi(interface: &str, cpus: &[usize]) -> Result<Vec<i32>> {
    // Another rack's interfaces have the same names, in other namespaces: ours are the new ones.
    let others = napi_threads(interface);
    let path = format!("/sys/class/net/{interface}/threaded");
    fs::write(&path, "1").map_err(|source| OsError { operation: format!("write {path}"), source })?;
    let mut ours = napi_threads(interface);
    ours.retain(|thread| !others.contains(thread));
    for thread in &ours {
        sched::bind(*thread, cpus)?;
        // Where this is refused the receive path waits for a slice like any program; lateness then tells.
        let _ = sched::real_time(*thread, RECEIVE_PRIORITY);
    }
    Ok(ours)
}

/// The kernel threads that poll `interface`.
fn napi_threads(interface: &str) -> Vec<i32> {
    let prefix = format!("napi/{interface}-");
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with(&prefix))
        })
        .collect()
}

/// Whether this kernel takes our shaper; `interface` is a device made for the question.
pub(crate) fn try_shaper(interface: &str) -> Result<()> {
    let mtu = Mtu::new(1500).map_err(|error| OsError {
        operation: "shape".into(),
        source: std::io::Error::other(error.to_string()),
    })?;
    let bucket = TokenBucket {
        bits_per_second: 1_000_000_000,
        burst_bytes: 70_000,
        limit_bytes: SHAPER_LIMIT_BYTES,
        sizes: shaper_size_table(mtu, Family::V4),
    };
    qdisc::set_token_bucket(interface, &bucket)
}

/// The congestion controls that this kernel has.
pub fn available_congestion_control() -> Result<Vec<String>> {
    let text = sysctl::read("net.ipv4.tcp_available_congestion_control")?;
    Ok(text.split(' ').map(String::from).collect())
}

/// The largest MTU that a device takes, where it says so.
pub fn maximum_mtu(interface: &str) -> Result<Option<u32>> {
    rtnetlink::link(interface).map(|link| link.maximum_mtu)
}
