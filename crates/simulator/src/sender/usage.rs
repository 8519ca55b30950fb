//! Whether cwnd is used: what is not used decays (`tcp_cwnd_validate`, `tcp_slow_start_after_idle_check`).

use framegauge_frames::Picoseconds;

use super::{Sender, Usage};
use crate::congestion::State;
use crate::endpoint::Tick;

impl Sender {
    /// cwnd decays while nothing is sent (`tcp_slow_start_after_idle_check`).
    pub(super) fn restart_after_idle(&mut self, tick: &impl Tick) {
        let settings = tick.settings();
        if !self.queue.is_empty() || self.last_sent == Picoseconds::ZERO {
            return;
        }
        let (now, rto) = (tick.now(), self.rtt.timeout());
        self.control.begin_again(now, self.last_sent);
        // A FIN comes by no write (`tcp_send_fin`).
        if self.unsent() == 0 {
            return;
        }
        let mut idle = now - self.last_sent;
        if !settings.slow_start_after_idle || idle <= rto || self.control.is_model() {
            return;
        }
        self.window.ssthresh = self.current_threshold();
        let least = settings.initial_window_segments.min(self.window.cwnd);
        while idle > rto && self.window.cwnd > least {
            idle = idle - rto;
            self.window.cwnd >>= 1;
        }
        self.window.cwnd = self.window.cwnd.max(least);
        self.usage = Usage { since: now, ..Usage::default() };
        self.last_sent = now;
    }

    /// Whether cwnd is used: unused it must not grow (RFC 7661's aim; `tcp_cwnd_validate`).
    pub(super) fn validate(&mut self, tick: &impl Tick, is_cwnd_limited: bool) {
        let (out, usage) = (self.queue.len(), &mut self.usage);
        if self.unacknowledged >= usage.round_end
            || is_cwnd_limited
            || !usage.is_limited && out > usage.most_out
        {
            usage.is_limited = is_cwnd_limited;
            usage.most_out = out;
            usage.round_end = self.next;
        }
        let limited =
            usage.is_limited || self.window.is_slow_start() && self.window.cwnd < 2 * usage.most_out;
        if limited {
            usage.used = 0;
            usage.since = tick.now();
            return;
        }
        usage.used = usage.used.max(out);
        let is_long = tick.now() - usage.since >= self.rtt.timeout();
        let may_shrink = tick.settings().slow_start_after_idle && !self.control.is_model();
        if may_shrink && is_long && self.state == State::Open {
            let used = usage.used.max(tick.settings().initial_window_segments);
            usage.used = 0;
            usage.since = tick.now();
            if used < self.window.cwnd {
                self.window.ssthresh = self.current_threshold();
                self.window.cwnd = (self.window.cwnd + used) >> 1;
            }
        }
    }
}
