//! The errors of this crate.

use std::fmt;

use thiserror::Error;

/// What was being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layer {
    /// The 10 bytes before a frame on a TAP with `IFF_VNET_HDR`.
    VirtioNet,
    /// Ethernet II (IEEE 802.3).
    Ethernet,
    /// One VLAN tag (IEEE 802.1Q).
    VlanTag,
    /// IPv4 (RFC 791).
    Ipv4,
    /// IPv6 (RFC 8200).
    Ipv6,
    /// TCP (RFC 9293).
    Tcp,
    /// UDP (RFC 768).
    Udp,
}

impl fmt::Display for Layer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Layer::VirtioNet => "virtio-net header",
            Layer::Ethernet => "Ethernet header",
            Layer::VlanTag => "802.1Q tag",
            Layer::Ipv4 => "IPv4",
            Layer::Ipv6 => "IPv6",
            Layer::Tcp => "TCP",
            Layer::Udp => "UDP",
        })
    }
}

/// Who claimed the length that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LengthSource {
    /// The bytes that were handed in.
    Slice,
    /// The total length of the IPv4 header.
    Ipv4TotalLength,
    /// The payload length of the IPv6 header.
    Ipv6PayloadLength,
    /// The length in the UDP header.
    UdpLength,
}

impl fmt::Display for LengthSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            LengthSource::Slice => "the bytes given",
            LengthSource::Ipv4TotalLength => "the IPv4 total length",
            LengthSource::Ipv6PayloadLength => "the IPv6 payload length",
            LengthSource::UdpLength => "the UDP length",
        })
    }
}

/// Why bytes could not be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ParseError {
    /// A layer is cut short.
    #[error("{layer} needs {required} bytes, found {found} within {length_source}")]
    Length {
        /// The layer that does not fit.
        layer: Layer,
        /// Bytes it needs.
        required: usize,
        /// Bytes there are.
        found: usize,
        /// Who says that there are so many.
        length_source: LengthSource,
    },
    /// A field holds a value that the layer does not allow.
    #[error("{layer}: {field} is {found}, expected {expected}")]
    Value {
        /// The layer that the field belongs to.
        layer: Layer,
        /// The field.
        field: &'static str,
        /// Its value.
        found: u32,
        /// What would have been allowed.
        expected: &'static str,
    },
}

/// Why bytes are no capture, or a packet cannot be part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("byte {offset} of the capture: {field} is {}, expected {expected}", shown(field, *found))]
pub struct CaptureError {
    /// Where.
    pub offset: u64,
    /// What is there.
    pub field: &'static str,
    /// Its value.
    pub found: u64,
    /// What would have been allowed.
    pub expected: &'static str,
}

/// A magic number in the base in which documents and other programs write it.
fn shown(field: &str, value: u64) -> String {
    if field.starts_with("magic number") { format!("{value:#010x}") } else { value.to_string() }
}

/// The error if `actual` bytes are fewer than `required`.
pub(crate) fn require(
    layer: Layer,
    required: usize,
    actual: usize,
    length_source: LengthSource,
) -> Result<(), ParseError> {
    if actual < required {
        return Err(ParseError::Length { layer, required, found: actual, length_source });
    }
    Ok(())
}
