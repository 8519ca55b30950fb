//! Whether size alone explains what is lost at an edge: packets of two sizes that differ by one byte, in random order.
//!
//! A flow carries 1500 bytes, and 1501 were silent twice. A rate limit explains that as well as an MTU does, and so do a
//! short buffer, RED or a burst of loss: all of them lose more of what is larger, or of what comes at a bad time. None
//! of them tells 1501 bytes from 1500. So the two are sent in *rounds*: one packet of 1501 bytes and some *twins* of 1500,
//! one behind the other, in an order that is drawn anew each time:
//!
//! ```text
//!   round 1    1500  1501 ✗        1 of 2 lost
//!   round 2    1501 ✗  1500        1 of 2 lost
//!   round 3    1500 ✗  1501 ✗      2 of 2 lost: says nothing
//! ```
//!
//! If size is not why, each packet of a round was equally likely to be among those that were lost, however the losses of
//! a round, or those of several, depend on each other: the order was drawn. That the larger one is among the t lost ones
//! of a round of n has the chance t / n, and over all rounds the product (a permutation test within rounds: R. A. Fisher,
//! "The Design of Experiments", 1935). The product of n / t is a martingale, so that it may be looked at after every
//! round and still exceeds 1 / α with a chance of at most α (J. Ville, 1939).

/// A round: the larger packet, and its twins.
#[derive(Debug, Clone, Copy)]
struct Round {
    packets: u32,
    /// Packets that are neither answered nor given up.
    pending: u32,
    larger_lost: bool,
    twins_lost: u32,
}

/// The rounds at one edge of a flow.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rounds {
    /// The larger size.
    size: u32,
    /// The number of the first round here; those before it were of other edges.
    first: u32,
    rounds: Vec<Round>,
}

impl Rounds {
    /// From now on they are of this larger size; if they were before, they go on.
    pub(crate) fn of(&mut self, size: u32) {
        if self.size != size {
            self.forget();
            self.size = size;
        }
    }

    /// Nothing of them counts any more.
    pub(crate) fn forget(&mut self) {
        self.first += self.rounds.len() as u32;
        self.rounds.clear();
        self.size = 0;
    }

    /// A round begins, with so many twins; its number.
    pub(crate) fn begin(&mut self, twins: u32) -> u32 {
        let packets = twins + 1;
        self.rounds.push(Round { packets, pending: packets, larger_lost: false, twins_lost: 0 });
        self.first + self.rounds.len() as u32 - 1
    }

    /// The larger size; 0 if there is none.
    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// A packet of a round was answered in time.
    pub(crate) fn on_answered(&mut self, number: u32) {
        if let Some(round) = self.round(number) {
            round.pending = round.pending.saturating_sub(1);
        }
    }

    /// A packet of a round is given up.
    pub(crate) fn on_silent(&mut self, number: u32, size: u32) {
        let is_larger = size == self.size;
        if let Some(round) = self.round(number) {
            round.pending = round.pending.saturating_sub(1);
            if is_larger {
                round.larger_lost = true;
            } else {
                round.twins_lost += 1;
            }
        }
    }

    /// A twin that was given up was answered all the same.
    pub(crate) fn on_late_twin(&mut self, number: u32) {
        if let Some(round) = self.round(number) {
            round.twins_lost = round.twins_lost.saturating_sub(1);
        }
    }

    /// The logarithm of the chance that of all packets that were lost the larger ones are by chance alone.
    pub(crate) fn ln_chance(&self) -> f64 {
        let of = |round: &Round| (f64::from(round.twins_lost + 1) / f64::from(round.packets)).ln();
        self.rounds.iter().filter(|round| round.pending == 0 && round.larger_lost).map(of).sum()
    }

    /// Rounds in which the larger packet was lost.
    pub(crate) fn silent(&self) -> u32 {
        self.rounds.iter().filter(|round| round.larger_lost).count() as u32
    }

    /// Twins, and those of them that were lost.
    pub(crate) fn twins(&self) -> (u32, u32) {
        let sent: u32 = self.rounds.iter().map(|round| round.packets - 1).sum();
        (sent, self.rounds.iter().map(|round| round.twins_lost).sum())
    }

    fn round(&mut self, number: u32) -> Option<&mut Round> {
        self.rounds.get_mut(number.checked_sub(self.first)? as usize)
    }
}
