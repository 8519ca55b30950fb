//! Reading captures that lie in memory. Every length is checked; blocks and options of other kinds are passed over.

use super::blocks::{Block, Head, Order, Ticks, error};
use super::format::{
    COMMENT, Captured, Direction, ENHANCED_PACKET, INTERFACE_DESCRIPTION, PACKET_FLAGS, SECTION_HEADER,
};
use crate::error::CaptureError;

/// An interface of the section that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface<'a> {
    /// Its name, if it has one.
    pub name: Option<&'a str>,
    /// What its packets begin with; [`crate::pcapng::LINK_ETHERNET`] or another.
    pub link_type: u16,
    /// How much of a packet is kept, in bytes; 0 is all of it.
    pub snap_bytes: u32,
    ticks: Ticks,
}

/// Reads the packets of a capture that lies in memory, section by section. After an error it ends.
///
/// Strict, for captures of our own: what contradicts the format is an error, not a guess. Of several comments on a
/// packet the first counts. Captures of any program and size: [`crate::capture::Reader`].
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
        self.end_section(self.at as u64)?;
        Ok(None)
    }

    /// Takes the next block; that of a section decides the byte order from there on.
    fn block(&mut self) -> Result<Block<'a>, CaptureError> {
        let (start, rest) = (self.at as u64, &self.bytes[self.at..]);
        let head = Head::read(&mut self.order, rest, start)?;
        let block = head.block(self.order, rest)?;
        self.at += head.bytes;
        match self.section_end {
            Some(end) if block.kind != SECTION_HEADER && self.at as u64 > end => {
                Err(error(start, "end of the section by its header", end, "behind this block"))
            }
            _ => Ok(block),
        }
    }

    fn end_section(&self, at: u64) -> Result<(), CaptureError> {
        match self.section_end {
            Some(end) if end != at => {
                Err(error(at, "end of the section by its header", end, "where it ends"))
            }
            _ => Ok(()),
        }
    }

    fn begin_section(&mut self, block: &Block<'a>) -> Result<(), CaptureError> {
        self.end_section(block.offset - 8)?;
        let length = block.section_bytes()?;
        self.section_end = length.map(|length| (self.at as u64).saturating_add(length));
        self.interfaces.clear();
        Ok(())
    }

    fn describe(&mut self, block: &Block<'a>) -> Result<(), CaptureError> {
        let description = block.description()?;
        self.interfaces.push(Interface {
            name: description.name.map(|name| name.text()).transpose()?,
            link_type: description.link_type,
            snap_bytes: description.snap_bytes,
            ticks: description.ticks,
        });
        Ok(())
    }

    fn read_packet(&self, block: &Block<'a>) -> Result<Captured<'a>, CaptureError> {
        let head = block.packet_head()?;
        let Some(interface) = self.interfaces.get(head.interface as usize) else {
            return Err(block.unknown_interface(&head));
        };
        let Ok(time_nanoseconds) = u64::try_from(interface.ticks.nanoseconds(head.ticks)) else {
            return Err(block.time_out_of_range(&head, "one between 1970 and 2554"));
        };
        let most = if interface.snap_bytes == 0 { u32::MAX } else { interface.snap_bytes };
        let expected = "no more than the block, the packet and the interface have";
        let bytes = block.captured(&head, most.min(head.original_bytes), expected)?;
        let mut packet = Captured {
            interface: head.interface,
            time_nanoseconds,
            original_bytes: head.original_bytes,
            bytes,
            direction: None,
            comment: None,
        };
        block.options(Block::options_start(bytes), |code, value| {
            match code {
                COMMENT if packet.comment.is_none() => packet.comment = Some(value.text()?),
                PACKET_FLAGS => {
                    packet.direction = direction(block.order.long(&value.exactly::<4>()?, 0), value.offset)?;
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(packet)
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

/// The lowest two bits of a packet's flags; the others tell of things that are not read here.
fn direction(flags: u32, offset: u64) -> Result<Option<Direction>, CaptureError> {
    match flags & 3 {
        0 => Ok(None),
        1 => Ok(Some(Direction::Inbound)),
        2 => Ok(Some(Direction::Outbound)),
        value => Err(error(offset, "direction", value, "0 to 2")),
    }
}
