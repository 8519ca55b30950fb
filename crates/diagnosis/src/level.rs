//! An RTT that rises at once and stays, whatever is under way: another path, and no queue.
//!
//! ```text
//!   RTT      queue: it grows with what is under way       path: a step, however much is under way
//!            and comes back when that drains
//!                  ╱╲    ╱╲                                       ┌────────────
//!             ____╱  ╲__╱  ╲__                             _______│
//! ```
//!
//! By Little's law what is under way is the rate times the RTT. Its own queue grows because the link is full: the rate does not
//! fall. A queue of others fills while they send, and costs packets when it is full.

use crate::connection::{Connection, Side};
use crate::kinds::Kind;
use crate::rounds::is_as_fast;
use crate::words::duration;

/// A millisecond: hosts decide below.
const GRAIN: i64 = 1_000_000;
/// A step is at least so much of the least RTT, in quarters; what is above this part of it had begun to rise.
const STEP_QUARTERS: i64 = 8;
const RISE_QUARTERS: i64 = 6;
/// At once it rises by this part or more.
const LEAST_PARTS: i64 = 3;
/// So much above the least it is flat.
const FLAT_QUARTERS: i64 = 5;
/// Samples and rounds for which it stays before it is told.
const LEAST_SAMPLES: u32 = 10;
const LEAST_ROUNDS: u32 = FIRST_ROUNDS + 3;
/// The round in which it rises, and that of what was sent until then.
const FIRST_ROUNDS: u32 = 2;
/// Samples of what was sent while nothing else was under way.
const LEAST_ALONE: u32 = 2;

/// How the RTT of one direction rises.
#[derive(Debug, Clone, Default)]
pub(crate) struct Level {
    newest: i64,
    /// How fast its rounds were answered at most before it rose: bytes and nanoseconds.
    pace: (u64, i64),
    risen: Option<Box<Risen>>,
    /// The newest segment that left while nothing else was under way: its end, and when.
    alone: (u64, i64),
    told: Option<Change>,
}

/// Since it has risen.
#[derive(Debug, Clone, Copy, Default)]
struct Risen {
    number: u64,
    /// It rose slowly.
    is_gradual: bool,
    /// The least of all, and that since the first rounds.
    rise: i64,
    least: i64,
    samples: u32,
    alone: u32,
    rounds: u32,
    /// The least of the round that goes on; the largest and the least that rounds had, in that and in bytes under way.
    of_round: i64,
    most_of_rounds: i64,
    peaks: (u64, u64),
    pace: (u64, i64),
    resent: u64,
    /// Time and count of what was taken for a queue before.
    queued: (i64, u64),
    /// The least since it was told as that of another path, or 0.
    floor: i64,
}

/// A path that another took the place of.
#[derive(Debug, Clone, Copy)]
struct Change {
    from: i64,
    to: i64,
    number: u64,
    times: u32,
}

fn is_above(sample: i64, least: i64, quarters: i64) -> bool {
    sample > (least / 4).saturating_mul(quarters).saturating_add(GRAIN)
}

/// Of what is 0 before the first.
fn least_of(least: i64, sample: i64) -> i64 {
    if least == 0 { sample } else { least.min(sample) }
}

impl Risen {
    /// Whether it stays, and no queue can do that.
    fn is_path(&self, base: i64, before: (u64, i64)) -> bool {
        let stays = self.samples >= LEAST_SAMPLES && self.rounds >= LEAST_ROUNDS && !self.is_gradual;
        let is_flat = !is_above(self.most_of_rounds, self.least, FLAT_QUARTERS);
        let slowed = self.pace.1 > 0 && before.1 > 0 && !is_as_fast(self.pace, before, (1, 2));
        // A path has two directions, which need not change at once; a queue that fills has less in between.
        let is_sudden = (self.rise - base).saturating_mul(LEAST_PARTS) >= self.least - base;
        let varied = self.peaks.1 >= 2 * self.peaks.0.max(1);
        stays && is_flat && is_sudden && (self.alone >= LEAST_ALONE || slowed || varied)
    }
}

impl Level {
    /// A segment leaves while nothing else is under way.
    #[inline]
    pub(crate) fn leave_alone(&mut self, end: u64, at: i64) {
        self.alone = (end, at);
    }

    /// The least RTT of the present path, if that is another than before.
    pub(crate) fn floor(&self) -> i64 {
        self.risen.as_ref().map_or(0, |risen| risen.floor)
    }

    /// A round has ended, with the most bytes that were under way in it, and how fast it was answered.
    pub(crate) fn end_round(&mut self, peak: u64, pace: (u64, i64)) {
        let faster =
            |best: (u64, i64)| if best.1 == 0 || is_as_fast(pace, best, (1, 1)) { pace } else { best };
        let Some(risen) = &mut self.risen else {
            self.pace = faster(self.pace);
            return;
        };
        if risen.of_round == 0 {
            return;
        }
        risen.rounds += 1;
        let least = std::mem::take(&mut risen.of_round);
        if risen.rounds <= FIRST_ROUNDS {
            // What was under way then has seen a part of either path.
            risen.least = 0;
            return;
        }
        risen.most_of_rounds = risen.most_of_rounds.max(least);
        risen.pace = faster(risen.pace);
        risen.peaks = (
            if risen.rounds == FIRST_ROUNDS + 1 { peak } else { risen.peaks.0.min(peak) },
            risen.peaks.1.max(peak),
        );
    }
}

impl Connection {
    /// Takes a sample of the RTT, of data up to a place that was sent then, which no delayed acknowledgement has made.
    #[inline]
    pub(crate) fn take_level(&mut self, sample: i64, sent: i64, sender: Side, number: u64) {
        let base = self.path_rtt();
        let level = &mut self.halves[sender as usize].level;
        if is_above(sample, base, STEP_QUARTERS) {
            self.rise(sample, sent, sender, number);
        } else {
            level.newest = sample;
            if level.risen.is_some() {
                level.risen = None;
            }
        }
    }

    #[cold]
    fn rise(&mut self, sample: i64, sent: i64, sender: Side, number: u64) {
        let base = self.path_rtt();
        let queued = self.tallies.iter().find(|tally| tally.kind == Kind::Bufferbloat);
        let queued = queued.map_or((0, 0), |tally| (tally.lost, tally.count));
        let half = &mut self.halves[sender as usize];
        let (resent, una) = (half.counts.resent_segments(), half.way.una());
        let level = &mut half.level;
        let is_gradual = level.newest == 0 || is_above(level.newest, base, RISE_QUARTERS);
        let is_alone = level.alone == (una, sent);
        let first = Risen { number, is_gradual, least: sample, resent, queued, ..Risen::default() };
        let risen = level.risen.get_or_insert_with(|| Box::new(first));
        if risen.resent != resent {
            // While a route changes packets are lost; in a queue that is full they are so again and again.
            **risen = Risen { samples: 0, rounds: 0, alone: 0, resent, ..**risen };
        }
        risen.rise = least_of(risen.rise, sample);
        risen.least = least_of(risen.least, sample);
        risen.of_round = least_of(risen.of_round, sample);
        risen.samples = risen.samples.saturating_add(1);
        risen.alone += u32::from(is_alone && risen.alone < LEAST_ALONE);
        if risen.floor > 0 || !risen.is_path(base, level.pace) {
            risen.floor = risen.floor.min(sample);
            return;
        }
        risen.floor = risen.least;
        let (former, to, number) = (risen.queued, risen.least, risen.number);
        let times = level.told.map_or(0, |told| told.times) + 1;
        level.told = Some(Change { from: base, to, number, times });
        self.take_for_path(former, number);
    }

    /// What was taken for a queue since a packet was the path.
    fn take_for_path(&mut self, (lost, count): (i64, u64), number: u64) {
        let Some(tally) = self.tallies.iter_mut().find(|tally| tally.kind == Kind::Bufferbloat) else {
            return;
        };
        let (begin, end, more) = (tally.begin, tally.end, tally.lost - lost);
        (tally.lost, tally.count) = (lost, count);
        tally.packets.retain(|packet| *packet < number);
        self.tallies.retain(|tally| tally.kind != Kind::Bufferbloat || tally.count > 0);
        self.note(Kind::NetworkLimited, begin, end, more, &[]);
    }

    /// What is known of the path, as a sentence.
    pub(crate) fn change_in_words(&self) -> String {
        let of_both = self.halves.iter().filter_map(|half| half.level.told);
        of_both.max_by_key(|change| change.to - change.from).map_or(String::new(), |change| {
            let more = if change.times > 1 { format!(" ({} times)", change.times) } else { String::new() };
            format!(
                " Its RTT rose at once from {} to {} (packet {}){more} and stayed, whatever was under way: another path, and no queue.",
                duration(change.from),
                duration(change.to),
                change.number
            )
        })
    }
}
