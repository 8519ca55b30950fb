//! The headers of every encapsulation, in bytes, each with its source.

use super::{Encapsulation, GreOptions, InUdp};
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

pub(super) const fn part(name: &'static str, bytes: u32, source: &'static str) -> Part {
    Part { name, bytes, source }
}

const UDP: Part = part("UDP header", 8, "RFC 768");
const INNER_ETHERNET: Part = part("inner Ethernet header", ETHERNET_HEADER_BYTES, "IEEE 802.3 clause 3.2");
const NAT_T: Part = part("UDP header (NAT-T)", 8, "RFC 3948 section 2.1");
const PPP: [Part; 2] = [
    part("PPP address and control", 2, "RFC 1662 section 3.1"),
    part("PPP protocol", 2, "RFC 1661 section 2"),
];
const GRE: Part = part("GRE header", 4, "RFC 2784 section 2.1");
const GRE_KEY: Part = part("GRE key", 4, "RFC 2890 section 2");
const ENCAPSULATION_LIMIT: Part =
    part("tunnel encapsulation limit", 8, "RFC 2473 section 4.1.1; Linux ip6_tnl_link_config()");
const GUE: Part = part("GUE header", 4, "draft-ietf-intarea-gue-09 section 3.1; Linux struct guehdr");

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
            _ => self.further_parts(),
        }
    }

    /// Of those with a cipher or a check value, those of telephone networks, and those in or for UDP.
    fn further_parts(&self) -> Vec<Part> {
        match *self {
            Self::EspTunnel { underlay, nat_traversal, suite } => {
                let mut parts = vec![ip(underlay)];
                parts.extend(nat_traversal.then_some(NAT_T));
                parts.extend(suite.parts());
                parts
            }
            Self::EspTransport { nat_traversal, suite, .. } => {
                let mut parts: Vec<Part> = nat_traversal.then_some(NAT_T).into_iter().collect();
                parts.extend(suite.parts());
                parts
            }
            Self::Ah { .. } => self.authentication(),
            Self::L2tp { underlay, length, sequence } => l2tp(underlay, length, sequence),
            Self::L2tpV3 { .. } => self.l2tp_version_3(),
            Self::Pptp => pptp(),
            Self::OpenVpn { underlay, tap, suite } => {
                let mut parts = vec![ip(underlay), UDP];
                parts.extend(suite.parts());
                parts.extend(tap.then_some(INNER_ETHERNET));
                parts
            }
            Self::Stt { underlay } => vec![
                ip(underlay),
                part("header like TCP's", 20, "draft-davie-stt-08 section 3"),
                part("STT frame header", 18, "draft-davie-stt-08 section 3"),
                INNER_ETHERNET,
            ],
            Self::GtpU { underlay, sequence, pdu_session } => gtp_u(underlay, sequence, pdu_session),
            Self::Srv6 { segments, reduced, l2 } => srv6(segments, reduced, l2),
            Self::Fou { underlay, kind } => {
                let mut parts = vec![ip(underlay)];
                parts.extend(in_udp(kind));
                parts
            }
            Self::Nat64 { fragment_header } => {
                let longer = Family::V6.header_bytes() - Family::V4.header_bytes();
                let mut parts = vec![part("IPv6 header for IPv4's", longer, "RFC 7915 section 4.1")];
                let fragment = part("fragment header", 8, "RFC 7915 section 4; RFC 8200 section 4.5");
                parts.extend(fragment_header.then_some(fragment));
                parts
            }
            _ => vec![],
        }
    }

    fn authentication(&self) -> Vec<Part> {
        let Self::Ah { family, tunnel, hmac, align8 } = *self else { return vec![] };
        const HEADER_BYTES: u32 = 12;
        let mut parts = vec![];
        parts.extend(tunnel.then(|| ip(family)));
        let icv = hmac.truncated();
        let unaligned = HEADER_BYTES + icv.bytes;
        let multiple = if align8 || family == Family::V6 { 8 } else { 4 };
        parts.extend([part("AH header", HEADER_BYTES, "RFC 4302 section 2"), icv]);
        let padding = unaligned.next_multiple_of(multiple) - unaligned;
        if padding > 0 {
            parts.push(part("ICV padding", padding, "RFC 4302 section 3.3.3.2.1; Linux ah_init_state()"));
        }
        parts
    }

    fn l2tp_version_3(&self) -> Vec<Part> {
        let Self::L2tpV3 { underlay, udp, cookie_bytes, sublayer } = *self else { return vec![] };
        let mut parts = vec![ip(underlay)];
        if udp {
            parts.extend([UDP, part("L2TPv3 flags and version", 4, "RFC 3931 section 4.1.2.1")]);
        }
        parts.push(part("session ID", 4, "RFC 3931 section 4.1"));
        if cookie_bytes > 0 {
            parts.push(part("cookie", u32::from(cookie_bytes), "RFC 3931 section 4.1"));
        }
        if sublayer {
            parts.push(part("layer-2-specific sublayer", 4, "RFC 3931 section 4.6"));
        }
        parts.push(INNER_ETHERNET);
        parts
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
    parts.extend(options.in_udp.into_iter().flat_map(in_udp));
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

fn in_udp(kind: InUdp) -> Vec<Part> {
    match kind {
        InUdp::Fou => vec![UDP],
        InUdp::Gue => vec![UDP, GUE],
    }
}

fn l2tp(underlay: Family, length: bool, sequence: bool) -> Vec<Part> {
    let mut parts = vec![ip(underlay), UDP, part("L2TP header", 6, "RFC 2661 section 3.1")];
    if length {
        parts.push(part("L2TP length", 2, "RFC 2661 section 3.1"));
    }
    if sequence {
        parts.push(part("L2TP sequence numbers", 4, "RFC 2661 section 3.1"));
    }
    parts.extend(PPP);
    parts
}

fn pptp() -> Vec<Part> {
    let mut parts = vec![
        ip(Family::V4),
        part("enhanced GRE header", 8, "RFC 2637 section 4.1"),
        part("sequence number", 4, "RFC 2637 section 4.1"),
        part("acknowledgement number", 4, "RFC 2637 section 4.1"),
    ];
    parts.extend(PPP);
    parts
}

fn gtp_u(underlay: Family, sequence: bool, pdu_session: bool) -> Vec<Part> {
    let mut parts = vec![ip(underlay), UDP, part("GTP-U header", 8, "3GPP TS 29.281 section 5.1")];
    if sequence || pdu_session {
        parts.push(part("sequence, N-PDU, next type", 4, "3GPP TS 29.281 section 5.1"));
    }
    if pdu_session {
        parts.push(part("PDU session container", 4, "3GPP TS 38.415 section 5.5.2; TS 29.281 section 5.2.1"));
    }
    parts
}

fn srv6(segments: u8, reduced: bool, l2: bool) -> Vec<Part> {
    let mut parts = vec![ip(Family::V6)];
    // A reduced path of one segment needs no list (RFC 8986 section 5.2).
    let entries = u32::from(segments) - u32::from(reduced);
    if entries > 0 {
        parts.push(part("segment routing header", 8, "RFC 8754 section 2"));
        parts.push(part("segments, 16 bytes each", 16 * entries, "RFC 8754 section 2"));
    }
    parts.extend(l2.then_some(INNER_ETHERNET));
    parts
}
