//! The rate at which the path delivers, by samples of each acknowledgement (`tcp_rate.c`; Cheng and others, "Delivery Rate
//! Estimation", draft-cheng-iccrg-delivery-rate-estimation), and what BBR is told of it.

use framegauge_frames::Picoseconds;

use super::Sender;
use super::acks::Found;
use super::queue::Sent;
use crate::congestion::{Bbr, Sample, View};
use crate::endpoint::Tick;

const SECOND_MILLISECONDS: u64 = 1000;

/// What was known when a segment was sent (`tcp_rate_skb_sent`), in microseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flight {
    /// When the first of its window was sent, and when one was delivered the last time; how many had been.
    first_us: u64,
    delivered_us: u64,
    delivered: u64,
    is_app_limited: bool,
}

/// Of the segments that an acknowledgement delivers, the one that was sent last.
#[derive(Debug, Clone, Copy)]
struct Latest {
    flight: Flight,
    sent: (Picoseconds, u64),
    sent_us: u64,
}

/// The state of the estimate.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rates {
    first_us: u64,
    delivered_us: u64,
    /// The application limits the rate until so many are delivered; 0: it does not.
    limited_until: u64,
    latest: Option<Latest>,
    in_flight: u32,
}

fn microseconds(time: Picoseconds) -> u64 {
    time.as_nanoseconds() / 1000
}

impl Sender {
    /// BBR begins when the handshake has ended.
    pub(super) fn begin_bbr(&mut self, tick: &impl Tick) {
        if self.control.is_model() && self.control.model().is_none() {
            let view = self.view(tick);
            let least = self.rtt.minimum.map(microseconds);
            let bbr = Bbr::new(self.seed, least, &self.window, &view);
            if let Some(place) = self.control.place_of_model() {
                *place = Some(bbr);
            }
        }
    }

    pub(super) fn tell_bbr(&mut self, tick: &impl Tick, update: impl FnOnce(&mut Bbr, &View)) {
        let view = self.view(tick);
        if let Some(bbr) = self.control.model_mut() {
            update(bbr, &view);
        }
    }

    fn view(&self, tick: &impl Tick) -> View {
        let now = tick.now();
        let clock = match tick.settings().tick {
            Picoseconds::ZERO => Picoseconds::from_nanoseconds(1_000_000),
            clock => clock,
        };
        let second = Picoseconds::from_nanoseconds(SECOND_MILLISECONDS * 1_000_000);
        View {
            now_us: microseconds(now),
            now_ticks: now.get() / clock.get(),
            second_ticks: second.get() / clock.get(),
            state: self.state,
            delivered: self.delivered,
            delivered_us: self.rates.delivered_us,
            lost: self.lost,
            in_flight: self.queue.in_flight(),
            mss: self.mss,
            smoothed_us: self.rtt.smoothed().map(microseconds),
            departs_in_us: microseconds(self.pace.until - now),
            limit: self.pace.bits_per_second.map_or(u64::MAX, |bits| bits / 8),
        }
    }

    /// Something is about to be sent: what is known now. Where nothing was under way, BBR begins again.
    pub(super) fn note_flight(&mut self, tick: &impl Tick) -> Option<Flight> {
        self.control.model()?;
        if self.queue.in_flight() == 0 && self.rates.limited_until > 0 {
            let view = self.view(tick);
            if let Some(bbr) = self.control.model_mut() {
                bbr.begin_again(&mut self.window, &view);
            }
        }
        let now = microseconds(tick.now());
        if self.queue.is_empty() {
            self.rates.first_us = now;
            self.rates.delivered_us = now;
        }
        Some(Flight {
            first_us: self.rates.first_us,
            delivered_us: self.rates.delivered_us,
            delivered: self.delivered,
            is_app_limited: self.rates.limited_until > 0,
        })
    }

    /// The application writes: whether it had left the path idle (`tcp_rate_check_app_limited`).
    pub(super) fn note_write(&mut self, tick: &impl Tick) {
        if self.control.is_model()
            && self.writing.accepted.saturating_sub(self.next) < u64::from(self.mss)
            && !self.held.holds_any(tick.now() - tick.held_back())
            && self.queue.in_flight() < self.window.cwnd
            && self.queue.lost <= self.queue.resent
        {
            self.limit_by_application();
        }
    }

    fn limit_by_application(&mut self) {
        self.rates.limited_until = (self.delivered + u64::from(self.queue.in_flight())).max(1);
    }

    pub(super) fn begin_sample(&mut self) {
        self.rates.latest = None;
        self.rates.in_flight = self.queue.in_flight();
    }

    /// A segment is delivered (`tcp_rate_skb_delivered`); it stands in the queue as it was sent.
    pub(super) fn note_delivered(&mut self, place: usize, sent: &Sent) {
        let Some(flight) = self.queue.take_flight(place) else { return };
        let order = (sent.at, sent.end());
        if self.rates.latest.is_none_or(|latest| order > latest.sent) {
            let sent_us = microseconds(sent.at);
            self.rates.first_us = sent_us;
            self.rates.latest = Some(Latest { flight, sent: order, sent_us });
        }
    }

    /// `tcp_rate_gen`. `advance`: bytes that were acknowledged in order.
    fn sample(&mut self, now: Picoseconds, ack: &Found, advance: u64) -> Sample {
        let rates = &mut self.rates;
        if self.delivered > rates.limited_until {
            rates.limited_until = 0;
        }
        let now_us = microseconds(now);
        if ack.delivered > 0 {
            rates.delivered_us = now_us;
        }
        let mut sample = Sample {
            rtt_us: ack.last_rtt.map(microseconds),
            acked: ack.delivered,
            losses: ack.losses,
            in_flight: rates.in_flight,
            ..Sample::default()
        };
        let Some(Latest { flight, sent_us, .. }) = rates.latest else { return sample };
        let delivered = self.delivered - flight.delivered;
        let us = (sent_us - flight.first_us).max(now_us - flight.delivered_us);
        let least = self.rtt.minimum.map_or(1, microseconds).max(1);
        sample.rate = (us >= least).then_some((delivered, us));
        sample.before = flight.delivered;
        sample.is_app_limited = flight.is_app_limited;
        sample.is_delayed = ack.delivered == 1 && advance < u64::from(self.mss) && delivered == 1;
        sample
    }

    /// BBR decides on every acknowledgement (`cong_control`).
    pub(super) fn adapt_to_rate(&mut self, tick: &impl Tick, ack: &Found, advance: u64) {
        let sample = self.sample(tick.now(), ack, advance);
        let view = self.view(tick);
        let window = &mut self.window;
        if self.control.model_mut().is_some_and(|bbr| bbr.acknowledge(window, &view, &sample)) {
            self.limit_by_application();
        }
    }
}
