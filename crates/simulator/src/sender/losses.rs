//! Which segments are lost: RACK (RFC 8985; `tcp_recovery.c`), and three duplicates without SACK (RFC 5681).

use framegauge_frames::Picoseconds;

use super::queue::{Sent, Verdict};
use super::{LEAST_TIMEOUT, Sender, Timer};
use crate::congestion::State;
use crate::endpoint::Tick;
use crate::sender::acks::Found;

/// Duplicate acknowledgements that say that a segment is lost (RFC 5681 section 3.2).
const DUPLICATES: u32 = 3;

impl Sender {
    /// A transmission is known to be delivered (`tcp_rack_advance`).
    pub(super) fn advance_rack(&mut self, now: Picoseconds, sent: &Sent) {
        let rtt = now - sent.at;
        // What came back so soon answers the first transmission, not this one.
        if sent.resends > 0 && self.rtt.minimum.is_some_and(|least| rtt < least) {
            return;
        }
        self.rack.advanced = true;
        self.rack.rtt = rtt;
        if is_after((sent.at, sent.end()), (self.rack.sent, self.rack.end)) {
            self.rack.sent = sent.at;
            self.rack.end = sent.end();
        }
    }

    /// How long later transmissions may come first before a segment is lost (`tcp_rack_reo_wnd`).
    fn reordering_window(&self) -> Picoseconds {
        if !self.rack.has_seen_reordering && (self.state >= State::Recovery || self.queue.acked >= DUPLICATES)
        {
            return Picoseconds::ZERO;
        }
        let quarter = self.rtt.minimum.map_or(0, |least| least.get() / 4);
        let most = self.rtt.smoothed().unwrap_or(Picoseconds::ZERO);
        Picoseconds::new(quarter * u64::from(self.rack.steps)).min(most)
    }

    /// Marks what is lost; returns how long until what may be lost is (`tcp_rack_detect_loss`).
    pub(super) fn detect_losses(&mut self, now: Picoseconds) -> Option<Picoseconds> {
        let window = self.reordering_window();
        let rack = self.rack;
        let mut longest = None;
        let (mut lost, mut lost_resends) = (0, 0);
        self.queue.judge_in_order(|sent| {
            if !is_after((rack.sent, rack.end), (sent.at, sent.end())) {
                return Verdict::Stop;
            }
            let deadline = sent.at + rack.rtt + window;
            if deadline <= now {
                lost += 1;
                lost_resends += u64::from(sent.is_resent);
                return Verdict::Lost;
            }
            longest = longest.max(Some(deadline - now));
            Verdict::Waits
        });
        self.lost += lost;
        self.counts.lost_resends += lost_resends;
        longest
    }

    /// `tcp_identify_packet_loss`.
    pub(super) fn identify_losses(&mut self, tick: &mut impl Tick, ack: &mut Found) {
        if self.queue.is_empty() {
            return;
        }
        if !tick.settings().sack {
            return self.lose_by_duplicates(ack);
        }
        if !std::mem::take(&mut self.rack.advanced) {
            return;
        }
        let resent = self.counts.lost_resends;
        if let Some(wait) = self.detect_losses(tick.now()) {
            let span = wait + LEAST_TIMEOUT;
            self.timer = Some(Timer::Reordering(tick.expiry(span)));
            ack.sets_timer = false;
        }
        ack.has_lost_resend = self.counts.lost_resends > resent;
    }

    /// NewReno (RFC 6582; `tcp_newreno_mark_lost`): the third duplicate, or as many as segments were seen to overtake, and
    /// every partial acknowledgement in recovery. Duplicates count until what they stand for is acknowledged, also where
    /// a recovery was taken back meanwhile.
    fn lose_by_duplicates(&mut self, ack: &Found) {
        let partial = self.state == State::Recovery && ack.advances;
        let enough = self.state < State::Recovery && self.queue.acked >= self.rack.degree;
        if !partial && !enough {
            return;
        }
        if self.queue.first().is_some_and(|head| !head.is_lost || head.is_resent && partial) {
            self.queue.lose(0);
            self.lost += 1;
        }
    }

    /// At a timeout all is lost, but what was sent so lately that it may still come (`tcp_timeout_mark_lost`).
    pub(super) fn lose_all(&mut self, now: Picoseconds, sack: bool) {
        let rack = self.rack.rtt;
        for place in 0..self.queue.len() as usize {
            let sent = self.queue.get(place);
            let is_recent = sack && place > 0 && sent.at + rack > now;
            if !is_recent && !sent.is_acked && (!sent.is_lost || sent.is_resent) {
                self.counts.lost_resends += u64::from(self.queue.get(place).is_resent);
                self.queue.lose(place);
                self.lost += 1;
            }
        }
    }
}

/// Whether a transmission, by time and end, came after another (`tcp_rack_sent_after`).
fn is_after(one: (Picoseconds, u64), other: (Picoseconds, u64)) -> bool {
    one > other
}
