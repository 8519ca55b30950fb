//! What one end has sent and the other has not acknowledged, in order of sequence.

use crate::holes::Hole;
use std::collections::VecDeque;

/// A piece of the stream that left in one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its first byte.
    pub(crate) begin: u64,
    /// The byte after it.
    pub(crate) end: u64,
    /// When it was seen first, in nanoseconds.
    pub(crate) first: i64,
    /// When it was seen last.
    pub(crate) last: i64,
    /// The packet that carried it first.
    pub(crate) number: u64,
    /// The payload of the last packet that carried it.
    pub(crate) bytes: u32,
    /// How often it was sent.
    pub(crate) times: u32,
    /// What the last packet that carried it had, and a later one has not: `Segment`'s timestamp and identification.
    pub(crate) mark: u32,
    /// The receiver has it, by SACK.
    pub(crate) sacked: bool,
    /// It came late, and it was judged then whether that shows anything.
    pub(crate) is_judged: bool,
}

impl Piece {
    /// Its bytes without a FIN, which takes a place of its own (RFC 9293 section 3.4).
    fn payload(&self) -> u32 {
        ((self.end - self.begin) as u32).min(self.bytes)
    }
}

/// The pieces that are under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flight {
    pieces: VecDeque<Piece>,
    sacked_bytes: u64,
}

/// Pieces that are kept; of a capture without any acknowledgement the older ones are forgotten.
const MOST_PIECES: usize = 1 << 16;

impl Flight {
    /// Bytes that are neither acknowledged nor SACKed.
    pub(crate) fn bytes(&self) -> u64 {
        match (self.pieces.front(), self.pieces.back()) {
            (Some(front), Some(back)) => (back.end - front.begin).saturating_sub(self.sacked_bytes),
            _ => 0,
        }
    }

    /// Bytes that the receiver has above a hole.
    pub(crate) fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    /// The pieces of these bytes.
    pub(crate) fn sacked_pieces(&self) -> usize {
        self.pieces.iter().filter(|piece| piece.sacked).count()
    }

    /// The largest piece of these bytes, in bytes. All of them left after what is missing below them.
    #[cold]
    pub(crate) fn largest_sacked(&self) -> u32 {
        self.pieces.iter().filter(|piece| piece.sacked).map(Piece::payload).max().unwrap_or(0)
    }

    /// The largest piece behind the oldest, if all of them are smaller than that and nothing was sent again, in bytes; else 0.
    #[cold]
    pub(crate) fn smaller_behind(&self) -> u32 {
        let Some(oldest) = self.pieces.front() else { return 0 };
        let is_new = self.pieces.iter().all(|piece| piece.times == 1);
        let behind = self.pieces.iter().skip(1).map(Piece::payload).max().unwrap_or(0);
        if is_new && behind < oldest.payload() { behind } else { 0 }
    }

    /// The largest piece, in bytes.
    #[cold]
    pub(crate) fn largest(&self) -> u32 {
        self.pieces.iter().map(Piece::payload).max().unwrap_or(0)
    }

    /// How many pieces there are.
    pub(crate) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Whether the receiver has said of all of `[begin, end)` that it has it.
    #[cold]
    pub(crate) fn is_sacked(&self, begin: u64, end: u64) -> bool {
        let from = self.pieces.partition_point(|piece| piece.end <= begin);
        let mut within = self.pieces.range(from..).take_while(|piece| piece.begin < end).peekable();
        within.peek().is_some() && within.all(|piece| piece.sacked)
    }

    /// Nothing is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The oldest piece.
    pub(crate) fn front(&self) -> Option<&Piece> {
        self.pieces.front()
    }

    /// The place after all pieces; 0: there are none.
    pub(crate) fn end(&self) -> u64 {
        self.pieces.back().map_or(0, |back| back.end)
    }

    /// Adds a piece of new data, which begins at or after the end of all others.
    pub(crate) fn push(&mut self, piece: Piece) {
        if self.pieces.len() == MOST_PIECES
            && let Some(old) = self.pieces.pop_front()
            && old.sacked
        {
            self.sacked_bytes -= old.end - old.begin;
        }
        self.pieces.push_back(piece);
    }

    /// Adds a piece that fills a hole between others, or that lies below all of them.
    pub(crate) fn insert(&mut self, piece: Piece) {
        let at = self.pieces.partition_point(|other| other.begin < piece.begin);
        self.pieces.insert(at, piece);
    }

    /// The piece at a place.
    pub(crate) fn at(&self, place: u64) -> Option<&Piece> {
        let at = self.pieces.partition_point(|piece| piece.end <= place);
        self.pieces.get(at).filter(|piece| piece.begin <= place)
    }

    /// Whether the piece at a place was sent more than once.
    pub(crate) fn is_repeated(&self, place: u64) -> bool {
        self.at(place).is_some_and(|piece| piece.times > 1)
    }

    /// Takes in data that was sent before: the pieces within `[begin, end)` count once more. How often the first of
    /// them has now been sent, and when it was sent before; `None` if it is acknowledged already.
    pub(crate) fn resend(&mut self, begin: u64, end: u64, now: i64, mark: u32) -> Option<Resent> {
        self.cut(begin);
        self.cut(end);
        let mut resent: Option<Resent> = None;
        let from = self.pieces.partition_point(|piece| piece.end <= begin);
        for piece in self.pieces.range_mut(from..) {
            if piece.begin >= end {
                break;
            }
            let before = piece.last;
            piece.times += 1;
            piece.last = now;
            piece.mark = mark;
            // A FIN alone stays one.
            piece.bytes = if piece.bytes > 0 { (end - begin) as u32 } else { 0 };
            let (times, number) = (piece.times, piece.number);
            resent = resent.or(Some(Resent { times, before, number, hole: None }));
        }
        resent
    }

    /// Takes off what is acknowledged below `una`. The newest piece that was sent once only, from which the RTT
    /// follows (Karn), and whether any was acknowledged that had been resent.
    pub(crate) fn acknowledge(&mut self, una: u64) -> Acknowledged {
        let mut acked = Acknowledged::default();
        while let Some(front) = self.pieces.front_mut() {
            if front.begin >= una {
                break;
            }
            if front.end > una {
                if front.sacked {
                    self.sacked_bytes -= una - front.begin;
                }
                acked.bytes += una - front.begin;
                acked.take_piece((una - front.begin) as u32);
                front.begin = una;
                break;
            }
            let piece = *front;
            self.pieces.pop_front();
            acked.bytes += piece.end - piece.begin;
            if piece.sacked {
                self.sacked_bytes -= piece.end - piece.begin;
            }
            acked.resent |= piece.times > 1;
            acked.closed_hole |=
                piece.times == 1 && !piece.sacked && !piece.is_judged && self.sacked_bytes > 0;
            acked.take_piece(piece.payload());
            if piece.times == 1 && !piece.sacked {
                acked.sent = Some(piece.first);
            }
        }
        // An answer to a repeat may answer the repeat, or the first: no sample (Karn).
        acked.sent = acked.sent.filter(|_| !acked.resent);
        acked
    }

    /// Marks `[begin, end)` as received. Bytes that were not marked before.
    pub(crate) fn sack(&mut self, begin: u64, end: u64) -> u64 {
        let mut news = 0;
        self.cut(begin);
        self.cut(end);
        let from = self.pieces.partition_point(|piece| piece.begin < begin);
        for piece in self.pieces.range_mut(from..) {
            if piece.end > end {
                break;
            }
            if !piece.sacked {
                piece.sacked = true;
                news += piece.end - piece.begin;
            }
        }
        self.sacked_bytes += news;
        news
    }

    /// Makes `place` a border between two pieces.
    fn cut(&mut self, place: u64) {
        let at = self.pieces.partition_point(|piece| piece.end <= place);
        let Some(piece) = self.pieces.get_mut(at) else { return };
        if piece.begin >= place {
            return;
        }
        let rest = Piece { begin: place, ..*piece };
        piece.end = place;
        self.pieces.insert(at + 1, rest);
    }
}

/// What a resend repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resent {
    /// How often its first piece has been sent by now.
    pub(crate) times: u32,
    /// When that piece was sent before.
    pub(crate) before: i64,
    /// The packet that carried it first, or that which left it out.
    pub(crate) number: u64,
    /// What it filled, if nothing of it had been seen before.
    pub(crate) hole: Option<Hole>,
}

/// What an acknowledgement took off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Acknowledged {
    /// Bytes.
    pub(crate) bytes: u64,
    /// When the newest piece left that was sent once only.
    pub(crate) sent: Option<i64>,
    /// A piece had been resent.
    pub(crate) resent: bool,
    /// A hole below SACKed data was closed by a piece that was sent once only: the network had reordered it, and nobody told.
    pub(crate) closed_hole: bool,
    /// The first piece, or what was acknowledged of it, in bytes.
    pub(crate) first_piece: u32,
    /// The largest of those behind it.
    pub(crate) largest_behind: u32,
}

impl Acknowledged {
    /// The largest piece, in bytes.
    pub(crate) fn largest_piece(&self) -> u32 {
        self.first_piece.max(self.largest_behind)
    }

    fn take_piece(&mut self, bytes: u32) {
        if self.first_piece == 0 {
            self.first_piece = bytes;
        } else {
            self.largest_behind = self.largest_behind.max(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn piece(begin: u64, end: u64, at: i64) -> Piece {
        Piece {
            begin,
            end,
            first: at,
            last: at,
            number: 1,
            bytes: 100,
            times: 1,
            mark: 0,
            sacked: false,
            is_judged: false,
        }
    }

    fn three() -> Flight {
        let mut flight = Flight::default();
        for (place, begin) in [100, 200, 300].into_iter().enumerate() {
            flight.push(piece(begin, begin + 100, place as i64));
        }
        flight
    }

    #[test]
    fn a_part_that_is_resent_counts_alone() {
        let mut flight = three();
        let resent = flight.resend(250, 300, 9, 0).expect("it is under way");
        assert_eq!((resent.times, resent.before), (2, 1));
        assert_eq!(flight.resend(200, 300, 10, 0).expect("it is under way").times, 2);
        assert_eq!(flight.resend(250, 300, 11, 0).expect("it is under way").times, 4);
        assert_eq!(flight.resend(0, 100, 12, 0), None);
        assert_eq!(flight.bytes(), 300);
    }

    #[test]
    fn a_fin_is_no_byte_however_often_it_is_sent() {
        let mut flight = three();
        flight.push(Piece { bytes: 0, ..piece(400, 401, 5) });
        flight.resend(400, 401, 9, 0);
        flight.sack(400, 401);
        assert_eq!((flight.largest_sacked(), flight.is_sacked(400, 401)), (0, true));
        assert!(!flight.is_sacked(300, 401) && !flight.is_sacked(401, 500));
        assert_eq!(flight.acknowledge(401).largest_piece(), 100);
    }

    #[test]
    fn karn_takes_no_sample_of_what_was_resent() {
        let mut flight = three();
        flight.resend(100, 200, 9, 0);
        let acked = flight.acknowledge(200);
        assert_eq!((acked.bytes, acked.sent, acked.resent), (100, None, true));
        assert_eq!(flight.acknowledge(400).sent, Some(2));
        assert!(flight.is_empty());
    }

    #[test]
    fn a_hole_that_closes_without_a_resend_was_reordered() {
        let mut flight = three();
        assert_eq!(flight.sack(200, 400), 200);
        assert_eq!(flight.sack(200, 400), 0);
        assert_eq!(flight.bytes(), 100);
        assert!(flight.acknowledge(400).closed_hole);
        assert_eq!(flight.sacked_bytes(), 0);
    }

    proptest! {
        /// Bytes are conserved: what was sent is acknowledged, or under way.
        #[test]
        fn no_byte_is_lost_or_counted_twice(
            steps in proptest::collection::vec((0u8..4, 1u64..5000, 1u64..5000), 1..200)
        ) {
            let (mut flight, mut high, mut una, mut acked_bytes) = (Flight::default(), 1u64, 1u64, 0u64);
            for (now, (kind, first, second)) in steps.into_iter().enumerate() {
                match kind {
                    0 => {
                        flight.push(piece(high, high + first, now as i64));
                        high += first;
                    }
                    1 => {
                        let begin = (una + first).min(high);
                        flight.resend(begin, (begin + second).min(high), now as i64, 0);
                    }
                    2 => {
                        let begin = una + first;
                        flight.sack(begin, begin + second);
                    }
                    _ => {
                        una = (una + first).min(high);
                        acked_bytes += flight.acknowledge(una).bytes;
                    }
                }
                prop_assert_eq!(acked_bytes, una - 1);
                prop_assert_eq!(flight.bytes() + flight.sacked_bytes(), high - una);
                let sacked: u64 = flight.pieces.iter().filter(|p| p.sacked).map(|p| p.end - p.begin).sum();
                prop_assert_eq!(sacked, flight.sacked_bytes());
                prop_assert!(flight.pieces.iter().zip(flight.pieces.iter().skip(1)).all(|(a, b)| a.end == b.begin));
            }
        }
    }
}
