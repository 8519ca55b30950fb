//! CUBIC (RFC 9438) with HyStart, step by step as in Linux' `net/ipv4/tcp_cubic.c`, whose integers it keeps.

use framegauge_frames::Picoseconds;

use super::control::CongestionControl;
use super::{Acked, State, Window};
use crate::{Hystart, TcpSettings};

/// The factor of a decrease, in 1024ths: 0.7.
const BETA: u64 = 717;
const SCALE: u64 = 1024;
/// C of 0.4 in units of 1024ths of a second: `bic_scale` 41, times ten.
const CUBE_SCALE: u64 = 410;
/// Bits of a fraction of a second.
const TIME_BITS: u32 = 10;
/// Of TCP friendliness: 8 (1 + β) / 3 (1 − β).
const FRIENDLY: u64 = 8 * (SCALE + BETA) / 3 / (SCALE - BETA);
const HYSTART_LEAST_CWND: u32 = 16;
const HYSTART_SAMPLES: u32 = 8;
/// Acknowledgements not further apart are one train, in microseconds.
const TRAIN_GAP: u64 = 2000;

/// The state; times in microseconds, ticks where the kernel counts these.
#[derive(Debug, Clone)]
pub(crate) struct Cubic {
    tick_microseconds: u64,
    hystart: bool,
    every: u64,
    last_maximum: u64,
    last_cwnd: u32,
    last_tick: u64,
    origin: u64,
    /// How long until the origin is reached, in 1024ths of a second.
    until_origin: u64,
    least_delay: u64,
    epoch: Option<u64>,
    acked: u64,
    friendly_cwnd: u64,
    // Of HyStart.
    found: bool,
    round_begin: u64,
    last_ack: u64,
    round_end: u64,
    round_delay: u64,
    samples: u32,
}

fn microseconds(time: Picoseconds) -> u64 {
    time.as_nanoseconds() / 1000
}

/// The whole part of a cube root.
fn cube_root(number: u64) -> u64 {
    let mut root = 0u64;
    for bit in (0..21).rev() {
        let candidate = root | 1 << bit;
        if candidate.pow(3) <= number {
            root = candidate;
        }
    }
    root
}

impl Cubic {
    fn with(hystart: bool, tick: Picoseconds) -> Cubic {
        Cubic {
            tick_microseconds: microseconds(tick).max(1),
            hystart,
            every: 0,
            last_maximum: 0,
            last_cwnd: 0,
            last_tick: 0,
            origin: 0,
            until_origin: 0,
            least_delay: 0,
            epoch: None,
            acked: 0,
            friendly_cwnd: 0,
            found: false,
            round_begin: 0,
            last_ack: 0,
            round_end: 0,
            round_delay: u64::MAX,
            samples: 0,
        }
    }

    /// After a timeout everything that was learned is forgotten.
    fn reset(&mut self, acked: &Acked) {
        let tick = Picoseconds::from_nanoseconds(self.tick_microseconds * 1000);
        *self = Cubic::with(self.hystart, tick);
        self.begin_round(acked);
    }

    fn decrease(&mut self, cwnd: u32) -> u32 {
        self.epoch = None;
        let cwnd = u64::from(cwnd);
        // Fast convergence: it leaves room for others if it had to stop earlier than the last time.
        self.last_maximum = if cwnd < self.last_maximum { cwnd * (SCALE + BETA) / (2 * SCALE) } else { cwnd };
        (cwnd * BETA / SCALE).max(2) as u32
    }

    fn begin_round(&mut self, acked: &Acked) {
        self.round_begin = microseconds(acked.now);
        self.last_ack = self.round_begin;
        self.round_end = acked.next;
        self.round_delay = u64::MAX;
        self.samples = 0;
    }

    /// HyStart: slow start ends when acknowledgements come for as long as the path is, or later than they did.
    fn look_for_exit(&mut self, window: &mut Window, delay: u64, now: u64, acked: &Acked) {
        if acked.unacknowledged > self.round_end {
            self.begin_round(acked);
        }
        if window.cwnd < HYSTART_LEAST_CWND {
            return;
        }
        if now - self.last_ack <= TRAIN_GAP {
            self.last_ack = now;
            // Pacing draws a window out over half an RTT by itself.
            let path = self.least_delay + microseconds(acked.burst).min(1000);
            let threshold = if acked.is_paced { path } else { path >> 1 };
            self.found |= now - self.round_begin > threshold;
        }
        self.round_delay = self.round_delay.min(delay);
        if self.samples < HYSTART_SAMPLES {
            self.samples += 1;
        } else {
            let longer = (self.least_delay >> 3).clamp(4000, 16_000);
            self.found |= self.round_delay > self.least_delay + longer;
        }
        if self.found {
            window.ssthresh = window.cwnd;
        }
    }

    fn follow_the_cube(&mut self, cwnd: u64, count: u32, tick: u64) {
        let epoch = *self.epoch.get_or_insert_with(|| {
            self.acked = u64::from(count);
            self.friendly_cwnd = cwnd;
            self.origin = self.last_maximum.max(cwnd);
            let below = self.origin - cwnd;
            self.until_origin = cube_root((1u64 << (10 + 3 * TIME_BITS)) / CUBE_SCALE * below);
            tick
        });
        let ticks = tick - epoch + self.least_delay.div_ceil(self.tick_microseconds);
        let time = (ticks << TIME_BITS) * self.tick_microseconds / 1_000_000;
        let offset = time.abs_diff(self.until_origin).min(1 << 17);
        let delta = (CUBE_SCALE * offset.pow(3)) >> (10 + 3 * TIME_BITS);
        let target = match time < self.until_origin {
            true => self.origin.saturating_sub(delta),
            false => self.origin + delta,
        };
        self.every = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        // While the path is unknown: 5 % a round trip at least.
        if self.last_maximum == 0 {
            self.every = self.every.min(20);
        }
    }

    fn keep_up_with_reno(&mut self, cwnd: u64) {
        let per_segment = (cwnd * FRIENDLY) >> 3;
        if self.acked > per_segment && per_segment > 0 {
            let more = (self.acked - 1) / per_segment;
            self.acked -= more * per_segment;
            self.friendly_cwnd += more;
        }
        if self.friendly_cwnd > cwnd {
            self.every = self.every.min(cwnd / (self.friendly_cwnd - cwnd));
        }
    }
}

impl CongestionControl for Cubic {
    fn new(settings: &TcpSettings) -> Cubic {
        Cubic::with(settings.hystart == Hystart::Linux, settings.tick)
    }

    fn threshold(&mut self, window: &Window) -> u32 {
        self.decrease(window.cwnd)
    }

    fn enter(&mut self, state: State, acked: &Acked) {
        if state == State::Loss {
            self.reset(acked);
        }
    }

    fn note(&mut self, window: &mut Window, acked: &Acked) {
        let Some(delay) = acked.rtt.map(|rtt| microseconds(rtt).max(1)) else { return };
        let now = microseconds(acked.now);
        // Right after a recovery delays are those of a queue that drains.
        let second = 1_000_000 / self.tick_microseconds;
        if self.epoch.is_some_and(|epoch| now / self.tick_microseconds - epoch < second) {
            return;
        }
        if self.least_delay == 0 || self.least_delay > delay {
            self.least_delay = delay;
        }
        if !self.found && window.is_slow_start() && self.hystart {
            self.look_for_exit(window, delay, now, acked);
        }
    }

    fn growth(&mut self, window: &Window, count: u32, now: Picoseconds) -> u32 {
        let cwnd = window.cwnd;
        let tick = microseconds(now) / self.tick_microseconds;
        self.acked += u64::from(count);
        let a_thirtysecond = 1_000_000 / self.tick_microseconds / 32;
        if self.last_cwnd == cwnd && tick - self.last_tick <= a_thirtysecond && self.every > 0 {
            return self.every as u32;
        }
        if self.epoch.is_none() || tick != self.last_tick {
            self.last_cwnd = cwnd;
            self.last_tick = tick;
            self.follow_the_cube(u64::from(cwnd), count, tick);
        }
        self.keep_up_with_reno(u64::from(cwnd));
        self.every = self.every.max(2);
        self.every as u32
    }

    /// The epoch does not go on while nothing is sent.
    fn begin_again(&mut self, now: Picoseconds, last_sent: Picoseconds) {
        let now = microseconds(now) / self.tick_microseconds;
        let idle = now.saturating_sub(microseconds(last_sent) / self.tick_microseconds);
        if let Some(epoch) = self.epoch.filter(|_| idle > 0) {
            self.epoch = Some((epoch + idle).min(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots_are_whole() {
        assert_eq!([0, 1, 7, 8, 26, 27, 999_999_999_999].map(cube_root), [0, 1, 1, 2, 2, 3, 9_999]);
    }

    /// RFC 9438: K = ∛(W (1 − β) / C), and cwnd is W again after K seconds.
    #[test]
    fn the_plateau_comes_when_the_rfc_says() {
        let mut cubic = Cubic::with(false, Picoseconds::from_nanoseconds(4_000_000));
        let cwnd = cubic.decrease(1000);
        assert_eq!(cwnd, 700);
        let window = Window { cwnd, ..Window::new(&TcpSettings::default()) };
        cubic.growth(&window, 1, Picoseconds::from_nanoseconds(8_000_000));
        let seconds = cubic.until_origin as f64 / 1024.0;
        assert!((seconds - (300.0f64 / 0.4).cbrt()).abs() < 0.05, "{seconds}");
    }
}
