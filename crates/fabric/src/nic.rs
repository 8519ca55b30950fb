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
    /// (aggregate, frame)
    batch: Vec<(u32, u16)>,
    interrupts: u64,
}

impl Nic {
    pub(crate) fn new(host: HostIndex, config: NicConfig) -> Nic {
        Nic {
            host,
            moderation: config.moderation,
            ready: Picoseconds::ZERO,
            batch: Vec::new(),
            interrupts: 0,
        }
    }

    /// The time before which the host is told of nothing.
    pub(crate) fn ready(&self) -> Picoseconds {
        self.ready
    }

    /// How often the host has been told of frames.
    pub(crate) fn interrupts(&self) -> u64 {
        self.interrupts
    }

    /// Takes a frame in; gives the time at which [`Nic::interrupt`] must be called if it began to wait.
    pub(crate) fn receive(
        &mut self,
        now: Picoseconds,
        frame: Frame,
        sink: &mut impl Sink,
    ) -> Option<Picoseconds> {
        let arrived = (frame.aggregate, frame.index);
        if self.batch.is_empty() && now >= self.ready {
            sink.deliver(self.host, &[arrived], now);
            self.interrupted(now);
            return None;
        }
        self.batch.push(arrived);
        (self.batch.len() == 1).then_some(self.ready)
    }

    /// Hands over everything that has arrived.
    pub(crate) fn interrupt(&mut self, now: Picoseconds, sink: &mut impl Sink) {
        sink.deliver(self.host, &self.batch, now);
        self.batch.clear();
        self.interrupted(now);
    }

    fn interrupted(&mut self, now: Picoseconds) {
        self.ready = now + self.moderation;
        self.interrupts += 1;
    }
}
