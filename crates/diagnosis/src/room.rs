//! Whether a receiver's window holds its sender back.

use crate::Thresholds;
use crate::connection::{Connection, SIDES, Side};
use crate::gap::Gap;

impl Connection {
    /// An end with more to send, of which nothing is under way, waits until the other end's window has room for a segment (RFC 9293
    /// section 3.8.6.2.1), though it is not closed.
    pub(crate) fn is_short_of_room(&self, _: &Gap) -> bool {
        SIDES.into_iter().any(|side| {
            let half = self.half(side);
            let is_short = half.way.knows_window() && half.way.room() < u64::from(self.full_payload(side));
            is_short && half.way.is_idle() && half.sent.had_more()
        })
    }

    /// Bytes of a window that a sender may leave: it waits until it can send some segments at once, where the window has
    /// room for many.
    pub(crate) fn slack(&self, sender: Side, limits: &Thresholds) -> u64 {
        let mss = u64::from(self.mss(sender));
        let window = self.half(sender).way.window();
        (mss * u64::from(limits.window_slack_segments)).min(window / 8).max(mss)
    }

    /// Whether a sender stopped because the other end's window left it less than some bytes.
    pub(crate) fn is_windowed(&self, sender: Side, needed: u64, limits: &Thresholds) -> bool {
        let half = self.half(sender);
        half.way.knows_window()
            && half.way.room() < needed
            && !self.repeats_all(sender)
            && !half.rounds.fills_slow_start(
                half.way.una(),
                self.slack(sender, limits),
                self.mss(sender).into(),
            )
    }

    /// Whether a sender is about to repeat all that was under way, after a timeout or because a router had refused it: what lies
    /// before it fits into the receiver's window, and only congestion control lets it wait.
    fn repeats_all(&self, sender: Side) -> bool {
        let half = self.half(sender);
        let is_lost = || self.notes.tell_too_big() || half.silences.is_repaired_by_timer(half.run.end());
        half.sent.is_repeat() && half.run.end() < half.way.high() && is_lost()
    }

    /// Whether an end's window is closed.
    pub(crate) fn is_shut(&self) -> bool {
        self.halves.iter().any(|half| half.way.is_shut())
    }
}
