//! Strict priority.

use framegauge_frames::Picoseconds;

use crate::queue::fifo::{Fifo, drain_all};
use crate::{Discipline, Fate, Frame, Limit, Reason};

/// One queue per band: the lowest that has a frame goes first, however long the others wait. The buffer is one for all,
/// and takes what fits, whatever its band.
#[derive(Debug, Clone)]
pub struct Priority {
    bands: Vec<Fifo>,
    limit: Limit,
}

impl Priority {
    /// Empty queues.
    pub fn new(limit: Limit, bands: u8) -> Priority {
        Priority { bands: vec![Fifo::default(); usize::from(bands.max(1))], limit }
    }
}

impl Discipline for Priority {
    fn offer(
        &mut self,
        _now: Picoseconds,
        frame: Frame,
        transmitting_bytes: u64,
        _fates: &mut Vec<Fate>,
    ) -> Result<(), Reason> {
        let (bytes, frames) =
            (self.bytes() + transmitting_bytes, self.frames() + u64::from(transmitting_bytes > 0));
        if !self.limit.fits(bytes, frames, u64::from(frame.frame_bytes)) {
            return Err(Reason::Taildrop);
        }
        let last = self.bands.len() - 1;
        self.bands[usize::from(frame.band).min(last)].push(frame);
        Ok(())
    }

    fn take(&mut self, _now: Picoseconds, _fates: &mut Vec<Fate>) -> Option<Frame> {
        self.bands.iter_mut().find_map(Fifo::pop)
    }

    fn drain(&mut self) -> Vec<Frame> {
        drain_all(&mut self.bands)
    }

    fn bytes(&self) -> u64 {
        self.bands.iter().map(Fifo::bytes).sum()
    }

    fn frames(&self) -> u64 {
        self.bands.iter().map(Fifo::len).sum()
    }
}
