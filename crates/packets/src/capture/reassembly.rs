//! Segments that came in IP fragments (RFC 791 section 3.2, RFC 8200 section 4.5), by their lengths: payload is not kept.
//!
//! ```text
//!   packet     header ████████│████████│███        the last fragment tells how long all is; the segment is whole when
//!   fragments  first: TCP     middle   last        no byte is missing, in whatever order they came
//! ```
//!
//! A first fragment waits for the others. It goes on alone, with its own bytes, where they cannot come any more: when the next
//! segment of its sender comes, which sends one packet after the other, or when the other end acknowledges some of its bytes,
//! which it can only have of a whole packet.
//!
//! Where the fragments of several packets of a host are mixed, as a NIC with several queues mixes them (only first ones have
//! ports to choose a queue by), the next segment tells nothing: there, only packets that become whole are segments.

use super::segment::LATEST_NANOSECONDS;
use super::{Fragment, FragmentedPacket, Segment};
use crate::TcpFlags;
use crate::view::PROTOCOL_TCP;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::ops::Range;

/// Packets that wait at a time; the oldest goes on as it is.
const MOST_PACKETS: usize = 256;
/// First ones that have gone on alone are remembered, and so many pairs of hosts with mixed fragments.
const MOST_REMEMBERED: usize = 64;
/// An identification comes again: so much later it is that of another packet (RFC 8200 section 4.5 gives a packet 60 seconds).
const LONGEST_NANOSECONDS: i64 = 60_000_000_000;

/// Segments of which fragments are missing so far. `T`: what is known of a first fragment besides.
#[derive(Debug)]
pub struct Reassembly<T> {
    waiting: VecDeque<Waiting<T>>,
    /// Those of them whose first fragment came.
    firsts: usize,
    ready: VecDeque<(Segment, T)>,
    /// The newest whose first fragment went on when the next segment came, and their interfaces.
    alone: VecDeque<(FragmentedPacket, u32)>,
    /// Who sends to whom what comes mixed.
    mixed: VecDeque<(IpAddr, IpAddr)>,
}

/// A packet that is not whole.
#[derive(Debug)]
struct Waiting<T> {
    packet: FragmentedPacket,
    interface: u32,
    since: i64,
    /// The segment, and how many bytes of it came with its first fragment.
    first: Option<(Segment, T, usize)>,
    /// What came, without what touches being one.
    ranges: Vec<Range<usize>>,
    /// The end of the last fragment.
    bytes: Option<usize>,
}

impl<T> Default for Reassembly<T> {
    fn default() -> Reassembly<T> {
        Reassembly {
            waiting: VecDeque::new(),
            firsts: 0,
            ready: VecDeque::new(),
            alone: VecDeque::new(),
            mixed: VecDeque::new(),
        }
    }
}

impl<T> Waiting<T> {
    /// Whether a fragment may be one that is missing. What came already comes again only as a copy of all.
    fn lacks(&self, fragment: &Fragment, interface: u32, now: i64) -> bool {
        let is_new = |range: &Range<usize>| range.end <= fragment.begin || fragment.end <= range.start;
        self.packet == fragment.packet
            && self.interface == interface
            && now.saturating_sub(self.since) <= LONGEST_NANOSECONDS
            && self.ranges.iter().all(is_new)
    }

    fn take(&mut self, fragment: &Fragment, first: Option<(Segment, T)>) {
        self.ranges.push(fragment.begin..fragment.end);
        if fragment.is_last {
            self.bytes = Some(fragment.end);
        }
        if let Some((segment, about)) = first {
            self.first = Some((segment, about, fragment.end));
        }
    }

    /// Nothing overlaps, so that lengths tell.
    fn is_whole(&self) -> bool {
        let bytes = self.ranges.iter().map(ExactSizeIterator::len).sum();
        self.first.is_some() && self.bytes == Some(bytes)
    }

    /// The segment, as far as it is known.
    fn segment(self, now: i64) -> Option<(Segment, T)> {
        let rest = if self.is_whole() { self.bytes } else { None };
        let (mut segment, about, own) = self.first?;
        if let Some(bytes) = rest {
            let more = u32::try_from(bytes.saturating_sub(own)).unwrap_or(0);
            segment.payload_bytes = segment.payload_bytes.saturating_add(more);
            segment.ip_bytes = segment.ip_bytes.saturating_add(more);
            segment.nanoseconds = segment.nanoseconds.max(now.min(LATEST_NANOSECONDS));
            segment.fragments.iter_mut().for_each(|fragments| fragments.are_whole = true);
        }
        Some((segment, about))
    }
}

impl<T> Reassembly<T> {
    /// Takes a fragment that came to an interface at this time. `first`: of a first one the segment that it begins.
    pub fn take(&mut self, fragment: &Fragment, interface: u32, first: Option<(Segment, T)>, now: i64) {
        match &first {
            Some((segment, _)) => self.pass_by(segment, interface, Some(fragment.packet)),
            // What else it may be part of is no segment.
            None if fragment.packet.protocol != PROTOCOL_TCP => return,
            None => self.note_mixed(fragment, interface),
        }
        self.firsts += usize::from(first.is_some());
        let place = self.waiting.iter().position(|all| all.lacks(fragment, interface, now));
        let place = place.unwrap_or_else(|| {
            if self.waiting.len() == MOST_PACKETS {
                self.release(0, now);
            }
            let (packet, ranges) = (fragment.packet, Vec::new());
            self.waiting.push_back(Waiting {
                packet,
                interface,
                since: now,
                first: None,
                ranges,
                bytes: None,
            });
            self.waiting.len() - 1
        });
        self.waiting[place].take(fragment, first);
        if self.waiting[place].is_whole() {
            self.release(place, now);
        }
    }

    /// A first fragment that went on alone was not: the next segment of its sender had come between.
    fn note_mixed(&mut self, fragment: &Fragment, interface: u32) {
        let Some(place) = self.alone.iter().position(|one| *one == (fragment.packet, interface)) else {
            return;
        };
        self.alone.remove(place);
        remember(&mut self.mixed, (fragment.packet.source, fragment.packet.destination));
    }

    fn is_mixed(&self, packet: &FragmentedPacket) -> bool {
        self.mixed.contains(&(packet.source, packet.destination))
    }

    /// Whether first fragments wait, which other segments may release.
    #[inline]
    pub fn waits(&self) -> bool {
        self.firsts > 0
    }

    /// A segment comes to an interface: those that can only come before it do.
    pub fn pass(&mut self, segment: &Segment, interface: u32) {
        self.pass_by(segment, interface, None);
    }

    /// `packet`: that of which the segment is the first fragment. A copy of that waits as well.
    fn pass_by(&mut self, segment: &Segment, interface: u32, packet: Option<FragmentedPacket>) {
        let mut place = 0;
        while self.firsts > 0 && place < self.waiting.len() {
            let is_mixed = self.is_mixed(&self.waiting[place].packet);
            let all = &mut self.waiting[place];
            let is_other = all.interface == interface && packet != Some(all.packet);
            let own = all.first.as_mut().filter(|_| is_other).map(|(first, ..)| first);
            let (is_next, is_answered) = own.map_or((false, false), |first| {
                let same = (first.source, first.destination) == (segment.source, segment.destination);
                let back = (first.destination, first.source) == (segment.source, segment.destination);
                let acknowledges =
                    segment.flags.contains(TcpFlags::ACK) && (segment.ack.wrapping_sub(first.seq) as i32) > 0;
                if back && !acknowledges {
                    // It was there before the segment is whole, or goes on.
                    first.nanoseconds = first.nanoseconds.max(segment.nanoseconds);
                }
                let is_repeat = segment.seq == first.seq && segment.payload_bytes > 0;
                (same && (is_repeat || !is_mixed), back && acknowledges)
            });
            if is_next || is_answered {
                if is_next && !is_mixed {
                    remember(&mut self.alone, (self.waiting[place].packet, interface));
                }
                self.release(place, 0);
            } else {
                place += 1;
            }
        }
    }

    /// Nothing follows.
    pub fn finish(&mut self) {
        while !self.waiting.is_empty() {
            self.release(0, 0);
        }
    }

    /// The next segment that waits no more.
    #[inline]
    pub fn next_ready(&mut self) -> Option<(Segment, T)> {
        self.ready.pop_front()
    }

    fn release(&mut self, place: usize, now: i64) {
        let Some(all) = self.waiting.remove(place) else { return };
        self.firsts -= usize::from(all.first.is_some());
        if self.is_mixed(&all.packet) && !all.is_whole() {
            return;
        }
        self.ready.extend(all.segment(now));
    }
}

/// Adds a newest one, unless it is there.
fn remember<K: PartialEq>(all: &mut VecDeque<K>, one: K) {
    if all.contains(&one) {
        return;
    }
    if all.len() == MOST_REMEMBERED {
        all.pop_front();
    }
    all.push_back(one);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Fragments, SackBlocks};
    use proptest::prelude::*;
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};

    const MS: i64 = 1_000_000;

    fn packet(identification: u32) -> FragmentedPacket {
        let address = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        FragmentedPacket { source: address(1), destination: address(2), protocol: 6, identification }
    }

    /// Of one end's stream, from a place on, so many bytes in one packet; `from`: 0 the sender of all that is cut.
    fn segment(from: usize, seq: u32, ack: u32, payload_bytes: u32, nanoseconds: i64) -> Segment {
        let ends: [SocketAddr; 2] = [([10, 0, 0, 1], 40_000).into(), ([10, 0, 0, 2], 80).into()];
        Segment {
            nanoseconds,
            number: 1,
            source: ends[from],
            destination: ends[1 - from],
            seq,
            ack,
            flags: TcpFlags::ACK,
            window: 500,
            payload_bytes,
            ip_bytes: payload_bytes + 40,
            timestamps: None,
            sack: SackBlocks::default(),
            syn: None,
            multipath: false,
            fast_open: false,
            identification: None,
            hops: 64,
            ecn: 0,
            checksum_is_right: None,
            option_bytes: 0,
            options_are_cut: false,
            fragments: None,
        }
    }

    /// The fragments of a segment of so many bytes in all, each of at most `most`, in steps of eight.
    fn cut(identification: u32, bytes: usize, most: usize) -> Vec<Fragment> {
        let most = most / 8 * 8;
        let begins = (0..bytes).step_by(most);
        begins
            .map(|begin| Fragment {
                packet: packet(identification),
                begin,
                end: (begin + most).min(bytes),
                is_last: begin + most >= bytes,
            })
            .collect()
    }

    /// The segment that the first fragment begins.
    fn first(fragment: &Fragment, seq: u32, at: i64) -> Segment {
        let bytes = fragment.end as u32;
        let fragments = Some(Fragments { first_bytes: bytes as u16 + 20, are_whole: false });
        Segment { fragments, ..segment(0, seq, 0, bytes - 20, at) }
    }

    fn give(all: &mut Reassembly<u32>, fragment: &Fragment, seq: u32, at: i64) {
        let first = (fragment.begin == 0).then(|| (first(fragment, seq, at), fragment.packet.identification));
        all.take(fragment, 0, first, at);
    }

    fn ready(all: &mut Reassembly<u32>) -> Vec<(u32, u32, bool)> {
        let next = || all.next_ready();
        std::iter::from_fn(next)
            .map(|(segment, _)| {
                let whole = segment.fragments.is_some_and(|fragments| fragments.are_whole);
                (segment.seq, segment.payload_bytes, whole)
            })
            .collect()
    }

    #[test]
    fn a_first_fragment_goes_on_alone_when_the_others_cannot_come_any_more() {
        let pieces = cut(7, 1480, 600);
        let mut all = Reassembly::default();
        give(&mut all, &pieces[0], 1000, MS);
        // What the other end says of what came before changes nothing, but for the order of the file.
        all.pass(&segment(1, 5, 1000, 0, 2 * MS), 0);
        all.pass(&segment(0, 1000, 0, 100, 2 * MS), 9);
        assert!(all.waits() && ready(&mut all).is_empty());
        all.pass(&segment(1, 5, 2460, 0, 3 * MS), 0);
        let (alone, _) = all.next_ready().expect("it is acknowledged");
        assert_eq!((alone.payload_bytes, alone.nanoseconds), (580, 2 * MS));
        assert!(!all.waits());
        // The next segment of its sender comes; then that, at the end.
        give(&mut all, &pieces[0], 1000, 4 * MS);
        give(&mut all, &cut(8, 1480, 600)[0], 2460, 5 * MS);
        assert_eq!(ready(&mut all), [(1000, 580, false)]);
        all.finish();
        assert_eq!(ready(&mut all), [(2460, 580, false)]);
    }

    #[test]
    fn a_copy_of_all_fragments_is_a_copy_of_the_segment() {
        let pieces = cut(7, 1480, 800);
        for order in [[0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 1]] {
            let mut all = Reassembly::default();
            order.iter().for_each(|piece| give(&mut all, &pieces[*piece], 1000, MS));
            assert_eq!(ready(&mut all), [(1000, 1460, true); 2], "{order:?}");
        }
    }

    #[test]
    fn a_number_that_comes_again_much_later_is_that_of_another_packet() {
        let pieces = cut(7, 1480, 800);
        let mut all = Reassembly::default();
        give(&mut all, &pieces[0], 1000, MS);
        give(&mut all, &pieces[1], 1000, 2 * MS + LONGEST_NANOSECONDS);
        assert!(ready(&mut all).is_empty());
    }

    proptest! {
        /// However many packets are mixed, in whatever order: once that is known, each segment is whole, and comes once.
        #[test]
        fn what_is_mixed_is_whole_again(
            packets in proptest::collection::vec((21usize..9000, 64usize..3000), 1..40), seed in any::<u64>()
        ) {
            let mut all = Reassembly::default();
            let known = [cut(1000, 1480, 800), cut(1001, 1480, 800)];
            for (packet, piece) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
                give(&mut all, &known[packet][piece], 1, MS);
            }
            ready(&mut all);
            let (mut pieces, mut sizes, mut seq) = (Vec::new(), Vec::new(), 2u32);
            for (number, (bytes, most)) in packets.into_iter().enumerate() {
                pieces.extend(cut(number as u32, bytes, most).into_iter().map(|piece| (piece, seq)));
                sizes.push((seq, bytes as u32 - 20, true));
                seq = seq.wrapping_add(bytes as u32 - 20);
            }
            let turn = |(place, _): &(usize, _)| (*place as u64 + 1).wrapping_mul(seed | 1).rotate_left(20);
            let mut pieces: Vec<_> = pieces.into_iter().enumerate().collect();
            pieces.sort_by_key(turn);
            pieces.iter().for_each(|(_, (piece, seq))| give(&mut all, piece, *seq, MS));
            let mut whole = ready(&mut all);
            whole.sort_unstable();
            prop_assert_eq!(whole, sizes);
        }

        /// However packets are cut, and in whatever order the fragments of each come: each segment is whole, and comes once.
        #[test]
        fn what_is_cut_is_whole_again(
            packets in proptest::collection::vec((21usize..9000, 64usize..3000), 1..40),
            seed in any::<u64>(),
        ) {
            let (mut all, mut seq, mut sizes) = (Reassembly::default(), 1u32, Vec::new());
            for (number, (bytes, most)) in packets.into_iter().enumerate() {
                let mut pieces = cut(number as u32, bytes, most);
                let turns = (seed.rotate_left(number as u32) % pieces.len() as u64) as usize;
                pieces.rotate_left(turns);
                pieces.iter().for_each(|piece| give(&mut all, piece, seq, MS));
                sizes.push((seq, bytes as u32 - 20, true));
                seq = seq.wrapping_add(bytes as u32 - 20);
            }
            prop_assert_eq!(ready(&mut all), sizes);
            prop_assert!(!all.waits());
        }
    }
}
