//! What a diagnosis needs to know of one captured packet: small, owned, without payload.

use crate::{SynOptions, TcpFlags};
use std::net::SocketAddr;

/// Stamps later than the year 2100 are taken for this, and those before 1970 for 1970: no clock says so in earnest, and
/// the difference of two stamps, or the sum of two such, is a number that there is room for.
pub(super) const LATEST_NANOSECONDS: i64 = 4_102_444_800_000_000_000;

/// The most SACK blocks that TCP options have room for.
pub const SACK_BLOCKS: usize = 4;

/// SACK blocks as sequence numbers `[begin, end)` (RFC 2018); the first may be a D-SACK (RFC 2883).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    /// The blocks.
    pub blocks: [(u32, u32); SACK_BLOCKS],
    /// How many of them are there.
    pub count: u8,
}

impl SackBlocks {
    /// Those that are there.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count).min(SACK_BLOCKS)]
    }
}

/// The IP fragments in which a segment came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragments {
    /// Bytes of the first one, with its IP header; 65,535 stands for more.
    pub first_bytes: u16,
    /// The capture has all of them, so that the segment has its length; else it has the bytes of the first one.
    pub are_whole: bool,
}

/// A TCP segment as it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// When, in nanoseconds since 1970 by the clock of the capture; 0 to the year 2100.
    pub nanoseconds: i64,
    /// The packet's number in its capture, from 1 as Wireshark counts.
    pub number: u64,
    /// Where it comes from.
    pub source: SocketAddr,
    /// Where it goes to.
    pub destination: SocketAddr,
    /// The first byte's sequence number.
    pub seq: u32,
    /// The acknowledgement number; counts with the flag ACK only.
    pub ack: u32,
    /// The flags.
    pub flags: TcpFlags,
    /// The window as sent, not scaled.
    pub window: u16,
    /// Bytes of payload on the wire, also where fewer were captured. Of an aggregate, all of its bytes.
    pub payload_bytes: u32,
    /// Bytes of the whole IP packet, or of the aggregate.
    pub ip_bytes: u32,
    /// The timestamps option: value and echo (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks.
    pub sack: SackBlocks,
    /// The options of a SYN; `None` without the flag SYN.
    pub syn: Option<SynOptions>,
    /// Multipath TCP (RFC 8684) is among the options.
    pub multipath: bool,
    /// TCP Fast Open (RFC 7413) is among the options.
    pub fast_open: bool,
    /// IPv4's identification.
    pub identification: Option<u16>,
    /// TTL or hop limit.
    pub hops: u8,
    /// The two ECN bits (RFC 3168).
    pub ecn: u8,
    /// Whether the TCP checksum is right; `None` if the payload was cut, so that it cannot be told.
    pub checksum_is_right: Option<bool>,
    /// Bytes of options by the length of its header, whatever was captured of them.
    pub option_bytes: u8,
    /// The options were cut by the capture's length, so that some may be missing.
    pub options_are_cut: bool,
    /// It came in IP fragments.
    pub fragments: Option<Fragments>,
}
