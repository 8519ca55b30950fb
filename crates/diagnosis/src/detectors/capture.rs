//! What limits the view of a connection: one direction only, aggregates, checksums that a NIC fills in.

use super::Detector;
use crate::Thresholds;
use crate::account::Account;
use crate::connection::{Connection, SIDES};
use crate::findings::Tally;
use crate::kinds::Kind;

/// Packets of one direction from which the silence of the other tells.
const LEAST_HEARD: u64 = 10;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Capture;

impl Detector for Capture {
    fn end(&mut self, of: &Connection, limits: &Thresholds, account: &mut Account) {
        let whole = |kind, packets: &[u64]| Tally::new(kind, of.first, of.last, packets);
        for side in SIDES {
            let half = of.half(side);
            let (counts, other_counts) = (half.counts, of.half(side.other()).counts);
            // Acknowledgements that go on say that the other end sends.
            let is_unheard = counts.unseen_bytes() > 0 || other_counts.segments() >= LEAST_HEARD;
            if counts.segments() == 0 && is_unheard {
                account.tell(whole(Kind::HalfCapture, &[]));
                account.withdraw(Kind::CaptureLoss);
            }
            if counts.aggregates() > 0 {
                account.tell(whole(Kind::Aggregates, &[]));
            }
            // A receiver discards what has a wrong checksum; an answer says that it was right on the wire.
            if counts.acknowledgements() > 0 && half.checksums.are_left_open() {
                account.tell(whole(Kind::ChecksumOffload, &[half.sent.number()]));
            }
        }
        let unseen: u64 = of.halves.iter().map(|half| half.counts.unseen_bytes()).sum();
        let bytes: u64 = of.halves.iter().map(|half| half.counts.bytes()).sum();
        // One packet at the capture's edge is no loss.
        if (unseen as f64) < limits.capture_loss * (bytes + unseen) as f64 {
            account.withdraw(Kind::CaptureLoss);
        }
    }
}
