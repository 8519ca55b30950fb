//! DCTCP (RFC 8257), as Linux' `net/ipv4/tcp_dctcp.c`.

use super::control::CongestionControl;
use super::{Acked, Window};
use crate::TcpSettings;

/// A fraction of 1, in 1024ths.
const ONE: u64 = 1024;
/// g of 1/16, as a shift.
const GAIN: u32 = 4;

/// The share of marked segments.
#[derive(Debug, Clone)]
pub(crate) struct Dctcp {
    /// In 1024ths; 1 at the start (RFC 8257 section 3.3).
    alpha: u64,
    /// The window of observation ends when this is acknowledged.
    round_end: u64,
    delivered: u64,
    delivered_marked: u64,
}

impl Default for Dctcp {
    fn default() -> Self {
        Dctcp { alpha: ONE, round_end: 0, delivered: 0, delivered_marked: 0 }
    }
}

impl Dctcp {
    fn decrease(&self, cwnd: u32) -> u32 {
        (cwnd - ((u64::from(cwnd) * self.alpha) >> 11) as u32).max(2)
    }

    fn observe(&mut self, acked: &Acked) {
        if acked.unacknowledged < self.round_end {
            return;
        }
        let marked = acked.delivered_marked - self.delivered_marked;
        let delivered = acked.delivered - self.delivered;
        let less = (self.alpha >> GAIN).max(u64::from(self.alpha > 0 && marked == 0));
        self.alpha -= less.min(self.alpha);
        if marked > 0 {
            self.alpha = (self.alpha + (marked << (10 - GAIN)) / delivered.max(1)).min(ONE);
        }
        self.round_end = acked.next;
        self.delivered = acked.delivered;
        self.delivered_marked = acked.delivered_marked;
    }
}

impl CongestionControl for Dctcp {
    const TELLS_EVERY_MARK: bool = true;

    fn new(_: &TcpSettings) -> Dctcp {
        Dctcp::default()
    }

    fn threshold(&mut self, window: &Window) -> u32 {
        self.decrease(window.cwnd)
    }

    /// Marks tell nothing of it (RFC 8257 section 3.4).
    fn threshold_of_loss(&self, cwnd: u32, _threshold: u32) -> u32 {
        (cwnd >> 1).max(2)
    }

    fn note(&mut self, _window: &mut Window, acked: &Acked) {
        self.observe(acked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use framegauge_frames::Picoseconds;

    #[test]
    fn alpha_follows_the_share_of_marks() {
        let mut dctcp = Dctcp::default();
        let mut acked = Acked {
            now: Picoseconds::ZERO,
            rtt: None,
            unacknowledged: 0,
            next: 10,
            delivered: 0,
            delivered_marked: 0,
            burst: Picoseconds::ZERO,
            is_paced: false,
        };
        for round in 1..200 {
            acked = Acked { unacknowledged: round * 10, next: round * 10 + 10, ..acked };
            acked.delivered += 100;
            acked.delivered_marked += 25;
            dctcp.observe(&acked);
        }
        // The kernel's shifts round what is taken off down: a quarter, and up to a sixteenth of it more.
        assert!((256..=272).contains(&dctcp.alpha), "{}", dctcp.alpha);
        assert_eq!(Dctcp::default().decrease(100), 50);
    }
}
