//! What an application chooses of its QUIC.

use framegauge_linux::udp;
use quinn_proto::congestion::{CubicConfig, NewRenoConfig};
use quinn_proto::{EndpointConfig, MtuDiscoveryConfig, TransportConfig, VarInt};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// The least that a path must carry, and what is sent where no path MTU is looked for (RFC 9000 section 14).
const BASE_BYTES: u16 = 1200;
/// The most that one datagram can hold (RFC 9000 section 18.2).
pub(super) const MOST_BYTES: u16 = 65_527;
/// What may be under way at most: the largest receive buffer that Linux gives a TCP socket (`tcp_rmem`).
const WINDOW_BYTES: u32 = 6 << 20;
/// A connection of which nothing comes for so long is given up.
const IDLE_SECONDS: u64 = 10;

/// How fast data may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Congestion {
    /// RFC 9438.
    Cubic,
    /// RFC 9002.
    NewReno,
}

impl Congestion {
    /// The kernel's name of the same.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::NewReno => "reno",
        }
    }
}

/// What an end is told of its connections and its socket.
#[derive(Debug, Clone, Copy)]
pub struct QuicSettings {
    /// Looks for the path MTU by probes up to the MTU of the route; else every datagram has 1200 bytes at most.
    pub plpmtud: bool,
    /// How fast data may be sent.
    pub congestion: Congestion,
    /// Hands the kernel several datagrams at once (`UDP_SEGMENT`); `None`: if it takes them.
    pub segmentation: Option<bool>,
    /// Takes several datagrams from the kernel at once (`UDP_GRO`); `None`: if it gives them.
    pub aggregation: Option<bool>,
}

impl QuicSettings {
    /// The settings of a connection between these addresses.
    pub(super) fn transport(&self, source: IpAddr, destination: SocketAddr) -> TransportConfig {
        let mut transport = TransportConfig::default();
        let discovery = self.plpmtud.then(|| {
            let mut discovery = MtuDiscoveryConfig::default();
            discovery.upper_bound(payload_bytes(source, destination.ip()));
            discovery
        });
        transport
            .mtu_discovery_config(discovery)
            .stream_receive_window(VarInt::from_u32(WINDOW_BYTES))
            .receive_window(VarInt::from_u32(WINDOW_BYTES))
            .send_window(u64::from(WINDOW_BYTES))
            // One transfer a connection, and nothing else: whoever does not know the token takes no more memory.
            .max_concurrent_bidi_streams(1u32.into())
            .max_concurrent_uni_streams(0u32.into())
            .datagram_receive_buffer_size(None)
            .max_idle_timeout(Duration::from_secs(IDLE_SECONDS).try_into().ok());
        match self.congestion {
            Congestion::Cubic => {
                transport.congestion_controller_factory(Arc::new(CubicConfig::default()));
            }
            Congestion::NewReno => {
                transport.congestion_controller_factory(Arc::new(NewRenoConfig::default()));
            }
        }
        transport
    }

    /// The settings of a socket: it takes whatever a datagram can hold.
    pub(super) fn endpoint() -> Arc<EndpointConfig> {
        let mut endpoint = EndpointConfig::default();
        let _ = endpoint.max_udp_payload_size(MOST_BYTES); // in range
        Arc::new(endpoint)
    }
}

/// The largest datagram that leaves this host whole by the MTU of the route.
fn payload_bytes(source: IpAddr, destination: IpAddr) -> u16 {
    let headers = if destination.is_ipv6() { 40 + 8 } else { 20 + 8 };
    let route = udp::way(source, destination).ok().and_then(|way| way.route_mtu_bytes);
    let most = route.map_or(u32::from(BASE_BYTES), |mtu| mtu.saturating_sub(headers));
    u16::try_from(most).unwrap_or(MOST_BYTES).clamp(BASE_BYTES, MOST_BYTES)
}
