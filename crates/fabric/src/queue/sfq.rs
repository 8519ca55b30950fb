//! Stochastic fairness queueing.

use std::collections::VecDeque;

use framegauge_frames::{Picoseconds, SplitMix, below, mixed};

use crate::queue::fifo::{Fifo, drain_all};
use crate::{Discipline, Fate, Frame, Reason, SfqConfig};

/// Flows are spread over queues by a hash, and the queues take turns in bytes (McKenney, "Stochastic Fairness Queueing",
/// 1990; deficit round robin: Shreedhar and Varghese 1995). What does not fit pushes out the last frame of the longest
/// queue, which may be itself. From time to time the hash changes, and what waits is spread anew.
#[derive(Debug, Clone)]
pub struct Sfq {
    config: SfqConfig,
    buckets: Vec<Fifo>,
    /// Buckets with frames, in the order of their turns, with what each may still send.
    turns: VecDeque<(usize, u64)>,
    bytes: u64,
    salt: u64,
    draws: SplitMix,
    spread_next: Picoseconds,
}

impl Sfq {
    /// Empty queues.
    pub fn new(config: SfqConfig) -> Sfq {
        let mut draws = SplitMix::new(config.seed);
        Sfq {
            config,
            buckets: vec![Fifo::default(); usize::from(config.buckets)],
            turns: VecDeque::new(),
            bytes: 0,
            salt: draws.bits(),
            draws,
            spread_next: config.perturbation,
        }
    }

    fn push(&mut self, frame: Frame) {
        let bucket = bucket(frame.flow, self.salt, self.buckets.len());
        if self.buckets[bucket].len() == 0 {
            self.turns.push_back((bucket, u64::from(self.config.quantum_bytes)));
        }
        self.bytes += u64::from(frame.frame_bytes);
        self.buckets[bucket].push(frame);
    }

    /// Takes the last frame of the longest queue out; of queues of the same length the first.
    fn push_out(&mut self) -> Option<Frame> {
        let longest = longest(&self.buckets);
        let frame = self.buckets[longest].pop_last()?;
        self.bytes -= u64::from(frame.frame_bytes);
        if self.buckets[longest].len() == 0 {
            self.turns.retain(|turn| turn.0 != longest);
        }
        Some(frame)
    }

    /// Another hash when it is time, for what waits, too; the frames of a flow stay in order.
    fn perturb(&mut self, now: Picoseconds) {
        if self.config.perturbation == Picoseconds::ZERO || now < self.spread_next {
            return;
        }
        let periods = now.as_picoseconds() / self.config.perturbation.as_picoseconds() + 1;
        self.spread_next = self.config.perturbation.saturating_mul(periods);
        self.salt = self.draws.bits();
        let waiting = self.drain();
        waiting.into_iter().for_each(|frame| self.push(frame));
    }
}

/// Frames leave a full buffer, each with what it then holds: whether the one that came is among them; the others are fates.
pub(crate) fn pushed_out_by(
    now: Picoseconds,
    coming: Frame,
    reason: Reason,
    next: impl FnMut() -> Option<(Frame, u64)>,
    fates: &mut Vec<Fate>,
) -> Result<(), Reason> {
    let mut refused = Ok(());
    for (frame, queue_bytes) in std::iter::from_fn(next) {
        if frame == coming {
            refused = Err(reason);
        } else {
            fates.push(Fate { time: now, frame, reason, marked: false, queue_bytes });
        }
    }
    refused
}

/// Where a flow belongs: even over all buckets.
pub(crate) fn bucket(flow: u64, salt: u64, buckets: usize) -> usize {
    below(mixed(flow ^ salt), buckets as u64) as usize
}

/// The bucket with the most bytes; of several the first.
pub(crate) fn longest(buckets: &[Fifo]) -> usize {
    let longer =
        |best: usize, next: usize| if buckets[next].bytes() > buckets[best].bytes() { next } else { best };
    (0..buckets.len()).reduce(longer).unwrap_or(0)
}

impl Discipline for Sfq {
    fn offer(
        &mut self,
        now: Picoseconds,
        frame: Frame,
        transmitting_bytes: u64,
        fates: &mut Vec<Fate>,
    ) -> Result<(), Reason> {
        self.perturb(now);
        if transmitting_bytes + u64::from(frame.frame_bytes) > self.config.limit_bytes {
            return Err(Reason::Taildrop);
        }
        self.push(frame);
        let room = self.config.limit_bytes - transmitting_bytes;
        let pushed_out =
            || (self.bytes > room).then(|| self.push_out().map(|frame| (frame, self.bytes))).flatten();
        pushed_out_by(now, frame, Reason::LongestFlow, pushed_out, fates)
    }

    fn take(&mut self, now: Picoseconds, _fates: &mut Vec<Fate>) -> Option<Frame> {
        self.perturb(now);
        loop {
            let (bucket, left) = self.turns.front_mut()?;
            let queue = &mut self.buckets[*bucket];
            let size = queue.first().map_or(0, |frame| u64::from(frame.frame_bytes));
            if *left < size {
                *left += u64::from(self.config.quantum_bytes);
                self.turns.rotate_left(1);
                continue;
            }
            *left -= size;
            let frame = queue.pop();
            if queue.len() == 0 {
                self.turns.pop_front();
            }
            self.bytes -= size;
            return frame;
        }
    }

    fn drain(&mut self) -> Vec<Frame> {
        self.turns.clear();
        self.bytes = 0;
        drain_all(&mut self.buckets)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn frames(&self) -> u64 {
        self.buckets.iter().map(Fifo::len).sum()
    }
}
