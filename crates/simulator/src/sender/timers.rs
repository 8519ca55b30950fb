//! A sender's timers: tail-loss probe (RFC 8985 section 7), reordering, RTO (RFC 6298), closed window.

use framegauge_frames::Picoseconds;

use super::{LEAST_TIMEOUT, Sender, Timer};
use crate::congestion::State;
use crate::endpoint::{Outgoing, Tick};

/// SYNs that are sent again after the same time; then it doubles (`tcp_syn_linear_timeouts`).
const LINEAR_SYNS: u32 = 4;

impl Sender {
    /// The timer is due.
    pub(crate) fn expire(&mut self, tick: &mut impl Tick) {
        let Some(timer) = self.timer.take() else { return };
        match timer {
            Timer::Timeout(_) => self.time_out(tick),
            Timer::Probe(_) => self.send_probe(tick),
            Timer::Reordering(_) => self.stop_waiting(tick),
            Timer::Persist(_) => self.probe_window(tick),
        }
    }

    fn time_out(&mut self, tick: &mut impl Tick) {
        if self.queue.is_empty() {
            return;
        }
        if self.unacknowledged == 0 {
            return self.time_out_syn(tick);
        }
        self.counts.timeouts += 1;
        self.look_for_black_hole(tick);
        self.enter_loss(tick);
        self.timeouts += 1;
        self.rtt.back_off();
        self.resend_head(tick);
        self.set_timeout(tick);
    }

    /// An answer to a SYN has a timer of its own, which doubles at once (`reqsk_timer_handler`).
    fn time_out_syn(&mut self, tick: &mut impl Tick) {
        self.timeouts += 1;
        self.counts.timeouts += 1;
        if !self.answers_syn {
            self.counts.lost_resends += u64::from(self.queue.get(0).is_resent);
        }
        if self.answers_syn || self.timeouts > LINEAR_SYNS {
            self.rtt.back_off();
        }
        self.resend(tick, 0);
        self.set_timeout(tick);
    }

    fn resend_head(&mut self, tick: &mut impl Tick) {
        // It stays marked as lost: that it was sent again is counted beside.
        if let Some(place) = self.queue.next_lost() {
            self.resend(tick, place);
        } else if !self.queue.is_empty() {
            self.resend(tick, 0);
        }
    }

    /// `tcp_send_loss_probe`.
    fn send_probe(&mut self, tick: &mut impl Tick) {
        if self.probe.is_none() && !self.queue.is_empty() {
            let has_new = self.send_probe_of_new(tick);
            let is_sent =
                has_new || !self.held.holds_any(tick.now() - tick.held_back()) && self.resend_tail(tick);
            if is_sent {
                self.probe = Some((self.next, !has_new));
                self.counts.probes += 1;
                // Whatever the head's age is: what was pending is forgotten (`icsk_pending = 0`).
                return self.set_timeout(tick);
            }
        }
        self.rearm(tick);
    }

    fn resend_tail(&mut self, tick: &mut impl Tick) -> bool {
        let Some(place) = (self.queue.len() as usize).checked_sub(1) else { return false };
        if self.queue.last().is_some_and(|tail| tail.is_acked) {
            return false;
        }
        self.resend_as_probe(tick, place);
        true
    }

    /// What might have been overtaken only is lost now (`tcp_rack_reo_timeout`).
    fn stop_waiting(&mut self, tick: &mut impl Tick) {
        let wait = self.detect_losses(tick.now());
        if self.queue.lost > 0 && self.state < State::Recovery {
            self.counts.recoveries += 1;
            self.remember(0);
            if self.state != State::Reduced {
                self.undo.ssthresh = self.current_threshold();
                self.begin_reduction();
            }
            self.set_state(tick, State::Recovery);
            self.reduction.out = 0;
            if !self.control.is_model() {
                self.window.cwnd = self.window.cwnd.min(self.queue.in_flight() + 1);
            }
        }
        self.resend_lost(tick);
        if let Some(wait) = wait {
            let span = wait + LEAST_TIMEOUT;
            self.timer = Some(Timer::Reordering(tick.expiry(span)));
        } else if self.timer.is_none() {
            self.set_timeout(tick);
        }
    }

    /// The window is closed: asks for it with the segment before (`tcp_xmit_probe_skb`).
    fn probe_window(&mut self, tick: &mut impl Tick) {
        self.rtt.back_off();
        tick.transmit(Outgoing { sequence: self.unacknowledged - 1, ..Outgoing::default() });
        self.timer = Some(Timer::Persist(tick.expiry(self.rtt.timeout())));
    }

    /// The RTO begins now (`tcp_reset_xmit_timer` with ICSK_TIME_RETRANS).
    pub(super) fn set_timeout(&mut self, tick: &impl Tick) {
        self.timer = Some(Timer::Timeout(tick.expiry(self.rtt.timeout())));
    }

    /// The RTO of the head of the queue, whenever that was sent (`tcp_rearm_rto`).
    fn rearm(&mut self, tick: &impl Tick) {
        let Some(head) = self.queue.first() else {
            self.timer = None;
            return;
        };
        let elapsed = tick.now() - head.at;
        let tick_span = tick.settings().tick;
        let left = (self.rtt.timeout() - elapsed).max(tick_span);
        self.timer = Some(Timer::Timeout(tick.expiry(left)));
    }

    /// After an acknowledgement: a probe if one may be sent, or the RTO (`tcp_set_xmit_timer`).
    pub(super) fn set_timer(&mut self, tick: &impl Tick) {
        if self.queue.is_empty() {
            self.timer = None;
        } else if !self.set_probe(tick, true) {
            self.set_timeout(tick);
        }
    }

    /// Schedules a tail-loss probe (`tcp_schedule_loss_probe`); `advances`: an acknowledgement has just moved the RTO.
    pub(super) fn set_probe(&mut self, tick: &impl Tick, advances: bool) -> bool {
        let settings = tick.settings();
        let may = matches!(self.state, State::Open | State::Reduced);
        let Some(head) = self.queue.first().filter(|_| settings.sack && may) else { return false };
        let span = match self.rtt.smoothed() {
            Some(rtt) => {
                let extra = match self.queue.len() {
                    1 => settings.minimum_rto,
                    _ => LEAST_TIMEOUT,
                };
                rtt.saturating_mul(2) + extra
            }
            None => settings.initial_rto,
        };
        let timeout = match advances {
            true => self.rtt.timeout(),
            false => self.rtt.timeout() - (tick.now() - head.at),
        };
        let span = if timeout > Picoseconds::ZERO { span.min(timeout) } else { span };
        self.timer = Some(Timer::Probe(tick.expiry(span)));
        true
    }
}
