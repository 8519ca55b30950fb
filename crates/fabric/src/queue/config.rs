//! Which discipline a port has, with its numbers, and what cannot work.

use framegauge_frames::Picoseconds;

use crate::PortIndex;

/// How much a buffer holds, the frame being sent included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// In `frame_bytes`.
    Bytes(u64),
    /// In frames of any size.
    Frames(u64),
}

impl Limit {
    /// Whether there is room for that much.
    pub(crate) const fn holds(self, bytes: u64, frames: u64) -> bool {
        match self {
            Limit::Bytes(limit) => bytes <= limit,
            Limit::Frames(limit) => frames <= limit,
        }
    }

    /// Whether there is room for one frame more.
    #[inline]
    pub(crate) const fn fits(self, bytes: u64, frames: u64, frame_bytes: u64) -> bool {
        self.holds(bytes + frame_bytes, frames + 1)
    }
}

/// Random early detection (Floyd and Jacobson 1993), in bytes or in frames as `limit` is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedConfig {
    /// The buffer.
    pub limit: Limit,
    /// Below this average nothing happens.
    pub minimum: f64,
    /// From this average on everything is dropped; with `gentle` from twice as much.
    pub maximum: f64,
    /// Of the present queue in the average: w of `average += w (queue - average)`.
    pub weight: f64,
    /// Of a drop at an average of `maximum`.
    pub most_probability: f64,
    /// From `maximum` to twice as much the probability rises to 1 instead of being 1 (Floyd 2000).
    pub gentle: bool,
    /// Frames that can be are marked instead of dropped early (RFC 3168, section 7).
    pub ecn: bool,
    /// Of a frame, on average: while the queue is empty, so many per time could have been sent; and in bytes a larger
    /// frame is met more often in proportion.
    pub mean_frame_bytes: u32,
    /// How long the port takes for such a frame.
    pub mean_frame_time: Picoseconds,
    /// The same seed gives the same drops.
    pub seed: u64,
}

/// Stochastic fairness queueing (McKenney 1990), with deficit round robin (Shreedhar and Varghese 1995).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SfqConfig {
    /// The buffer; when it is full, the last frame of the longest queue goes.
    pub limit_bytes: u64,
    /// Queues.
    pub buckets: u16,
    /// What a queue may send in its turn; not less than the largest frame.
    pub quantum_bytes: u32,
    /// How often flows are spread anew, so that two that share a queue do not for ever; 0: never.
    pub perturbation: Picoseconds,
    /// The same seed gives the same spread.
    pub seed: u64,
}

/// Controlled delay (RFC 8289).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoDelConfig {
    /// The buffer.
    pub limit_bytes: u64,
    /// The wait that is acceptable if it lasts: 5 ms by the RFC.
    pub target: Picoseconds,
    /// For how long it may be exceeded: 100 ms by the RFC.
    pub interval: Picoseconds,
    /// Frames that can be are marked instead of dropped.
    pub ecn: bool,
}

/// Flow queues with CoDel (RFC 8290).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FqCoDelConfig {
    /// Of each queue; the limit is that of all together, at which the first frame of the longest queue goes.
    pub codel: CoDelConfig,
    /// Queues: 1024 by the RFC.
    pub buckets: u16,
    /// What a queue may send in its turn.
    pub quantum_bytes: u32,
    /// Of the hash of flows.
    pub seed: u64,
}

/// Port blackout as a two-state model: off for an exponential time, then on for so many back-to-back frames of one input
/// port, which are dropped, whatever the queue holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlackoutConfig {
    /// The buffer, which drops what does not fit besides.
    pub limit: Limit,
    /// Of the time that it is off.
    pub mean_off: Picoseconds,
    /// Dropped in a row while it is on, if they come back to back.
    pub frames: u32,
    /// From one such frame to the next: it is on for so many times as long, whether frames come or not.
    pub frame_time: Picoseconds,
    /// Whose frames; `None`: everybody's.
    pub input_port: Option<PortIndex>,
    /// The same seed gives the same times.
    pub seed: u64,
}

/// The discipline of an output queue, by name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum QueueConfig {
    /// First in, first out; what does not fit is dropped.
    Taildrop {
        /// The buffer.
        limit: Limit,
    },
    /// First in, first out; when it is full, frames that are drawn go (Mankin 1990).
    RandomDrop {
        /// The buffer.
        limit: Limit,
        /// The same seed gives the same drops.
        seed: u64,
    },
    /// Taildrop that marks while the buffer holds more than a step (DCTCP; Alizadeh et al. 2010).
    Step {
        /// The buffer.
        limit_bytes: u64,
        /// What the buffer may hold before an arriving frame is marked.
        threshold_bytes: u64,
    },
    /// Random early detection.
    Red(RedConfig),
    /// Stochastic fairness queueing.
    Sfq(SfqConfig),
    /// Controlled delay.
    CoDel(CoDelConfig),
    /// Flow queues with controlled delay.
    FqCoDel(FqCoDelConfig),
    /// The lowest band that has a frame goes first; one buffer for all, which takes what fits.
    Priority {
        /// The buffer.
        limit: Limit,
        /// How many; a frame of a higher one is in the last.
        bands: u8,
    },
    /// Taildrop with blackouts of an input port.
    Blackout(BlackoutConfig),
}

impl QueueConfig {
    /// Taildrop in bytes.
    pub const fn taildrop(limit_bytes: u64) -> QueueConfig {
        QueueConfig::Taildrop { limit: Limit::Bytes(limit_bytes) }
    }

    /// What cannot work where frames are so large: what was found and what was expected.
    pub fn check(&self, frame_bytes: u64) -> Result<(), String> {
        let limit = match *self {
            QueueConfig::Taildrop { limit }
            | QueueConfig::RandomDrop { limit, .. }
            | QueueConfig::Priority { limit, .. } => limit,
            QueueConfig::Red(RedConfig { limit, .. })
            | QueueConfig::Blackout(BlackoutConfig { limit, .. }) => limit,
            QueueConfig::Step { limit_bytes, .. }
            | QueueConfig::Sfq(SfqConfig { limit_bytes, .. })
            | QueueConfig::CoDel(CoDelConfig { limit_bytes, .. })
            | QueueConfig::FqCoDel(FqCoDelConfig { codel: CoDelConfig { limit_bytes, .. }, .. }) => {
                Limit::Bytes(limit_bytes)
            }
        };
        match limit {
            Limit::Bytes(bytes) if bytes < frame_bytes => {
                return Err(format!(
                    "found a buffer of {bytes} bytes, expected room for a frame of {frame_bytes}"
                ));
            }
            Limit::Frames(0) => return Err("found a buffer of 0 frames, expected room for one".to_owned()),
            _ => {}
        }
        match *self {
            QueueConfig::Red(red) => red.check(),
            QueueConfig::Sfq(SfqConfig { buckets, quantum_bytes, .. })
            | QueueConfig::FqCoDel(FqCoDelConfig { buckets, quantum_bytes, .. })
                if buckets == 0 || quantum_bytes == 0 =>
            {
                Err(format!(
                    "found {buckets} buckets and a quantum of {quantum_bytes} bytes, expected more than 0"
                ))
            }
            QueueConfig::Priority { bands: 0, .. } => Err("found 0 bands, expected one or more".to_owned()),
            QueueConfig::Blackout(BlackoutConfig { frames: 0, .. }) => {
                Err("found blackouts of 0 frames, expected one or more".to_owned())
            }
            QueueConfig::Blackout(BlackoutConfig { frame_time: Picoseconds::ZERO, .. }) => {
                Err("found blackouts of frames that take no time, expected some".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl BlackoutConfig {
    /// For how long it is on.
    pub fn on(&self) -> Picoseconds {
        self.frame_time.saturating_mul(u64::from(self.frames))
    }
}

impl RedConfig {
    fn check(&self) -> Result<(), String> {
        let RedConfig { minimum, maximum, weight, most_probability, mean_frame_bytes, .. } = *self;
        if !(0.0 <= minimum && minimum < maximum && maximum.is_finite()) {
            return Err(format!(
                "found RED from {minimum} to {maximum}, expected a minimum below the maximum"
            ));
        }
        if !(0.0 < weight && weight <= 1.0 && 0.0 < most_probability && most_probability <= 1.0) {
            return Err(format!(
                "found RED with weight {weight} and probability {most_probability}, expected 0 to 1"
            ));
        }
        if mean_frame_bytes == 0 || self.mean_frame_time == Picoseconds::ZERO {
            return Err("found RED with a mean frame of nothing, expected its bytes and its time".to_owned());
        }
        Ok(())
    }
}
