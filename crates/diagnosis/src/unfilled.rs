//! Bytes that a receiver asks for until the end, and that never come.
//!
//! ```text
//!   sender ──── large ──── ✗      tap      receiver
//!          ──── small ───────────▶ │ ─────────▶      SACK: what lies between is missing; nothing ever fills it
//! ```
//!
//! A sender that lives repeats them, so they are lost on their way here again and again, or it died. Its application has nothing
//! to do with it.

use crate::connection::{Connection, Side};
use crate::findings::Tally;
use crate::kinds::Kind;
use crate::sizes::{Grade, Sizes};
use crate::words::{duration, times};
use crate::{Thresholds, account::Account};

/// What never came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unfilled {
    pub(crate) bytes: u64,
    pub(crate) kind: Kind,
}

impl Connection {
    /// The connection ends with a hole: whose time it was since the receiver asked for it. A timer had to run out meanwhile.
    pub(crate) fn settle_unfilled(&mut self, sender: Side, limits: &Thresholds) {
        let half = self.half(sender);
        let Some(hole) = half.way.oldest_hole() else { return };
        let asks = half.way.flight().sacked_bytes() > 0 || half.is_revealed(limits.duplicate_acks);
        let waited = self.last - hole.since;
        if !asks || half.counts.unseen_bytes() > 0 || waited <= half.round_trip.timeout() {
            return;
        }
        let (begin, bytes) = (hole.since, hole.end - hole.begin);
        let lost = u32::try_from(bytes).unwrap_or(u32::MAX).min(half.mss());
        let packets = [hole.number, self.last_number];
        let sizes = self.sizes_of_hole(sender, begin, lost);
        let may_vanish = sizes.is_some_and(|sizes| sizes.grade > Grade::Possible);
        if let Some(sizes) = sizes {
            self.sizes.get_or_insert(sizes);
        }
        let kind = if may_vanish { Kind::PmtuBlackHole } else { Kind::RtoStall };
        self.unfilled = Some(Unfilled { bytes, kind });
        let tally = Tally { lost: waited, ..Tally::new(kind, begin, self.last, &packets) };
        let mut account = Account::default();
        account.tell_instead(tally, Kind::ApplicationLimited);
        self.enter_account(account);
    }

    /// Whether the size of what a hole lacks may explain it: nothing as large has ever passed, or nothing since it opened, while
    /// the sender was heard after its timer, or lost what was larger more than once. `lost`: what the segments have at most.
    fn sizes_of_hole(&self, sender: Side, opened: i64, lost: u32) -> Option<Sizes> {
        let half = self.half(sender);
        let since = half.way.flight().largest_sacked();
        let ever = half.delivered().max(since);
        if lost <= self.always_carried() || since >= lost || ever == 0 {
            return None;
        }
        let sizes = Sizes {
            sender,
            passed: ever,
            lost,
            before: None,
            grade: Grade::Likely,
            lived: false,
            is_over: false,
        };
        if ever < lost {
            return Some(sizes);
        }
        let lives = half.sent.at() - opened > half.round_trip.timeout();
        let again = half.way.skipping() > self.path_rtt().saturating_mul(2);
        let is_likely = since > 0 && (lives || again);
        let grade = if is_likely { Grade::Likely } else { Grade::Possible };
        let fallen = Sizes { passed: since, before: Some(ever), grade, lived: lives, ..sizes };
        Some(fallen).filter(|sizes| is_likely || sizes.may_be_jumbo())
    }

    /// What never came, as a sentence.
    pub(crate) fn unfilled_in_words(&self, unfilled: Unfilled, tally: &Tally) -> String {
        format!(
            "The receiver asked for {} bytes that never came here, while what was sent behind them did ({}, {} in all): they were \
             lost on the way here whenever they were sent, or their sender died.",
            unfilled.bytes,
            times(tally),
            duration(tally.lost),
        )
    }
}
