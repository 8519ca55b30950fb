//! Silences that end behind a hole, until it shows whether anything was lost.
//!
//! ```text
//!   data ..... silence ..... [hole] data       the hole is filled by a repeat, or by nothing until the end: a loss
//!                                              it is filled by what was overtaken: reordering
//!                                              it is acknowledged as it is: the capture lacks it
//! ```
//!
//! Only the first is a loss. Of the others the silence is that of a sender that had nothing to send.

use crate::connection::{Connection, Side};
use crate::copies::LEAST_TIMEOUT;
use crate::kinds::Kind;
use crate::silences::{Doubt, Doubtful, Silence};

impl Connection {
    /// A silence has its name; what is in doubt waits for evidence.
    pub(crate) fn conclude(&mut self, sender: Side, silence: Silence, kind: Kind) {
        if silence.doubt.is_none() {
            self.note(kind, silence.begin, silence.end, silence.lost, &silence.packets);
            return;
        }
        if let Some(oldest) = self.half_mut(sender).silences.doubt(Doubtful { silence, kind }) {
            self.discard(sender, &oldest.silence);
        }
    }

    /// New data up to a place comes before the sender can have heard of what ended its silence: that was no probe, of which there is
    /// one (RFC 8985 section 7.3), but the first of what it had to send after a rest. Where it counts its packets, they tell.
    #[inline]
    pub(crate) fn go_on_unasked(&mut self, sender: Side, end: u64, now: i64) {
        if self.half(sender).silences.is_over() && !self.half(sender).identities.counts_by_one() {
            let since = now - self.path_rtt() / 2;
            if let Some(silence) = self.half_mut(sender).silences.take_unasked(end, since) {
                self.discard(sender, &silence);
            }
        }
    }

    /// What lies in `range` was lost before it came here: it was sent again.
    pub(crate) fn prove_loss(&mut self, sender: Side, range: (u64, u64)) {
        for Doubtful { silence, kind } in self.half_mut(sender).silences.prove(range) {
            self.note(kind, silence.begin, silence.end, silence.lost, &silence.packets);
        }
    }

    /// What lies in `range` was not lost: it was overtaken, or the receiver has it.
    pub(crate) fn disprove_loss(&mut self, sender: Side, range: (u64, u64)) {
        for silence in self.half_mut(sender).silences.disprove(range) {
            self.discard(sender, &silence);
        }
    }

    /// Nothing has filled these holes until the end: they are losses if the receiver asks for them, or else unless the capture lacks
    /// packets, or ends before it can have asked.
    pub(crate) fn settle_doubtful(&mut self, sender: Side) {
        let lacks_packets = self.halves.iter().any(|half| half.counts.unseen_bytes() > 0)
            || self.half(sender.other()).counts.segments() == 0;
        // Other connections may share a counter that went on by one for a while (NAT).
        let counts = self.half(sender).identities.long_steps_are_losses();
        let is_shared = |silence: &Silence| silence.doubt == Some(Doubt::Numbers) && !counts;
        let rtt = self.path_rtt();
        let answerable = self.last - if rtt == 0 { LEAST_TIMEOUT } else { rtt };
        for Doubtful { silence, kind } in self.half_mut(sender).silences.take_doubtful() {
            let is_asked = matches!(silence.doubt, Some(Doubt::Hole { is_asked: true, .. }));
            if !is_asked && (lacks_packets || silence.end > answerable || is_shared(&silence)) {
                self.discard(sender, &silence);
            } else {
                self.note(kind, silence.begin, silence.end, silence.lost, &silence.packets);
            }
        }
    }

    fn discard(&mut self, sender: Side, silence: &Silence) {
        self.stalls.retain(|stall| *stall != (silence.begin, sender));
        self.note(Kind::ApplicationLimited, silence.begin, silence.end, silence.lost, &[]);
    }
}
