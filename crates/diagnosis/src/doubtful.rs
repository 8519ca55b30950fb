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
use crate::silences::{Doubt, Doubtful, Silence, take_behind};

/// More do not wait: the oldest is no loss then.
const MOST_DOUBTFUL: usize = 64;

impl Connection {
    /// A silence has its name; what is in doubt waits for evidence.
    pub(crate) fn conclude(&mut self, sender: Side, silence: Silence, kind: Kind) {
        if silence.doubt.is_none() {
            self.note(kind, silence.begin, silence.end, silence.lost, &silence.packets);
            return;
        }
        let all = &mut self.half_mut(sender).doubtful;
        all.push(Doubtful { silence, kind });
        if all.len() > MOST_DOUBTFUL {
            let oldest = all.remove(0);
            self.discard(sender, &oldest.silence);
        }
    }

    /// What lies in `range` was lost before it came here: it was sent again, or the receiver asks for it.
    pub(crate) fn prove_loss(&mut self, sender: Side, range: (u64, u64)) {
        let half = self.half_mut(sender);
        if let Some(silence) = &mut half.silence
            && silence.is_behind(range)
        {
            silence.doubt = None;
        }
        for proven in take_behind(&mut half.doubtful, range) {
            let Doubtful { silence, kind } = proven;
            self.note(kind, silence.begin, silence.end, silence.lost, &silence.packets);
        }
    }

    /// What lies in `range` was not lost: it was overtaken, or the receiver has it.
    pub(crate) fn disprove_loss(&mut self, sender: Side, range: (u64, u64)) {
        let half = self.half_mut(sender);
        let open = half.silence.take_if(|silence| silence.is_behind(range));
        let doubtful = take_behind(&mut half.doubtful, range);
        for silence in open.into_iter().chain(doubtful.into_iter().map(|one| one.silence)) {
            self.discard(sender, &silence);
        }
    }

    /// Nothing has filled these holes until the end: they are losses, unless the capture lacks packets, or ends before the
    /// receiver can have asked for them.
    pub(crate) fn settle_doubtful(&mut self, sender: Side) {
        let lacks_packets = self.halves.iter().any(|half| half.counts.unseen_bytes > 0)
            || self.half(sender.other()).counts.segments == 0;
        // Other connections may share a counter that went on by one for a while (NAT).
        let counts = self.half(sender).identities.long_steps_are_losses();
        let is_shared = |silence: &Silence| silence.doubt == Some(Doubt::Numbers) && !counts;
        let rtt = self.path_rtt();
        let answerable = self.last - if rtt == 0 { LEAST_TIMEOUT } else { rtt };
        for Doubtful { silence, kind } in std::mem::take(&mut self.half_mut(sender).doubtful) {
            if lacks_packets || silence.end > answerable || is_shared(&silence) {
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
