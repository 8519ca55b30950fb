//! What BBR makes cwnd: twice what the path holds, and less for a while where something was lost.

use super::{Bbr, INITIAL_WINDOW, LEAST_WINDOW, Mode, Sample, View};
use crate::congestion::{State, Window};

impl Bbr {
    /// cwnd is about to shrink for a loss: it is kept for later (`bbr_save_cwnd`).
    pub(crate) fn keep_window(&mut self, cwnd: u32) {
        self.prior_window = match self.before < State::Recovery && self.mode != Mode::ProbeRtt {
            true => cwnd,
            false => self.prior_window.max(cwnd),
        };
    }

    /// `bbr_set_cwnd`.
    pub(super) fn set_window(&mut self, window: &mut Window, view: &View, sample: &Sample, rate: u64) {
        let mut cwnd = window.cwnd;
        if sample.acked > 0 && !self.recovers(&mut cwnd, view, sample) {
            let mut target = self.pipe(rate, self.window_gain);
            if self.is_full {
                target += self.extra.segments(rate);
            }
            let target = self.roomy(target, view);
            if self.is_full {
                cwnd = (cwnd + sample.acked).min(target);
            } else if cwnd < target || view.delivered < u64::from(INITIAL_WINDOW) {
                cwnd += sample.acked;
            }
            cwnd = cwnd.max(LEAST_WINDOW);
        }
        window.cwnd = cwnd;
        if self.mode == Mode::ProbeRtt {
            window.cwnd = cwnd.min(LEAST_WINDOW);
        }
    }

    /// A segment for each that was delivered in the first round of a recovery; afterwards the cwnd from before
    /// (`bbr_set_cwnd_to_recover_or_restore`).
    fn recovers(&mut self, cwnd: &mut u32, view: &View, sample: &Sample) -> bool {
        let (before, state) = (std::mem::replace(&mut self.before, view.state), view.state);
        if sample.losses > 0 {
            *cwnd = cwnd.saturating_sub(sample.losses).max(1);
        }
        if state == State::Recovery && before != State::Recovery {
            self.conserves = true;
            self.round_end = view.delivered;
            *cwnd = view.in_flight + sample.acked;
        } else if before >= State::Recovery && state < State::Recovery {
            *cwnd = (*cwnd).max(self.prior_window);
            self.conserves = false;
        }
        if self.conserves {
            *cwnd = (*cwnd).max(view.in_flight + sample.acked);
        }
        self.conserves
    }
}
