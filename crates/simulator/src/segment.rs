//! TCP segments under way, and where they are kept.

use framegauge_fabric::HostIndex;

/// What a segment's flags say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flags(u8);

impl Flags {
    pub(crate) const SYN: Flags = Flags(1);
    pub(crate) const FIN: Flags = Flags(2);
    pub(crate) const ECE: Flags = Flags(4);
    pub(crate) const CWR: Flags = Flags(8);
    pub(crate) const ACK: Flags = Flags(16);
    pub(crate) const PSH: Flags = Flags(32);
    /// It is no segment, but a router's error about one.
    const TOO_BIG: Flags = Flags(64);

    pub(crate) const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    pub(crate) const fn has(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }
}

/// Blocks of a SACK option, the one received last first (RFC 2018); a duplicate before them (RFC 2883).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Blocks {
    count: u8,
    /// Beginning, relative to the acknowledgement number, and length.
    relative: [(i32, u32); Blocks::MOST],
}

impl Blocks {
    /// What has room beside timestamps is one less.
    pub(crate) const MOST: usize = 4;

    pub(crate) fn push(&mut self, acknowledged: u64, (begin, end): (u64, u64)) {
        if let Some(slot) = self.relative.get_mut(usize::from(self.count)) {
            *slot = (begin.wrapping_sub(acknowledged) as i32, (end - begin) as u32);
            self.count += 1;
        }
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// First and past-the-last sequence number of each.
    pub(crate) fn ranges(&self, acknowledged: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.relative[..self.len()].iter().map(move |(offset, length)| {
            let begin = acknowledged.wrapping_add_signed(i64::from(*offset));
            (begin, begin + u64::from(*length))
        })
    }
}

/// A segment. Sequence numbers begin at 0 with the SYN and have 64 bits; the wire's are their low 32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Segment {
    /// The endpoint that sent it.
    pub(crate) from: u32,
    /// The endpoint that it is for.
    pub(crate) to: u32,
    pub(crate) sequence: u64,
    pub(crate) acknowledged: u64,
    /// Payload; SYN and FIN not counted.
    pub(crate) bytes: u32,
    /// Receive window, unscaled.
    pub(crate) window_bytes: u32,
    /// The timestamps option, in milliseconds: the sender's clock, and the one that it answers.
    pub(crate) stamp: u32,
    pub(crate) echo: u32,
    pub(crate) flags: Flags,
    /// Of its IP header: as many as its endpoint has sent, as Linux counts for each socket.
    pub(crate) identification: u16,
    /// Whether its IP header says that it may be marked, and whether it was (RFC 3168).
    pub(crate) is_ecn_capable: bool,
    pub(crate) is_marked: bool,
    pub(crate) blocks: Blocks,
}

/// What a router tells of a segment that was too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// The end of the router from which it comes.
    pub by: HostIndex,
    /// What is not too large, in bytes.
    pub mtu: u32,
    /// Payload of the segment.
    pub payload_bytes: u32,
}

impl Segment {
    /// A router's ICMP error (RFC 1191, RFC 8201) on its way to the endpoint that sent a segment: of so many bytes, from that
    /// end of the router, with the MTU that the segment was too large for.
    pub(crate) fn too_big(about: &Segment, reporter: HostIndex, message_bytes: u32, mtu: u32) -> Segment {
        Segment {
            from: about.to,
            to: about.from,
            sequence: about.sequence,
            acknowledged: about.bytes.into(),
            bytes: message_bytes,
            window_bytes: mtu,
            flags: Flags::TOO_BIG,
            identification: reporter.0,
            ..Segment::default()
        }
    }

    /// The MTU in a router's error; none if it is a segment.
    #[inline]
    pub(crate) fn reported_mtu(&self) -> Option<u32> {
        self.flags.has(Flags::TOO_BIG).then_some(self.window_bytes)
    }

    /// What a router's error says; none if it is a segment.
    pub(crate) fn report(&self) -> Option<Report> {
        self.flags.has(Flags::TOO_BIG).then_some(Report {
            by: HostIndex(self.identification),
            mtu: self.window_bytes,
            payload_bytes: self.acknowledged as u32,
        })
    }

    /// The sequence number after it.
    pub(crate) fn end(&self) -> u64 {
        let controls = u64::from(self.flags.has(Flags::SYN)) + u64::from(self.flags.has(Flags::FIN));
        self.sequence + u64::from(self.bytes) + controls
    }

    /// Bytes of its options: timestamps with padding 12, SACK 4 and 8 a block without padding saved by them; on a SYN 20.
    pub(crate) fn option_bytes(&self, timestamps: bool) -> u32 {
        if self.flags.has(Flags::SYN) {
            return 20;
        }
        let blocks = self.blocks.len() as u32;
        let sack = if blocks > 0 { 4 + 8 * blocks } else { 0 };
        sack + if timestamps { 12 } else { 0 }
    }
}

/// Segments under way, by a number that the fabric carries. Freed places are used again: no allocation per segment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slab {
    places: Vec<Segment>,
    free: Vec<u32>,
}

impl Slab {
    pub(crate) fn insert(&mut self, segment: Segment) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = segment;
                place
            }
            None => {
                self.places.push(segment);
                (self.places.len() - 1) as u32
            }
        }
    }

    pub(crate) fn get_mut(&mut self, place: u32) -> &mut Segment {
        &mut self.places[place as usize]
    }

    pub(crate) fn get(&self, place: u32) -> &Segment {
        &self.places[place as usize]
    }

    pub(crate) fn remove(&mut self, place: u32) -> Segment {
        self.free.push(place);
        self.places[place as usize]
    }

    /// How many are under way.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_their_ranges_on_both_sides_of_the_acknowledgement() {
        let mut blocks = Blocks::default();
        let acknowledged = 5_000_000_000;
        let ranges = [(4_999_998_552, 5_000_000_000), (5_000_001_448, 5_000_004_344)];
        ranges.iter().for_each(|range| blocks.push(acknowledged, *range));
        assert_eq!(blocks.ranges(acknowledged).collect::<Vec<_>>(), ranges);
    }

    #[test]
    fn freed_places_are_used_again() {
        let mut slab = Slab::default();
        let [first, _] = [1, 2].map(|sequence| slab.insert(Segment { sequence, ..Segment::default() }));
        assert_eq!(slab.remove(first).sequence, 1);
        assert_eq!(slab.insert(Segment { sequence: 3, ..Segment::default() }), first);
        assert_eq!((slab.len(), slab.places.len()), (2, 2));
    }
}
