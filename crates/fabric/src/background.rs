//! Load that the fabric makes itself.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use framegauge_frames::{BitRate, Picoseconds, SplitMix, frame_bytes, mixed, wire_bytes};

use crate::uplink::Uplink;
use crate::{Ecn, Fabric, FabricConfig, Frame, HostIndex};

/// Frames from one host's NIC to another's, over the same links as everybody's; the hosts never see them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackgroundConfig {
    /// Whose NIC they enter the network by, beside the host's own frames.
    pub from: HostIndex,
    /// At whose NIC they end.
    pub to: HostIndex,
    /// On the wire, with preamble and gap; on-off: while it is on.
    pub rate: BitRate,
    /// Of each frame, with header and FCS.
    pub frame_bytes: u32,
    /// When they come.
    pub process: Process,
    /// The same seed gives the same times.
    pub seed: u64,
}

/// When the frames of a background come; each as if it had been going on for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    /// Evenly spaced, from a drawn phase on.
    Constant,
    /// With exponential gaps.
    Poisson,
    /// Evenly spaced by the time that it is on; on and off for exponential times in turn.
    OnOff {
        /// Of the times that it is on.
        mean_on: Picoseconds,
        /// Of the times that it is off.
        mean_off: Picoseconds,
    },
}

/// What a background has sent and what of it has come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackgroundCounters {
    /// Frames that entered the network.
    pub sent_frames: u64,
    /// `frame_bytes` of these.
    pub sent_bytes: u64,
    /// Frames that have arrived at the other NIC.
    pub delivered_frames: u64,
    /// `frame_bytes` of these.
    pub delivered_bytes: u64,
}

impl BackgroundConfig {
    /// What cannot work.
    pub(crate) fn check(&self, fabric: &FabricConfig) -> Result<(), String> {
        let hosts = fabric.hosts.len();
        for HostIndex(host) in [self.from, self.to] {
            if usize::from(host) >= hosts {
                return Err(format!("found host {host}, expected one of {hosts}"));
            }
        }
        let segments = fabric.segments();
        if segments[usize::from(self.from.0)] != segments[usize::from(self.to.0)] {
            let name = |host: HostIndex| &fabric.hosts[usize::from(host.0)].name;
            let (from, to) = (name(self.from), name(self.to));
            return Err(format!("found {from} to {to}, expected two that no router is between"));
        }
        let smallest = frame_bytes(0);
        if self.frame_bytes < smallest {
            return Err(format!("found frames of {} bytes, expected {smallest} or more", self.frame_bytes));
        }
        let uplink = fabric.uplinks[usize::from(self.from.0)];
        let line_rate = fabric.ports.get(usize::from(uplink.0)).and_then(|port| port.line_rate());
        let line_rate = line_rate.map_or(0, BitRate::bits_per_second);
        let rate = self.rate.bits_per_second();
        if rate > line_rate {
            return Err(format!(
                "found {rate} b/s, expected no more than the {line_rate} b/s of its first link"
            ));
        }
        let spacing = Spacing::new(self.rate, self.frame_bytes);
        if spacing.whole == 0 {
            return Err(format!("found {rate} b/s, expected a picosecond or more from frame to frame"));
        }
        // Much shorter ones would only have to be counted until one of them meets a frame.
        let shortest = Picoseconds::new(spacing.whole / 1000 + 1);
        match self.process {
            Process::OnOff { mean_on, .. } if mean_on < shortest => Err(format!(
                "found {mean_on} on, expected a thousandth of what is from frame to frame, {shortest}"
            )),
            _ => Ok(()),
        }
    }
}

/// What is from the beginning of a frame to that of the next, exactly: the fraction of a picosecond is carried over.
#[derive(Debug, Clone)]
struct Spacing {
    whole: u64,
    remainder: u128,
    of: u128,
    carried: u128,
}

impl Spacing {
    fn new(rate: BitRate, frame_bytes: u32) -> Spacing {
        const PICOSECOND_BITS_PER_BYTE: u128 = 8 * 1_000_000_000_000;
        let (scaled, of) = (
            u128::from(wire_bytes(frame_bytes)) * PICOSECOND_BITS_PER_BYTE,
            u128::from(rate.bits_per_second()),
        );
        let whole = u64::try_from(scaled / of).unwrap_or(u64::MAX);
        Spacing { whole, remainder: scaled % of, of, carried: 0 }
    }

    fn step(&mut self) -> Picoseconds {
        self.carried += self.remainder;
        let over = self.carried >= self.of;
        if over {
            self.carried -= self.of;
        }
        Picoseconds::new(self.whole.saturating_add(u64::from(over)))
    }

    fn mean(&self) -> f64 {
        self.whole as f64 + self.remainder as f64 / self.of as f64
    }
}

/// The times of one background.
#[derive(Debug, Clone)]
struct Schedule {
    process: Process,
    spacing: Spacing,
    draws: SplitMix,
    /// How much longer it is on, after the frame that came last.
    on_left: Picoseconds,
}

impl Schedule {
    /// From the beginning of time to the first frame.
    fn first(&mut self) -> Picoseconds {
        let phase = Picoseconds::new((self.draws.even() * self.spacing.mean()) as u64);
        match self.process {
            Process::Constant => phase,
            Process::Poisson => self.gap(),
            Process::OnOff { mean_on, mean_off } => {
                // However long it has been as it is, what is left of an exponential time is one again.
                let share_on = mean_on.as_seconds_f64() / (mean_on + mean_off).as_seconds_f64();
                let is_off = self.draws.even() >= share_on;
                let off = if is_off { self.exponential(mean_off) } else { Picoseconds::ZERO };
                self.on_left = self.exponential(mean_on);
                off + self.until_on_for(phase, mean_on, mean_off)
            }
        }
    }

    /// From one frame to the next.
    fn gap(&mut self) -> Picoseconds {
        match self.process {
            Process::Constant => self.spacing.step(),
            Process::Poisson => {
                Picoseconds::new((self.draws.exponential() * self.spacing.mean()).round() as u64)
            }
            Process::OnOff { mean_on, mean_off } => {
                let on = self.spacing.step();
                self.until_on_for(on, mean_on, mean_off)
            }
        }
    }

    /// How long it takes until it has been on for so long.
    fn until_on_for(
        &mut self,
        mut on: Picoseconds,
        mean_on: Picoseconds,
        mean_off: Picoseconds,
    ) -> Picoseconds {
        let mut passed = Picoseconds::ZERO;
        while on > self.on_left {
            on = on - self.on_left;
            passed += self.on_left + self.exponential(mean_off);
            self.on_left = self.exponential(mean_on);
        }
        self.on_left = self.on_left - on;
        passed + on
    }

    fn exponential(&mut self, mean: Picoseconds) -> Picoseconds {
        Picoseconds::from_seconds_f64(self.draws.exponential() * mean.as_seconds_f64())
    }
}

/// One background at work.
#[derive(Debug, Clone)]
struct Background {
    from: usize,
    /// As it enters the network.
    frame: Frame,
    schedule: Schedule,
    counters: BackgroundCounters,
}

/// All of them, and when each sends next.
#[derive(Debug, Clone, Default)]
pub(crate) struct Backgrounds {
    sources: Vec<Background>,
    due: BinaryHeap<Reverse<(Picoseconds, usize)>>,
}

impl Backgrounds {
    pub(crate) fn new(config: &FabricConfig) -> Backgrounds {
        let mut all = Backgrounds::default();
        for (number, background) in config.background.iter().enumerate() {
            let BackgroundConfig { from, to, rate, frame_bytes, process, seed } = *background;
            // Those with the same seed are still apart.
            let mut draws = SplitMix::new(mixed(number as u64) ^ seed);
            let frame = Frame {
                flow: draws.bits(),
                aggregate: number as u32,
                frame_bytes,
                index: Frame::BACKGROUND_INDEX,
                ecn: Ecn::NOT_CAPABLE,
                band: u8::MAX,
                destination: to,
                input_port: config.uplinks[usize::from(from.0)],
                since: Picoseconds::ZERO,
            };
            let spacing = Spacing::new(rate, frame_bytes);
            let mut schedule = Schedule { process, spacing, draws, on_left: Picoseconds::ZERO };
            all.due.push(Reverse((schedule.first(), number)));
            let counters = BackgroundCounters::default();
            all.sources.push(Background { from: usize::from(from.0), frame, schedule, counters });
        }
        all
    }

    /// When the next frame enters the network.
    pub(crate) fn next(&self) -> Option<Picoseconds> {
        self.due.peek().map(|Reverse((time, _))| *time)
    }

    /// The next frame if it enters the network by `now`, with its host.
    pub(crate) fn take_due(&mut self, now: Picoseconds) -> Option<(usize, Frame)> {
        let time = self.next().filter(|time| *time <= now)?;
        let Reverse((_, number)) = self.due.pop()?;
        let Background { from, frame, schedule, counters } = &mut self.sources[number];
        counters.sent_frames += 1;
        counters.sent_bytes += u64::from(frame.frame_bytes);
        let next = time + schedule.gap();
        // Time stands still at its end.
        if next < Picoseconds::MAX {
            self.due.push(Reverse((next, number)));
        }
        Some((*from, Frame { since: time, ..*frame }))
    }

    /// The next frame of each: when it enters the network, and by which host's NIC.
    pub(crate) fn due(&self) -> impl Iterator<Item = (Picoseconds, usize)> {
        self.due.iter().map(|Reverse((time, number))| (*time, self.sources[*number].from))
    }

    /// Takes a frame out of the network that has come to its end.
    #[cold]
    pub(crate) fn deliver(&mut self, frame: &Frame) {
        let counters = &mut self.sources[frame.aggregate as usize].counters;
        counters.delivered_frames += 1;
        counters.delivered_bytes += u64::from(frame.frame_bytes);
    }

    pub(crate) fn counters(&self) -> Vec<BackgroundCounters> {
        self.sources.iter().map(|source| source.counters).collect()
    }
}

impl Fabric {
    /// Lets all frames of backgrounds enter the network that do by `now`. Nothing but its host and these touches an
    /// uplink, so that they may come there before what happens elsewhere earlier.
    #[cold]
    pub(crate) fn emit_backgrounds(&mut self, now: Picoseconds) {
        while let Some((host, frame)) = self.backgrounds.take_due(now) {
            let Uplink { port: uplink, idle_from, .. } = &mut self.uplinks[host];
            let (uplink, port) = (*uplink, &mut self.ports[usize::from(uplink.0)]);
            let was_idle = port.next_arrival().is_none();
            let offered = port.offer(frame.since, frame, u32::MAX);
            match offered {
                Ok(()) => {
                    let begins = (*idle_from).max(frame.since - port.held_back(frame.since));
                    *idle_from = begins + port.serialisation(frame.frame_bytes);
                }
                Err(_) => self.unsettled.push(uplink),
            }
            self.drops.note_offered(port, uplink, &frame, frame.since, offered);
            if offered.is_ok() && was_idle {
                self.schedule_arrival(uplink.0.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(process: Process, bits_per_second: u64, seed: u64) -> Schedule {
        let spacing = Spacing::new(BitRate::new(bits_per_second).unwrap(), 1518);
        Schedule { process, spacing, draws: SplitMix::new(seed), on_left: Picoseconds::ZERO }
    }

    /// The times of the first frames.
    fn times(mut schedule: Schedule, count: usize) -> Vec<u64> {
        let mut now = schedule.first();
        let mut times = vec![now.as_picoseconds()];
        times.resize_with(count, || {
            now += schedule.gap();
            now.as_picoseconds()
        });
        times
    }

    #[test]
    fn constant_spacing_does_not_drift() {
        for (seed, rate) in [(1, 299_999_999), (2, 1_000_000_000), (3, 7), (4, 123_456_789)] {
            let times = times(schedule(Process::Constant, rate, seed), 10_000);
            // 1538 bytes are 12,304 bits: frame n comes floor(n x 12,304 x 10^12 / rate) after the first.
            let after = |n: usize| (n as u128 * 12_304_000_000_000_000 / u128::from(rate)) as u64;
            assert!(times[0] < after(1));
            for (n, time) in times.iter().enumerate() {
                assert_eq!(time - times[0], after(n));
            }
        }
    }

    #[test]
    fn poisson_counts_have_the_variance_of_their_mean() {
        // 300 Mb/s are 24.382 frames a millisecond. Over 20,000 ms the mean has a standard error of
        // sqrt(24.382 / 20000) = 0.035, the ratio of variance and mean one of sqrt(2 / 20000) = 0.01.
        let times = times(schedule(Process::Poisson, 300_000_000, 7), 500_000);
        let mut counts = vec![0.0; 20_000];
        for millisecond in
            times.iter().map(|time| (time / 1_000_000_000) as usize).filter(|place| *place < 20_000)
        {
            counts[millisecond] += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / 20_000.0;
        let variance = counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>() / 19_999.0;
        assert!(*times.last().unwrap() > 20_000 * 1_000_000_000);
        assert!((mean - 24.382).abs() < 0.18, "{mean}");
        assert!((variance / mean - 1.0).abs() < 0.05, "{variance} for {mean}");
    }

    #[test]
    fn on_off_keeps_its_duty_and_its_peak() {
        // On for 10 ms, off for 30 ms, for 400 s: of an alternating renewal process the share of on has a variance of
        // 2 (10 x 30)^2 / (40^3 x 400,000) in ms, a standard deviation of 0.0027 around 0.25.
        let [mean_on, mean_off] = [10_000_000, 30_000_000].map(Picoseconds::from_nanoseconds);
        let process = Process::OnOff { mean_on, mean_off };
        let times = times(schedule(process, 300_000_000, 11), 2_600_000);
        let until = 400_000_000_000_000;
        assert!(*times.last().unwrap() > until);
        let sent = times.iter().filter(|time| **time < until).count() as f64;
        let share = sent * 12_304.0 / (300e6 * 400.0);
        assert!((share - 0.25).abs() < 0.0135, "{share}");
        // 12,304 bits at 300 Mb/s are 41,013,333.3 ps: never nearer, and mostly just that.
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| *gap >= 41_013_333));
        let apart: Vec<u64> = gaps.into_iter().filter(|gap| *gap > 41_013_334).collect();
        // A pause is in a gap with a probability of 41 us / 10 ms; 10,000 pauses in 400 s, of 30 ms each on average.
        let pauses = apart.len() as f64 * until as f64 / *times.last().unwrap() as f64;
        assert!((9_500.0..10_500.0).contains(&pauses), "{pauses}");
        let mean = apart.iter().sum::<u64>() as f64 / apart.len() as f64;
        assert!((28.5e9..31.5e9).contains(&mean), "{mean}");
    }

    #[test]
    fn on_off_begins_as_it_goes_on() {
        // A quarter of 4,000 begin on, with a standard deviation of 27; of those the first frame is within its spacing
        // but for 0.4 %.
        let [mean_on, mean_off] = [10_000_000, 30_000_000].map(Picoseconds::from_nanoseconds);
        let begins_on = |seed: &u64| {
            let process = Process::OnOff { mean_on, mean_off };
            schedule(process, 300_000_000, mixed(*seed)).first() <= Picoseconds::new(41_013_334)
        };
        let on = (0..4_000).filter(begins_on).count();
        assert!((860..1_140).contains(&on), "{on}");
    }
}
