//! The header between the kernel and a TAP opened with `IFF_VNET_HDR`.

use crate::ParseError;
use crate::error::{Layer, LengthSource, require};

/// `struct virtio_net_hdr`, the legacy form of 10 bytes, little-endian (virtio 1.2 section 5.1.6;
/// `linux/virtio_net.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct VirtioNetHeader {
    /// [`Self::NEEDS_CSUM`], [`Self::DATA_VALID`].
    pub flags: u8,
    /// One of the `GSO_` kinds, perhaps with [`Self::GSO_ECN`].
    pub gso_type: u8,
    /// Bytes of Ethernet, IP and transport headers; a hint.
    pub header_bytes: u16,
    /// Transport payload of each frame of the aggregate but the last, in bytes.
    pub gso_bytes: u16,
    /// Where the checksum begins to count, in bytes from the start of the frame.
    pub checksum_start: u16,
    /// Where the checksum is stored, in bytes from `checksum_start`.
    pub checksum_offset: u16,
}

impl VirtioNetHeader {
    /// Bytes of the header.
    pub const BYTES: usize = 10;
    /// Flag: the checksum field holds the pseudo-header sum; whoever puts it on a wire completes it.
    pub const NEEDS_CSUM: u8 = 1;
    /// Flag: the checksum has been verified.
    pub const DATA_VALID: u8 = 2;
    /// Not an aggregate.
    pub const GSO_NONE: u8 = 0;
    /// An aggregate of TCP over IPv4.
    pub const GSO_TCPV4: u8 = 1;
    /// An aggregate of TCP over IPv6.
    pub const GSO_TCPV6: u8 = 4;
    /// An aggregate of UDP datagrams.
    pub const GSO_UDP_L4: u8 = 5;
    /// Added to a TCP kind: the first segment has CWR set.
    pub const GSO_ECN: u8 = 0x80;

    /// Reads the header from the start of `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<VirtioNetHeader, ParseError> {
        require(Layer::VirtioNet, Self::BYTES, bytes.len(), LengthSource::Slice)?;
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Ok(VirtioNetHeader {
            flags: bytes[0],
            gso_type: bytes[1],
            header_bytes: word(2),
            gso_bytes: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        })
    }

    /// The header as bytes.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        self.write(&mut bytes);
        bytes
    }

    /// Writes the header.
    pub fn write(&self, out: &mut [u8; Self::BYTES]) {
        out[0] = self.flags;
        out[1] = self.gso_type;
        out[2..4].copy_from_slice(&self.header_bytes.to_le_bytes());
        out[4..6].copy_from_slice(&self.gso_bytes.to_le_bytes());
        out[6..8].copy_from_slice(&self.checksum_start.to_le_bytes());
        out[8..10].copy_from_slice(&self.checksum_offset.to_le_bytes());
    }

    /// The `GSO_` kind without [`Self::GSO_ECN`].
    pub const fn gso_kind(&self) -> u8 {
        self.gso_type & !Self::GSO_ECN
    }
}
