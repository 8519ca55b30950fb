//! What an aggregate costs on the wire, and telling it to a Linux shaper.

use crate::{
    ETHERNET_HEADER_BYTES, Family, Mtu, TCP_HEADER_BYTES, TIMESTAMPS_OPTION_BYTES, frame_bytes, wire_bytes,
};

/// The largest length a table answers for: the largest IP packet in an Ethernet header.
const LONGEST_BYTES: u32 = 65_535 + ETHERNET_HEADER_BYTES;
/// The largest size table attribute, in bytes: half of what a netlink attribute's 16-bit length could say.
const LARGEST_TABLE_BYTES: usize = 32 * 1024;

/// Wire bytes of an aggregate once it is cut into frames.
///
/// `skb_bytes` is what Linux calls `skb->len`: Ethernet, IP and TCP headers once (`header_bytes`) and the
/// payload, no FCS. A packet no longer than `header_bytes + segment_payload` is one frame.
pub const fn aggregate_wire_bytes(skb_bytes: u32, header_bytes: u32, segment_payload: u32) -> u64 {
    let payload = skb_bytes.saturating_sub(header_bytes);
    if segment_payload == 0 || payload <= segment_payload {
        return wire_bytes(frame_bytes(skb_bytes)) as u64;
    }
    let full = (payload - 1) / segment_payload;
    let last = payload - full * segment_payload;
    let full_wire = wire_bytes(frame_bytes(header_bytes.saturating_add(segment_payload))) as u64;
    let last_wire = wire_bytes(frame_bytes(header_bytes.saturating_add(last))) as u64;
    full as u64 * full_wire + last_wire
}

/// A Linux `tc stab` size table: `struct tc_sizespec` with overhead, alignment and MPU 0, and its data.
///
/// The kernel charges a packet of length `l` with `data[l >> cell_log] << size_log` bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeTable {
    /// log2 of how many lengths share one entry.
    pub cell_log: u8,
    /// log2 of the bytes that one unit of an entry stands for.
    pub size_log: u8,
    /// The entries.
    pub data: Vec<u16>,
}

impl SizeTable {
    /// What the kernel charges for a packet of `skb_bytes`, in bytes (`__qdisc_calculate_pkt_len`).
    pub fn charged_bytes(&self, skb_bytes: u32) -> u64 {
        let slot = (skb_bytes >> self.cell_log) as usize;
        let entry = |index: usize| self.data.get(index).copied().map_or(0, u64::from);
        let units = if slot < self.data.len() {
            entry(slot)
        } else {
            let size = self.data.len().max(1);
            entry(size - 1) * (slot / size) as u64 + entry(slot % size)
        };
        units << self.size_log
    }
}

/// The table that makes a shaper charge TCP aggregates (timestamps on) with their true wire bytes.
///
/// Without it `tbf` charges the frame overhead of an aggregate once instead of once a frame, so that no
/// single rate fits both ACKs and aggregates. Lengths reach to 65,535 + 14 bytes. An entry answers for the
/// longest length of its cell, so that what is charged is never too little, except for lengths of exactly k
/// full segments: these are by far the commonest, and come out to one unit (`1 << size_log`, 2 bytes from
/// MTU 576 up). `tunnel_bytes` is what an overlay takes from the MTU: its headers are in the aggregate once, and
/// in every frame.
pub fn shaper_size_table(mtu: Mtu, family: Family, tunnel_bytes: u32) -> SizeTable {
    let inner = family.header_bytes() + TCP_HEADER_BYTES + TIMESTAMPS_OPTION_BYTES;
    let header_bytes = ETHERNET_HEADER_BYTES + inner + tunnel_bytes;
    let segment_payload = mtu.segment_payload(family, true).saturating_sub(tunnel_bytes);
    let wire = |length: u32| aggregate_wire_bytes(length, header_bytes, segment_payload);

    let entries = |cell_log: u8| (LONGEST_BYTES >> cell_log) as usize + 1;
    let cell_log = (0..16).find(|&log| entries(log) * size_of::<u16>() <= LARGEST_TABLE_BYTES).unwrap_or(16);
    let longest = wire(LONGEST_BYTES);
    let size_log = (0..32).find(|&log| units(longest, log) <= u64::from(u16::MAX)).unwrap_or(32);

    let data = (0..entries(cell_log) as u32).map(|slot| {
        let first = slot << cell_log;
        let last = (first + (1 << cell_log) - 1).min(LONGEST_BYTES);
        let length = full_segments_within(first, last, header_bytes, segment_payload).unwrap_or(last);
        u16::try_from(units(wire(length), size_log)).unwrap_or(u16::MAX)
    });
    SizeTable { cell_log, size_log, data: data.collect() }
}

/// Bytes in units of `1 << size_log`, rounded up.
fn units(bytes: u64, size_log: u8) -> u64 {
    bytes.div_ceil(1 << size_log)
}

/// The length in `first..=last` that is exactly one or more full segments, if there is one.
fn full_segments_within(first: u32, last: u32, header_bytes: u32, segment_payload: u32) -> Option<u32> {
    let payload = last.checked_sub(header_bytes)?;
    let segments = payload.checked_div(segment_payload)?;
    let length = header_bytes + segments * segment_payload;
    (segments > 0 && length >= first).then_some(length)
}
