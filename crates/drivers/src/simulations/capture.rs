//! Captures of ports in a simulation: segments become the frames that they stand for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use framegauge_fabric::{FabricConfig, HostIndex, PortIndex, Reason};
use framegauge_frames::{Family, Mtu, Picoseconds};
use framegauge_packets::TcpFlags;
use framegauge_packets::build::{
    Addresses, TcpFields, syn_options, tcp_frame, timestamp_options, too_big_frame, udp_frame,
};
use framegauge_packets::pcapng::{Captured, Direction, Section};
use framegauge_simulator::{
    Logged, Outcome, OverlaySpec, Passed, Point, Report, Scenario, ScenarioSpec, Side, TcpSettings,
};

use crate::fabric::watching::SIDES;

/// Bytes of each frame that are kept: all headers with all options.
const SNAP_BYTES: u32 = 128;
/// What an overlay has before them at most: Ethernet, IPv6, UDP, and a header of its own.
const OVERLAY_BYTES: u32 = 70;
/// Of a network in an overlay (RFC 7348, RFC 8926), whose addresses are apart from those of the underlay.
const NETWORK_NUMBER: u8 = 1;
const INSIDE: u32 = 1 << 23;
/// Of every host's windows, so that the largest can be announced.
const WINDOW_SCALE: u8 = 10;
const SERVER_PORT: u16 = 5001;
const FIRST_CLIENT_PORT: u32 = 10_000;
const CLIENT_PORTS: u32 = 50_000;

/// What a capture must know of a scenario.
#[derive(Debug, Clone)]
pub struct Watched {
    points: Vec<Point>,
    mtus: Vec<Mtu>,
    tcp: TcpSettings,
    overlay: Option<OverlaySpec>,
}

impl Watched {
    /// Of a scenario; none if it watches nothing.
    pub fn of(spec: &ScenarioSpec, scenario: &Scenario) -> Option<Watched> {
        let Scenario { watch, mtus, tcp, .. } = scenario;
        let (points, mtus, tcp) = (watch.clone(), mtus.clone(), tcp.clone());
        (!watch.is_empty()).then_some(Watched { points, mtus, tcp, overlay: spec.overlay })
    }

    fn snap_bytes(&self) -> u32 {
        SNAP_BYTES + if self.overlay.is_some() { OVERLAY_BYTES } else { 0 }
    }
}

/// What passed each port that was watched: the name of its file, and the file, pcapng with three interfaces, as a rack's
/// own capture has them: what came there, what left, and what was dropped, with the reason as its comment. Of a host, one
/// interface, as its own capture has it: what it sent, and what came. Times count from the beginning.
pub(super) fn pcapng<'a>(
    outcome: &'a Outcome,
    scenario: &'a Watched,
    network: &'a FabricConfig,
) -> impl Iterator<Item = Result<(String, Vec<u8>), String>> + 'a {
    let names = network.port_names();
    scenario.points.iter().map(move |point| {
        let (name, bytes) = match point {
            Point::Port(port) => {
                let name = &names[usize::from(port.0)];
                (name, of_port(outcome, scenario, *port, name)?)
            }
            Point::Host { name, sends, receives } => {
                let passages = seen_by_host(outcome, network, sends, receives);
                (name, of_host(&passages, scenario, name)?)
            }
        };
        Ok((format!("{}.pcapng", name.replace(['>', '#'], "-")), bytes))
    })
}

/// What passes a host's interface: when, which way, and what.
type Seen<'a> = (Picoseconds, Direction, &'a Passed);

/// What a host sends passes when it comes to its own port; what it receives, when it has come over the link from the last
/// port, if it is not lost there. In the order of time.
fn seen_by_host<'a>(
    outcome: &'a Outcome,
    network: &FabricConfig,
    sends: &[PortIndex],
    receives: &[PortIndex],
) -> Vec<Seen<'a>> {
    let mut passages: Vec<Seen> = Vec::new();
    for passed in &outcome.passed {
        let port = passed.port;
        match passed.side {
            Side::In if sends.contains(&port) => {
                passages.push((passed.segment.time, Direction::Outbound, passed))
            }
            Side::Out if receives.contains(&port) => {
                let link = &network.ports[usize::from(port.0)];
                let time = passed.segment.time + link.delay + link.impairments.phase;
                passages.push((time, Direction::Inbound, passed));
            }
            Side::Dropped(Reason::Loss | Reason::Script | Reason::LinkDown) if receives.contains(&port) => {
                let is_it = |(_, _, other): &Seen| other.side == Side::Out && is_same(other, passed);
                if let Some(place) = passages.iter().rposition(is_it) {
                    passages.remove(place);
                }
            }
            _ => {}
        }
    }
    passages.sort_by_key(|(time, ..)| *time);
    passages
}

/// Whether it is the same segment, at another time.
fn is_same(one: &Passed, other: &Passed) -> bool {
    let at = |passed: &Passed| Logged { time: Picoseconds::ZERO, ..passed.segment.clone() };
    one.port == other.port && one.segment.connection == other.segment.connection && at(one) == at(other)
}

fn of_host(passages: &[Seen], scenario: &Watched, name: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut section = Section::begin(&mut bytes);
    section.interface(&mut bytes, name, scenario.snap_bytes());
    for (time, direction, passed) in passages {
        let mut frame = frame(&passed.segment, passed.hosts, scenario);
        let original_bytes = frame.len() as u32;
        frame.truncate(scenario.snap_bytes() as usize);
        let captured = Captured {
            interface: 0,
            time_nanoseconds: time.as_nanoseconds(),
            original_bytes,
            bytes: &frame,
            direction: Some(*direction),
            comment: None,
        };
        section.packet(&mut bytes, &captured).map_err(|error| error.to_string())?;
    }
    Ok(bytes)
}

fn of_port(outcome: &Outcome, scenario: &Watched, port: PortIndex, name: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut section = Section::begin(&mut bytes);
    for side in SIDES {
        section.interface(&mut bytes, &format!("{name} {side}"), scenario.snap_bytes());
    }
    for passed in outcome.passed.iter().filter(|passed| passed.port == port) {
        let mut frame = frame(&passed.segment, passed.hosts, scenario);
        let original_bytes = frame.len() as u32;
        frame.truncate(scenario.snap_bytes() as usize);
        let (interface, comment) = match passed.side {
            Side::In => (0, None),
            Side::Out => (1, None),
            Side::Dropped(reason) => (2, Some(format!("dropped: {}", reason.name()))),
        };
        let captured = Captured {
            interface,
            time_nanoseconds: passed.segment.time.as_nanoseconds(),
            original_bytes,
            bytes: &frame,
            direction: None,
            comment: comment.as_deref(),
        };
        section.packet(&mut bytes, &captured).map_err(|error| error.to_string())?;
    }
    Ok(bytes)
}

/// A locally administered MAC address.
fn mac(host: HostIndex) -> [u8; 6] {
    let [high, low] = host.0.to_be_bytes();
    [2, 0, 0, 0, high, low]
}

/// 10.0.0.1 is the first host's; in an overlay, whose hosts are numbered apart, 10.128.0.1.
fn address(host: u32, family: Family) -> IpAddr {
    let number = host + 1;
    match family {
        Family::V4 => Ipv4Addr::from(10 << 24 | number).into(),
        Family::V6 => Ipv6Addr::from((0xfd00_u128) << 112 | u128::from(number)).into(),
    }
}

fn frame(segment: &Logged, (from, to): (HostIndex, HostIndex), scenario: &Watched) -> Vec<u8> {
    match segment.report {
        Some(report) => error(segment, report, (from, to), scenario),
        None => match scenario.overlay {
            None => tcp(segment, (from, to), scenario),
            Some(overlay) => wrapped(overlay, &tcp(segment, (from, to), scenario), (from, to), scenario),
        },
    }
}

/// The packet of the underlay that carries a frame of the overlay (RFC 7348 section 5, RFC 8926 section 3).
fn wrapped(
    overlay: OverlaySpec,
    inside: &[u8],
    (from, to): (HostIndex, HostIndex),
    scenario: &Watched,
) -> Vec<u8> {
    let family = scenario.tcp.family;
    let (port, head) = match overlay {
        OverlaySpec::Vxlan => (4789, [0x08, 0, 0, 0]),
        OverlaySpec::Geneve => (6081, [0, 0, 0x65, 0x58]),
    };
    let addresses = Addresses {
        source_mac: mac(from),
        destination_mac: mac(to),
        source: SocketAddr::new(address(from.0.into(), family), port),
        destination: SocketAddr::new(address(to.0.into(), family), port),
    };
    let payload = [&head[..], &[0, 0, NETWORK_NUMBER, 0], inside].concat();
    udp_frame(&addresses, &payload)
}

/// A router's error about a segment from `to` to `from`, of which headers are quoted as far as they are known.
fn error(
    segment: &Logged,
    report: Report,
    (from, to): (HostIndex, HostIndex),
    scenario: &Watched,
) -> Vec<u8> {
    let about = Logged {
        from_client: !segment.from_client,
        bytes: report.payload_bytes,
        flags: TcpFlags::ACK.0,
        acknowledged: 0,
        report: None,
        ..segment.clone()
    };
    let family = scenario.tcp.family;
    let addresses = Addresses {
        source_mac: mac(report.by),
        destination_mac: mac(to),
        source: SocketAddr::new(address(report.by.0.into(), family), 0),
        destination: SocketAddr::new(address(to.0.into(), family), 0),
    };
    let about = tcp(&about, (to, from), scenario);
    too_big_frame(&addresses, report.mtu, &about, segment.bytes as usize)
}

fn tcp(segment: &Logged, (from, to): (HostIndex, HostIndex), scenario: &Watched) -> Vec<u8> {
    let family = scenario.tcp.family;
    let client_port = (FIRST_CLIENT_PORT + segment.connection % CLIENT_PORTS) as u16;
    let ports = match segment.from_client {
        true => (client_port, SERVER_PORT),
        false => (SERVER_PORT, client_port),
    };
    let own = |host: HostIndex| u32::from(host.0) + if scenario.overlay.is_some() { INSIDE } else { 0 };
    let addresses = Addresses {
        source_mac: mac(from),
        destination_mac: mac(to),
        source: SocketAddr::new(address(own(from), family), ports.0),
        destination: SocketAddr::new(address(own(to), family), ports.1),
    };
    let is_syn = segment.flags & TcpFlags::SYN.0 != 0;
    let window = if is_syn { segment.window_bytes.min(65_535) } else { segment.window_bytes >> WINDOW_SCALE };
    let fields = TcpFields {
        seq: segment.sequence as u32,
        ack: segment.acknowledged as u32,
        flags: TcpFlags(segment.flags),
        options: options(segment, (from, to), scenario),
        identification: segment.identification,
        window: Some(window.min(65_535) as u16),
        ecn: segment.ecn,
    };
    tcp_frame(&addresses, &fields, &vec![0; segment.bytes as usize])
}

fn options(segment: &Logged, (from, to): (HostIndex, HostIndex), scenario: &Watched) -> Vec<u8> {
    if segment.flags & TcpFlags::SYN.0 != 0 {
        let mtu = scenario.mtus[usize::from(from.0)].min(scenario.mtus[usize::from(to.0)]);
        return syn_options(mtu.mss(scenario.tcp.family) as u16, WINDOW_SCALE);
    }
    let (own, echo) = segment.stamps;
    let mut options = if scenario.tcp.timestamps { timestamp_options(own, echo) } else { Vec::new() };
    if !segment.blocks.is_empty() {
        options.extend([1, 1, 5, 2 + 8 * segment.blocks.len() as u8]);
        for (begin, end) in &segment.blocks {
            options.extend((*begin as u32).to_be_bytes());
            options.extend((*end as u32).to_be_bytes());
        }
    }
    options
}
