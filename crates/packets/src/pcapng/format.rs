//! What writing and reading share: the numbers of the format, and a packet.

/// The most bytes of a packet that libpcap and Wireshark read of Ethernet.
pub const SNAP_BYTES_MAXIMUM: u32 = 262_144;

/// The link type of Ethernet without FCS.
pub const LINK_ETHERNET: u16 = 1;

pub(crate) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(crate) const INTERFACE_DESCRIPTION: u32 = 1;
pub(crate) const OBSOLETE_PACKET: u32 = 2;
pub(crate) const SIMPLE_PACKET: u32 = 3;
pub(crate) const INTERFACE_STATISTICS: u32 = 5;
pub(crate) const ENHANCED_PACKET: u32 = 6;

pub(super) const BYTE_ORDER: u32 = 0x1a2b_3c4d;
pub(super) const END_OF_OPTIONS: u16 = 0;
pub(super) const COMMENT: u16 = 1;
pub(super) const INTERFACE_NAME: u16 = 2;
pub(super) const INTERFACE_RESOLUTION: u16 = 9;
pub(super) const INTERFACE_OFFSET: u16 = 14;
pub(super) const PACKET_FLAGS: u16 = 2;
pub(crate) const PACKET_DROP_COUNT: u16 = 4;
pub(crate) const STATISTICS_INTERFACE_DROPS: u16 = 5;
pub(crate) const STATISTICS_SYSTEM_DROPS: u16 = 7;

/// Which way a packet went, seen from its interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// It came in.
    Inbound,
    /// It went out.
    Outbound,
}

/// A packet of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Captured<'a> {
    /// The number of its interface within the section, from 0.
    pub interface: u32,
    /// When, since 1970 (or whatever the clock counts from).
    pub time_nanoseconds: u64,
    /// Bytes that it had when it was captured.
    pub original_bytes: u32,
    /// All of them, or the first ones.
    pub bytes: &'a [u8],
    /// Which way it went, if that is known.
    pub direction: Option<Direction>,
    /// What there is to say of it.
    pub comment: Option<&'a str>,
}
