//! IEEE 802.11 frames as monitors capture them, in radiotap or PPI or bare. Those that are encrypted carry nothing that
//! can be read.

use super::walk::{Inside, Walk, Why, word};

const HEADER_BYTES: usize = 24;
const RADIOTAP_BYTES: usize = 8;
const PPI_BYTES: usize = 8;
/// The link type's number of bare 802.11.
const BARE: u32 = 105;

/// Bits of the second byte of a frame.
const TO_AND_FROM: u8 = 3;
const PROTECTED: u8 = 0x40;
const ORDERED: u8 = 0x80;
/// Bits of a data frame's subtype.
const NO_DATA: u8 = 4;
const QUALITY: u8 = 8;
/// A bit of the QoS control field: several frames in one (A-MSDU).
const AGGREGATED: u8 = 0x80;

/// Radiotap's first bitmap: the fields of these two are there; and of the flags, that the header is padded to words.
const HAS_CLOCK: u32 = 1;
const HAS_FLAGS: u32 = 2;
const PADDED: u8 = 0x20;

fn little(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

impl Walk<'_> {
    /// A frame behind a radiotap header (https://www.radiotap.org), whose fields are skipped.
    pub(super) fn radiotap(&mut self) -> Result<Inside, Why> {
        let start = self.at;
        let header = self.take::<RADIOTAP_BYTES>()?;
        let length = usize::from(word(header, 2).swap_bytes());
        if header[0] != 0 || length < RADIOTAP_BYTES {
            return Err(Why::Malformed);
        }
        let is_padded = self.radiotap_flags(little(header, 4))? & PADDED != 0;
        self.at = start + length;
        self.wireless(is_padded)
    }

    /// The flags, if there are any. The walk stands behind the first bitmap of fields, which others may follow.
    fn radiotap_flags(&mut self, present: u32) -> Result<u8, Why> {
        let mut bitmap = present;
        // Each says with its highest bit whether another follows.
        while bitmap >> 31 == 1 {
            bitmap = little(self.take::<4>()?, 0);
        }
        if present & HAS_FLAGS == 0 {
            return Ok(0);
        }
        if present & HAS_CLOCK != 0 {
            // A field stands at a multiple of its size, counted from the start of the header, where frames begin.
            self.at = self.at.next_multiple_of(8) + 8;
        }
        Ok(self.take::<1>()?[0])
    }

    /// A frame behind a header of PPI.
    pub(super) fn per_packet(&mut self) -> Result<Inside, Why> {
        let start = self.at;
        let header = self.take::<PPI_BYTES>()?;
        let (length, link) = (usize::from(word(header, 2).swap_bytes()), little(header, 4));
        if length < PPI_BYTES {
            return Err(Why::Malformed);
        }
        self.at = start + length;
        match link {
            1 => self.ethernet(),
            BARE => self.wireless(false),
            _ => Err(Why::NotIp { ethertype: link as u16 }),
        }
    }

    /// A frame of 802.11; of several in one, the first.
    pub(super) fn wireless(&mut self, is_padded: bool) -> Result<Inside, Why> {
        // Management and control frames may be shorter than the header of those with data.
        let &[kind, flags] = self.peek::<2>()?;
        let subtype = kind >> 4;
        if kind >> 2 & 3 != 2 || subtype & NO_DATA != 0 {
            return Err(Why::NotIp { ethertype: u16::from(kind) });
        }
        if flags & PROTECTED != 0 {
            return Err(Why::Encrypted);
        }
        let start = self.at;
        self.take::<HEADER_BYTES>()?;
        if flags & TO_AND_FROM == TO_AND_FROM {
            self.take::<6>()?;
        }
        let mut is_aggregated = false;
        if subtype & QUALITY != 0 {
            is_aggregated = self.take::<2>()?[0] & AGGREGATED != 0;
            self.at += if flags & ORDERED != 0 { 4 } else { 0 };
        }
        if is_padded {
            self.at = start + (self.at - start).next_multiple_of(4);
        }
        if is_aggregated { self.ethernet() } else { self.llc(0) }
    }
}
