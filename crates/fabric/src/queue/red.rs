//! Random early detection.

use framegauge_frames::{Picoseconds, SplitMix};

use crate::{Discipline, Ecn, Fate, Frame, Limit, Reason, RedConfig, Taildrop};

/// RED as in Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", 1993: on every arrival the
/// average goes on by `average += w (queue - average)`, or, after m mean frames' time of an empty queue, becomes
/// `(1 - w)^m average`. The queue is what the buffer holds before the frame, the frame being sent included.
///
/// Between the thresholds a frame is dropped with probability `p / (1 - count p)`, where `count` frames were let in since
/// the last drop: so the frames from one drop to the next are even in 1 … 1/p (section 7 of the paper).
#[derive(Debug, Clone)]
pub struct Red {
    config: RedConfig,
    queue: Taildrop,
    average: f64,
    /// Since when nothing waits and nothing is sent.
    idle_since: Option<Picoseconds>,
    count: u32,
    draws: SplitMix,
}

/// What is to become of a frame.
enum Decision {
    Keep,
    Early,
    Forced,
}

impl Red {
    /// An empty queue.
    pub fn new(config: RedConfig) -> Red {
        let (queue, draws) = (Taildrop::new(config.limit), SplitMix::new(config.seed));
        Red { config, queue, average: 0.0, idle_since: Some(Picoseconds::ZERO), count: 0, draws }
    }

    /// The average, in bytes or frames as the limit is.
    pub fn average(&self) -> f64 {
        self.average
    }

    fn advance_average(&mut self, now: Picoseconds, transmitting_bytes: u64) {
        let weight = self.config.weight;
        if let Some(since) = self.idle_since.take() {
            let frames = (now - since).as_picoseconds() / self.config.mean_frame_time.as_picoseconds();
            self.average *= power(1.0 - weight, frames);
        } else {
            let occupancy = match self.config.limit {
                Limit::Bytes(_) => self.queue.bytes() + transmitting_bytes,
                Limit::Frames(_) => self.queue.frames() + u64::from(transmitting_bytes > 0),
            };
            self.average += weight * (occupancy as f64 - self.average);
        }
    }

    /// Of a frame in a queue of this average; `None`: it must go.
    fn probability(&self, frame_bytes: u32) -> Option<f64> {
        let RedConfig { minimum, maximum, most_probability, gentle, .. } = self.config;
        let p = if self.average < maximum {
            most_probability * (self.average - minimum) / (maximum - minimum)
        } else if gentle && self.average < 2.0 * maximum {
            most_probability + (1.0 - most_probability) * (self.average - maximum) / maximum
        } else {
            return None;
        };
        match self.config.limit {
            Limit::Bytes(_) => Some(p * f64::from(frame_bytes) / f64::from(self.config.mean_frame_bytes)),
            Limit::Frames(_) => Some(p),
        }
    }

    fn decide(&mut self, frame_bytes: u32) -> Decision {
        if self.average < self.config.minimum {
            self.count = 0;
            return Decision::Keep;
        }
        let Some(p) = self.probability(frame_bytes) else {
            self.count = 0;
            return Decision::Forced;
        };
        let rest = 1.0 - f64::from(self.count) * p;
        if rest <= p || self.draws.even() < p / rest {
            self.count = 0;
            return Decision::Early;
        }
        self.count += 1;
        Decision::Keep
    }
}

/// By squaring: what the library does may differ from machine to machine in the last bit.
fn power(base: f64, mut exponent: u64) -> f64 {
    let (mut factor, mut product) = (base, 1.0);
    while exponent > 0 {
        if exponent & 1 == 1 {
            product *= factor;
        }
        factor *= factor;
        exponent >>= 1;
    }
    product
}

impl Discipline for Red {
    fn offer(
        &mut self,
        now: Picoseconds,
        mut frame: Frame,
        transmitting_bytes: u64,
        fates: &mut Vec<Fate>,
    ) -> Result<(), Reason> {
        self.advance_average(now, transmitting_bytes);
        let decision = self.decide(frame.frame_bytes);
        let reason = match decision {
            Decision::Keep => None,
            Decision::Early if self.config.ecn && frame.ecn != Ecn::NOT_CAPABLE => None,
            Decision::Early => Some(Reason::Early),
            Decision::Forced => Some(Reason::Forced),
        };
        let fits = self.queue.fits(frame.frame_bytes, transmitting_bytes);
        if let Some(reason) = reason.or_else(|| (!fits).then_some(Reason::Taildrop)) {
            // A queue that was idle stays so: nothing was taken in.
            if self.queue.frames() == 0 && transmitting_bytes == 0 {
                self.idle_since = Some(now);
            }
            return Err(reason);
        }
        if matches!(decision, Decision::Early) && frame.ecn == Ecn::CAPABLE {
            frame.ecn = Ecn::MARKED;
            let queue_bytes = self.queue.bytes();
            fates.push(Fate { time: now, frame, reason: Reason::Early, marked: true, queue_bytes });
        }
        self.queue.push(frame);
        Ok(())
    }

    fn take(&mut self, now: Picoseconds, _fates: &mut Vec<Fate>) -> Option<Frame> {
        let frame = self.queue.pop();
        if frame.is_none() {
            self.idle_since.get_or_insert(now);
        }
        frame
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
