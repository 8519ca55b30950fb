//! First in, first out, with a limit.

use framegauge_frames::Picoseconds;

use crate::queue::fifo::Fifo;
use crate::{Discipline, Fate, Frame, Limit, Reason};

/// What most switches do: a frame that does not fit into the buffer is dropped.
#[derive(Debug, Clone)]
pub struct Taildrop {
    queue: Fifo,
    limit: Limit,
}

impl Taildrop {
    /// An empty queue for a buffer of that size.
    pub fn new(limit: Limit) -> Taildrop {
        Taildrop { queue: Fifo::default(), limit }
    }

    /// Whether a frame of that size would be taken.
    #[inline]
    pub(crate) fn fits(&self, frame_bytes: u32, transmitting_bytes: u64) -> bool {
        let frames = self.queue.len() + u64::from(transmitting_bytes > 0);
        self.limit.fits(self.queue.bytes() + transmitting_bytes, frames, u64::from(frame_bytes))
    }

    /// Takes a frame in that fits.
    pub(crate) fn push(&mut self, frame: Frame) {
        self.queue.push(frame);
    }

    /// Gives the first frame.
    pub(crate) fn pop(&mut self) -> Option<Frame> {
        self.queue.pop()
    }
}

impl Discipline for Taildrop {
    fn offer(
        &mut self,
        _now: Picoseconds,
        frame: Frame,
        transmitting_bytes: u64,
        _fates: &mut Vec<Fate>,
    ) -> Result<(), Reason> {
        if !self.fits(frame.frame_bytes, transmitting_bytes) {
            return Err(Reason::Taildrop);
        }
        self.push(frame);
        Ok(())
    }

    fn take(&mut self, _now: Picoseconds, _fates: &mut Vec<Fate>) -> Option<Frame> {
        self.pop()
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
