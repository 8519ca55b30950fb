//! Timestamps that pass the tap on their way to a sender, until the sender echoes them (RFC 7323; K. Nichols, pping): how far
//! it is from the tap to the sender and back, with the queues of now. Only what is here writes it.

use std::collections::VecDeque;

/// More do not wait.
const MOST_WAITING: usize = 1 << 14;

/// Those that one sender has not echoed yet, and how long the newest took that it has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Echoes {
    /// Each value with when it passed.
    waiting: VecDeque<(u32, i64)>,
    newest: i64,
    any: bool,
}

impl Echoes {
    /// How long the newest took to come back; 0 if its sender had rested.
    pub(crate) fn newest(&self) -> i64 {
        self.newest
    }

    /// Whether the sender has echoed one of them: it echoes at all.
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    /// When the oldest passed that is not echoed yet.
    pub(crate) fn waits_since(&self) -> Option<i64> {
        self.waiting.front().map(|(_, seen_at)| *seen_at)
    }

    /// A timestamp passes on its way to the sender.
    pub(crate) fn pass(&mut self, value: u32, now: i64) {
        let is_new = self.waiting.back().is_none_or(|(last, _)| *last != value);
        if is_new && self.waiting.len() < MOST_WAITING {
            self.waiting.push_back((value, now));
        }
    }

    /// Data of the sender echoes one. `sent`: when it sent before; `is_idle`: nothing of it is under way.
    pub(crate) fn hear(&mut self, echo: u32, now: i64, sent: i64, is_idle: bool) {
        while let Some((value, seen_at)) = self.waiting.front().copied() {
            if (echo.wrapping_sub(value) as i32) < 0 {
                break;
            }
            self.waiting.pop_front();
            self.any |= value == echo;
            if value == echo {
                // A sender that rested has not answered at once.
                let sends_on = now - sent <= (now - seen_at) / 2;
                self.newest = if sends_on && !is_idle { now - seen_at } else { 0 };
            }
        }
    }
}
