//! The receiving side of a host's NIC.

use framegauge_frames::Picoseconds;

use crate::{Frame, HostIndex, NicConfig, Sink};

/// Frames that have arrived but that the host has not been told of.
#[derive(Debug, Clone)]
pub(crate) struct Nic {
    host: HostIndex,
    moderation: Picoseconds,
    batch: Vec<(u32, u16)>,
}

impl Nic {
    pub(crate) fn new(host: HostIndex, config: NicConfig) -> Nic {
        Nic { host, moderation: config.moderation, batch: Vec::new() }
    }

    /// Takes a frame in; gives the time at which [`Nic::interrupt`] must be called if it began to wait.
    pub(crate) fn receive(
        &mut self,
        now: Picoseconds,
        frame: Frame,
        sink: &mut impl Sink,
    ) -> Option<Picoseconds> {
        if self.moderation == Picoseconds::ZERO {
            sink.deliver(self.host, frame.aggregate, frame.index, now);
            return None;
        }
        self.batch.push((frame.aggregate, frame.index));
        (self.batch.len() == 1).then(|| now + self.moderation)
    }

    /// Hands over everything that has arrived.
    pub(crate) fn interrupt(&mut self, now: Picoseconds, sink: &mut impl Sink) {
        for (aggregate, frame) in self.batch.drain(..) {
            sink.deliver(self.host, aggregate, frame, now);
        }
    }
}
