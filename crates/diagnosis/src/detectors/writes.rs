//! Pauses behind PSH, taken for those of a program that writes whole segments, until it turns out that its writes are others.

use super::Detector;
use crate::Thresholds;
use crate::account::Account;
use crate::cause::Cause;
use crate::connection::{Connection, SIDES};
use crate::findings::{Tally, merge};
use crate::gap::Gap;
use crate::kinds::Kind;

/// Those of each end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writes([Option<Box<Pauses>>; 2]);

/// What they are if more was there: where nothing can have been lost before the tap, and where that is so if the sender turns out
/// to count its packets by one.
#[derive(Debug, Clone, Default)]
struct Pauses {
    seen: Vec<Tally>,
    counted: Vec<Tally>,
}

impl Detector for Writes {
    fn pause(&mut self, of: &Connection, gap: &Gap, cause: Cause, _: &mut Account) {
        let half = of.half(gap.from);
        if cause != Cause::Shown(Kind::ApplicationLimited)
            || !gap.is_ended_by_sender()
            || !half.sent.may_be_write()
            || gap.length > half.round_trip.timeout()
            || !of.has_just_left(gap.segment, gap.from, gap.length)
        {
            return;
        }
        let pauses = self.0[gap.from as usize].get_or_insert_default();
        let place = if of.is_sender_seen(gap.from) {
            &mut pauses.seen
        } else if half.identities.may_follow() == Some(true) {
            &mut pauses.counted
        } else {
            return;
        };
        let packets = [half.sent.number(), gap.segment.number];
        let tally = Tally::new(Kind::SenderStall, of.last, of.last + gap.length, &packets);
        merge(place, &tally.costing(gap.length));
    }

    fn end(&mut self, of: &Connection, _: &Thresholds, account: &mut Account) {
        for side in SIDES {
            let Some(pauses) = self.0[side as usize].take() else { continue };
            let half = of.half(side);
            // Where packets are missing, a burst seems to be smaller than it is.
            if !half.sent.is_cut_by_kernel() || half.counts.unseen_bytes() > 0 {
                continue;
            }
            let counted = pauses.counted.into_iter().filter(|_| half.identities.counts_by_one());
            let all = pauses.seen.into_iter().chain(counted);
            all.for_each(|tally| account.correct(&[Kind::ApplicationLimited], tally, side));
        }
    }
}
