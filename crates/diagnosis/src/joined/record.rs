//! What is kept of a segment at a tap: 40 bytes, whatever it carried.

use super::unscaled::Written;
use crate::sequence::Unwrapper;
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;
use std::net::SocketAddr;

/// The same packet again within this is the capture's second copy of it, if its identification says so ...
const COPY_NANOSECONDS: i64 = 500_000;
/// ... and if it has none, within this.
const UNMARKED_NANOSECONDS: i64 = 20_000;

/// A segment at a tap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) nanoseconds: i64,
    /// Its first place in the stream; places are sequence numbers that do not wrap.
    pub(super) begin: i64,
    /// The packet's number in its capture.
    pub(super) number: u32,
    /// The sequence numbers that it takes: its payload, a SYN, a FIN.
    pub(super) bytes: u32,
    /// The timestamp value; 0 without one.
    pub(super) value: u32,
    /// Of a segment that takes no sequence numbers: what it says otherwise, so that two of them can be told apart.
    pub(super) print: u32,
    /// IPv4's identification; 0 without one.
    pub(super) identification: u16,
    pub(super) flags: TcpFlags,
    /// TTL or hop limit.
    pub(super) hops: u8,
    /// Data that begins beyond the other end's window as it is written, without its scale.
    pub(super) is_beyond: bool,
}

impl Record {
    /// The place after it.
    pub(super) fn end(&self) -> i64 {
        self.begin + i64::from(self.bytes)
    }

    /// Bytes of payload.
    pub(super) fn payload(&self) -> u32 {
        let marks = [TcpFlags::SYN, TcpFlags::FIN].into_iter().filter(|flag| self.flags.contains(*flag));
        self.bytes.saturating_sub(marks.count() as u32)
    }

    fn is_copy_of(&self, other: &Record) -> bool {
        let within = if self.identification == 0 { UNMARKED_NANOSECONDS } else { COPY_NANOSECONDS };
        self.nanoseconds - other.nanoseconds <= within
            && (self.begin, self.bytes, self.value, self.print, self.identification, self.flags)
                == (other.begin, other.bytes, other.value, other.print, other.identification, other.flags)
            // Without an identification, an acknowledgement may be repeated at once.
            && (self.identification != 0 || self.bytes > 0)
    }
}

/// One direction of a connection at a tap, in the order of its capture.
#[derive(Debug, Clone, Default)]
pub(super) struct Lane {
    pub(super) records: Vec<Record>,
    places: Unwrapper,
    /// Up to where the other end has acknowledged it.
    pub(super) acknowledged: Option<i64>,
    /// The MSS of its SYN.
    pub(super) mss: Option<u16>,
    /// How far windows reach without their scale.
    pub(super) written: Written,
}

impl Lane {
    /// Places of this lane become those of another tap, of which `there` is one near to `here`.
    pub(super) fn move_places(&mut self, here: i64, there: i64) {
        let turns = (there - here + (1 << 31)) >> 32;
        let shift = turns << 32;
        if shift != 0 {
            self.records.iter_mut().for_each(|record| record.begin += shift);
            self.acknowledged = self.acknowledged.map(|place| place + shift);
        }
    }
}

/// One connection at a tap.
#[derive(Debug, Clone)]
pub(super) struct Trace {
    /// The client's first sequence number, from its SYN or the answer to it.
    pub(super) first_number: Option<u32>,
    /// Which lane is the client's.
    pub(super) client: usize,
    /// From the smaller end to the larger, and back.
    pub(super) lanes: [Lane; 2],
    pub(super) first_nanoseconds: i64,
    /// Packets that the capture has twice.
    pub(super) copies: u64,
}

impl Trace {
    pub(super) fn begin(segment: &Segment, lane: usize) -> Trace {
        let answers = segment.flags.contains(TcpFlags::SYN.with(TcpFlags::ACK));
        Trace {
            first_number: None,
            client: if answers { 1 - lane } else { lane },
            lanes: Default::default(),
            first_nanoseconds: segment.nanoseconds,
            copies: 0,
        }
    }

    /// Whether the segment opens another connection between the same ends.
    pub(super) fn is_another(&self, segment: &Segment) -> bool {
        segment.flags.contains(TcpFlags::SYN)
            && !segment.flags.contains(TcpFlags::ACK)
            && self.first_number != Some(segment.seq)
    }

    /// Takes the next segment; gives whether it was kept.
    pub(super) fn take(&mut self, segment: &Segment, lane: usize) -> bool {
        let has = |flag| segment.flags.contains(flag);
        if has(TcpFlags::SYN) {
            let number = if has(TcpFlags::ACK) { segment.ack.wrapping_sub(1) } else { segment.seq };
            self.first_number.get_or_insert(number);
            self.lanes[lane].mss = segment.syn.and_then(|syn| syn.mss);
            self.lanes[lane].written.open(segment);
        }
        if has(TcpFlags::ACK) && !has(TcpFlags::RST) {
            let own = self.lanes[lane].written;
            let other = &mut self.lanes[1 - lane];
            let place = other.places.near(segment.ack);
            if other.records.is_empty() {
                other.places.reach(place);
            }
            other.acknowledged = other.acknowledged.max(Some(place as i64));
            other.written.hear(place as i64, segment.window, own);
        }
        let marks = u32::from(has(TcpFlags::SYN)) + u32::from(has(TcpFlags::FIN));
        let bytes = segment.payload_bytes.saturating_add(marks);
        let lane = &mut self.lanes[lane];
        let begin = lane.places.near(segment.seq);
        // A reset that answers nothing has the number 0 (RFC 9293 section 3.10.7.1).
        if !has(TcpFlags::RST) {
            lane.places.reach(begin);
        }
        let record = Record {
            nanoseconds: segment.nanoseconds,
            begin: begin as i64,
            number: u32::try_from(segment.number).unwrap_or(u32::MAX),
            bytes,
            value: segment.timestamps.map_or(0, |(value, _)| value),
            print: if bytes == 0 { print(segment) } else { 0 },
            identification: segment.identification.unwrap_or(0),
            flags: segment.flags,
            hops: segment.hops,
            is_beyond: segment.payload_bytes > 0 && lane.written.is_before(begin as i64),
        };
        let is_copy = lane.records.iter().rev().take(2).any(|earlier| record.is_copy_of(earlier));
        if is_copy {
            self.copies += 1;
        } else {
            lane.records.push(record);
        }
        !is_copy
    }
}

/// What an acknowledgement says, in 32 bits: only those of the same place and timestamp are compared by it.
fn print(segment: &Segment) -> u32 {
    let mut mixed: u64 = 0;
    let mut mix =
        |word: u32| mixed = (mixed.rotate_left(5) ^ u64::from(word)).wrapping_mul(0x517c_c1b7_2722_0a95);
    mix(segment.ack);
    mix(u32::from(segment.window) << 8 | u32::from(segment.flags.0));
    mix(segment.timestamps.map_or(0, |(_, echo)| echo));
    for (begin, end) in segment.sack.as_slice() {
        mix(*begin);
        mix(*end);
    }
    (mixed >> 32) as u32 ^ mixed as u32
}

/// Both ends of a connection, the smaller first, and in which lane a segment is.
pub(super) fn ends_of(segment: &Segment) -> ((SocketAddr, SocketAddr), usize) {
    if segment.source <= segment.destination {
        ((segment.source, segment.destination), 0)
    } else {
        ((segment.destination, segment.source), 1)
    }
}
