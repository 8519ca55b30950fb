//! Segments whose checksum is wrong: those that a NIC still fills in, and those that the receiver discards.
//!
//! A capture shows the same of both. What becomes of them tells them apart:
//!
//! ```text
//!   acknowledged as they are                     left to the NIC of a host where this was captured: harmless
//!   never acknowledged, and those of the same    discarded by the receiver (RFC 9293 section 3.1): an offload that does not
//!   end that are right are, all of them          see into a tunnel, or damage on the way
//!   nothing of this end was ever acknowledged    cannot tell, unless a router has passed them on: no NIC is to come then
//! ```

use crate::connection::{Connection, SIDES, Side};
use crate::findings::{MOST_PACKETS, Tally};
use crate::kinds::Kind;
use crate::resets::has_passed_routers;
use crate::words::{duration, times};
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

/// More are forgotten: the oldest first.
const MOST_WRONG: usize = 64;

/// What was sent with a wrong checksum.
#[derive(Debug, Clone, Copy)]
struct Wrong {
    begin: u64,
    end: u64,
}

/// The segments of one end with wrong checksums.
#[derive(Debug, Clone, Default)]
pub(crate) struct Discarded {
    /// Not acknowledged, and not sent again with a right one.
    open: Vec<Wrong>,
    /// Sent again with a right one.
    repaired: Vec<Wrong>,
    /// Acknowledged as they were.
    answered: u64,
    count: u64,
    first: i64,
    numbers: Vec<u64>,
    is_told: bool,
}

impl Discarded {
    fn take(&mut self, range: Wrong, is_right: bool, number: u64, now: i64) {
        if is_right {
            let (repaired, open): (Vec<Wrong>, Vec<Wrong>) =
                self.open.iter().partition(|wrong| range.begin <= wrong.begin && wrong.end <= range.end);
            if !repaired.is_empty() {
                self.open = open;
                self.repaired
                    .extend(repaired.into_iter().take(MOST_WRONG - self.repaired.len().min(MOST_WRONG)));
            }
            return;
        }
        if self.count == 0 {
            self.first = now;
        }
        self.count += 1;
        if self.numbers.len() < MOST_PACKETS {
            self.numbers.push(number);
        }
        if !self.open.iter().any(|wrong| wrong.begin == range.begin && wrong.end == range.end) {
            if self.open.len() == MOST_WRONG {
                self.open.remove(0);
            }
            self.open.push(range);
        }
    }

    /// The other end has all of `[begin, end)`.
    #[inline]
    pub(crate) fn answer(&mut self, begin: u64, end: u64) {
        if !self.open.is_empty() {
            let before = self.open.len();
            self.open.retain(|wrong| wrong.begin < begin || wrong.end > end);
            self.answered += (before - self.open.len()) as u64;
        }
    }
}

impl Connection {
    /// Remembers a wrong checksum, or that a right one repairs it. Aggregates have theirs open on any host.
    pub(crate) fn watch_checksum(&mut self, segment: &Segment, from: Side, now: i64) {
        let Some(is_right) = segment.checksum_is_right else { return };
        let mss = self.mss(from);
        let half = self.half_mut(from);
        if is_right && half.discarded.open.is_empty() {
            return;
        }
        let begins = u64::from(segment.flags.contains(TcpFlags::SYN));
        let ends = u64::from(segment.flags.contains(TcpFlags::FIN));
        let begin = half.way.near(segment.seq);
        let end = begin + begins + u64::from(segment.payload_bytes) + ends;
        if end > begin && segment.payload_bytes <= mss {
            half.discarded.take(Wrong { begin, end }, is_right, segment.number, now);
        }
    }

    /// Whether the receiver discards what an end sends with a wrong checksum, and something of that lies within `range`.
    pub(crate) fn discards(&self, sender: Side, range: (u64, u64)) -> bool {
        let half = self.half(sender);
        let all = &half.discarded;
        let is_within = |wrong: &Wrong| wrong.begin < range.1 && range.0 < wrong.end;
        // A host that leaves them to its NIC leaves all of them.
        all.answered == 0
            && half.counts.acknowledgements() > 0
            && half.checksums.has_right()
            && all.open.iter().chain(&all.repaired).any(is_within)
    }

    /// Names what was discarded without a pause; takes back what later ones that were acknowledged have disproved.
    pub(crate) fn judge_checksums(&mut self) {
        for side in SIDES {
            let all = &self.half(side).discarded;
            if all.is_told && all.answered > 0 {
                self.rename(Kind::BadChecksum, Kind::RtoStall);
            } else if !all.repaired.is_empty() && self.discards(side, (0, u64::MAX)) && !all.is_told {
                let (first, number) = (all.first, all.numbers.first().copied().unwrap_or(0));
                self.note(Kind::BadChecksum, first, first, 0, &[number]);
                self.half_mut(side).discarded.is_told = true;
            }
            let all = &self.half(side).discarded;
            if all.is_told && all.answered == 0 {
                let (count, numbers) = (all.count, all.numbers.clone());
                if let Some(tally) = self.tallies.iter_mut().find(|tally| tally.kind == Kind::BadChecksum) {
                    (tally.count, tally.packets) = (count, numbers);
                }
            }
        }
    }

    /// The pause of an end that sent what was discarded has its name.
    pub(crate) fn tell_discarded(&mut self, sender: Side) -> Kind {
        self.half_mut(sender).discarded.is_told = true;
        Kind::BadChecksum
    }

    /// What was discarded, as sentences.
    pub(crate) fn discarded_in_words(&self, tally: &Tally) -> String {
        format!(
            "Segments with a wrong checksum were never acknowledged ({}, {}), while those of the same end with a right one were: \
             they were wrong on the wire, and the receiver discards them.",
            times(tally),
            duration(tally.lost),
        )
    }

    /// Why SYNs with wrong checksums are repeated, as a sentence.
    pub(crate) fn wrong_syns_in_words(&self) -> &'static str {
        let are_wrong =
            |side: &Side| self.half(*side).opening.count() > 1 && self.half(*side).checksums.are_all_wrong();
        let Some(side) = SIDES.into_iter().find(are_wrong) else { return "" };
        if has_passed_routers(self.hops[side as usize]) {
            return " All of these SYNs have a wrong checksum, and a router had passed them on, so that no NIC was still to fill it in: that is why nobody answers (an offload that does not see into a tunnel: ethtool -K DEVICE tx-checksum-ip-generic off).";
        }
        " All of these SYNs have a wrong checksum. In a capture at the receiver that is why nobody answers (an offload that does not see into a tunnel: ethtool -K DEVICE tx-checksum-ip-generic off); at the sender, the NIC still fills it in."
    }
}
