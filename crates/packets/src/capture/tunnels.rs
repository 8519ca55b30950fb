//! What carries packets in packets: VXLAN (RFC 7348), Geneve (RFC 8926), GRE (RFC 2784, RFC 2890) with Ethernet, IP or
//! ERSPAN (draft-foschiano-erspan) inside, and IP in IP (RFC 2003, RFC 4213).

use super::walk::{Inside, Ip, Walk, Why, word};
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

const TYPE_ETHERNET: u16 = 0x6558;
const TYPE_ERSPAN: u16 = 0x88be;
const TYPE_ERSPAN3: u16 = 0x22eb;

const GRE_CHECKSUM: u16 = 0x8000;
const GRE_KEY: u16 = 0x2000;
const GRE_SEQUENCE: u16 = 0x1000;
/// Source routing, which nobody sends, and the version, which PPTP has made another.
const GRE_FOREIGN: u16 = 0x4007;

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
            PROTOCOL_UDP => self.in_udp()?,
            GRE => self.in_gre()?,
            IPV4_INSIDE => Inside::Ethertype(TYPE_IPV4),
            IPV6_INSIDE => Inside::Ethertype(TYPE_IPV6),
            _ => return Ok(None),
        }))
    }

    fn in_udp(&mut self) -> Result<Inside, Why> {
        let start = self.at;
        let header = self.take::<8>()?;
        let (port, length) = (word(header, 2), usize::from(word(header, 4)));
        let is_vxlan = PORTS_VXLAN.contains(&port);
        if !is_vxlan && port != PORT_GENEVE {
            return Err(Why::NotTcp { protocol: PROTOCOL_UDP });
        }
        // 0 for aggregates of more than 64 KiB.
        if length != 0 {
            self.end = self.end.min(start + length);
        }
        let tunnel = self.take::<8>()?;
        if is_vxlan {
            return if tunnel[0] & vxlan::VALID == 0 {
                Err(Why::NotTcp { protocol: PROTOCOL_UDP })
            } else {
                self.ethernet()
            };
        }
        let (version, options_bytes) = (tunnel[0] >> 6, usize::from(tunnel[0] & 0x3f) * 4);
        if version != 0 {
            return Err(Why::NotTcp { protocol: PROTOCOL_UDP });
        }
        self.at += options_bytes;
        self.by_type(word(tunnel, 2))
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
