//! Reading captures. Every length is checked; blocks and options of other kinds are passed over.

use super::format::{
    BYTE_ORDER, COMMENT, Captured, Direction, END_OF_OPTIONS, ENHANCED_PACKET, INTERFACE_DESCRIPTION,
    INTERFACE_NAME, INTERFACE_OFFSET, INTERFACE_RESOLUTION, PACKET_FLAGS, SECTION_HEADER,
};
use crate::error::CaptureError;

/// Kind, length, and length again.
const BLOCK_MINIMUM_BYTES: usize = 12;
const SECTION_BYTES: usize = 16;
const INTERFACE_BYTES: usize = 8;
const PACKET_BYTES: usize = 20;
/// Of an interface that does not say it: microseconds.
const DEFAULT_RESOLUTION: u8 = 6;

/// An interface of the section that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface<'a> {
    /// Its name, if it has one.
    pub name: Option<&'a str>,
    /// What its packets begin with; [`crate::pcapng::LINK_ETHERNET`] or another.
    pub link_type: u16,
    /// How much of a packet is kept, in bytes; 0 is all of it.
    pub snap_bytes: u32,
    /// A tick is 10^-n seconds or, with the uppermost bit set, 2^-n.
    resolution: u8,
    /// What is added to every time.
    offset_seconds: i64,
}

/// Reads the packets of a capture that lies in memory, section by section. After an error it ends.
///
/// Strict: what contradicts the format is an error, not a guess. Of several comments on a packet the first counts.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    /// Where the next block begins.
    at: usize,
    order: Order,
    interfaces: Vec<Interface<'a>>,
    /// Where the section ends, if its header says so.
    section_end: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

/// A block's kind and what is between its lengths.
#[derive(Debug, Clone, Copy)]
struct Block<'a> {
    kind: u32,
    /// Where `body` lies in the capture.
    offset: usize,
    body: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Fails for what does not begin with a Section Header Block.
    pub fn new(bytes: &'a [u8]) -> Result<Reader<'a>, CaptureError> {
        let mut reader =
            Reader { bytes, at: 0, order: Order::Little, interfaces: Vec::new(), section_end: None };
        if let Some(kind) = bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
            && kind != SECTION_HEADER
        {
            return Err(error(0, "kind of the first block", kind, "0x0a0d0d0a, a section's header"));
        }
        let block = reader.block()?;
        reader.begin_section(&block)?;
        Ok(reader)
    }

    /// The interfaces that the present section has described so far, by number.
    pub fn interfaces(&self) -> &[Interface<'a>] {
        &self.interfaces
    }

    fn packet(&mut self) -> Result<Option<Captured<'a>>, CaptureError> {
        while self.at < self.bytes.len() {
            let block = self.block()?;
            match block.kind {
                SECTION_HEADER => self.begin_section(&block)?,
                INTERFACE_DESCRIPTION => self.describe(&block)?,
                ENHANCED_PACKET => return self.read_packet(&block).map(Some),
                _ => {}
            }
        }
        self.end_section(self.at)?;
        Ok(None)
    }

    /// Takes the next block; that of a section decides the byte order from there on.
    fn block(&mut self) -> Result<Block<'a>, CaptureError> {
        let (start, rest) = (self.at, &self.bytes[self.at..]);
        if rest.len() < BLOCK_MINIMUM_BYTES {
            return Err(error(start, "bytes left for a block", rest.len() as u64, "12 or more"));
        }
        let kind = self.order.long(rest, 0);
        if kind == SECTION_HEADER {
            self.order = match (Order::Little.long(rest, 8), Order::Big.long(rest, 8)) {
                (BYTE_ORDER, _) => Order::Little,
                (_, BYTE_ORDER) => Order::Big,
                (found, _) => return Err(error(start + 8, "byte-order magic", found, "0x1a2b3c4d")),
            };
        }
        let length = self.order.long(rest, 4) as usize;
        if length < BLOCK_MINIMUM_BYTES || !length.is_multiple_of(4) {
            return Err(error(start + 4, "block length", length as u64, "a multiple of 4, 12 or more"));
        }
        let Some(block) = rest.get(..length) else {
            return Err(error(start + 4, "block length", length as u64, "no more than the bytes left"));
        };
        let again = self.order.long(block, length - 4);
        if again as usize != length {
            return Err(error(start + length - 4, "block length at its end", again, "that at its start"));
        }
        self.at += length;
        let block = Block { kind, offset: start + 8, body: &block[8..length - 4] };
        match self.section_end {
            Some(end) if kind != SECTION_HEADER && self.at as u64 > end => {
                Err(error(start, "end of the section by its header", end, "behind this block"))
            }
            _ => Ok(block),
        }
    }

    fn end_section(&self, at: usize) -> Result<(), CaptureError> {
        match self.section_end {
            Some(end) if end != at as u64 => {
                Err(error(at, "end of the section by its header", end, "where it ends"))
            }
            _ => Ok(()),
        }
    }

    fn begin_section(&mut self, block: &Block<'a>) -> Result<(), CaptureError> {
        self.end_section(block.offset - 8)?;
        block.require(SECTION_BYTES)?;
        let (major, length) = (self.order.word(block.body, 4), self.order.longer(block.body, 8));
        if major != 1 {
            return Err(error(block.offset + 4, "major version", major, "1"));
        }
        self.section_end = match length {
            u64::MAX => None,
            length => Some((self.at as u64).saturating_add(length)),
        };
        self.interfaces.clear();
        self.options(block, SECTION_BYTES, |_, _, _| Ok(()))
    }

    fn describe(&mut self, block: &Block<'a>) -> Result<(), CaptureError> {
        block.require(INTERFACE_BYTES)?;
        let order = self.order;
        let mut interface = Interface {
            name: None,
            link_type: order.word(block.body, 0),
            snap_bytes: order.long(block.body, 4),
            resolution: DEFAULT_RESOLUTION,
            offset_seconds: 0,
        };
        self.options(block, INTERFACE_BYTES, |code, value, offset| {
            match code {
                INTERFACE_NAME => interface.name = Some(text(value, offset)?),
                INTERFACE_RESOLUTION => interface.resolution = exactly::<1>(value, offset)?[0],
                INTERFACE_OFFSET => {
                    interface.offset_seconds = order.longer(&exactly::<8>(value, offset)?, 0) as i64;
                }
                _ => {}
            }
            Ok(())
        })?;
        self.interfaces.push(interface);
        Ok(())
    }

    fn read_packet(&self, block: &Block<'a>) -> Result<Captured<'a>, CaptureError> {
        block.require(PACKET_BYTES)?;
        let order = self.order;
        let [number, high, low, captured_bytes, original_bytes] =
            [0, 4, 8, 12, 16].map(|at| order.long(block.body, at));
        let Some(interface) = self.interfaces.get(number as usize) else {
            return Err(error(block.offset, "interface", number, "one described before"));
        };
        let ticks = u64::from(high) << 32 | u64::from(low);
        let Some(time_nanoseconds) = interface.nanoseconds(ticks) else {
            return Err(error(block.offset + 4, "time", ticks, "one between 1970 and 2554"));
        };
        let most = if interface.snap_bytes == 0 { u32::MAX } else { interface.snap_bytes };
        let captured = block.body[PACKET_BYTES..].get(..captured_bytes as usize);
        let Some(bytes) = captured.filter(|_| captured_bytes <= original_bytes.min(most)) else {
            let expected = "no more than the block, the packet and the interface have";
            return Err(error(block.offset + 12, "captured length", captured_bytes, expected));
        };
        let mut packet = Captured {
            interface: number,
            time_nanoseconds,
            original_bytes,
            bytes,
            direction: None,
            comment: None,
        };
        self.options(block, PACKET_BYTES + bytes.len().next_multiple_of(4), |code, value, offset| {
            match code {
                COMMENT if packet.comment.is_none() => packet.comment = Some(text(value, offset)?),
                PACKET_FLAGS => {
                    packet.direction = direction(order.long(&exactly::<4>(value, offset)?, 0), offset)?;
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(packet)
    }

    /// Calls `take` with code, value and place of every option from byte `start` of the block on.
    fn options(
        &self,
        block: &Block<'a>,
        start: usize,
        mut take: impl FnMut(u16, &'a [u8], usize) -> Result<(), CaptureError>,
    ) -> Result<(), CaptureError> {
        let mut rest = block.body.get(start..).unwrap_or(&[]);
        while !rest.is_empty() {
            // Blocks and options are whole numbers of four bytes: there are four.
            let offset = block.offset + block.body.len() - rest.len();
            let (code, length) = (self.order.word(rest, 0), usize::from(self.order.word(rest, 2)));
            let Some(after) = rest.get(4 + length.next_multiple_of(4)..) else {
                return Err(error(offset + 2, "option length", length as u64, "no more than the block has"));
            };
            if code == END_OF_OPTIONS {
                if length != 0 || !after.is_empty() {
                    let found = (length + after.len()) as u64;
                    return Err(error(offset, "bytes after the end of the options", found, "0"));
                }
                return Ok(());
            }
            take(code, &rest[4..4 + length], offset + 4)?;
            rest = after;
        }
        Ok(())
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Captured<'a>, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        let packet = self.packet();
        if packet.is_err() {
            // What an error leaves behind is not read: nobody knows where the next block begins.
            (self.at, self.section_end) = (self.bytes.len(), None);
        }
        packet.transpose()
    }
}

impl Interface<'_> {
    /// A time of so many ticks; `None` outside of what 64 bits hold, 1970 to 2554.
    fn nanoseconds(&self, ticks: u64) -> Option<u64> {
        let exponent = u32::from(self.resolution & 0x7f);
        let scaled = u128::from(ticks) * 1_000_000_000;
        let since = match self.resolution & 0x80 {
            0 => 10u128.checked_pow(exponent).map_or(0, |divisor| scaled / divisor),
            _ => scaled >> exponent,
        };
        // Both are far below 2^127.
        u64::try_from(since as i128 + i128::from(self.offset_seconds) * 1_000_000_000).ok()
    }
}

impl Block<'_> {
    fn require(&self, bytes: usize) -> Result<(), CaptureError> {
        if self.body.len() < bytes {
            let expected = match self.kind {
                SECTION_HEADER => "16 or more in a section's header",
                INTERFACE_DESCRIPTION => "8 or more in an interface's description",
                _ => "20 or more in a packet's block",
            };
            return Err(error(self.offset, "bytes between the lengths", self.body.len() as u64, expected));
        }
        Ok(())
    }
}

/// Numbers at places that are known to be there.
impl Order {
    fn word(self, bytes: &[u8], at: usize) -> u16 {
        let value = [bytes[at], bytes[at + 1]];
        match self {
            Order::Little => u16::from_le_bytes(value),
            Order::Big => u16::from_be_bytes(value),
        }
    }

    fn long(self, bytes: &[u8], at: usize) -> u32 {
        let value = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match self {
            Order::Little => u32::from_le_bytes(value),
            Order::Big => u32::from_be_bytes(value),
        }
    }

    fn longer(self, bytes: &[u8], at: usize) -> u64 {
        let (first, second) = (u64::from(self.long(bytes, at)), u64::from(self.long(bytes, at + 4)));
        match self {
            Order::Little => second << 32 | first,
            Order::Big => first << 32 | second,
        }
    }
}

/// The lowest two bits of a packet's flags; the others tell of things that are not read here.
fn direction(flags: u32, offset: usize) -> Result<Option<Direction>, CaptureError> {
    match flags & 3 {
        0 => Ok(None),
        1 => Ok(Some(Direction::Inbound)),
        2 => Ok(Some(Direction::Outbound)),
        found => Err(error(offset, "direction", found, "0 to 2")),
    }
}

fn text(value: &[u8], offset: usize) -> Result<&str, CaptureError> {
    std::str::from_utf8(value).map_err(|wrong| {
        let at = wrong.valid_up_to();
        error(offset + at, "byte of a text", value[at], "UTF-8")
    })
}

fn exactly<const N: usize>(value: &[u8], offset: usize) -> Result<[u8; N], CaptureError> {
    value.try_into().map_err(|_| {
        let expected = match N {
            1 => "1",
            4 => "4",
            _ => "8",
        };
        error(offset - 2, "option length", value.len() as u64, expected)
    })
}

fn error(offset: usize, field: &'static str, found: impl Into<u64>, expected: &'static str) -> CaptureError {
    CaptureError { offset: offset as u64, field, found: found.into(), expected }
}
