//! What a sample saw without TCP that can be read: tunnels that encrypt, QUIC, other datagrams, fragments.
//!
//! Ports and first bytes tell what it probably is; lengths tell whether it fills the MTU.

use std::collections::BTreeMap;

/// Kinds that are told apart; what is more goes to [`Class::Other`].
const MOST_KINDS: usize = 64;
/// Lengths of one direction of a kind; what is more has none.
const MOST_LENGTHS: usize = 256;
/// Ports by which such traffic is known, in the order in which they count.
const KNOWN_PORTS: [u16; 6] = [51_820, 41_641, 4500, 1194, 443, 8443];
const UDP: u8 = 17;
const ESP: u8 = 50;

/// What it is, by its protocol, ports and first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A message of WireGuard: a type from 1 to 4, then three zeros (WireGuard paper section 5.4).
    WireGuard,
    /// ESP directly in IP (RFC 4303).
    Esp,
    /// ESP in UDP: port 4500, and no zeros in front, which mark IKE (RFC 3948 section 2.2).
    EspInUdp,
    /// OpenVPN: port 1194, and an opcode that it has.
    OpenVpn,
    /// QUIC: port 443 or 8443, and the fixed bit (RFC 9000 section 17).
    Quic,
    /// A datagram of anything else.
    Datagram,
    /// A later fragment of an IP packet.
    Fragment,
    /// Anything else.
    Other,
}

impl Class {
    /// As the pipe names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::WireGuard => "wireguard",
            Self::Esp => "esp",
            Self::EspInUdp => "esp in udp",
            Self::OpenVpn => "openvpn",
            Self::Quic => "quic",
            Self::Datagram => "datagram",
            Self::Fragment => "fragment",
            Self::Other => "other",
        }
    }
}

/// What a packet without TCP is, as a link sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Foreign {
    /// What it is.
    pub class: Class,
    /// Its IP version is 6.
    pub is_v6: bool,
    /// The port by which it is known, or the smaller one.
    pub port: Option<u16>,
}

impl Foreign {
    /// Anything without an IP header.
    pub const NO_IP: Self = Self { class: Class::Other, is_v6: false, port: None };
    /// A later fragment.
    pub const FRAGMENT: Self = Self { class: Class::Fragment, is_v6: false, port: None };

    /// By its headers, and the first bytes of a datagram.
    pub fn of(is_v6: bool, protocol: u8, datagram: Option<(u16, u16, Option<[u8; 4]>)>) -> Self {
        let Some((source, destination, begins)) = datagram.filter(|_| protocol == UDP) else {
            let class = if protocol == ESP { Class::Esp } else { Class::Other };
            return Self { class, is_v6, port: None };
        };
        let known = KNOWN_PORTS.into_iter().find(|port| [source, destination].contains(port));
        let port = Some(known.unwrap_or(source.min(destination)));
        Self { class: begins.map_or(Class::Datagram, |begins| class(known, begins)), is_v6, port }
    }
}

fn class(known: Option<u16>, begins: [u8; 4]) -> Class {
    match (known, begins) {
        (_, [1..=4, 0, 0, 0]) => Class::WireGuard,
        (Some(4500), [first, ..]) if begins != [0; 4] && first != 0xff => Class::EspInUdp,
        (Some(1194), [first, ..]) if (1..=11).contains(&(first >> 3)) => Class::OpenVpn,
        (Some(443 | 8443), [first, ..]) if first & 0x40 != 0 => Class::Quic,
        _ => Class::Datagram,
    }
}

/// One direction of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lengths {
    /// Packets on the wire.
    pub packets: u64,
    /// Their bytes from the IP header on.
    pub bytes: u64,
    /// Bytes of those that are longer than half of the MTU.
    pub large_bytes: u64,
    /// Packets by their length.
    counts: BTreeMap<u32, u64>,
}

impl Lengths {
    /// The longest packets of which there is more than a stray one: a percent of those that are large, at least.
    pub fn longest(&self) -> Option<u32> {
        let enough = |count: u64, length: u32| count * u64::from(length) * 100 >= self.large_bytes.max(1);
        self.counts.iter().rev().find(|(length, count)| enough(**count, **length)).map(|(length, _)| *length)
    }

    fn add(&mut self, packets: u64, length: u32, mtu: u32) {
        let bytes = packets * u64::from(length);
        self.packets += packets;
        self.bytes += bytes;
        self.large_bytes += if u64::from(length) * 2 > u64::from(mtu) { bytes } else { 0 };
        if self.counts.len() < MOST_LENGTHS || self.counts.contains_key(&length) {
            *self.counts.entry(length).or_default() += packets;
        }
    }
}

/// All kinds of an interface, with what was received and what was sent.
#[derive(Debug, Clone, Default)]
pub struct Strangers {
    kinds: BTreeMap<Foreign, [Lengths; 2]>,
}

impl Strangers {
    /// Counts so many packets of a length, on a link with this MTU.
    pub fn add(&mut self, foreign: Foreign, outgoing: bool, packets: u64, length: u32, mtu: u32) {
        let room = self.kinds.len() < MOST_KINDS || self.kinds.contains_key(&foreign);
        let foreign = if room { foreign } else { Foreign::NO_IP };
        self.kinds.entry(foreign).or_default()[usize::from(outgoing)].add(packets, length, mtu);
    }

    /// Every kind with what was received and what was sent.
    pub fn kinds(&self) -> impl Iterator<Item = (&Foreign, &[Lengths; 2])> {
        self.kinds.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ports: (u16, u16), begins: [u8; 4]) -> (Class, Option<u16>) {
        let foreign = Foreign::of(false, UDP, Some((ports.0, ports.1, Some(begins))));
        (foreign.class, foreign.port)
    }

    #[test]
    fn what_traffic_is_by_port_and_first_bytes() {
        assert_eq!(of((51_820, 40_000), [4, 0, 0, 0]), (Class::WireGuard, Some(51_820)));
        assert_eq!(of((33_000, 41_641), [4, 0, 0, 0]), (Class::WireGuard, Some(41_641)), "Tailscale");
        assert_eq!(of((33_000, 7777), [4, 0, 0, 0]), (Class::WireGuard, Some(7777)), "at any port");
        assert_eq!(of((51_820, 40_000), [9, 9, 9, 9]), (Class::Datagram, Some(51_820)), "a port is no proof");
        assert_eq!(of((4500, 4500), [1, 2, 3, 4]), (Class::EspInUdp, Some(4500)));
        assert_eq!(of((4500, 4500), [0; 4]), (Class::Datagram, Some(4500)), "IKE");
        assert_eq!(of((1194, 50_000), [0x48, 0, 0, 1]), (Class::OpenVpn, Some(1194)), "P_DATA_V2");
        assert_eq!(of((1194, 50_000), [0xff, 0, 0, 1]), (Class::Datagram, Some(1194)));
        assert_eq!(of((50_000, 443), [0x41, 5, 6, 7]), (Class::Quic, Some(443)), "a short header");
        assert_eq!(of((50_000, 443), [0x01, 5, 6, 7]), (Class::Datagram, Some(443)), "DTLS or the like");
        assert_eq!(Foreign::of(true, ESP, None).class, Class::Esp);
        assert_eq!(Foreign::of(false, 1, None).class, Class::Other);
        assert_eq!(Foreign::of(false, UDP, None).class, Class::Other, "no header of UDP");
    }

    #[test]
    fn lengths_and_what_fills_the_mtu() {
        let mut strangers = Strangers::default();
        let tunnel = Foreign::of(false, UDP, Some((51_820, 51_820, Some([4, 0, 0, 0]))));
        strangers.add(tunnel, true, 1000, 1500, 1500);
        strangers.add(tunnel, true, 3000, 96, 1500);
        strangers.add(tunnel, true, 1, 9000, 1500);
        strangers.add(tunnel, false, 10, 128, 1500);
        let kinds: Vec<_> = strangers.kinds().collect();
        let [(foreign, [received, sent])] = kinds[..] else { panic!("one kind, found {kinds:?}") };
        assert_eq!(*foreign, tunnel);
        assert_eq!((sent.packets, sent.bytes), (4001, 1_797_000));
        assert_eq!(sent.large_bytes, 1_509_000);
        assert_eq!(sent.longest(), Some(1500), "a stray packet is not the tunnel's limit");
        assert_eq!((received.large_bytes, received.longest()), (0, Some(128)));
    }

    #[test]
    fn ports_that_others_choose_are_bounded_and_nothing_is_lost() {
        let mut strangers = Strangers::default();
        for port in 1..=5000u16 {
            let foreign = Foreign::of(false, UDP, Some((port, 60_000, None)));
            for length in 1000..1002 {
                strangers.add(foreign, false, 1, length, 1500);
            }
        }
        assert!(strangers.kinds().count() <= MOST_KINDS + 1);
        assert_eq!(strangers.kinds().map(|(_, ways)| ways[0].packets).sum::<u64>(), 10_000);
    }
}
