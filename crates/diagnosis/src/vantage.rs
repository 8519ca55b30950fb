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
use crate::hearing::{Heard, Waiting};
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

/// A tap this part of an RTT from a sender is beside it.
const BESIDE: i64 = 8;
/// The way changes: what comes sooner than this part of the soonest answer so far is none.
const SOONEST_PART: i64 = 2;

impl Connection {
    /// The time from the tap to this end and back: of the handshake, or the soonest answer since. 0 beside the end, and
    /// where the capture began in the middle.
    pub(crate) fn reach(&self, end: Side) -> i64 {
        let (Some(server), Some(client)) = (self.syn_answer, self.ack_answer) else { return 0 };
        let of_handshake = if end == Side::Client { client } else { server };
        let reach =
            self.half(end.other()).hearing.nearest().map_or(of_handshake, |least| least.min(of_handshake));
        if reach <= self.path_rtt() / BESIDE { 0 } else { reach }
    }

    /// What passes the tap sooner than this after something for this end is no answer to it. 0 where nobody knows.
    pub(crate) fn soonest_answer(&self, end: Side) -> i64 {
        self.reach(end) / SOONEST_PART
    }

    /// Whether the handshake tells how far the tap is from both ends.
    pub(crate) fn knows_vantage(&self) -> bool {
        self.syn_answer.is_some() && self.ack_answer.is_some()
    }

    /// An acknowledgement passes the tap.
    pub(crate) fn hear(&mut self, segment: &Segment, from: Side, now: i64) {
        let sender = from.other();
        if let Some((value, _)) = segment.timestamps {
            self.half_mut(sender).way.ask(value);
        }
        let is_news = {
            let half = self.half(sender);
            let is_new = !half.hearing.is_empty() || half.way.near(segment.ack) > half.way.una();
            // Where all had arrived, the answer to a repeat says so (D-SACK).
            !half.way.is_idle() || is_new || segment.sack.count > 0
        };
        let reach = if is_news && self.established { self.reach(sender) } else { 0 };
        // Nothing may follow that would show when the end of a connection has arrived.
        let both_finished = self.halves.iter().all(|half| half.is_finished());
        if reach == 0 || both_finished {
            self.take_waiting(sender, now);
            let arrival = Heard { seen: now, due: now + reach };
            return self.take_ack(segment, from, arrival, now);
        }
        self.half_mut(sender).hearing.pass(segment, now, reach);
        if self.half(sender).hearing.is_full() {
            self.take_next(sender, now);
        }
    }

    /// Data of a sender may echo a timestamp that passed the tap before.
    pub(crate) fn hear_echo(&mut self, segment: &Segment, from: Side, now: i64) {
        let half = self.half_mut(from);
        let Some((_, echo)) = segment.timestamps.filter(|_| segment.payload_bytes > 0) else { return };
        half.hearing.echo(echo, now, half.sent.at(), half.way.is_idle());
    }

    /// Whether the newest data of a sender shows that an answer was late on its way from the tap to it: one that should have
    /// reached it by then is not echoed yet. Where the other end sends data as well, a loss of that may hide answers.
    pub(crate) fn is_answer_late(&self, sender: Side, by: i64) -> bool {
        let half = self.half(sender);
        let is_due = |seen_at: i64| {
            seen_at + self.reach(sender) <= by && !self.has_outwaited_timer(sender, seen_at, by)
        };
        half.hearing.echoes().any()
            && half.hearing.echoes().waits_since().is_some_and(is_due)
            && self.half(sender.other()).way.is_idle()
    }

    /// Whether a segment left its sender after a gap, not in it, as it always did beside the sender.
    pub(crate) fn has_just_left(&self, segment: &Segment, from: Side, gap: i64) -> bool {
        segment.timestamps.is_none() || self.reach(from) == 0 || self.half(from).lag().left_after(gap)
    }

    /// Takes what has reached its sender before a segment, and gives the time until then to what the sender waited for.
    pub(crate) fn catch_up(&mut self, segment: &Segment, from: Side, now: i64, limits: &Thresholds) {
        if self.halves.iter().all(|half| half.hearing.is_empty()) {
            return;
        }
        let acts = segment.payload_bytes > 0 || segment.flags.contains(TcpFlags::FIN);
        let sender = if acts { from } else { from.other() };
        // New data that ends a pause shows what its sender had heard of; what it repeats, a timer may have told it to.
        let half = self.half(from);
        let is_after_pause =
            acts && half.way.near(segment.seq) >= half.way.high() && now - self.last > self.pause(limits);
        // As long as the data on its way here, its sender had to wait for what released it.
        let queued = if is_after_pause && segment.timestamps.is_some() { half.lag().queued() } else { 0 };
        loop {
            let due = |side: Side| {
                let mut waiting = self.half(side).hearing.waiting();
                let first = waiting.next()?;
                let has_it = side == from && acts && self.has_heard(segment, side, first);
                let is_after_pause = is_after_pause && side == from;
                let arrived = first.times.due + if side == from { queued } else { 0 };
                if !has_it && (arrived > now || (is_after_pause && self.has_not_heard(segment, side, first)))
                {
                    return None;
                }
                // Where the next one has not arrived, this one was as late.
                let next =
                    waiting.next().filter(|next| is_after_pause && self.has_not_heard(segment, side, next));
                let at = next.map_or(arrived, |next| arrived.max(now - (next.times.seen - first.times.seen)));
                Some((at.clamp(self.last, now), side))
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
                let lateness =
                    self.half(side).hearing.waiting().next().map_or(0, |first| at - first.times.due);
                self.attribute_wait(sender, at, lateness, limits);
                self.last = at;
            }
            self.take_next(side, at);
        }
    }

    /// Whether what a sender does now shows that it has heard of an acknowledgement: it echoes a timestamp as new
    /// (RFC 7323), repeats data, or goes beyond the window that it knew before (RFC 9293 section 3.8.6).
    fn has_heard(&self, segment: &Segment, sender: Side, waiting: &Waiting) -> bool {
        if let (Some((_, echo)), Some((value, _))) = (segment.timestamps, waiting.segment.timestamps) {
            return (echo.wrapping_sub(value) as i32) >= 0;
        }
        let way = &self.half(sender).way;
        let (begin, bytes) = (way.near(segment.seq), segment.payload_bytes);
        // One byte asks whether the window has opened.
        let is_beyond = bytes > 1 && way.knows_window() && begin + u64::from(bytes) > way.edge();
        bytes > 0 && (begin < way.high() || is_beyond)
    }

    /// Whether what a sender does now shows that an acknowledgement that passed the tap had not arrived: it echoes an older
    /// timestamp. One that lies behind data that it has not acknowledged need not count for it (RFC 7323 section 4.3). A sender
    /// that repeated nothing for longer than its timer had heard of all.
    fn has_not_heard(&self, segment: &Segment, sender: Side, waiting: &Waiting) -> bool {
        let (Some((_, echo)), Some((value, _))) = (segment.timestamps, waiting.segment.timestamps) else {
            return false;
        };
        let other = self.half(sender.other());
        let is_older = (echo.wrapping_sub(value) as i32) < 0;
        is_older
            && !self.has_outwaited_timer(sender, waiting.times.seen, segment.nanoseconds)
            && self.half(sender).hearing.echoes().any()
            && other.way.near(waiting.segment.seq) <= other.way.una()
    }

    /// Whether nothing of a sender has passed for longer than its timer waits for answers, since one passed the tap on its way to it.
    fn has_outwaited_timer(&self, sender: Side, since: i64, now: i64) -> bool {
        let half = self.half(sender);
        let copies = u64::from(half.identities.may_miss()) + 1;
        now - since.max(half.sent.at()) > self.longest_wait(sender, copies)
    }

    /// Takes all that waits for this sender.
    pub(crate) fn take_waiting(&mut self, sender: Side, now: i64) {
        while !self.half(sender).hearing.is_empty() {
            self.take_next(sender, now);
        }
    }

    fn take_next(&mut self, sender: Side, at: i64) {
        if let Some(Waiting { times, segment }) = self.half_mut(sender).hearing.arrive() {
            self.take_ack(&segment, sender.other(), times, at);
        }
    }
}
