//! Packets of a sample as the host sees them, and which segments of TCP are full.

use crate::foreign::Foreign;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// TCP with payload.
    Data,
    /// TCP that only acknowledges.
    Acknowledgement,
    /// A SYN: a larger MTU leaves it as it is.
    Opening,
    /// Ends, resets, and what is not TCP: this as well.
    Other,
}

/// A packet as the host sees it, which may be an aggregate.
#[derive(Debug, Clone, Copy)]
pub struct Packet {
    /// Sent by this host, not received.
    pub outgoing: bool,
    /// The host's end, and the other; `None` where it is not TCP.
    pub ends: Option<(SocketAddr, SocketAddr)>,
    /// What it is.
    pub kind: Kind,
    /// Its bytes from the IP header on, before it is segmented.
    pub bytes: u32,
    /// Of that, what is behind the TCP header, or behind the last header that was read.
    pub payload_bytes: u32,
    /// Of an aggregate, the payload of its segments but the last.
    pub segment_bytes: Option<u32>,
    /// Of TCP: its first byte, and the first that is expected of the other end.
    pub numbers: (u32, u32),
    /// Of TCP: it has PSH, so that its sender had no more to send than this.
    pub pushed: bool,
    /// When it passed, by any clock.
    pub nanoseconds: u64,
    /// What it is where it is not TCP.
    pub foreign: Option<Foreign>,
}

impl Packet {
    pub(crate) fn header_bytes(&self) -> u32 {
        self.bytes.saturating_sub(self.payload_bytes)
    }

    /// Segments of the largest size in it, that size, and the payload of the last one if it is smaller.
    pub(crate) fn cut(&self) -> (u64, u32, u32) {
        match self.segment_bytes.filter(|size| *size < self.payload_bytes) {
            Some(size) => (u64::from(self.payload_bytes / size), size, self.payload_bytes % size),
            None => (0, self.payload_bytes, self.payload_bytes),
        }
    }

    /// How many packets it is on the wire.
    pub(crate) fn packets(&self) -> u64 {
        let (full, _, end) = self.cut();
        (full + u64::from(end > 0)).max(1)
    }

    /// The payload of its full segments, if it has any on a link of this MTU.
    pub(crate) fn full_bytes(&self, mtu: u32) -> Option<u32> {
        let (full, size, _) = self.cut();
        let is_full = full > 0 || self.bytes >= mtu;
        (self.kind == Kind::Data && is_full).then_some(size)
    }
}

/// Segments that their sender has cut, though the MTU permits larger ones: of a path with a smaller MSS, at a host that
/// sees no aggregates.
///
/// The last segment that a sender has to send has PSH (RFC 9293 section 3.9.1.2), so that one without was cut by a limit.
/// That of two equal ones, one right behind the other, is the MSS.
#[derive(Debug, Default)]
pub(crate) struct Series {
    /// By direction of a connection: where a segment without PSH ends, and its payload.
    open: BTreeMap<((SocketAddr, SocketAddr), bool), (u32, u32)>,
}

impl Series {
    /// The payload of a segment that is full by this sign. Takes packets in their order.
    pub(crate) fn cut(&mut self, packet: &Packet, ends: (SocketAddr, SocketAddr)) -> Option<u32> {
        if packet.kind != Kind::Data {
            return None;
        }
        let is_one = packet.packets() == 1;
        let (way, bytes) = ((ends, packet.outgoing), packet.payload_bytes);
        let before = if is_one && !packet.pushed {
            self.open.insert(way, (packet.numbers.0.wrapping_add(bytes), bytes))
        } else {
            self.open.remove(&way)
        };
        before.filter(|before| is_one && *before == (packet.numbers.0, bytes)).map(|_| bytes)
    }
}
