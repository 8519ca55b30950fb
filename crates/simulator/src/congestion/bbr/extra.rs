//! What acknowledgements bring in bursts, beyond the rate, so that cwnd has room for it (`bbr_update_ack_aggregation`).

use super::{RATE_BITS, Sample, View};

const ROUNDS: u32 = 5;
const MOST_MICROSECONDS: u64 = 100_000;
const LONGEST_EPOCH: u64 = 1 << 20;

/// The most of the last five to ten rounds, in segments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extra {
    epoch_us: u64,
    acked: u64,
    most: [u32; 2],
    rounds: u32,
    place: usize,
}

impl Extra {
    pub(super) fn begin(now_us: u64) -> Extra {
        Extra { epoch_us: now_us, acked: 0, most: [0; 2], rounds: 0, place: 0 }
    }

    pub(super) fn begin_again(&mut self, now_us: u64) {
        self.epoch_us = now_us;
        self.acked = 0;
    }

    /// Room for it at a rate: for 100 ms at most.
    pub(super) fn segments(&self, rate: u64) -> u32 {
        let most = (rate * MOST_MICROSECONDS) >> RATE_BITS;
        u64::from(self.most[0].max(self.most[1])).min(most) as u32
    }

    pub(super) fn take(&mut self, rate: u64, begins_round: bool, cwnd: u32, view: &View, sample: &Sample) {
        if sample.acked == 0 || sample.rate.is_none() {
            return;
        }
        if begins_round {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.place = 1 - self.place;
                self.most[self.place] = 0;
            }
        }
        let span = view.delivered_us.saturating_sub(self.epoch_us);
        let mut expected = ((u128::from(rate) * u128::from(span)) >> RATE_BITS) as u64;
        let acked = u64::from(sample.acked);
        if self.acked <= expected || self.acked + acked >= LONGEST_EPOCH {
            self.begin_again(view.delivered_us);
            expected = 0;
        }
        self.acked = (self.acked + acked).min(LONGEST_EPOCH - 1);
        let extra = (self.acked - expected).min(u64::from(cwnd)) as u32;
        self.most[self.place] = self.most[self.place].max(extra);
    }
}
