//! Pauses of which nobody knows whether packets had been lost before they came here, until it turns out how the sender counts
//! its packets: of a sender that had more to send, and of one that went on with new data behind missing numbers.

use super::{Data, Detector};
use crate::Thresholds;
use crate::account::Account;
use crate::cause::Cause;
use crate::connection::{Connection, SIDES};
use crate::findings::{Tally, merge};
use crate::gap::Gap;
use crate::kinds::Kind;

/// What they are, if each end counts its packets by one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unpushed([Option<Box<Pauses>>; 2]);

#[derive(Debug, Clone, Default)]
struct Pauses {
    /// By what they were taken for.
    unexplained: Vec<Tally>,
    idle: Vec<Tally>,
    /// The newest, until the next new data tells whether it had been waiting.
    open: Option<Open>,
}

#[derive(Debug, Clone)]
struct Open {
    tally: Tally,
    /// The place after what was lost.
    high: u64,
}

impl Pauses {
    fn settle(&mut self, kind: Kind) {
        if let Some(open) = self.open.take() {
            merge(&mut self.idle, &Tally { kind, ..open.tally });
        }
    }
}

impl Detector for Unpushed {
    fn pause(&mut self, of: &Connection, gap: &Gap, cause: Cause, _: &mut Account) {
        let is_open = cause == Cause::Shown(Kind::ApplicationLimited) && gap.is_ended_by_sender();
        if cause != Cause::Unpushed && !is_open {
            return;
        }
        let half = of.half(gap.from);
        let Some(follows) = half.identities.may_follow() else { return };
        // Beside the sender it is known already.
        if !of.has_just_left(gap.segment, gap.from, gap.length)
            || of.is_sender_seen(gap.from)
            || of.lacks_acks(gap.from)
        {
            return;
        }
        let packets = [half.sent.number(), gap.segment.number];
        let tally = |kind| Tally::new(kind, of.last, of.last + gap.length, &packets).costing(gap.length);
        let pauses = self.0[gap.from as usize].get_or_insert_default();
        // An acknowledgement that the file lacks had a number, too.
        let missing =
            u64::from(half.identities.may_miss()).saturating_sub(of.owed_acknowledgements(gap.from));
        if cause == Cause::Unpushed {
            if follows || missing > 0 {
                let kind = if follows { Kind::SenderStall } else { Kind::RtoStall };
                merge(&mut pauses.unexplained, &tally(kind));
            }
            return;
        }
        // The numbers of a hole are those of what is missing in it, and before the first data nobody knows whether there is one.
        let is_told = half.way.is_seen() && !of.leaves_hole(gap);
        if missing > 0 && is_told && gap.length <= of.longest_wait(gap.from, missing) {
            pauses.settle(Kind::TailLoss);
            let high = half.way.near(gap.segment.seq) + missing * u64::from(of.mss(gap.from));
            pauses.open = Some(Open { tally: tally(Kind::TailLoss), high });
        }
    }

    fn data(&mut self, of: &Connection, data: &Data, _: &mut Account) {
        let from = data.seen.from;
        let Some(pauses) = &mut self.0[from as usize] else { return };
        let Some(open) = pauses.open.as_ref().filter(|open| data.end > open.high) else { return };
        let end = open.tally.end;
        let acknowledged = of.half(from).last_progress().max(end);
        let had_waited = of.had_waited(from, (acknowledged, end), data.seen.now);
        pauses.settle(if had_waited { Kind::RtoStall } else { Kind::TailLoss });
    }

    fn end(&mut self, of: &Connection, _: &Thresholds, account: &mut Account) {
        for side in SIDES {
            let Some(mut pauses) = self.0[side as usize].take() else { continue };
            if !of.half(side).identities.counts_by_one() || of.lacks_acks(side) {
                continue;
            }
            pauses.settle(Kind::TailLoss);
            // What the capture lacks had a number, too.
            let lacks_packets = of.halves.iter().any(|half| half.counts.unseen_bytes() > 0);
            if lacks_packets || !of.half(side).identities.long_steps_are_losses() {
                pauses.idle.clear();
            }
            for tally in pauses.unexplained {
                account.correct(&[Kind::Unexplained], tally, side);
            }
            for tally in pauses.idle {
                account.correct(&[Kind::ApplicationLimited], tally, side);
            }
        }
    }
}
