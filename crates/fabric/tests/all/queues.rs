//! Queue disciplines, each against answers that were computed by hand, and all against the laws they share.

use std::collections::HashMap;

use crate::common::{Log, aggregate, gigabit, hosts, nanoseconds};
use framegauge_fabric::{
    BlackoutConfig, CoDelConfig, Discipline, Ecn, Fabric, Fate, FqCoDelConfig, Frame, HostIndex, Limit,
    LinkConfig, NicConfig, PortIndex, Queue, QueueConfig, Reason, Red, RedConfig, SfqConfig, SwitchConfig,
    star,
};
use framegauge_frames::{Mtu, Picoseconds, SplitMix};
use proptest::prelude::*;

const FULL: u32 = 1518;

fn frame(flow: u64, number: u32, frame_bytes: u32, since: Picoseconds) -> Frame {
    Frame {
        flow,
        aggregate: number,
        frame_bytes,
        index: 0,
        ecn: Ecn::CAPABLE,
        band: (flow % 4) as u8,
        destination: HostIndex(0),
        input_port: PortIndex((flow % 3) as u16),
        since,
    }
}

fn milliseconds(count: u64) -> Picoseconds {
    nanoseconds(count * 1_000_000)
}

fn red(limit: Limit, weight: f64) -> RedConfig {
    RedConfig {
        limit,
        minimum: 5.0,
        maximum: 15.0,
        weight,
        most_probability: 0.1,
        gentle: false,
        ecn: false,
        mean_frame_bytes: FULL,
        mean_frame_time: nanoseconds(12_304),
        seed: 1,
    }
}

const CODEL: CoDelConfig = CoDelConfig {
    limit_bytes: 100_000_000,
    target: Picoseconds::new(5_000_000_000),
    interval: Picoseconds::new(100_000_000_000),
    ecn: false,
};

fn sfq(buckets: u16, perturbation: Picoseconds) -> SfqConfig {
    SfqConfig { limit_bytes: 60 * u64::from(FULL), buckets, quantum_bytes: FULL, perturbation, seed: 1 }
}

/// Offers frames at time 0; which are taken.
fn offer_all(
    queue: &mut impl Discipline,
    frames: &[Frame],
    transmitting_bytes: u64,
) -> Vec<Result<(), Reason>> {
    let offer = |frame: &Frame| queue.offer(frame.since, *frame, transmitting_bytes, &mut Vec::new());
    frames.iter().map(offer).collect()
}

fn drain(queue: &mut impl Discipline, now: Picoseconds) -> Vec<Frame> {
    std::iter::from_fn(|| queue.take(now, &mut Vec::new())).collect()
}

#[test]
fn taildrop_counts_in_frames_or_bytes_with_the_one_being_sent() {
    let three: Vec<Frame> = (0..3).map(|number| frame(0, number, FULL, Picoseconds::ZERO)).collect();
    let full = Err(Reason::Taildrop);
    for limit in [Limit::Frames(2), Limit::Bytes(2 * u64::from(FULL) + 1)] {
        let mut queue = Queue::from(QueueConfig::Taildrop { limit });
        assert_eq!(offer_all(&mut queue, &three, 0), [Ok(()), Ok(()), full]);
        let mut queue = Queue::from(QueueConfig::Taildrop { limit });
        assert_eq!(offer_all(&mut queue, &three, u64::from(FULL)), [Ok(()), full, full]);
    }
}

#[test]
fn a_step_marks_what_makes_the_buffer_more_than_it() {
    // 1518 and 3036 bytes are not more than 3036, 4554 is; what is no ECN transport is let in unmarked.
    let mut queue = Queue::from(QueueConfig::Step { limit_bytes: 10_000, threshold_bytes: 3036 });
    let mut fates = Vec::new();
    for number in 0..4 {
        let ecn = if number == 3 { Ecn::NOT_CAPABLE } else { Ecn::CAPABLE };
        let frame = Frame { ecn, ..frame(0, number, FULL, Picoseconds::ZERO) };
        queue.offer(Picoseconds::ZERO, frame, 0, &mut fates).unwrap();
    }
    let marked: Vec<_> = fates.iter().map(|fate| (fate.frame.aggregate, fate.marked, fate.reason)).collect();
    assert_eq!(marked, [(2, true, Reason::Step)]);
    let found: Vec<_> = drain(&mut queue, Picoseconds::ZERO).iter().map(|frame| frame.ecn).collect();
    assert_eq!(found, [Ecn::CAPABLE, Ecn::CAPABLE, Ecn::MARKED, Ecn::NOT_CAPABLE]);
}

#[test]
fn red_s_average_follows_its_recurrence_to_the_last_bit() {
    // With w = 0.002: every arrival adds w (queue - average); after 10 ms of an empty queue, in which 812 frames of
    // 12,304 ns could have been sent, the average is that before times (1 - w) to the power 812.
    let mut red = Red::new(RedConfig { maximum: 1e9, minimum: 1e8, ..red(Limit::Bytes(1 << 30), 0.002) });
    let mut average = 0.0f64;
    let (mut queued, mut now) = (0u64, Picoseconds::ZERO);
    for number in 0..500 {
        now += nanoseconds(1000);
        let size = 64 + 7 * number % 1400;
        red.offer(now, frame(0, number, size, now), 0, &mut Vec::new()).unwrap();
        if number > 0 {
            average += 0.002 * (queued as f64 - average);
        }
        queued += u64::from(size);
        assert_eq!(red.average().to_bits(), average.to_bits(), "{number}");
    }
    assert_eq!(drain(&mut red, now).len(), 500);
    now += milliseconds(10);
    red.offer(now, frame(0, 0, FULL, now), 0, &mut Vec::new()).unwrap();
    let expected = average * (0..812).fold(1.0, |power, _| power * 0.998);
    assert!((red.average() / expected - 1.0).abs() < 1e-12, "{} {expected}", red.average());
}

/// Of so many arrivals at a queue that always has as many frames, by how many each drop follows the one before.
fn spacings(config: RedConfig, queue: u32, arrivals: u32) -> (Vec<u32>, u32) {
    let mut red = Red::new(config);
    let mut fates = Vec::new();
    let (mut gaps, mut gap, mut drops) = (Vec::new(), 0, 0);
    let mut number = 0;
    while red.frames() < u64::from(queue) {
        // Below its minimum the queue takes everything; above, what it drops is offered again.
        let _ = red.offer(Picoseconds::ZERO, frame(0, number, FULL, Picoseconds::ZERO), 0, &mut fates);
        number += 1;
    }
    for _ in 0..arrivals {
        gap += 1;
        match red.offer(Picoseconds::ZERO, frame(0, number, FULL, Picoseconds::ZERO), 0, &mut fates) {
            Ok(()) => {
                red.take(Picoseconds::ZERO, &mut fates).unwrap();
            }
            Err(_) => {
                drops += 1;
                gaps.push(gap);
                gap = 0;
            }
        }
    }
    (gaps.into_iter().skip(1).collect(), drops)
}

#[test]
fn red_spaces_its_drops_evenly() {
    // At an average of 10 between 5 and 15, p = 0.1 / 2 = 1/20: the gaps are even in 1 ... 20, 10.5 on average.
    let (gaps, _) = spacings(red(Limit::Frames(1000), 1.0), 10, 400_000);
    let mut counts = [0u32; 21];
    gaps.iter().for_each(|gap| counts[*gap as usize] += 1);
    let expected = gaps.len() as f64 / 20.0;
    let chi: f64 = counts[1..].iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
    // 19 degrees of freedom: above 43.8 once in a thousand.
    assert!(chi < 43.8, "{chi} {counts:?}");
    assert!((gaps.iter().sum::<u32>() as f64 / gaps.len() as f64 - 10.5).abs() < 0.1);
}

#[test]
fn red_lets_everything_in_below_its_minimum_and_nothing_above_its_maximum() {
    let config = red(Limit::Frames(1000), 1.0);
    let (gaps, drops) = spacings(RedConfig { minimum: 10.5, ..config }, 10, 1000);
    assert_eq!((gaps.len(), drops), (0, 0));
    // Gentle: at one and a half times the maximum of 10, p = 0.1 + 0.9 / 2 = 0.55; a drop after 1 in 0.55 of cases,
    // else after 2, for 1 - 0.55 is less than 0.55: (0.55 + 2 * 0.45) = 1.45 arrivals a drop.
    let gentle = RedConfig { maximum: 10.0, gentle: true, ..config };
    let (gaps, _) = spacings(gentle, 15, 20_000);
    let mean = gaps.iter().sum::<u32>() as f64 / gaps.len() as f64;
    assert!((mean - 1.45).abs() < 0.02, "{mean}");
    assert!(gaps.iter().all(|gap| *gap <= 2));
    let (gaps, drops) = spacings(RedConfig { maximum: 20.0, gentle: true, ..config }, 15, 1000);
    assert!(drops > 0 && gaps.iter().any(|gap| *gap > 2));
}

#[test]
fn red_marks_early_where_it_can_and_still_drops_above_its_maximum() {
    let config = RedConfig { ecn: true, most_probability: 1.0, ..red(Limit::Frames(1000), 1.0) };
    let mut red = Red::new(config);
    let (mut fates, mut found) = (Vec::new(), Vec::new());
    for number in 0..20 {
        found.push(red.offer(Picoseconds::ZERO, frame(0, number, FULL, Picoseconds::ZERO), 0, &mut fates));
    }
    // With w = 1 the average is the queue: marks between 5 and 15 as frames 5 to 14 find it, with p up to 0.9; from 15
    // on everything is dropped.
    assert!(found[..15].iter().all(Result::is_ok));
    assert!(found[15..].iter().all(|each| *each == Err(Reason::Forced)), "{found:?}");
    assert!(fates.iter().all(|fate| fate.marked && (6..15).contains(&fate.frame.aggregate)));
    assert!(fates.len() >= 4, "{fates:?}");
}

/// `(Σx)² / n Σx²`: 1 if all are alike.
fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|share| share * share).sum::<f64>());
    sum * sum / (shares.len() as f64 * squares)
}

/// Bytes sent of flows that always have something to send, of that size each: whole frames of `FULL` a tick.
fn shares(config: SfqConfig, sizes: &[u32], ticks: u32) -> Vec<f64> {
    let mut queue = Queue::from(QueueConfig::Sfq(config));
    let (mut sent, mut fates, mut credit) = (vec![0.0; sizes.len()], Vec::new(), 0);
    for tick in 0..ticks {
        let now = nanoseconds(12_304 * u64::from(tick));
        // Whoever comes first finds room: each does in its turn.
        for flow in (0..sizes.len()).map(|turn| (turn + tick as usize) % sizes.len()) {
            for number in 0..FULL.div_ceil(sizes[flow]) {
                let frame = frame(flow as u64, 32 * tick + number, sizes[flow], now);
                let _ = queue.offer(now, frame, 0, &mut fates);
            }
        }
        credit += i64::from(FULL);
        while credit > 0 {
            let taken = queue.take(now, &mut fates).unwrap();
            sent[taken.flow as usize] += f64::from(taken.frame_bytes);
            credit -= i64::from(taken.frame_bytes);
        }
        fates.clear();
    }
    sent
}

#[test]
fn sfq_is_fair_to_more_flows_than_it_has_queues() {
    // 24 flows in 16 queues: some share one until the hash changes, every 100 frames, 200 times.
    let spread_anew = shares(sfq(16, nanoseconds(12_304 * 100)), &[FULL; 24], 20_000);
    assert!(jain(&spread_anew) >= 0.99, "{} {spread_anew:?}", jain(&spread_anew));
    let never = shares(sfq(16, Picoseconds::ZERO), &[FULL; 24], 20_000);
    assert!(jain(&never) < 0.95, "{} {never:?}", jain(&never));
}

#[test]
fn sfq_is_fair_in_bytes() {
    let sent = shares(sfq(1024, Picoseconds::ZERO), &[FULL, 300, 64, 1000], 2_000);
    assert!(jain(&sent) >= 0.9999, "{} {sent:?}", jain(&sent));
}

#[test]
fn sfq_pushes_out_the_longest_queue_s_last_frame() {
    let mut queue = Queue::from(QueueConfig::Sfq(SfqConfig {
        limit_bytes: 5 * u64::from(FULL),
        ..sfq(1024, Picoseconds::ZERO)
    }));
    let mut fates = Vec::new();
    let mut offer = |flow, number| {
        queue.offer(Picoseconds::ZERO, frame(flow, number, FULL, Picoseconds::ZERO), 0, &mut fates)
    };
    for number in 0..4 {
        offer(1, number).unwrap();
    }
    offer(2, 4).unwrap();
    offer(3, 5).unwrap(); // number 3, the last of the longest, goes
    assert_eq!(offer(1, 6), Err(Reason::LongestFlow)); // itself
    let dropped: Vec<_> = fates.iter().map(|fate| (fate.frame.aggregate, fate.reason, fate.marked)).collect();
    assert_eq!(dropped, [(3, Reason::LongestFlow, false)]);
    // And in turns of one frame.
    let order: Vec<_> = drain(&mut queue, Picoseconds::ZERO).iter().map(|frame| frame.aggregate).collect();
    assert_eq!(order, [0, 4, 5, 1, 2]);
}

#[test]
fn random_drop_draws_from_all_that_is_in_the_buffer() {
    // A buffer with seven frames of one flow and one of another; then one more comes of each, 9,000 times.
    let limit = Limit::Frames(8);
    let mut lost = [0u64; 2];
    for seed in 0..9_000 {
        let mut queue = Queue::from(QueueConfig::RandomDrop { limit, seed });
        let mut fates = Vec::new();
        let mut offer = |flow, number| {
            queue.offer(Picoseconds::ZERO, frame(flow, number, FULL, Picoseconds::ZERO), 0, &mut fates)
        };
        for number in 0..8 {
            offer(u64::from(number == 7), number).unwrap();
        }
        let refused = offer(0, 8);
        if refused.is_err() {
            assert_eq!((refused, fates.len()), (Err(Reason::RandomDrop), 0));
            lost[0] += 1;
        } else {
            assert_eq!((fates.len(), fates[0].reason), (1, Reason::RandomDrop));
            lost[fates[0].frame.flow as usize] += 1;
        }
        let order: Vec<_> =
            drain(&mut queue, Picoseconds::ZERO).iter().map(|frame| frame.aggregate).collect();
        assert_eq!(order.len(), 8);
        assert!(order.is_sorted(), "{order:?}");
    }
    // One of nine: 1,000 of 9,000, with a standard deviation of 30.
    assert!(lost[1].abs_diff(1_000) < 150, "{lost:?}");
}

/// A queue whose frames all came at time 0, asked for one every millisecond: when something was dropped or marked.
fn strikes(config: CoDelConfig, until: u64) -> (Vec<u64>, Vec<Fate>) {
    let mut queue = Queue::from(QueueConfig::CoDel(config));
    for number in 0..5000 {
        queue
            .offer(Picoseconds::ZERO, frame(0, number, FULL, Picoseconds::ZERO), 0, &mut Vec::new())
            .unwrap();
    }
    let mut fates = Vec::new();
    for millisecond in 1..=until {
        queue.take(milliseconds(millisecond), &mut fates).unwrap();
    }
    (fates.iter().map(|fate| fate.time.as_nanoseconds() / 1_000_000).collect(), fates)
}

#[test]
fn codel_s_drops_come_by_the_inverse_root() {
    // The wait is over 5 ms first at 5 ms, and still at 105 ms, when the first frame is dropped. The next ones are due at
    // 105 + 100 = 205; + 100/sqrt(2) = 275.71; + 100/sqrt(3) = 333.45; + 50 = 383.45; + 44.72 = 428.17; + 40.82 = 468.99;
    // + 37.80 = 506.78; one is asked for at whole milliseconds.
    let (times, fates) = strikes(CODEL, 520);
    assert_eq!(times, [105, 205, 276, 334, 384, 429, 469, 507]);
    assert!(fates.iter().all(|fate| !fate.marked && fate.reason == Reason::Sojourn));
    let (marked, fates) = strikes(CoDelConfig { ecn: true, ..CODEL }, 520);
    assert_eq!(marked, times);
    assert!(fates.iter().all(|fate| fate.marked && fate.frame.ecn == Ecn::MARKED));
}

#[test]
fn codel_leaves_a_short_wait_and_a_single_frame_alone() {
    let mut queue = Queue::from(QueueConfig::CoDel(CODEL));
    let mut fates = Vec::new();
    for number in 0..2000u32 {
        let now = milliseconds(u64::from(number));
        // Each waits for 4 ms; and with 200 ms, but nobody behind it.
        let wait = if number < 1000 { 4 } else { 200 };
        queue.offer(now, frame(0, number, FULL, now), 0, &mut fates).unwrap();
        assert!(queue.take(now + milliseconds(wait), &mut fates).is_some());
    }
    assert!(fates.is_empty());
}

fn fq_codel() -> FqCoDelConfig {
    FqCoDelConfig { codel: CODEL, buckets: 1024, quantum_bytes: FULL, seed: 1 }
}

#[test]
fn fq_codel_lets_a_sparse_flow_go_first_and_the_others_take_turns() {
    let mut queue = Queue::from(QueueConfig::FqCoDel(fq_codel()));
    let mut fates = Vec::new();
    let mut offer = |flow, number| {
        queue.offer(Picoseconds::ZERO, frame(flow, number, FULL, Picoseconds::ZERO), 0, &mut fates).unwrap();
        queue.frames()
    };
    for number in 0..3 {
        offer(1, number);
        offer(2, 10 + number);
    }
    let mut order = Vec::new();
    let mut take =
        |queue: &mut Queue| order.push(queue.take(Picoseconds::ZERO, &mut Vec::new()).unwrap().aggregate);
    take(&mut queue);
    take(&mut queue);
    take(&mut queue);
    queue.offer(Picoseconds::ZERO, frame(3, 99, 64, Picoseconds::ZERO), 0, &mut fates).unwrap();
    (0..4).for_each(|_| take(&mut queue));
    assert_eq!(order, [0, 10, 1, 99, 11, 2, 12]);
    assert!(fates.is_empty());
}

#[test]
fn fq_codel_pushes_out_the_longest_queue_s_first_frame() {
    let codel = CoDelConfig { limit_bytes: 3 * u64::from(FULL), ..CODEL };
    let mut queue = Queue::from(QueueConfig::FqCoDel(FqCoDelConfig { codel, ..fq_codel() }));
    let mut fates = Vec::new();
    for (flow, number) in [(1, 0), (1, 1), (2, 2), (3, 3)] {
        queue.offer(Picoseconds::ZERO, frame(flow, number, FULL, Picoseconds::ZERO), 0, &mut fates).unwrap();
    }
    let dropped: Vec<_> = fates.iter().map(|fate| (fate.frame.aggregate, fate.reason)).collect();
    assert_eq!(dropped, [(0, Reason::LongestFlow)]);
}

#[test]
fn the_lowest_band_goes_first() {
    let mut queue = Queue::from(QueueConfig::Priority { limit: Limit::Frames(5), bands: 3 });
    let bands = [2, 0, 1, 9, 0, 1];
    let frames: Vec<Frame> = (0..6)
        .map(|number| Frame { band: bands[number as usize], ..frame(0, number, FULL, Picoseconds::ZERO) })
        .collect();
    let full = Err(Reason::Taildrop);
    assert_eq!(offer_all(&mut queue, &frames, 0), [Ok(()), Ok(()), Ok(()), Ok(()), Ok(()), full]);
    let order: Vec<_> = drain(&mut queue, Picoseconds::ZERO).iter().map(|frame| frame.aggregate).collect();
    assert_eq!(order, [1, 4, 2, 0, 3]);
}

/// On for 7 frames of 10 us, off for 5 ms on average, of port 1.
const BLACKOUT: BlackoutConfig = BlackoutConfig {
    limit: Limit::Frames(1000),
    mean_off: Picoseconds::new(5_000_000_000),
    frames: 7,
    frame_time: Picoseconds::new(10_000_000),
    input_port: Some(PortIndex(1)),
    seed: 3,
};

/// Whether a frame of that input port gets in at that time.
fn gets_in(queue: &mut Queue, input_port: u64, now: Picoseconds) -> bool {
    let offered = queue.offer(now, frame(input_port, 0, FULL, now), 0, &mut Vec::new());
    drain(queue, now);
    assert!(matches!(offered, Ok(()) | Err(Reason::Blackout)), "{offered:?}");
    offered.is_ok()
}

#[test]
fn blackouts_are_runs_of_one_input_port_with_exponential_pauses() {
    // A frame of each of two input ports every 10 us for 20 s, with pauses of 5 ms on average and runs of 7: a run takes
    // 60 us from its first to its last frame, and the first comes 5 us after the pause on average: one every 5.065 ms,
    // 3,949 in all, with a standard error of 63 (at most that of as many exponential times).
    let mut queue = Queue::from(QueueConfig::Blackout(BLACKOUT));
    let (mut runs, mut run) = (Vec::new(), 0u32);
    for number in 0..2_000_000u64 {
        let now = nanoseconds(10_000 * number);
        assert!(gets_in(&mut queue, 0, now));
        match gets_in(&mut queue, 1, now) {
            false => run += 1,
            true => runs.extend((run > 0).then(|| std::mem::take(&mut run))),
        }
    }
    assert!(runs.iter().all(|run| run % 7 == 0));
    let blackouts = runs.iter().sum::<u32>() / 7;
    assert!((3700..4200).contains(&blackouts), "{blackouts}");
}

#[test]
fn a_blackout_ends_with_its_time_or_with_its_frames() {
    // The pauses are the draws of the same seed, in order. The first blackout meets two frames of seven and ends by its
    // 70 us; the second meets seven at once and ends with the last of them, which is where the third pause begins.
    let mut draws = SplitMix::new(BLACKOUT.seed);
    let mut pause = || Picoseconds::from_seconds_f64(5e-3 * draws.exponential());
    let (on, one) = (nanoseconds(70_000), Picoseconds::new(1));
    let first = pause();
    let second = first.saturating_add(on).saturating_add(pause());
    let third = second.saturating_add(pause());
    let mut steps = vec![
        (first.saturating_sub(one), true),
        (first, false),
        (first.saturating_add(on).saturating_sub(one), false),
        (first.saturating_add(on), true),
        (second.saturating_sub(one), true),
    ];
    steps.extend([(second, false); 7]);
    steps.extend([(second, true), (third.saturating_sub(one), true), (third, false)]);
    let mut queue = Queue::from(QueueConfig::Blackout(BLACKOUT));
    for (step, (now, expected)) in steps.into_iter().enumerate() {
        assert_eq!(gets_in(&mut queue, 1, now), expected, "step {step}");
    }
}

#[test]
fn a_lone_frame_meets_a_blackout_by_its_share_of_time() {
    // As a sender repeats one frame after its timer: of 20,000, so far apart that each meets a state of its own, 70 us of
    // 5.07 ms meet it on: 276, with a standard error of 16.5 (binomial). 20 s hold more pauses than are gone through one
    // by one.
    for apart in [milliseconds(200), milliseconds(20_000)] {
        let mut queue = Queue::from(QueueConfig::Blackout(BLACKOUT));
        let dropped = (1..=20_000).filter(|number| !gets_in(&mut queue, 1, apart.saturating_mul(*number)));
        let dropped = dropped.count();
        assert!((210..343).contains(&dropped), "{dropped} at {apart:?}");
    }
}

#[test]
fn what_cannot_work_is_said() {
    let small = 2u64 * u64::from(FULL);
    let cases = [
        (QueueConfig::taildrop(1000), "found a buffer of 1000 bytes, expected room for a frame of 1518"),
        (
            QueueConfig::Taildrop { limit: Limit::Frames(0) },
            "found a buffer of 0 frames, expected room for one",
        ),
        (
            QueueConfig::Red(RedConfig { minimum: 20.0, ..red(Limit::Frames(9), 0.1) }),
            "found RED from 20 to 15, expected a minimum below the maximum",
        ),
        (
            QueueConfig::Red(red(Limit::Frames(9), 0.0)),
            "found RED with weight 0 and probability 0.1, expected 0 to 1",
        ),
        (
            QueueConfig::Sfq(sfq(0, Picoseconds::ZERO)),
            "found 0 buckets and a quantum of 1518 bytes, expected more than 0",
        ),
        (
            QueueConfig::Priority { limit: Limit::Bytes(small), bands: 0 },
            "found 0 bands, expected one or more",
        ),
        (
            QueueConfig::Blackout(BlackoutConfig { frames: 0, ..BLACKOUT }),
            "found blackouts of 0 frames, expected one or more",
        ),
        (
            QueueConfig::Blackout(BlackoutConfig { frame_time: Picoseconds::ZERO, ..BLACKOUT }),
            "found blackouts of frames that take no time, expected some",
        ),
    ];
    for (config, said) in cases {
        assert_eq!(config.check(u64::from(FULL)), Err(said.to_owned()));
    }
    assert_eq!(QueueConfig::CoDel(CODEL).check(u64::from(FULL)), Ok(()));
    let link = LinkConfig::symmetric(gigabit(), Picoseconds::ZERO);
    let switch = SwitchConfig { buffer_bytes: 63, port_mtu: Mtu::new(1500).unwrap() };
    let said = Fabric::new(&star(hosts(2), link, switch, NicConfig::default())).unwrap_err().to_string();
    assert_eq!(said, "port 1: found a buffer of 63 bytes, expected room for a frame of 64");
}

const LIMIT_BYTES: u64 = 20_000;

fn any_discipline() -> impl Strategy<Value = QueueConfig> {
    let limit = Limit::Bytes(LIMIT_BYTES);
    let codel = |ecn| CoDelConfig {
        limit_bytes: LIMIT_BYTES,
        target: nanoseconds(50_000),
        interval: nanoseconds(500_000),
        ecn,
    };
    let red_of = move |(gentle, ecn, seed)| {
        QueueConfig::Red(RedConfig { minimum: 3000.0, maximum: 9000.0, gentle, ecn, seed, ..red(limit, 0.2) })
    };
    let sfq_of = |(buckets, period, seed)| {
        let perturbation = nanoseconds(period);
        QueueConfig::Sfq(SfqConfig {
            limit_bytes: LIMIT_BYTES,
            buckets,
            quantum_bytes: FULL,
            perturbation,
            seed,
        })
    };
    let fq = move |(buckets, ecn, seed)| {
        QueueConfig::FqCoDel(FqCoDelConfig { codel: codel(ecn), buckets, quantum_bytes: 300, seed })
    };
    let blackout = move |(frames, seed)| {
        let (mean_off, input_port) = (nanoseconds(200_000), Some(PortIndex(1)));
        let frame_time = nanoseconds(20_000);
        QueueConfig::Blackout(BlackoutConfig { limit, mean_off, frames, frame_time, input_port, seed })
    };
    prop_oneof![
        Just(QueueConfig::Taildrop { limit }),
        any::<u64>().prop_map(move |seed| QueueConfig::RandomDrop { limit, seed }),
        (0..LIMIT_BYTES)
            .prop_map(|threshold_bytes| QueueConfig::Step { limit_bytes: LIMIT_BYTES, threshold_bytes }),
        (any::<bool>(), any::<bool>(), any::<u64>()).prop_map(red_of),
        (1u16..9, 0u64..400_000, any::<u64>()).prop_map(sfq_of),
        any::<bool>().prop_map(move |ecn| QueueConfig::CoDel(codel(ecn))),
        (1u16..9, any::<bool>(), any::<u64>()).prop_map(fq),
        (1u8..5).prop_map(move |bands| QueueConfig::Priority { limit, bands }),
        (1u32..6, any::<u64>()).prop_map(blackout),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// Each step: time passes, a frame comes (a flow and a size), or one is asked for.
    #[test]
    fn every_discipline_conserves_keeps_its_limit_and_the_order_of_a_flow(
        config in any_discipline(),
        steps in prop::collection::vec((0u64..40_000, 0u64..6, 64u32..1519, 0u8..3), 1..300),
    ) {
        let mut queue = Queue::from(config);
        let (mut now, mut sending, mut fates) = (Picoseconds::ZERO, 0u64, Vec::new());
        let (mut offered, mut refused, mut taken) = (0u64, 0u64, 0u64);
        let mut last: HashMap<u64, u32> = HashMap::new();
        for (number, (wait, flow, size, kind)) in steps.into_iter().enumerate() {
            now += nanoseconds(wait);
            if kind < 2 {
                let coming = frame(flow, number as u32, size, now);
                offered += 1;
                refused += u64::from(queue.offer(now, coming, sending, &mut fates).is_err());
                prop_assert!(queue.bytes() + sending <= LIMIT_BYTES);
            } else {
                let next = queue.take(now, &mut fates);
                sending = next.map_or(0, |next| u64::from(next.frame_bytes));
                if let Some(next) = next {
                    taken += 1;
                    let before = last.insert(next.flow, next.aggregate);
                    prop_assert!(before.is_none_or(|before| before < next.aggregate));
                }
            }
            let dropped = fates.iter().filter(|fate| !fate.marked).count() as u64;
            prop_assert_eq!(offered, refused + dropped + taken + queue.frames());
            prop_assert!(fates.iter().all(|fate| fate.time <= now));
        }
        // What waits comes out, and its bytes are what was said; dropped at the head, too.
        let (bytes, before) = (queue.bytes(), fates.len());
        let mut out = 0;
        while let Some(next) = queue.take(now, &mut fates) {
            out += u64::from(next.frame_bytes);
        }
        out += fates[before..].iter().filter(|fate| !fate.marked).map(|fate| u64::from(fate.frame.frame_bytes)).sum::<u64>();
        prop_assert_eq!((bytes, queue.bytes(), queue.frames()), (out, 0, 0));
    }

    /// Draining takes all that waits out in the order in which it came, and leaves an empty queue that works.
    #[test]
    fn every_discipline_can_be_drained(
        config in any_discipline(),
        steps in prop::collection::vec((0u64..40_000, 0u64..6, 64u32..1519, 0u8..4), 1..100),
    ) {
        let mut queue = Queue::from(config);
        let (mut now, mut sending, mut fates) = (Picoseconds::ZERO, 0u64, Vec::new());
        for (number, (wait, flow, size, kind)) in steps.into_iter().enumerate() {
            now += nanoseconds(wait);
            if kind < 3 {
                let _ = queue.offer(now, frame(flow, number as u32, size, now), sending, &mut fates);
            } else {
                sending = queue.take(now, &mut fates).map_or(0, |next| u64::from(next.frame_bytes));
            }
        }
        let held = (queue.bytes(), queue.frames());
        let drained = queue.drain();
        let bytes: u64 = drained.iter().map(|frame| u64::from(frame.frame_bytes)).sum();
        prop_assert_eq!(held, (bytes, drained.len() as u64));
        prop_assert!(drained.windows(2).all(|pair| pair[0].since <= pair[1].since));
        let mut last: HashMap<u64, u32> = HashMap::new();
        for frame in &drained {
            prop_assert!(last.insert(frame.flow, frame.aggregate).is_none_or(|before| before < frame.aggregate));
        }
        let before = fates.len();
        prop_assert_eq!((queue.bytes(), queue.frames(), queue.take(now, &mut fates)), (0, 0, None));
        prop_assert_eq!(fates.len(), before);
        let next = frame(0, 999, 64, now);
        if queue.offer(now, next, 0, &mut fates).is_ok() {
            prop_assert_eq!(queue.take(now, &mut fates).map(|frame| frame.aggregate), Some(999));
        }
    }

    /// The same laws with ports, links and switches around it, and every drop in the log.
    #[test]
    fn every_discipline_conserves_in_a_fabric(
        config in any_discipline(),
        sends in prop::collection::vec((0u64..60_000, 0u16..3, 1u16..12, 60u32..1514), 1..40),
    ) {
        let link = LinkConfig::symmetric(gigabit(), nanoseconds(1000));
        let switch = SwitchConfig { buffer_bytes: LIMIT_BYTES, port_mtu: Mtu::new(1500).unwrap() };
        let mut rack = star(hosts(4), link, switch, NicConfig::default());
        rack.ports.iter_mut().filter(|port| port.output_mtu.is_some()).for_each(|port| port.queue = config);
        let mut fabric = Fabric::new(&rack).unwrap();
        let (mut log, mut now, mut sent) = (Log::default(), Picoseconds::ZERO, 0);
        for (id, (wait, source, frames, captured)) in sends.into_iter().enumerate() {
            now += nanoseconds(wait);
            fabric.advance(now, &mut log);
            let packet = aggregate(id as u32, frames, captured, 3);
            fabric.transmit(now, HostIndex(source), packet);
            sent += usize::from(frames);
        }
        while let Some(deadline) = fabric.next_deadline() {
            fabric.advance(deadline, &mut log);
        }
        prop_assert_eq!(log.delivered.len() + log.discarded.len(), sent);
        prop_assert_eq!(fabric.take_drops().len(), log.discarded.len());
        for port in fabric.counters().ports {
            prop_assert_eq!(port.received_frames, port.sent_frames + port.dropped_frames);
            prop_assert_eq!(port.received_bytes, port.sent_bytes + port.dropped_bytes);
            prop_assert_eq!((port.queued_frames, port.queued_bytes), (0, 0));
        }
    }
}
