//! How a UDP datagram is cut into packets, and what these occupy on Ethernet, FDDI and ATM.

use crate::encapsulation::Part;
use crate::{ETHERNET_HEADER_BYTES, Family, Mtu, WIRE_OVERHEAD_BYTES, frame_bytes, wire_bytes};
use thiserror::Error;

/// UDP header, in bytes (RFC 768).
const UDP_HEADER_BYTES: u32 = 8;
/// The fragment header of IPv6, in bytes (RFC 8200 section 4.5); IPv4 has these fields in its own header.
const FRAGMENT_HEADER_BYTES: u32 = 8;
/// In which offsets of fragments are counted (RFC 791 section 3.1, RFC 8200 section 4.5).
const FRAGMENT_UNIT_BYTES: u32 = 8;
/// The largest packet, which the length field of IPv4 can say (RFC 791 section 3.1); of IPv6 its payload (RFC 8200).
const LARGEST_BYTES: u32 = 65_535;
/// The unit of XDR, in bytes (RFC 4506 section 3).
const XDR_UNIT_BYTES: u32 = 4;
/// Payload of an ATM cell, and the whole cell, in bytes (ITU-T I.361).
const CELL_PAYLOAD_BYTES: u32 = 48;
const CELL_BYTES: u32 = 53;
/// The trailer of an AAL5 PDU, in bytes (RFC 2684 section 4; ITU-T I.363.5).
const AAL5_TRAILER_BYTES: u32 = 8;
/// LLC (3), OUI (3) and type (2), in bytes (RFC 1042, RFC 2684 section 5.1).
const LLC_SNAP_BYTES: u32 = 8;
/// What FDDI has around the LLC frame, in bytes (RFC 1390: of 4500 bytes, about 4470 are left behind LLC/SNAP).
const FDDI_MAC_BYTES: u32 = 22;

/// What an answer to an NFSv3 READ has before its data, by part.
const READ_ANSWER: [Part; 4] = [
    Part { name: "RPC reply", bytes: 24, source: "RFC 5531 section 9, AUTH_NONE verifier" },
    Part { name: "NFS status", bytes: 4, source: "RFC 1813 section 3.3.6" },
    Part { name: "file attributes", bytes: 88, source: "RFC 1813 sections 2.5 and 3.3.6" },
    Part { name: "count, end of file, data length", bytes: 12, source: "RFC 1813 section 3.3.6" },
];

/// What carries the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// Ethernet II, untagged.
    Ethernet,
    /// FDDI with LLC/SNAP.
    Fddi,
    /// ATM, AAL5 with LLC/SNAP.
    Atm,
}

impl Medium {
    /// All of them.
    pub const ALL: [Medium; 3] = [Medium::Ethernet, Medium::Fddi, Medium::Atm];

    /// Its name in requests.
    pub const fn name(self) -> &'static str {
        match self {
            Medium::Ethernet => "ethernet",
            Medium::Fddi => "fddi",
            Medium::Atm => "atm",
        }
    }

    /// The MTU that its standard says, in bytes, with the source.
    pub const fn standard_mtu(self) -> (u32, &'static str) {
        match self {
            Medium::Ethernet => (1500, "RFC 894"),
            Medium::Fddi => (4352, "RFC 1390"),
            Medium::Atm => (9180, "RFC 2225 section 7"),
        }
    }

    /// What it adds to each packet, but for padding and cells.
    pub fn parts(self) -> Vec<Part> {
        let llc = |source| Part { name: "LLC/SNAP", bytes: LLC_SNAP_BYTES, source };
        match self {
            Medium::Ethernet => vec![
                Part {
                    name: "Ethernet header",
                    bytes: ETHERNET_HEADER_BYTES,
                    source: "IEEE 802.3 clause 3.2",
                },
                Part { name: "FCS", bytes: 4, source: "IEEE 802.3 clause 3.2.9" },
                Part { name: "preamble, SFD and gap", bytes: WIRE_OVERHEAD_BYTES, source: "IEEE 802.3" },
            ],
            Medium::Fddi => vec![
                Part {
                    name: "preamble, delimiters, control, addresses, FCS, status",
                    bytes: FDDI_MAC_BYTES,
                    source: "ISO 9314-2, RFC 1390",
                },
                llc("RFC 1390, RFC 1042"),
            ],
            Medium::Atm => vec![
                llc("RFC 2684 section 5.1"),
                Part { name: "AAL5 trailer", bytes: AAL5_TRAILER_BYTES, source: "RFC 2684 section 4" },
            ],
        }
    }

    /// The cells of a packet; `None` where there are none.
    pub const fn cells(self, packet_bytes: u32) -> Option<u32> {
        match self {
            Medium::Atm => {
                Some((LLC_SNAP_BYTES + packet_bytes + AAL5_TRAILER_BYTES).div_ceil(CELL_PAYLOAD_BYTES))
            }
            Medium::Ethernet | Medium::Fddi => None,
        }
    }

    /// What a packet occupies on the link, in bytes.
    pub const fn wire_bytes(self, packet_bytes: u32) -> u32 {
        match (self, self.cells(packet_bytes)) {
            (_, Some(cells)) => cells * CELL_BYTES,
            (Medium::Fddi, None) => packet_bytes + LLC_SNAP_BYTES + FDDI_MAC_BYTES,
            (Medium::Ethernet | Medium::Atm, None) => {
                wire_bytes(frame_bytes(ETHERNET_HEADER_BYTES + packet_bytes))
            }
        }
    }
}

/// Why there is no such datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DatagramError {
    /// More than the length field of IP can say.
    #[error("found {found} bytes, expected at most {most}: a packet ends at 65,535 bytes")]
    TooLarge {
        /// The payload, in bytes.
        found: u64,
        /// The largest payload, in bytes.
        most: u32,
    },
}

/// A UDP datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// The IP version.
    pub family: Family,
    /// What UDP carries, in bytes.
    pub payload_bytes: u32,
    /// What comes before the data that was asked for: of the application, and of UDP and IP.
    pub headers: Vec<Part>,
}

impl Datagram {
    /// A datagram with so much payload.
    pub fn new(payload_bytes: u64, family: Family) -> Result<Datagram, DatagramError> {
        // The length field of IPv6 leaves out its own header.
        let around = if family == Family::V4 { family.header_bytes() } else { 0 } + UDP_HEADER_BYTES;
        let most = LARGEST_BYTES - around;
        let payload_bytes = u32::try_from(payload_bytes)
            .ok()
            .filter(|bytes| *bytes <= most)
            .ok_or(DatagramError::TooLarge { found: payload_bytes, most })?;
        let (name, source) = match family {
            Family::V4 => ("IPv4 header", "RFC 791 section 3.1"),
            Family::V6 => ("IPv6 header", "RFC 8200 section 3"),
        };
        let headers = vec![
            Part { name: "UDP header", bytes: UDP_HEADER_BYTES, source: "RFC 768" },
            Part { name, bytes: family.header_bytes(), source },
        ];
        Ok(Datagram { family, payload_bytes, headers })
    }

    /// The answer to an NFSv3 READ of so many bytes: 128 bytes more (RFC 1813), and up to three of padding (RFC 4506).
    pub fn nfs_read(data_bytes: u64, family: Family) -> Result<Datagram, DatagramError> {
        let padding = (data_bytes.wrapping_neg() % u64::from(XDR_UNIT_BYTES)) as u32;
        let mut before: Vec<Part> = READ_ANSWER.to_vec();
        if padding > 0 {
            before.push(Part { name: "padding", bytes: padding, source: "RFC 4506 section 4.10" });
        }
        let added: u32 = before.iter().map(|part| part.bytes).sum();
        let mut whole = Datagram::new(data_bytes.saturating_add(u64::from(added)), family)?;
        before.append(&mut whole.headers);
        whole.headers = before;
        Ok(whole)
    }

    /// The whole packet, if no MTU were in its way, in bytes.
    pub fn packet_bytes(&self) -> u32 {
        self.payload_bytes + UDP_HEADER_BYTES + self.family.header_bytes()
    }

    /// The packets that it takes on a link with this MTU, in bytes each (RFC 791 section 2.3, RFC 8200 section 4.5): one if
    /// it fits, or fragments, all but the last with as many bytes as fit in steps of eight.
    pub fn packets(&self, mtu: Mtu) -> Vec<u32> {
        if self.packet_bytes() <= mtu.bytes() {
            return vec![self.packet_bytes()];
        }
        let header = match self.family {
            Family::V4 => self.family.header_bytes(),
            Family::V6 => self.family.header_bytes() + FRAGMENT_HEADER_BYTES,
        };
        let room = (mtu.bytes() - header) / FRAGMENT_UNIT_BYTES * FRAGMENT_UNIT_BYTES;
        let whole = self.payload_bytes + UDP_HEADER_BYTES;
        let full = (whole - 1) / room;
        let mut packets = vec![header + room; full as usize];
        packets.push(header + whole - full * room);
        packets
    }
}
