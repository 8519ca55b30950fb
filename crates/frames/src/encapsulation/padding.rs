//! What fills a packet up: the only part of an encapsulation that depends on the packet's length.

use super::{Encapsulation, OpenVpnSuite};
use crate::{ETHERNET_HEADER_BYTES, Family};

/// How a layer fills up what it carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Padding {
    /// Not at all.
    None,
    /// What is enciphered fills blocks: the packet without the `clear_bytes` before it, with the `own_bytes` of the layer.
    Blocks { block_bytes: u32, own_bytes: u32, clear_bytes: u32 },
    /// To a multiple of this, but never beyond the layer's own MTU.
    UpToMtu(u32),
}

/// Between which lengths the overhead of a layer is, and which of them counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The smallest.
    pub least_bytes: u32,
    /// The largest.
    pub most_bytes: u32,
    /// What it depends on, and which end was used.
    pub why: &'static str,
}

/// Pad length and next header, which padding comes before.
const ESP_TRAILER_BYTES: u32 = 2;
/// A packet ID and one byte of padding at least are enciphered with the data.
const OPENVPN_CBC_OWN_BYTES: u32 = 5;
const OPENVPN_BLOCK_BYTES: u32 = 16;
/// `calculate_skb_padding()`
const WIREGUARD_ALIGNMENT_BYTES: u32 = 16;

impl Encapsulation {
    pub(super) fn padding(&self) -> Padding {
        match *self {
            Self::EspTunnel { suite, .. } => esp(suite.cipher.alignment_bytes(), 0),
            Self::EspTransport { family, suite, .. } => {
                // The header of the packet stays in front of ESP. Where its version is not said it is a multiple of 4.
                let clear = family.unwrap_or(Family::V4).header_bytes();
                esp(suite.cipher.alignment_bytes(), clear)
            }
            Self::OpenVpn { tap, suite: OpenVpnSuite::Cbc(_), .. } => Padding::Blocks {
                block_bytes: OPENVPN_BLOCK_BYTES,
                own_bytes: OPENVPN_CBC_OWN_BYTES + if tap { ETHERNET_HEADER_BYTES } else { 0 },
                clear_bytes: 0,
            },
            Self::WireGuard { .. } => Padding::UpToMtu(WIREGUARD_ALIGNMENT_BYTES),
            _ => Padding::None,
        }
    }

    /// What the rest of an MTU is called that its blocks leave unused, and why it is there.
    pub(super) fn unused(&self) -> (&'static str, &'static str) {
        const SOURCE: &str = "RFC 4303 section 2.4; Linux esp_output()";
        match self.padding() {
            _ if matches!(self, Self::OpenVpn { .. }) => {
                ("unused: OpenVPN grows by 16 bytes", "RFC 5652 section 6.3")
            }
            Padding::Blocks { block_bytes: 16, .. } => ("unused: ESP grows by 16 bytes", SOURCE),
            Padding::Blocks { block_bytes: 8, .. } => ("unused: ESP grows by 8 bytes", SOURCE),
            _ => ("unused: ESP grows by 4 bytes", SOURCE),
        }
    }

    /// Between which lengths the overhead lies, where it depends on the packet.
    pub fn range(&self) -> Option<Range> {
        let fixed = self.overhead_bytes();
        let up_to = |more: u32, why| Range { least_bytes: fixed, most_bytes: fixed + more, why };
        match self.padding() {
            Padding::Blocks { block_bytes, .. } => {
                let why =
                    "padding to whole blocks; the inner MTU is the largest packet that fits with its own";
                return Some(up_to(block_bytes - 1, why));
            }
            Padding::UpToMtu(multiple) => {
                return Some(up_to(
                    multiple - 1,
                    "padding of packets below the tunnel's MTU; a full one has none",
                ));
            }
            Padding::None => {}
        }
        let down_by = |less: u32, why| Range { least_bytes: fixed - less, most_bytes: fixed, why };
        match self {
            Self::Pptp => Some(down_by(
                6,
                "an acknowledgement number where one is due, address and control unless compressed; the most counts",
            )),
            Self::L2tp { .. } => {
                Some(down_by(2, "address and control of PPP unless compressed; the most counts"))
            }
            _ => None,
        }
    }
}

fn esp(block_bytes: u32, clear_bytes: u32) -> Padding {
    Padding::Blocks { block_bytes, own_bytes: ESP_TRAILER_BYTES, clear_bytes }
}

impl Padding {
    /// The largest packet inside of `room` bytes, where `overhead` bytes are headers and trailers.
    pub(super) fn largest(self, room: u32, overhead: u32) -> u32 {
        match self {
            Self::Blocks { block_bytes, own_bytes, clear_bytes } => {
                let enciphered = room.saturating_sub(overhead - own_bytes + clear_bytes);
                (enciphered / block_bytes * block_bytes + clear_bytes).saturating_sub(own_bytes)
            }
            // A full packet has none.
            Self::None | Self::UpToMtu(_) => room.saturating_sub(overhead),
        }
    }

    /// How long a packet is with its padding, in a tunnel with this MTU.
    pub(super) fn filled(self, packet: u32, mtu: u32) -> u32 {
        match self {
            Self::None => packet,
            Self::Blocks { block_bytes, own_bytes, clear_bytes } => {
                let enciphered = (packet + own_bytes).saturating_sub(clear_bytes);
                enciphered.next_multiple_of(block_bytes) + clear_bytes - own_bytes
            }
            Self::UpToMtu(multiple) => packet.next_multiple_of(multiple).min(mtu),
        }
    }
}
