//! Encapsulations written down again, as [`Stack::parse`](super::Stack::parse) reads them.

use super::{Encapsulation, GreOptions, InUdp, Layer, OpenVpnSuite};
use crate::Family;
use std::fmt;

impl fmt::Display for Layer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.encapsulation)?;
        if self.within_mtu { out.write_str(":in-mtu") } else { Ok(()) }
    }
}

/// The word without its underlay, options included, as people write it.
impl fmt::Display for Encapsulation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())?;
        if let Some(number) = self.number() {
            write!(out, ":{number}")?;
        }
        self.options().iter().filter(|(_, on)| *on).try_for_each(|(word, _)| write!(out, ":{word}"))
    }
}

impl Encapsulation {
    fn word(&self) -> &'static str {
        match self {
            Self::Vlan => "vlan",
            Self::Qinq => "qinq",
            Self::Macsec { .. } => "macsec",
            Self::Mpls { .. } => "mpls",
            Self::Pppoe => "pppoe",
            Self::Vxlan { .. } => "vxlan",
            Self::Geneve { .. } => "geneve",
            Self::Gre { .. } => "gre",
            Self::Gretap { .. } => "gretap",
            Self::Nvgre { .. } => "nvgre",
            Self::Ip { underlay: Family::V4, inner: Family::V4, .. } => "ipip",
            Self::Ip { underlay: Family::V4, inner: Family::V6, .. } => "6in4",
            Self::Ip { underlay: Family::V6, inner: Family::V4, .. } => "4in6",
            Self::Ip { underlay: Family::V6, inner: Family::V6, .. } => "ip6ip6",
            Self::WireGuard { .. } => "wireguard",
            Self::EspTunnel { .. } => "esp-tunnel",
            Self::EspTransport { .. } => "esp-transport",
            Self::Ah { tunnel: true, .. } => "ah-tunnel",
            Self::Ah { tunnel: false, .. } => "ah-transport",
            Self::L2tp { .. } => "l2tp",
            Self::L2tpV3 { .. } => "l2tpv3",
            Self::Pptp => "pptp",
            Self::OpenVpn { .. } => "openvpn",
            Self::Stt { .. } => "stt",
            Self::GtpU { .. } => "gtp-u",
            Self::Srv6 { .. } => "srv6",
            Self::Fou { kind: InUdp::Fou, .. } => "fou",
            Self::Fou { kind: InUdp::Gue, .. } => "gue",
            Self::Nat64 { .. } => "464xlat",
        }
    }

    fn number(&self) -> Option<u8> {
        match self {
            Self::Mpls { labels } => Some(*labels),
            Self::Srv6 { segments, .. } => Some(*segments),
            Self::Geneve { options_bytes: bytes, .. } | Self::L2tpV3 { cookie_bytes: bytes, .. } => {
                Some(*bytes).filter(|bytes| *bytes > 0)
            }
            _ => None,
        }
    }

    fn options(&self) -> Vec<(&'static str, bool)> {
        match *self {
            Self::Macsec { sci } => vec![("no-sci", !sci)],
            Self::Vxlan { gpe, .. } => vec![("gpe", gpe)],
            Self::Gre { options, .. } | Self::Gretap { options, .. } => options.words(),
            Self::Ip { encapsulation_limit, .. } => vec![("encap-limit", encapsulation_limit)],
            Self::EspTunnel { nat_traversal, suite, .. }
            | Self::EspTransport { nat_traversal, suite, .. } => {
                [vec![("nat-t", nat_traversal)], suite.words()].concat()
            }
            Self::Ah { hmac, align8, .. } => vec![(hmac.word(), true), ("align8", align8)],
            Self::L2tp { length, sequence, .. } => vec![("length", length), ("sequence", sequence)],
            Self::L2tpV3 { udp, sublayer, .. } => vec![("udp", udp), ("no-sublayer", !sublayer)],
            Self::OpenVpn { tap, suite: OpenVpnSuite::Aead, .. } => vec![("tap", tap)],
            Self::OpenVpn { tap, suite: OpenVpnSuite::Cbc(hmac), .. } => {
                vec![("tap", tap), ("cbc", true), (hmac.word(), true)]
            }
            Self::GtpU { sequence, pdu_session, .. } => {
                vec![("sequence", sequence), ("pdu-session", pdu_session)]
            }
            Self::Srv6 { reduced, l2, .. } => vec![("reduced", reduced), ("l2", l2)],
            Self::Nat64 { fragment_header } => vec![("fragment", fragment_header)],
            _ => vec![],
        }
    }
}

impl GreOptions {
    fn words(&self) -> Vec<(&'static str, bool)> {
        vec![
            ("key", self.key),
            ("checksum", self.checksum),
            ("sequence", self.sequence),
            ("encap-limit", self.encapsulation_limit),
            ("fou", self.in_udp == Some(InUdp::Fou)),
            ("gue", self.in_udp == Some(InUdp::Gue)),
        ]
    }
}
