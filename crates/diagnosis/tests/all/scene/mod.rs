//! A connection as a tap sees it, written by hand: two ends, and a clock that the scene moves.

use framegauge_diagnosis::{Diagnosis, Finding, Kind, Table, Thresholds};
use framegauge_packets::capture::{SackBlocks, Segment};
use framegauge_packets::{SynOptions, TcpFlags};
use std::net::SocketAddr;

pub const MS: i64 = 1_000_000;
pub const MSS: u32 = 1448;
pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;

/// The scene.
pub struct Scene {
    pub now: i64,
    pub segments: Vec<Segment>,
    pub ends: [SocketAddr; 2],
    /// The next byte of each end, and what it has of the other.
    pub next: [u32; 2],
    pub got: [u32; 2],
    pub window: [u16; 2],
    pub syn: [SynOptions; 2],
    /// Each end counts its own packets, as Linux does.
    pub identification: [u16; 2],
    /// TTL of both ends' packets.
    pub hops: u8,
}

impl Scene {
    /// Two ends that have not met.
    pub fn new() -> Scene {
        Scene::between("10.0.0.1:40000", "10.0.0.2:80")
    }

    /// Two ends of these addresses.
    pub fn between(client: &str, server: &str) -> Scene {
        let syn =
            SynOptions { mss: Some(1460), timestamps: true, window_scale: Some(7), sack_permitted: true };
        Scene {
            now: 1_700_000_000_000_000_000,
            segments: Vec::new(),
            ends: [client, server].map(|end| end.parse().expect("an address")),
            next: [1_000, u32::MAX - 5_000],
            got: [0, 0],
            window: [512, 512],
            syn: [syn, syn],
            identification: [0; 2],
            hops: 64,
        }
    }

    /// The same after a handshake at the client, with this RTT.
    pub fn met(rtt: i64) -> Scene {
        let mut scene = Scene::new();
        scene.meet(rtt);
        scene
    }

    /// A handshake at the client.
    pub fn meet(&mut self, rtt: i64) {
        self.meet_between(rtt, 10_000);
    }

    /// A handshake at the server.
    pub fn meet_at_server(&mut self, rtt: i64) {
        self.meet_between(20_000, rtt);
    }

    /// The tap is so far from the server and from the client, there and back.
    pub fn meet_between(&mut self, server: i64, client: i64) {
        self.send(CLIENT, 0, TcpFlags::SYN);
        self.next[CLIENT] = self.next[CLIENT].wrapping_add(1);
        self.pass(server);
        self.got[SERVER] = self.next[CLIENT];
        self.send(SERVER, 0, TcpFlags::SYN.with(TcpFlags::ACK));
        self.next[SERVER] = self.next[SERVER].wrapping_add(1);
        self.got[CLIENT] = self.next[SERVER];
        self.pass(client);
        self.ack(CLIENT);
    }

    /// Time goes by.
    pub fn pass(&mut self, nanoseconds: i64) {
        self.now += nanoseconds;
    }

    /// A segment of an end with its next bytes; `next` moves on. Its first byte.
    pub fn data(&mut self, end: usize, bytes: u32) -> u32 {
        let begin = self.next[end];
        self.send(end, bytes, TcpFlags::ACK.with(TcpFlags::PSH));
        self.next[end] = begin.wrapping_add(bytes);
        begin
    }

    /// The same bytes again.
    pub fn again(&mut self, end: usize, begin: u32, bytes: u32) {
        let next = std::mem::replace(&mut self.next[end], begin);
        self.send(end, bytes, TcpFlags::ACK.with(TcpFlags::PSH));
        self.next[end] = next;
    }

    /// An acknowledgement of all that the other end has sent.
    pub fn ack(&mut self, end: usize) {
        self.got[end] = self.next[1 - end];
        self.send(end, 0, TcpFlags::ACK);
    }

    /// An acknowledgement up to a place, with SACK blocks.
    pub fn sack(&mut self, end: usize, up_to: u32, blocks: &[(u32, u32)]) {
        self.got[end] = up_to;
        self.send(end, 0, TcpFlags::ACK);
        let sack = &mut self.segments.last_mut().expect("just sent").sack;
        *sack = SackBlocks::default();
        sack.blocks[..blocks.len()].copy_from_slice(blocks);
        sack.count = blocks.len() as u8;
    }

    /// Any segment of an end.
    pub fn send(&mut self, end: usize, bytes: u32, flags: TcpFlags) {
        self.identification[end] = self.identification[end].wrapping_add(1).max(1);
        self.segments.push(Segment {
            nanoseconds: self.now,
            number: self.segments.len() as u64 + 1,
            source: self.ends[end],
            destination: self.ends[1 - end],
            seq: self.next[end],
            ack: self.got[end],
            flags,
            // Never scaled in a SYN.
            window: if flags.contains(TcpFlags::SYN) { 64_240 } else { self.window[end] },
            payload_bytes: bytes,
            ip_bytes: bytes + 52,
            timestamps: Some(((self.now / MS) as u32, 0)),
            sack: SackBlocks::default(),
            syn: flags.contains(TcpFlags::SYN).then_some(self.syn[end]),
            multipath: false,
            fast_open: false,
            identification: Some(self.identification[end]),
            hops: self.hops,
            ecn: 0,
            checksum_is_right: None,
            option_bytes: 12,
            options_are_cut: false,
            fragments: None,
        });
    }

    /// Request, response and acknowledgement, each after half an RTT of the other, `count` times.
    pub fn talk(&mut self, count: u32, rtt: i64) {
        for _ in 0..count {
            self.data(CLIENT, 100);
            self.pass(rtt);
            self.got[SERVER] = self.next[CLIENT];
            self.data(SERVER, 1000);
            self.pass(20_000);
            self.ack(CLIENT);
            self.pass(20_000);
        }
    }

    /// What is found in it.
    pub fn diagnosis(&self) -> Diagnosis {
        diagnosis(&self.segments)
    }
}

/// The packets around these, a line each: what a test that fails shows.
pub fn listing(segments: &[Segment], packets: &[u64]) -> String {
    let origin = segments.first().map_or(0, |first| first.nanoseconds);
    let is_near = |number: u64| packets.iter().any(|packet| packet.abs_diff(number) < 12);
    let line = |segment: &Segment| {
        format!(
            "{:4} {:12.3} ms :{} seq {} +{} ack {} flags {:02x} window {} sack {:?} stamp {:?} id {:?} ttl {}\n",
            segment.number,
            (segment.nanoseconds - origin) as f64 / 1e6,
            segment.source.port(),
            segment.seq,
            segment.payload_bytes,
            segment.ack,
            segment.flags.0,
            segment.window,
            segment.sack.as_slice(),
            segment.timestamps.map(|(value, _)| value),
            segment.identification,
            segment.hops,
        )
    };
    segments.iter().filter(|segment| is_near(segment.number)).map(line).collect()
}

/// What is found in segments.
pub fn diagnosis(segments: &[Segment]) -> Diagnosis {
    let mut table = Table::new(Thresholds::default());
    segments.iter().for_each(|segment| table.take(segment));
    table.finish()
}

/// The finding of a kind; panics, with what was found instead, unless there is one.
pub fn one(diagnosis: &Diagnosis, kind: Kind) -> Finding {
    let found: Vec<&Finding> = diagnosis.findings.iter().filter(|each| each.kind == kind).collect();
    assert_eq!(found.len(), 1, "{kind:?} in {:#?}", diagnosis.findings);
    found[0].clone()
}

/// The kinds that were found, without the limits that every connection has.
pub fn kinds(diagnosis: &Diagnosis) -> Vec<Kind> {
    let mut found: Vec<Kind> = diagnosis
        .findings
        .iter()
        .map(|each| each.kind)
        .filter(|kind| !matches!(kind, Kind::ApplicationLimited | Kind::NetworkLimited))
        .collect();
    found.sort();
    found
}
