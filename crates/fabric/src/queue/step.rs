//! Marks while the buffer is over a step, as DCTCP wants it.

use framegauge_frames::Picoseconds;

use crate::{Discipline, Ecn, Fate, Frame, Limit, Reason, Taildrop};

/// Taildrop that marks a frame on arrival if the buffer then holds more than K bytes with it (Alizadeh et al., "Data
/// Center TCP (DCTCP)", SIGCOMM 2010, section 3.1). A frame that cannot be marked is taken in as it is.
#[derive(Debug, Clone)]
pub struct Step {
    queue: Taildrop,
    threshold_bytes: u64,
}

impl Step {
    /// An empty queue.
    pub fn new(limit_bytes: u64, threshold_bytes: u64) -> Step {
        Step { queue: Taildrop::new(Limit::Bytes(limit_bytes)), threshold_bytes }
    }
}

impl Discipline for Step {
    fn offer(
        &mut self,
        now: Picoseconds,
        mut frame: Frame,
        transmitting_bytes: u64,
        fates: &mut Vec<Fate>,
    ) -> Result<(), Reason> {
        if !self.queue.fits(frame.frame_bytes, transmitting_bytes) {
            return Err(Reason::Taildrop);
        }
        let queue_bytes = self.queue.bytes();
        let over = queue_bytes + transmitting_bytes + u64::from(frame.frame_bytes) > self.threshold_bytes;
        if over && frame.ecn == Ecn::CAPABLE {
            frame.ecn = Ecn::MARKED;
            fates.push(Fate { time: now, frame, reason: Reason::Step, marked: true, queue_bytes });
        }
        self.queue.push(frame);
        Ok(())
    }

    fn take(&mut self, _now: Picoseconds, _fates: &mut Vec<Fate>) -> Option<Frame> {
        self.queue.pop()
    }

    fn drain(&mut self) -> Vec<Frame> {
        self.queue.drain()
    }

    fn bytes(&self) -> u64 {
        self.queue.bytes()
    }

    fn frames(&self) -> u64 {
        self.queue.frames()
    }
}
