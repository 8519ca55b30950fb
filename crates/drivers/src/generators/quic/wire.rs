//! A UDP socket with QUIC on it: takes datagrams from the kernel to the connections, and theirs to the kernel.

use crate::generators::quic::settings::{MOST_BYTES, QuicSettings};
use bytes::BytesMut;
use framegauge_linux::error::Context;
use framegauge_linux::listening::PortRange;
use framegauge_linux::poll::PollSet;
use framegauge_linux::{Result, datagrams};
use quinn_proto::{
    Connection, ConnectionEvent, ConnectionHandle, DatagramEvent, Endpoint, Incoming, ServerConfig, Transmit,
};
use quinn_udp::{EcnCodepoint, RecvMeta, UdpSockRef, UdpSocketState};
use std::collections::BTreeMap;
use std::io::{ErrorKind, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Instant;

/// Calls to receive at once; each may bring an aggregate.
const CALLS: usize = 8;
const CALL_BYTES: usize = 65_536;
/// What may be sent, or taken in, before the other has its turn.
const TURN: usize = 32;
/// Datagrams of one call at most: as quinn has it, enough to make the call cheap, few enough to keep a burst short.
const MOST_SEGMENTS: usize = 10;

/// What an end sent, and what its connections found.
#[derive(Debug, Clone, Default)]
pub struct QuicSummary {
    /// Datagrams that the kernel took, by the bytes of their payload.
    pub sizes: BTreeMap<u32, u64>,
    /// Calls that handed them over: fewer with aggregates.
    pub calls: u64,
    /// Calls that the kernel refused, such as a datagram above the interface's MTU.
    pub refused_calls: u64,
    /// Datagrams that came.
    pub received: u64,
    /// Aggregates among what came.
    pub received_aggregates: u64,
    /// The payload that the discovery of each connection settled at, in the order in which they ended.
    pub settled_bytes: Vec<u32>,
    /// Probes of path MTUs.
    pub probes: u64,
    /// Those that were lost.
    pub lost_probes: u64,
    /// Times that a connection found its path MTU smaller than before.
    pub black_holes: u64,
    /// Packets lost, but for probes.
    pub lost_packets: u64,
    /// The smoothed RTT of each connection as it ended.
    pub rtt_seconds: Vec<f64>,
}

impl QuicSummary {
    /// Adds what another has seen.
    pub(super) fn add(&mut self, other: &Self) {
        for (size, count) in &other.sizes {
            *self.sizes.entry(*size).or_default() += count;
        }
        self.calls += other.calls;
        self.refused_calls += other.refused_calls;
        self.received += other.received;
        self.received_aggregates += other.received_aggregates;
        self.settled_bytes.extend(&other.settled_bytes);
        self.probes += other.probes;
        self.lost_probes += other.lost_probes;
        self.black_holes += other.black_holes;
        self.lost_packets += other.lost_packets;
        self.rtt_seconds.extend(&other.rtt_seconds);
    }

    /// Adds what a connection has found.
    pub(super) fn settle(&mut self, connection: &Connection) {
        let path = connection.stats().path;
        self.settled_bytes.push(u32::from(path.current_mtu));
        self.probes += path.sent_plpmtud_probes;
        self.lost_probes += path.lost_plpmtud_probes;
        self.black_holes += path.black_holes_detected;
        self.lost_packets += path.lost_packets;
        self.rtt_seconds.push(path.rtt.as_secs_f64());
    }
}

/// A datagram, or several, that found no room.
struct Waiting {
    transmit: Transmit,
    bytes: Vec<u8>,
}

/// What datagrams brought.
#[derive(Default)]
pub(super) struct Came {
    /// For connections.
    pub(super) events: Vec<(ConnectionHandle, ConnectionEvent)>,
    /// New ones.
    pub(super) incoming: Vec<Incoming>,
}

/// A socket and its endpoint.
pub(super) struct Wire {
    socket: UdpSocket,
    state: UdpSocketState,
    pub(super) endpoint: Endpoint,
    most_segments: usize,
    room: Vec<u8>,
    outgoing: Vec<u8>,
    waiting: Option<Waiting>,
    pub(super) summary: QuicSummary,
}

impl Wire {
    /// A socket at `address`, on one of `ports`; with a configuration it accepts connections.
    pub(super) fn open(
        address: IpAddr,
        ports: PortRange,
        settings: &QuicSettings,
        serving: Option<Arc<ServerConfig>>,
    ) -> Result<Self> {
        let socket = datagrams::open(address, ports)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket)).during("set up a socket for QUIC")?;
        if let Some(on) = settings.aggregation {
            datagrams::take_aggregates(&socket, on)?;
        }
        let most_segments = if settings.segmentation == Some(false) {
            1
        } else {
            state.max_gso_segments().min(MOST_SEGMENTS)
        };
        Ok(Self {
            endpoint: Endpoint::new(QuicSettings::endpoint(), serving, !state.may_fragment(), None),
            socket,
            state,
            most_segments,
            room: vec![0; CALLS * CALL_BYTES],
            outgoing: Vec::new(),
            waiting: None,
            summary: QuicSummary::default(),
        })
    }

    pub(super) fn address(&self) -> Result<SocketAddr> {
        self.socket.local_addr().during("read the address of a socket")
    }

    /// Adds the socket to what is waited for; returns its place.
    pub(super) fn watch(&self, poll: &mut PollSet) -> usize {
        poll.add(self.socket.as_raw_fd(), true, self.waiting.is_some())
    }

    /// Takes what has come into `came`. True if there may be more.
    pub(super) fn receive(&mut self, now: Instant, came: &mut Came) -> Result<bool> {
        for _ in 0..TURN {
            let mut metas = [RecvMeta::default(); CALLS];
            let mut room = self.room.chunks_mut(CALL_BYTES).map(IoSliceMut::new);
            let mut slices: [IoSliceMut<'_>; CALLS] =
                std::array::from_fn(|_| room.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
            let count = match self.state.recv(UdpSockRef::from(&self.socket), &mut slices, &mut metas) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                // What was said of an earlier datagram (ICMP): QUIC does not rely on it.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(error).during("receive datagrams of QUIC"),
            };
            for (place, meta) in metas.iter().enumerate().take(count) {
                self.take(now, place * CALL_BYTES, meta, came)?;
            }
        }
        Ok(true)
    }

    /// Takes what one call brought, which is in the room from `begin`.
    fn take(&mut self, now: Instant, begin: usize, meta: &RecvMeta, came: &mut Came) -> Result<()> {
        let end = begin + meta.len.min(CALL_BYTES);
        self.summary.received_aggregates += u64::from(meta.len > meta.stride);
        for datagram in self.room[begin..end].chunks(meta.stride.max(1)) {
            self.summary.received += 1;
            let ecn = meta.ecn.and_then(|ecn| quinn_proto::EcnCodepoint::from_bits(ecn as u8));
            let (mut answer, bytes) = (Vec::new(), BytesMut::from(datagram));
            match self.endpoint.handle(now, meta.addr, meta.dst_ip, ecn, bytes, &mut answer) {
                Some(DatagramEvent::ConnectionEvent(handle, event)) => came.events.push((handle, event)),
                Some(DatagramEvent::NewConnection(new)) => came.incoming.push(new),
                Some(DatagramEvent::Response(transmit)) => {
                    hand_over(&self.state, &self.socket, &transmit, &answer, &mut self.summary)?;
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Does what a connection has to do by now, and sends what it has to send. True if there may be more to send.
    pub(super) fn drive(
        &mut self,
        handle: ConnectionHandle,
        connection: &mut Connection,
        now: Instant,
    ) -> Result<bool> {
        if connection.poll_timeout().is_some_and(|deadline| deadline <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                connection.handle_event(event);
            }
        }
        if !self.has_room()? {
            return Ok(false);
        }
        for _ in 0..TURN {
            // An aggregate is a datagram to the kernel, and holds no more than one can.
            let most = usize::from(MOST_BYTES) - 20;
            let segments = (most / usize::from(connection.current_mtu()).max(1)).clamp(1, self.most_segments);
            self.outgoing.clear();
            let Some(transmit) = connection.poll_transmit(now, segments, &mut self.outgoing) else {
                return Ok(false);
            };
            let bytes = &self.outgoing[..transmit.size];
            if !hand_over(&self.state, &self.socket, &transmit, bytes, &mut self.summary)? {
                self.waiting = Some(Waiting { bytes: bytes.to_vec(), transmit });
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether datagrams wait for room in the socket.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.is_some()
    }

    /// Sends what found no room before; true if nothing is left of it.
    fn has_room(&mut self) -> Result<bool> {
        let Some(waiting) = self.waiting.take() else { return Ok(true) };
        if hand_over(&self.state, &self.socket, &waiting.transmit, &waiting.bytes, &mut self.summary)? {
            return Ok(true);
        }
        self.waiting = Some(waiting);
        Ok(false)
    }
}

/// Hands datagrams to the kernel and counts them; false: there is no room now. What it refuses for another reason is
/// lost, as on the way: QUIC sends it again.
fn hand_over(
    state: &UdpSocketState,
    socket: &UdpSocket,
    transmit: &Transmit,
    bytes: &[u8],
    summary: &mut QuicSummary,
) -> Result<bool> {
    let outgoing = quinn_udp::Transmit {
        destination: transmit.destination,
        ecn: transmit.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8)),
        contents: bytes,
        segment_size: transmit.segment_size,
        src_ip: transmit.src_ip,
    };
    match state.try_send(UdpSockRef::from(socket), &outgoing) {
        Ok(()) => {
            summary.calls += 1;
            for datagram in bytes.chunks(transmit.segment_size.unwrap_or(bytes.len()).max(1)) {
                *summary.sizes.entry(datagram.len() as u32).or_default() += 1;
            }
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
        Err(_) => summary.refused_calls += 1,
    }
    Ok(true)
}

/// Nanoseconds until a time.
pub(super) fn until(time: Instant, now: Instant) -> u64 {
    u64::try_from(time.saturating_duration_since(now).as_nanos()).unwrap_or(u64::MAX)
}
