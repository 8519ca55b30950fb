//! What carries packets in packets: VXLAN (RFC 7348) and its generic extension (draft-ietf-nvo3-vxlan-gpe), Geneve
//! (RFC 8926), GTP-U (3GPP TS 29.281), MPLS in UDP (RFC 7510), GRE (RFC 2784, RFC 2890), also in UDP (RFC 8086), with
//! Ethernet, IP or ERSPAN (draft-foschiano-erspan) inside, and IP in IP (RFC 2003, RFC 4213).

use super::walk::{Datagram, Inside, Ip, Walk, Why, word};
use crate::view::{PROTOCOL_TCP, PROTOCOL_UDP, TYPE_IPV4, TYPE_IPV6};
use crate::vxlan;

/// One in the other.
const TUNNELS_MAXIMUM: usize = 4;

const IPV4_INSIDE: u8 = 4;
const IPV6_INSIDE: u8 = 41;
const GRE: u8 = 47;

/// IANA's, and the one that Linux has if it is not told.
const PORTS_VXLAN: [u16; 2] = [vxlan::PORT, 8472];
const PORT_GENEVE: u16 = 6081;
const PORT_VXLAN_GPE: u16 = 4790;
const PORT_GTP: u16 = 2152;
const PORT_MPLS: u16 = 6635;
const PORT_GRE: u16 = 4754;
/// What follows VXLAN's header has a number of its own there.
const GPE_NEXT: u8 = 4;
/// GTP's version 1, and the message that carries a user's packet.
const GTP_VERSION: u8 = 0x30;
const GTP_PACKET: u8 = 255;
const GTP_EXTENSIONS_MAXIMUM: usize = 4;

const TYPE_ETHERNET: u16 = 0x6558;
const TYPE_ERSPAN: u16 = 0x88be;
const TYPE_ERSPAN3: u16 = 0x22eb;

const GRE_CHECKSUM: u16 = 0x8000;
const GRE_KEY: u16 = 0x2000;
const GRE_SEQUENCE: u16 = 0x1000;
/// Source routing, which nobody sends, and the version, which PPTP has made another.
const GRE_FOREIGN: u16 = 0x4007;

const TYPE_MPLS: u16 = 0x8847;
const NO_TUNNEL: Why = Why::NotTcp { protocol: PROTOCOL_UDP };

fn is_tunnel(port: u16) -> bool {
    PORTS_VXLAN.contains(&port)
        || matches!(port, PORT_GENEVE | PORT_VXLAN_GPE | PORT_GTP | PORT_MPLS | PORT_GRE)
}

impl Walk<'_> {
    /// The innermost IP header; the walk stands behind it. What it carries is no tunnel that is read, and not UDP.
    #[inline]
    pub(super) fn innermost(&mut self, inside: Inside) -> Result<Ip, Why> {
        let mut ip = self.network(inside)?;
        for _ in 0..TUNNELS_MAXIMUM {
            if ip.protocol == PROTOCOL_TCP {
                break;
            }
            let Some(inside) = self.tunnel(&ip)? else { break };
            ip = self.network(inside)?;
        }
        match ip.protocol {
            PROTOCOL_UDP | GRE | IPV4_INSIDE | IPV6_INSIDE => Err(Why::TooDeep),
            _ => Ok(ip),
        }
    }

    /// What is inside, if this IP packet is a tunnel's.
    fn tunnel(&mut self, ip: &Ip) -> Result<Option<Inside>, Why> {
        Ok(Some(match ip.protocol {
            PROTOCOL_UDP => self.in_udp(ip)?,
            GRE => self.in_gre()?,
            IPV4_INSIDE => Inside::Ethertype(TYPE_IPV4),
            IPV6_INSIDE => Inside::Ethertype(TYPE_IPV6),
            _ => return Ok(None),
        }))
    }

    fn in_udp(&mut self, ip: &Ip) -> Result<Inside, Why> {
        let start = self.at;
        let header = self.take::<8>()?;
        let (port, length) = (word(header, 2), usize::from(word(header, 4)));
        if !is_tunnel(port) {
            return Err(NO_TUNNEL);
        }
        // 0 for aggregates of more than 64 KiB.
        if length != 0 {
            self.end = self.end.min(start + length);
        }
        let whole = (!ip.is_fragment && !ip.is_rerouted).then_some(self.end);
        let (source, destination) = (ip.source, ip.destination);
        self.datagram = whole.map(|end| Datagram { source, destination, start, end });
        match port {
            PORT_MPLS => Ok(Inside::Ethertype(TYPE_MPLS)),
            PORT_GTP => self.in_gtp(),
            PORT_GRE => self.in_gre(),
            PORT_GENEVE => {
                let tunnel = self.take::<8>()?;
                let (version, options_bytes) = (tunnel[0] >> 6, usize::from(tunnel[0] & 0x3f) * 4);
                if version != 0 {
                    return Err(NO_TUNNEL);
                }
                self.at += options_bytes;
                self.by_type(word(tunnel, 2))
            }
            _ => {
                let tunnel = self.take::<8>()?;
                if tunnel[0] & vxlan::VALID == 0 {
                    return Err(NO_TUNNEL);
                }
                let next = if port == PORT_VXLAN_GPE && tunnel[0] & GPE_NEXT != 0 { tunnel[3] } else { 3 };
                match next {
                    1 => Ok(Inside::Ethertype(TYPE_IPV4)),
                    2 => Ok(Inside::Ethertype(TYPE_IPV6)),
                    3 => self.ethernet(),
                    _ => Err(NO_TUNNEL),
                }
            }
        }
    }

    /// A user's packet in a mobile network. If any of three flags is set, four more bytes follow, and the last of them
    /// is the type of an extension header, which has its length in words of four bytes in front and the next type at
    /// its end.
    fn in_gtp(&mut self) -> Result<Inside, Why> {
        let header = self.take::<8>()?;
        if header[0] & 0xf0 != GTP_VERSION || header[1] != GTP_PACKET {
            return Err(NO_TUNNEL);
        }
        if header[0] & 7 != 0 {
            let mut next = self.take::<4>()?[3];
            for _ in 0..GTP_EXTENSIONS_MAXIMUM {
                if next == 0 || header[0] & 4 == 0 {
                    return Ok(Inside::Ip);
                }
                let bytes = 4 * usize::from(self.peek::<1>()?[0]);
                if bytes == 0 {
                    return Err(Why::Malformed);
                }
                self.at += bytes - 1;
                next = self.take::<1>()?[0];
            }
            return if next == 0 { Ok(Inside::Ip) } else { Err(Why::TooDeep) };
        }
        Ok(Inside::Ip)
    }

    fn in_gre(&mut self) -> Result<Inside, Why> {
        let header = self.take::<4>()?;
        let (flags, kind) = (word(header, 0), word(header, 2));
        if flags & GRE_FOREIGN != 0 {
            return Err(Why::NotTcp { protocol: GRE });
        }
        let optional = [GRE_CHECKSUM, GRE_KEY, GRE_SEQUENCE];
        self.at += 4 * optional.iter().filter(|flag| flags & *flag != 0).count();
        match kind {
            // Without a number it is version I, which has no header of its own.
            TYPE_ERSPAN => {
                self.at += if flags & GRE_SEQUENCE != 0 { 8 } else { 0 };
                self.ethernet()
            }
            TYPE_ERSPAN3 => {
                let has_more = self.take::<12>()?[11] & 1 != 0;
                self.at += if has_more { 8 } else { 0 };
                self.ethernet()
            }
            kind => self.by_type(kind),
        }
    }

    fn by_type(&mut self, kind: u16) -> Result<Inside, Why> {
        if kind == TYPE_ETHERNET { self.ethernet() } else { Ok(Inside::Ethertype(kind)) }
    }
}
