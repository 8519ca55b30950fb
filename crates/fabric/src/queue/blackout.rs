//! Port blackout as a model of two states.

use framegauge_frames::{Picoseconds, SplitMix};

use crate::{BlackoutConfig, Discipline, Fate, Frame, PortIndex, Reason, Taildrop};

/// Taildrop that, besides, drops runs of frames of one input port: what a full taildrop queue does to the port whose
/// frames come out of step (Prakash et al., "The TCP Outcast Problem", NSDI 2012), without the queue. Off for an
/// exponential time; the next frame of that input port begins a run, which ends with its last frame, however far apart
/// they come: it does not end with a burst.
#[derive(Debug, Clone)]
pub struct Blackout {
    queue: Taildrop,
    mean_off: Picoseconds,
    frames: u32,
    input_port: Option<PortIndex>,
    draws: SplitMix,
    off_until: Picoseconds,
    left: u32,
}

impl Blackout {
    /// An empty queue, off.
    pub fn new(config: BlackoutConfig) -> Blackout {
        let BlackoutConfig { limit, mean_off, frames, input_port, seed } = config;
        let (queue, draws) = (Taildrop::new(limit), SplitMix::new(seed));
        let mut blackout =
            Blackout { queue, mean_off, frames, input_port, draws, off_until: Picoseconds::ZERO, left: 0 };
        blackout.switch_off(Picoseconds::ZERO);
        blackout
    }

    /// Ends a blackout at `now`, or begins the pause anew.
    pub(crate) fn switch_off(&mut self, now: Picoseconds) {
        let off = self.mean_off.as_seconds_f64() * self.draws.exponential();
        self.off_until = now.saturating_add(Picoseconds::from_seconds_f64(off));
        self.left = self.frames;
    }
}

impl Discipline for Blackout {
    fn offer(
        &mut self,
        now: Picoseconds,
        frame: Frame,
        transmitting_bytes: u64,
        fates: &mut Vec<Fate>,
    ) -> Result<(), Reason> {
        if now >= self.off_until && self.input_port.is_none_or(|port| port == frame.input_port) {
            self.left -= 1;
            if self.left == 0 {
                self.switch_off(now);
            }
            return Err(Reason::Blackout);
        }
        self.queue.offer(now, frame, transmitting_bytes, fates)
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
