//! How long acknowledgements wait, and how many are sent at once before that (`tcp_event_data_recv`, `tcp_enter_quickack_mode`).

use framegauge_frames::Picoseconds;

use super::Receiver;
use crate::TcpSettings;

impl Receiver {
    /// Delayed acknowledgements adapt to the time between segments (`tcp_event_data_recv`).
    pub(super) fn note_time(&mut self, now: Picoseconds, settings: &TcpSettings) {
        let least = settings.delayed_ack;
        let gap = now - self.last_received;
        if self.wait == Picoseconds::ZERO {
            self.quick = self.quick.max(self.quick_count(settings.quick_acks));
            self.wait = least;
        } else if gap.get() <= least.get() / 2 {
            self.wait = Picoseconds::new(self.wait.get() / 2 + least.get() / 2);
        } else if gap < self.wait {
            self.wait = Picoseconds::new(self.wait.get() / 2) + gap;
        } else if gap > settings.minimum_rto + self.rtt {
            // The sender seems to begin anew.
            self.quick = self.quick.max(self.quick_count(settings.quick_acks));
        }
        self.last_received = now;
    }

    fn quick_count(&self, most: u32) -> u32 {
        (self.window.open as u32 / (2 * self.peer_mss)).max(2).min(most)
    }

    pub(super) fn be_quick(&mut self, settings: &TcpSettings) {
        self.quick = self.quick.max(self.quick_count(settings.quick_acks));
        self.is_interactive = false;
        self.wait = settings.delayed_ack;
    }

    /// One of the quick acknowledgements is used up, of what came in order or not. With the last of them delays begin, and are
    /// those of a connection on which something has come (`tcp_dec_quickack_mode`).
    pub(super) fn use_quick(&mut self, settings: &TcpSettings) {
        if self.quick > 0 && self.is_pending {
            self.quick -= 1;
            if self.quick == 0 {
                self.wait = settings.delayed_ack;
            }
        }
    }
}
