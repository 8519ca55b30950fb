//! A path MTU that fell, seen behind the place where it did: what is too large never comes here. After a silence as long as
//! several timeouts, the sender goes on in smaller segments than before, as it does when it has learnt that large ones are lost.
//!
//! ```text
//!   ■ ■ ■ ■ ■      ……………      ▪ ▪ ▪ ▪ ▪ ▪      ■ 8,948 bytes, ▪ 1,024, and none of them the end of a write
//! ```

use super::{Data, Detector};
use crate::Thresholds;
use crate::account::Account;
use crate::cause::Cause;
use crate::connection::{Connection, SIDES};
use crate::findings::Tally;
use crate::gap::Gap;
use crate::kinds::Kind;
use crate::sizes::{Grade, Sizes};
use framegauge_packets::TcpFlags;

/// So many segments of the same size, none of them the end of a write, are as large as the sender makes them.
const ENOUGH: u32 = 8;
/// A timer runs out twice before a sender tries smaller segments, and waits twice as long the second time.
const TIMEOUTS: i64 = 3;

/// What its time may have been taken for.
const TOLD: [Kind; 4] = [Kind::RtoStall, Kind::TailLoss, Kind::Unexplained, Kind::ApplicationLimited];

/// By sender.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shrunk([Option<Box<Rest>>; 2]);

/// A silence after which segments were smaller.
#[derive(Debug, Clone)]
struct Rest {
    tally: Tally,
    /// The largest payload before it.
    before: u32,
    /// The largest since, and how often it was not the end of a write.
    since: u32,
    count: u32,
}

impl Detector for Shrunk {
    fn pause(&mut self, of: &Connection, gap: &Gap, _: Cause, _: &mut Account) {
        let half = of.half(gap.from);
        let (before, bytes) = (half.sent.largest_bytes(), gap.segment.payload_bytes);
        let is_long = gap.length > half.round_trip.timeout().saturating_mul(TIMEOUTS);
        // Numbers or a hole show that something was lost before it came here. Where nothing could, the size alone says that the
        // sender had learnt something meanwhile.
        let is_untold = of.reach(gap.from) > 0 && half.identities.tells_nothing();
        let is_lost = half.identities.missing() > 0 || half.way.lacks_oldest() || is_untold;
        if bytes == 0 || bytes >= before || before <= of.always_carried() || !is_long || !is_lost {
            return;
        }
        let packets = [half.sent.number(), gap.segment.number];
        let tally = Tally::new(Kind::PmtuBlackHole, of.last, of.last + gap.length, &packets);
        let rest = Rest { tally: tally.costing(gap.length), before, since: 0, count: 0 };
        self.0[gap.from as usize] = Some(Box::new(rest));
    }

    fn data(&mut self, _: &Connection, data: &Data, _: &mut Account) {
        let side = data.seen.from as usize;
        let Some(rest) = &mut self.0[side] else { return };
        let segment = data.seen.segment;
        if segment.payload_bytes > rest.since {
            (rest.since, rest.count) = (segment.payload_bytes, 0);
        }
        let ends_write = segment.flags.contains(TcpFlags::PSH) || segment.flags.contains(TcpFlags::FIN);
        rest.count += u32::from(segment.payload_bytes == rest.since && !ends_write);
        if rest.since >= rest.before {
            self.0[side] = None;
        }
    }

    fn end(&mut self, of: &Connection, _: &Thresholds, account: &mut Account) {
        for sender in SIDES {
            let Some(rest) = self.0[sender as usize].take().filter(|rest| rest.count >= ENOUGH) else {
                continue;
            };
            let Some(told) = TOLD.into_iter().find(|kind| of.lost(*kind) >= rest.tally.lost) else {
                continue;
            };
            let (passed, lost, before) = (rest.since, rest.before, Some(rest.before));
            account.size(Sizes {
                sender,
                passed,
                lost,
                before,
                grade: Grade::Likely,
                lived: true,
                is_over: false,
            });
            let is_after =
                |tally: &&Tally| tally.kind == Kind::IdleRestart && tally.begin >= rest.tally.begin;
            if of.tallies.iter().find(is_after).is_some_and(|tally| tally.count == 1) {
                account.rename(Kind::IdleRestart, Kind::NetworkLimited);
            }
            account.correct(told, rest.tally, sender);
        }
    }
}
