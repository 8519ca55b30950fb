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
use crate::half::Sizes;
use crate::kinds::Kind;
use crate::words::{duration, times};
use crate::{Thresholds, account::Account};

impl Connection {
    /// The connection ends with a hole: whose time it was since the receiver asked for it. A timer had to run out meanwhile.
    pub(crate) fn settle_unfilled(&mut self, sender: Side, limits: &Thresholds) {
        let half = self.half(sender);
        let una = half.way.una();
        let Some(hole) = half.way.skipped((una, half.way.high())).filter(|hole| hole.begin == una) else {
            return;
        };
        let asks = half.way.flight().sacked_bytes() > 0 || half.is_revealed(limits.duplicate_acks);
        let waited = self.last - hole.since;
        if !asks || half.counts.unseen_bytes > 0 || waited <= half.round_trip.timeout() {
            return;
        }
        let (begin, bytes) = (hole.since, hole.end - hole.begin);
        let lost = u32::try_from(bytes).unwrap_or(u32::MAX).min(half.mss());
        let passed = half.delivered.max(half.way.flight().largest_sacked());
        let may_vanish = passed > 0 && passed < lost && lost > self.always_carried();
        let packets = [hole.number, self.last_number];
        self.unfilled_bytes = bytes;
        if may_vanish {
            self.sizes.get_or_insert(Sizes { passed, lost, is_certain: false });
        }
        let kind = if may_vanish { Kind::PmtuBlackHole } else { Kind::RtoStall };
        let tally = Tally { lost: waited, ..Tally::new(kind, begin, self.last, &packets) };
        let mut account = Account::default();
        account.tell_instead(tally, Kind::ApplicationLimited);
        self.enter_account(account);
    }

    /// What never came, as a sentence.
    pub(crate) fn unfilled_in_words(&self, tally: &Tally) -> String {
        format!(
            "The receiver asked for {} bytes that never came here, while what was sent behind them did ({}, {} in all): they were \
             lost on the way here whenever they were sent, or their sender died.",
            self.unfilled_bytes,
            times(tally),
            duration(tally.lost),
        )
    }
}
