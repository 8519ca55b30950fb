//! The way from one end of a connection to the other: the sequence space of what that end sends, what of it is under way, and
//! the window in which the other end lets it send. Only what is here writes it; it knows nothing of connections or findings.
//!
//! ```text
//!              una               high               edge
//!   ────────────┼──── flight ──────┼────── room ──────┼────▶ places
//!   acknowledged, up to here                          the other end's window ends
//! ```

use crate::flight::{Acknowledged, Flight, Piece, Resent};
use crate::holes::{Hole, Holes};
use crate::sequence::Unwrapper;
use framegauge_packets::capture::Segment;

/// A window is scaled by this at most (RFC 7323 section 2.3).
const MOST_SHIFT: u8 = 14;

/// Places are those of `Unwrapper`; 0 means none yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Way {
    places: Unwrapper,
    flight: Flight,
    holes: Holes,
    high: u64,
    /// When it grew to `high`.
    extended: i64,
    una: u64,
    window: Window,
    /// What had been sent when the other end took its window back from before it: it may have discarded that.
    withdrawn: (u64, u64),
    /// The other end lacks something, and what that is lies beyond the capture's length.
    lacks: bool,
    /// The place that its own end said it will send next, beyond all that was seen, with the timestamp of that; 0: none.
    announced: (u64, Option<u32>),
    /// Its own end was seen: a SYN, or data. It may have begun by what the other end acknowledges.
    is_seen: bool,
}

/// What the other end's newest acknowledgement allows.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    /// The place after it.
    edge: u64,
    bytes: u64,
    is_known: bool,
    largest: u64,
}

/// What it is.
impl Way {
    /// The place that a number on the wire means.
    pub(crate) fn near(&self, number: u32) -> u64 {
        self.places.near(number)
    }

    /// Whether anything of it was seen or acknowledged.
    pub(crate) fn has_begun(&self) -> bool {
        self.high > 0
    }

    /// Whether all of `[begin, end)` was seen, or is older than what was.
    pub(crate) fn has_seen(&self, (begin, end): (u64, u64)) -> bool {
        end <= self.high && self.skipped((begin, end)).is_none()
    }

    /// Bytes that a segment with data leaves out.
    #[inline]
    pub(crate) fn skips(&self, segment: &Segment) -> u64 {
        let is_data = segment.payload_bytes > 0 && self.is_seen;
        if is_data { self.near(segment.seq).saturating_sub(self.high) } else { 0 }
    }

    /// The first hole that touches `[begin, end)`.
    pub(crate) fn skipped(&self, (begin, end): (u64, u64)) -> Option<&Hole> {
        self.holes.touching(begin, end)
    }

    /// Whether the oldest that is not acknowledged was skipped.
    pub(crate) fn lacks_oldest(&self) -> bool {
        self.oldest_hole().is_some()
    }

    /// The hole that the oldest which is not acknowledged is in.
    pub(crate) fn oldest_hole(&self) -> Option<&Hole> {
        self.skipped((self.una, self.high)).filter(|hole| hole.begin == self.una)
    }

    /// From the first time that later data passed a hole until the last.
    pub(crate) fn skipping(&self) -> i64 {
        self.holes.span()
    }

    /// Whether any of it was seen, not only acknowledged.
    pub(crate) fn is_seen(&self) -> bool {
        self.is_seen
    }

    /// The place after all that was sent.
    pub(crate) fn high(&self) -> u64 {
        self.high
    }

    /// The place up to which the other end has acknowledged.
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// What is under way.
    pub(crate) fn flight(&self) -> &Flight {
        &self.flight
    }

    /// Whether the other end has told, until its next news, that it lacks something and has what lies behind.
    pub(crate) fn tells_hole(&self) -> bool {
        self.lacks || self.flight.sacked_bytes() > 0
    }

    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.flight.is_empty()
    }

    /// Whether the window is known: of some acknowledgements nobody knows how far it is scaled.
    pub(crate) fn knows_window(&self) -> bool {
        self.window.is_known
    }

    /// The window, in bytes.
    pub(crate) fn window(&self) -> u64 {
        self.window.bytes
    }

    /// The largest window that there was, in bytes.
    pub(crate) fn largest_window(&self) -> u64 {
        self.window.largest
    }

    /// Whether a window is the newest one, as it is written. `shift`: how far it is scaled.
    pub(crate) fn is_window(&self, field: u16, shift: Option<u8>) -> bool {
        u64::from(field) << shift.map_or(MOST_SHIFT, |shift| shift.min(MOST_SHIFT)) == self.window.bytes
    }

    /// Whether the window is known to be closed.
    pub(crate) fn is_shut(&self) -> bool {
        self.window.is_known && self.window.bytes == 0
    }

    /// Whether the other end may have discarded some of `[begin, end)`: it had taken its window back from before that.
    pub(crate) fn was_withdrawn(&self, (begin, end): (u64, u64)) -> bool {
        self.withdrawn.0 < end && begin < self.withdrawn.1
    }

    /// The place after the window.
    pub(crate) fn edge(&self) -> u64 {
        self.window.edge
    }

    /// Whether its own end had sent `[begin, end)`, which comes next, before it said what it will send after that, and sends it again
    /// now: it was not overtaken by that.
    pub(crate) fn is_announced(&self, (begin, end): (u64, u64), by: &Segment) -> bool {
        let (place, stamp) = self.announced;
        let is_newer = match (stamp, by.timestamps) {
            (Some(stamp), Some((own, _))) => (own.wrapping_sub(stamp) as i32) > 0,
            _ => true,
        };
        begin == self.high && begin < end && end <= place && is_newer
    }

    /// Bytes that the window still allows.
    pub(crate) fn room(&self) -> u64 {
        self.window.edge.saturating_sub(self.high)
    }
}

/// What its own end does.
impl Way {
    /// It only acknowledges, and its number is that of the data that it will send next (RFC 9293 section 3.10.4).
    #[inline]
    pub(crate) fn announce(&mut self, by: &Segment) {
        let place = self.near(by.seq);
        if self.is_seen && place > self.high {
            self.announced = (place, by.timestamps.map(|(value, _)| value));
        }
    }

    /// Its SYN takes a place, and it begins there. One in the middle of a connection begins nothing.
    pub(crate) fn open(&mut self, place: u64) {
        if !self.has_begun() {
            self.places.reach(place);
            self.high = place + 1;
            self.una = place;
        }
        self.is_seen = true;
    }

    /// The first data is here: the capture began in the middle. What had been sent before that, and is not acknowledged yet, is
    /// no hole.
    #[inline]
    pub(crate) fn begin(&mut self, place: u64) {
        if self.is_seen {
            return;
        }
        self.is_seen = true;
        if !self.has_begun() {
            self.una = self.una.max(place);
        }
        self.high = self.high.max(place);
    }

    /// Data ends at a place beyond all that was seen. The place from which on it is new; what it skips is a hole.
    pub(crate) fn extend(&mut self, (begin, end): (u64, u64), by: &Segment, now: i64) -> u64 {
        if begin > self.high {
            self.holes.open((self.high, begin), by, self.extended, now);
        }
        // What told of a larger window is not in the file.
        self.window.is_known &= end <= self.window.edge + 1 || self.window.bytes == 0;
        let begin = begin.max(self.high);
        self.places.reach(end);
        self.high = end;
        self.extended = now;
        begin
    }

    /// What extended it is under way.
    pub(crate) fn send(&mut self, piece: Piece) {
        self.flight.push(piece);
    }

    /// What was under way is sent again; `None` if it is acknowledged already.
    pub(crate) fn resend(&mut self, (begin, end): (u64, u64), now: i64, mark: u32) -> Option<Resent> {
        self.flight.resend(begin, end, now, mark)
    }

    /// Data comes that had been skipped: the first hole that it touches, as it was.
    pub(crate) fn fill(&mut self, (begin, end): (u64, u64)) -> Option<Hole> {
        self.holes.fill(begin, end)
    }

    /// What filled a hole is under way.
    pub(crate) fn send_late(&mut self, piece: Piece) {
        self.flight.insert(piece);
    }

    /// It goes on at a place below its end: what lies above was acknowledged, and never sent.
    pub(crate) fn take_back(&mut self, place: u64) {
        self.high = place;
    }
}

/// What the other end says.
impl Way {
    /// Its acknowledgement is the first that was seen of this way, which begins there.
    pub(crate) fn begin_acknowledged(&mut self, ack: u64) {
        if !self.has_begun() {
            self.places.reach(ack);
            self.high = ack;
            self.una = ack;
        }
    }

    /// It acknowledges what was not seen. How many bytes.
    pub(crate) fn skip(&mut self, ack: u64) -> u64 {
        let unseen = ack.saturating_sub(self.high);
        if unseen > 0 {
            self.places.reach(ack);
            self.high = ack;
        }
        unseen
    }

    /// It acknowledges all below a place. What was under way of that, and how many bytes of it were not seen.
    pub(crate) fn acknowledge(&mut self, ack: u64) -> (Acknowledged, u64) {
        self.una = ack;
        self.lacks = false;
        (self.flight.acknowledge(ack), self.holes.acknowledge(ack))
    }

    /// It has what lies between two places, above a hole.
    pub(crate) fn sack(&mut self, begin: u64, end: u64) {
        self.flight.sack(begin, end);
    }

    /// It says something with a timestamp, of which its own end learns what was skipped.
    #[inline]
    pub(crate) fn ask(&mut self, value: u32) {
        self.holes.ask(value);
    }

    /// It lacks something, and has what lies behind.
    pub(crate) fn lack(&mut self) {
        self.lacks = true;
    }

    /// What it acknowledged above a place was never sent.
    pub(crate) fn disown(&mut self, place: u64) {
        self.una = self.una.min(place);
    }

    /// It tells its window, as far as that is known. `shift`: how far it is scaled.
    pub(crate) fn hear_window(&mut self, field: u16, ack: u64, shift: Option<u8>) {
        let before = self.window;
        let window = &mut self.window;
        window.is_known = field == 0 || shift.is_some();
        if field == 0 {
            (window.bytes, window.edge) = (0, ack);
        } else if let Some(shift) = shift {
            window.bytes = u64::from(field) << shift.min(MOST_SHIFT);
            window.largest = window.largest.max(window.bytes);
            window.edge = window.edge.max(ack + window.bytes);
            // A window may shrink, although it should not (RFC 9293 section 3.8.6).
            if ack >= self.una {
                window.edge = ack + window.bytes;
            }
        }
        // By less than what the field can tell it does not.
        let least = 1 << shift.unwrap_or(MOST_SHIFT).min(MOST_SHIFT);
        let edge = window.edge;
        if before.is_known && window.is_known && edge + least <= before.edge && edge < self.high {
            let begin = if self.withdrawn.1 > self.una { self.withdrawn.0.min(edge) } else { edge };
            self.withdrawn = (begin, self.high);
        }
    }

    /// Nothing will be sent any more: its window limits nobody, whatever it is.
    pub(crate) fn end_window(&mut self) {
        self.window.is_known = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_whose_scale_nobody_knows_is_known_only_where_it_is_closed() {
        let mut way = Way::default();
        way.begin_acknowledged(1000);
        way.hear_window(500, 1000, Some(2));
        assert_eq!((way.knows_window(), way.window(), way.edge(), way.room()), (true, 2000, 3000, 2000));
        way.hear_window(500, 1000, None);
        assert!(!way.knows_window() && !way.is_shut());
        way.hear_window(0, 1000, None);
        assert!(way.is_shut());
        assert_eq!((way.room(), way.largest_window()), (0, 2000));
    }

    #[test]
    fn a_window_may_shrink_unless_an_older_acknowledgement_tells_it() {
        let mut way = Way::default();
        way.begin_acknowledged(1000);
        way.hear_window(900, 1000, Some(0));
        way.acknowledge(1000);
        way.hear_window(100, 900, Some(0));
        assert_eq!(way.edge(), 1900);
        way.hear_window(100, 1000, Some(0));
        assert_eq!(way.edge(), 1100);
    }

    #[test]
    fn it_begins_once_and_counts_what_was_acknowledged_unseen() {
        let mut way = Way::default();
        assert!(!way.has_begun());
        way.open(100);
        way.open(500);
        way.begin(700);
        assert_eq!((way.una(), way.high()), (100, 101));
        assert_eq!((way.skip(150), way.high(), way.skip(120)), (49, 150, 0));
        way.acknowledge(150);
        way.take_back(130);
        way.disown(130);
        assert_eq!((way.una(), way.high()), (130, 130));
    }
}
