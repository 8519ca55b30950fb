//! Something on the way that drops what lies beyond a window which it does not scale.
//!
//! Connection tracking (netfilter, firewalls) keeps the window of each connection. One that has not seen the SYNs, or whose
//! SYNs were changed on the way, takes windows as they are written, without their scale (RFC 7323 section 2.2), and drops
//! segments that begin beyond.
//!
//! ```text
//!   acknowledged     as written, without scale           as meant
//!        ├───────────────────┼───────────────────────────────┤
//!         all of these arrive       none of these arrives          by position, not by size, and not now and then
//! ```
//!
//! Told only where three segments or more beyond were sent again, none beyond arrived as it was sent first, and none before
//! was lost. A queue that overflows also loses at large windows, but lets some pass.

use crate::connection::{Connection, SIDES, Side};
use crate::findings::Tally;
use crate::kinds::Kind;
use crate::words::{duration, times};

/// Fewer may be chance.
const LEAST_LOST: u64 = 3;
/// More are forgotten: the oldest first.
const MOST_RANGES: usize = 256;

/// What lay beyond the window as it is written, of one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracking {
    /// The right edge, without a scale; 0: none is known.
    edge: u64,
    /// Sent beyond it, not acknowledged and not sent again.
    open: Vec<(u64, u64)>,
    /// Sent beyond it, and sent again.
    lost: Vec<(u64, u64)>,
    lost_count: u64,
    /// Something sent beyond it arrived, or something before it was sent again. Nothing is kept from then on.
    is_ruled_out: bool,
    numbers: Vec<u64>,
    begin: i64,
}

fn push(ranges: &mut Vec<(u64, u64)>, range: (u64, u64)) {
    if ranges.len() == MOST_RANGES {
        ranges.remove(0);
    }
    ranges.push(range);
}

fn overlaps(one: &(u64, u64), other: &(u64, u64)) -> bool {
    one.0 < other.1 && other.0 < one.1
}

impl Tracking {
    /// New data was sent.
    #[inline]
    pub(crate) fn send(&mut self, begin: u64, end: u64) {
        if self.edge > 0 && begin > self.edge && !self.is_ruled_out {
            push(&mut self.open, (begin, end));
        }
    }

    /// Data was sent again.
    pub(crate) fn resend(&mut self, range: (u64, u64), number: u64, now: i64) {
        if self.is_ruled_out || self.lost.iter().any(|lost| overlaps(lost, &range)) {
            return;
        }
        let before = self.open.len();
        self.open.retain(|open| !overlaps(open, &range));
        if self.open.len() == before {
            self.rule_out();
            return;
        }
        if self.lost_count == 0 {
            self.begin = now;
        }
        self.lost_count += 1;
        self.numbers.push(number);
        self.numbers.truncate(crate::findings::MOST_PACKETS);
        push(&mut self.lost, range);
    }

    /// The other end has all of `[begin, end)`.
    #[inline]
    pub(crate) fn arrive(&mut self, begin: u64, end: u64) {
        if !self.open.is_empty() {
            let before = self.open.len();
            self.open.retain(|open| open.0 < begin || open.1 > end);
            if self.open.len() < before {
                self.rule_out();
            }
        }
        if begin == 0 && !self.lost.is_empty() {
            self.lost.retain(|lost| lost.1 > end);
        }
    }

    /// An acknowledgement has a window, as it is written.
    #[inline]
    pub(crate) fn hear(&mut self, ack: u64, written: u16) {
        self.edge = self.edge.max(ack + u64::from(written));
    }

    /// No window was heard yet.
    pub(crate) fn is_new(&self) -> bool {
        self.edge == 0
    }

    /// Whatever comes, it is not this.
    #[cold]
    fn rule_out(&mut self) {
        *self = Tracking { edge: self.edge, is_ruled_out: true, ..Tracking::default() };
    }

    fn is_certain(&self) -> bool {
        self.lost_count >= LEAST_LOST
    }
}

impl Connection {
    /// Gives the time of losses beyond a window without scale to what dropped them, if nothing speaks against it.
    pub(crate) fn judge_tracking(&mut self) {
        let scales = self.halves.iter().all(|half| {
            half.opening.options().is_some_and(|syn| syn.window_scale.is_some_and(|shift| shift > 0))
        });
        let other_is_clean = |side: Side| self.half(side.other()).counts.resent_segments() == 0;
        let side =
            SIDES.into_iter().find(|side| self.half(*side).tracking.is_certain() && other_is_clean(*side));
        let Some(side) = side.filter(|_| scales && !self.multipath) else { return };
        let Tracking { lost_count, begin, numbers, .. } = self.half(side).tracking.clone();
        self.note(Kind::UnscaledWindow, begin, begin, 0, &numbers);
        for kind in [Kind::RtoStall, Kind::TailLoss, Kind::DoubleLoss, Kind::PmtuBlackHole] {
            self.rename(kind, Kind::UnscaledWindow);
        }
        if let Some(tally) = self.tallies.iter_mut().find(|tally| tally.kind == Kind::UnscaledWindow) {
            tally.count = lost_count;
        }
        self.stalls.clear();
        self.sizes = None;
    }

    /// What was dropped, as sentences.
    pub(crate) fn tracking_in_words(&self, tally: &Tally) -> String {
        format!(
            "Segments that begin beyond the receiver's window as it is written, without its scale, never arrived ({}, {}), and no other \
             was lost: that is what connection tracking does which has not seen the window scale of both SYNs.",
            times(tally),
            duration(tally.lost),
        )
    }
}
