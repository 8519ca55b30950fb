//! Transfers that ended while the bytes under way still grew from RTT to RTT, and that nothing else held back.

use super::Detector;
use crate::Thresholds;
use crate::account::Account;
use crate::connection::Connection;
use crate::kinds::Kind;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SlowStart;

impl Detector for SlowStart {
    fn end(&mut self, of: &Connection, limits: &Thresholds, account: &mut Account) {
        let has_grown = of.halves.iter().any(|half| {
            let (growing, steady) = half.rounds.at_data();
            growing >= limits.slow_start_rounds && steady <= 1 && half.counts.resent_segments() == 0
        });
        if has_grown && of.lost(Kind::NetworkLimited) > of.life() / 2 {
            account.rename(Kind::NetworkLimited, Kind::ShortFlowSlowStart);
        }
    }
}
