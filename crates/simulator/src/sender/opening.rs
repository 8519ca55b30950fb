//! How a sender begins: with a SYN, and what becomes of cwnd if that had to be sent again.

use super::Sender;
use super::queue::Sent;
use crate::endpoint::{Outgoing, Tick};

impl Sender {
    /// Sends the SYN.
    pub(crate) fn open(&mut self, tick: &mut impl Tick) {
        self.queue.push(Sent::new(0, 0, true, tick.now()));
        self.next = 1;
        tick.transmit(Outgoing { fin: true, is_new: true, ..Outgoing::default() });
        self.set_timeout(tick);
    }

    /// Sends the SYN again: the peer has not got it.
    pub(crate) fn reopen(&mut self, tick: &mut impl Tick) {
        if self.unacknowledged == 0 && !self.queue.is_empty() {
            self.resend(tick, 0);
        }
    }

    /// The SYN was answered. If it had to be sent again twice, the path is to be tried with one segment (`tcp_init_transfer`).
    pub(crate) fn begin(&mut self) {
        if self.counts.resends > 1 {
            self.window.cwnd = 1;
        }
    }
}
