//! Headers in front of packets, by hand from their RFCs, for tests of what is inside.

use framegauge_packets::build::{Addresses, udp_frame};

pub const ETHERNET_BYTES: usize = 14;
const MACS: [u8; 12] = [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8];

/// One more layer around an Ethernet frame of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrap {
    /// A tag of this EtherType.
    Tag(u16),
    /// The tag of a virtual NIC (Cisco's VN-tag), and that of a port extender (IEEE 802.1BR).
    VirtualNic,
    PortExtender,
    /// A backbone's frame around the whole (IEEE 802.1ah).
    Backbone,
    /// GRE in UDP, around the IP packet (RFC 8086).
    GreInUdp {
        v6: bool,
    },
    /// VXLAN to this port, over IPv6 or not.
    Vxlan {
        port: u16,
        v6: bool,
    },
    /// Geneve with so many words of options, around the frame or only its IP packet.
    Geneve {
        words: u8,
        ethernet: bool,
        v6: bool,
    },
    /// GRE with checksum, key and sequence number or not.
    Gre {
        checksum: bool,
        key: bool,
        sequence: bool,
        inside: InGre,
        v6: bool,
    },
    /// IP in IP.
    Ip {
        v6: bool,
    },
    /// An extension header: its protocol number, which says which one.
    Extension(u8),
}

/// What GRE carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InGre {
    Ip,
    Ethernet,
    Erspan1,
    Erspan2,
    Erspan3 { subheader: bool },
}

/// An Ethernet frame of this content.
pub fn ethernet(ethertype: u16, content: &[u8]) -> Vec<u8> {
    [&MACS[..], &ethertype.to_be_bytes(), content].concat()
}

/// An IP packet; its lengths are cut to 16 bits.
pub fn ip(v6: bool, protocol: u8, content: &[u8]) -> Vec<u8> {
    let mut packet = if v6 {
        let length = (content.len() as u16).to_be_bytes();
        [&[0x60, 0, 0, 0, length[0], length[1], protocol, 9][..], &[0xfd; 16], &[0xfe; 16]].concat()
    } else {
        let length = (20 + content.len() as u16).to_be_bytes();
        vec![0x45, 0, length[0], length[1], 0, 0, 0, 0, 9, protocol, 0, 0, 172, 16, 0, 1, 172, 16, 0, 2]
    };
    packet.extend(content);
    packet
}

pub fn ethertype(v6: bool) -> u16 {
    if v6 { 0x86dd } else { 0x0800 }
}

/// EtherType and IP packet of a frame without tags in front of it.
fn untagged(frame: &[u8]) -> (u16, &[u8]) {
    let mut at = 12;
    loop {
        let kind = u16::from_be_bytes([frame[at], frame[at + 1]]);
        if matches!(kind, 0x0800 | 0x86dd) {
            return (kind, &frame[at + 2..]);
        }
        at += match kind {
            0x8926 => 6,
            0x893f => 8,
            0x88e7 => 18,
            _ => 4,
        };
    }
}

fn udp(v6: bool, port: u16, content: &[u8]) -> Vec<u8> {
    let (source, destination) = if v6 {
        (([0xfd; 16], 50_000).into(), ([0xfe; 16], port).into())
    } else {
        (([172, 16, 0, 1], 50_000).into(), ([172, 16, 0, 2], port).into())
    };
    udp_frame(&Addresses { source_mac: [2; 6], destination_mac: [4; 6], source, destination }, content)
}

impl Wrap {
    /// The frame, wrapped. An extension header goes behind the outermost IPv6 header; where there is none, nowhere.
    pub fn around(self, frame: &[u8]) -> Vec<u8> {
        let (kind, packet) = untagged(frame);
        match self {
            Wrap::Tag(tag) => {
                let mut tagged = frame.to_vec();
                let [high, low] = tag.to_be_bytes();
                tagged.splice(12..12, [high, low, 0, 5]);
                tagged
            }
            Wrap::VirtualNic => [&frame[..12], &[0x89, 0x26, 0x80, 1, 0, 7], &frame[12..]].concat(),
            Wrap::PortExtender => [&frame[..12], &[0x89, 0x3f, 0xe0, 1, 0, 7, 1, 2], &frame[12..]].concat(),
            Wrap::Backbone => ethernet(0x88e7, &[&[0x20, 1, 2, 3], frame].concat()),
            Wrap::GreInUdp { v6 } => udp(v6, 4754, &[&[0, 0][..], &kind.to_be_bytes(), packet].concat()),
            Wrap::Vxlan { port, v6 } => udp(v6, port, &[&[0x88, 0, 0, 0, 0, 0, 77, 0], frame].concat()),
            Wrap::Geneve { words, ethernet, v6 } => {
                let (kind, content) = if ethernet { (0x6558, frame) } else { (kind, packet) };
                let [high, low] = u16::to_be_bytes(kind);
                let options = vec![0xaa; usize::from(words) * 4];
                udp(v6, 6081, &[&[words, 0, high, low, 0, 0, 77, 0], &options[..], content].concat())
            }
            Wrap::Gre { checksum, key, sequence, inside, v6 } => {
                let (kind, header, content): (u16, usize, &[u8]) = match inside {
                    InGre::Ip => (kind, 0, packet),
                    InGre::Ethernet => (0x6558, 0, frame),
                    InGre::Erspan1 => (0x88be, 0, frame),
                    InGre::Erspan2 => (0x88be, 8, frame),
                    InGre::Erspan3 { subheader } => (0x22eb, if subheader { 20 } else { 12 }, frame),
                };
                let sequence = match inside {
                    InGre::Erspan1 => false,
                    InGre::Erspan2 => true,
                    _ => sequence,
                };
                let mut own = vec![0x20; header];
                if let InGre::Erspan3 { subheader } = inside {
                    own[11] = 0xfe | u8::from(subheader);
                }
                let flags = u8::from(checksum) << 7 | u8::from(key) << 5 | u8::from(sequence) << 4;
                let optional = 4 * (usize::from(checksum) + usize::from(key) + usize::from(sequence));
                let [high, low] = u16::to_be_bytes(kind);
                let gre = [&[flags, 0, high, low][..], &vec![0xbb; optional], &own, content].concat();
                ethernet(ethertype(v6), &ip(v6, 47, &gre))
            }
            Wrap::Ip { v6 } => ethernet(ethertype(v6), &ip(v6, if kind == 0x86dd { 41 } else { 4 }, packet)),
            Wrap::Extension(number) => {
                let mut extended = frame.to_vec();
                if kind == 0x86dd {
                    extend(&mut extended, frame.len() - packet.len(), number);
                }
                extended
            }
        }
    }
}

/// Puts an extension header behind the IPv6 header at `start`, with its length in units of its own.
fn extend(frame: &mut Vec<u8>, start: usize, number: u8) {
    let next = frame[start + 6];
    let mut header = match number {
        // Only its first fragment, of which there are no others.
        44 => vec![next, 0, 0, 0, 1, 2, 3, 4],
        // Length in words of four bytes, without two.
        51 => [&[next, 4][..], &[7; 22]].concat(),
        // Length in words of eight, without one; then a PadN of twelve bytes, which nothing may take for a jumbo.
        _ => [&[next, 1, 1, 12][..], &[0; 12]].concat(),
    };
    if number == 43 {
        // No segments left.
        header[3] = 0;
    }
    frame[start + 6] = number;
    let length = u16::from_be_bytes([frame[start + 4], frame[start + 5]]);
    if length != 0 {
        let length = length + header.len() as u16;
        frame[start + 4..start + 6].copy_from_slice(&length.to_be_bytes());
    }
    frame.splice(start + 40..start + 40, header);
}
