//! Receivers that open their window by small steps, which small segments fill (RFC 9293 section 3.8.6.2).

use super::{Data, Detector};
use crate::Thresholds;
use crate::account::Account;
use crate::connection::Connection;
use crate::findings::Tally;
use crate::kinds::Kind;

/// How many segments were small, and filled the window to its edge.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SillyWindow(u64);

impl Detector for SillyWindow {
    fn data(&mut self, of: &Connection, data: &Data, account: &mut Account) {
        let (segment, half) = (data.seen.segment, of.half(data.seen.from));
        let fills = data.is_new && half.way.knows_window() && data.end == half.way.edge();
        if fills && segment.payload_bytes > 0 && segment.payload_bytes < data.mss / 2 {
            self.0 += 1;
            account.tell(Tally::new(Kind::SillyWindow, data.seen.now, data.seen.now, &[segment.number]));
        }
    }

    /// A window that is no whole number of segments ends with a small one each time; that is not silly.
    fn end(&mut self, of: &Connection, limits: &Thresholds, account: &mut Account) {
        let data = of.halves.iter().map(|half| half.counts.data_segments()).max().unwrap_or(0);
        let least = u64::from(limits.silly_segments).max((data as f64 * limits.silly_share) as u64);
        if self.0 < least {
            account.withdraw(Kind::SillyWindow);
        }
    }
}
