//! Reading captures of any size: pcap and pcapng, packet by packet.

use std::io::Read;

use super::LinkType;
use super::buffer::Buffer;
use super::pcap::Pcap;
use super::sections::Sections;
use crate::error::CaptureError;
use crate::pcapng::blocks::{BLOCK_MINIMUM_BYTES, Head, Ticks, error};
use crate::pcapng::format::SECTION_HEADER;

/// The longest packet, and the longest block of pcapng, that is read: 16 MiB. BIG TCP makes packets of 512 KiB.
pub const PACKET_BYTES_MAXIMUM: u32 = 16 * 1024 * 1024;

/// A packet of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its number in the capture, from 1 as Wireshark counts.
    pub number: u64,
    /// When, in nanoseconds since 1970 by the clock of the capture; 0 for a Simple Packet Block, which has no time.
    pub nanoseconds: i64,
    /// What it begins with.
    pub link: LinkType,
    /// The number of its interface in [`Reader::interfaces`].
    pub interface: u32,
    /// What was kept of it.
    pub captured: &'a [u8],
    /// Bytes that it had when it was captured: never fewer than were kept.
    pub original_bytes: u32,
}

/// An interface that a capture has packets of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interface {
    /// Its name, if it has one; cut at 255 bytes.
    pub name: Option<String>,
    /// The number of its link type; one that is not read is an error at its first packet.
    pub link_type: u16,
    /// How much of a packet is kept, in bytes; 0 is all of it.
    pub snap_bytes: u32,
    /// When its capture began, by the last Interface Statistics Block (`isb_starttime`): nanoseconds since 1970.
    pub begun: Option<i64>,
    /// When it ended (`isb_endtime`).
    pub ended: Option<i64>,
    pub(super) ticks: Ticks,
    /// The last that its statistics said.
    pub(super) interface_drops: Option<u64>,
    pub(super) system_drops: Option<u64>,
}

impl Interface {
    /// A time in two halves, the upper one first, in nanoseconds since 1970. Some tools write 0 for one that they do not know.
    pub(super) fn time(&self, upper: u32, lower: u32) -> Option<i64> {
        let ticks = u64::from(upper) << 32 | u64::from(lower);
        i64::try_from(self.ticks.nanoseconds(ticks)).ok().filter(|_| ticks > 0)
    }
}

/// Packets that a capture misses by its own account; `None` where it says nothing, as pcap never does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CaptureLoss {
    /// Dropped by interfaces for want of room, by the last Interface Statistics Blocks (`isb_ifdrop`).
    pub interface_drops: Option<u64>,
    /// Dropped by the operating system (`isb_osdrop`).
    pub system_drops: Option<u64>,
    /// Lost between packets, by the packets' own account (`epb_dropcount`).
    pub before_packets: Option<u64>,
}

impl CaptureLoss {
    /// All of them: statistics and packets count the same losses in two ways, so the larger number counts.
    pub fn packets(&self) -> Option<u64> {
        let statistics = match (self.interface_drops, self.system_drops) {
            (Some(interface), Some(system)) => Some(interface.saturating_add(system)),
            (interface, system) => interface.or(system),
        };
        statistics.max(self.before_packets)
    }
}

/// A packet in the buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) interface: u32,
    pub(super) link: LinkType,
    pub(super) nanoseconds: i64,
    /// Bytes before it in its block.
    pub(super) head_bytes: usize,
    pub(super) captured_bytes: u32,
    pub(super) original_bytes: u32,
    /// Of the block with all that belongs to it.
    pub(super) block_bytes: usize,
}

#[derive(Debug)]
enum Format {
    Pcap(Pcap),
    Pcapng(Sections),
}

/// Reads the packets of a capture as it comes: pcap (microseconds, nanoseconds, and Kuznetzov's modified form) and
/// pcapng (any number of sections and interfaces), in both byte orders.
///
/// Memory is bounded by the longest packet or block. What Wireshark reads is read: lengths of sections and of what is
/// kept are not held against a capture. After an error it ends.
#[derive(Debug)]
pub struct Reader<R> {
    buffer: Buffer<R>,
    format: Format,
    interfaces: Vec<Interface>,
    packets: u64,
    ended: bool,
}

impl<R: Read> Reader<R> {
    /// Fails for what begins with neither format, and for a pcap file of a link type that is not read.
    pub fn new(read: R) -> Result<Reader<R>, CaptureError> {
        let mut buffer = Buffer::new(read);
        let magic = buffer.fill(4)?;
        let Some(magic) = magic.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)) else {
            return Err(error(0, "bytes of the capture", magic.len() as u64, "24 or more"));
        };
        let mut interfaces = Vec::new();
        let format = match magic {
            SECTION_HEADER => Format::Pcapng(Sections::new()),
            _ => {
                let (pcap, interface) = Pcap::begin(&mut buffer, magic)?;
                interfaces.push(interface);
                Format::Pcap(pcap)
            }
        };
        let mut reader = Reader { buffer, format, interfaces, packets: 0, ended: false };
        if let Format::Pcapng(sections) = &mut reader.format {
            block(&mut reader.buffer, sections, &mut reader.interfaces)?;
        }
        Ok(reader)
    }

    /// The next packet; `None` at the end of the capture and after an error.
    #[expect(clippy::should_implement_trait, reason = "an iterator could not lend its buffer")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        if self.ended {
            return Ok(None);
        }
        let entry = match &mut self.format {
            Format::Pcap(pcap) => pcap.packet(&mut self.buffer),
            Format::Pcapng(sections) => packet(&mut self.buffer, sections, &mut self.interfaces),
        };
        self.ended = !matches!(entry, Ok(Some(_)));
        let Some(entry) = entry? else { return Ok(None) };
        self.packets += 1;
        let block = self.buffer.take(entry.block_bytes);
        Ok(Some(Record {
            number: self.packets,
            nanoseconds: entry.nanoseconds,
            link: entry.link,
            interface: entry.interface,
            captured: &block[entry.head_bytes..][..entry.captured_bytes as usize],
            original_bytes: entry.original_bytes.max(entry.captured_bytes),
        }))
    }

    /// The interfaces that were described so far, of all sections; a pcap file has one.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// What the capture has said so far of packets that it misses; at its end all that it says.
    pub fn loss(&self) -> CaptureLoss {
        let sum = |drops: fn(&Interface) -> Option<u64>| {
            self.interfaces.iter().filter_map(drops).reduce(u64::saturating_add)
        };
        CaptureLoss {
            interface_drops: sum(|interface| interface.interface_drops),
            system_drops: sum(|interface| interface.system_drops),
            before_packets: match &self.format {
                Format::Pcap(_) => None,
                Format::Pcapng(sections) => sections.lost_before_packets,
            },
        }
    }

    /// How many packets so far had no time of their own.
    pub fn untimed_packets(&self) -> u64 {
        match &self.format {
            Format::Pcap(_) => 0,
            Format::Pcapng(sections) => sections.untimed_packets,
        }
    }
}

/// The next packet of a pcapng file, which stays in the buffer. Blocks before it are taken.
fn packet<R: Read>(
    buffer: &mut Buffer<R>,
    sections: &mut Sections,
    interfaces: &mut Vec<Interface>,
) -> Result<Option<Found>, CaptureError> {
    while !buffer.fill(BLOCK_MINIMUM_BYTES)?.is_empty() {
        if let Some(entry) = block(buffer, sections, interfaces)? {
            return Ok(Some(entry));
        }
    }
    Ok(None)
}

/// Reads one block, and takes it if it is no packet.
fn block<R: Read>(
    buffer: &mut Buffer<R>,
    sections: &mut Sections,
    interfaces: &mut Vec<Interface>,
) -> Result<Option<Found>, CaptureError> {
    let start = buffer.offset();
    let head = Head::read(&mut sections.order, buffer.fill(BLOCK_MINIMUM_BYTES)?, start)?;
    if head.bytes > PACKET_BYTES_MAXIMUM as usize {
        return Err(head.refuse("16777216 or less"));
    }
    let block = head.block(sections.order, buffer.fill(head.bytes)?)?;
    let entry = sections.read(&block, interfaces)?;
    if entry.is_none() {
        buffer.take(head.bytes);
    }
    Ok(entry)
}
