//! What a port has counted.

use framegauge_frames::Picoseconds;

use super::Port;
use crate::{Discipline, PortCounters};

impl Port {
    /// Lets the peak begin anew from what is in the buffer now.
    pub(crate) fn reset_peak(&mut self, now: Picoseconds) {
        self.catch_up(now);
        self.counters.peak_queue_bytes = self.buffered_bytes();
    }

    /// The counters at `now`, to which the port need not have caught up.
    pub(crate) fn counters(&self, now: Picoseconds) -> PortCounters {
        match self.transmission {
            Some(sent) if sent.departs <= now => {
                let mut present = self.clone();
                present.catch_up(now);
                present.counters(now)
            }
            transmission => {
                let (pauses_sent, paused, telling) = self.pausing_counts(now);
                let to_come = transmission.map_or(telling, |sent| sent.departs - now);
                let busy = self.counters.busy - to_come;
                PortCounters {
                    queued_frames: self.queue.frames() + u64::from(transmission.is_some()),
                    queued_bytes: self.buffered_bytes(),
                    busy,
                    occupied: busy,
                    pauses_sent,
                    paused,
                    ..self.counters
                }
            }
        }
    }
}
