//! A path MTU that fell, seen behind the place where it did: what is too large never comes here. After a silence as long as
//! several timeouts, the sender goes on in smaller segments than before, as it does when it has learnt that large ones are lost.
//!
//! ```text
//!   ■ ■ ■ ■ ■      ……………      ▪ ▪ ▪ ▪ ▪ ▪      ■ 8,948 bytes, ▪ 1,024, and none of them the end of a write
//! ```
//!
//! It may also have been too small from the beginning: then no large one ever came here. What the sender would send is known from
//! the SYNs, less its options (RFC 6691), and identifications show that it had sent something.

use super::{Data, Detector};
use crate::Thresholds;
use crate::account::Account;
use crate::cause::Cause;
use crate::connection::{Connection, SIDES, Side};
use crate::findings::Tally;
use crate::gap::Gap;
use crate::kinds::Kind;
use crate::rtt::RoundTrip;
use crate::sizes::{Grade, Sizes};
use framegauge_packets::TcpFlags;

/// So many segments of the same size, none of them the end of a write, are as large as the sender makes them.
const ENOUGH: u32 = 8;
/// A timer runs out twice before a sender tries smaller segments, and waits twice as long the second time.
const TIMEOUTS: i64 = 3;

/// Of the options of a segment the MSS here counts timestamps alone (RFC 7323 appendix A).
const TIMESTAMP_BYTES: u32 = 12;

/// What its time may have been taken for, also by what is told in the end.
static TOLD: [Kind; 4] = [Kind::RtoStall, Kind::TailLoss, Kind::Unexplained, Kind::ApplicationLimited];

/// By sender.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shrunk([Option<Box<Rest>>; 2]);

/// A silence after which segments were smaller.
#[derive(Debug, Clone)]
struct Rest {
    tally: Tally,
    /// The largest payload before it, or what the SYNs allow if nothing large had come.
    before: u32,
    /// The packets that were missing, if only they tell that something was lost.
    missing: Option<u32>,
    /// The largest since, and how often it was not the end of a write.
    since: u32,
    count: u32,
}

impl Detector for Shrunk {
    fn pause(&mut self, of: &Connection, gap: &Gap, _: Cause, _: &mut Account) {
        let half = of.half(gap.from);
        let bytes = gap.segment.payload_bytes;
        if bytes == 0 || gap.length <= timeout(of, gap.from).saturating_mul(TIMEOUTS) {
            return;
        }
        let largest = half.sent.largest_bytes();
        let lost = if largest > of.always_carried() {
            loses(of, gap).then_some((largest, None))
        } else {
            never_came(of, gap).map(|(before, missing)| (before, Some(missing)))
        };
        let Some((before, missing)) = lost.filter(|(before, _)| bytes < *before) else { return };
        let packets = [half.sent.number(), gap.segment.number];
        let tally = Tally::new(Kind::PmtuBlackHole, of.last, of.last + gap.length, &packets);
        let rest = Rest { tally: tally.costing(gap.length), before, missing, since: 0, count: 0 };
        self.0[gap.from as usize] = Some(Box::new(rest));
    }

    fn data(&mut self, _: &Connection, data: &Data, _: &mut Account) {
        let side = data.seen.from as usize;
        let Some(rest) = &mut self.0[side] else { return };
        let segment = data.seen.segment;
        if segment.payload_bytes > rest.since {
            rest.since = segment.payload_bytes;
            // A sender that has learnt of a size may probe larger ones (RFC 4821 section 7.2).
            rest.count = if rest.count < ENOUGH { 0 } else { rest.count };
        }
        let ends_write = segment.flags.contains(TcpFlags::PSH) || segment.flags.contains(TcpFlags::FIN);
        rest.count += u32::from(segment.payload_bytes == rest.since && !ends_write);
        if rest.since >= rest.before {
            self.0[side] = None;
        }
    }

    fn end(&mut self, of: &Connection, _: &Thresholds, account: &mut Account) {
        for sender in SIDES {
            // Whether its sender counts is known by now.
            let most_missing = of.half(sender).identities.most_missing();
            let is_told = |rest: &Rest| {
                rest.count >= ENOUGH && rest.missing.is_none_or(|missing| missing <= most_missing)
            };
            let Some(rest) = self.0[sender as usize].take().filter(|rest| is_told(rest)) else { continue };
            if TOLD.iter().all(|kind| of.lost(*kind) < rest.tally.lost) {
                continue;
            }
            let (passed, lost) = (rest.since, rest.before);
            let before = rest.missing.is_none().then_some(rest.before);
            account.size(Sizes {
                sender,
                passed,
                lost,
                before,
                grade: Grade::Likely,
                lived: true,
                is_over: false,
                is_witnessed: false,
            });
            let is_after =
                |tally: &&Tally| tally.kind == Kind::IdleRestart && tally.begin >= rest.tally.begin;
            if of.tallies.iter().find(is_after).is_some_and(|tally| tally.count == 1) {
                account.rename(Kind::IdleRestart, Kind::NetworkLimited);
            }
            account.correct(&TOLD, rest.tally, sender);
        }
    }
}

/// The sender's timer, which the handshake tells as well (RFC 6298 section 2.2) where nothing of it was ever acknowledged here.
fn timeout(of: &Connection, sender: Side) -> i64 {
    let round_trip = &of.half(sender).round_trip;
    if round_trip.samples() > 0 || of.path_rtt() == 0 {
        return round_trip.timeout();
    }
    let mut of_handshake = RoundTrip::default();
    of_handshake.sample(of.path_rtt());
    of_handshake.timeout()
}

/// Whether something was lost before it came here. Numbers or a hole show it. Where nothing could, the size alone says that the
/// sender had learnt something meanwhile.
fn loses(of: &Connection, gap: &Gap) -> bool {
    let half = of.half(gap.from);
    let is_untold = of.reach(gap.from) > 0 && half.identities.tells_nothing();
    half.identities.missing() > 0 || half.way.lacks_oldest() || is_untold
}

/// The payload of a full segment where none has come, and how many packets are missing that may have been such.
fn never_came(of: &Connection, gap: &Gap) -> Option<(u32, u32)> {
    let half = of.half(gap.from);
    let segment = gap.segment;
    let stamp_bytes = if segment.timestamps.is_some() { TIMESTAMP_BYTES } else { 0 };
    let others = u32::from(segment.option_bytes).saturating_sub(stamp_bytes);
    let full = half.opening.mss()?.saturating_sub(others);
    let missing = half.identities.may_miss();
    let may_be_lost = missing > 0 && of.reach(gap.from) > 0 && !of.lacks_acks(gap.from);
    let is_paid = gap.length <= of.longest_wait(gap.from, missing.into());
    (may_be_lost && is_paid && full > of.always_carried()).then_some((full, missing))
}
