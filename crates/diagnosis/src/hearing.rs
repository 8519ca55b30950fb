//! What is on its way from the tap to one sender, and how far that is: acknowledgements that have passed the tap, and timestamps
//! that the sender will echo. Only what is here writes it; `vantage.rs` says when something has arrived.

use crate::echoes::Echoes;
use framegauge_packets::capture::Segment;
use std::collections::VecDeque;

/// More do not wait: those that are older are taken.
const MOST_WAITING: usize = 1 << 14;
/// The newest lateness counts for this part.
const SMOOTHING: i64 = 8;

/// An acknowledgement on its way from the tap to the sender.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    pub(crate) times: Heard,
    pub(crate) segment: Segment,
}

/// When an acknowledgement is heard of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heard {
    /// When it passed the tap.
    pub(crate) seen: i64,
    /// When it reaches the sender, as the tap would see what the sender does at once.
    pub(crate) due: i64,
}

/// What one sender has not heard of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hearing {
    waiting: VecDeque<Waiting>,
    echoes: Echoes,
    nearest: Option<i64>,
    late: i64,
}

/// What it is.
impl Hearing {
    /// Whether nothing is on its way.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What is on its way, from the oldest on.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting.iter()
    }

    /// Whether there is no room for more.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() > MOST_WAITING
    }

    /// Timestamps that the sender has not echoed yet.
    pub(crate) fn echoes(&self) -> &Echoes {
        &self.echoes
    }

    /// The least time from the tap to the receiver and back.
    pub(crate) fn nearest(&self) -> Option<i64> {
        self.nearest
    }

    /// How long acknowledgements that were late, as the sender's data showed, took to be heard of: smoothed.
    pub(crate) fn late(&self) -> i64 {
        self.late
    }
}

/// What happens.
impl Hearing {
    /// An acknowledgement passes the tap, so far from the sender; none overtakes another.
    pub(crate) fn pass(&mut self, segment: &Segment, now: i64, reach: i64) {
        if let Some((value, _)) = segment.timestamps {
            self.echoes.pass(value, now);
        }
        let due = self.waiting.back().map_or(now + reach, |last| last.times.due.max(now + reach));
        self.waiting.push_back(Waiting { times: Heard { seen: now, due }, segment: *segment });
    }

    /// The oldest has arrived.
    pub(crate) fn arrive(&mut self) -> Option<Waiting> {
        self.waiting.pop_front()
    }

    /// Data of the sender echoes a timestamp. `sent`: when it sent before; `is_idle`: nothing of it is under way.
    #[inline]
    pub(crate) fn echo(&mut self, value: u32, now: i64, sent: i64, is_idle: bool) {
        if self.echoes.waits_since().is_some() {
            self.echoes.hear(value, now, sent, is_idle);
        }
    }

    /// The receiver's answer took so long from the tap and back.
    pub(crate) fn answer_after(&mut self, nanoseconds: i64) {
        self.nearest = Some(self.nearest.map_or(nanoseconds, |least| least.min(nanoseconds)));
    }

    /// An acknowledgement was late by so much.
    pub(crate) fn be_late(&mut self, lateness: i64) {
        self.late += (lateness - self.late) / SMOOTHING;
    }
}
