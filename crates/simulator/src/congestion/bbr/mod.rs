//! BBR, version 1, as Linux' `net/ipv4/tcp_bbr.c` (Cardwell and others, "BBR: Congestion-Based Congestion Control", ACM
//! Queue 14(5), 2016).
//!
//! It paces at what the path delivers, and keeps twice under way of what that makes in the least RTT:
//!
//! ```text
//!   Startup ──▶ Drain ──▶ ProbeBandwidth ◀──▶ ProbeRtt
//! ```
//!
//! Rates are segments per microsecond in 2^24ths, gains 256ths, as there.

mod extra;
mod maximum;
mod modelled;
mod policed;
mod told;
mod window;

use framegauge_frames::{SplitMix, below};

use self::extra::Extra;
use self::maximum::Maximum;
pub(crate) use self::modelled::Modelled;
use self::policed::Policed;
pub(crate) use self::told::{Sample, View};
use super::{State, Window};

pub(super) const RATE_BITS: u32 = 24;
pub(super) const ONE: u64 = 256;
/// 2 / ln 2: a rate that doubles each round trip.
const HIGH_GAIN: u64 = ONE * 2885 / 1000 + 1;
const DRAIN_GAIN: u64 = ONE * 1000 / 2885;
const WINDOW_GAIN: u64 = 2 * ONE;
/// More, less, and then neither, an RTT each.
const GAINS: [u64; 8] = [ONE * 5 / 4, ONE * 3 / 4, ONE, ONE, ONE, ONE, ONE, ONE];
/// Of all phases but the one that drains.
const FIRST_PHASES: u64 = 7;
const RATE_ROUNDS: u64 = 10;
const LEAST_RTT_SECONDS: u64 = 10;
const PROBE_RTT_MILLISECONDS: u64 = 200;
const LEAST_WINDOW: u32 = 4;
const INITIAL_WINDOW: u32 = 10;
/// The pipe is full after three rounds that are not faster by a quarter.
const FULL_GAIN: u64 = ONE * 5 / 4;
const FULL_ROUNDS: u32 = 3;
/// Microseconds per second, less 1 %: it paces below the rate.
pub(super) const PACED_PER_SECOND: u64 = 990_000;
const SUPER_SEGMENT_BYTES: u64 = 65_536 - 321;
/// Below 1.2 Mb/s a super-segment is one segment.
const SLOW_BYTES_PER_SECOND: u64 = 1_200_000 / 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// Its state.
#[derive(Debug, Clone)]
pub(crate) struct Bbr {
    mode: Mode,
    /// Of pacing, in bytes per second.
    rate: u64,
    least_rtt_us: u64,
    /// In ticks, as all that ends in `at`.
    least_rtt_at: u64,
    probe_done_at: Option<u64>,
    is_probe_round_done: bool,
    /// The rate of delivery: the most of the last rounds. A round ends when so many are delivered.
    fastest: Maximum,
    rounds: u64,
    round_end: u64,
    begins_round: bool,
    phase: usize,
    phase_began_us: u64,
    /// The state at the acknowledgement before.
    before: State,
    /// The first round of a recovery: a segment for each that is delivered.
    conserves: bool,
    /// It was idle, and nothing was delivered since.
    restarts: bool,
    gain: u64,
    window_gain: u64,
    /// The rate at which the path was thought to be full, and for how many rounds it was no faster.
    full_rate: u64,
    full_rounds: u32,
    is_full: bool,
    knows_rtt: bool,
    /// cwnd before a loss, or before it looked for the least RTT.
    prior_window: u32,
    policed: Policed,
    extra: Extra,
    draws: SplitMix,
}

impl Bbr {
    /// At the end of the handshake (`bbr_init`). `seed`: of the phase in which it begins to probe.
    pub(crate) fn new(seed: u64, least_rtt_us: Option<u64>, window: &Window, view: &View) -> Bbr {
        let mut bbr = Bbr {
            mode: Mode::Startup,
            rate: 0,
            least_rtt_us: least_rtt_us.unwrap_or(u64::MAX),
            least_rtt_at: view.now_ticks,
            probe_done_at: None,
            is_probe_round_done: false,
            fastest: Maximum::default(),
            rounds: 0,
            round_end: 0,
            begins_round: false,
            phase: 0,
            phase_began_us: 0,
            before: State::Open,
            conserves: false,
            restarts: false,
            gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            full_rate: 0,
            full_rounds: 0,
            is_full: false,
            knows_rtt: false,
            prior_window: 0,
            policed: Policed::new(view),
            extra: Extra::begin(view.now_us),
            draws: SplitMix::new(seed),
        };
        bbr.rate = bbr.first_rate(window, view);
        bbr
    }

    /// Bytes per second at which it paces.
    pub(crate) fn pacing_rate(&self) -> u64 {
        self.rate
    }

    /// The fewest segments of a super-segment (`bbr_min_tso_segs`).
    pub(crate) fn least_segments(&self) -> u64 {
        if self.rate < SLOW_BYTES_PER_SECOND { 1 } else { 2 }
    }

    /// Every acknowledgement (`bbr_main`). Returns whether what follows counts as limited by the application.
    pub(crate) fn acknowledge(&mut self, window: &mut Window, view: &View, sample: &Sample) -> bool {
        self.take_rate(view, sample);
        self.extra.take(self.estimate(), self.begins_round, window.cwnd, view, sample);
        if self.mode == Mode::ProbeBandwidth && self.ends_phase(view, sample) {
            self.begin_phase((self.phase + 1) % GAINS.len(), view);
        }
        self.look_at_pipe(sample);
        self.look_at_drain(window, view);
        let probes = self.look_at_rtt(window, view, sample);
        self.set_gains();
        let rate = self.estimate();
        self.set_rate(rate, self.gain, window, view);
        self.set_window(window, view, sample, rate);
        probes
    }

    /// Sends again after it had nothing under way (`CA_EVENT_TX_START`), limited by the application.
    pub(crate) fn begin_again(&mut self, window: &mut Window, view: &View) {
        self.restarts = true;
        self.extra.begin_again(view.now_us);
        if self.mode == Mode::ProbeBandwidth {
            self.set_rate(self.estimate(), ONE, window, view);
        } else if self.mode == Mode::ProbeRtt {
            self.end_probe(window, view);
        }
    }

    /// A timeout (`bbr_set_state`).
    pub(crate) fn time_out(&mut self, view: &View) {
        self.before = State::Loss;
        self.full_rate = 0;
        self.begins_round = true;
        self.sample_policed(view, &Sample { losses: 1, ..Sample::default() });
    }

    /// Nothing was lost after all (`bbr_undo_cwnd`).
    pub(crate) fn undo(&mut self, view: &View) {
        self.full_rate = 0;
        self.full_rounds = 0;
        self.policed = Policed::new(view);
    }

    fn estimate(&self) -> u64 {
        self.policed.rate().unwrap_or(self.fastest.get())
    }

    fn bytes_per_second(rate: u64, gain: u64, mss: u32) -> u64 {
        ((gained(rate, u64::from(mss), gain) * u128::from(PACED_PER_SECOND)) >> RATE_BITS) as u64
    }

    /// `bbr_init_pacing_rate_from_rtt`.
    fn first_rate(&mut self, window: &Window, view: &View) -> u64 {
        self.knows_rtt = view.smoothed_us.is_some();
        let rate = (u64::from(window.cwnd) << RATE_BITS) / view.smoothed_us.unwrap_or(1000).max(1);
        Bbr::bytes_per_second(rate, HIGH_GAIN, view.mss).min(view.limit)
    }

    fn set_rate(&mut self, rate: u64, gain: u64, window: &Window, view: &View) {
        let target = Bbr::bytes_per_second(rate, gain, view.mss).min(view.limit);
        if !self.knows_rtt && view.smoothed_us.is_some() {
            self.rate = self.first_rate(window, view);
        }
        if self.is_full || target > self.rate {
            self.rate = target;
        }
    }

    /// Segments of a super-segment (`bbr_tso_segs_goal`).
    fn goal(&self, view: &View) -> u32 {
        let bytes = (self.rate >> 10).min(SUPER_SEGMENT_BYTES);
        (bytes / u64::from(view.mss)).max(self.least_segments()).min(0x7f) as u32
    }

    /// What fills the path, with a gain (`bbr_bdp`).
    fn pipe(&self, rate: u64, gain: u64) -> u32 {
        if self.least_rtt_us == u64::MAX {
            return INITIAL_WINDOW;
        }
        gained(rate, self.least_rtt_us, gain).div_ceil(1 << RATE_BITS) as u32
    }

    /// Room for what the hosts hold of it, and for delayed acknowledgements (`bbr_quantization_budget`).
    fn roomy(&self, segments: u32, view: &View) -> u32 {
        let even = (segments + 3 * self.goal(view) + 1) & !1;
        even + if self.mode == Mode::ProbeBandwidth && self.phase == 0 { 2 } else { 0 }
    }

    fn wanted(&self, rate: u64, gain: u64, view: &View) -> u32 {
        self.roomy(self.pipe(rate, gain), view)
    }

    /// Under way when pacing lets the next leave (`bbr_packets_in_net_at_edt`).
    fn under_way(&self, in_flight: u32, view: &View) -> u32 {
        let delivered = (self.estimate() * view.departs_in_us) >> RATE_BITS;
        let more = if self.gain > ONE { self.goal(view) } else { 0 };
        u64::from(in_flight + more).saturating_sub(delivered) as u32
    }

    /// `bbr_update_bw`.
    fn take_rate(&mut self, view: &View, sample: &Sample) {
        self.begins_round = false;
        let Some((delivered, us)) = sample.rate else { return };
        if sample.before >= self.round_end {
            self.round_end = view.delivered;
            self.rounds += 1;
            self.begins_round = true;
            self.conserves = false;
        }
        self.sample_policed(view, sample);
        let rate = (delivered << RATE_BITS) / us;
        if !sample.is_app_limited || rate >= self.fastest.get() {
            self.fastest.take(RATE_ROUNDS, self.rounds, rate);
        }
    }

    /// `bbr_lt_bw_sampling`.
    fn sample_policed(&mut self, view: &View, sample: &Sample) {
        let probes = self.mode == Mode::ProbeBandwidth;
        if self.policed.take(view, sample, self.begins_round, probes) {
            self.begin_probing(view);
        }
        if self.policed.rate().is_some() {
            self.gain = ONE;
        }
    }

    /// Whether a phase of probing is over (`bbr_is_next_cycle_phase`).
    fn ends_phase(&self, view: &View, sample: &Sample) -> bool {
        let is_long = view.delivered_us.saturating_sub(self.phase_began_us) > self.least_rtt_us;
        let under_way = self.under_way(sample.in_flight, view);
        let fastest = self.fastest.get();
        if self.gain > ONE {
            is_long && (sample.losses > 0 || under_way >= self.wanted(fastest, self.gain, view))
        } else {
            is_long || self.gain < ONE && under_way <= self.wanted(fastest, ONE, view)
        }
    }

    fn begin_phase(&mut self, phase: usize, view: &View) {
        self.phase = phase;
        self.phase_began_us = view.delivered_us;
    }

    fn begin_probing(&mut self, view: &View) {
        self.mode = Mode::ProbeBandwidth;
        let back = below(self.draws.bits(), FIRST_PHASES) as usize;
        self.begin_phase((GAINS.len() - back) % GAINS.len(), view);
    }

    /// `bbr_check_full_bw_reached`.
    fn look_at_pipe(&mut self, sample: &Sample) {
        if self.is_full || !self.begins_round || sample.is_app_limited {
            return;
        }
        if self.fastest.get() >= (self.full_rate * FULL_GAIN) >> 8 {
            self.full_rate = self.fastest.get();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.is_full = self.full_rounds >= FULL_ROUNDS;
    }

    /// `bbr_check_drain`.
    fn look_at_drain(&mut self, window: &mut Window, view: &View) {
        let wanted = |bbr: &Bbr| bbr.wanted(bbr.fastest.get(), ONE, view);
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
            window.ssthresh = wanted(self);
        }
        if self.mode == Mode::Drain && self.under_way(view.in_flight, view) <= wanted(self) {
            self.begin_probing(view);
        }
    }

    /// `bbr_update_min_rtt`; whether what follows counts as limited by the application.
    fn look_at_rtt(&mut self, window: &mut Window, view: &View, sample: &Sample) -> bool {
        let is_old = view.now_ticks > self.least_rtt_at + LEAST_RTT_SECONDS * view.second_ticks;
        if let Some(rtt) = sample.rtt_us
            && (rtt <= self.least_rtt_us || is_old && !sample.is_delayed)
        {
            self.least_rtt_us = rtt;
            self.least_rtt_at = view.now_ticks;
        }
        if is_old && !self.restarts && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.keep_window(window.cwnd);
            self.probe_done_at = None;
        }
        let probes = self.mode == Mode::ProbeRtt;
        if probes && self.probe_done_at.is_some() {
            self.is_probe_round_done |= self.begins_round;
            if self.is_probe_round_done {
                self.end_probe(window, view);
            }
        } else if probes && view.in_flight <= LEAST_WINDOW {
            let span = (PROBE_RTT_MILLISECONDS * view.second_ticks).div_ceil(1000);
            self.probe_done_at = Some(view.now_ticks + span);
            self.is_probe_round_done = false;
            self.round_end = view.delivered;
        }
        if sample.rate.is_some_and(|(delivered, _)| delivered > 0) {
            self.restarts = false;
        }
        probes
    }

    /// `bbr_check_probe_rtt_done`.
    fn end_probe(&mut self, window: &mut Window, view: &View) {
        if self.probe_done_at.is_none_or(|at| view.now_ticks <= at) {
            return;
        }
        self.least_rtt_at = view.now_ticks;
        window.cwnd = window.cwnd.max(self.prior_window);
        if self.is_full {
            self.begin_probing(view);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn set_gains(&mut self) {
        (self.gain, self.window_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth if self.policed.rate().is_some() => (ONE, WINDOW_GAIN),
            Mode::ProbeBandwidth => (GAINS[self.phase], WINDOW_GAIN),
            Mode::ProbeRtt => (ONE, ONE),
        };
    }
}

/// A product with a gain, which may need more than 64 bits.
fn gained(rate: u64, times: u64, gain: u64) -> u128 {
    (u128::from(rate) * u128::from(times) * u128::from(gain)) >> 8
}
