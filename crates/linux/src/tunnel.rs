//! What a tunnel interface encapsulates, from its kind and attributes (`IFLA_LINKINFO`, `linux/if_tunnel.h`,
//! `linux/if_link.h`). Pure: bytes in, an [`Encapsulation`] out, `None` where the attributes do not tell.

use crate::netlink::{address_of, attribute, attribute_u32};
use framegauge_frames::{Encapsulation, Family, GreOptions, InUdp};
use std::net::IpAddr;

pub(crate) const INFO_KIND: u16 = 1;
pub(crate) const INFO_DATA: u16 = 2;

/// A tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tunnel {
    /// What it adds; `None` where that differs from packet to packet, or is not told.
    pub encapsulation: Option<Encapsulation>,
    /// The other end, where it is one host.
    pub remote: Option<IpAddr>,
    /// The index of the interface that it is bound to.
    pub link: Option<u32>,
}

/// The attributes of one kind of tunnel: where it keeps what.
struct Places {
    link: u16,
    remote: &'static [u16],
    local: &'static [u16],
    /// Set: a program decides for every packet (OVS, eBPF).
    collect_metadata: u16,
    /// In UDP besides (FOU, GUE).
    encapsulation_type: Option<u16>,
}

const VXLAN: Places =
    Places { link: 3, remote: &[2, 16], local: &[4, 17], collect_metadata: 25, encapsulation_type: None };
const VXLAN_GPE: u16 = 27;
const GENEVE: Places =
    Places { link: 0, remote: &[2, 7], local: &[], collect_metadata: 6, encapsulation_type: None };
const GENEVE_INNER_PROTO_INHERIT: u16 = 14;
const GRE: Places =
    Places { link: 1, remote: &[7], local: &[6], collect_metadata: 18, encapsulation_type: Some(14) };
const GRE_OFLAGS: u16 = 3;
const GRE_FLAGS: u16 = 13;
const IPTUN: Places =
    Places { link: 1, remote: &[3], local: &[2], collect_metadata: 19, encapsulation_type: Some(15) };
const IPTUN_FLAGS: u16 = 8;
const IPTUN_PROTO: u16 = 9;
/// `IP6_TNL_F_IGN_ENCAP_LIMIT`
const IGNORE_ENCAPSULATION_LIMIT: u32 = 1;

/// Reads the attributes of an interface of that kind; `None` if it is no tunnel.
pub fn parse(kind: &str, data: &[u8]) -> Option<Tunnel> {
    let places = match kind {
        "vxlan" => VXLAN,
        "geneve" => GENEVE,
        "gre" | "gretap" | "ip6gre" | "ip6gretap" | "erspan" | "ip6erspan" => GRE,
        "ipip" | "sit" | "ip6tnl" => IPTUN,
        // Its peers have each an underlay of their own, and reading them would hand over its keys.
        "wireguard" => return Some(Tunnel { encapsulation: None, remote: None, link: None }),
        _ => return None,
    };
    let address = |kinds: &[u16]| {
        let address_at = |kind: &u16| attribute(data, *kind).and_then(address_of);
        kinds.iter().find_map(address_at).filter(|address| !address.is_unspecified())
    };
    let remote = address(places.remote);
    let is_v6 =
        kind.starts_with("ip6") || remote.or_else(|| address(places.local)).is_some_and(|ip| ip.is_ipv6());
    let underlay = if is_v6 { Family::V6 } else { Family::V4 };
    // A flag where it has no value, a switch where it has one.
    let by_packet = attribute(data, places.collect_metadata).is_some_and(|value| value.first() != Some(&0));
    let in_udp = places.encapsulation_type.map_or(Ok(None), |kind| in_udp(data, kind));
    let in_udp = in_udp.ok().filter(|_| !by_packet);
    Some(Tunnel {
        encapsulation: in_udp.and_then(|in_udp| encapsulation(kind, underlay, in_udp, data)),
        remote: remote.filter(|remote| !remote.is_multicast()),
        link: attribute_u32(data, places.link).filter(|link| *link != 0 && places.link != 0),
    })
}

/// What puts it into UDP, if anything does (`TUNNEL_ENCAP_*`); an error where that is not known. Its flags follow its kind.
fn in_udp(data: &[u8], kind: u16) -> Result<Option<InUdp>, ()> {
    const FLAG_REMOTE_CHECKSUM: u16 = 4;
    let number = |kind| match attribute(data, kind) {
        Some(value) => value.try_into().map(u16::from_ne_bytes).map_err(|_| ()),
        None => Ok(0),
    };
    match (number(kind)?, number(kind + 1)?) {
        (0, _) => Ok(None),
        (1, _) => Ok(Some(InUdp::Fou)),
        // With that flag its header has extension fields.
        (2, flags) if flags & FLAG_REMOTE_CHECKSUM == 0 => Ok(Some(InUdp::Gue)),
        _ => Err(()),
    }
}

fn encapsulation(kind: &str, underlay: Family, in_udp: Option<InUdp>, data: &[u8]) -> Option<Encapsulation> {
    let limited = |flags: u16| {
        underlay == Family::V6
            && attribute_u32(data, flags).is_some_and(|flags| flags & IGNORE_ENCAPSULATION_LIMIT == 0)
    };
    match kind {
        "vxlan" => Some(Encapsulation::Vxlan { underlay, gpe: attribute(data, VXLAN_GPE).is_some() }),
        "geneve" if attribute(data, GENEVE_INNER_PROTO_INHERIT).is_none() => {
            Some(Encapsulation::Geneve { underlay, options_bytes: 0 })
        }
        "gre" | "ip6gre" => {
            Some(Encapsulation::Gre { underlay, options: gre(data, limited(GRE_FLAGS), in_udp) })
        }
        "gretap" | "ip6gretap" => {
            Some(Encapsulation::Gretap { underlay, options: gre(data, limited(GRE_FLAGS), in_udp) })
        }
        "ipip" | "sit" | "ip6tnl" if in_udp.is_some() => {
            in_udp.filter(|_| !limited(IPTUN_FLAGS)).map(|kind| Encapsulation::Fou { underlay, kind })
        }
        "ipip" => Some(ip(underlay, Family::V4, false)),
        "sit" => Some(ip(underlay, Family::V6, false)),
        "ip6tnl" => {
            let protocol = attribute(data, IPTUN_PROTO)?.first().copied()?;
            let inner = if i32::from(protocol) == libc::IPPROTO_IPIP { Family::V4 } else { Family::V6 };
            Some(ip(underlay, inner, limited(IPTUN_FLAGS)))
        }
        _ => None,
    }
}

fn ip(underlay: Family, inner: Family, encapsulation_limit: bool) -> Encapsulation {
    Encapsulation::Ip { underlay, inner, encapsulation_limit }
}

/// The fields of the header that it sends (RFC 2890, in network byte order).
fn gre(data: &[u8], encapsulation_limit: bool, in_udp: Option<InUdp>) -> GreOptions {
    const CHECKSUM: u16 = 0x8000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    let flags =
        attribute(data, GRE_OFLAGS).and_then(|flags| flags.try_into().ok()).map_or(0, u16::from_be_bytes);
    GreOptions {
        key: flags & KEY != 0,
        checksum: flags & CHECKSUM != 0,
        sequence: flags & SEQUENCE != 0,
        encapsulation_limit,
        in_udp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KINDS: [&str; 12] = [
        "vxlan",
        "geneve",
        "gre",
        "gretap",
        "ip6gre",
        "ip6gretap",
        "erspan",
        "ipip",
        "sit",
        "ip6tnl",
        "wireguard",
        "veth",
    ];

    fn data(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, value) in attributes {
            bytes.extend((4 + value.len() as u16).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend_from_slice(value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    fn overhead(kind: &str, attributes: &[(u16, &[u8])]) -> Option<u32> {
        parse(kind, &data(attributes))?.encapsulation.map(|encapsulation| encapsulation.overhead_bytes())
    }

    const V4: &[u8] = &[10, 0, 0, 2];
    const V6: &[u8] = &[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    const ZERO: &[u8] = &[0; 4];
    const ONE: &[u8] = &1u32.to_ne_bytes();

    /// Attributes as drivers write them (`vxlan_fill_info()`, `ipgre_fill_info()`, …) and what they mean.
    #[test]
    fn every_kind() {
        assert_eq!(overhead("vxlan", &[(2, V4), (25, &[0])]), Some(50));
        assert_eq!(overhead("vxlan", &[(16, V6), (25, &[0])]), Some(70));
        assert_eq!(overhead("vxlan", &[(17, V6)]), Some(70), "no remote: its own address tells");
        assert_eq!(overhead("vxlan", &[(2, V4), (27, &[])]), Some(36), "GPE");
        assert_eq!(overhead("vxlan", &[(25, &[1])]), None, "each packet has an underlay of its own");
        assert_eq!(overhead("geneve", &[(2, V4)]), Some(50));
        assert_eq!(overhead("geneve", &[(7, V6)]), Some(70));
        assert_eq!(overhead("geneve", &[(6, &[])]), None, "OVS");
        assert_eq!(overhead("geneve", &[(2, V4), (14, &[])]), None, "no Ethernet inside, or some");
        assert_eq!(overhead("gre", &[(3, &[0, 0]), (7, V4)]), Some(24));
        assert_eq!(overhead("gre", &[(3, &[0xb0, 0]), (7, V4)]), Some(36), "checksum, key, sequence");
        assert_eq!(overhead("gre", &[(7, V4), (14, &[1, 0])]), Some(32), "FOU: UDP in addition");
        assert_eq!(overhead("gre", &[(7, V4), (14, &[2, 0]), (15, &[1, 0])]), Some(36), "GUE");
        assert_eq!(
            overhead("gre", &[(7, V4), (14, &[2, 0]), (15, &[4, 0])]),
            None,
            "GUE with fields of its own"
        );
        assert_eq!(overhead("gre", &[(7, V4), (14, &[3, 0])]), None, "nothing known");
        assert_eq!(overhead("ipip", &[(3, V4), (15, &[1, 0])]), Some(28), "FOU");
        assert_eq!(overhead("sit", &[(3, V4), (15, &[2, 0])]), Some(32), "GUE");
        assert_eq!(overhead("gretap", &[(3, &[0x20, 0]), (7, V4), (14, &[0, 0])]), Some(42));
        assert_eq!(overhead("ip6gre", &[(7, V6), (13, ZERO)]), Some(52), "with the encapsulation limit");
        assert_eq!(overhead("ip6gre", &[(7, V6), (13, ONE)]), Some(44));
        assert_eq!(overhead("ip6gretap", &[(7, V6), (13, ONE)]), Some(58));
        assert_eq!(overhead("ipip", &[(3, V4)]), Some(20));
        assert_eq!(overhead("sit", &[(3, V4)]), Some(20));
        assert_eq!(overhead("ip6tnl", &[(3, V6), (9, &[41]), (8, ZERO)]), Some(48));
        assert_eq!(overhead("ip6tnl", &[(3, V6), (9, &[4]), (8, ONE)]), Some(40));
        assert_eq!(overhead("wireguard", &[]), None);
        assert!(parse("veth", &[]).is_none());
    }

    #[test]
    fn both_ends() {
        let tunnel = parse("vxlan", &data(&[(2, V4), (3, &7u32.to_ne_bytes())])).expect("a tunnel");
        assert_eq!((tunnel.remote, tunnel.link), (Some([10, 0, 0, 2].into()), Some(7)));
        let group = parse("vxlan", &data(&[(2, &[239, 1, 1, 1])])).expect("a tunnel");
        assert_eq!((group.remote, group.link), (None, None));
        let any = parse("ipip", &data(&[(3, &[0; 4]), (1, ZERO)])).expect("a tunnel");
        assert_eq!((any.remote, any.link), (None, None));
    }

    proptest! {
        #[test]
        fn damaged_attributes_never_panic(
            place in 0..KINDS.len(), bytes in proptest::collection::vec(any::<u8>(), 0..120),
        ) {
            let _ = parse(KINDS[place], &bytes);
        }

        #[test]
        fn attributes_that_nobody_knows_change_nothing(
            place in 0..KINDS.len(), v6: bool, more in proptest::collection::vec((60u16..16_000, any::<[u8; 5]>()), 0..6),
        ) {
            let own = [(2, if v6 { V6 } else { V4 }), (3, V4), (7, V4)];
            let mut all: Vec<(u16, &[u8])> = more.iter().map(|(kind, value)| (*kind, value.as_slice())).collect();
            all.extend(own);
            prop_assert_eq!(parse(KINDS[place], &data(&all)), parse(KINDS[place], &data(&own)));
        }
    }
}
