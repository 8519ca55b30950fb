//! The blocks of pcapng (draft-ietf-opsawg-pcapng), as they come.

use super::LinkType;
use super::link;
use super::reader::{Found, Interface};
use crate::error::CaptureError;
use crate::pcapng::blocks::{Block, Order, PacketHead, error};
use crate::pcapng::format::{
    ENHANCED_PACKET, INTERFACE_DESCRIPTION, INTERFACE_STATISTICS, OBSOLETE_PACKET, PACKET_DROP_COUNT,
    SECTION_HEADER, SIMPLE_PACKET, STATISTICS_END, STATISTICS_INTERFACE_DROPS, STATISTICS_START,
    STATISTICS_SYSTEM_DROPS,
};

/// So many that their names take at most some megabytes.
const INTERFACES_MAXIMUM: usize = 65_536;
const NAME_BYTES_MAXIMUM: usize = 255;
/// Kind and length.
const BLOCK_HEAD_BYTES: usize = 8;
const SIMPLE_PACKET_BYTES: usize = 4;
const STATISTICS_BYTES: usize = 12;

/// What lasts from block to block.
#[derive(Debug)]
pub(super) struct Sections {
    pub(super) order: Order,
    /// Of the interfaces of the whole capture, the first one of the present section.
    first_interface: usize,
    pub(super) lost_before_packets: Option<u64>,
    pub(super) untimed_packets: u64,
}

impl Sections {
    pub(super) fn new() -> Sections {
        Sections { order: Order::Little, first_interface: 0, lost_before_packets: None, untimed_packets: 0 }
    }

    /// Reads a block; gives its packet, if it is one.
    pub(super) fn read(
        &mut self,
        block: &Block<'_>,
        interfaces: &mut Vec<Interface>,
    ) -> Result<Option<Found>, CaptureError> {
        match block.kind {
            SECTION_HEADER => {
                block.section_bytes()?;
                self.first_interface = interfaces.len();
                Ok(None)
            }
            INTERFACE_DESCRIPTION => describe(block, interfaces).map(|()| None),
            ENHANCED_PACKET | OBSOLETE_PACKET => self.packet(block, interfaces).map(Some),
            SIMPLE_PACKET => self.simple_packet(block, interfaces).map(Some),
            INTERFACE_STATISTICS => self.statistics(block, interfaces).map(|()| None),
            _ => Ok(None),
        }
    }

    fn packet(&mut self, block: &Block<'_>, interfaces: &[Interface]) -> Result<Found, CaptureError> {
        let head = block.packet_head()?;
        let (number, interface, link) = self.interface(block, &head, interfaces)?;
        let Ok(nanoseconds) = i64::try_from(interface.ticks.nanoseconds(head.ticks)) else {
            return Err(block.time_out_of_range(&head, "one between 1677 and 2262"));
        };
        let captured = block.captured(&head, u32::MAX, "no more than the block has")?;
        self.lose(head.lost_before.map(u64::from));
        block.options(Block::options_start(captured), |code, value| {
            if code == PACKET_DROP_COUNT && block.kind == ENHANCED_PACKET {
                self.lose(Some(block.order.longer(&value.exactly::<8>()?, 0)));
            }
            Ok(())
        })?;
        Ok(Found {
            interface: number,
            link,
            nanoseconds,
            head_bytes: BLOCK_HEAD_BYTES + Block::options_start(&[]),
            captured_bytes: head.captured_bytes,
            original_bytes: head.original_bytes,
            block_bytes: block.bytes(),
        })
    }

    /// A packet of the section's first interface. Its block does not say how much was kept: all that the interface
    /// keeps, or as much as there is.
    fn simple_packet(&mut self, block: &Block<'_>, interfaces: &[Interface]) -> Result<Found, CaptureError> {
        block.require(SIMPLE_PACKET_BYTES, "4 or more in a simple packet's block")?;
        let original_bytes = block.order.long(block.body, 0);
        let head = PacketHead {
            interface: 0,
            ticks: 0,
            captured_bytes: original_bytes,
            original_bytes,
            lost_before: None,
        };
        let (number, interface, link) = self.interface(block, &head, interfaces)?;
        let most = if interface.snap_bytes == 0 { u32::MAX } else { interface.snap_bytes };
        let body_bytes = (block.body.len() - SIMPLE_PACKET_BYTES) as u32;
        self.untimed_packets += 1;
        Ok(Found {
            interface: number,
            link,
            nanoseconds: 0,
            head_bytes: BLOCK_HEAD_BYTES + SIMPLE_PACKET_BYTES,
            captured_bytes: original_bytes.min(most).min(body_bytes),
            original_bytes,
            block_bytes: block.bytes(),
        })
    }

    /// The interface of a packet: its number in the capture, itself, and its link type, which must be one that is read.
    fn interface<'a>(
        &self,
        block: &Block<'_>,
        head: &PacketHead,
        interfaces: &'a [Interface],
    ) -> Result<(u32, &'a Interface, LinkType), CaptureError> {
        let number = self.first_interface.saturating_add(head.interface as usize);
        let Some(interface) = interfaces.get(number) else {
            return Err(block.unknown_interface(head));
        };
        let Some(link) = LinkType::from_number(interface.link_type) else {
            return Err(error(
                block.offset,
                "link type of the packet's interface",
                interface.link_type,
                link::EXPECTED,
            ));
        };
        Ok((number as u32, interface, link))
    }

    /// Counts of an interface since its capture began, and when that began and ended: later ones take the place of earlier ones.
    fn statistics(&self, block: &Block<'_>, interfaces: &mut [Interface]) -> Result<(), CaptureError> {
        block.require(STATISTICS_BYTES, "12 or more in an interface's statistics")?;
        let number = block.order.long(block.body, 0);
        let Some(interface) = interfaces.get_mut(self.first_interface.saturating_add(number as usize)) else {
            return Err(error(block.offset, "interface", number, "one described before"));
        };
        block.options(STATISTICS_BYTES, |code, value| {
            let drops = match code {
                STATISTICS_START | STATISTICS_END => {
                    let half = value.exactly::<8>()?;
                    let time = interface.time(block.order.long(&half, 0), block.order.long(&half, 4));
                    let place =
                        if code == STATISTICS_START { &mut interface.begun } else { &mut interface.ended };
                    *place = time;
                    return Ok(());
                }
                STATISTICS_INTERFACE_DROPS => &mut interface.interface_drops,
                STATISTICS_SYSTEM_DROPS => &mut interface.system_drops,
                _ => return Ok(()),
            };
            *drops = Some(block.order.longer(&value.exactly::<8>()?, 0));
            Ok(())
        })
    }

    fn lose(&mut self, packets: Option<u64>) {
        if let Some(packets) = packets {
            self.lost_before_packets = Some(self.lost_before_packets.unwrap_or(0).saturating_add(packets));
        }
    }
}

fn describe(block: &Block<'_>, interfaces: &mut Vec<Interface>) -> Result<(), CaptureError> {
    let description = block.description()?;
    if interfaces.len() == INTERFACES_MAXIMUM {
        return Err(error(
            block.offset - 8,
            "interfaces before this one",
            INTERFACES_MAXIMUM as u64,
            "fewer",
        ));
    }
    let name = description.name.map(|name| &name.bytes[..name.bytes.len().min(NAME_BYTES_MAXIMUM)]);
    interfaces.push(Interface {
        name: name.map(|name| String::from_utf8_lossy(name).into_owned()),
        link_type: description.link_type,
        snap_bytes: description.snap_bytes,
        ticks: description.ticks,
        ..Interface::default()
    });
    Ok(())
}
