//! Data of one end: what is new, and what comes with it.

use crate::Thresholds;
use crate::connection::{Connection, Side, mark};
use crate::flight::Piece;
use crate::half::Half;
use crate::kinds::Kind;
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

/// Segments so near to each other left in one burst.
const BURST_NANOSECONDS: i64 = 200_000;
/// Without both SYNs, what no jumbo frame holds.
const LARGEST_SEGMENT: u32 = 9216;

impl Connection {
    /// Takes the data of a segment, or its FIN.
    pub(crate) fn take_data(&mut self, segment: &Segment, from: Side, now: i64, limits: &Thresholds) {
        self.watch_checksum(segment, from, now);
        let fin = segment.flags.contains(TcpFlags::FIN);
        let mss = self.mss(from);
        let knows_mss = self.halves.iter().all(|half| half.syn.is_some());
        let least_aggregate = if knows_mss { 0 } else { LARGEST_SEGMENT };
        let half = &mut self.halves[from as usize];
        if let Some(is_right) = segment.checksum_is_right {
            half.checksums.take(is_right, segment.payload_bytes > mss);
        }
        if segment.payload_bytes == 0 && !fin {
            return;
        }
        let syn = u64::from(segment.flags.contains(TcpFlags::SYN));
        let begin = half.places.near(segment.seq) + syn;
        let end = begin + u64::from(segment.payload_bytes) + u64::from(fin);
        if half.high == 0 {
            // The capture began in the middle.
            half.high = begin;
            half.una = half.una.max(begin);
        }
        if half.high < end && !self.check_data(segment, from, (begin, end), now) {
            return;
        }
        let half = &mut self.halves[from as usize];
        if fin {
            half.suspects.finish(end);
        }
        half.counts.data_segments += u64::from(segment.payload_bytes > 0);
        half.counts.aggregates += u64::from(segment.payload_bytes > mss.max(least_aggregate));
        half.finished |= fin;
        let fresh = end > half.high;
        if fresh {
            self.take_fresh(segment, from, (begin, end), now, limits);
        } else {
            self.take_resend(segment, from, (begin, end), now, limits);
        }
        self.halves[from as usize].remember(segment, mss, now);
        self.take_round(from, now);
        if fresh {
            self.half_mut(from).rounds.note_data();
        }
        self.watch_storm(segment, from, now, limits);
    }

    /// Takes data that goes beyond all that had been seen. `range`: its places.
    fn take_fresh(
        &mut self,
        segment: &Segment,
        from: Side,
        range: (u64, u64),
        now: i64,
        limits: &Thresholds,
    ) {
        let mss = self.mss(from);
        let half = &mut self.halves[from as usize];
        let (begin, end) = range;
        if begin > half.high {
            half.holes.open(half.high, begin, segment, now);
        }
        let begin = begin.max(half.high);
        half.places.reach(end);
        half.high = end;
        half.counts.bytes += end - begin - u64::from(segment.flags.contains(TcpFlags::FIN));
        let fills_window = half.window_is_known && end == half.edge;
        self.watch_idle(from, segment, now, limits);
        let (number, mark) = (segment.number, mark(segment));
        let piece = Piece { begin, end, first: now, last: now, number, times: 1, mark, sacked: false };
        self.halves[from as usize].flight.push(piece);
        self.halves[from as usize].tracking.send(begin, end);
        self.tell_silence(from, end, now);
        if fills_window && segment.payload_bytes > 0 && segment.payload_bytes < mss / 2 {
            self.note(Kind::SillyWindow, now, now, 0, &[segment.number]);
        }
    }
}

impl Half {
    /// Whether a segment's timestamp is older than that of another one before it (RFC 7323 section 5).
    pub(crate) fn is_stale(&self, segment: &Segment) -> bool {
        match (self.stamp, segment.timestamps) {
            (Some(newest), Some((value, _))) => (value.wrapping_sub(newest) as i32) < 0,
            _ => false,
        }
    }

    /// Keeps what matters of the last data.
    fn remember(&mut self, segment: &Segment, mss: u32, now: i64) {
        // Linux sets PSH at the end of a write, and at that of a burst that it hands over at once (TSO).
        let is_full = segment.payload_bytes > 0 && segment.payload_bytes.is_multiple_of(mss);
        let in_burst =
            segment.payload_bytes > mss || (self.last_is_open && now - self.last_data <= BURST_NANOSECONDS);
        let has_push = segment.flags.contains(TcpFlags::PSH);
        self.is_pushed = has_push;
        self.last_is_open = is_full && !has_push;
        self.unpushed = is_full && (in_burst || !has_push);
        self.largest = self.largest.max(segment.payload_bytes.min(mss.max(self.largest)));
        if let Some((value, _)) = segment.timestamps
            && !self.is_stale(segment)
        {
            self.stamp = Some(value);
        }
        self.last_data = now;
        self.last_payload = segment.payload_bytes;
        self.last_number = segment.number;
    }
}
