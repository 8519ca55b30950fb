//! The headers of every encapsulation, in bytes, each with its source.

use super::{Encapsulation, GreOptions};
use crate::{ETHERNET_HEADER_BYTES, Family};

/// One header or trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// Its length.
    pub bytes: u32,
    /// Where that is written: an RFC or standard, or a function of Linux.
    pub source: &'static str,
}

const fn part(name: &'static str, bytes: u32, source: &'static str) -> Part {
    Part { name, bytes, source }
}

const UDP: Part = part("UDP header", 8, "RFC 768");
const INNER_ETHERNET: Part = part("inner Ethernet header", ETHERNET_HEADER_BYTES, "IEEE 802.3 clause 3.2");
const GRE: Part = part("GRE header", 4, "RFC 2784 section 2.1");
const GRE_KEY: Part = part("GRE key", 4, "RFC 2890 section 2");
const ENCAPSULATION_LIMIT: Part =
    part("tunnel encapsulation limit", 8, "RFC 2473 section 4.1.1; Linux ip6_tnl_link_config()");
/// Ciphertext and its trailer end on this boundary (RFC 4303 section 2.4).
pub(super) const ESP_ALIGNMENT_BYTES: u32 = 4;
/// Data is padded to this, but never beyond the tunnel's MTU.
pub(super) const WIREGUARD_ALIGNMENT_BYTES: u32 = 16;

impl Encapsulation {
    /// Its headers and trailers from the outside in, without padding.
    pub fn parts(&self) -> Vec<Part> {
        match *self {
            Self::Vlan => vec![part("802.1Q tag", 4, "IEEE 802.1Q clause 9")],
            Self::Qinq => vec![
                part("802.1ad service tag", 4, "IEEE 802.1Q clause 9"),
                part("802.1Q customer tag", 4, "IEEE 802.1Q clause 9"),
            ],
            Self::Macsec { sci } => macsec(sci),
            Self::Mpls { labels } => {
                vec![part("MPLS label stack", 4 * u32::from(labels), "RFC 3032 section 2.1")]
            }
            Self::Pppoe => vec![
                part("PPPoE header", 6, "RFC 2516 section 4"),
                part("PPP protocol", 2, "RFC 2516 section 7; RFC 1661 section 2"),
            ],
            Self::Vxlan { underlay, gpe: false } => {
                vec![ip(underlay), UDP, part("VXLAN header", 8, "RFC 7348 section 5"), INNER_ETHERNET]
            }
            Self::Vxlan { underlay, gpe: true } => {
                vec![ip(underlay), UDP, part("VXLAN-GPE header", 8, "Linux vxlan_headroom()")]
            }
            Self::Geneve { underlay, options_bytes } => geneve(underlay, options_bytes),
            Self::Gre { underlay, options } => gre(underlay, options),
            Self::Gretap { underlay, options } => {
                let mut parts = gre(underlay, options);
                parts.push(INNER_ETHERNET);
                parts
            }
            Self::Nvgre { underlay } => vec![
                ip(underlay),
                part("GRE header with key", 8, "RFC 7637 section 3.2; RFC 2890 section 2"),
                INNER_ETHERNET,
            ],
            Self::Ip { underlay, inner, encapsulation_limit } => {
                ip_in_ip(underlay, inner, encapsulation_limit)
            }
            Self::WireGuard { underlay } => vec![
                ip(underlay),
                UDP,
                part("WireGuard data header", 16, "WireGuard paper section 5.4.6; Linux struct message_data"),
                part("Poly1305 tag", 16, "RFC 8439 section 2.8; Linux noise_encrypted_len()"),
            ],
            Self::EspTunnel { underlay, nat_traversal } => esp(Some(underlay), nat_traversal),
            Self::EspTransport { nat_traversal, .. } => esp(None, nat_traversal),
        }
    }
}

fn ip(family: Family) -> Part {
    match family {
        Family::V4 => part("IPv4 header", family.header_bytes(), "RFC 791 section 3.1"),
        Family::V6 => part("IPv6 header", family.header_bytes(), "RFC 8200 section 3"),
    }
}

fn macsec(sci: bool) -> Vec<Part> {
    let mut parts = vec![part("SecTAG", 8, "IEEE 802.1AE clause 9.3")];
    if sci {
        parts.push(part("SCI", 8, "IEEE 802.1AE clause 9.9; Linux macsec_extra_len()"));
    }
    parts.push(part("ICV", 16, "IEEE 802.1AE clause 14.5; Linux MACSEC_STD_ICV_LEN"));
    parts
}

fn geneve(underlay: Family, options_bytes: u8) -> Vec<Part> {
    let mut parts = vec![ip(underlay), UDP, part("Geneve header", 8, "RFC 8926 section 3.4")];
    if options_bytes > 0 {
        parts.push(part("Geneve options", u32::from(options_bytes), "RFC 8926 section 3.5"));
    }
    parts.push(INNER_ETHERNET);
    parts
}

fn gre(underlay: Family, options: GreOptions) -> Vec<Part> {
    let mut parts = vec![ip(underlay)];
    if options.encapsulation_limit {
        parts.push(ENCAPSULATION_LIMIT);
    }
    parts.push(GRE);
    if options.checksum {
        parts.push(part("GRE checksum", 4, "RFC 2784 section 2.5"));
    }
    if options.key {
        parts.push(GRE_KEY);
    }
    if options.sequence {
        parts.push(part("GRE sequence number", 4, "RFC 2890 section 2"));
    }
    parts
}

fn ip_in_ip(underlay: Family, inner: Family, encapsulation_limit: bool) -> Vec<Part> {
    let header = Part {
        source: match (underlay, inner) {
            (Family::V4, Family::V4) => "RFC 2003 section 3.1",
            (Family::V4, Family::V6) => "RFC 4213 section 3.1",
            (Family::V6, _) => "RFC 2473 section 3.1",
        },
        ..ip(underlay)
    };
    let mut parts = vec![header];
    if encapsulation_limit {
        parts.push(ENCAPSULATION_LIMIT);
    }
    parts
}

/// With an IP header of its own in tunnel mode.
fn esp(tunnel: Option<Family>, nat_traversal: bool) -> Vec<Part> {
    let mut parts: Vec<Part> = tunnel.map(ip).into_iter().collect();
    if nat_traversal {
        parts.push(part("UDP header (NAT-T)", 8, "RFC 3948 section 2.1"));
    }
    parts.extend([
        part("ESP header", 8, "RFC 4303 section 2"),
        part("initialisation vector", 8, "RFC 4106 section 3.1"),
        part("ESP trailer", 2, "RFC 4303 section 2"),
        part("ICV", 16, "RFC 4106 section 6"),
    ]);
    parts
}
