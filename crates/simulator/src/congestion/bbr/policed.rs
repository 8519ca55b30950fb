//! BBR's look at a token bucket that drops what is over a rate (`bbr_lt_bw_sampling`): two intervals in which much was lost
//! and about as much was delivered.

use super::{ONE, PACED_PER_SECOND, RATE_BITS, Sample, View};

const LEAST_ROUNDS: u32 = 4;
const MOST_ROUNDS: u32 = 4 * LEAST_ROUNDS;
/// A fifth of what was delivered, in 256ths.
const MUCH: u64 = 50;
/// Rates are alike within an eighth, or 4 kb/s.
const ALIKE: u64 = ONE / 8;
const ALIKE_BYTES_PER_SECOND: u64 = 4000 / 8;
/// It is believed for so many rounds.
const BELIEVED_ROUNDS: u32 = 48;

/// The interval under way, and what the last one gave.
#[derive(Debug, Clone, Copy)]
pub(super) struct Policed {
    is_sampling: bool,
    is_believed: bool,
    rate: u64,
    rounds: u32,
    began_ms: u64,
    delivered: u64,
    lost: u64,
}

impl Policed {
    pub(super) fn new(view: &View) -> Policed {
        let mut policed = Policed {
            is_sampling: false,
            is_believed: false,
            rate: 0,
            rounds: 0,
            began_ms: 0,
            delivered: 0,
            lost: 0,
        };
        policed.begin(view);
        policed
    }

    /// The rate of the bucket, while it is believed.
    pub(super) fn rate(&self) -> Option<u64> {
        self.is_believed.then_some(self.rate)
    }

    fn begin(&mut self, view: &View) {
        self.began_ms = view.delivered_us / 1000;
        self.delivered = view.delivered;
        self.lost = view.lost;
        self.rounds = 0;
    }

    /// Takes a sample in. Whether the rate is believed no more, and probing is to begin anew.
    pub(super) fn take(&mut self, view: &View, sample: &Sample, begins_round: bool, probes: bool) -> bool {
        if self.is_believed {
            self.rounds += u32::from(probes && begins_round);
            let ends = self.rounds >= BELIEVED_ROUNDS;
            if ends {
                *self = Policed::new(view);
            }
            return ends;
        }
        if !self.is_sampling {
            if sample.losses == 0 {
                return false;
            }
            self.begin(view);
            self.is_sampling = true;
        }
        self.rounds += u32::from(begins_round && !sample.is_app_limited);
        if sample.is_app_limited || self.rounds > MOST_ROUNDS {
            *self = Policed::new(view);
        } else if self.rounds >= LEAST_ROUNDS && sample.losses > 0 {
            self.end(view);
        }
        false
    }

    fn end(&mut self, view: &View) {
        let (lost, delivered) = (view.lost - self.lost, view.delivered - self.delivered);
        let milliseconds = (view.delivered_us / 1000).saturating_sub(self.began_ms);
        if delivered == 0 || lost * ONE < MUCH * delivered || milliseconds < 1 {
            return;
        }
        let rate = (delivered << RATE_BITS) / (milliseconds * 1000);
        let apart = rate.abs_diff(self.rate);
        let apart_bytes =
            ((u128::from(apart) * u128::from(view.mss) * u128::from(PACED_PER_SECOND)) >> RATE_BITS) as u64;
        if self.rate > 0 && (apart * ONE <= ALIKE * self.rate || apart_bytes <= ALIKE_BYTES_PER_SECOND) {
            self.rate = (rate + self.rate) / 2;
            self.is_believed = true;
            self.rounds = 0;
            return;
        }
        self.rate = rate;
        self.begin(view);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::State;

    const MSS: u32 = 1448;

    /// A round trip of 10 ms in which so many segments are delivered and so many are lost.
    fn round(view: &mut View, delivered: u64, lost: u64) -> Sample {
        view.delivered += delivered;
        view.delivered_us += 10_000;
        view.lost += lost;
        Sample { losses: lost as u32, ..Sample::default() }
    }

    fn view() -> View {
        View {
            now_us: 0,
            now_ticks: 0,
            second_ticks: 250,
            state: State::Open,
            delivered: 0,
            delivered_us: 0,
            lost: 0,
            in_flight: 0,
            mss: MSS,
            smoothed_us: None,
            departs_in_us: 0,
            limit: u64::MAX,
        }
    }

    /// Two intervals of four rounds with the same rate: 80 segments per round trip, and a quarter of that lost.
    #[test]
    fn a_bucket_is_believed_after_two_intervals_and_for_48_rounds() {
        let mut view = view();
        let mut policed = Policed::new(&view);
        let mut rounds = 0;
        while policed.rate().is_none() {
            let sample = round(&mut view, 80, 20);
            policed.take(&view, &sample, true, true);
            rounds += 1;
        }
        assert!((8..=10).contains(&rounds), "{rounds}");
        assert_eq!(policed.rate(), Some((80 << RATE_BITS) / 10_000));
        let sample = round(&mut view, 80, 0);
        assert!((1..BELIEVED_ROUNDS).all(|_| !policed.take(&view, &sample, true, true)));
        assert!(policed.take(&view, &sample, true, true));
        assert_eq!(policed.rate(), None);
    }

    #[test]
    fn few_losses_and_rates_that_vary_are_no_bucket() {
        for rounds in [vec![(80, 10)], vec![(80, 20), (160, 40), (320, 80)]] {
            let mut view = view();
            let mut policed = Policed::new(&view);
            for number in 0..200 {
                let (delivered, lost) = rounds[number / 4 % rounds.len()];
                let sample = round(&mut view, delivered, lost);
                policed.take(&view, &sample, true, true);
                assert_eq!(policed.rate(), None, "{rounds:?}");
            }
        }
    }
}
