//! Congestion control: how cwnd grows, and to what it shrinks.

mod bbr;
mod control;
mod cubic;
mod dctcp;
mod hystart_plus;
mod reno;

use framegauge_frames::Picoseconds;

pub(crate) use self::bbr::{Bbr, Sample, View};
pub use self::control::Algorithm;
pub(crate) use self::control::Control;
use self::hystart_plus::HystartPlus;
use crate::{Hystart, TcpSettings};

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
