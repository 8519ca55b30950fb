//! A window that was the limit because an end does not scale it (RFC 7323 section 2).

use super::Detector;
use crate::Thresholds;
use crate::account::Account;
use crate::connection::Connection;
use crate::kinds::Kind;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WindowScaling;

impl Detector for WindowScaling {
    fn end(&mut self, of: &Connection, limits: &Thresholds, account: &mut Account) {
        let Some(syns) = of.syns() else { return };
        let limited = of.lost(Kind::ReceiverLimited);
        let is_unscaled = syns.iter().any(|syn| syn.window_scale.is_none());
        if is_unscaled && limited as f64 > limits.share_of_life * of.life() as f64 {
            account.rename(Kind::ReceiverLimited, Kind::WindowScalingOff);
        }
    }
}
