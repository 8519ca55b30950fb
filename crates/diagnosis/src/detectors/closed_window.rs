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
}

impl Detector for ClosedWindow {
    fn acknowledgement(&mut self, _: &Connection, ack: &Acknowledgement, _: &mut Account) {
        let (shuts, is_shut) = (ack.segment.window == 0, &mut self.is_shut[ack.sender as usize]);
        self.closings += u64::from(shuts && !*is_shut);
        *is_shut = shuts;
    }

    fn end(&mut self, _: &Connection, _: &Thresholds, account: &mut Account) {
        account.recount(Kind::ZeroWindow, self.closings.max(1));
    }
}
