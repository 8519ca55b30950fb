//! The search on paths that carry the target and lose packets for another reason than their size: rate limits, short
//! buffers, early drops, bursts of loss. Nothing of that is an MTU, and it must never be called one.
use crate::common::{Random, config};
use framegauge_pathmtu::{Config, Next, Report, Search, Verdict};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

const TARGET: u32 = 9000;
const FLOWS: u16 = 8;

/// Why packets are lost.
#[derive(Debug, Clone, Copy)]
enum Reason {
    /// More than a token bucket has. It is full in the beginning, and holds a packet of the target's size at least.
    Policer { bytes_per_second: f64, burst: f64 },
    /// A queue that is full, of a link this fast.
    Buffer { bytes_per_second: f64, bytes: f64 },
    /// Random early drops in bytes (S. Floyd and V. Jacobson, 1993): the larger a packet, the likelier.
    Red { bytes_per_second: f64, least: f64, most: f64 },
    /// Good and bad times, of these mean lengths in seconds, and what is lost in bad ones (Gilbert 1960).
    Bursts { good: f64, bad: f64, loss: f64 },
    /// Each packet alike.
    Chance { loss: f64 },
}

/// A path under way.
struct Path {
    reason: Reason,
    random: Random,
    /// Tokens, or bytes in the queue; their mean; whether times are bad, and until when.
    level: f64,
    mean: f64,
    is_bad: bool,
    until: f64,
    last: f64,
}

impl Path {
    fn new(reason: Reason, seed: u64) -> Path {
        let level = if let Reason::Policer { burst, .. } = reason { burst } else { 0.0 };
        Path { reason, random: Random(seed), level, mean: 0.0, is_bad: false, until: 0.0, last: 0.0 }
    }

    fn share(&mut self) -> f64 {
        self.random.below(1 << 30) as f64 / (1u64 << 30) as f64
    }

    /// How long a packet waits on its way; none if it is lost.
    fn carry(&mut self, now: f64, bytes: f64) -> Option<f64> {
        let passed = now - self.last;
        self.last = now;
        match self.reason {
            Reason::Policer { bytes_per_second, burst } => {
                self.level = (self.level + passed * bytes_per_second).min(burst);
                (self.level >= bytes).then(|| self.level -= bytes)?;
                Some(0.0)
            }
            Reason::Buffer { bytes_per_second, bytes: most } => {
                self.level = (self.level - passed * bytes_per_second).max(0.0);
                (self.level + bytes <= most).then(|| self.level += bytes)?;
                Some(self.level / bytes_per_second)
            }
            Reason::Red { bytes_per_second, least, most } => {
                self.level = (self.level - passed * bytes_per_second).max(0.0);
                self.mean += 0.2 * (self.level - self.mean);
                let early =
                    ((self.mean - least) / (most - least)).clamp(0.0, 1.0) * bytes / f64::from(TARGET);
                (self.share() >= early && self.level + bytes <= 2.0 * most).then(|| self.level += bytes)?;
                Some(self.level / bytes_per_second)
            }
            Reason::Bursts { good, bad, loss } => {
                while self.until <= now {
                    self.is_bad = !self.is_bad;
                    let mean = if self.is_bad { bad } else { good };
                    self.until += -mean * (1.0 - self.share()).max(1e-9).ln();
                }
                (!self.is_bad || self.share() >= loss).then_some(0.0)
            }
            Reason::Chance { loss } => (self.share() >= loss && self.share() >= loss).then_some(0.0),
        }
    }
}

/// A search over such a path, whose flows carry what `mtu` says, to its end; the report, and how long it took.
fn search(reason: Reason, mtu: &dyn Fn(u16) -> u32, seed: u64) -> (Report, Duration) {
    search_over(vec![Path::new(reason, seed)], mtu, seed)
}

/// The same over parallel paths, of which each flow takes one.
fn search_over(mut paths: Vec<Path>, mtu: &dyn Fn(u16) -> u32, seed: u64) -> (Report, Duration) {
    let false_claim = 1e-6 / f64::from(FLOWS);
    let asked = Config { seed, false_claim, controls_a_probe: 1, ..config(TARGET, FLOWS) };
    let mut search = Search::new(asked);
    let members = paths.len();
    let mut due: BinaryHeap<Reverse<(Duration, u16, u32, u32)>> = BinaryHeap::new();
    let mut now = Duration::ZERO;
    loop {
        match search.poll(now, true) {
            Next::Done => return (search.report(), now),
            Next::Send { flow, number, bytes } => {
                let path = &mut paths[usize::from(flow) % members];
                // What is too large is lost behind the reason for other losses, and takes its room all the same.
                let waits = path.carry(now.as_secs_f64(), f64::from(bytes)).filter(|_| bytes <= mtu(flow));
                if let Some(seconds) = waits {
                    let delay = Duration::from_micros(200 + path.random.below(200));
                    due.push(Reverse((now + delay + Duration::from_secs_f64(seconds), flow, number, bytes)));
                }
                // A host takes some microseconds for a packet.
                now += Duration::from_nanos(1000 + path.random.below(4000));
            }
            Next::Wait(until) => match due.peek() {
                Some(Reverse((at, ..))) if *at <= until => {
                    let Some(Reverse((at, flow, number, bytes))) = due.pop() else { unreachable!() };
                    now = now.max(at);
                    search.on_delivered(now, flow, number, bytes, None);
                }
                // Nobody wakes up in time to the microsecond.
                _ => now = now.max(until) + Duration::from_nanos(paths[0].random.below(60_000)),
            },
        }
    }
}

/// Searches that claim a limit where there is none, and flows that were found to carry the target.
fn judged(reasons: impl IntoIterator<Item = Reason>) -> (usize, usize, usize) {
    let (mut searches, mut wrong, mut carrying) = (0, 0, 0);
    for (seed, reason) in reasons.into_iter().enumerate() {
        let (report, _) = search(reason, &|_| u32::MAX, seed as u64);
        searches += 1;
        let claims = |verdict| !matches!(verdict, Verdict::CarriesTarget | Verdict::Unknown);
        if report.flows.iter().any(|flow| claims(flow.verdict)) {
            wrong += 1;
            println!("{seed} {reason:?}: {report:?}");
        }
        carrying += report.flows.iter().filter(|flow| flow.verdict == Verdict::CarriesTarget).count();
    }
    (searches, wrong, carrying)
}

/// A thousand values between two, evenly spread in their logarithm, in an order of their own.
fn spread(least: f64, most: f64, step: usize) -> impl Iterator<Item = f64> {
    (0..1000).map(move |index| least * (most / least).powf((index * step % 1000) as f64 / 999.0))
}

#[test]
fn a_policer_is_no_mtu() {
    let limits = spread(12_500.0, 20e6, 1).zip(spread(9000.0, 200_000.0, 387));
    let policers = limits.map(|(bytes_per_second, burst)| Reason::Policer { bytes_per_second, burst });
    let (searches, wrong, carrying) = judged(policers);
    assert_eq!((searches, wrong), (1000, 0));
    assert!(carrying > 900 * usize::from(FLOWS), "{carrying}");
}

#[test]
fn a_short_buffer_is_no_mtu() {
    let limits = spread(12_500.0, 20e6, 1).zip(spread(9000.0, 100_000.0, 387));
    let buffers = limits.map(|(bytes_per_second, bytes)| Reason::Buffer { bytes_per_second, bytes });
    let (searches, wrong, carrying) = judged(buffers);
    assert_eq!((searches, wrong), (1000, 0));
    assert!(carrying > 900 * usize::from(FLOWS), "{carrying}");
}

#[test]
fn parallel_paths_that_lose_for_reasons_of_their_own_are_no_small_members() {
    let reasons = [
        |value: f64| Reason::Chance { loss: value * 0.05 },
        |value: f64| Reason::Policer {
            bytes_per_second: 12_500.0 + value * 2e6,
            burst: 9000.0 + value * 1e5,
        },
        |value: f64| Reason::Buffer { bytes_per_second: 12_500.0 + value * 2e6, bytes: 9000.0 + value * 5e4 },
        |value: f64| Reason::Bursts { good: 0.5, bad: 0.2 * value + 0.001, loss: 1.0 },
    ];
    for seed in 0..1000 {
        let mut random = Random(seed);
        let mut path = |member: u64| {
            let reason = reasons[random.below(4) as usize](random.below(1000) as f64 / 1000.0);
            Path::new(reason, seed + 1000 * member)
        };
        let paths: Vec<Path> = (0..4).map(&mut path).collect();
        let reasons: Vec<Reason> = paths.iter().map(|path| path.reason).collect();
        let (report, _) = search_over(paths, &|_| u32::MAX, seed);
        for flow in &report.flows {
            let told = matches!(flow.verdict, Verdict::CarriesTarget | Verdict::Unknown);
            assert!(told, "seed {seed}, {reasons:?}: {report:?}");
        }
    }
}

/// Searches at the same time behind one policer that counts packets, those of answers as well; their reports.
fn together(searches: u64, packets_per_second: f64, burst: f64, seed: u64) -> Vec<Report> {
    let config = |index| Config { seed: seed + index, controls_a_probe: 1, ..config(TARGET, 32) };
    let mut all: Vec<Search> = (0..searches).map(|index| Search::new(config(index))).collect();
    let limit = Reason::Policer { bytes_per_second: packets_per_second, burst };
    let mut path = Path::new(limit, seed);
    let mut due = BinaryHeap::new();
    let mut now = Duration::ZERO;
    loop {
        let mut next: Option<Duration> = None;
        for (index, search) in all.iter_mut().enumerate() {
            loop {
                match search.poll(now, true) {
                    Next::Send { flow, number, bytes } => {
                        if path.carry(now.as_secs_f64(), 1.0).is_some()
                            && path.carry(now.as_secs_f64(), 1.0).is_some()
                        {
                            due.push(Reverse((now + Duration::from_micros(300), index, flow, number, bytes)));
                        }
                    }
                    Next::Wait(until) => {
                        next = Some(next.map_or(until, |time| time.min(until)));
                        break;
                    }
                    Next::Done => break,
                }
            }
        }
        let arrives = due.peek().map(|Reverse((at, ..))| *at);
        match next.into_iter().chain(arrives).min() {
            None => return all.iter().map(Search::report).collect(),
            Some(time) => now = now.max(time) + Duration::from_micros(path.random.below(20)),
        }
        while due.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Some(Reverse((at, index, flow, number, bytes))) = due.pop() else { unreachable!() };
            let search: &mut Search = &mut all[index];
            search.on_delivered(at, flow, number, bytes, None);
        }
    }
}

#[test]
fn a_policer_of_packets_makes_nobody_unreachable() {
    let limits = spread(40.0, 2000.0, 1).zip(spread(10.0, 200.0, 387)).step_by(5);
    for (seed, (packets_per_second, burst)) in limits.enumerate() {
        for report in together(4, packets_per_second, burst, seed as u64) {
            for flow in &report.flows {
                let told = matches!(flow.verdict, Verdict::CarriesTarget | Verdict::Unknown);
                assert!(told, "{packets_per_second} packets/s, burst {burst}: {report:?}");
            }
        }
    }
}

#[test]
fn random_early_drops_are_no_mtu() {
    let limits = spread(50_000.0, 20e6, 1).zip(spread(9000.0, 60_000.0, 387));
    let queues =
        limits.map(|(bytes_per_second, most)| Reason::Red { bytes_per_second, least: most / 3.0, most });
    let (searches, wrong, carrying) = judged(queues);
    assert_eq!((searches, wrong), (1000, 0));
    assert!(carrying > 900 * usize::from(FLOWS), "{carrying}");
}

#[test]
fn bursts_of_loss_are_no_mtu() {
    let times = spread(0.002, 2.0, 1).zip(spread(0.001, 0.3, 387)).zip(spread(0.3, 1.0, 619));
    let bursts = times.map(|((good, bad), loss)| Reason::Bursts { good, bad, loss });
    let (searches, wrong, _) = judged(bursts);
    assert_eq!((searches, wrong), (1000, 0));
}

#[test]
fn loss_by_chance_is_no_mtu() {
    let (searches, wrong, carrying) = judged(spread(0.001, 0.05, 1).map(|loss| Reason::Chance { loss }));
    assert_eq!((searches, wrong, carrying), (1000, 0, 1000 * usize::from(FLOWS)));
}

#[test]
fn a_small_member_is_found_on_its_flows_only_whatever_else_is_lost() {
    let small = |flow: u16| if flow % 4 == 1 { 1504 } else { u32::MAX };
    let reasons = spread(0.001, 0.05, 1).map(|loss| Reason::Chance { loss });
    for (seed, reason) in reasons.enumerate() {
        let (report, _) = search(reason, &small, seed as u64);
        for (flow, found) in report.flows.iter().enumerate() {
            assert_eq!(found.path_mtu_bytes, Some(small(flow as u16).min(TARGET)), "{reason:?}: {report:?}");
        }
    }
}

#[test]
fn behind_a_policer_a_small_member_is_still_found_or_not_told() {
    let small = |flow: u16| if flow % 4 == 1 { 1504 } else { u32::MAX };
    let mut known = 0;
    for (seed, bytes_per_second) in spread(12_500.0, 20e6, 1).enumerate().step_by(5) {
        let reason = Reason::Policer { bytes_per_second, burst: 20_000.0 };
        let (report, _) = search(reason, &small, seed as u64);
        for (flow, found) in report.flows.iter().enumerate() {
            let truth = small(flow as u16).min(TARGET);
            assert!(found.path_mtu_bytes.is_none_or(|mtu| mtu == truth), "{reason:?}: {report:?}");
            known += usize::from(found.path_mtu_bytes.is_some());
        }
    }
    assert!(known > 150 * usize::from(FLOWS), "{known}");
}
