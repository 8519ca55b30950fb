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

/// Which full segments a connection has, from which packet of a window on.
///
/// A path tells its MTU after the first segments (RFC 1191, RFC 8899), or changes: all that come later are smaller. One
/// that is larger than those before is proof by itself; smaller ones are a few in a row, between which no other of the
/// connection is as large as before.
#[derive(Debug, Default)]
pub(crate) struct Sizing {
    series: Series,
    states: BTreeMap<(SocketAddr, SocketAddr), State>,
}

#[derive(Debug, Default)]
struct State {
    size: u32,
    /// Of segments before the first of which the size is known.
    largest: u32,
    /// Smaller ones in a row: from which packet on, their direction and size, and how many.
    smaller: Option<(usize, bool, u32, u64)>,
}

impl Sizing {
    const IN_A_ROW: u64 = 8;

    /// Takes packets in their order, each with its place. `known`: the size before the window. From which place on
    /// another size holds, and which. No place: from the beginning, since none was known and none was larger.
    pub(crate) fn change(
        &mut self,
        place: usize,
        packet: &Packet,
        known: Option<u32>,
        mtu: u32,
    ) -> Option<(Option<usize>, u32)> {
        let ends = packet.ends?;
        let sign = self.series.cut(packet, ends).or_else(|| packet.full_bytes(mtu));
        let state =
            self.states.entry(ends).or_insert_with(|| State { size: known.unwrap_or(0), ..State::default() });
        let (_, part, _) = packet.cut();
        let is_proof = packet.kind == Kind::Data && state.size > 0 && part > state.size;
        let Some(size) = sign.or_else(|| is_proof.then_some(part)) else {
            state.largest = state.largest.max(part);
            return None;
        };
        let since = match size.cmp(&state.size) {
            std::cmp::Ordering::Equal => {
                state.smaller = None;
                return None;
            }
            std::cmp::Ordering::Greater if state.size == 0 && state.largest <= size => None,
            std::cmp::Ordering::Greater => Some(place),
            std::cmp::Ordering::Less => {
                let same =
                    state.smaller.filter(|(_, way, other, _)| (*way, *other) == (packet.outgoing, size));
                let (since, _, _, before) = same.unwrap_or((place, packet.outgoing, size, 0));
                let count = before + packet.packets();
                state.smaller = Some((since, packet.outgoing, size, count));
                if count < Self::IN_A_ROW {
                    return None;
                }
                Some(since)
            }
        };
        *state = State { size, ..State::default() };
        Some((since, size))
    }
}
