//! Runs the searches of many paths at once over the flows' sockets, paced.

use super::handshake::{self, TcpFinding};
use super::sockets::{FlowSockets, Heard};
use framegauge_frames::{FRAME_OVERHEAD_BYTES, Family, WIRE_OVERHEAD_BYTES};
use framegauge_linux::clock::monotonic_nanoseconds;
use framegauge_linux::udp::{Sent, Way, way};
use framegauge_linux::udp_error::{Refusal, Report as Said};
use framegauge_linux::{OsError, Result, links, routes};
use framegauge_pathmtu::{Config, Datagram, MessageError, Next, Probe, Report, Search, Token, Told};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Packets of a path before the next has its turn, and before what has arrived is looked at.
const TURN: usize = 16;
/// Nobody waits longer than this for a cancellation.
const LISTEN: Duration = Duration::from_millis(50);
/// What may be sent in one piece after a pause, however slow the pacing.
const BURST_NANOSECONDS: u64 = 2_000_000;
/// Bytes that all paths together may have under way: what a host sends faster than others take in is lost.
const IN_FLIGHT_BYTES: u64 = 768 * 1024;
/// How long a path waits whose packets are held back, unless something arrives.
const HELD: Duration = Duration::from_micros(500);
/// How long a full socket may take.
const ROOM_ATTEMPTS: u32 = 20;
const ROOM_NANOSECONDS: u64 = 200_000;

/// A path to search.
#[derive(Debug, Clone, Copy)]
pub struct PathSpec {
    /// An address of this host.
    pub source: IpAddr,
    /// Where the far end answers.
    pub destination: SocketAddr,
    /// Where it listens for TCP.
    pub tcp_port: Option<u16>,
}

/// What to do.
#[derive(Debug, Clone)]
pub struct Order {
    /// The paths.
    pub paths: Vec<PathSpec>,
    /// What to find out on each.
    pub search: Config,
    /// The secret.
    pub token: Token,
    /// Wire rate that all paths together may take; none: as fast as it goes.
    pub bits_per_second: Option<u64>,
}

/// What was found on a path.
#[derive(Debug, Clone)]
pub struct PathOutcome {
    /// By flow.
    pub report: Report,
    /// Of each flow.
    pub source_ports: Vec<u16>,
    /// What the kernel believed before.
    pub way: Option<Way>,
    /// The interface that packets from this source leave by: rules may choose another than for other sources.
    pub interface: Option<String>,
    /// Time from the first probe to the last verdict.
    pub seconds: f64,
    /// The largest probe that arrived, or came back, in pieces.
    pub fragmented_bytes: Option<u32>,
    /// The largest echo that came back shorter than it was sent; none: all came back whole.
    pub cut_bytes: Option<u32>,
    /// What a TCP connection showed.
    pub tcp: Option<TcpFinding>,
    /// Why packets could not be sent, or what routers said besides "too big".
    pub said: Option<String>,
}

/// A path at work.
struct Path {
    spec: PathSpec,
    search: Search,
    way: Option<Way>,
    interface: Option<String>,
    ended: Option<Duration>,
    fragmented_bytes: Option<u32>,
    cut_bytes: Option<u32>,
    said: Option<String>,
}

/// A token bucket on wire bytes.
struct Pace {
    bits_per_second: Option<u64>,
    /// Until when the line is taken, in nanoseconds.
    taken: u64,
}

impl Pace {
    /// When the next packet may go.
    fn ready(&self) -> Duration {
        Duration::from_nanos(self.taken.saturating_sub(BURST_NANOSECONDS))
    }

    fn take(&mut self, now: Duration, ip_bytes: u32) {
        let Some(rate) = self.bits_per_second else { return };
        let wire = u64::from(ip_bytes + FRAME_OVERHEAD_BYTES + WIRE_OVERHEAD_BYTES);
        let wire_time = wire * 8 * 1_000_000_000 / rate.max(1);
        self.taken = self.taken.max(now.as_nanos() as u64) + wire_time;
    }
}

/// Searches all paths; `cancelled` is asked now and then, `progress` told the share that has ended.
pub fn run(
    order: &Order,
    sockets: &mut FlowSockets,
    cancelled: &dyn Fn() -> bool,
    progress: &dyn Fn(f64),
) -> Result<Vec<PathOutcome>> {
    for path in &order.paths {
        sockets.open(path.source, usize::from(order.search.flows))?;
    }
    search(order, sockets, &|to| handshake::run(to, &order.token), cancelled, progress)
}

/// Searches all paths over flows that are open; `connect` tries TCP beside.
pub(crate) fn search(
    order: &Order,
    sockets: &FlowSockets,
    connect: &(dyn Fn(SocketAddr) -> TcpFinding + Sync),
    cancelled: &dyn Fn() -> bool,
    progress: &dyn Fn(f64),
) -> Result<Vec<PathOutcome>> {
    let begun = monotonic_nanoseconds();
    let all = links::interfaces().unwrap_or_default();
    let interface = |spec: &PathSpec| {
        let index = routes::interface_to(spec.destination.ip(), Some(spec.source)).ok().flatten()?;
        all.iter().find(|interface| interface.index == index).map(|interface| interface.name.clone())
    };
    let new = |spec: &PathSpec| Path {
        spec: *spec,
        search: Search::new(order.search),
        way: way(spec.source, spec.destination.ip()).ok(),
        interface: interface(spec),
        ended: None,
        fragmented_bytes: None,
        cut_bytes: None,
        said: None,
    };
    let mut work = Work {
        order,
        sockets,
        paths: order.paths.iter().map(new).collect(),
        pace: Pace { bits_per_second: order.bits_per_second, taken: 0 },
        payload: padding(),
        begun,
        first: 0,
        slowest: Duration::ZERO,
    };
    let tcp = std::thread::scope(|scope| {
        let connections: Vec<_> = order
            .paths
            .iter()
            .map(|path| {
                let to = path.tcp_port.map(|port| SocketAddr::new(path.destination.ip(), port));
                to.map(|to| scope.spawn(move || connect(to)))
            })
            .collect();
        work.run(cancelled, progress)?;
        let join = |thread: std::thread::ScopedJoinHandle<'_, TcpFinding>| thread.join().ok();
        Ok(connections.into_iter().map(|thread| thread.and_then(join)).collect::<Vec<_>>())
    })?;
    let flows = usize::from(order.search.flows);
    let outcome = |(path, tcp): (Path, Option<TcpFinding>)| PathOutcome {
        report: path.search.report(),
        source_ports: (0..flows).map(|flow| sockets.port(path.spec.source, flow)).collect(),
        way: path.way,
        interface: path.interface,
        seconds: path.ended.unwrap_or_default().as_secs_f64(),
        fragmented_bytes: path.fragmented_bytes,
        cut_bytes: path.cut_bytes,
        tcp,
        said: path.said,
    };
    Ok(work.paths.into_iter().zip(tcp).map(outcome).collect())
}

/// Bytes that no link can compress: a probe must have its size on every link.
pub(crate) fn padding() -> Vec<u8> {
    let mut state: u32 = 0x9e37_79b9;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    (0..65_536).map(|_| next()).collect()
}

/// The number of a probe: path, flow, and the search's own.
fn id(path: usize, flow: u16, number: u32) -> u64 {
    (path as u64) << 48 | u64::from(flow) << 32 | u64::from(number)
}

struct Work<'a> {
    order: &'a Order,
    sockets: &'a FlowSockets,
    paths: Vec<Path>,
    pace: Pace,
    payload: Vec<u8>,
    begun: u64,
    /// The path whose turn it is.
    first: usize,
    /// The longest that any answer took.
    slowest: Duration,
}

impl Work<'_> {
    fn now(&self) -> Duration {
        Duration::from_nanos(monotonic_nanoseconds() - self.begun)
    }

    fn run(&mut self, cancelled: &dyn Fn() -> bool, progress: &dyn Fn(f64)) -> Result<()> {
        let sockets = self.sockets;
        let mut listening = sockets.listen()?;
        let mut last_share = 0.0;
        loop {
            if cancelled() {
                return Err(OsError::errno("search for path MTUs", 125));
            }
            let Some(until) = self.turn() else { return Ok(()) };
            let patience = until.saturating_sub(self.now()).min(LISTEN);
            listening
                .hear(patience.as_nanos() as u64, |source, flow, event| self.heard(source, flow, event))?;
            let ended = self.paths.iter().filter(|path| path.ended.is_some()).count() as f64;
            let share = ended / self.paths.len() as f64;
            if share > last_share {
                last_share = share;
                progress(share);
            }
        }
    }

    /// Every path sends what it may; until when to wait, or none if all have ended.
    fn turn(&mut self) -> Option<Duration> {
        let mut until: Option<Duration> = None;
        let mut room =
            IN_FLIGHT_BYTES.saturating_sub(self.paths.iter().map(|path| path.search.in_flight_bytes()).sum());
        self.first = (self.first + 1) % self.paths.len().max(1);
        for place in 0..self.paths.len() {
            let index = (self.first + place) % self.paths.len();
            for turn in 0..=TURN {
                let now = self.now();
                let path = &mut self.paths[index];
                if path.ended.is_some() {
                    break;
                }
                path.search.on_answer_elsewhere(self.slowest);
                let ready = self.pace.ready();
                let may_send = turn < TURN && room > 0 && ready <= now;
                match path.search.poll(now, may_send) {
                    Next::Send { flow, number, bytes } => {
                        room = room.saturating_sub(u64::from(bytes));
                        self.send(index, flow, number, bytes);
                    }
                    Next::Wait(time) => {
                        // Its turn comes again once others had theirs, the line is free, or something has arrived.
                        let again = if turn == TURN { now } else { ready.max(now + HELD) };
                        let time = if time <= now { again } else { time };
                        until = Some(until.map_or(time, |until| until.min(time)));
                        break;
                    }
                    Next::Done => path.ended = Some(now),
                }
            }
        }
        until
    }

    fn send(&mut self, index: usize, flow: u16, number: u32, bytes: u32) {
        let PathSpec { source, destination, .. } = self.paths[index].spec;
        let Some((socket, carrier)) = self.sockets.carried(source, usize::from(flow)) else { return };
        let family = if source.is_ipv6() { Family::V6 } else { Family::V4 };
        let probe = Probe { id: id(index, flow, number), ip_bytes: bytes };
        let packet = carrier.write(&probe, &self.order.token, family, &mut self.payload);
        self.pace.take(Duration::from_nanos(monotonic_nanoseconds() - self.begun), bytes);
        for _ in 0..ROOM_ATTEMPTS {
            match socket.send(destination, packet, None) {
                Sent::Done | Sent::Dropped => return,
                Sent::Full => framegauge_linux::clock::sleep(ROOM_NANOSECONDS),
                Sent::TooBig => return self.too_big_here(index, flow, number),
                // Not sent is not delivered: to the search it is silence.
                Sent::Failed(error) => {
                    self.paths[index].said.get_or_insert_with(|| error.to_string());
                    return;
                }
            }
        }
    }

    /// This host's own interface refuses the packet; its error queue names the MTU.
    fn too_big_here(&mut self, index: usize, flow: u16, number: u32) {
        let source = self.paths[index].spec.source;
        let Some(socket) = self.sockets.get(source, usize::from(flow)) else { return };
        let mut mtu_bytes = None;
        while let Some(report) = socket.report() {
            match report.refusal {
                Refusal::TooBig(mtu) if report.by.is_none() => mtu_bytes = mtu,
                _ => self.said(source, usize::from(flow), &report),
            }
        }
        let now = self.now();
        self.paths[index].search.on_too_big(now, flow, number, Told { by: None, mtu_bytes });
    }

    fn heard(&mut self, source: IpAddr, flow: usize, event: Heard<'_>) {
        let now = self.now();
        let datagram = match event {
            Heard::Datagram(datagram) => datagram,
            Heard::Report(report) => return self.said(source, flow, report),
        };
        let Some((_, carrier)) = self.sockets.carried(source, flow) else { return };
        let received = Datagram {
            kept: datagram.payload(),
            bytes: datagram.bytes,
            fragment_bytes: datagram.fragment_bytes,
        };
        let Ok(answer) = carrier.answer(&self.order.token, received) else { return };
        let Some(path) = self.paths.get_mut((answer.id >> 48) as usize) else { return };
        // Only the far end itself is believed, on the flow that asked.
        if path.spec.source == source && path.spec.destination == datagram.from && flow == flow_of(answer.id)
        {
            let number = answer.id as u32;
            let took =
                path.search.on_delivered(now, flow as u16, number, answer.ip_bytes, answer.fragment_bytes);
            self.slowest = self.slowest.max(took.unwrap_or_default());
            path.cut_bytes = path.cut_bytes.max(answer.cut_bytes);
            let pieces = answer.fragment_bytes.map(|_| answer.ip_bytes);
            path.fragmented_bytes = path.fragmented_bytes.max(pieces);
            // A late answer may take a verdict back while others still search.
            path.ended = None;
        }
    }

    /// What was said of a packet that was sent on a flow.
    fn said(&mut self, source: IpAddr, flow: usize, report: &Said) {
        let now = self.now();
        let is_own = |path: &&mut Path| {
            path.spec.source == source && report.destination == Some(path.spec.destination)
        };
        let Some((_, carrier)) = self.sockets.carried(source, flow) else { return };
        match (report.refusal, carrier.quoted(&self.order.token, &report.quoted)) {
            (Refusal::TooBig(mtu_bytes), Ok(probe)) if flow == flow_of(probe.id) => {
                let too_big = Told { by: report.by, mtu_bytes };
                if let Some(path) = self.paths.get_mut((probe.id >> 48) as usize) {
                    path.search.on_too_big(now, flow as u16, probe.id as u32, too_big);
                }
            }
            // Some routers quote no more than the header behind IP's.
            (Refusal::TooBig(mtu_bytes), Err(MessageError::Short { .. })) => {
                let too_big = Told { by: report.by, mtu_bytes };
                if let Some(path) = self.paths.iter_mut().find(is_own) {
                    path.search.on_too_big_unnamed(now, flow as u16, too_big);
                }
            }
            (Refusal::Unreachable(kind, code), _) => {
                let by = report.by.map_or("this host".into(), |by| by.to_string());
                if let Some(path) = self.paths.iter_mut().find(is_own) {
                    path.said.get_or_insert_with(|| format!("{by} says unreachable (ICMP {kind}, {code})"));
                }
            }
            _ => {}
        }
    }
}

fn flow_of(id: u64) -> usize {
    usize::from((id >> 32) as u16)
}
