//! A port that writes down what happens to its frames.

use framegauge_frames::Picoseconds;

use super::Port;
use crate::watch::PortLog;
use crate::{Fate, Frame, PortEvent, PortEventKind, PortIndex, Reason};

impl Port {
    /// Begins to write down, or ends it.
    pub(crate) fn watch(&mut self, port: Option<PortIndex>) {
        self.log = port.map(|port| Box::new(PortLog::new(port)));
        self.set_plain_limit();
    }

    /// What was written down since the last call.
    pub(crate) fn take_log(&mut self) -> Vec<PortEvent> {
        self.log.as_mut().map_or_else(Vec::new, |log| log.take())
    }

    /// How much was written down since the last time.
    pub(super) fn log_length(&self) -> usize {
        self.log.as_ref().map_or(0, |log| log.len())
    }

    /// A frame has come after `place` other events, and was dropped at once if there is a reason.
    pub(super) fn note_arrival(
        &mut self,
        place: usize,
        now: Picoseconds,
        frame: Frame,
        queue_bytes: u64,
        dropped: Option<Reason>,
    ) {
        let (frame, held_bytes) = (Frame { since: now, ..frame }, self.buffered_bytes());
        let Some(log) = &mut self.log else { return };
        log.insert(place, now, (PortEventKind::Arrived, None), frame, queue_bytes);
        if dropped.is_some() {
            log.insert(log.len(), now, (PortEventKind::Dropped, dropped), frame, held_bytes);
        }
    }

    /// The frame that went under way last has left.
    #[cold]
    pub(super) fn note_departure(&mut self, time: Picoseconds) {
        let queue_bytes = self.buffered_bytes();
        if let (Some(log), Some(departed)) = (&mut self.log, self.in_flight.back()) {
            log.insert(log.len(), time, (PortEventKind::Departed, None), departed.frame, queue_bytes);
        }
    }

    /// A frame was dropped or marked.
    pub(super) fn note_fate(&mut self, fate: &Fate) {
        let Fate { time, frame, reason, marked, queue_bytes } = *fate;
        let Some(log) = &mut self.log else { return };
        let (kind, queue_bytes) = match marked {
            true => (PortEventKind::Marked, queue_bytes + u64::from(frame.frame_bytes)),
            false => (PortEventKind::Dropped, queue_bytes),
        };
        log.insert(log.len(), time, (kind, Some(reason)), frame, queue_bytes);
    }
}
