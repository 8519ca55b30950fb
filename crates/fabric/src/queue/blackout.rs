//! Port blackout as a model of two states.

use framegauge_frames::{Picoseconds, SplitMix};

use crate::{BlackoutConfig, Discipline, Fate, Frame, PortIndex, Reason, Taildrop};

/// Pauses that may pass between two frames before it no longer matters how they began.
const PAUSES_KEPT: u32 = 1000;

/// Taildrop that, besides, drops runs of frames of one input port: what a full taildrop queue does to the port whose
/// frames come out of step (Prakash et al., "The TCP Outcast Problem", NSDI 2012), without the queue. Off for an
/// exponential time, then on for as long as so many back-to-back frames take, or until so many have been dropped. Time
/// passes whether frames come or not: a sender that repeats one frame after its timer meets it on only by its share.
#[derive(Debug, Clone)]
pub struct Blackout {
    queue: Taildrop,
    mean_off: Picoseconds,
    frames: u32,
    on: Picoseconds,
    input_port: Option<PortIndex>,
    draws: SplitMix,
    on_from: Picoseconds,
    left: u32,
}

impl Blackout {
    /// An empty queue, off.
    pub fn new(config: BlackoutConfig) -> Blackout {
        let BlackoutConfig { limit, mean_off, frames, input_port, seed, .. } = config;
        let (queue, draws) = (Taildrop::new(limit), SplitMix::new(seed));
        let mut blackout = Blackout {
            queue,
            mean_off,
            frames,
            on: config.on(),
            input_port,
            draws,
            on_from: Picoseconds::ZERO,
            left: 0,
        };
        blackout.switch_off(Picoseconds::ZERO);
        blackout
    }

    /// Ends a blackout at `now`, or begins the pause anew.
    pub(crate) fn switch_off(&mut self, now: Picoseconds) {
        let off = self.mean_off.as_seconds_f64() * self.draws.exponential();
        self.on_from = now.saturating_add(Picoseconds::from_seconds_f64(off));
        self.left = self.frames;
    }

    /// Whether it is on at `now`, which is not before any that was asked about.
    fn is_on(&mut self, now: Picoseconds) -> bool {
        for _ in 0..PAUSES_KEPT {
            let ends = self.on_from.saturating_add(self.on);
            if now < ends {
                return self.on_from <= now;
            }
            self.switch_off(ends);
        }
        self.meet(now)
    }

    /// Whether it is on at a moment so long after the last that only the shares of time count: it is on by its share,
    /// and then since an even part of the time that it is; or off, for an exponential time from here, as from anywhere.
    fn meet(&mut self, now: Picoseconds) -> bool {
        let on = self.on.as_seconds_f64();
        let since = self.draws.even() * (on + self.mean_off.as_seconds_f64());
        self.switch_off(now);
        if since < on {
            self.on_from = now.saturating_sub(Picoseconds::from_seconds_f64(since));
        }
        since < on
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
        if self.input_port.is_none_or(|port| port == frame.input_port) && self.is_on(now) {
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
