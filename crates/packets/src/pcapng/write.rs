//! Writing captures, block by block.

use super::format::{
    About, BYTE_ORDER, COMMENT, Captured, Direction, END_OF_OPTIONS, ENHANCED_PACKET, INTERFACE_DESCRIPTION,
    INTERFACE_NAME, INTERFACE_RESOLUTION, INTERFACE_STATISTICS, LINK_ETHERNET, OPERATING_SYSTEM,
    PACKET_FLAGS, SECTION_HEADER, SNAP_BYTES_MAXIMUM, STATISTICS_ACCEPTED, STATISTICS_END, STATISTICS_START,
    STATISTICS_SYSTEM_DROPS, Statistics,
};
use crate::error::CaptureError;

const APPLICATION: u16 = 4;
/// Ticks of 10^-9 seconds.
const NANOSECONDS: u8 = 9;

/// A section being written. It holds no bytes: each call appends one whole block to those that it is given, so that
/// what was written so far is a capture at any time.
#[derive(Debug, Clone)]
pub struct Section {
    /// By interface: how much of a packet is kept.
    snaps_bytes: Vec<u32>,
}

impl Section {
    /// Writes the Section Header Block; the section's length stays open.
    pub fn begin(out: &mut Vec<u8>) -> Section {
        Section::begin_about(out, About::default())
    }

    /// The same, with what there is to say of it.
    pub fn begin_about(out: &mut Vec<u8>, about: About<'_>) -> Section {
        block(out, SECTION_HEADER, |body| {
            body.extend(BYTE_ORDER.to_le_bytes());
            // Version 1.0.
            body.extend([1, 0, 0, 0]);
            body.extend((-1i64).to_le_bytes());
            option(body, APPLICATION, b"framegauge");
            for (code, text) in [(OPERATING_SYSTEM, about.system), (COMMENT, about.comment)] {
                if let Some(text) = text {
                    option(body, code, fitting(text).as_bytes());
                }
            }
            option(body, END_OF_OPTIONS, &[]);
        });
        Section { snaps_bytes: Vec::new() }
    }

    /// Writes an Interface Description Block; returns the interface's number. Of its packets the first `snap_bytes`
    /// are kept (1 to [`SNAP_BYTES_MAXIMUM`]). A name is cut at 65,535 bytes.
    pub fn interface(&mut self, out: &mut Vec<u8>, name: &str, snap_bytes: u32) -> u32 {
        self.interface_with(out, name, snap_bytes, LINK_ETHERNET)
    }

    /// The same for an interface whose packets begin as its link type says.
    pub fn interface_with(&mut self, out: &mut Vec<u8>, name: &str, snap_bytes: u32, link_type: u16) -> u32 {
        let snap_bytes = snap_bytes.clamp(1, SNAP_BYTES_MAXIMUM);
        block(out, INTERFACE_DESCRIPTION, |body| {
            body.extend(link_type.to_le_bytes());
            body.extend([0, 0]);
            body.extend(snap_bytes.to_le_bytes());
            option(body, INTERFACE_NAME, fitting(name).as_bytes());
            option(body, INTERFACE_RESOLUTION, &[NANOSECONDS]);
            option(body, END_OF_OPTIONS, &[]);
        });
        self.snaps_bytes.push(snap_bytes);
        self.snaps_bytes.len() as u32 - 1
    }

    /// Writes an Enhanced Packet Block; fails, and writes nothing, for an interface that was not described. A comment
    /// is cut at 65,535 bytes. A packet never has fewer bytes than are handed in: `original_bytes` below that is
    /// raised.
    pub fn packet(&self, out: &mut Vec<u8>, packet: &Captured<'_>) -> Result<(), CaptureError> {
        let Some(&snap_bytes) = self.snaps_bytes.get(packet.interface as usize) else {
            let (offset, interface) = (out.len() as u64, u64::from(packet.interface));
            return Err(CaptureError {
                offset,
                field: "interface",
                found: interface,
                expected: "one described before",
            });
        };
        let original_bytes = packet.original_bytes.max(u32::try_from(packet.bytes.len()).unwrap_or(u32::MAX));
        let captured = &packet.bytes[..packet.bytes.len().min(snap_bytes as usize)];
        block(out, ENHANCED_PACKET, |body| {
            body.extend(packet.interface.to_le_bytes());
            body.extend(((packet.time_nanoseconds >> 32) as u32).to_le_bytes());
            body.extend((packet.time_nanoseconds as u32).to_le_bytes());
            body.extend((captured.len() as u32).to_le_bytes());
            body.extend(original_bytes.to_le_bytes());
            padded(body, captured);
            if let Some(direction) = packet.direction {
                let flags: u32 = match direction {
                    Direction::Inbound => 1,
                    Direction::Outbound => 2,
                };
                option(body, PACKET_FLAGS, &flags.to_le_bytes());
            }
            if let Some(comment) = packet.comment {
                option(body, COMMENT, fitting(comment).as_bytes());
            }
            if packet.direction.is_some() || packet.comment.is_some() {
                option(body, END_OF_OPTIONS, &[]);
            }
        });
        Ok(())
    }

    /// Writes an Interface Statistics Block.
    pub fn statistics(&self, out: &mut Vec<u8>, statistics: &Statistics) {
        let time = |nanoseconds: u64| -> [u8; 8] {
            let [high, low] =
                [nanoseconds >> 32, nanoseconds & 0xffff_ffff].map(|half| (half as u32).to_le_bytes());
            [high[0], high[1], high[2], high[3], low[0], low[1], low[2], low[3]]
        };
        block(out, INTERFACE_STATISTICS, |body| {
            body.extend(statistics.interface.to_le_bytes());
            body.extend(time(statistics.end_nanoseconds));
            option(body, STATISTICS_START, &time(statistics.start_nanoseconds));
            option(body, STATISTICS_END, &time(statistics.end_nanoseconds));
            for (code, packets) in [
                (STATISTICS_ACCEPTED, statistics.accepted_packets),
                (STATISTICS_SYSTEM_DROPS, statistics.dropped_packets),
            ] {
                option(body, code, &packets.to_le_bytes());
            }
            option(body, END_OF_OPTIONS, &[]);
        });
    }
}

/// A block around what `fill` appends, with its length before and after.
fn block(out: &mut Vec<u8>, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    fill(out);
    // A packet and its options are less than a megabyte.
    let length = (out.len() - start + 4) as u32;
    out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
    out.extend(length.to_le_bytes());
}

/// An option; its value is at most 65,535 bytes long.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    padded(body, value);
}

/// Bytes, and zeros up to a multiple of four.
fn padded(body: &mut Vec<u8>, bytes: &[u8]) {
    body.extend(bytes);
    body.extend(&[0; 3][..bytes.len().next_multiple_of(4) - bytes.len()]);
}

/// As much of a text as the length of an option can tell, in whole characters.
fn fitting(text: &str) -> &str {
    let mut end = text.len().min(usize::from(u16::MAX));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
