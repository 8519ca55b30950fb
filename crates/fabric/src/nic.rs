//! The receiving side of a host's NIC.

use framegauge_frames::Picoseconds;

use crate::{Frame, HostIndex, NicConfig, Sink};

/// Frames that have arrived but that the host has not been told of.
///
/// Interrupts are throttled, not delayed, as by the ITR register of Intel's 1 Gb/s controllers: after a
/// silence the first frame interrupts at once, and then the next interrupt is `moderation` away.
#[derive(Debug, Clone)]
pub(crate) struct Nic {
    host: HostIndex,
    moderation: Picoseconds,
    /// No interrupt before this time.
    ready: Picoseconds,
    batch: Vec<(u32, u16)>,
}

impl Nic {
    pub(crate) fn new(host: HostIndex, config: NicConfig) -> Nic {
        Nic { host, moderation: config.moderation, ready: Picoseconds::ZERO, batch: Vec::new() }
    }

    /// The time before which the host is told of nothing.
    pub(crate) fn ready(&self) -> Picoseconds {
        self.ready
    }

    /// Takes a frame in; gives the time at which [`Nic::interrupt`] must be called if it began to wait.
    pub(crate) fn receive(
        &mut self,
        now: Picoseconds,
        frame: Frame,
        sink: &mut impl Sink,
    ) -> Option<Picoseconds> {
        if self.batch.is_empty() && now >= self.ready {
            sink.deliver(self.host, frame.aggregate, frame.index, now);
            self.ready = now + self.moderation;
            return None;
        }
        self.batch.push((frame.aggregate, frame.index));
        (self.batch.len() == 1).then_some(self.ready)
    }

    /// Hands over everything that has arrived.
    pub(crate) fn interrupt(&mut self, now: Picoseconds, sink: &mut impl Sink) {
        for (aggregate, frame) in self.batch.drain(..) {
            sink.deliver(self.host, aggregate, frame, now);
        }
        self.ready = now + self.moderation;
    }
}
