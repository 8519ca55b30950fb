//! What a link loses.

use framegauge_frames::Picoseconds;

use super::Port;
use crate::{Fate, Frame, Reason};

impl Port {
    /// Whether a frame that has come to the end of the link is lost there, and what becomes of it then; counts it.
    pub(crate) fn loses(&mut self, time: Picoseconds, frame: Frame) -> Option<Fate> {
        let lost = self.disturbance.as_mut().is_some_and(|disturbance| disturbance.loses());
        lost.then(|| self.lose(time, frame, Reason::Loss, self.buffered_bytes()))
    }

    /// Counts a frame that is lost on the link.
    pub(super) fn lose(&mut self, time: Picoseconds, frame: Frame, reason: Reason, queue_bytes: u64) -> Fate {
        self.counters.lost_frames += 1;
        self.counters.lost_bytes += u64::from(frame.frame_bytes);
        let fate = Fate { time, frame, reason, marked: false, queue_bytes };
        self.note_fate(&fate);
        fate
    }
}
