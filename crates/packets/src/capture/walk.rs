//! From the first byte of a frame to what an IP packet carries, header by header.
//!
//! Two ends count: where the capture was cut, behind which nothing can be read, and where the present layer ends on the
//! wire, behind which nothing belongs to it (padding, a frame check sequence). An IP header decides the second; one that
//! says nothing (BIG TCP and aggregates: length 0) leaves it where the layer around it ends.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::LinkType;
use crate::view::{PROTOCOL_TCP, TYPE_IPV4, TYPE_IPV6};

/// Layers between the link's header and IP, one in the other.
const LAYERS_MAXIMUM: usize = 4;
/// Far more than any packet has.
const EXTENSIONS_MAXIMUM: usize = 12;

const ETHERNET_BYTES: usize = 14;
const COOKED_BYTES: usize = 16;
const COOKED2_BYTES: usize = 20;
const FAMILY_BYTES: usize = 4;
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;
/// RFC 2675.
const JUMBO_PAYLOAD: u8 = 0xc2;

/// Why a packet gives no segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// It carries something else than IP: by its EtherType, its length where that is below 1536 (IEEE 802.3), its
    /// protocol of PPP or its kind of frame of 802.11.
    NotIp {
        /// The EtherType.
        ethertype: u16,
    },
    /// Its IP packet carries something else than TCP or an ICMP error.
    NotTcp {
        /// The IP protocol number.
        protocol: u8,
    },
    /// It is encrypted on its link (802.11).
    Encrypted,
    /// A fragment of an IP packet, without the header of what it carries.
    Fragment,
    /// The capture was cut before the end of the headers.
    Cut,
    /// Its headers contradict themselves.
    Malformed,
    /// More tunnels, tags or extension headers than are read.
    TooDeep,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    Ethertype(u16),
    /// The first four bits say which version.
    Ip,
}

/// What matters of an IP header and its extensions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ip {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) protocol: u8,
    /// Where it begins in the frame.
    pub(super) start: usize,
    pub(super) hops: u8,
    pub(super) ecn: u8,
    pub(super) identification: Option<u16>,
    /// The first fragment: the rest of the packet is elsewhere.
    pub(super) is_fragment: bool,
    /// A routing header names another destination, and the checksum covers that one.
    pub(super) is_rerouted: bool,
}

/// A place in a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk<'a> {
    /// What was captured of the frame.
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    /// Where the present layer ends on the wire, in bytes from the start of the frame.
    pub(super) end: usize,
    /// The UDP datagram of the innermost tunnel.
    pub(super) datagram: Option<Datagram>,
    /// What the newest IP header that is a fragment's says of it.
    pub(super) fragment: Option<Fragment>,
}

/// A fragment of an IP packet (RFC 791 section 3.2, RFC 8200 section 4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// What all fragments of the packet have.
    pub packet: FragmentedPacket,
    /// Its first byte within what the packet carries.
    pub begin: usize,
    /// The byte after it.
    pub end: usize,
    /// Nothing follows it.
    pub is_last: bool,
}

/// What tells a packet that was cut from others, for as long as it may be under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FragmentedPacket {
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes to.
    pub destination: IpAddr,
    /// What it carries.
    pub protocol: u8,
    /// Its identification.
    pub identification: u32,
}

/// A UDP datagram around what is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Datagram {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) start: usize,
    pub(super) end: usize,
}

pub(super) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

impl<'a> Walk<'a> {
    /// The next bytes.
    #[inline]
    pub(super) fn peek<const N: usize>(&self) -> Result<&'a [u8; N], Why> {
        match self.bytes.get(self.at..).and_then(|rest| rest.first_chunk()) {
            Some(chunk) if self.at + N <= self.end => Ok(chunk),
            _ if self.at + N > self.end => Err(Why::Malformed),
            _ => Err(Why::Cut),
        }
    }

    /// The next bytes, and goes on behind them.
    #[inline]
    pub(super) fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], Why> {
        let bytes = self.peek()?;
        self.at += N;
        Ok(bytes)
    }

    /// The header of the link layer.
    #[inline]
    pub(super) fn link(&mut self, link: LinkType) -> Result<Inside, Why> {
        match link {
            LinkType::Ethernet => self.ethernet(),
            LinkType::Ip => Ok(Inside::Ip),
            LinkType::LinuxCooked => {
                self.take::<COOKED_BYTES>().map(|header| Inside::Ethertype(word(header, 14)))
            }
            LinkType::LinuxCooked2 => {
                self.take::<COOKED2_BYTES>().map(|header| Inside::Ethertype(word(header, 0)))
            }
            LinkType::Ppp => self.ppp(),
            LinkType::PppEther => self.pppoe(),
            LinkType::CiscoHdlc => self.take::<4>().map(|header| Inside::Ethertype(word(header, 2))),
            LinkType::Wireless => self.wireless(false),
            LinkType::Radiotap => self.radiotap(),
            LinkType::PerPacket => self.per_packet(),
            LinkType::FrameRelay => self.frame_relay(),
            LinkType::Fddi => self.fddi(),
            LinkType::Nflog => self.nflog(),
            LinkType::Loopback => {
                let family = long(self.take::<FAMILY_BYTES>()?, 0);
                // The other byte order, if that makes it small.
                match family.min(family.swap_bytes()) {
                    // AF_INET; AF_INET6 of Linux, NetBSD and OpenBSD, FreeBSD, Darwin.
                    2 | 10 | 24 | 28 | 30 => Ok(Inside::Ip),
                    other => Err(Why::NotIp { ethertype: other as u16 }),
                }
            }
        }
    }

    #[inline]
    pub(super) fn ethernet(&mut self) -> Result<Inside, Why> {
        self.take::<ETHERNET_BYTES>().map(|header| Inside::Ethertype(word(header, 12)))
    }

    /// Tags and other layers, then an IP header.
    #[inline]
    pub(super) fn network(&mut self, mut inside: Inside) -> Result<Ip, Why> {
        for _ in 0..=LAYERS_MAXIMUM {
            let ethertype = match inside {
                Inside::Ethertype(ethertype) => ethertype,
                Inside::Ip => match self.peek::<1>()?[0] >> 4 {
                    4 => TYPE_IPV4,
                    6 => TYPE_IPV6,
                    _ => return Err(Why::Malformed),
                },
            };
            match ethertype {
                TYPE_IPV4 => return self.ipv4(),
                TYPE_IPV6 => return self.ipv6(),
                _ => inside = self.layer(ethertype)?,
            }
        }
        Err(Why::TooDeep)
    }

    #[inline]
    fn ipv4(&mut self) -> Result<Ip, Why> {
        let start = self.at;
        let header = self.take::<IPV4_BYTES>()?;
        let (header_bytes, total) = (usize::from(header[0] & 15) * 4, usize::from(word(header, 2)));
        if header[0] >> 4 != 4 || header_bytes < IPV4_BYTES || (total != 0 && total < header_bytes) {
            return Err(Why::Malformed);
        }
        self.at = start + header_bytes;
        if total != 0 {
            self.end = start + total;
        }
        // The upper three bits of the word are flags: reserved, don't fragment, more fragments.
        let fragment = word(header, 6);
        let address = |at: usize| IpAddr::V4(Ipv4Addr::from_bits(long(header, at)));
        if fragment & 0x3fff != 0 {
            self.fragment = Some(Fragment {
                packet: FragmentedPacket {
                    source: address(12),
                    destination: address(16),
                    protocol: header[9],
                    identification: word(header, 4).into(),
                },
                begin: usize::from(fragment & 0x1fff) * 8,
                end: usize::from(fragment & 0x1fff) * 8 + self.end.saturating_sub(self.at),
                is_last: fragment & 0x2000 == 0,
            });
        }
        if fragment & 0x1fff != 0 {
            return Err(Why::Fragment);
        }
        let mut ip = Ip {
            source: address(12),
            destination: address(16),
            protocol: header[9],
            start,
            hops: header[8],
            ecn: header[1] & 3,
            identification: Some(word(header, 4)),
            is_fragment: fragment & 0x2000 != 0,
            is_rerouted: false,
        };
        if ip.protocol == AUTHENTICATION {
            self.extensions(&mut ip, None)?;
        }
        Ok(ip)
    }

    #[inline]
    fn ipv6(&mut self) -> Result<Ip, Why> {
        let start = self.at;
        let header = self.take::<IPV6_BYTES>()?;
        if header[0] >> 4 != 6 {
            return Err(Why::Malformed);
        }
        let payload = usize::from(word(header, 4));
        if payload != 0 {
            self.end = self.at + payload;
        }
        let address = |at: usize| {
            let octets: [u8; 16] = std::array::from_fn(|index| header[at + index]);
            IpAddr::V6(Ipv6Addr::from(octets))
        };
        let mut ip = Ip {
            source: address(8),
            destination: address(24),
            protocol: header[6],
            start,
            hops: header[7],
            ecn: header[1] >> 4 & 3,
            identification: None,
            is_fragment: false,
            is_rerouted: false,
        };
        if ip.protocol != PROTOCOL_TCP {
            let jumbo_from = (payload == 0).then_some(self.at);
            self.extensions(&mut ip, jumbo_from)?;
        }
        Ok(ip)
    }

    /// Extension headers of IPv6 (RFC 8200 section 4) and AH, which IPv4 may have too (RFC 4302). A jumbo payload
    /// option counts from `jumbo_from` on, if the length of the IPv6 header is 0.
    fn extensions(&mut self, ip: &mut Ip, jumbo_from: Option<usize>) -> Result<(), Why> {
        for _ in 0..EXTENSIONS_MAXIMUM {
            match ip.protocol {
                HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY => {
                    let header = self.peek::<8>()?;
                    let behind = self.at + (usize::from(header[1]) + 1) * 8;
                    if let (HOP_BY_HOP, Some(from)) = (ip.protocol, jumbo_from)
                        && let Some(bytes) = self.jumbo_payload_bytes(behind)
                    {
                        self.end = from.saturating_add(bytes as usize);
                    }
                    // Of a routing header: segments left.
                    ip.is_rerouted |= ip.protocol == ROUTING && header[3] != 0;
                    (ip.protocol, self.at) = (header[0], behind);
                }
                AUTHENTICATION => {
                    let header = self.peek::<8>()?;
                    (ip.protocol, self.at) = (header[0], self.at + (usize::from(header[1]) + 2) * 4);
                }
                FRAGMENT => {
                    let header = self.take::<8>()?;
                    let (fragment, begin) = (word(header, 2), usize::from(word(header, 2) & !7));
                    self.fragment = Some(Fragment {
                        packet: FragmentedPacket {
                            source: ip.source,
                            destination: ip.destination,
                            protocol: header[0],
                            identification: long(header, 4),
                        },
                        begin,
                        end: begin + self.end.saturating_sub(self.at),
                        is_last: fragment & 1 == 0,
                    });
                    if begin != 0 {
                        return Err(Why::Fragment);
                    }
                    ip.is_fragment |= fragment & 1 != 0;
                    ip.protocol = header[0];
                }
                _ => return Ok(()),
            }
        }
        Err(Why::TooDeep)
    }

    /// The value of the jumbo payload option of the present header, which ends at `behind`.
    fn jumbo_payload_bytes(&self, behind: usize) -> Option<u32> {
        let mut options = self.bytes.get(self.at + 2..behind.min(self.bytes.len()))?;
        while let [kind, after_kind @ ..] = options {
            options = match (*kind, after_kind) {
                (0, _) => after_kind,
                (JUMBO_PAYLOAD, [4, value @ ..]) => {
                    return value.first_chunk().map(|value| u32::from_be_bytes(*value));
                }
                (_, [length, value @ ..]) => value.get(usize::from(*length)..)?,
                _ => return None,
            };
        }
        None
    }
}
