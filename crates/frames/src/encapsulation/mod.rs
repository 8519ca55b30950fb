//! Encapsulations: what each adds to a packet, header by header, with the source of every figure.
//!
//! An [`Mtu`](crate::Mtu) is the IP packet's. VLAN, QinQ, MPLS and MACsec directly on the link lengthen its frame and
//! leave its MTU as it is, unless `within_mtu` says that the link counts them; inside of a tunnel they always take from it.

mod fit;
mod headers;
mod words;

pub use fit::{Fit, FittedLayer, InnerCeiling};
pub use headers::Part;
pub use words::WORDS;

use crate::Family;
use std::fmt;
use thiserror::Error;

/// The most layers of one stack: more is a mistake.
const MOST_LAYERS: usize = 16;

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
    /// IPsec ESP with AES-GCM-16, tunnel mode.
    EspTunnel {
        /// The outer IP version.
        underlay: Family,
        /// In UDP, to pass NAT.
        nat_traversal: bool,
    },
    /// IPsec ESP with AES-GCM-16, transport mode: it has no IP header of its own.
    EspTransport {
        /// The IP version of the packets that it protects, where that is said.
        family: Option<Family>,
        /// In UDP, to pass NAT.
        nat_traversal: bool,
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
            | Self::EspTunnel { underlay, .. } => Some(*underlay),
            Self::EspTransport { family, .. } => *family,
            Self::Vlan | Self::Qinq | Self::Macsec { .. } | Self::Mpls { .. } | Self::Pppoe => None,
        }
    }

    /// What it takes from the MTU at most, in bytes: all its headers, and padding where that depends on the payload.
    pub fn overhead_bytes(&self) -> u32 {
        self.parts().iter().map(|part| part.bytes).sum()
    }

    fn cargo(&self, around: Cargo) -> Cargo {
        match self {
            Self::Vlan | Self::Qinq | Self::Macsec { .. } => Cargo::Ethernet,
            Self::Vxlan { gpe: false, .. }
            | Self::Geneve { .. }
            | Self::Gretap { .. }
            | Self::Nvgre { .. } => Cargo::Ethernet,
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
    fn new(place: impl Into<String>, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { place: place.into(), found: found.into(), expected: expected.into() }
    }
}

/// Encapsulations from outermost to innermost, in an order that can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    layers: Vec<Layer>,
    cargo: Cargo,
}

impl Stack {
    /// These layers, if each can be inside of the one before it.
    pub fn new(layers: Vec<Layer>) -> Result<Stack, EncapsulationError> {
        if layers.len() > MOST_LAYERS {
            let found = format!("{} layers", layers.len());
            return Err(EncapsulationError::new("encapsulations", found, format!("at most {MOST_LAYERS}")));
        }
        let mut cargo = Cargo::Ethernet;
        let mut around: Option<&Layer> = None;
        for layer in &layers {
            check_order(layer, around, cargo)?;
            cargo = layer.encapsulation.cargo(cargo);
            around = Some(layer);
        }
        Ok(Stack { layers, cargo })
    }

    /// The layers, outermost first.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }
}

fn check_order(layer: &Layer, around: Option<&Layer>, cargo: Cargo) -> Result<(), EncapsulationError> {
    let place = layer.to_string();
    let outside = around.map_or("the link".to_string(), ToString::to_string);
    let fail = |found: &str, expected: &str| Err(EncapsulationError::new(place, found, expected));
    let needs_ethernet = layer.encapsulation.is_frame_only() || layer.encapsulation == Encapsulation::Pppoe;
    let mpls = matches!(layer.encapsulation, Encapsulation::Mpls { .. });
    let in_gre = around.is_some_and(|around| matches!(around.encapsulation, Encapsulation::Gre { .. }));
    if needs_ethernet && cargo != Cargo::Ethernet && !(mpls && in_gre) {
        let expected = if mpls { "Ethernet or gre around it" } else { "Ethernet around it" };
        return fail(&format!("{outside} around it, which carries no Ethernet"), expected);
    }
    if let (Cargo::Ip(Some(only)), Some(underlay)) = (cargo, layer.encapsulation.underlay())
        && only != underlay
    {
        return fail(
            &format!("{outside} around it, which carries {only} only"),
            &format!("{only} as its underlay"),
        );
    }
    Ok(())
}

impl fmt::Display for Family {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Family::V4 => "ipv4",
            Family::V6 => "ipv6",
        })
    }
}
