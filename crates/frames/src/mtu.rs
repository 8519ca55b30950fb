//! MTU, MSS and the layers of one frame.

use thiserror::Error;

/// Ethernet II header without a tag, in bytes (IEEE 802.3 clause 3.2: two addresses and the type).
pub const ETHERNET_HEADER_BYTES: u32 = 14;
/// Frame check sequence, in bytes (IEEE 802.3 clause 3.2.9).
const FCS_BYTES: u32 = 4;
/// The smallest frame without its FCS, in bytes (IEEE 802.3 clause 4.2.3.3: 64 with FCS).
const MINIMUM_CAPTURED_BYTES: u32 = 60;
/// What a frame has beyond its IP packet, in bytes: Ethernet header and FCS, untagged.
pub const FRAME_OVERHEAD_BYTES: u32 = ETHERNET_HEADER_BYTES + FCS_BYTES;
/// What the wire carries beyond the frame, in bytes: preamble 7, SFD 1, inter-packet gap 12 (IEEE 802.3).
pub const WIRE_OVERHEAD_BYTES: u32 = 20;
/// TCP header without options, in bytes (RFC 9293 section 3.1).
pub const TCP_HEADER_BYTES: u32 = 20;
/// The timestamps option with its padding, in bytes of every segment (RFC 7323 appendix A).
pub const TIMESTAMPS_OPTION_BYTES: u32 = 12;
/// The smallest MTU of an IPv4 link, in bytes (RFC 791).
const MINIMUM_V4: u32 = 68;
/// The smallest MTU of an IPv6 link, in bytes (RFC 8200 section 5).
const MINIMUM_V6: u32 = 1280;
/// The largest packet that tells of an error, in bytes (RFC 1812 section 4.3.2.3).
const LARGEST_ERROR_V4: u32 = 576;
/// The largest MTU: an IPv4 total length has 16 bits (RFC 791).
const MAXIMUM: u32 = 65_535;

/// An IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4 (RFC 791).
    V4,
    /// IPv6 (RFC 8200).
    V6,
}

impl Family {
    /// The IP header without options or extension headers, in bytes: 20 (RFC 791) or 40 (RFC 8200).
    pub const fn header_bytes(self) -> u32 {
        match self {
            Family::V4 => 20,
            Family::V6 => 40,
        }
    }

    /// The smallest MTU that this IP version may run on, in bytes.
    pub const fn minimum_mtu_bytes(self) -> u32 {
        match self {
            Family::V4 => MINIMUM_V4,
            Family::V6 => MINIMUM_V6,
        }
    }

    /// The largest ICMP packet that tells of an error, in bytes: 576 (RFC 1812 section 4.3.2.3), or the smallest MTU of IPv6
    /// (RFC 4443 section 2.4). It quotes as much of the packet in question as fits.
    pub const fn largest_error_bytes(self) -> u32 {
        match self {
            Family::V4 => LARGEST_ERROR_V4,
            Family::V6 => MINIMUM_V6,
        }
    }
}

/// Why a number is no MTU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MtuError {
    /// Outside of what IP can express.
    #[error("MTU {found} is outside of {MINIMUM_V4}..={MAXIMUM} bytes")]
    OutOfRange {
        /// The number given, in bytes.
        found: u32,
    },
    /// Too small for the IP version asked for.
    #[error("MTU {found} is below the {required} bytes that {family:?} needs")]
    BelowFamilyMinimum {
        /// The number given, in bytes.
        found: u32,
        /// The smallest MTU of that IP version, in bytes.
        required: u32,
        /// The IP version.
        family: Family,
    },
}

/// The largest IP packet of a link in bytes, as `ip link` shows it; never the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mtu(u32);

impl Mtu {
    /// An MTU of 68 (RFC 791) to 65,535 bytes.
    pub const fn new(bytes: u32) -> Result<Mtu, MtuError> {
        if bytes < MINIMUM_V4 || bytes > MAXIMUM {
            return Err(MtuError::OutOfRange { found: bytes });
        }
        Ok(Mtu(bytes))
    }

    /// The same MTU, if this IP version may run on it: IPv6 needs 1280 bytes (RFC 8200 section 5).
    pub const fn check(self, family: Family) -> Result<Mtu, MtuError> {
        let required = family.minimum_mtu_bytes();
        if self.0 < required {
            return Err(MtuError::BelowFamilyMinimum { found: self.0, required, family });
        }
        Ok(self)
    }

    /// The largest IP packet, in bytes.
    pub const fn bytes(self) -> u32 {
        self.0
    }

    /// The largest frame, header and FCS included, untagged, in bytes: MTU + 18.
    pub const fn frame_bytes(self) -> u32 {
        self.0 + FRAME_OVERHEAD_BYTES
    }

    /// What the largest frame occupies on the wire, in bytes: MTU + 38.
    pub const fn wire_bytes(self) -> u32 {
        self.frame_bytes() + WIRE_OVERHEAD_BYTES
    }

    /// The MSS as announced in a SYN, before options, in bytes (RFC 6691): MTU − 40, or − 60 for IPv6.
    ///
    /// An MTU too small for the family gives a figure that no network can use; [`Mtu::check`] refuses it.
    pub const fn mss(self, family: Family) -> u32 {
        self.0.saturating_sub(family.header_bytes() + TCP_HEADER_BYTES)
    }

    /// TCP payload of a full segment after options, in bytes: MSS − 12 with timestamps (RFC 7323).
    pub const fn segment_payload(self, family: Family, timestamps: bool) -> u32 {
        let options = if timestamps { TIMESTAMPS_OPTION_BYTES } else { 0 };
        self.mss(family).saturating_sub(options)
    }
}

/// `frame_bytes` of a frame captured without FCS, as a TAP sees it: padded to 60, then 4 of FCS (IEEE 802.3).
pub const fn frame_bytes(captured: u32) -> u32 {
    let padded = if captured < MINIMUM_CAPTURED_BYTES { MINIMUM_CAPTURED_BYTES } else { captured };
    padded.saturating_add(FCS_BYTES)
}

/// What a frame of `frame_bytes` occupies on the wire, in bytes: 20 more for preamble, SFD and gap.
pub const fn wire_bytes(frame_bytes: u32) -> u32 {
    frame_bytes.saturating_add(WIRE_OVERHEAD_BYTES)
}
