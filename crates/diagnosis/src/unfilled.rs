//! Bytes that a receiver asks for until the end, and that never come.
//!
//! ```text
//!   sender ──── large ──── ✗      tap      receiver
//!          ──── small ───────────▶ │ ─────────▶      SACK: what lies between is missing; nothing ever fills it
//! ```
//!
//! A sender that lives repeats them, so they are lost on their way here again and again, or it died. Its application has nothing
//! to do with it.

use crate::Thresholds;
use crate::connection::{Connection, Side};
use crate::findings::{Tally, merge};
use crate::kinds::Kind;
use crate::sizes::{Grade, Sizes};
use crate::words::{duration, times};

/// What the time in which a hole was open may have been taken for.
const TAKEN_FOR: [Kind; 5] =
    [Kind::ApplicationLimited, Kind::NetworkLimited, Kind::Unexplained, Kind::TailLoss, Kind::RtoStall];

/// What never came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unfilled {
    pub(crate) bytes: u64,
    pub(crate) kind: Kind,
    /// The file has nothing of the sender.
    is_unseen: bool,
}

/// What had been told when a hole opened.
#[derive(Debug, Clone, Default)]
pub(crate) struct Before {
    at: i64,
    number: u64,
    told: Vec<(Kind, i64, u64)>,
}

impl Before {
    pub(crate) fn new(tallies: &[Tally], at: i64, number: u64) -> Before {
        let is_taken_for = |tally: &&Tally| TAKEN_FOR.contains(&tally.kind);
        let tallies = tallies.iter().filter(is_taken_for).map(|tally| (tally.kind, tally.lost, tally.count));
        Before { at, number, told: tallies.collect() }
    }

    /// The time and the count of a kind.
    fn of(&self, kind: Kind) -> (i64, u64) {
        let before = self.told.iter().find(|(of, ..)| *of == kind);
        before.map_or((0, 0), |(_, lost, count)| (*lost, *count))
    }
}

impl Connection {
    /// Data has skipped something. Of the first hole that is open it is known then what had been told before.
    #[cold]
    pub(crate) fn watch_hole(&mut self, sender: Side, now: i64) {
        let half = self.half(sender);
        let first = half.way.skipped((half.way.una(), half.way.high()));
        if let Some(hole) = first.filter(|hole| hole.since == now) {
            let before = Before::new(&self.tallies, now, hole.number);
            self.half_mut(sender).before_hole = Some(Box::new(before));
        }
    }

    /// The connection ends with a hole: whose time it was since the receiver asked for it. A timer had to run out meanwhile.
    pub(crate) fn settle_unfilled(&mut self, sender: Side, limits: &Thresholds) {
        let half = self.half(sender);
        let Some(hole) = half.way.oldest_hole() else { return self.settle_unseen(sender) };
        let (opened, timeout) = (hole.since, half.round_trip.timeout());
        let waited = self.last - opened;
        // All that the receiver says acknowledges what it has: so long after, the hole is still open.
        let still_lacks = self.half(sender.other()).spoke() - opened > timeout;
        let asks =
            still_lacks || half.way.flight().sacked_bytes() > 0 || half.is_revealed(limits.duplicate_acks);
        if !asks || half.counts.unseen_bytes() > 0 || waited <= timeout {
            return;
        }
        let bytes = hole.end - hole.begin;
        let lost = u32::try_from(bytes).unwrap_or(u32::MAX).min(half.mss());
        let packets = [hole.number, self.last_number];
        let sizes = self.sizes_of_hole(sender, opened, lost);
        let may_vanish = sizes.is_some_and(|sizes| sizes.grade > Grade::Possible);
        if let Some(sizes) = sizes {
            self.sizes.get_or_insert(sizes);
        }
        let kind = if may_vanish { Kind::PmtuBlackHole } else { Kind::RtoStall };
        self.unfilled = Some(Unfilled { bytes, kind, is_unseen: false });
        let before = self.half_mut(sender).before_hole.take().filter(|before| before.at == opened);
        let tally = Tally::new(kind, opened, self.last, &packets);
        self.tell_unfilled(sender, tally, before.as_deref());
    }

    /// The same where the file has nothing of the sender.
    fn settle_unseen(&mut self, sender: Side) {
        let request = self.observers.as_ref().and_then(|all| all.detectors.asked.of(sender));
        let Some(request) = request.filter(|_| !self.half(sender).way.is_seen()) else { return };
        if request.waited() <= self.half(sender).round_trip.timeout() {
            return;
        }
        let (tally, before) = (request.tally(), request.before().clone());
        self.unfilled = Some(Unfilled { bytes: request.bytes(), kind: tally.kind, is_unseen: true });
        self.tell_unfilled(sender, tally, Some(&before));
    }

    /// Something was never filled: its time is what it had been taken for since. `before`: what had been told until then, if that is
    /// known.
    fn tell_unfilled(&mut self, sender: Side, tally: Tally, before: Option<&Before>) {
        let waited = tally.end - tally.begin;
        let lost = match before {
            Some(before) => self.take_since(sender, before, waited),
            None => self.take_from(Kind::ApplicationLimited, (0, 0), waited),
        };
        self.tallies.retain(|tally| tally.count > 0);
        if let Some(picture) = &mut self.picture {
            picture.note(tally.kind, tally.begin, tally.end);
        }
        merge(&mut self.tallies, &tally.costing(lost));
    }

    fn take_since(&mut self, sender: Side, before: &Before, most: i64) -> i64 {
        // The other end may have had losses of its own.
        let is_other = |stall: &(i64, Side)| stall.1 != sender && stall.0 >= before.at;
        let keeps_losses = self.stalls.iter().any(is_other);
        let mut amount = 0;
        for kind in TAKEN_FOR {
            if keeps_losses && matches!(kind, Kind::TailLoss | Kind::RtoStall) {
                continue;
            }
            amount += self.take_from(kind, before.of(kind), most - amount);
            let is_later = |tally: &&mut Tally| tally.kind == kind && tally.lost <= before.of(kind).0;
            if let Some(tally) = self.tallies.iter_mut().find(is_later) {
                tally.packets.retain(|number| *number <= before.number);
            }
        }
        amount
    }

    /// Takes time that was told as a kind beyond so much; where that is all of it, it did not happen.
    fn take_from(&mut self, kind: Kind, (lost, count): (i64, u64), most: i64) -> i64 {
        let Some(tally) = self.tallies.iter_mut().find(|tally| tally.kind == kind) else { return 0 };
        let since = (tally.lost - lost).max(0);
        let amount = since.min(most);
        tally.lost -= amount;
        if amount > 0 && amount == since {
            tally.count = tally.count.min(count);
        }
        amount
    }

    /// Whether the size of what a hole lacks may explain it: nothing as large has ever passed, or nothing since it opened, while
    /// the sender was heard after its timer, or lost what was larger more than once. `lost`: what the segments have at most.
    fn sizes_of_hole(&self, sender: Side, opened: i64, lost: u32) -> Option<Sizes> {
        let half = self.half(sender);
        let since = self.largest_behind(sender);
        let ever = half.delivered().max(since);
        let has_passed = ever > 0 || half.way.flight().sacked_bytes() > 0;
        if lost <= self.always_carried() || since >= lost || !has_passed {
            return None;
        }
        let sizes = Sizes {
            sender,
            passed: ever,
            lost,
            before: None,
            grade: Grade::Likely,
            lived: false,
            is_over: false,
            is_witnessed: false,
        };
        if ever < lost {
            return Some(sizes);
        }
        let lives = half.spoke() - opened > half.round_trip.timeout();
        let again = half.way.skipping() > self.path_rtt().saturating_mul(2);
        let is_likely = since > 0 && (lives || again);
        let grade = if is_likely { Grade::Likely } else { Grade::Possible };
        let fallen = Sizes { passed: since, before: Some(ever), grade, lived: lives, ..sizes };
        Some(fallen).filter(|sizes| is_likely || sizes.may_be_jumbo())
    }

    /// The largest that arrived behind the oldest hole. Without SACK the receiver acknowledges the hole's begin once more for each
    /// segment that arrives behind it (RFC 5681 section 4.2), and what passes a tap beside it arrives.
    fn largest_behind(&self, sender: Side) -> u32 {
        let half = self.half(sender);
        let flight = half.way.flight();
        let is_beside = self.knows_vantage() && self.reach(sender.other()) == 0;
        let sack = self.halves.iter().all(|half| half.opening.options().is_none_or(|syn| syn.sack_permitted));
        let have_arrived = is_beside || half.duplicate_acks() as usize >= flight.pieces();
        if sack || !have_arrived { flight.largest_sacked() } else { flight.largest() }
    }

    /// What never came, as a sentence.
    pub(crate) fn unfilled_in_words(&self, unfilled: Unfilled, tally: &Tally) -> String {
        let Unfilled { bytes, is_unseen, .. } = unfilled;
        let (times, lost) = (times(tally), duration(tally.lost));
        if is_unseen {
            return format!(
                "The receiver asked for {bytes} bytes until the end, and said each time that it has what was sent behind them ({times}, \
                 {lost} in all): they were lost on the way to it whenever they were sent, or their sender died."
            );
        }
        format!(
            "The receiver asked for {bytes} bytes that never came here, while what was sent behind them did ({times}, {lost} in \
             all): they were lost on the way here whenever they were sent, or their sender died."
        )
    }
}
