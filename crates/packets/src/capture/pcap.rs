//! The classic format, pcap (draft-ietf-opsawg-pcap): one header, then packets of one interface.

use std::io::Read;

use super::LinkType;
use super::buffer::Buffer;
use super::link;
use super::reader::{Found, Interface, PACKET_BYTES_MAXIMUM};
use crate::error::CaptureError;
use crate::pcapng::blocks::{Order, error};

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Alexey Kuznetzov's form, with eight bytes more in front of every packet: interface, protocol, direction.
const MODIFIED: u32 = 0xa1b2_cd34;
/// How compressed files begin, by the first bytes: gzip, zstd, LZ4, xz, bzip2.
const COMPRESSED: [(u32, u32); 5] = [
    (0xffff_0000, 0x1f8b_0000),
    (0xffff_ffff, 0x28b5_2ffd),
    (0xffff_ffff, 0x0422_4d18),
    (0xffff_ffff, 0xfd37_7a58),
    (0xffff_ff00, 0x425a_6800),
];

const FILE_HEADER_BYTES: usize = 24;
const HEADER_BYTES: usize = 16;
const MODIFIED_HEADER_BYTES: usize = 24;

/// How the packets of a pcap file are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pcap {
    order: Order,
    link: LinkType,
    /// In a unit of the fraction of a second.
    unit_nanoseconds: i64,
    header_bytes: usize,
}

impl Pcap {
    /// Takes the file's header, which begins with `magic`, read from its upper end.
    pub(super) fn begin<R: Read>(
        buffer: &mut Buffer<R>,
        magic: u32,
    ) -> Result<(Pcap, Interface), CaptureError> {
        let (order, kind) = match magic {
            MICROSECONDS | NANOSECONDS | MODIFIED => (Order::Big, magic),
            _ => (Order::Little, magic.swap_bytes()),
        };
        let (unit_nanoseconds, header_bytes) = match kind {
            MICROSECONDS => (1_000, HEADER_BYTES),
            NANOSECONDS => (1, HEADER_BYTES),
            MODIFIED => (1_000, MODIFIED_HEADER_BYTES),
            _ if COMPRESSED.iter().any(|(mask, begin)| magic & mask == *begin) => {
                let field = "magic number, that of a compressed file,";
                return Err(error(0, field, magic, "that of pcap or pcapng: unpack it first"));
            }
            _ => return Err(error(0, "magic number", magic, "0xa1b2c3d4 of pcap or 0x0a0d0d0a of pcapng")),
        };
        let header = buffer.fill(FILE_HEADER_BYTES)?;
        if header.len() < FILE_HEADER_BYTES {
            return Err(error(0, "bytes of the capture", header.len() as u64, "24 or more"));
        }
        let (major, snap_bytes, link_type) =
            (order.word(header, 4), order.long(header, 16), order.long(header, 20));
        if major != 2 {
            return Err(error(4, "major version", major, "2"));
        }
        // The upper half tells of the frame check sequence, which lies behind the IP packet and does no harm.
        let link_type = link_type as u16;
        let Some(link) = LinkType::from_number(link_type) else {
            return Err(error(20, "link type", link_type, link::EXPECTED));
        };
        buffer.take(FILE_HEADER_BYTES);
        Ok((
            Pcap { order, link, unit_nanoseconds, header_bytes },
            Interface { link_type, snap_bytes, ..Interface::default() },
        ))
    }

    /// The next packet, which stays in the buffer.
    #[inline]
    pub(super) fn packet<R: Read>(&self, buffer: &mut Buffer<R>) -> Result<Option<Found>, CaptureError> {
        let start = buffer.offset();
        let header = buffer.fill(self.header_bytes)?;
        // As many are there in either form: their places are known.
        let fields = header.first_chunk::<HEADER_BYTES>().filter(|_| header.len() >= self.header_bytes);
        let Some(fields) = fields else {
            return match header.len() {
                0 => Ok(None),
                left => {
                    Err(error(start, "bytes left for a packet's header", left as u64, self.header_expected()))
                }
            };
        };
        let [seconds, fraction, captured_bytes, original_bytes] =
            [0, 4, 8, 12].map(|at| self.order.long(fields, at));
        if captured_bytes > PACKET_BYTES_MAXIMUM {
            return Err(error(start + 8, "captured length", captured_bytes, "16777216 or less"));
        }
        let block_bytes = self.header_bytes + captured_bytes as usize;
        if buffer.fill(block_bytes)?.len() < block_bytes {
            return Err(error(start + 8, "captured length", captured_bytes, "no more than the bytes left"));
        }
        Ok(Some(Found {
            interface: 0,
            link: self.link,
            // Of 32 bits each: no more than 2^32 x 10^9, and a thousandth of that.
            nanoseconds: i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * self.unit_nanoseconds,
            head_bytes: self.header_bytes,
            captured_bytes,
            original_bytes,
            block_bytes,
        }))
    }

    fn header_expected(&self) -> &'static str {
        if self.header_bytes == HEADER_BYTES { "16 or more" } else { "24 or more" }
    }
}
