//! Flow queues with controlled delay.

use std::collections::VecDeque;

use framegauge_frames::{Picoseconds, SplitMix};

use crate::queue::codel::Control;
use crate::queue::fifo::{Fifo, drain_all};
use crate::queue::sfq::{bucket, longest, pushed_out_by};
use crate::{Discipline, Fate, FqCoDelConfig, Frame, Reason};

/// Flows are spread over queues by a hash; queues that were empty go first, once, the others take turns in bytes; each
/// has a CoDel of its own (RFC 8290). What does not fit pushes out the first frame of the longest queue.
#[derive(Debug, Clone)]
pub struct FqCoDel {
    config: FqCoDelConfig,
    buckets: Vec<Fifo>,
    controls: Vec<Control>,
    /// What each may still send; negative after a frame that was larger than what was left.
    credits: Vec<i64>,
    /// Whether each is in one of the lists.
    listed: Vec<bool>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    bytes: u64,
    salt: u64,
}

impl FqCoDel {
    /// Empty queues.
    pub fn new(config: FqCoDelConfig) -> FqCoDel {
        let count = usize::from(config.buckets);
        FqCoDel {
            config,
            buckets: vec![Fifo::default(); count],
            controls: vec![Control::new(config.codel); count],
            credits: vec![0; count],
            listed: vec![false; count],
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: 0,
            salt: SplitMix::new(config.seed).bits(),
        }
    }

    fn quantum(&self) -> i64 {
        i64::from(self.config.quantum_bytes)
    }

    /// Takes the first frame of the longest queue out.
    fn push_out(&mut self) -> Option<Frame> {
        let longest = longest(&self.buckets);
        let frame = self.buckets[longest].pop()?;
        self.bytes -= u64::from(frame.frame_bytes);
        Some(frame)
    }

    /// The next queue that may send, with whether it is a new one; queues without credit go to the end.
    fn turn(&mut self) -> Option<(usize, bool)> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let bucket = *list.front()?;
            if self.credits[bucket] > 0 {
                return Some((bucket, is_new));
            }
            list.pop_front();
            self.credits[bucket] += self.quantum();
            self.old.push_back(bucket);
        }
    }
}

impl Discipline for FqCoDel {
    fn offer(
        &mut self,
        now: Picoseconds,
        frame: Frame,
        transmitting_bytes: u64,
        fates: &mut Vec<Fate>,
    ) -> Result<(), Reason> {
        let limit_bytes = self.config.codel.limit_bytes;
        if transmitting_bytes + u64::from(frame.frame_bytes) > limit_bytes {
            return Err(Reason::Taildrop);
        }
        let own = bucket(frame.flow, self.salt, self.buckets.len());
        self.buckets[own].push(frame);
        self.bytes += u64::from(frame.frame_bytes);
        if !self.listed[own] {
            self.listed[own] = true;
            self.new.push_back(own);
            self.credits[own] = self.quantum();
        }
        let room = limit_bytes - transmitting_bytes;
        let pushed_out =
            || (self.bytes > room).then(|| self.push_out().map(|frame| (frame, self.bytes))).flatten();
        pushed_out_by(now, frame, Reason::LongestFlow, pushed_out, fates)
    }

    fn take(&mut self, now: Picoseconds, fates: &mut Vec<Fate>) -> Option<Frame> {
        loop {
            let (bucket, is_new) = self.turn()?;
            let queue = &mut self.buckets[bucket];
            let others = self.bytes - queue.bytes();
            let head = self.controls[bucket].take(now, queue, others, fates);
            self.bytes = others + queue.bytes();
            if let Some(frame) = head {
                self.credits[bucket] -= i64::from(frame.frame_bytes);
                return Some(frame);
            }
            // An empty new queue stays for one round, or a flow of single frames would always go first.
            let list = if is_new { &mut self.new } else { &mut self.old };
            list.pop_front();
            if is_new && !self.old.is_empty() {
                self.old.push_back(bucket);
            } else {
                self.listed[bucket] = false;
            }
        }
    }

    fn drain(&mut self) -> Vec<Frame> {
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
