//! What makes a link other than ideal.

use framegauge_frames::{BitRate, Picoseconds, SplitMix, below, frame_bytes};

use crate::{ConfigError, Fabric, Frame, PortConfig, PortIndex, Sink};

/// What an IEEE 802.1Q tag adds to a frame on the wire.
const TAG_BYTES: u64 = 4;
const MILLION: i128 = 1_000_000;

/// How a link differs from its rate and its delay; the default: not at all.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Impairments {
    /// The rate is (1 + skew / 10^6) times what it says: no two clocks are the same, and IEEE 802.3 allows 100 ppm.
    pub skew_ppm: i32,
    /// Added to the delay.
    pub phase: Picoseconds,
    /// Each frame is delayed by an even draw from 0 to it, but never overtakes.
    pub jitter: Picoseconds,
    /// The probability that a frame is lost on the link.
    pub loss: f64,
    /// Frames have a tag on this link (IEEE 802.1Q): 4 bytes more on the wire. Buffers and counters do without it.
    pub tagged: bool,
    /// ICMP errors that an end hands over are dropped, as by a firewall: nobody is told of packets that are too big.
    pub filters_icmp_errors: bool,
    /// The same seed gives the same draws.
    pub seed: u64,
}

impl Impairments {
    /// What a line of that rate comes to, to the nearest bit a second; `None`: to nothing, or more than there is.
    pub(crate) fn skewed(&self, rate: BitRate) -> Option<BitRate> {
        let scaled = i128::from(rate.bits_per_second()) * (MILLION + i128::from(self.skew_ppm));
        let nearest = (scaled + MILLION / 2).div_euclid(MILLION);
        u64::try_from(nearest).ok().and_then(|rate| BitRate::new(rate).ok())
    }

    /// What each frame has besides its wire bytes.
    pub(crate) fn tag_bytes(&self) -> u64 {
        if self.tagged { TAG_BYTES } else { 0 }
    }
}

impl PortConfig {
    /// The rate at which the port really sends: the skew is part of it. `None`: it is no rate.
    pub fn line_rate(&self) -> Option<BitRate> {
        self.impairments.skewed(self.rate)
    }

    /// Whether the port can work, as number `port`.
    pub(crate) fn check(&self, port: usize) -> Result<(), ConfigError> {
        // A port may let out larger frames than its hosts send: how large these are is not known here.
        let smallest = u64::from(frame_bytes(0));
        self.queue.check(smallest).map_err(|problem| ConfigError::Queue { port, problem })?;
        let Impairments { skew_ppm, loss, .. } = self.impairments;
        if self.line_rate().is_none() {
            let rate = self.rate.bits_per_second();
            let problem =
                format!("found {rate} b/s with a skew of {skew_ppm} ppm, expected a rate of 1 b/s or more");
            return Err(ConfigError::Link { port, problem });
        }
        if !(0.0..=1.0).contains(&loss) {
            return Err(ConfigError::Link {
                port,
                problem: format!("found a loss of {loss}, expected 0 to 1"),
            });
        }
        Ok(())
    }
}

/// The draws of a link; it keeps its frames in order.
#[derive(Debug, Clone)]
pub(crate) struct Disturbance {
    jitter_picoseconds: u64,
    loss: f64,
    /// Apart, so that what is lost does not depend on how much the others are delayed.
    jitter_draws: SplitMix,
    loss_draws: SplitMix,
}

impl Disturbance {
    pub(crate) fn new(config: &Impairments) -> Disturbance {
        let mut seeds = SplitMix::new(config.seed);
        Disturbance {
            jitter_picoseconds: config.jitter.as_picoseconds(),
            loss: config.loss,
            jitter_draws: SplitMix::new(seeds.bits()),
            loss_draws: SplitMix::new(seeds.bits()),
        }
    }

    /// When a frame arrives that would then on an ideal link; not before the one ahead of it, if there is one.
    #[cold]
    pub(crate) fn arrival(&mut self, ideal: Picoseconds, ahead: Option<Picoseconds>) -> Picoseconds {
        let jitter = match self.jitter_picoseconds {
            0 => 0,
            most => even_to(self.jitter_draws.bits(), most),
        };
        let own = ideal + Picoseconds::new(jitter);
        ahead.map_or(own, |ahead| own.max(ahead))
    }

    /// The link loses another share of frames from now on.
    pub(crate) fn set_loss(&mut self, loss: f64) {
        self.loss = loss;
    }

    /// Whether the link loses frames.
    pub(crate) fn is_lossy(&self) -> bool {
        self.loss > 0.0
    }

    /// Whether the next frame is lost.
    pub(crate) fn loses(&mut self) -> bool {
        self.is_lossy() && self.loss_draws.even() < self.loss
    }
}

impl Fabric {
    /// Whether a frame that has come to the end of the link behind a port is lost there instead; tells and counts it.
    #[cold]
    pub(crate) fn loses(
        &mut self,
        now: Picoseconds,
        port: PortIndex,
        frame: Frame,
        sink: &mut impl Sink,
    ) -> bool {
        let lost = self.ports[usize::from(port.0)].loses(now, frame);
        match &lost {
            Some(fate) => self.tell(fate, port, sink),
            None => self.drops.end_losses(port, frame.input_port),
        }
        lost.is_some()
    }
}

/// Even over 0 to `most`, both included, from 64 even bits.
fn even_to(bits: u64, most: u64) -> u64 {
    most.checked_add(1).map_or(bits, |count| below(bits, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skew_is_exact_to_the_bit_and_rounds_half_up() {
        let skewed = |rate, skew_ppm| {
            let impairments = Impairments { skew_ppm, ..Impairments::default() };
            impairments.skewed(BitRate::new(rate).unwrap()).map(BitRate::bits_per_second)
        };
        assert_eq!(skewed(1_000_000_000, 0), Some(1_000_000_000));
        assert_eq!(skewed(1_000_000_000, 100), Some(1_000_100_000));
        assert_eq!(skewed(1_000_000_000, -100), Some(999_900_000));
        // 500,000 x 1.000001 = 500,000.5; 500,000 x 0.999999 = 499,999.5; 499,999 x 1.000001 = 499,999.499999.
        assert_eq!(skewed(500_000, 1), Some(500_001));
        assert_eq!(skewed(500_000, -1), Some(500_000));
        assert_eq!(skewed(499_999, 1), Some(499_999));
        assert_eq!(skewed(u64::MAX, 1), None);
        assert_eq!(skewed(1_000, -1_000_000), None);
        assert_eq!(skewed(1_000, i32::MIN), None);
    }

    #[test]
    fn draws_reach_both_ends() {
        assert_eq!((even_to(0, 9), even_to(u64::MAX, 9), even_to(u64::MAX, u64::MAX)), (0, 9, u64::MAX));
        // The third tenth of all bits gives 2.
        assert_eq!((even_to(u64::MAX / 10 * 2 + 2, 9), even_to(u64::MAX / 10 * 3 - 2, 9)), (2, 2));
    }
}
