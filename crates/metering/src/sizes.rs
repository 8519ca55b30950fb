//! Sizes of packets from a sample of headers: full segments, others, acknowledgements, and messages.
//!
//! A sample is made of windows, in each of which no packet of an interface is missing. TCP cuts what a program writes into
//! full segments and an end that is not full, so that the order of packets in a window tells the messages:
//!
//! ```text
//!   packets   | full | full | full | end |  | end |  | full | full |     one direction of a connection
//!   messages  |      3 full, end         |  | end |  |    2 full   |     the last was cut off by the window
//! ```
//!
//! What a full segment is depends on the connection: one as large as the MTU permits, as those of which the host's
//! aggregates are made, or as those into which a sender cuts what it has (`packet::Series`). Connections are grouped by it, since acknowledgements belong to the data of the other direction.

use crate::answers::{Answer, Data, Left, Window};
use crate::foreign::Strangers;
use crate::packet::Sizing;
pub use crate::packet::{Kind, Packet};
pub use crate::total::Total;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Connections whose full segments are remembered, and whose messages are counted one by one.
const MOST_CONNECTIONS: usize = 20_000;
/// Different messages of one direction; of more it is not known what ended them.
const MOST_MESSAGES: usize = 1_024;
/// Sizes of full segments that are told apart, which other hosts choose by their MSS; connections with others have none.
const MOST_SIZES: usize = 16;

/// One direction of the connections whose full segments are of one size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Way {
    /// Full segments.
    pub full: u64,
    /// Segments with less payload.
    pub small: u64,
    /// Their payload.
    pub small_bytes: u64,
    /// Packets that only acknowledge.
    pub acknowledgements: u64,
    /// Of these, those of which it is known what they acknowledge.
    pub known: u64,
    /// For each larger MTU, in their order, what is left of those, before it is settled.
    pub left: Vec<Left>,
    /// Messages by the number of their full segments and the payload of their end.
    pub messages: BTreeMap<(u32, u32), u64>,
    /// Messages that are not there for want of room.
    pub more_messages: u64,
}

impl Way {
    fn end_message(&mut self, full: u32, end: u32) {
        let room = self.messages.len() < MOST_MESSAGES;
        match self.messages.entry((full, end)) {
            Entry::Occupied(mut known) => *known.get_mut() += 1,
            Entry::Vacant(new) if room => {
                new.insert(1);
            }
            Entry::Vacant(_) => self.more_messages += 1,
        }
    }
}

/// One direction of a connection in the sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carried {
    /// Segments with payload.
    pub segments: u64,
    /// Messages.
    pub messages: u64,
    /// For each larger MTU, in their order: the segments that the same messages would be.
    pub after: Vec<u64>,
    /// For each larger MTU: messages that would be one segment, and are more now.
    pub between: Vec<u64>,
}

/// A connection in the sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// The host's end.
    pub local: SocketAddr,
    /// The other.
    pub remote: SocketAddr,
    /// The payload of a full segment now; 0: it had none.
    pub full_bytes: u32,
    /// What it received, and what it sent.
    pub ways: [Carried; 2],
}

impl Connection {
    fn segments(&self) -> u64 {
        self.ways.iter().map(|way| way.segments).sum()
    }
}

/// A sample of one interface.
#[derive(Debug)]
pub struct Sizes {
    mtu: u32,
    targets: Vec<u32>,
    totals: [Total; 2],
    /// By the payload of full segments; 0: connections without one.
    ways: BTreeMap<u32, [Way; 2]>,
    sizes: BTreeSet<u32>,
    full: BTreeMap<(SocketAddr, SocketAddr), u32>,
    connections: BTreeMap<(SocketAddr, SocketAddr), Connection>,
    strangers: Strangers,
}

impl Sizes {
    /// An empty one of an interface with this MTU; `targets` are larger ones.
    pub fn new(mtu: u32, targets: &[u32]) -> Self {
        Self {
            mtu,
            targets: targets.to_vec(),
            totals: Default::default(),
            ways: BTreeMap::new(),
            sizes: BTreeSet::new(),
            full: BTreeMap::new(),
            connections: BTreeMap::new(),
            strangers: Strangers::default(),
        }
    }

    /// Takes in the packets of a window, in their order; `until`: when it ended, by the clock of packets.
    pub fn window(&mut self, packets: &[Packet], until: u64) {
        let mut changes = self.changes(packets);
        let mut open = BTreeMap::new();
        let mut passed = Passed::new();
        for (place, packet) in packets.iter().enumerate() {
            self.count(packet);
            if let (Some(ends), Some(size)) = (packet.ends, changes.remove(&place)) {
                self.change(ends, size, packet.nanoseconds, &mut open, &mut passed);
            }
            match (packet.ends, packet.kind) {
                (Some(ends), Kind::Opening) => {
                    for outgoing in [false, true] {
                        let new = Direction { begins: true, ..Direction::default() };
                        if let Some(before) = passed.insert((ends, outgoing), new) {
                            self.answer(ends, outgoing, &before, packet.nanoseconds);
                        }
                    }
                }
                (Some(ends), Kind::Data | Kind::Acknowledgement) => {
                    self.take(packet, ends, &mut open);
                    self.keep(packet, ends, &mut passed);
                }
                _ => {}
            }
        }
        for ((ends, outgoing), direction) in passed {
            self.answer(ends, outgoing, &direction, until);
        }
        for ((ends, outgoing), (full, header_bytes)) in open {
            self.end_message(ends, outgoing, full, 0, header_bytes);
        }
    }

    /// Before which packets of a window connections come to have full segments of another size. What they have from its
    /// beginning is taken in at once.
    fn changes(&mut self, packets: &[Packet]) -> BTreeMap<usize, u32> {
        let (mut sizing, mut changes) = (Sizing::default(), BTreeMap::new());
        for (place, packet) in packets.iter().enumerate() {
            let Some(ends) = packet.ends else { continue };
            let known = self.full.get(&ends).copied();
            let Some((since, size)) = sizing.change(place, packet, known, self.mtu) else { continue };
            let is_room = known.is_some() || self.full.len() < MOST_CONNECTIONS;
            match since {
                None if is_room && self.knows(size) => _ = self.full.insert(ends, size),
                Some(since) if is_room => {
                    self.full.entry(ends).or_insert(0);
                    changes.insert(since, size);
                }
                _ => {}
            }
        }
        changes
    }

    /// Ends what is under way of a connection, which has full segments of this size from now on.
    fn change(
        &mut self,
        ends: (SocketAddr, SocketAddr),
        size: u32,
        now: u64,
        open: &mut Open,
        passed: &mut Passed,
    ) {
        if !self.full.contains_key(&ends) {
            return; // there was no room for it
        }
        for outgoing in [false, true] {
            if let Some((full, header_bytes)) = open.remove(&(ends, outgoing)) {
                self.end_message(ends, outgoing, full, 0, header_bytes);
            }
            if let Some(direction) = passed.remove(&(ends, outgoing)) {
                self.answer(ends, outgoing, &direction, now);
            }
        }
        let size = if self.knows(size) { size } else { 0 };
        self.full.insert(ends, size);
    }

    /// Whether full segments of this size are told apart; a new size is, while there is room.
    fn knows(&mut self, size: u32) -> bool {
        let room = self.sizes.len() < MOST_SIZES;
        self.sizes.contains(&size) || (room && self.sizes.insert(size))
    }

    fn count(&mut self, packet: &Packet) {
        let total = &mut self.totals[usize::from(packet.outgoing)];
        let (packets, header_bytes) = (packet.packets(), u64::from(packet.header_bytes()));
        total.aggregates += 1;
        total.aggregate_bytes += u64::from(packet.bytes);
        total.packets += packets;
        total.bytes += u64::from(packet.payload_bytes) + header_bytes * packets;
        if packet.ends.is_some() {
            total.tcp_packets += packets;
            total.tcp_header_bytes += header_bytes * packets;
        }
        total.others += if matches!(packet.kind, Kind::Opening | Kind::Other) { packets } else { 0 };
        if let Some(foreign) = packet.foreign {
            let (full, size, end) = packet.cut();
            let header_bytes = packet.header_bytes();
            for (count, payload) in [(full, size), (packets - full, end)] {
                if count > 0 {
                    let length = payload + header_bytes;
                    self.strangers.add(foreign, packet.outgoing, count, length, self.mtu);
                }
            }
        }
    }

    fn take(&mut self, packet: &Packet, ends: (SocketAddr, SocketAddr), open: &mut Open) {
        let (class, outgoing) = (self.full.get(&ends).copied().unwrap_or(0), packet.outgoing);
        let way = &mut self.ways.entry(class).or_default()[usize::from(outgoing)];
        if packet.kind == Kind::Acknowledgement {
            way.acknowledgements += 1;
            return;
        }
        let (mut full, size, mut end) = packet.cut();
        if size != class && full > 0 {
            // Segments of another size than usual are ends, one each.
            way.small += full;
            way.small_bytes += full * u64::from(size);
            full = 0;
        } else if size == class && full == 0 {
            (full, end) = (1, 0);
        }
        way.full += full;
        way.small += u64::from(end > 0);
        way.small_bytes += u64::from(end);
        let run = open.entry((ends, outgoing)).or_insert((0, packet.header_bytes()));
        run.0 = run.0.saturating_add(u32::try_from(full).unwrap_or(u32::MAX));
        if full == 0 || end > 0 {
            let (full, header_bytes) = open.remove(&(ends, outgoing)).unwrap_or_default();
            self.end_message(ends, outgoing, full, end, header_bytes);
        }
    }

    /// Keeps a packet with its direction, and as an answer to the other one.
    fn keep(&self, packet: &Packet, ends: (SocketAddr, SocketAddr), passed: &mut Passed) {
        let class = self.full.get(&ends).copied().unwrap_or(0);
        let (alone, outgoing) = (packet.kind == Kind::Acknowledgement, packet.outgoing);
        let (full, size, end) = packet.cut();
        let is_full = size == class && (full == 0 || end == 0);
        let answer = Answer {
            acknowledged: packet.numbers.1,
            alone,
            small: !alone && full == 0 && !is_full,
            nanoseconds: packet.nanoseconds,
        };
        passed.entry((ends, !outgoing)).or_default().answers.push(answer);
        if !alone {
            let way = passed.entry((ends, outgoing)).or_default();
            way.header_bytes = way.header_bytes.max(packet.header_bytes());
            way.data.push(Data { sequence: packet.numbers.0, bytes: packet.payload_bytes, ends: !is_full });
        }
    }

    /// What is left of the acknowledgements of one direction, which the other one sends.
    fn answer(&mut self, ends: (SocketAddr, SocketAddr), outgoing: bool, direction: &Direction, until: u64) {
        let window = Window::new(&direction.data, &direction.answers, until, direction.begins);
        let (class, targets) = (self.full.get(&ends).copied().unwrap_or(0), self.targets.clone());
        let way = &mut self.ways.entry(class).or_default()[usize::from(!outgoing)];
        way.known += window.came();
        way.left.resize(targets.len(), Left::default());
        for (sum, target) in way.left.iter_mut().zip(targets) {
            sum.add(&window.left(class, target.saturating_sub(direction.header_bytes)));
        }
    }

    fn end_message(
        &mut self,
        ends: (SocketAddr, SocketAddr),
        outgoing: bool,
        full: u32,
        end: u32,
        header_bytes: u32,
    ) {
        let class = self.full.get(&ends).copied().unwrap_or(0);
        self.ways.entry(class).or_default()[usize::from(outgoing)].end_message(full, end);
        let room = self.connections.len() < MOST_CONNECTIONS || self.connections.contains_key(&ends);
        if !room {
            return;
        }
        let ((local, remote), targets) = (ends, self.targets.len());
        let connection = self.connections.entry(ends).or_insert_with(|| {
            let none =
                || Carried { after: vec![0; targets], between: vec![0; targets], ..Carried::default() };
            Connection { local, remote, full_bytes: class, ways: [none(), none()] }
        });
        connection.full_bytes = class;
        let carried = &mut connection.ways[usize::from(outgoing)];
        let segments = u64::from(full) + u64::from(end > 0);
        carried.segments += segments;
        carried.messages += 1;
        let bytes = u64::from(full) * u64::from(class) + u64::from(end);
        for (place, target) in self.targets.iter().enumerate() {
            // Headers stay as they are, and without a larger MTU everything does.
            let larger = u64::from(target.saturating_sub(header_bytes).max(class));
            // Of a message that the window has cut off, what it would fill is sure.
            let after = match (full, end) {
                (0, _) => segments,
                (_, 0) => bytes / larger,
                _ => bytes.div_ceil(larger),
            };
            carried.after[place] += after;
            carried.between[place] += u64::from(full > 0 && end > 0 && after == 1);
        }
    }

    /// All packets: those received, and those sent.
    pub fn totals(&self) -> [Total; 2] {
        self.totals
    }

    /// What is not TCP that can be read.
    pub fn strangers(&self) -> &Strangers {
        &self.strangers
    }

    /// The directions received and sent, by the payload of full segments; 0: connections that had none.
    pub fn ways(&self) -> &BTreeMap<u32, [Way; 2]> {
        &self.ways
    }

    /// Connections, those with most segments first.
    pub fn connections(&self) -> Vec<&Connection> {
        let mut connections: Vec<&Connection> = self.connections.values().collect();
        connections.sort_by_key(|connection| std::cmp::Reverse(connection.segments()));
        connections
    }

    /// Both ends of connections that sent messages between two MTUs.
    pub fn between(&self) -> impl Iterator<Item = (SocketAddr, SocketAddr)> {
        let connections = self
            .connections
            .values()
            .filter(|connection| connection.ways[1].between.iter().any(|count| *count > 0));
        connections.map(|connection| (connection.local, connection.remote))
    }
}

/// Messages that have not ended: their full segments so far, and the headers of the first.
type Open = BTreeMap<((SocketAddr, SocketAddr), bool), (u32, u32)>;

/// One direction of a connection in a window.
#[derive(Debug, Default)]
struct Direction {
    /// The largest of its headers.
    header_bytes: u32,
    data: Vec<Data>,
    /// The packets of the other one.
    answers: Vec<Answer>,
    /// Its connection was opened in the window.
    begins: bool,
}

type Passed = BTreeMap<((SocketAddr, SocketAddr), bool), Direction>;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: u32 = 52;
    const FULL: u32 = 1448;

    fn ends(number: u16) -> (SocketAddr, SocketAddr) {
        let end = |text: &str, port| SocketAddr::new(text.parse().expect("an address"), port);
        (end("192.0.2.1", 5201), end("192.0.2.2", 40_000 + number))
    }

    fn packet(number: u16, outgoing: bool, payload_bytes: u32, segment_bytes: Option<u32>) -> Packet {
        let kind = if payload_bytes > 0 { Kind::Data } else { Kind::Acknowledgement };
        let bytes = payload_bytes + HEADER;
        Packet {
            outgoing,
            ends: Some(ends(number)),
            kind,
            bytes,
            payload_bytes,
            segment_bytes,
            numbers: (0, 0),
            pushed: true,
            nanoseconds: 0,
            foreign: None,
        }
    }

    /// Messages as packets on the wire, or with up to `most` segments in an aggregate.
    fn cut(number: u16, messages: &[u32], most: u32) -> Vec<Packet> {
        let mut packets = Vec::new();
        for size in messages {
            let mut left = *size;
            while left > 0 {
                let part = left.min(most * FULL);
                packets.push(packet(number, true, part, (part > FULL).then_some(FULL)));
                left -= part;
            }
        }
        packets
    }

    fn sampled(packets: &[Packet]) -> Sizes {
        let mut sizes = Sizes::new(1500, &[4200, 9000]);
        sizes.window(packets, packets.last().map_or(0, |last| last.nanoseconds));
        sizes
    }

    #[test]
    fn messages_are_full_segments_and_an_end() {
        let sizes = sampled(&cut(1, &[3 * FULL + 100, 50, 2 * FULL, FULL + 1], 1));
        let way = &sizes.ways()[&FULL][1];
        // Whole segments to the byte have no end, and run into the next message.
        assert_eq!(way.messages, BTreeMap::from([((3, 100), 1), ((0, 50), 1), ((3, 1), 1)]));
        assert_eq!((way.full, way.small, way.small_bytes), (6, 3, 151));
        assert_eq!(sizes.totals()[1].packets, 9);
        assert_eq!(sizes.totals()[1].tcp_header_bytes, 9 * u64::from(HEADER));
    }

    #[test]
    fn acknowledgements_belong_to_the_connections_whose_data_they_acknowledge() {
        let mut packets = cut(1, &[10 * FULL + 1], 1);
        packets.push(packet(1, false, 0, None));
        packets.push(packet(2, false, 0, None));
        packets.push(packet(2, true, 20, None));
        let sizes = sampled(&packets);
        assert_eq!(sizes.ways()[&FULL][0].acknowledgements, 1);
        assert_eq!((sizes.ways()[&0][0].acknowledgements, sizes.ways()[&0][1].small), (1, 1));
    }

    /// Blocks of 8 KiB, each acknowledged at the second, the fourth and the last segment, and asked for after 16 ms; as
    /// the host sees them whose data is answered, with aggregates, and as the other one does.
    #[test]
    fn acknowledgements_are_known_by_their_numbers_at_either_host() {
        for (sends, most) in [(true, 1), (true, 6), (false, 1)] {
            let (mut packets, mut requested, mut sent) = (Vec::new(), 0, 0);
            for block in 0..100 {
                let mut add = |packet: Packet, numbers| {
                    let (outgoing, nanoseconds) = (packet.outgoing == sends, block * 16_000_000);
                    packets.push(Packet { numbers, nanoseconds, outgoing, ..packet });
                };
                add(packet(1, false, 48, None), (requested, sent));
                requested += 48;
                for part in cut(1, &[8240], most) {
                    add(part, (sent, requested));
                    sent += part.payload_bytes;
                }
                for bytes in [2 * FULL, 4 * FULL, 8240] {
                    add(packet(1, false, 0, None), (requested, sent - 8240 + bytes));
                }
            }
            let sizes = sampled(&packets);
            let [answers, data] = [!sends, sends].map(|outgoing| &sizes.ways()[&FULL][usize::from(outgoing)]);
            assert_eq!((answers.acknowledgements, answers.known), (300, 300));
            // Of 4148 bytes there are two segments, which the last acknowledgement answers.
            let left: Vec<_> = answers.left.iter().map(|bounds| bounds.settled()).collect();
            let left: Vec<_> = left.iter().map(|bounds| (bounds.likely, bounds.least, bounds.most)).collect();
            assert_eq!(left, [(100, 100, 200), (0, 0, 100)]);
            assert_eq!((data.acknowledgements, data.known), (0, 0));
        }
    }

    /// Two connections one after the other with the same ends: a handshake, two segments, each acknowledged, an end.
    #[test]
    fn what_a_handshake_and_an_end_are_acknowledged_by_stays() {
        let mut packets = Vec::new();
        for first in [1000, 900_000] {
            let mut add = |packet: Packet, kind, numbers| packets.push(Packet { kind, numbers, ..packet });
            add(packet(1, true, 0, None), Kind::Opening, (first, 0));
            add(packet(1, false, 0, None), Kind::Opening, (70, first + 1));
            add(packet(1, true, 0, None), Kind::Acknowledgement, (first + 1, 71));
            add(packet(1, false, FULL, None), Kind::Data, (71, first + 1));
            add(packet(1, true, 0, None), Kind::Acknowledgement, (first + 1, 71 + FULL));
            add(packet(1, false, 900, None), Kind::Data, (71 + FULL, first + 1));
            add(packet(1, false, 0, None), Kind::Other, (971 + FULL, first + 1));
            add(packet(1, true, 0, None), Kind::Acknowledgement, (first + 1, 972 + FULL));
        }
        let sizes = sampled(&packets);
        let way = &sizes.ways()[&FULL][1];
        assert_eq!((way.acknowledgements, way.known), (6, 6));
        let left = way.left[1].settled();
        assert_eq!((left.least, left.likely), (4, 4));
        assert_eq!(sizes.totals()[0].others + sizes.totals()[1].others, 6);
    }

    #[test]
    fn an_other_end_with_a_smaller_mss_has_full_segments_of_its_own_size() {
        let packets = [packet(1, true, 10 * 1200 + 7, Some(1200)), packet(1, true, 1200, None)];
        let sizes = sampled(&packets);
        let way = &sizes.ways()[&1200][1];
        assert_eq!((way.full, way.small), (11, 1));
        assert_eq!(way.messages, BTreeMap::from([((10, 7), 1), ((1, 0), 1)]));
    }

    /// What a host sends in segments of 1348 bytes, one by one, on a link that permits 1448: bulk without PSH, of which
    /// one is missing, and messages of that size, each with PSH.
    #[test]
    fn a_smaller_mss_is_known_without_aggregates_and_equal_messages_are_none() {
        let sent = |pushed, missing: u32| {
            let segments = (0..20).filter(move |place| *place != missing);
            let packets = segments.map(move |place| Packet {
                numbers: ((u32::MAX - 5000).wrapping_add(place * 1348), 7),
                pushed,
                ..packet(1, true, 1348, None)
            });
            sampled(&packets.collect::<Vec<_>>())
        };
        let way = |sizes: &Sizes, class| {
            sizes.ways().get(&class).map_or((0, 0), |ways| (ways[1].full, ways[1].small))
        };
        assert_eq!(way(&sent(false, 20), 1348), (20, 0));
        assert_eq!(way(&sent(false, 9), 1348), (19, 0));
        assert_eq!((way(&sent(true, 20), 1348), way(&sent(true, 20), 0)), ((0, 0), (0, 20)));
    }

    /// A path tells its MTU after the first ten segments, as a tunnel does: to a sender whose aggregates are seen, and
    /// to one whose segments come one by one. Then it takes larger ones again.
    #[test]
    fn full_segments_of_a_connection_become_smaller_and_larger() {
        for most in [1, 20] {
            let (mut packets, mut sequence) = (Vec::new(), 0u32);
            for (count, size) in [(10, FULL), (3000, 1348), (20, FULL), (400, 1348)] {
                for _ in 0..count / most.min(count) {
                    let bytes = size * most.min(count);
                    let segment_bytes = (bytes > size).then_some(size);
                    let part = packet(1, true, bytes, segment_bytes);
                    packets.push(Packet { numbers: (sequence, 7), pushed: false, ..part });
                    sequence += bytes;
                }
            }
            let sizes = sampled(&packets);
            let way = |class: u32| (sizes.ways()[&class][1].full, sizes.ways()[&class][1].small);
            // Where they come one by one, the second of two equal ones tells what the first of them was.
            let unknown = if most == 1 { 2 } else { 0 };
            assert_eq!(
                (way(1348), way(FULL)),
                ((3400 - unknown, 0), (30, unknown)),
                "{most} in an aggregate"
            );
            let [_, sent] = &sizes.connections()[0].ways;
            assert!(sent.after[1] * 6 < sent.segments, "{} of {}", sent.after[1], sent.segments);
        }
    }

    /// Downloads and uploads of a connection whose MSS a router has made smaller one way.
    #[test]
    fn both_directions_of_a_connection_have_full_segments_of_their_own_one_after_the_other() {
        let mut packets = Vec::new();
        for _ in 0..50 {
            packets.push(packet(1, true, 20 * FULL + 7, Some(FULL)));
            packets.push(packet(1, false, 20 * 1348 + 7, Some(1348)));
        }
        let sizes = sampled(&packets);
        let full = |class: u32| sizes.ways()[&class].clone().map(|way| (way.full, way.small));
        assert_eq!((full(FULL), full(1348)), ([(0, 0), (1000, 50)], [(1000, 50), (0, 0)]));
    }

    /// One smaller segment beside full ones, or a few with others between them, are no other size.
    #[test]
    fn a_few_smaller_segments_leave_the_size_as_it_is() {
        let mut packets = cut(1, &[100 * FULL], 1);
        for place in [20, 40, 41, 60, 61, 62] {
            packets.insert(place, packet(1, true, 1000, Some(500)));
        }
        let sizes = sampled(&packets[..62]);
        assert_eq!(sizes.ways().keys().copied().collect::<Vec<_>>(), [FULL]);
    }

    /// A message that is larger than what two equal segments told is no end of them.
    #[test]
    fn a_larger_segment_without_a_sign_is_proof_of_its_size() {
        for packets in [[(1000, Some(500)), (1400, None)], [(1400, None), (1000, Some(500))]] {
            let sizes = sampled(&packets.map(|(bytes, segment)| packet(1, true, bytes, segment)));
            for (class, ways) in sizes.ways().iter().filter(|(class, _)| **class > 0) {
                assert!(ways[1].messages.keys().all(|(_, end)| end < class), "{class}: {ways:?}");
            }
        }
    }

    #[test]
    fn messages_between_two_segment_sizes_are_told_by_connection() {
        let mut packets = cut(1, &[2000, 4000, 5000, 100, 100_000], 1);
        packets.extend(cut(2, &[100, 200, 100_000], 1));
        let sizes = sampled(&packets);
        assert_eq!(sizes.between().collect::<Vec<_>>(), [ends(1)]);
        let connections = sizes.connections();
        assert_eq!(
            connections.iter().map(|connection| (connection.local, connection.remote)).collect::<Vec<_>>(),
            [ends(1), ends(2)]
        );
        let sent = &connections[0].ways[1];
        assert_eq!((sent.messages, sent.between.as_slice()), (5, &[2, 3][..]));
        // 2 + 3 + 4 + 1 + 70 segments of 1448 bytes; of 4148 and 8948 bytes 1 + 1 + 2 + 1 + 25 and 1 + 1 + 1 + 1 + 12.
        assert_eq!((sent.segments, sent.after.as_slice()), (80, &[30, 16][..]));
        assert_eq!(connections[0].ways[0].segments, 0);
    }

    #[test]
    fn an_mtu_that_is_no_larger_leaves_all_as_it_is() {
        let mut sizes = Sizes::new(1500, &[1500, 1400]);
        sizes.window(&cut(1, &[2000, 100_000, 3], 1), 0);
        let sent = &sizes.connections()[0].ways[1];
        assert_eq!((sent.after.as_slice(), sent.between.as_slice()), (&[sent.segments; 2][..], &[0, 0][..]));
    }

    #[test]
    fn what_is_not_tcp_is_counted_and_left_as_it_is() {
        let datagram = Packet {
            outgoing: false,
            ends: None,
            kind: Kind::Other,
            bytes: 10_028,
            payload_bytes: 10_000,
            segment_bytes: Some(1000),
            numbers: (0, 0),
            pushed: true,
            nanoseconds: 0,
            foreign: None,
        };
        let sizes = sampled(&[datagram]);
        let total = sizes.totals()[0];
        assert_eq!((total.packets, total.others, total.tcp_packets), (10, 10, 0));
        assert_eq!((total.aggregates, total.aggregate_bytes, total.bytes), (1, 10_028, 10_280));
        assert!(sizes.ways().is_empty());
    }

    #[test]
    fn sizes_that_others_choose_are_bounded_and_nothing_is_lost() {
        let packets: Vec<Packet> = (0..400)
            .map(|number| packet(number, true, 10 * (100 + u32::from(number)), Some(100 + u32::from(number))))
            .collect();
        let sizes = sampled(&packets);
        assert_eq!(sizes.ways().len(), MOST_SIZES + 1);
        let count: u64 = sizes.ways().values().map(|ways| ways[1].full + ways[1].small).sum();
        assert_eq!((count, sizes.totals()[1].packets), (4000, 4000));
    }

    #[test]
    fn different_messages_without_end_are_bounded() {
        let messages: Vec<u32> = (1..=6000).map(|end| FULL + end % 1447 + 1 + (end / 1447) * FULL).collect();
        let sizes = sampled(&cut(1, &messages, 1));
        let way = &sizes.ways()[&FULL][1];
        assert_eq!(way.messages.len(), MOST_MESSAGES);
        assert_eq!(way.messages.values().sum::<u64>() + way.more_messages, 6000);
    }

    proptest! {
        #[test]
        fn aggregates_are_what_they_are_on_the_wire(
            messages in prop::collection::vec(1u32..200_000, 1..20), most in 1u32..45,
        ) {
            let (wire, host) = (sampled(&cut(1, &messages, 1)), sampled(&cut(1, &messages, most)));
            prop_assert_eq!(wire.ways(), host.ways());
            let (one, other) = (wire.totals()[1], host.totals()[1]);
            prop_assert_eq!((one.packets, one.bytes, one.tcp_header_bytes), (other.packets, other.bytes, other.tcp_header_bytes));
            prop_assert!(other.aggregates <= one.aggregates);
            prop_assert_eq!(wire.connections(), host.connections());
        }

        #[test]
        fn nothing_is_lost(messages in prop::collection::vec((0u16..5, any::<bool>(), 0u32..300_000, 1u32..3000), 0..60)) {
            let packets: Vec<Packet> = messages.iter().map(|(number, outgoing, payload, size)| {
                packet(*number, *outgoing, *payload, (payload > size).then_some(*size))
            }).collect();
            let sizes = sampled(&packets);
            for outgoing in [0, 1] {
                let carried = |way: &Way, class: u32| way.full * u64::from(class) + way.small_bytes;
                let payload: u64 = sizes.ways().iter().map(|(class, ways)| carried(&ways[outgoing], *class)).sum();
                let sent = messages.iter().filter(|message| usize::from(message.1) == outgoing);
                prop_assert_eq!(payload, sent.map(|message| u64::from(message.2)).sum::<u64>());
                let count: u64 = sizes.ways().values().map(|ways| {
                    let way = &ways[outgoing];
                    way.full + way.small + way.acknowledgements
                }).sum();
                prop_assert_eq!(count, sizes.totals()[outgoing].packets);
                for (class, ways) in sizes.ways().iter().filter(|(class, _)| **class > 0) {
                    prop_assert!(ways[outgoing].messages.keys().all(|(_, end)| end < class));
                }
            }
        }
    }
}
