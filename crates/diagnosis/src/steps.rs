//! A clock of the capture that was set while it ran: what its stamps say, what connections say to that, and the stamps without it.
//!
//! ```text
//!   stamps         0.98  0.99  │ 30.99  31.00       all stand still for 30 s: a rest, or the clock
//!   connection 1   data ───────┼─ ACK               its timer would have repeated the data (RFC 6298): a witness
//!   connection 2         rest  │        rest        says nothing
//! ```
//!
//! Stamps that go back and stay behind need no witness: time does not.

use crate::findings::{Finding, MOST_PACKETS};
use crate::kinds::Kind;
use crate::testimony::{Testimony, testimonies};
use crate::words::duration;
use std::net::IpAddr;

/// Less is no step.
pub(crate) const LEAST_STEP: i64 = 500_000_000;
/// Those of a clock that are kept; more are rests of a capture in which little happens.
const MOST_LEAPS: usize = 1 << 16;
/// What a connection says is looked at for each of them: more are those of a clock that never runs, not of one that was set.
const MOST_WITNESSES: usize = 64;
/// What has at least this part of a leap is of it.
const MOST_QUARTERS: i64 = 3;
/// Steps that are told one by one.
const MOST_TOLD: usize = 3;

/// A place where the stamps leap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leap {
    /// The packet behind it.
    pub(crate) number: u64,
    pub(crate) before: i64,
    pub(crate) after: i64,
    /// The stamps come back to where they would have been without it.
    pub(crate) is_undone: bool,
}

impl Leap {
    pub(crate) fn by(&self) -> i64 {
        self.after.saturating_sub(self.before)
    }

    /// Whether a connection's packets before and after it are those of a witness, for whose sender its time may begin a little later:
    /// when it has heard the last of them.
    pub(crate) fn is_between(&self, witness: &Witness) -> bool {
        let Witness { begin, end, .. } = *witness;
        if self.by() < 0 {
            return end < begin && begin <= self.before && end >= self.after;
        }
        let is_over = begin < self.after && end >= self.after;
        is_over && end.saturating_sub(begin) >= self.by() / 4 * MOST_QUARTERS
    }
}

/// The stamps of one clock, in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct Stamps {
    newest: Option<i64>,
    leaps: Vec<Leap>,
    /// The newest leap back.
    back: Option<usize>,
}

impl Stamps {
    /// Takes the stamp of the next packet. A packet without a time has 0.
    #[inline]
    pub fn see(&mut self, number: u64, stamp: i64) {
        let newest = self.newest.unwrap_or(stamp);
        let apart = stamp.saturating_sub(newest);
        if apart.saturating_abs() < LEAST_STEP {
            self.newest = Some(newest.max(stamp));
        } else if stamp > 0 && newest > 0 {
            self.leap(Leap { number, before: newest, after: stamp, is_undone: false });
        } else {
            self.newest = Some(stamp);
        }
    }

    #[cold]
    fn leap(&mut self, leap: Leap) {
        if let Some(place) = self.back
            && self.leaps[place].is_left_by(&leap)
        {
            // What was behind had come late.
            let back = self.leaps.remove(place);
            (self.back, self.newest) = (None, Some(back.before));
            return self.see(leap.number, leap.after);
        }
        self.newest = Some(leap.after);
        if self.leaps.len() == MOST_LEAPS {
            return;
        }
        if leap.by() < 0 {
            self.back = Some(self.leaps.len());
            if let Some(ahead) = self.leaps.last_mut().filter(|ahead| ahead.is_taken_back_by(&leap)) {
                ahead.is_undone = true;
            }
        }
        self.leaps.push(leap);
    }

    /// Where its clock was set, by what connections say.
    pub fn steps(&self, witnesses: &[Witness]) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let mut ahead = 0i64;
        for (leap, Testimony { weight, rtt }) in self.leaps.iter().zip(testimonies(&self.leaps, witnesses)) {
            if leap.by() < 0 || leap.is_undone || weight >= Says::Proof.weight() {
                // A little went by: so much that no answer seems to come sooner than it can.
                let by = leap.by().saturating_sub(rtt);
                steps.push(Step { number: leap.number, by, at: leap.before.saturating_sub(ahead) });
                ahead = ahead.saturating_add(by);
            }
        }
        steps
    }
}

impl Leap {
    /// Whether the stamps come again to where they were before it went back.
    fn is_left_by(&self, later: &Leap) -> bool {
        let back = self.by().saturating_neg();
        later.after >= self.before.saturating_sub(LEAST_STEP) && later.by() >= back / 4 * MOST_QUARTERS
    }

    /// Whether a leap back leads to where the stamps would have been without this one.
    fn is_taken_back_by(&self, later: &Leap) -> bool {
        let went_by = later.before.saturating_sub(self.after);
        let rest = later.after.saturating_sub(self.before).saturating_sub(went_by);
        self.by() > 0 && (0..LEAST_STEP).contains(&rest)
    }
}

/// A connection that tells of a leap between two of its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Witness {
    /// Their stamps.
    pub(crate) begin: i64,
    pub(crate) end: i64,
    /// Its RTT, or 0.
    pub(crate) rtt: i64,
    pub(crate) says: Says,
    /// Several of one host are as one.
    pub(crate) host: Option<IpAddr>,
}

/// What one connection tells of leaps; no more than [`MOST_WITNESSES`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Witnesses(Vec<Witness>);

impl Witnesses {
    pub(crate) fn add(&mut self, witness: Witness) {
        if self.0.len() < MOST_WITNESSES {
            self.0.push(witness);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Witness> {
        self.0.iter()
    }
}

/// What a connection says of a leap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Says {
    /// All of that time went by.
    Against,
    /// Nothing of it did, unless the capture lacks a packet, or a host stood still.
    Hint,
    /// Nothing of it did.
    Proof,
}

impl Says {
    /// Two packets that are missing at the same time are no chance.
    pub(crate) fn weight(self) -> i64 {
        match self {
            Says::Against => -2,
            Says::Hint => 1,
            Says::Proof => 2,
        }
    }
}

/// A clock that was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    number: u64,
    by: i64,
    /// The last stamp before it, without the steps before.
    at: i64,
}

/// The stamps without the steps of their clock.
#[derive(Debug, Clone, Default)]
pub struct Righted {
    steps: Vec<Step>,
    taken: usize,
    ahead: i64,
}

impl Righted {
    /// Of a clock with these steps.
    pub fn new(steps: Vec<Step>) -> Righted {
        Righted { steps, taken: 0, ahead: 0 }
    }

    /// The stamp of the next packet as if its clock had not been set.
    #[inline]
    pub fn right(&mut self, number: u64, stamp: i64) -> i64 {
        while let Some(step) = self.steps.get(self.taken).filter(|step| step.number <= number) {
            self.ahead = self.ahead.saturating_add(step.by);
            self.taken += 1;
        }
        if stamp > 0 { stamp.saturating_sub(self.ahead) } else { stamp }
    }

    /// What is told of it, once for all connections. `origin`: the stamp of the first segment.
    pub fn finding(&self, origin: i64) -> Option<Finding> {
        let (first, last) = (self.steps.first()?, self.steps.last()?);
        let seconds = |step: &Step| (step.at - origin) as f64 / 1e9;
        let is_ahead = self.steps.iter().any(|step| step.by > 0);
        let is_back = self.steps.iter().any(|step| step.by < 0);
        let mut text = format!("The capture's clock {}.", listed(&self.steps));
        if is_ahead {
            text += " Where it went ahead, both ends stood still: what was under way was answered, and no timer had repeated it, or their timestamps did not go on. It was set, or all hosts slept.";
        }
        if is_back {
            text += " Where stamps go back and stay behind, it was set, or captures were put behind each other in another order.";
        }
        Some(Finding {
            kind: Kind::ClockJump,
            connection: None,
            begin_seconds: seconds(first),
            end_seconds: seconds(last),
            count: self.steps.len() as u64,
            lost_seconds: self.steps.iter().map(|step| step.by.max(0) as f64 / 1e9).sum(),
            packets: self.steps.iter().take(MOST_PACKETS).map(|step| step.number).collect(),
            text: text + " All times here are without that.",
            remedy: Kind::ClockJump.remedy(),
        })
    }
}

fn listed(steps: &[Step]) -> String {
    let one = |step: &Step| {
        let way = if step.by > 0 { "ahead" } else { "back" };
        format!("went {way} by {} at packet {}", duration(step.by.saturating_abs()), step.number)
    };
    let mut all: Vec<String> = steps.iter().take(MOST_TOLD).map(one).collect();
    if steps.len() > MOST_TOLD {
        all.push(format!("was set {} times more", steps.len() - MOST_TOLD));
    }
    let last = all.pop().unwrap_or_default();
    if all.is_empty() { last } else { format!("{} and {last}", all.join(", ")) }
}
