//! Resets that do not acknowledge the SYN, which its sender does not heed (RFC 9293 section 3.10.7.3), where nothing else came.

use super::{Detector, Seen};
use crate::Thresholds;
use crate::account::Account;
use crate::connection::Connection;
use crate::findings::Tally;
use crate::kinds::Kind;

/// How many came, when, and in which packet the first was.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UnheededReset {
    count: u32,
    first: i64,
    last: i64,
    number: u64,
}

impl Detector for UnheededReset {
    fn segment(&mut self, of: &Connection, packet: &Seen, _: &mut Account) {
        let resets = of.unheeded_resets();
        if resets == self.count {
            return;
        }
        if self.count == 0 {
            (self.first, self.number) = (packet.now, packet.segment.number);
        }
        (self.count, self.last) = (resets, packet.now);
    }

    /// Where the SYN was repeated, or answered, that says more.
    fn end(&mut self, of: &Connection, _: &Thresholds, account: &mut Account) {
        if self.count > 0 && of.is_unanswered() {
            let tally = Tally::new(Kind::UnheededReset, self.first, self.last, &[self.number]);
            account.tell(tally.times(self.count.into()));
        }
    }
}
