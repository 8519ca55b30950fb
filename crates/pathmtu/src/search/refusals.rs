//! What becomes of probes that somebody calls too big.

use super::{Search, Sent};
use crate::verdict::Told;
use std::time::Duration;

impl Search {
    /// Somebody says that a probe was too big, even if the MTU that is named would let it pass: then that is wrong, and the
    /// probe is gone all the same. Unless this host said so itself, it may yet arrive, which disproves what was said.
    pub fn on_too_big(&mut self, now: Duration, flow: u16, number: u32, refusal: Told) {
        let known = self.outstanding.get(&number).or_else(|| self.given_up.get(&number));
        let Some(sent) = known.copied().filter(|sent| sent.flow == flow) else { return };
        self.resolve(number);
        self.flows[usize::from(flow)].on_refused(sent.bytes, refusal);
        if refusal.by.is_some() {
            self.remember(number, sent);
            self.disproof_until = now + self.patience.limit();
        }
    }

    /// Somebody says that a probe to this path was too big, without saying which: every one under way that is larger.
    pub fn on_too_big_unnamed(&mut self, now: Duration, flow: u16, refusal: Told) {
        let Some(mtu) = refusal.mtu_bytes else { return };
        let larger =
            |(number, sent): (&u32, &Sent)| (sent.flow == flow && sent.bytes > mtu).then_some(*number);
        let numbers: Vec<u32> = self.outstanding.iter().filter_map(larger).collect();
        for number in numbers {
            self.on_too_big(now, flow, number, refusal);
        }
    }
}
