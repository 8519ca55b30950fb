//! The Internet checksum (RFC 1071) and the pseudo headers that it covers (RFC 9293, RFC 8200).

use std::net::IpAddr;

use crate::VirtioNetHeader;

/// Adds bytes to a running one's-complement sum; every call must begin at an even offset.
pub fn add(sum: u64, bytes: &[u8]) -> u64 {
    // Two words at once fold to the same (RFC 1071 section 2).
    let (pairs, rest) = bytes.as_chunks::<4>();
    let sum = pairs.iter().fold(sum, |sum, pair| sum + u64::from(u32::from_be_bytes(*pair)));
    let (words, last) = rest.as_chunks::<2>();
    let sum = words.iter().fold(sum, |sum, word| sum + u64::from(u16::from_be_bytes(*word)));
    last.iter().fold(sum, |sum, last| sum + (u64::from(*last) << 8))
}

/// Folds a running sum into 16 bits, not complemented.
pub fn fold(sum: u64) -> u16 {
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The checksum of bytes: the complement of their sum.
pub fn internet_checksum(bytes: &[u8]) -> u16 {
    !fold(add(0, bytes))
}

/// The checksum of bytes of which one word has changed, from what it was before (RFC 1624 equation 3).
pub fn replace(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(u64::from(!checksum) + u64::from(!old) + u64::from(new))
}

/// The sum of the pseudo header, not complemented: addresses, protocol and transport bytes
/// (RFC 9293 section 3.1 for IPv4, RFC 8200 section 8.1 for IPv6).
pub fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8, transport_bytes: u32) -> u64 {
    let sum = [source, destination].iter().fold(0, |sum, address| match address {
        IpAddr::V4(address) => add(sum, &address.octets()),
        IpAddr::V6(address) => add(sum, &address.octets()),
    });
    add(add(sum, &transport_bytes.to_be_bytes()), &[0, protocol])
}

/// The TCP or UDP checksum over a segment whose checksum field holds 0.
pub fn transport_checksum(source: IpAddr, destination: IpAddr, protocol: u8, segment: &[u8]) -> u16 {
    let length = u32::try_from(segment.len()).unwrap_or(u32::MAX);
    !fold(add(pseudo_header(source, destination, protocol, length), segment))
}

/// Completes the checksum of a frame as a NIC does for [`VirtioNetHeader::NEEDS_CSUM`]; leaves the frame
/// alone if the flag is not set or the place lies outside of it, and says whether it did anything.
pub fn complete(vnet: &VirtioNetHeader, frame: &mut [u8]) -> bool {
    let start = usize::from(vnet.checksum_start);
    let field = start + usize::from(vnet.checksum_offset);
    if vnet.flags & VirtioNetHeader::NEEDS_CSUM == 0 || field + 2 > frame.len() {
        return false;
    }
    let checksum = !fold(add(0, &frame[start..]));
    frame[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
    true
}
