//! Recovery from loss: when it begins and ends, how cwnd shrinks meanwhile, and when all that is taken back
//! (`tcp_fastretrans_alert`).

use super::acks::{Found, Then};
use super::{Reduction, Sender, Undo};
use crate::congestion::{Bbr, NO_THRESHOLD, State};
use crate::endpoint::Tick;

impl Sender {
    /// What an acknowledgement means that is not just the next.
    pub(super) fn judge(&mut self, tick: &mut impl Tick, ack: &mut Found) -> Then {
        if ack.has_mark {
            // No undo of a reduction that a mark asked for.
            self.undo.ssthresh = 0;
        }
        if self.state == State::Open {
            self.undo.first_resend = None;
        } else if self.unacknowledged >= self.high && self.leave_state(tick) {
            return Then::Nothing;
        }
        match self.state {
            State::Recovery => {
                if !tick.settings().sack {
                    self.count_duplicate(ack);
                }
                if ack.advances && self.undo_partly(tick, ack) {
                    return Then::Nothing;
                }
                self.undo_by_duplicates(tick);
                self.identify_losses(tick, ack);
                if self.state != State::Recovery {
                    if self.queue.lost == 0 {
                        self.keep_open(tick);
                        return Then::Nothing;
                    }
                    self.enter_recovery(tick, ack.has_mark);
                }
            }
            State::Loss => {
                let then = self.after_timeout(tick, ack);
                self.identify_losses(tick, ack);
                if !(self.state == State::Open || ack.has_lost_resend) {
                    return then;
                }
                if !self.enter_if_lost(tick, ack) {
                    return then;
                }
            }
            State::Open | State::Disorder | State::Reduced => {
                if !tick.settings().sack {
                    self.recount_duplicates(ack);
                }
                if self.state <= State::Disorder {
                    self.undo_by_duplicates(tick);
                }
                self.identify_losses(tick, ack);
                if !self.enter_if_lost(tick, ack) {
                    return Then::Nothing;
                }
            }
        }
        Then::Lost
    }

    /// Outside of recovery, what duplicates stood for is over as soon as anything is acknowledged (`tcp_reset_reno_sack`).
    fn recount_duplicates(&mut self, ack: &mut Found) {
        if ack.advances {
            self.queue.forget_duplicates(0);
        }
        self.count_duplicate(ack);
    }

    fn enter_if_lost(&mut self, tick: &mut impl Tick, ack: &Found) -> bool {
        if self.queue.lost == 0 {
            self.try_to_open(tick, ack);
            return false;
        }
        if self.fails_path_probe(tick) {
            return false;
        }
        self.enter_recovery(tick, ack.has_mark);
        true
    }

    /// A state ends when all is acknowledged that was sent before it began. Whether there is no more to do.
    fn leave_state(&mut self, tick: &mut impl Tick) -> bool {
        match self.state {
            State::Reduced if self.unacknowledged > self.high => {
                self.end_reduction();
                self.set_state(tick, State::Open);
            }
            State::Recovery => {
                if !tick.settings().sack {
                    self.queue.forget_duplicates(0);
                }
                if self.undo_whole(tick) {
                    return true;
                }
                self.end_reduction();
            }
            _ => {}
        }
        false
    }

    pub(super) fn set_state(&mut self, tick: &mut impl Tick, state: State) {
        self.state = state;
        let acked = self.acked(tick, None);
        self.control.enter(state, &acked);
        if state == State::Loss {
            self.tell_bbr(tick, Bbr::time_out);
        }
    }

    fn try_to_open(&mut self, tick: &mut impl Tick, ack: &Found) {
        if self.queue.resent == 0 {
            self.undo.first_resend = None;
        }
        if ack.has_mark {
            self.enter_reduction(tick);
        }
        if self.state != State::Reduced {
            self.keep_open(tick);
        }
    }

    /// `tcp_try_keep_open`.
    pub(super) fn keep_open(&mut self, tick: &mut impl Tick) {
        let state = match self.queue.acked > 0 || self.queue.lost > 0 || self.queue.resent > 0 {
            true => State::Disorder,
            false => State::Open,
        };
        if self.state != state {
            self.set_state(tick, state);
            self.high = self.next;
        }
    }

    /// A mark was met (`tcp_enter_cwr`): once per window.
    pub(super) fn enter_reduction(&mut self, tick: &mut impl Tick) {
        self.undo.ssthresh = 0;
        if self.state < State::Reduced {
            self.undo.marker = None;
            self.begin_reduction();
            self.owes_reduction = true;
            self.set_state(tick, State::Reduced);
        }
    }

    pub(super) fn begin_reduction(&mut self) {
        self.high = self.next;
        self.probe = None;
        self.window.count = 0;
        self.reduction = Reduction { prior_cwnd: self.window.cwnd, ..Reduction::default() };
        self.window.ssthresh = self.control.threshold(&self.window);
    }

    fn enter_recovery(&mut self, tick: &mut impl Tick, by_mark: bool) {
        self.counts.recoveries += 1;
        let reducing = self.is_reducing();
        self.remember(0);
        if !reducing {
            if !by_mark {
                self.undo.ssthresh = self.current_threshold();
            }
            self.begin_reduction();
            self.owes_reduction |= self.is_ecn;
        }
        self.set_state(tick, State::Recovery);
        if !by_mark && !reducing {
            self.window.ssthresh =
                self.control.threshold_of_loss(self.reduction.prior_cwnd, self.window.ssthresh);
        }
    }

    /// What is needed to take it back (`tcp_init_undo`). A duplicate may tell of a tail-loss probe that is still under way.
    pub(super) fn remember(&mut self, ssthresh: u32) {
        let probes = i64::from(self.probe.is_some_and(|(_, has_resent)| has_resent));
        let resends = i64::from(self.queue.resent) + probes;
        self.undo = Undo {
            marker: Some(self.unacknowledged),
            resends: if resends > 0 { resends } else { -1 },
            cwnd: self.window.cwnd,
            ssthresh,
            first_resend: self.undo.first_resend,
        };
    }

    /// Proportional rate reduction (RFC 6937), with slow start while a resend is not lost again (`tcp_cwnd_reduction`).
    pub(super) fn reduce(&mut self, ack: &Found) {
        if ack.delivered == 0 || self.reduction.prior_cwnd == 0 {
            return;
        }
        let in_flight = i64::from(self.queue.in_flight());
        let reduction = &mut self.reduction;
        reduction.delivered += ack.delivered;
        let (delivered, out) = (i64::from(reduction.delivered), i64::from(reduction.out));
        let missing = i64::from(self.window.ssthresh) - in_flight;
        let more = if missing < 0 {
            let prior = i64::from(reduction.prior_cwnd);
            (i64::from(self.window.ssthresh) * delivered + prior - 1) / prior - out
        } else {
            let mut more = (delivered - out).max(i64::from(ack.delivered));
            more += i64::from(ack.advances && ack.losses == 0);
            more.min(missing)
        };
        let more = more.max(i64::from(out == 0));
        self.window.cwnd = (in_flight + more).max(1) as u32;
    }

    /// `tcp_end_cwnd_reduction`.
    pub(super) fn end_reduction(&mut self) {
        let is_done = self.state == State::Reduced || self.undo.marker.is_some();
        if self.window.ssthresh < NO_THRESHOLD && is_done && !self.control.is_model() {
            self.window.cwnd = self.window.ssthresh;
        }
    }

    /// Whether all that was resent was not needed (`tcp_may_undo`): duplicates say so, or the acknowledgement answers
    /// something that was sent before the first resend (RFC 3522).
    fn may_undo(&self, echo: u32) -> bool {
        let before = self.undo.first_resend.is_some_and(|stamp| echo != 0 && echo < stamp);
        self.undo.marker.is_some() && (self.undo.resends == 0 || before)
    }

    fn restore(&mut self, tick: &impl Tick, keeps_losses: bool) {
        if !keeps_losses {
            self.queue.forget_losses();
        }
        if self.undo.ssthresh > 0 {
            self.window.cwnd = self.control.undone(self.window.cwnd, self.undo.cwnd);
            self.tell_bbr(tick, Bbr::undo);
            self.window.ssthresh = self.window.ssthresh.max(self.undo.ssthresh);
            self.owes_reduction = false;
        }
        self.undo.marker = None;
        self.rack.advanced = true;
        self.counts.undone += 1;
    }

    fn undo_whole(&mut self, tick: &mut impl Tick) -> bool {
        let echo = tick.echo();
        if self.may_undo(echo) {
            self.restore(tick, true);
        }
        if !tick.settings().sack && self.unacknowledged == self.high {
            // NewReno stays until something above is acknowledged: no second fast retransmit for the same window.
            return true;
        }
        self.set_state(tick, State::Open);
        false
    }

    /// A hole was filled by what was overtaken, not by what was sent again (`tcp_try_undo_partial`).
    fn undo_partly(&mut self, tick: &mut impl Tick, ack: &Found) -> bool {
        let before = self.undo.first_resend.is_some_and(|stamp| tick.echo() != 0 && tick.echo() < stamp);
        if self.undo.marker.is_none() || !before {
            return false;
        }
        if self.queue.acked > 0 {
            self.note_reordering(ack.prior, self.highest_block());
        }
        if self.queue.resent > 0 {
            return true;
        }
        // What was taken for lost is so no more.
        self.restore(tick, false);
        self.keep_open(tick);
        false
    }

    /// Duplicates have told that every resend was needless (`tcp_try_undo_dsack`).
    fn undo_by_duplicates(&mut self, tick: &mut impl Tick) {
        if self.undo.marker.is_some() && self.undo.resends == 0 {
            self.restore(tick, true);
            if self.state == State::Recovery {
                self.keep_open(tick);
            }
        }
    }

    /// After a timeout (`tcp_process_loss`): whether it was spurious, by F-RTO (RFC 5682) and timestamps.
    fn after_timeout(&mut self, tick: &mut impl Tick, ack: &mut Found) -> Then {
        let recovered = self.unacknowledged >= self.high;
        if ack.advances && self.may_undo(tick.echo()) {
            self.undo_timeout(tick, false);
            return Then::Nothing;
        }
        if self.may_be_spurious {
            if ack.has_original && self.undo.marker.is_some() {
                self.undo_timeout(tick, true);
                return Then::Nothing;
            }
            if self.next > self.high {
                if ack.has_sacked_data || !ack.advances {
                    self.may_be_spurious = false;
                }
            } else if ack.advances && !recovered {
                self.high = self.next;
                if self.has_data() && self.has_room_for_one() {
                    return Then::New;
                }
                self.may_be_spurious = false;
            }
        }
        if recovered {
            self.undo_whole(tick);
            return Then::Nothing;
        }
        if !tick.settings().sack && (self.next > self.high || ack.advances) {
            self.recount_duplicates(ack);
        }
        Then::Lost
    }

    /// `tcp_try_undo_loss`. Without SACK the state stays, so that duplicates of the same window are none of a new loss.
    fn undo_timeout(&mut self, tick: &mut impl Tick, by_original: bool) {
        self.restore(tick, false);
        self.timeouts = 0;
        if tick.settings().sack || by_original && self.unacknowledged != self.high {
            self.set_state(tick, State::Open);
        }
    }

    /// Timer: nothing came back for the whole RTO (`tcp_enter_loss`).
    pub(super) fn enter_loss(&mut self, tick: &mut impl Tick) {
        let is_new = self.state < State::Recovery;
        if !tick.settings().sack {
            self.queue.forget_duplicates(0);
        }
        self.lose_all(tick.now(), tick.settings().sack);
        if self.state <= State::Disorder
            || self.high <= self.unacknowledged
            || self.state == State::Loss && self.timeouts == 0
        {
            let ssthresh = self.current_threshold();
            self.reduction.prior_cwnd = self.window.cwnd;
            self.window.ssthresh = self.control.threshold(&self.window);
            self.remember(ssthresh);
        }
        self.window.cwnd = self.queue.in_flight() + 1;
        self.window.count = 0;
        self.set_state(tick, State::Loss);
        self.high = self.next;
        self.probe = None;
        self.owes_reduction |= self.is_ecn;
        self.may_be_spurious = tick.settings().sack && (is_new || self.timeouts > 0);
    }

    /// An acknowledgement of a tail-loss probe (`tcp_process_tlp_ack`).
    pub(super) fn take_probe_answer(&mut self, tick: &mut impl Tick, acknowledged: u64, ack: &Found) {
        let Some((end, has_resent)) = self.probe.filter(|(end, _)| acknowledged >= *end) else { return };
        if !has_resent || ack.has_duplicate {
            self.probe = None;
        } else if acknowledged > end {
            // The probe repaired a loss: cwnd shrinks as for any.
            self.begin_reduction();
            self.set_state(tick, State::Reduced);
            self.end_reduction();
            self.keep_open(tick);
        } else if !(ack.advances || ack.is_no_duplicate || ack.has_sacked_data) {
            self.probe = None;
        }
    }
}
