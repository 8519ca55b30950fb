//! All connections of a capture, in one pass; memory is bounded by those that live.

use crate::closing::{ConnectionReport, Ended};
use crate::connection::Connection;
use crate::findings::Finding;
use crate::flows::Flow;
use crate::kinds::Kind;
use crate::outcast::outcast;
use crate::peers::outliers;
use crate::quality::{Cut, Cuts};
use crate::together::{self, Silenced};
use crate::too_big::Unclaimed;
use crate::{Picture, Thresholds};
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::{IcmpNote, Segment};
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

/// A connection that was closed may still repeat its last packets for so long, in nanoseconds of the capture.
const LINGER: i64 = 60_000_000_000;

/// What a capture tells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Its connections, in the order of their first packets.
    pub connections: Vec<ConnectionReport>,
    /// What was found, the most time lost first.
    pub findings: Vec<Finding>,
    /// TCP segments.
    pub segments: u64,
    /// From the first segment to the last, in seconds.
    pub seconds: f64,
    /// Of the connections that were to be drawn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
}

/// Takes segments in the order of their capture.
#[derive(Debug)]
pub struct Table {
    limits: Thresholds,
    living: HashMap<Key, Connection, BuildHasherDefault<Mix>>,
    closing: VecDeque<(i64, Key)>,
    ended: Vec<ConnectionReport>,
    findings: Vec<Finding>,
    silenced: Vec<Silenced>,
    resets: Vec<(i64, IpAddr)>,
    flows: Vec<Flow>,
    cuts: Cuts,
    unclaimed: Unclaimed,
    is_lacking: bool,
    origin: Option<i64>,
    last: i64,
    segments: u64,
    connections: u64,
    /// The numbers of those that are drawn.
    drawn: Vec<u64>,
    pictures: Vec<Picture>,
}

impl Table {
    /// Begins a capture.
    pub fn new(limits: Thresholds) -> Table {
        Table {
            limits,
            living: HashMap::default(),
            closing: VecDeque::new(),
            ended: Vec::new(),
            findings: Vec::new(),
            silenced: Vec::new(),
            resets: Vec::new(),
            flows: Vec::new(),
            cuts: Cuts::default(),
            unclaimed: Unclaimed::default(),
            is_lacking: false,
            origin: None,
            last: i64::MIN,
            segments: 0,
            connections: 0,
            drawn: Vec::new(),
            pictures: Vec::new(),
        }
    }

    /// Draws the connections of these numbers, which a first pass over the same segments has told.
    pub fn draw(&mut self, connections: &[u64]) {
        self.drawn = connections.to_vec();
    }

    /// Takes the next segment.
    pub fn take(&mut self, segment: &Segment) {
        let now = segment.nanoseconds;
        self.origin.get_or_insert(now);
        self.last = self.last.max(now);
        self.segments += 1;
        let key = Key::between(segment.source, segment.destination);
        // With FIN or RST it opens nothing.
        let opens = segment.flags.contains(TcpFlags::SYN)
            && ![TcpFlags::ACK, TcpFlags::FIN, TcpFlags::RST]
                .into_iter()
                .any(|flag| segment.flags.contains(flag));
        if opens && self.living.get(&key).is_some_and(|old| old.is_another(segment)) {
            self.end(key);
        }
        let number = self.connections + 1;
        let limits = self.limits;
        let mut is_new = false;
        let connection = self.living.entry(key).or_insert_with(|| {
            is_new = true;
            Connection::new(number, segment)
        });
        if is_new && self.drawn.contains(&number) {
            let picture = Picture::new(number, connection.ends, now, self.origin.unwrap_or(now));
            connection.picture = Some(Box::new(picture));
        }
        if is_new {
            self.unclaimed.claim(key, now).iter().for_each(|note| connection.take_note(note));
        }
        let was_closed = connection.is_over();
        match connection.picture {
            None => connection.take(segment, &limits),
            Some(_) => connection.take_drawn(segment, &limits),
        }
        if connection.is_over() && !was_closed {
            self.closing.push_back((now, key));
        }
        if is_new {
            self.connections = number;
            self.sweep(now);
        }
    }

    /// Takes an ICMP error, which belongs to the connection whose segment it quotes.
    pub fn take_note(&mut self, note: &IcmpNote) {
        let key = note.quoted.map(|quoted| Key::between(quoted.source, quoted.destination));
        match key.and_then(|key| self.living.get_mut(&key)) {
            Some(connection) => connection.take_note(note),
            None => self.unclaimed.take(key, note),
        }
    }

    /// Notes that the capture's length cut a packet. `number`: that of the packet.
    pub fn take_cut(&mut self, cut: Cut, number: u64) {
        self.cuts.take(cut, number);
    }

    /// The capture says that it lacks packets, which looks like a breach of protocol: none is told.
    pub fn lacks_packets(&mut self) {
        self.is_lacking = true;
    }

    /// Ends connections that were closed long ago.
    fn sweep(&mut self, now: i64) {
        while let Some((at, key)) = self.closing.front().copied() {
            if now - at < LINGER {
                break;
            }
            self.closing.pop_front();
            if self.living.get(&key).is_some_and(Connection::is_over) {
                self.end(key);
            }
        }
    }

    fn end(&mut self, key: Key) {
        let Some(connection) = self.living.remove(&key) else { return };
        let ended = connection.end(self.origin.unwrap_or(0), &self.limits);
        self.keep(ended);
    }

    fn keep(&mut self, ended: Ended) {
        if let Some(side) = ended.reset_by {
            let by = if side as usize == 0 { ended.ends.client } else { ended.ends.server };
            self.resets.push((ended.last, by.ip()));
        }
        self.silenced.extend(ended.stalls.iter().map(|(at, side)| {
            let (sender, receiver) = match *side as usize {
                0 => (ended.ends.client, ended.ends.server),
                _ => (ended.ends.server, ended.ends.client),
            };
            Silenced {
                at: *at,
                sender: sender.ip(),
                receiver: receiver.ip(),
                rtt: ended.rtt,
                connection: ended.report.connection,
            }
        }));
        self.flows.extend(ended.flows);
        if let Some(mut picture) = ended.picture {
            picture.finish();
            self.pictures.push(*picture);
        }
        self.findings.extend(ended.findings);
        self.ended.push(ended.report);
    }

    /// Ends the capture.
    pub fn finish(mut self) -> Diagnosis {
        let mut keys: Vec<(u64, Key)> = self.living.iter().map(|(key, each)| (each.number, *key)).collect();
        keys.sort_unstable_by_key(|(number, _)| *number);
        for (_, key) in keys {
            self.end(key);
        }
        let origin = self.origin.unwrap_or(0);
        let seconds = if self.segments == 0 { 0.0 } else { (self.last - origin) as f64 / 1e9 };
        let mut findings = self.findings;
        findings.extend(self.cuts.finding(seconds));
        findings.extend(self.unclaimed.findings(self.origin));
        findings.retain(|finding| !(self.is_lacking && finding.kind == Kind::ProtocolViolation));
        findings.extend(together::incast(self.silenced, origin, &self.limits));
        findings.extend(together::reset_storms(self.resets, origin, &self.limits));
        findings.extend(outcast(&self.flows, origin, &self.limits));
        findings.extend(outliers(&self.flows, origin, &self.limits));
        findings.sort_by(|one, other| {
            other
                .lost_seconds
                .total_cmp(&one.lost_seconds)
                .then(one.kind.name().cmp(other.kind.name()))
                .then(one.connection.cmp(&other.connection))
        });
        let mut connections = self.ended;
        connections.sort_unstable_by_key(|each| each.connection);
        self.pictures.sort_unstable_by_key(|each| each.connection);
        Diagnosis { connections, findings, segments: self.segments, seconds, pictures: self.pictures }
    }
}

/// Both ends of a connection, the smaller first: addresses as those of IPv6 (RFC 4291 section 2.5.5.2), and ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    addresses: [u128; 2],
    ports: [u16; 2],
}

impl Key {
    #[inline]
    fn between(one: SocketAddr, other: SocketAddr) -> Key {
        let end = |end: SocketAddr| match end {
            SocketAddr::V4(end) => (0xffff << 32 | u128::from(end.ip().to_bits()), end.port()),
            SocketAddr::V6(end) => (end.ip().to_bits(), end.port()),
        };
        let (one, other) = (end(one), end(other));
        let (low, high) = if one <= other { (one, other) } else { (other, one) };
        Key { addresses: [low.0, high.0], ports: [low.1, high.1] }
    }
}

impl Hash for Key {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        for address in self.addresses {
            // The upper half is the network of IPv6, and the same for all of IPv4.
            state.write_u64(address as u64 ^ ((address >> 64) as u64).rotate_left(17));
        }
        state.write_u64(u64::from(self.ports[0]) << 16 | u64::from(self.ports[1]));
    }
}

/// A quick hash: keys of a capture are not chosen against this table by anybody whom more than time would cost.
#[derive(Debug, Default)]
struct Mix(u64);

impl Hasher for Mix {
    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}
