//! TCP's own pacing (`tcp_internal_pacing`): how far apart super-segments leave.

use framegauge_frames::Picoseconds;

use super::Sender;
use crate::TcpSettings;

/// So many segments of a connection go out before pacing begins (`tcp_update_skb_after_send`).
const UNPACED_SEGMENTS: u64 = 10;

/// Pacing of a connection.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    /// The application's limit, in bits per second of payload (`SO_MAX_PACING_RATE`); `None`: nothing is paced.
    pub(crate) bits_per_second: Option<u64>,
    /// Segments with payload that were sent (`data_segs_out`).
    segments: u64,
    /// Nothing is sent before.
    pub(super) until: Picoseconds,
}

impl Pace {
    /// Whether everything has to wait (`tcp_pacing_check`).
    pub(super) fn holds(&self, now: Picoseconds) -> bool {
        self.until > now
    }

    /// So many bytes and segments were sent at once, at a rate in bytes per second.
    fn sent(&mut self, now: Picoseconds, bytes: u64, segments: u64, rate: u64) {
        self.segments += segments;
        let mut span = Picoseconds::ZERO;
        if self.segments >= UNPACED_SEGMENTS {
            let whole = bytes * 1_000_000_000 / rate.max(1);
            // What comes late makes up for that, by half at most.
            let credit = (now - self.until).as_nanoseconds().min(whole / 2);
            span = Picoseconds::from_nanoseconds(whole - credit);
        }
        self.until = self.until.max(now) + span;
    }
}

impl Sender {
    /// Bytes per second at which cwnd goes out, with Linux' headroom: twice in slow start, 1.2 times otherwise
    /// (`tcp_update_pacing_rate`). Without pacing it only sizes super-segments.
    pub(crate) fn pacing_rate(&self, settings: &TcpSettings) -> Option<u64> {
        if let Some(bbr) = self.control.model() {
            return Some(bbr.pacing_rate().max(1));
        }
        let srtt = self.rtt.smoothed()?.as_nanoseconds().max(1);
        let (slow_start, otherwise) = settings.pacing_percent;
        let headroom = if self.window.cwnd < self.window.ssthresh / 2 { slow_start } else { otherwise };
        let segments = u64::from(self.window.cwnd.max(self.queue.len()));
        let rate = segments * u64::from(self.mss) * u64::from(headroom) * 10_000_000 / srtt;
        let limit = self.pace.bits_per_second.map_or(u64::MAX, |bits| bits / 8);
        Some(rate.min(limit).max(1))
    }

    /// The rate follows what was sent just now, as far as the connection is paced.
    pub(super) fn note_departure(&mut self, now: Picoseconds, bytes: u64, settings: &TcpSettings) {
        if !self.is_paced() {
            return;
        }
        let limit = self.pace.bits_per_second.map_or(u64::MAX, |bits| bits / 8);
        let rate = self.pacing_rate(settings).unwrap_or(limit);
        self.pace.sent(now, bytes, bytes.div_ceil(u64::from(self.mss)), rate);
    }

    /// What a connection keeps in its host's queue at most: the sysctl is for those that are not paced
    /// (`tcp_small_queue_check`).
    pub(super) fn output_limit_bytes(&self, settings: &TcpSettings) -> u64 {
        if self.is_paced() { u64::MAX } else { settings.output_limit_bytes }
    }

    pub(super) fn is_paced(&self) -> bool {
        self.pace.bits_per_second.is_some() || self.control.model().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 bytes at 1 MB/s take a millisecond; the first ten segments go out at once.
    #[test]
    fn segments_leave_at_the_rate_after_the_tenth() {
        let mut pace = Pace { bits_per_second: Some(8_000_000), ..Pace::default() };
        let at = |us: u64| Picoseconds::from_nanoseconds(us * 1000);
        (0..9).for_each(|_| pace.sent(at(100), 1000, 1, 1_000_000));
        assert!(!pace.holds(at(100)));
        pace.sent(at(100), 1000, 1, 1_000_000);
        assert!(pace.holds(at(1099)) && !pace.holds(at(1100)));
    }

    #[test]
    fn a_late_segment_makes_up_for_half_of_its_time_at_most() {
        let at = |us: u64| Picoseconds::from_nanoseconds(us * 1000);
        let mut pace = Pace { segments: 10, until: at(1000), ..Pace::default() };
        pace.sent(at(1300), 1000, 1, 1_000_000);
        assert_eq!(pace.until, at(2000));
        pace.sent(at(9000), 1000, 1, 1_000_000);
        assert_eq!(pace.until, at(9500));
    }
}
