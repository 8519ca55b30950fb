//! A standstill that the ends know nothing of, told without timestamps: data is under way for longer than its sender's timer waits,
//! and then it is answered, without having been repeated (RFC 6298 section 5). Where nothing else of the capture moved meanwhile,
//! the capture's clock was set (`steps.rs`). A sender that repeats says that the time went by.

use super::{Detector, Seen};
use crate::Thresholds;
use crate::account::Account;
use crate::connection::{Connection, NOT_PURE, SIDES, Side};
use crate::steps::{Says, Witness};

/// Timers begin with up to so much (RFC 1122 section 4.2.3.1).
const LEAST_FIRST: i64 = 3_000_000_000;
/// Where an RTT was measured they need not wait less than 1 s (RFC 6298 section 2.4): twice that.
const LEAST: i64 = 2_000_000_000;
/// What had been repeated meanwhile comes within so much, or an RTT.
const SETTLED: i64 = 10_000_000;
/// A display filter leaves the acknowledgement of the handshake, if any.
const HANDSHAKE_ACKS: u64 = 1;
/// What the tap takes for the sender's timer may be less than that is.
const TIMERS: i64 = 2;

#[derive(Debug, Clone, Default)]
pub(crate) struct Standstill(Option<Open>);

/// A standstill, until an end says what it was.
#[derive(Debug, Clone, Copy)]
struct Open {
    sender: Side,
    begin: i64,
    end: i64,
    /// What was under way.
    una: u64,
    high: u64,
    /// Nothing was, beside the receiver, and its sender had more to send.
    rests: bool,
}

impl Open {
    fn new(of: &Connection, packet: &Seen) -> Option<Open> {
        let (begin, end) = (of.last, packet.now);
        let waits = |side: &Side| {
            let half = of.half(*side);
            let least = if half.round_trip.samples() > 0 { LEAST } else { LEAST_FIRST };
            let longest = least.max(half.round_trip.timeout().saturating_mul(TIMERS));
            let is_clear = !half.way.is_shut() && !half.way.lacks_oldest() && !half.silences.is_timeout();
            !half.way.is_idle() && is_clear && end - begin > longest
        };
        let goes_on = of.established && !of.closed;
        let waiting = SIDES.into_iter().find(waits).filter(|_| goes_on);
        let sender = waiting.or_else(|| SIDES.into_iter().find(|side| goes_on && rests(of, *side)))?;
        let way = &of.half(sender).way;
        Some(Open { sender, begin, end, una: way.una(), high: way.high(), rests: waiting.is_none() })
    }

    /// The same of a sender that had more to send: it goes on with that, and repeats nothing that was lost meanwhile.
    fn resume(&self, of: &Connection, packet: &Seen) -> Option<Option<Says>> {
        let Seen { segment, from, now } = *packet;
        if from != self.sender || segment.payload_bytes == 0 {
            return (now - self.end > LEAST).then_some(None);
        }
        if of.half(from).way.near(segment.seq) < self.high {
            return Some(Some(Says::Against));
        }
        (now - self.end > of.path_rtt().max(SETTLED)).then_some(Some(Says::Hint))
    }

    /// What a packet says: nothing yet, or what of the standstill; or nothing any more.
    fn take(&self, of: &Connection, packet: &Seen) -> Option<Option<Says>> {
        if self.rests {
            return self.resume(of, packet);
        }
        let Seen { segment, from, now } = *packet;
        let only_acks = segment.payload_bytes == 0 && segment.flags.0 & NOT_PURE.0 == 0;
        let own = &of.half(from).way;
        let place = own.near(segment.seq);
        if now - self.end > LEAST {
            return Some(None);
        }
        if from == self.sender {
            // A repeat, or a probe.
            let repeats = !only_acks && place < self.high || only_acks && place < own.high();
            return repeats.then_some(Some(Says::Against));
        }
        let ack = of.half(self.sender).way.near(segment.ack);
        if ack <= self.una {
            return None;
        }
        // A probe of an idle end acknowledges as well (RFC 9293 section 3.8.4).
        let is_answer = place >= own.high() && ack <= of.half(self.sender).way.high();
        // Where the file has no acknowledgements, or lacks this one, what was under way had been answered long before.
        let has_them = SIDES.iter().any(|side| of.half(*side).counts.pure_acks() > HANDSHAKE_ACKS);
        Some(match only_acks && ack <= self.high {
            true => is_answer.then_some(Says::Proof),
            false => (is_answer && has_them).then_some(Says::Hint),
        })
    }
}

/// Whether a sender of much has nothing under way, all of which was answered here before it can have heard that, and goes on with more:
/// one such may have stood still itself, and several hosts did not at the same time.
fn rests(of: &Connection, side: Side) -> bool {
    let half = of.half(side);
    half.way.is_idle()
        && half.sent.is_open()
        && half.sent.had_more()
        && !half.way.is_shut()
        && of.reach(side) > 0
}

impl Detector for Standstill {
    fn segment(&mut self, of: &Connection, packet: &Seen, account: &mut Account) {
        if packet.now - of.last > LEAST && packet.segment.timestamps.is_none() {
            self.0 = Open::new(of, packet);
        }
        if let Some(open) = self.0
            && let Some(said) = open.take(of, packet)
        {
            self.0 = None;
            let host = [of.ends.client, of.ends.server][open.sender as usize].ip();
            let host = open.rests.then_some(host);
            let told = said.map(|says| Witness { begin: open.begin, end: open.end, rtt: 0, says, host });
            told.into_iter().for_each(|witness| account.witness(witness));
        }
    }

    fn end(&mut self, _: &Connection, _: &Thresholds, _: &mut Account) {
        self.0 = None;
    }
}
