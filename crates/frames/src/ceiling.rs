//! The most that TCP can deliver over a link.

use crate::{BitRate, Family, Mtu};

/// What a link can deliver at best: back-to-back full segments, untagged, nothing lost, ACKs free.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ceiling {
    /// The MTU, in bytes.
    pub mtu: Mtu,
    /// A full frame with header and FCS, in bytes.
    pub frame_bytes: u32,
    /// A full frame on the wire, in bytes.
    pub wire_bytes: u32,
    /// The MSS as announced, before options, in bytes.
    pub mss_bytes: u32,
    /// TCP payload of a full segment, in bytes.
    pub segment_payload_bytes: u32,
    /// Application bits delivered a second.
    pub goodput_bits_per_second: f64,
}

/// The goodput ceiling: line rate × payload ÷ wire bytes of a full segment (IEEE 802.3, RFC 7323).
pub fn ceiling(mtu: Mtu, family: Family, timestamps: bool, rate: BitRate) -> Ceiling {
    let segment_payload_bytes = mtu.segment_payload(family, timestamps);
    let share = f64::from(segment_payload_bytes) / f64::from(mtu.wire_bytes());
    Ceiling {
        mtu,
        frame_bytes: mtu.frame_bytes(),
        wire_bytes: mtu.wire_bytes(),
        mss_bytes: mtu.mss(family),
        segment_payload_bytes,
        goodput_bits_per_second: rate.bits_per_second() as f64 * share,
    }
}
