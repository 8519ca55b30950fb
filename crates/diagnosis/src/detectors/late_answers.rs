//! Timeouts of which acknowledgements alone tell that they were needless (F-RTO, RFC 5682), where neither timestamps nor D-SACK do.
//!
//! ```text
//!   a b c d e ───── the way stands still ─────▶ arrive one after the other
//!             timer: a again ──▶                ◀── ACK up to c ◀── ACK up to e      nobody had sent c again: it was late
//! ```
//!
//! An answer to the repeat takes off all that had arrived behind it at once. The first that is not taken off was not there then, and
//! if it comes without being sent again, it had been under way since before the timer ran out, as what lies before it.

use super::{Acknowledgement, Data, Detector};
use crate::Thresholds;
use crate::account::Account;
use crate::cause::Cause;
use crate::connection::{Connection, NOT_PURE, SIDES};
use crate::findings::Tally;
use crate::gap::Gap;
use crate::kinds::Kind;

/// Of a timeout with more repeats nobody looks.
const MOST_REPEATS: usize = 64;
/// More are losses.
const MOST_TIMEOUTS: usize = 64;
/// As what it was told.
const TOLD: &[Kind] = &[Kind::RtoStall, Kind::TailLoss];

/// Those of each end.
#[derive(Debug, Clone, Default)]
pub(crate) struct LateAnswers([Option<Box<Timeouts>>; 2]);

#[derive(Debug, Clone, Default)]
struct Timeouts {
    open: Option<Timeout>,
    needless: Vec<Tally>,
}

/// The newest one, until it is known.
#[derive(Debug, Clone)]
struct Timeout {
    silence: Tally,
    una: u64,
    /// The place after all that had been sent when the timer ran out.
    high: u64,
    /// What the first answer left.
    left: Option<u64>,
    /// What was sent again since, and when.
    repeats: Vec<((u64, u64), i64)>,
}

impl Timeout {
    /// An acknowledgement up to a place, when an answer takes `soonest` at least. Whether it shows that the timeout was needless;
    /// `None`: the next one may.
    fn hear(&mut self, una: u64, now: i64, soonest: i64) -> Option<bool> {
        let Some(left) = self.left else {
            self.left = (self.una < una).then_some(una);
            return (una <= self.una || una >= self.high).then_some(false);
        };
        let is_of_it =
            |((begin, end), at): &&((u64, u64), i64)| *begin <= left && left < *end && now - at >= soonest;
        Some(
            una > left
                && self.repeats.len() < MOST_REPEATS
                && !self.repeats.iter().any(|repeat| is_of_it(&repeat)),
        )
    }
}

impl Detector for LateAnswers {
    fn pause(&mut self, of: &Connection, gap: &Gap, cause: Cause, _: &mut Account) {
        let half = of.half(gap.from);
        let (una, high) = (half.way.una(), half.way.high());
        let is_oldest = half.way.near(gap.segment.seq) == una && gap.segment.payload_bytes > 0;
        if cause != Cause::Unanswered || !gap.is_ended_by_sender() || !is_oldest || !of.repeats(gap) {
            return;
        }
        let timeouts = self.0[gap.from as usize].get_or_insert_default();
        let is_first = timeouts.open.as_ref().is_none_or(|open| open.una != una);
        let is_revealed = half.is_revealed(gap.limits.duplicate_acks);
        timeouts.open = (is_first && !is_revealed && tells_nothing_else(of, gap)).then(|| {
            let packets = [half.sent.number(), gap.segment.number];
            let silence = Tally::new(Kind::SpuriousRetransmit, of.last, of.last + gap.length, &packets)
                .costing(gap.length);
            Timeout { silence, una, high, left: None, repeats: Vec::new() }
        });
    }

    fn data(&mut self, of: &Connection, data: &Data, _: &mut Account) {
        let Some(timeouts) = &mut self.0[data.seen.from as usize] else { return };
        let Some(open) = timeouts.open.as_mut().filter(|_| !data.is_new) else { return };
        let begin = of.half(data.seen.from).way.near(data.seen.segment.seq);
        if open.repeats.len() < MOST_REPEATS {
            open.repeats.push(((begin, data.end), data.seen.now));
        }
    }

    fn acknowledgement(&mut self, of: &Connection, ack: &Acknowledgement, _: &mut Account) {
        let Some(timeouts) = &mut self.0[ack.sender as usize] else { return };
        let Some(open) = &mut timeouts.open else { return };
        let segment = ack.segment;
        let una = of.half(ack.sender).way.una();
        let is_pure = segment.payload_bytes == 0 && segment.flags.0 & NOT_PURE.0 == 0;
        // With its own data an end acknowledges the same again.
        if !is_pure && una <= open.left.unwrap_or(open.una) {
            return;
        }
        let soonest = of.soonest_answer(ack.sender.other());
        let Some(is_needless) = open.hear(una, segment.nanoseconds, soonest) else { return };
        let open = timeouts.open.take().filter(|_| is_needless && timeouts.needless.len() < MOST_TIMEOUTS);
        timeouts.needless.extend(open.map(|open| open.silence));
    }

    fn end(&mut self, _: &Connection, _: &Thresholds, account: &mut Account) {
        for side in SIDES {
            let timeouts = self.0[side as usize].take();
            let needless = timeouts.into_iter().flat_map(|timeouts| timeouts.needless);
            needless.for_each(|tally| account.correct(TOLD, tally, side));
        }
    }
}

/// Whether the ends use neither timestamps nor SACK, as far as is known.
fn tells_nothing_else(of: &Connection, gap: &Gap) -> bool {
    let may_sack = |side| of.half(side).opening.options().is_none_or(|syn| syn.sack_permitted);
    gap.segment.timestamps.is_none() && !SIDES.into_iter().all(may_sack)
}
