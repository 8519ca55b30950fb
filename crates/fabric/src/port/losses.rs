//! What a link loses.

use framegauge_frames::Picoseconds;

use super::Port;
use crate::{Fate, Frame, Reason};

impl Port {
    /// Its link has a script: every frame that comes to the end is looked at.
    pub(crate) fn obey_script(&mut self) {
        self.is_scripted = true;
        self.set_plain_limit();
    }

    /// Counts a frame that is marked at the end of the link.
    pub(crate) fn mark_at_end(&mut self, time: Picoseconds, frame: Frame) -> Fate {
        self.counters.marked_frames += 1;
        let queue_bytes = self.buffered_bytes();
        let fate = Fate { time, frame, reason: Reason::Script, marked: true, queue_bytes };
        self.note_fate(&fate);
        fate
    }

    /// Whether a frame that has come to the end of the link is lost there, and what becomes of it then; counts it.
    pub(crate) fn loses(&mut self, time: Picoseconds, frame: Frame) -> Option<Fate> {
        let lost = self.disturbance.as_mut().is_some_and(|disturbance| disturbance.loses());
        lost.then(|| self.lose(time, frame, Reason::Loss, self.buffered_bytes()))
    }

    /// Counts a frame that is lost on the link.
    pub(crate) fn lose(&mut self, time: Picoseconds, frame: Frame, reason: Reason, queue_bytes: u64) -> Fate {
        self.counters.lost_frames += 1;
        self.counters.lost_bytes += u64::from(frame.frame_bytes);
        let fate = Fate { time, frame, reason, marked: false, queue_bytes };
        self.note_fate(&fate);
        fate
    }
}
