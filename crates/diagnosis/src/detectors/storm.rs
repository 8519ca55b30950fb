//! Storms of resends: much of what is sent within a second was sent before. What was too large for the path is sent again as a
//! whole, once its sender knows (RFC 1191 section 6.4, RFC 4821): that tells of a size, and of no losses as many.

use super::{Data, Detector};
use crate::account::Account;
use crate::connection::Connection;
use crate::findings::Tally;
use crate::kinds::Kind;

const SECOND: i64 = 1_000_000_000;

/// The second of each end that goes on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Storm([Second; 2]);

/// What had been sent when it began.
#[derive(Debug, Clone, Copy, Default)]
struct Second {
    begin: i64,
    bytes: u64,
    resent_bytes: u64,
    resent_segments: u64,
    /// It is told.
    is_storm: bool,
}

impl Detector for Storm {
    fn data(&mut self, of: &Connection, data: &Data, account: &mut Account) {
        let (now, counts) = (data.seen.now, &of.half(data.seen.from).counts);
        let lost_segments = counts.resent_segments() - counts.resized_segments();
        let lost_bytes = counts.resent_bytes() - counts.resized_bytes();
        let second = &mut self.0[data.seen.from as usize];
        if now - second.begin >= SECOND {
            *second = Second {
                begin: now,
                bytes: counts.bytes(),
                resent_bytes: lost_bytes,
                resent_segments: lost_segments,
                is_storm: false,
            };
            return;
        }
        let resends = lost_segments - second.resent_segments;
        if second.is_storm || resends < u64::from(data.limits.storm_resends) {
            return;
        }
        let resent_bytes = lost_bytes - second.resent_bytes;
        let bytes = counts.bytes() - second.bytes + resent_bytes;
        let share = resent_bytes as f64 / bytes.max(1) as f64;
        if share > data.limits.storm_share {
            second.is_storm = true;
            let begin = second.begin.max(of.first);
            account.tell(Tally::new(Kind::RetransmitStorm, begin, now, &[data.seen.segment.number]));
        }
    }
}
