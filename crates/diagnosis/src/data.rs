//! Data of one end: what is new, and what comes with it.

use crate::Thresholds;
use crate::connection::{Connection, Side, mark};
use crate::detectors::{Data, Detector, Seen};
use crate::flight::Piece;
use crate::sent::LARGEST_SEGMENT;
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

impl Connection {
    /// Takes the data of a segment, or its FIN.
    pub(crate) fn take_data(&mut self, segment: &Segment, from: Side, now: i64, limits: &Thresholds) {
        self.watch_checksum(segment, from, now);
        let fin = segment.flags.contains(TcpFlags::FIN);
        let mss = self.mss(from);
        let knows_mss = self.halves.iter().all(|half| half.opening.options().is_some());
        let least_aggregate = if knows_mss { 0 } else { LARGEST_SEGMENT };
        let half = &mut self.halves[from as usize];
        if let Some(is_right) = segment.checksum_is_right {
            half.checksums.take(is_right, segment.payload_bytes > mss);
        }
        if segment.payload_bytes == 0 && !fin {
            return;
        }
        let syn = u64::from(segment.flags.contains(TcpFlags::SYN));
        let begin = half.way.near(segment.seq) + syn;
        let end = begin + u64::from(segment.payload_bytes) + u64::from(fin);
        half.way.begin(begin);
        if half.way.high() < end && !self.check_data(segment, from, (begin, end), now) {
            return;
        }
        let half = &mut self.halves[from as usize];
        if fin {
            self.suspects[from as usize].finish(end);
        }
        half.counts.carry(segment.payload_bytes > 0, segment.payload_bytes > mss.max(least_aggregate));
        if fin {
            half.finish();
        }
        let (high, was_idle) = (half.way.high(), half.way.is_idle());
        let fresh = end > high;
        if fresh {
            self.take_fresh(segment, from, (begin, end), now, limits);
        } else {
            self.take_resend(segment, from, (begin, end), now, limits);
        }
        let is_known = self.halves[from as usize].opening.mss().is_some();
        self.halves[from as usize].sent.take(segment, mss, is_known, end.saturating_sub(high), was_idle, now);
        self.take_round(from, now);
        if was_idle && fresh && segment.payload_bytes <= mss {
            self.halves[from as usize].level.leave_alone(end, now);
        }
        if fresh {
            self.half_mut(from).rounds.note_data();
        }
        let data = Data { seen: Seen { segment, from, now }, end, is_new: fresh, mss, limits };
        self.show(|detectors, of, account| detectors.data(of, &data, account));
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
        let full = self.full_payload(from);
        let half = &mut self.halves[from as usize];
        if (1..full).contains(&segment.payload_bytes) && !segment.flags.contains(TcpFlags::FIN) {
            half.sent.take_small(range, half.way.una());
        }
        let (skipped, end) = (range.0 > half.way.high(), range.1);
        let begin = half.way.extend(range, segment, now);
        half.counts.extend(end - begin - u64::from(segment.flags.contains(TcpFlags::FIN)));
        self.watch_idle(from, segment, now, limits);
        let (number, mark) = (segment.number, mark(segment));
        let bytes = segment.payload_bytes;
        let piece = Piece {
            begin,
            end,
            first: now,
            last: now,
            number,
            bytes,
            times: 1,
            mark,
            sacked: false,
            is_judged: false,
        };
        self.halves[from as usize].way.send(piece);
        self.halves[from as usize].tracking.send(begin, end);
        if skipped {
            // Numbers are those of copies, too.
            self.halves[from as usize].silences.bound(range.0);
            self.watch_hole(from, now);
        }
        self.go_on_unasked(from, end, now);
        self.tell_silence(from, end, now);
    }
}
