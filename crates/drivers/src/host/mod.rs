//! A host's settings: applied in order, each old value remembered first, all put back at the end.

pub mod aggregates;
pub mod allowed;
pub mod folder;
pub mod groups;
pub mod keeper;
mod limits;
pub mod names;
mod napi;
pub mod nics;
mod overlay;
pub mod processes;
pub mod ready;
pub(crate) mod receive_path;
pub mod settings;
pub(crate) mod shaping;
mod subnet;
pub mod visit;
pub mod watched;

use aggregates::AggregateSizes;
use framegauge_frames::Family;
use framegauge_linux::ethtool::{self, Offload};
pub use framegauge_linux::initial_windows::{InitialWindows, RouteWindows};
use framegauge_linux::qdisc::{self, QdiscReading};
use framegauge_linux::routes::PathMtuException;
use framegauge_linux::rtnetlink::{self, LinkChange};
use framegauge_linux::{OsError, Result, initial_windows, routes, sysctl};
pub use limits::{available_congestion_control, maximum_mtu};
use napi::thread_napi;
pub use nics::Nic;
pub use overlay::Overlay;
use receive_path::{moderate, moderation, receive_on};
use shaping::bucket;
pub use shaping::{SHAPER_LIMIT_BYTES, Shaping};
use std::collections::BTreeMap;
use std::net::IpAddr;
use watched::{Features, Watched};

/// Packets that the transmit queue of a device holds: more than the shaper's burst can ever put there.
const QUEUE_PACKETS: u32 = 4000;
/// What TCP Small Queues lets a flow keep below itself, beyond two aggregates.
const SMALL_QUEUE_BYTES: &str = "32768";
const TSO_BY_RTT: &str = "net.ipv4.tcp_tso_rtt_log";

/// What a host is to be.
#[derive(Debug, Clone)]
pub struct HostSettings {
    /// Its NICs, all alike but for their places and MTUs; at least one.
    pub nics: Vec<Nic>,
    /// It is a router: it takes packets on from one NIC to another.
    pub forwards: bool,
    /// Aggregates go to the device whole.
    pub tso: bool,
    /// The stack merges what it is handed.
    pub gro: bool,
    /// The device completes checksums.
    pub checksum: bool,
    /// The largest aggregates of the NICs, where they are not the devices' own.
    pub aggregates: aggregates::Asked,
    /// Congestion control of the route to the others.
    pub congestion_control: String,
    /// Initial windows of the routes to the others.
    pub windows: InitialWindows,
    /// The shaper, if any.
    pub shaping: Option<Shaping>,
    /// Settings under `/proc/sys`.
    pub sysctls: BTreeMap<String, String>,
    /// CPUs that may work for hosts.
    pub cpus: Vec<usize>,
    /// The receive path runs on a kernel thread of its own (threaded NAPI).
    pub threaded: bool,
    /// The one CPU that takes in what arrives, where the receive path is no thread.
    pub receive_cpu: Option<usize>,
    /// Interrupt moderation by the kernel's own means, in seconds; none where the device sees to it.
    pub moderation_seconds: Option<f64>,
    /// What its programs use instead of the interface itself.
    pub overlay: Option<Overlay>,
}

/// What the kernel says of a host now.
#[derive(Debug, Clone)]
pub struct HostReading {
    /// Its NICs, in order.
    pub nics: Vec<NicReading>,
    /// MTU inside the overlay, where there is one.
    pub overlay_mtu: Option<u32>,
    /// The settings that were applied, as they are now.
    pub sysctls: BTreeMap<String, String>,
    /// Peers whose window and RTT the kernel remembers from earlier connections.
    pub tcp_metrics_entries: usize,
    /// Path MTUs that it remembers of earlier connections.
    pub path_mtu_exceptions: Vec<PathMtuException>,
}

/// What the kernel says of a NIC now.
#[derive(Debug, Clone)]
pub struct NicReading {
    /// Its interface.
    pub interface: String,
    /// MTU in bytes.
    pub mtu: u32,
    /// The device's largest MTU.
    pub maximum_mtu: Option<u32>,
    /// Whether TSO, GSO, GRO, transmit checksums and LRO are on (`Offload::NAMED`).
    pub offloads: BTreeMap<&'static str, bool>,
    /// What it says of the features that are watched.
    pub features: Features,
    /// The largest aggregates.
    pub aggregates: AggregateSizes,
    /// Interrupt moderation in seconds, where it is the kernel's.
    pub moderation_seconds: Option<f64>,
    /// The root queue discipline.
    pub qdisc: QdiscReading,
    /// What the route asks for.
    pub congestion_control_route: Option<String>,
    /// The initial windows of its routes; none where the host is somebody's own, and may have a million of them.
    pub route_windows: Option<Vec<RouteWindows>>,
}

enum Undo {
    Sysctl(String, String),
}

/// Applied settings; [`Applied::restore`] puts back what outlives the namespace's devices.
pub struct Applied {
    settings: HostSettings,
    undo: Vec<Undo>,
    pollers: Vec<i32>,
    watched: Watched,
    adopted: bool,
}

fn quiet_sysctls(settings: &HostSettings) -> BTreeMap<String, String> {
    let mut all = nics::quiet_sysctls(&settings.nics);
    all.extend(nics::forwarding_sysctls(settings.forwards, &settings.nics));
    let mut set = |name: String, value: &str| all.insert(name, value.to_string());
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
        let watched =
            Watched { sysctls: quiet_sysctls(&settings).into_keys().collect(), ..Watched::default() };
        let mut applied = Self { settings, undo: Vec::new(), pollers: Vec::new(), watched, adopted: false };
        match applied.apply_all() {
            Ok(()) => Ok(applied),
            Err(error) => {
                applied.restore();
                Err(error)
            }
        }
    }

    /// A host that is not ours: it is read as it is, and nothing is changed.
    pub fn adopt(interface: String, address: IpAddr, watched: Watched) -> Result<Self> {
        let mtu = rtnetlink::link(&interface)?.mtu;
        let nic = Nic {
            interface,
            hardware: [0; 6],
            mtu,
            address,
            neighbours: Vec::new(),
            routes: Vec::new(),
            bits_per_second: None,
            packet_bytes: None,
        };
        let settings = HostSettings {
            nics: vec![nic],
            forwards: false,
            tso: false,
            gro: false,
            checksum: false,
            aggregates: aggregates::Asked::default(),
            congestion_control: String::new(),
            windows: InitialWindows::default(),
            shaping: None,
            sysctls: BTreeMap::new(),
            cpus: Vec::new(),
            threaded: false,
            receive_cpu: None,
            moderation_seconds: None,
            overlay: None,
        };
        Ok(Self { settings, undo: Vec::new(), pollers: Vec::new(), watched, adopted: true })
    }

    /// Whether nothing was applied: the host is somebody's own.
    pub fn is_adopted(&self) -> bool {
        self.adopted
    }

    fn apply_all(&mut self) -> Result<()> {
        let settings = self.settings.clone();
        for (name, value) in quiet_sysctls(&settings) {
            let old = sysctl::read(&name)?;
            sysctl::write(&name, &value)?;
            self.undo.push(Undo::Sysctl(name, old));
        }
        // What programs of this host send to each other is counted then, a packet for each segment.
        let alone = LinkChange { up: Some(true), aggregate_segments: Some(1), ..LinkChange::default() };
        rtnetlink::change_link("lo", alone)?;
        for nic in &settings.nics {
            self.raise(nic)?;
            nic.address(&settings.congestion_control)?;
        }
        if let Some(overlay) = &settings.overlay {
            let aggregate_bytes = settings.shaping.map(|shaping| shaping.aggregate_bytes);
            overlay.join(&settings.nics[0], aggregate_bytes, &settings.congestion_control)?;
            // Else its aggregates stay whole until the shaper has let them pass, as they do outside.
            let _ = ethtool::set(&overlay.interface, Offload::Gro, settings.gro);
        }
        nics::set_windows(&settings.nics[0], &self.used_interfaces(), settings.windows)?;
        for nic in &settings.nics {
            if settings.threaded {
                self.pollers.extend(thread_napi(&nic.interface, &settings.cpus)?);
            }
            settings.moderation_seconds.map_or(Ok(()), |seconds| moderate(&nic.interface, seconds))?;
        }
        let inside = settings.overlay.iter().map(|overlay| overlay.address);
        settings.nics.iter().map(|nic| nic.address).chain(inside).try_for_each(nics::await_own)
    }

    /// Makes an interface what the settings say, and brings it up.
    fn raise(&self, nic: &Nic) -> Result<()> {
        let (settings, interface) = (&self.settings, nic.interface.as_str());
        let maximum = rtnetlink::link(interface)?.maximum_mtu;
        if maximum.is_some_and(|maximum| nic.mtu > maximum) {
            return Err(OsError::errno(format!("set MTU {} on {interface}", nic.mtu), 34));
        }
        let change = LinkChange {
            aggregate_bytes: settings.shaping.map(|shaping| shaping.aggregate_bytes),
            aggregate_segments: None,
            mtu: Some(nic.mtu),
            address: Some(nic.hardware),
            queue_packets: Some(QUEUE_PACKETS),
            up: None,
        };
        rtnetlink::change_link(interface, change)?;
        settings.aggregates.set(interface)?;
        self.switch_offloads(interface);
        if let Some(cpu) = settings.receive_cpu {
            receive_on(interface, cpu)?;
        }
        // Before the interface is up the kernel can put the shaper in without waiting.
        self.shape(nic)?;
        rtnetlink::change_link(interface, LinkChange { up: Some(true), ..LinkChange::default() })
    }

    /// Scatter-gather goes with checksums, as the kernel couples them, and GSO with TSO.
    fn switch_offloads(&self, interface: &str) {
        let settings = &self.settings;
        for (offload, on) in [
            (Offload::TxChecksum, settings.checksum),
            (Offload::ScatterGather, settings.checksum),
            (Offload::Gso, settings.tso),
            (Offload::Tso, settings.tso),
            (Offload::Gro, settings.gro),
        ] {
            // What the device does not have cannot be switched; the reading afterwards tells.
            let _ = ethtool::set(interface, offload, on);
        }
    }

    fn shape(&self, nic: &Nic) -> Result<()> {
        let Some(mut shaping) = self.settings.shaping else { return Ok(()) };
        shaping.bits_per_second = nic.bits_per_second.unwrap_or(shaping.bits_per_second);
        let family = if nic.address.is_ipv4() { Family::V4 } else { Family::V6 };
        let packet_bytes = nic.packet_bytes.unwrap_or(nic.mtu);
        let tunnel_bytes =
            self.settings.overlay.as_ref().map_or(0, |overlay| nic.mtu.saturating_sub(overlay.mtu));
        qdisc::set_token_bucket(&nic.interface, &bucket(&shaping, packet_bytes, family, tunnel_bytes)?)
    }

    /// Changes the MTU of one NIC, or of all, while the host works. The shaper knows packets by it: it is put in anew, and
    /// drops what waits. What the kernel remembers of paths was found with the old one, and is forgotten.
    pub fn change_mtu(&mut self, nic: Option<usize>, mtu: u32) -> Result<()> {
        if self.settings.overlay.is_some() {
            return Err(OsError::errno("change the MTU of a host in an overlay while it works", 95));
        }
        for place in nics::places(&self.settings.nics, nic)? {
            let nic = &mut self.settings.nics[place];
            (nic.mtu, nic.packet_bytes) = (mtu, None);
            let change = LinkChange { mtu: Some(mtu), ..LinkChange::default() };
            rtnetlink::change_link(&nic.interface, change)?;
            self.shape(&self.settings.nics[place])?;
        }
        routes::forget_path_mtus()
    }

    /// Holds the MTU of the routes by one NIC, or by all, so that this host neither sends nor asks for more; 0: no longer.
    pub fn hold_routes(&self, nic: Option<usize>, mtu: u32) -> Result<()> {
        nics::hold_routes(&self.settings.nics[nics::places(&self.settings.nics, nic)?], mtu)
    }

    /// Lets the shaper of one NIC count by packets of another size. It is put in anew, and drops what waits.
    pub fn change_packets(&mut self, nic: usize, packet_bytes: u32) -> Result<()> {
        let nic = nics::places(&self.settings.nics, Some(nic))?.start;
        self.settings.nics[nic].packet_bytes = Some(packet_bytes);
        self.shape(&self.settings.nics[nic])
    }

    /// Lets the shaper of one NIC pass another rate, if it has one.
    pub fn change_rate(&mut self, nic: usize, bits_per_second: u64) -> Result<()> {
        let nic = nics::places(&self.settings.nics, Some(nic))?.start;
        self.settings.nics[nic].bits_per_second = Some(bits_per_second);
        self.shape(&self.settings.nics[nic])
    }

    /// Reads everything back.
    pub fn read(&self) -> Result<HostReading> {
        let mut sysctls = BTreeMap::new();
        for name in &self.watched.sysctls {
            sysctls.insert(name.clone(), sysctl::read(name)?);
        }
        let nics = self.settings.nics.iter().zip(self.used_interfaces());
        Ok(HostReading {
            nics: nics.map(|(nic, used)| self.read_nic(nic, used)).collect::<Result<_>>()?,
            overlay_mtu: self.settings.overlay.as_ref().map(Overlay::mtu_now).transpose()?,
            sysctls,
            tcp_metrics_entries: framegauge_linux::genetlink::tcp_metrics_entries()?,
            path_mtu_exceptions: routes::path_mtu_exceptions()?,
        })
    }

    fn read_nic(&self, nic: &Nic, used: &str) -> Result<NicReading> {
        let interface = nic.interface.as_str();
        let link = rtnetlink::link(interface)?;
        let on = |(word, offload)| (word, ethtool::get(interface, offload).unwrap_or(false));
        let version = nic.version();
        let windows = (!self.adopted).then(|| initial_windows::read(used, version));
        let moderated = self.settings.moderation_seconds;
        Ok(NicReading {
            interface: interface.to_string(),
            mtu: link.mtu,
            maximum_mtu: link.maximum_mtu,
            aggregates: aggregates::read(interface)?,
            offloads: Offload::NAMED.into_iter().map(on).collect(),
            features: self.watched.features_of(interface)?,
            moderation_seconds: moderated.map(|_| moderation(interface)).transpose()?,
            qdisc: qdisc::read(interface)?,
            congestion_control_route: rtnetlink::route_congestion_control(used, version)?,
            route_windows: windows.transpose()?,
        })
    }

    /// The interfaces of this host, by which its packets leave.
    pub fn interfaces(&self) -> Vec<&str> {
        self.settings.nics.iter().map(|nic| nic.interface.as_str()).collect()
    }

    /// The interfaces that its programs use: that of the overlay, where there is one.
    pub fn used_interfaces(&self) -> Vec<&str> {
        match &self.settings.overlay {
            None => self.interfaces(),
            Some(overlay) => vec![&overlay.interface],
        }
    }

    /// The kernel threads that poll its interfaces; none without threaded NAPI.
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
