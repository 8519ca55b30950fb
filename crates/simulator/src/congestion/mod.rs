//! Congestion control: how cwnd grows, and to what it shrinks.

mod bbr;
mod cubic;
mod dctcp;
mod hystart_plus;

use framegauge_frames::Picoseconds;

pub(crate) use self::bbr::{Bbr, Sample, View};
use self::cubic::Cubic;
use self::dctcp::Dctcp;
use self::hystart_plus::HystartPlus;
use crate::{Algorithm, Hystart, TcpSettings};

/// ssthresh before anything is known of the path.
pub(crate) const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// The state of a sender (`icsk_ca_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum State {
    /// Nothing is wrong.
    #[default]
    Open,
    /// Something was selectively acknowledged, nothing is lost yet.
    Disorder,
    /// cwnd shrinks because of a mark.
    Reduced,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}

/// cwnd and what goes with it, in segments.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    /// Acknowledged segments since cwnd grew by one.
    pub(crate) count: u32,
    /// HyStart++, until slow start ends for the first time.
    plus: Option<Box<HystartPlus>>,
}

impl Window {
    pub(crate) fn new(settings: &TcpSettings) -> Window {
        Window {
            cwnd: settings.initial_window_segments,
            ssthresh: settings.slow_start_threshold_segments.unwrap_or(NO_THRESHOLD),
            count: 0,
            plus: (settings.hystart == Hystart::Plus).then(Box::default),
        }
    }

    pub(crate) fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start (RFC 5681 section 3.1); returns what is left of the acknowledged segments.
    fn grow_exponentially(&mut self, acked: u32) -> u32 {
        if let Some(plus) = &mut self.plus {
            self.cwnd += plus.growth(acked);
            return 0;
        }
        let cwnd = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let left = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd;
        left
    }

    /// HyStart++ looks at every acknowledgement of the first slow start.
    fn note(&mut self, acked: &Acked) {
        let Some(plus) = &mut self.plus else { return };
        if self.ssthresh < NO_THRESHOLD {
            self.plus = None;
        } else if plus.note(acked) {
            self.ssthresh = self.cwnd;
            self.plus = None;
        }
    }

    /// One segment more for every `every` that are acknowledged (`tcp_cong_avoid_ai`).
    fn grow_linearly(&mut self, every: u32, acked: u32) {
        if self.count >= every {
            self.count = 0;
            self.cwnd += 1;
        }
        self.count += acked;
        if self.count >= every {
            let more = self.count / every;
            self.count -= more * every;
            self.cwnd += more;
        }
    }
}

/// What an acknowledgement says to congestion control.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acked {
    pub(crate) now: Picoseconds,
    pub(crate) rtt: Option<Picoseconds>,
    pub(crate) unacknowledged: u64,
    pub(crate) next: u64,
    /// Segments that were delivered so far, and how many of them were marked.
    pub(crate) delivered: u64,
    pub(crate) delivered_marked: u64,
    /// A full super-segment's time at four times the rate at which cwnd goes out.
    pub(crate) burst: Picoseconds,
    /// The sender paces itself.
    pub(crate) is_paced: bool,
}

/// One of the algorithms.
#[derive(Debug, Clone)]
pub(crate) enum Control {
    Reno,
    Cubic(Box<Cubic>),
    Dctcp(Box<Dctcp>),
    /// `None` before the handshake has ended.
    Bbr(Option<Box<Bbr>>),
}

impl Control {
    pub(crate) fn new(settings: &TcpSettings) -> Control {
        match settings.algorithm {
            Algorithm::Reno => Control::Reno,
            Algorithm::Cubic => {
                Control::Cubic(Box::new(Cubic::new(settings.hystart == Hystart::Linux, settings.tick)))
            }
            Algorithm::Dctcp => Control::Dctcp(Box::default()),
            Algorithm::Bbr => Control::Bbr(None),
        }
    }

    /// The threshold after a loss or a mark; what it learns from that, it learns here.
    pub(crate) fn threshold(&mut self, window: &Window) -> u32 {
        let cwnd = window.cwnd;
        match self {
            Control::Reno => (cwnd >> 1).max(2),
            Control::Cubic(cubic) => cubic.threshold(cwnd),
            Control::Dctcp(dctcp) => dctcp.threshold(cwnd),
            Control::Bbr(bbr) => {
                bbr.iter_mut().for_each(|bbr| bbr.keep_window(cwnd));
                window.ssthresh
            }
        }
    }

    /// Whether cwnd and pacing follow from a model of the path (`cong_control`), and not from losses.
    pub(crate) fn is_bbr(&self) -> bool {
        matches!(self, Control::Bbr(_))
    }

    pub(crate) fn bbr(&self) -> Option<&Bbr> {
        match self {
            Control::Bbr(bbr) => bbr.as_deref(),
            _ => None,
        }
    }

    pub(crate) fn bbr_mut(&mut self) -> Option<&mut Bbr> {
        match self {
            Control::Bbr(bbr) => bbr.as_deref_mut(),
            _ => None,
        }
    }

    /// The threshold after a loss that no mark came before: marks tell DCTCP nothing of it (RFC 8257 section 3.4).
    pub(crate) fn threshold_of_loss(&self, cwnd: u32, threshold: u32) -> u32 {
        match self {
            Control::Dctcp(_) => (cwnd >> 1).max(2),
            _ => threshold,
        }
    }

    /// The connection has come into another state.
    pub(crate) fn enter(&mut self, state: State, acked: &Acked) {
        if let (Control::Cubic(cubic), State::Loss) = (self, state) {
            cubic.reset(acked);
        }
    }

    /// Every acknowledgement, before cwnd grows.
    pub(crate) fn note(&mut self, window: &mut Window, acked: &Acked) {
        window.note(acked);
        match self {
            Control::Reno | Control::Bbr(_) => {}
            Control::Cubic(cubic) => cubic.note(window, acked),
            Control::Dctcp(dctcp) => dctcp.note(acked),
        }
    }

    /// `count` segments were acknowledged, and cwnd was what limited the sender.
    pub(crate) fn grow(&mut self, window: &mut Window, count: u32, acked: &Acked) {
        let mut count = count;
        if window.is_slow_start() {
            count = window.grow_exponentially(count);
            if count == 0 {
                return;
            }
        }
        let every = match self {
            Control::Cubic(cubic) => cubic.growth(window.cwnd, count, acked.now),
            _ => window.cwnd,
        };
        window.grow_linearly(every.max(1), count);
    }

    /// The sender begins to send again after it had nothing to send since `last_sent`.
    pub(crate) fn begin_again(&mut self, now: Picoseconds, last_sent: Picoseconds) {
        if let Control::Cubic(cubic) = self {
            cubic.begin_again(now, last_sent);
        }
    }

    /// cwnd that the sender gets back when it learns that nothing was lost.
    pub(crate) fn undone(&self, cwnd: u32, prior: u32) -> u32 {
        if self.is_bbr() { cwnd } else { cwnd.max(prior) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reno_grows_by_one_segment_a_round_trip() {
        let mut window = Window { cwnd: 10, ssthresh: 10, count: 0, plus: None };
        window.grow_linearly(10, 9);
        assert_eq!(window.cwnd, 10);
        window.grow_linearly(10, 1);
        assert_eq!((window.cwnd, window.count), (11, 0));
    }

    #[test]
    fn slow_start_ends_at_the_threshold() {
        let mut window = Window { cwnd: 10, ssthresh: 15, count: 0, plus: None };
        assert_eq!(window.grow_exponentially(8), 3);
        assert_eq!(window.cwnd, 15);
    }
}
