//! Frames that one interrupt hands over, merged into aggregates as by a NIC with large receive offload.
//!
//! The rules are those of Linux' `tcp_gro_receive` and `inet_gro_receive`, with one exception in which large and
//! generic receive offload differ: a change of acknowledgement, window or timestamps does not end an aggregate,
//! which bears those of its last frame. Only headers are ever written: payload stays where it is and is named
//! by pieces.

use crate::virtio::VirtioNetHeader;
use crate::{MAX_HEADER_BYTES, TcpFlags, checksum};

/// Flows that have an aggregate under way at once. Hardware has a few dozen contexts for this.
pub const CONTEXTS: usize = 32;
/// The most pieces of payload that an aggregate names; what one `writev` takes is far more.
pub const PIECES_MAXIMUM: usize = 64;

/// The largest IP packet, header included.
const PACKET_BYTES_MAXIMUM: usize = 65_535;
const TCP_CHECKSUM_OFFSET: u16 = 16;
/// Two paddings, then the timestamps option: how every common stack begins its options (RFC 7323 appendix A).
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];

/// Where payload lies: bytes `start..end` of the packet that the caller knows by this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The caller's number for the packet.
    pub packet: u32,
    /// First byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Piece {
    /// Bytes of it.
    pub fn bytes(&self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }
}

/// A frame as it arrived.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// What is known of its checksum. Only frames whose checksum is unfinished or verified are merged.
    pub vnet: VirtioNetHeader,
    /// Ethernet, IP and TCP headers; of anything else as much as the caller likes.
    pub header: &'a [u8],
    /// What follows the header.
    pub payload: Piece,
}

/// What goes up to the host: a frame as it arrived, or an aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coalesced<'a> {
    /// What to write before it to the receiving TAP.
    pub vnet: VirtioNetHeader,
    /// Its headers.
    pub header: &'a [u8],
    /// Its payload, in order.
    pub payload: &'a [Piece],
    /// Frames in it.
    pub frames: u16,
}

/// Merges the frames of one interrupt: [`Coalescer::push`] each, then [`Coalescer::flush`].
///
/// Nothing is lost or doubled, and frames of one flow leave in the order in which they came; those of different
/// flows may overtake each other.
#[derive(Debug, Default)]
pub struct Coalescer {
    /// Oldest first.
    open: Vec<Open>,
    /// Closed ones, for their memory.
    spare: Vec<Open>,
}

/// Where the headers of a TCP segment lie, and what merging asks of it.
#[derive(Debug, Clone, Copy)]
struct Segment {
    v6: bool,
    network: usize,
    transport: usize,
    seq: u32,
    flags: TcpFlags,
    /// It may be part of an aggregate.
    mergeable: bool,
}

/// What a frame is to the coalescer.
enum Kind {
    Segment(Segment),
    /// No TCP: passes by.
    Foreign,
    /// Perhaps TCP, of a flow that cannot be told.
    Opaque,
}

/// An aggregate under way.
#[derive(Debug)]
struct Open {
    vnet: VirtioNetHeader,
    /// That of the first frame, with the acknowledgement, window and timestamps of the last.
    header: [u8; MAX_HEADER_BYTES],
    header_bytes: usize,
    first: Segment,
    frames: u16,
    /// Payload of each frame but the last.
    gso_bytes: usize,
    payload_bytes: usize,
    pieces: Vec<Piece>,
    /// All frames have the same IPv4 identification.
    fixed_id: bool,
}

impl Coalescer {
    /// Takes a frame in; `give` gets what has to go up before it, or it itself.
    pub fn push(&mut self, frame: &Received<'_>, give: &mut impl FnMut(&Coalesced<'_>)) {
        let segment = match Kind::of(frame) {
            Kind::Segment(segment) => segment,
            Kind::Foreign => return give(&frame.alone()),
            Kind::Opaque => {
                self.flush(give);
                return give(&frame.alone());
            }
        };
        if let Some(place) = self.open.iter().position(|open| open.is_of_flow(frame.header, &segment)) {
            let open = &mut self.open[place];
            if open.takes(frame, &segment) {
                let ends = frame.payload.bytes() < open.gso_bytes || segment.flags.contains(TcpFlags::PSH);
                open.add(frame);
                if ends {
                    self.close(place, give);
                }
                return;
            }
            self.close(place, give);
        }
        if !segment.mergeable || segment.flags.contains(TcpFlags::PSH) {
            return give(&frame.alone());
        }
        if self.open.len() == CONTEXTS {
            self.close(0, give);
        }
        let pieces = self.spare.pop().map_or_else(Vec::new, |open| open.pieces);
        self.open.push(Open::new(frame, segment, pieces));
    }

    /// Gives everything that is left, the oldest first: the interrupt is over.
    pub fn flush(&mut self, give: &mut impl FnMut(&Coalesced<'_>)) {
        for mut open in self.open.drain(..) {
            give(&open.finish());
            self.spare.push(open);
        }
    }

    fn close(&mut self, place: usize, give: &mut impl FnMut(&Coalesced<'_>)) {
        let mut open = self.open.remove(place);
        give(&open.finish());
        self.spare.push(open);
    }
}

impl Received<'_> {
    /// The frame as it goes up when nothing is merged.
    pub fn alone(&self) -> Coalesced<'_> {
        let payload = std::slice::from_ref(&self.payload);
        Coalesced { vnet: self.vnet, header: self.header, payload, frames: 1 }
    }
}

impl Kind {
    fn of(frame: &Received<'_>) -> Kind {
        let header = frame.header;
        let mut network = 14;
        if word(header, 12) == Some(0x8100) {
            network = 18;
        }
        let Some(ethertype) = word(header, network - 2) else { return Kind::Foreign };
        let Some(ip) = header.get(network..) else { return Kind::Foreign };
        const TCP: u8 = 6;
        let (v6, ip_bytes) = match (ethertype, ip) {
            (0x0800, [first, ..]) if ip.len() >= 20 => {
                if ip[9] != TCP {
                    return Kind::Foreign;
                }
                let fragment = word(ip, 6).unwrap_or(0) & 0x3fff != 0;
                match (first >> 4, first & 0x0f) {
                    (4, words @ 5..) if !fragment => (false, usize::from(words) * 4),
                    _ => return Kind::Opaque,
                }
            }
            (0x86dd, [first, ..]) if ip.len() >= 40 => match (first >> 4, ip[6]) {
                (6, TCP) => (true, 40),
                // UDP, ICMPv6, nothing; any other may be an extension header in front of TCP.
                (6, 17 | 58 | 59) => return Kind::Foreign,
                _ => return Kind::Opaque,
            },
            (0x0800 | 0x86dd, _) => return Kind::Opaque,
            _ => return Kind::Foreign,
        };
        let transport = network + ip_bytes;
        match header.get(transport..) {
            Some(tcp) if tcp.len() >= 20 => {
                let mut segment = Segment {
                    v6,
                    network,
                    transport,
                    seq: long(tcp, 4),
                    flags: TcpFlags(tcp[13]),
                    mergeable: false,
                };
                segment.mergeable = segment.is_mergeable(frame);
                Kind::Segment(segment)
            }
            _ => Kind::Opaque,
        }
    }
}

impl Segment {
    fn is_mergeable(&self, frame: &Received<'_>) -> bool {
        let (header, vnet) = (frame.header, &frame.vnet);
        let (ip, tcp) = (&header[self.network..self.transport], &header[self.transport..]);
        let unfinished = vnet.flags & VirtioNetHeader::NEEDS_CSUM != 0
            && usize::from(vnet.checksum_start) == self.transport
            && vnet.checksum_offset == TCP_CHECKSUM_OFFSET;
        let trusted = unfinished || vnet.flags == VirtioNetHeader::DATA_VALID;
        let packet_bytes = header.len() - self.network + frame.payload.bytes();
        let ip_is_plain = match self.v6 {
            true => usize::from(word(ip, 4).unwrap_or(0)) + 40 == packet_bytes,
            false => {
                usize::from(word(ip, 2).unwrap_or(0)) == packet_bytes
                    && ip.len() == 20
                    && checksum::internet_checksum(ip) == 0
            }
        };
        trusted
            && vnet.gso_type == VirtioNetHeader::GSO_NONE
            && ip_is_plain
            && tcp.len() == usize::from(tcp[12] >> 4) * 4
            && header.len() <= MAX_HEADER_BYTES
            && self.flags.without(TcpFlags::PSH) == TcpFlags::ACK
            && frame.payload.bytes() > 0
    }
}

impl Open {
    fn new(frame: &Received<'_>, segment: Segment, mut pieces: Vec<Piece>) -> Open {
        let mut header = [0; MAX_HEADER_BYTES];
        header[..frame.header.len()].copy_from_slice(frame.header);
        pieces.clear();
        pieces.push(frame.payload);
        Open {
            vnet: frame.vnet,
            header,
            header_bytes: frame.header.len(),
            first: segment,
            frames: 1,
            gso_bytes: frame.payload.bytes(),
            payload_bytes: frame.payload.bytes(),
            pieces,
            fixed_id: false,
        }
    }

    /// Same addresses and ports.
    fn is_of_flow(&self, header: &[u8], segment: &Segment) -> bool {
        let first = &self.first;
        let (start, bytes) = if first.v6 { (8, 32) } else { (12, 8) };
        first.v6 == segment.v6
            && self.header[first.transport..][..4] == header[segment.transport..][..4]
            && self.header[first.network + start..][..bytes] == header[segment.network + start..][..bytes]
    }

    /// Whether the frame, of the same flow, continues this aggregate.
    fn takes(&self, frame: &Received<'_>, segment: &Segment) -> bool {
        let (old, new) = (&self.header[..self.header_bytes], frame.header);
        let bytes = frame.payload.bytes();
        segment.mergeable
            && old.len() == new.len()
            && segment.transport == self.first.transport
            && old[..segment.network] == new[..segment.network]
            && self.network_agrees(new)
            && self.transport_agrees(new)
            && segment.seq == self.first.seq.wrapping_add(self.payload_bytes as u32)
            && bytes <= self.gso_bytes
            && new.len() - segment.network + self.payload_bytes + bytes <= PACKET_BYTES_MAXIMUM
            && (self.pieces.len() < PIECES_MAXIMUM || self.extends(frame.payload))
    }

    /// Type of service with its ECN bits, flow label, hop limit, do not fragment: what the IP header says to
    /// routers is the same, and the identifications are those that segmentation would give.
    fn network_agrees(&self, new: &[u8]) -> bool {
        let (old, new) = (&self.header[self.first.network..], &new[self.first.network..]);
        if self.first.v6 {
            return old[..4] == new[..4] && old[7] == new[7];
        }
        let identification = |ip: &[u8]| u16::from_be_bytes([ip[4], ip[5]]);
        let distance = identification(new).wrapping_sub(identification(old));
        let fixed = distance == 0 && if self.frames == 1 { new[6] & 0x40 != 0 } else { self.fixed_id };
        let is_counted = distance == self.frames && !self.fixed_id;
        old[..2] == new[..2] && old[6..9] == new[6..9] && (fixed || is_counted)
    }

    /// Nothing goes back, and all options but timestamps are the same.
    fn transport_agrees(&self, new: &[u8]) -> bool {
        let (old, new) =
            (&self.header[self.first.transport..self.header_bytes], &new[self.first.transport..]);
        let not_older = |at: usize| long(new, at).wrapping_sub(long(old, at)) as i32 >= 0;
        let options = if has_timestamps(old) && has_timestamps(new) {
            not_older(24) && not_older(28)
        } else {
            old[20..] == new[20..]
        };
        not_older(8) && old[12] == new[12] && old[18..20] == new[18..20] && options
    }

    fn extends(&self, piece: Piece) -> bool {
        self.pieces.last().is_some_and(|last| last.packet == piece.packet && last.end == piece.start)
    }

    fn add(&mut self, frame: &Received<'_>) {
        let (network, transport) = (self.first.network, self.first.transport);
        self.fixed_id = !self.first.v6 && frame.header[network + 4..][..2] == self.header[network + 4..][..2];
        self.frames += 1;
        self.payload_bytes += frame.payload.bytes();
        let extends = self.extends(frame.payload);
        match self.pieces.last_mut() {
            Some(last) if extends => last.end = frame.payload.end,
            _ => self.pieces.push(frame.payload),
        }
        let (old, new) = (&mut self.header[transport..self.header_bytes], &frame.header[transport..]);
        old[8..12].copy_from_slice(&new[8..12]);
        old[13..16].copy_from_slice(&new[13..16]);
        old[20..].copy_from_slice(&new[20..]);
    }

    /// The aggregate; a single frame as it came.
    fn finish(&mut self) -> Coalesced<'_> {
        if self.frames > 1 {
            self.write_lengths();
            self.vnet = VirtioNetHeader {
                flags: VirtioNetHeader::NEEDS_CSUM,
                gso_type: if self.first.v6 { VirtioNetHeader::GSO_TCPV6 } else { VirtioNetHeader::GSO_TCPV4 },
                header_bytes: self.header_bytes as u16,
                gso_bytes: self.gso_bytes as u16,
                checksum_start: self.first.transport as u16,
                checksum_offset: TCP_CHECKSUM_OFFSET,
            };
        }
        Coalesced {
            vnet: self.vnet,
            header: &self.header[..self.header_bytes],
            payload: &self.pieces,
            frames: self.frames,
        }
    }

    /// The lengths and checksums that the whole aggregate has.
    fn write_lengths(&mut self) {
        let (network, tcp) = self.header[..self.header_bytes].split_at_mut(self.first.transport);
        let ip = &mut network[self.first.network..];
        let segment_bytes = tcp.len() + self.payload_bytes;
        let addresses = if self.first.v6 {
            put(ip, 4, segment_bytes as u16);
            &ip[8..40]
        } else {
            put(ip, 2, (ip.len() + segment_bytes) as u16);
            put(ip, 10, 0);
            let sum = checksum::internet_checksum(ip);
            put(ip, 10, sum);
            &ip[12..20]
        };
        let pseudo = checksum::add(0, addresses) + 6 + segment_bytes as u64;
        put(tcp, usize::from(TCP_CHECKSUM_OFFSET), checksum::fold(pseudo));
    }
}

fn has_timestamps(tcp: &[u8]) -> bool {
    tcp.len() == 32 && tcp[20..24] == TIMESTAMPS
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)
}

/// Four bytes that are known to be there.
fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}
