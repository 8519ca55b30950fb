//! How often a receiver closed its window: each time counts once, however often it said so.

use super::{Acknowledgement, Detector};
use crate::Thresholds;
use crate::account::Account;
use crate::connection::Connection;
use crate::kinds::Kind;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClosedWindow {
    /// The newest acknowledgement of each sender's data closed the window.
    is_shut: [bool; 2],
    closings: u64,
    /// That of the SYN-ACK was closed.
    answered_shut: bool,
}

impl ClosedWindow {
    /// What helps where only the opening had a closed window.
    pub(crate) const REMEDY_OF_OPENING: &'static str = "Look at what answers SYNs in the server's name (a firewall's SYN proxy, a balancer): it opens the window when its own connection to the server is there.";

    /// Whether the SYN-ACK closed the window, and nothing after it did: nobody had anything to read yet.
    pub(crate) fn only_answered_shut(&self) -> bool {
        self.answered_shut && self.closings == 1
    }
}

impl Detector for ClosedWindow {
    fn acknowledgement(&mut self, of: &Connection, ack: &Acknowledgement, _: &mut Account) {
        // To one that has sent its FIN, and knows that it came, no window is closed.
        let shuts = ack.segment.window == 0 && !of.half(ack.sender).is_done();
        let is_shut = &mut self.is_shut[ack.sender as usize];
        self.closings += u64::from(shuts && !*is_shut);
        self.answered_shut |= shuts && ack.segment.syn.is_some();
        *is_shut = shuts;
    }

    fn end(&mut self, _: &Connection, _: &Thresholds, account: &mut Account) {
        account.recount(Kind::ZeroWindow, self.closings.max(1));
    }
}
