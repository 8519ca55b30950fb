//! What both readers of pcapng share: byte order, blocks and their lengths, and the fields inside.

use super::format::{
    BYTE_ORDER, END_OF_OPTIONS, INTERFACE_DESCRIPTION, INTERFACE_NAME, INTERFACE_OFFSET,
    INTERFACE_RESOLUTION, OBSOLETE_PACKET, SECTION_HEADER,
};
use crate::error::CaptureError;

/// Kind, length, and length again.
pub(crate) const BLOCK_MINIMUM_BYTES: usize = 12;
const SECTION_BYTES: usize = 16;
const INTERFACE_BYTES: usize = 8;
const PACKET_BYTES: usize = 20;
/// Ticks of 10^-6 seconds.
const MICROSECONDS: u8 = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

/// Numbers at places that are known to be there.
impl Order {
    #[inline]
    pub(crate) fn word(self, bytes: &[u8], at: usize) -> u16 {
        let value = [bytes[at], bytes[at + 1]];
        match self {
            Order::Little => u16::from_le_bytes(value),
            Order::Big => u16::from_be_bytes(value),
        }
    }

    #[inline]
    pub(crate) fn long(self, bytes: &[u8], at: usize) -> u32 {
        let value = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match self {
            Order::Little => u32::from_le_bytes(value),
            Order::Big => u32::from_be_bytes(value),
        }
    }

    pub(crate) fn longer(self, bytes: &[u8], at: usize) -> u64 {
        let (first, second) = (u64::from(self.long(bytes, at)), u64::from(self.long(bytes, at + 4)));
        match self {
            Order::Little => second << 32 | first,
            Order::Big => first << 32 | second,
        }
    }
}

/// What the beginning of a block says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    kind: u32,
    /// Where the block begins in the capture.
    start: u64,
    /// Of the whole block.
    pub(crate) bytes: usize,
}

impl Head {
    /// Of the block at `start`, of which `first` holds all that is there or at least 12 bytes. The header of a section
    /// decides the byte order from there on.
    pub(crate) fn read(order: &mut Order, first: &[u8], start: u64) -> Result<Head, CaptureError> {
        if first.len() < BLOCK_MINIMUM_BYTES {
            return Err(error(start, "bytes left for a block", first.len() as u64, "12 or more"));
        }
        let kind = order.long(first, 0);
        if kind == SECTION_HEADER {
            *order = match (Order::Little.long(first, 8), Order::Big.long(first, 8)) {
                (BYTE_ORDER, _) => Order::Little,
                (_, BYTE_ORDER) => Order::Big,
                (magic, _) => return Err(error(start + 8, "byte-order magic", magic, "0x1a2b3c4d")),
            };
        }
        let bytes = order.long(first, 4) as usize;
        if bytes < BLOCK_MINIMUM_BYTES || !bytes.is_multiple_of(4) {
            return Err(error(start + 4, "block length", bytes as u64, "a multiple of 4, 12 or more"));
        }
        Ok(Head { kind, start, bytes })
    }

    /// The error if a block has another length than it may have.
    pub(crate) fn refuse(self, expected: &'static str) -> CaptureError {
        error(self.start + 4, "block length", self.bytes as u64, expected)
    }

    /// The block of which `rest` holds the beginning, and as much as there is of it.
    pub(crate) fn block<'a>(self, order: Order, rest: &'a [u8]) -> Result<Block<'a>, CaptureError> {
        let Some(whole) = rest.get(..self.bytes) else {
            return Err(self.refuse("no more than the bytes left"));
        };
        let end = self.bytes - 4;
        let again = order.long(whole, end);
        if again as usize != self.bytes {
            let offset = self.start + end as u64;
            return Err(error(offset, "block length at its end", again, "that at its start"));
        }
        Ok(Block { kind: self.kind, order, offset: self.start + 8, body: &whole[8..end] })
    }
}

/// A block's kind and what is between its lengths.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'a> {
    pub(crate) kind: u32,
    pub(crate) order: Order,
    /// Where `body` lies in the capture.
    pub(crate) offset: u64,
    pub(crate) body: &'a [u8],
}

/// What the description of an interface says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Description<'a> {
    pub(crate) link_type: u16,
    pub(crate) snap_bytes: u32,
    pub(crate) name: Option<Value<'a>>,
    pub(crate) ticks: Ticks,
}

/// What the block of a packet begins with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketHead {
    pub(crate) interface: u32,
    pub(crate) ticks: u64,
    pub(crate) captured_bytes: u32,
    pub(crate) original_bytes: u32,
    /// Packets lost before it, of the obsolete kind of block, which has 65,535 where nobody knows.
    pub(crate) lost_before: Option<u16>,
}

/// The value of an option, and its place in the capture.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) offset: u64,
}

impl<'a> Block<'a> {
    /// Of the whole block.
    pub(crate) fn bytes(&self) -> usize {
        self.body.len() + BLOCK_MINIMUM_BYTES
    }

    /// Fails if the body has fewer bytes.
    pub(crate) fn require(&self, bytes: usize, expected: &'static str) -> Result<(), CaptureError> {
        if self.body.len() < bytes {
            return Err(error(self.offset, "bytes between the lengths", self.body.len() as u64, expected));
        }
        Ok(())
    }

    /// Of a section's header: how many bytes follow in this section, if it says so.
    pub(crate) fn section_bytes(&self) -> Result<Option<u64>, CaptureError> {
        self.require(SECTION_BYTES, "16 or more in a section's header")?;
        let (major, length) = (self.order.word(self.body, 4), self.order.longer(self.body, 8));
        if major != 1 {
            return Err(error(self.offset + 4, "major version", major, "1"));
        }
        self.options(SECTION_BYTES, |_, _| Ok(()))?;
        Ok(Some(length).filter(|length| *length != u64::MAX))
    }

    /// Of the description of an interface.
    pub(crate) fn description(&self) -> Result<Description<'a>, CaptureError> {
        debug_assert_eq!(self.kind, INTERFACE_DESCRIPTION);
        self.require(INTERFACE_BYTES, "8 or more in an interface's description")?;
        let order = self.order;
        let mut description = Description {
            link_type: order.word(self.body, 0),
            snap_bytes: order.long(self.body, 4),
            name: None,
            ticks: Ticks::default(),
        };
        self.options(INTERFACE_BYTES, |code, value| {
            match code {
                INTERFACE_NAME => description.name = Some(value),
                INTERFACE_RESOLUTION => description.ticks.resolution = value.exactly::<1>()?[0],
                INTERFACE_OFFSET => {
                    description.ticks.offset_seconds = order.longer(&value.exactly::<8>()?, 0) as i64;
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(description)
    }

    /// Of an Enhanced Packet Block or of the obsolete Packet Block, which differ in their first four bytes.
    pub(crate) fn packet_head(&self) -> Result<PacketHead, CaptureError> {
        self.require(PACKET_BYTES, "20 or more in a packet's block")?;
        let [number, high, low, captured_bytes, original_bytes] =
            [0, 4, 8, 12, 16].map(|at| self.order.long(self.body, at));
        let ticks = u64::from(high) << 32 | u64::from(low);
        let (interface, lost_before) = match self.kind {
            OBSOLETE_PACKET => {
                let lost = self.order.word(self.body, 2);
                (u32::from(self.order.word(self.body, 0)), Some(lost).filter(|lost| *lost != u16::MAX))
            }
            _ => (number, None),
        };
        Ok(PacketHead { interface, ticks, captured_bytes, original_bytes, lost_before })
    }

    /// The error if `head` tells of an interface that was not described.
    pub(crate) fn unknown_interface(&self, head: &PacketHead) -> CaptureError {
        error(self.offset, "interface", head.interface, "one described before")
    }

    /// The error if the time of `head` cannot be told in 64 bits.
    pub(crate) fn time_out_of_range(&self, head: &PacketHead, expected: &'static str) -> CaptureError {
        error(self.offset + 4, "time", head.ticks, expected)
    }

    /// The bytes of the packet, which must fit into the block and be at most `most`.
    pub(crate) fn captured(
        &self,
        head: &PacketHead,
        most: u32,
        expected: &'static str,
    ) -> Result<&'a [u8], CaptureError> {
        let bytes = self.body[PACKET_BYTES..].get(..head.captured_bytes as usize);
        bytes
            .filter(|_| head.captured_bytes <= most)
            .ok_or_else(|| error(self.offset + 12, "captured length", head.captured_bytes, expected))
    }

    /// Where the options of a packet of so many captured bytes begin in the body.
    pub(crate) fn options_start(captured: &[u8]) -> usize {
        PACKET_BYTES + captured.len().next_multiple_of(4)
    }

    /// Calls `take` with code and value of every option from byte `start` of the body on.
    pub(crate) fn options(
        &self,
        start: usize,
        mut take: impl FnMut(u16, Value<'a>) -> Result<(), CaptureError>,
    ) -> Result<(), CaptureError> {
        let mut rest = self.body.get(start..).unwrap_or(&[]);
        while !rest.is_empty() {
            // Blocks and options are whole numbers of four bytes: there are four.
            let offset = self.offset + (self.body.len() - rest.len()) as u64;
            let (code, length) = (self.order.word(rest, 0), usize::from(self.order.word(rest, 2)));
            let Some(after) = rest.get(4 + length.next_multiple_of(4)..) else {
                return Err(error(offset + 2, "option length", length as u64, "no more than the block has"));
            };
            if code == END_OF_OPTIONS {
                if length != 0 || !after.is_empty() {
                    let excess = (length + after.len()) as u64;
                    return Err(error(offset, "bytes after the end of the options", excess, "0"));
                }
                return Ok(());
            }
            take(code, Value { bytes: &rest[4..4 + length], offset: offset + 4 })?;
            rest = after;
        }
        Ok(())
    }
}

impl<'a> Value<'a> {
    pub(crate) fn text(&self) -> Result<&'a str, CaptureError> {
        std::str::from_utf8(self.bytes).map_err(|wrong| {
            let at = wrong.valid_up_to();
            error(self.offset + at as u64, "byte of a text", self.bytes[at], "UTF-8")
        })
    }

    pub(crate) fn exactly<const N: usize>(&self) -> Result<[u8; N], CaptureError> {
        self.bytes.try_into().map_err(|_| {
            let expected = match N {
                1 => "1",
                4 => "4",
                _ => "8",
            };
            error(self.offset - 2, "option length", self.bytes.len() as u64, expected)
        })
    }
}

/// How an interface counts time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticks {
    /// A tick is 10^-n seconds or, with the uppermost bit set, 2^-n.
    resolution: u8,
    /// What is added to every time.
    offset_seconds: i64,
}

/// Of an interface that does not say it.
impl Default for Ticks {
    fn default() -> Ticks {
        Ticks { resolution: MICROSECONDS, offset_seconds: 0 }
    }
}

impl Ticks {
    /// A time of so many ticks, in nanoseconds since 1970; cut, not rounded.
    pub(crate) fn nanoseconds(self, ticks: u64) -> i128 {
        let (binary, exponent) = (self.resolution & 0x80 != 0, u32::from(self.resolution & 0x7f));
        let scaled = u128::from(ticks) * 1_000_000_000;
        let since = match (binary, exponent) {
            // What captures have; a division of 128 bits would be slow.
            (false, 0..=9) => u128::from(ticks) * u128::from(10u64.pow(9 - exponent)),
            (false, _) => 10u128.checked_pow(exponent).map_or(0, |divisor| scaled / divisor),
            (true, _) => scaled >> exponent,
        };
        // Both are far below 2^127.
        since as i128 + i128::from(self.offset_seconds) * 1_000_000_000
    }
}

pub(crate) fn error(
    offset: u64,
    field: &'static str,
    actual: impl Into<u64>,
    expected: &'static str,
) -> CaptureError {
    CaptureError { offset, field, found: actual.into(), expected }
}
