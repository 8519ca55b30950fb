//! The capture as the sender of each direction saw it.
//!
//! ```text
//!   sender ◀── reach ──▶ tap ◀──────────▶ receiver     seen at the tap:  ack ............ data that it let go
//!                                                      at the sender:    ......... ack data
//! ```
//!
//! An acknowledgement that passes the tap is still on its way to the sender, and what the sender does with it passes the
//! tap a reach later. So acknowledgements wait for a reach before they are taken, and the state of a direction is that
//! of its sender: what it had under way, the window that it knew, and the RTT that it measured, wherever the tap is.

use crate::Thresholds;
use crate::connection::{Connection, Side};
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

/// An acknowledgement on its way from the tap to the sender.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    /// When it passed the tap.
    pub(crate) seen: i64,
    /// When it reaches the sender, as the tap would see what the sender does at once.
    pub(crate) due: i64,
    pub(crate) segment: Segment,
}

/// More do not wait: those that are older are taken.
const MOST_WAITING: usize = 1 << 14;
const MILLISECOND: i64 = 1_000_000;
/// A tap this part of an RTT from a sender is beside it.
const BESIDE: i64 = 8;

impl Connection {
    /// The time from the tap to this end and back: of the handshake, or the soonest answer since. 0 beside the end, and
    /// where the capture began in the middle.
    pub(crate) fn reach(&self, end: Side) -> i64 {
        let (Some(server), Some(client)) = (self.syn_answer, self.ack_answer) else { return 0 };
        let of_handshake = if end == Side::Client { client } else { server };
        let reach = self.half(end.other()).nearest.map_or(of_handshake, |least| least.min(of_handshake));
        if reach * BESIDE <= self.path_rtt() { 0 } else { reach }
    }

    /// An acknowledgement passes the tap.
    pub(crate) fn hear(&mut self, segment: &Segment, from: Side, now: i64) {
        let sender = from.other();
        let is_news = {
            let half = self.half(sender);
            !half.flight.is_empty() || !half.waiting.is_empty() || half.places.near(segment.ack) > half.una
        };
        let reach = if is_news && self.established { self.reach(sender) } else { 0 };
        // Nothing may follow that would show when the end of a connection has arrived.
        let both_finished = self.halves.iter().all(|half| half.finished);
        if reach == 0 || both_finished {
            self.take_waiting(sender, now);
            let heard = Waiting { seen: now, due: now + reach, segment: *segment };
            return self.take_ack(segment, from, heard, now);
        }
        if let Some((value, _)) = segment.timestamps {
            let echoes = &mut self.half_mut(sender).echoes;
            if echoes.back().is_none_or(|(last, _)| *last != value) && echoes.len() < MOST_WAITING {
                echoes.push_back((value, now));
            }
        }
        let waiting = &mut self.half_mut(sender).waiting;
        let due = waiting.back().map_or(now + reach, |last| last.due.max(now + reach));
        waiting.push_back(Waiting { seen: now, due, segment: *segment });
        if self.half(sender).waiting.len() > MOST_WAITING {
            self.take_next(sender, now);
        }
    }

    /// Data of a sender echoes a timestamp that passed the tap before: the time since is that from the tap to the sender
    /// and back, with the queues of now, if the sender did not rest (K. Nichols, pping).
    pub(crate) fn hear_echo(&mut self, segment: &Segment, from: Side, now: i64) {
        let half = self.half_mut(from);
        let Some((_, echo)) = segment.timestamps else { return };
        if half.echoes.is_empty() || segment.payload_bytes == 0 {
            return;
        }
        while let Some((value, seen)) = half.echoes.front().copied() {
            if (echo.wrapping_sub(value) as i32) < 0 {
                break;
            }
            half.echoes.pop_front();
            if value == echo {
                // A sender that rested has not answered at once.
                let sends_on = now - half.last_data <= (now - seen) / 2;
                half.echo = if sends_on && !half.flight.is_empty() { now - seen } else { 0 };
            }
        }
    }

    /// Whether a segment left its sender after a gap, not in it, as it always did beside the sender: by the sender's clock, which ticks once a millisecond or
    /// more often (Linux), or too seldom to tell.
    pub(crate) fn has_just_left(&self, segment: &Segment, from: Side, gap: i64) -> bool {
        let (Some((now, _)), Some([first, last])) = (segment.timestamps, self.half(from).stamps) else {
            return true;
        };
        if self.reach(from) == 0 {
            return true;
        }
        let ticks = |one: u32, other: u32| i64::from(other.wrapping_sub(one) as i32);
        let is_fine = ticks(first.0, last.0) * MILLISECOND * 2 >= last.1 - first.1;
        !is_fine || ticks(last.0, now) * MILLISECOND * 2 >= gap
    }

    /// Keeps the timestamp of a segment.
    pub(crate) fn keep_stamp(&mut self, segment: &Segment, from: Side, now: i64) {
        let Some((value, _)) = segment.timestamps else { return };
        let stamps = &mut self.half_mut(from).stamps;
        match stamps {
            Some(both) => both[1] = (value, now),
            None => *stamps = Some([(value, now); 2]),
        }
    }

    /// Takes what has reached its sender before a segment, and gives the time until then to what the sender waited for.
    pub(crate) fn catch_up(&mut self, segment: &Segment, from: Side, now: i64, limits: &Thresholds) {
        if self.halves.iter().all(|half| half.waiting.is_empty()) {
            return;
        }
        let acts = segment.payload_bytes > 0 || segment.flags.contains(TcpFlags::FIN);
        let sender = if acts { from } else { from.other() };
        loop {
            let due = |side: Side| {
                let first = self.half(side).waiting.front()?;
                let has_it = side == from && acts && self.has_heard(segment, side, first);
                (first.due <= now || has_it).then_some((first.due.clamp(self.last, now), side))
            };
            let next = match (due(Side::Client), due(Side::Server)) {
                (Some(one), Some(other)) => {
                    if one.0 <= other.0 {
                        one
                    } else {
                        other
                    }
                }
                (one, other) => match one.or(other) {
                    Some(only) => only,
                    None => break,
                },
            };
            let (at, side) = next;
            if side == sender && self.established && !self.closed {
                self.attribute_wait(sender, at, limits);
                self.last = at;
            }
            self.take_next(side, at);
        }
    }

    /// Whether what a sender does now shows that it has heard of an acknowledgement: it echoes a timestamp as new
    /// (RFC 7323), or repeats data.
    fn has_heard(&self, segment: &Segment, sender: Side, heard: &Waiting) -> bool {
        if let (Some((_, echo)), Some((value, _))) = (segment.timestamps, heard.segment.timestamps) {
            return (echo.wrapping_sub(value) as i32) >= 0;
        }
        let half = self.half(sender);
        segment.payload_bytes > 0 && half.places.near(segment.seq) < half.high
    }

    /// Takes all that waits for this sender.
    pub(crate) fn take_waiting(&mut self, sender: Side, now: i64) {
        while self.half(sender).waiting.front().is_some() {
            self.take_next(sender, now);
        }
    }

    fn take_next(&mut self, sender: Side, at: i64) {
        if let Some(heard) = self.half_mut(sender).waiting.pop_front() {
            self.take_ack(&heard.segment, sender.other(), heard, at);
        }
    }
}
