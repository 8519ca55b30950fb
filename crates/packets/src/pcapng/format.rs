//! What writing and reading share: the numbers of the format, and a packet.

/// The most bytes of a packet that libpcap and Wireshark read of Ethernet.
pub const SNAP_BYTES_MAXIMUM: u32 = 262_144;

/// The link type of Ethernet without FCS.
pub const LINK_ETHERNET: u16 = 1;

/// The link type of packets that begin with an IP header.
pub const LINK_IP: u16 = 101;

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
pub(super) const OPERATING_SYSTEM: u16 = 3;
pub(crate) const STATISTICS_START: u16 = 2;
pub(crate) const STATISTICS_END: u16 = 3;
pub(crate) const STATISTICS_INTERFACE_DROPS: u16 = 5;
pub(super) const STATISTICS_ACCEPTED: u16 = 6;
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

/// What there is to say of a whole capture.
#[derive(Debug, Clone, Copy, Default)]
pub struct About<'a> {
    /// The system that it was made on.
    pub system: Option<&'a str>,
    /// Anything else, such as the host's name.
    pub comment: Option<&'a str>,
}

/// What became of the packets of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// The number of the interface within the section, from 0.
    pub interface: u32,
    /// When its capture began, since 1970.
    pub start_nanoseconds: u64,
    /// When it ended.
    pub end_nanoseconds: u64,
    /// Packets that the filter took.
    pub accepted_packets: u64,
    /// Of those, packets that the system had no room for.
    pub dropped_packets: u64,
}
