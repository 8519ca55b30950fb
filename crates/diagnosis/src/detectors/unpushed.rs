//! Pauses of a sender that had more to send, of which nobody knows whether packets had been lost before they came here, until
//! it turns out how the sender counts its packets.

use super::Detector;
use crate::Thresholds;
use crate::account::Account;
use crate::cause::{Cause, Gap};
use crate::connection::{Connection, SIDES};
use crate::findings::{Tally, merge};
use crate::kinds::Kind;

/// What they are, if each end counts its packets by one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unpushed([Vec<Tally>; 2]);

impl Detector for Unpushed {
    fn pause(&mut self, of: &Connection, gap: &Gap, cause: Cause, _: &mut Account) {
        let half = of.half(gap.from);
        if cause == Cause::Unpushed
            && let Some(follows) = half.identities.may_follow()
            && of.has_just_left(gap.segment, gap.from, gap.length)
            // Beside the sender it is known already.
            && !of.is_sender_seen(gap.from)
            && !of.lacks_acks(gap.from)
        {
            let kind = if follows { Kind::SenderStall } else { Kind::RtoStall };
            let packets = [half.sent.number(), gap.segment.number];
            let tally = Tally::new(kind, of.last, of.last + gap.length, &packets).costing(gap.length);
            merge(&mut self.0[gap.from as usize], &tally);
        }
    }

    fn end(&mut self, of: &Connection, _: &Thresholds, account: &mut Account) {
        for side in SIDES {
            let tallies = std::mem::take(&mut self.0[side as usize]);
            if of.half(side).identities.counts_by_one() {
                tallies.into_iter().for_each(|tally| account.correct(Kind::Unexplained, tally, side));
            }
        }
    }
}
