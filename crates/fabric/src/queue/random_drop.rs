//! First in, first out; in a full buffer a frame is drawn that goes.

use framegauge_frames::{Picoseconds, SplitMix, below};

use crate::queue::fifo::Fifo;
use crate::queue::sfq::pushed_out_by;
use crate::{Discipline, Fate, Frame, Limit, Reason};

/// Random drop (Mankin, "Random Drop Congestion Control", SIGCOMM 1990): a frame that does not fit comes in, and frames
/// of those that wait, itself included, are drawn and dropped until the rest fits. So flows lose in proportion to what
/// they have in the buffer, whenever their frames come.
#[derive(Debug, Clone)]
pub struct RandomDrop {
    queue: Fifo,
    limit: Limit,
    draws: SplitMix,
}

impl RandomDrop {
    /// An empty queue for a buffer of that size; the same seed gives the same drops.
    pub fn new(limit: Limit, seed: u64) -> RandomDrop {
        RandomDrop { queue: Fifo::default(), limit, draws: SplitMix::new(seed) }
    }
}

impl Discipline for RandomDrop {
    fn offer(
        &mut self,
        now: Picoseconds,
        frame: Frame,
        transmitting_bytes: u64,
        fates: &mut Vec<Fate>,
    ) -> Result<(), Reason> {
        let transmitting = u64::from(transmitting_bytes > 0);
        if !self.limit.fits(transmitting_bytes, transmitting, u64::from(frame.frame_bytes)) {
            return Err(Reason::Taildrop);
        }
        self.queue.push(frame);
        let RandomDrop { queue, limit, draws } = self;
        let pushed_out = || {
            let full = !limit.holds(queue.bytes() + transmitting_bytes, queue.len() + transmitting);
            full.then(|| queue.remove(below(draws.bits(), queue.len())).map(|frame| (frame, queue.bytes())))
                .flatten()
        };
        pushed_out_by(now, frame, Reason::RandomDrop, pushed_out, fates)
    }

    fn take(&mut self, _now: Picoseconds, _fates: &mut Vec<Fate>) -> Option<Frame> {
        self.queue.pop()
    }

    fn drain(&mut self) -> Vec<Frame> {
        self.queue.drain().collect()
    }

    fn bytes(&self) -> u64 {
        self.queue.bytes()
    }

    fn frames(&self) -> u64 {
        self.queue.len()
    }
}
