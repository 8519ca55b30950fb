//! Encapsulations: what each adds to a packet, header by header, with the source of every figure.
//!
//! An [`Mtu`](crate::Mtu) is the IP packet's. VLAN, QinQ, MPLS and MACsec directly on the link lengthen its frame and
//! leave its MTU as it is, unless `within_mtu` says that the link counts them; inside of a tunnel they always take from it.

mod fit;
mod headers;
mod padding;
mod protection;
mod spelling;
mod stack;
mod words;

pub use fit::{Fit, FittedLayer, InnerCeiling};
pub use headers::Part;
pub use padding::Range;
pub use protection::{EspCipher, EspSuite, Hmac, OpenVpnSuite};
pub use stack::Stack;
pub use words::WORDS;

use crate::Family;
use std::fmt;
use thiserror::Error;

/// What a GRE header has beyond its first four bytes, and its IPv6 header before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GreOptions {
    /// A key, 4 bytes (RFC 2890).
    pub key: bool,
    /// A checksum with its reserved field, 4 bytes (RFC 2784).
    pub checksum: bool,
    /// A sequence number, 4 bytes (RFC 2890).
    pub sequence: bool,
    /// The tunnel encapsulation limit of RFC 2473, 8 bytes; Linux adds it to GRE over IPv6 by default.
    pub encapsulation_limit: bool,
    /// UDP between IP and GRE.
    pub in_udp: Option<InUdp>,
}

/// How a tunnel is put into UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InUdp {
    /// Foo over UDP: the UDP header alone. GRE in UDP (RFC 8086) has the same size.
    Fou,
    /// Generic UDP Encapsulation without extension fields.
    Gue,
}

/// One encapsulation. `underlay` is the version of the outer IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encapsulation {
    /// One 802.1Q tag.
    Vlan,
    /// Two tags (802.1ad).
    Qinq,
    /// MACsec with a 16-byte ICV.
    Macsec {
        /// The SecTAG holds the SCI, as Linux sends it by default.
        sci: bool,
    },
    /// MPLS labels.
    Mpls {
        /// How many.
        labels: u8,
    },
    /// PPP over Ethernet.
    Pppoe,
    /// VXLAN over UDP.
    Vxlan {
        /// The outer IP version.
        underlay: Family,
        /// VXLAN-GPE that carries IP packets without an Ethernet header.
        gpe: bool,
    },
    /// Geneve over UDP.
    Geneve {
        /// The outer IP version.
        underlay: Family,
        /// Length of all options, a multiple of 4 up to 252.
        options_bytes: u8,
    },
    /// GRE that carries IP (or MPLS).
    Gre {
        /// The outer IP version.
        underlay: Family,
        /// Its optional fields.
        options: GreOptions,
    },
    /// GRE that carries Ethernet.
    Gretap {
        /// The outer IP version.
        underlay: Family,
        /// Its optional fields.
        options: GreOptions,
    },
    /// NVGRE: Ethernet in GRE with a key.
    Nvgre {
        /// The outer IP version.
        underlay: Family,
    },
    /// IP directly in IP.
    Ip {
        /// The outer IP version.
        underlay: Family,
        /// The inner IP version.
        inner: Family,
        /// The tunnel encapsulation limit of RFC 2473, 8 bytes; Linux adds it over IPv6 by default.
        encapsulation_limit: bool,
    },
    /// WireGuard over UDP.
    WireGuard {
        /// The outer IP version.
        underlay: Family,
    },
    /// IPsec ESP, tunnel mode.
    EspTunnel {
        /// The outer IP version.
        underlay: Family,
        /// In UDP, to pass NAT.
        nat_traversal: bool,
        /// Its cipher and check value.
        suite: EspSuite,
    },
    /// IPsec ESP, transport mode: it has no IP header of its own.
    EspTransport {
        /// The IP version of the packets that it protects, where that is said.
        family: Option<Family>,
        /// In UDP, to pass NAT.
        nat_traversal: bool,
        /// Its cipher and check value.
        suite: EspSuite,
    },
    /// IPsec AH: authenticates and hides nothing.
    Ah {
        /// The version of the IP header before it.
        family: Family,
        /// With an IP header of its own; else the packet that it protects keeps its header before it.
        tunnel: bool,
        /// Its check value.
        hmac: Hmac,
        /// Filled up to 8 bytes over IPv4 too, as Linux does without the flag `align4`.
        align8: bool,
    },
    /// L2TP version 2: PPP in UDP.
    L2tp {
        /// The outer IP version.
        underlay: Family,
        /// Its header has the length field.
        length: bool,
        /// Its header has sequence numbers.
        sequence: bool,
    },
    /// L2TP version 3 that carries Ethernet.
    L2tpV3 {
        /// The outer IP version.
        underlay: Family,
        /// In UDP; else directly in IP.
        udp: bool,
        /// The cookie: 0, 4 or 8.
        cookie_bytes: u8,
        /// The default layer-2-specific sublayer, 4 bytes.
        sublayer: bool,
    },
    /// PPTP: PPP in enhanced GRE.
    Pptp,
    /// OpenVPN over UDP.
    OpenVpn {
        /// The outer IP version.
        underlay: Family,
        /// Carries Ethernet (tap), else IP (tun).
        tap: bool,
        /// Its cipher and check value.
        suite: OpenVpnSuite,
    },
    /// STT: Ethernet in segments that look like TCP.
    Stt {
        /// The outer IP version.
        underlay: Family,
    },
    /// GTP-U of mobile networks.
    GtpU {
        /// The outer IP version.
        underlay: Family,
        /// Its header has the optional fields (sequence number).
        sequence: bool,
        /// The extension header of a PDU session (5G), in its shortest form.
        pdu_session: bool,
    },
    /// Segment routing over IPv6.
    Srv6 {
        /// How many segments the path has.
        segments: u8,
        /// The first segment is only in the destination address (H.Encaps.Red).
        reduced: bool,
        /// Carries Ethernet (H.Encaps.L2), else IP.
        l2: bool,
    },
    /// IP directly in UDP.
    Fou {
        /// The outer IP version.
        underlay: Family,
        /// How it is put into UDP.
        kind: InUdp,
    },
    /// IPv4 packets that cross an IPv6 network as IPv6 packets (464XLAT): their header is exchanged for a longer one.
    Nat64 {
        /// With a fragment header, which a translator adds to packets that may be fragmented.
        fragment_header: bool,
    },
}

/// What a layer has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cargo {
    /// Tags and whatever an Ethernet frame carries.
    Ethernet,
    /// IP packets, of one version only where one is named.
    Ip(Option<Family>),
}

impl Encapsulation {
    /// Whether it belongs to the frame: directly on a link it does not take from the link's MTU.
    pub const fn is_frame_only(&self) -> bool {
        matches!(self, Self::Vlan | Self::Qinq | Self::Macsec { .. } | Self::Mpls { .. })
    }

    /// The version of its outer IP header, where it has one.
    pub const fn underlay(&self) -> Option<Family> {
        match self {
            Self::Vxlan { underlay, .. }
            | Self::Geneve { underlay, .. }
            | Self::Gre { underlay, .. }
            | Self::Gretap { underlay, .. }
            | Self::Nvgre { underlay }
            | Self::Ip { underlay, .. }
            | Self::WireGuard { underlay }
            | Self::EspTunnel { underlay, .. }
            | Self::Ah { family: underlay, .. }
            | Self::L2tp { underlay, .. }
            | Self::L2tpV3 { underlay, .. }
            | Self::OpenVpn { underlay, .. }
            | Self::Stt { underlay }
            | Self::GtpU { underlay, .. }
            | Self::Fou { underlay, .. } => Some(*underlay),
            Self::EspTransport { family, .. } => *family,
            Self::Pptp => Some(Family::V4),
            Self::Srv6 { .. } | Self::Nat64 { .. } => Some(Family::V6),
            Self::Vlan | Self::Qinq | Self::Macsec { .. } | Self::Mpls { .. } | Self::Pppoe => None,
        }
    }

    /// What all its headers and trailers take, in bytes, without padding that depends on the payload.
    pub fn overhead_bytes(&self) -> u32 {
        self.parts().iter().map(|part| part.bytes).sum()
    }

    fn cargo(&self, around: Cargo) -> Cargo {
        match self {
            Self::Vlan | Self::Qinq | Self::Macsec { .. } => Cargo::Ethernet,
            Self::Vxlan { gpe: false, .. }
            | Self::Geneve { .. }
            | Self::Gretap { .. }
            | Self::Nvgre { .. }
            | Self::L2tpV3 { .. }
            | Self::OpenVpn { tap: true, .. }
            | Self::Stt { .. }
            | Self::Srv6 { l2: true, .. } => Cargo::Ethernet,
            Self::Nat64 { .. } => Cargo::Ip(Some(Family::V4)),
            Self::Ah { family, tunnel: false, .. } => Cargo::Ip(Some(*family)),
            Self::Ip { inner, .. } => Cargo::Ip(Some(*inner)),
            // The packet that it protects keeps its header.
            Self::EspTransport { family, .. } => match around {
                Cargo::Ip(Some(only)) => Cargo::Ip(Some(only)),
                _ => Cargo::Ip(*family),
            },
            _ => Cargo::Ip(None),
        }
    }
}

/// One layer of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer {
    /// What it is.
    pub encapsulation: Encapsulation,
    /// The link counts it in its MTU although it belongs to the frame, as Linux does with its MACsec devices.
    pub within_mtu: bool,
}

impl From<Encapsulation> for Layer {
    fn from(encapsulation: Encapsulation) -> Self {
        Self { encapsulation, within_mtu: false }
    }
}

/// What is wrong with a stack: where, what was found, what was expected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: found {found}, expected {expected}")]
pub struct EncapsulationError {
    /// Which layer.
    pub place: String,
    /// What is there.
    pub found: String,
    /// What ought to be.
    pub expected: String,
}

impl EncapsulationError {
    fn new(place: impl Into<String>, actual: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { place: place.into(), found: actual.into(), expected: expected.into() }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Family::V4 => "ipv4",
            Family::V6 => "ipv6",
        })
    }
}
