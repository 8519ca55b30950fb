//! Clocks that are apart by a known offset, drift and step: what is estimated is wrong by no more than it says.

use framegauge_diagnosis::joined::{Clock, Sighting};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

const SECOND: i64 = 1_000_000_000;

/// A path between two clocks, and how far the second clock truly is ahead of the first.
#[derive(Debug, Clone)]
struct Path {
    offset: i64,
    drift: f64,
    step_at: i64,
    step: i64,
    /// The least delay of either direction, in nanoseconds, and how long queues are on average.
    least: [i64; 2],
    queue: f64,
    packets: usize,
    seconds: i64,
    seed: u64,
}

impl Path {
    fn ahead(&self, at: i64) -> i64 {
        let step = if at >= self.step_at { self.step } else { 0 };
        self.offset + (at as f64 * self.drift).round() as i64 + step
    }

    /// Packets both ways, at random times, with delays that have an exponential queue above their least.
    fn sightings(&self) -> Vec<Sighting> {
        let mut state = self.seed | 1;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let sighting = |number: usize| {
            let forward = number.is_multiple_of(2);
            let sent = (random() * (self.seconds * SECOND) as f64) as i64;
            let queue = -(1.0 - random()).ln() * self.queue;
            let arrives = sent + self.least[usize::from(!forward)] + queue as i64;
            // `at` is what the first clock says, which is true here.
            let (at, there) = if forward { (sent, arrives) } else { (arrives, sent) };
            Sighting { at, ahead: there + self.ahead(there) - at, forward }
        };
        (0..self.packets).map(sighting).collect()
    }

    /// The times before the step and after it between packets of both directions: beyond them a step, or a queue of one
    /// direction, look the same.
    fn known(&self, sightings: &[Sighting]) -> [(i64, i64); 2] {
        [false, true].map(|is_after| {
            let whole = |each: &&Sighting| {
                let under_way = self.seconds * SECOND / 10_000 + 2 * (self.least[0] + self.least[1]);
                let far = (each.at - self.step_at).abs() > under_way + 20 * self.queue as i64;
                far && (each.at >= self.step_at) == is_after
            };
            let times = |forward| {
                let of: Vec<i64> = sightings
                    .iter()
                    .filter(whole)
                    .filter(|each| each.forward == forward)
                    .map(|each| each.at)
                    .collect();
                (of.iter().min().copied().unwrap_or(i64::MAX), of.iter().max().copied().unwrap_or(i64::MIN))
            };
            let (one, other) = (times(true), times(false));
            (one.0.max(other.0), one.1.min(other.1))
        })
    }

    /// By how much the estimate is wrong at these times, each with what it says itself.
    fn errors(&self, clock: &Clock) -> Vec<(i64, i64)> {
        let known = self.known(&self.sightings());
        (0..200)
            .map(|part| part * self.seconds * SECOND / 200)
            .filter(|at| known.iter().any(|(begin, end)| (begin..=end).contains(&at)))
            .map(|at| {
                let (ahead, uncertainty) = clock.ahead(at);
                ((ahead - self.ahead(at)).abs(), uncertainty)
            })
            .collect()
    }
}

fn path() -> impl Strategy<Value = Path> {
    let offset = prop_oneof![-10 * SECOND..10 * SECOND, -1000i64..1000];
    let step = prop_oneof![Just(0), -SECOND..SECOND, -200_000i64..200_000];
    let least = [20_000i64..2_000_000, 20_000i64..2_000_000];
    (offset, -1e-4..1e-4, 0i64..100, step, least, 0.0..500_000.0, 600usize..6000, 1i64..100, any::<u64>())
        .prop_map(|(offset, drift, part, step, least, queue, packets, seconds, seed)| {
            let step_at = part * seconds * SECOND / 100;
            Path { offset, drift, step_at, step, least, queue, packets, seconds, seed }
        })
}

/// The same paths each time: among thousands are steps of about a delay that look like a queue or a drift.
#[test]
fn the_estimate_is_never_wrong_by_more_than_it_says() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..300 {
        let path = path().new_tree(&mut runner).expect("a path").current();
        let clock = Clock::align(path.sightings()).expect("packets came both ways");
        for (wrong, said) in path.errors(&clock) {
            assert!(wrong <= said, "wrong by {wrong}, said {said}: {path:?}, pieces {:?}", clock.pieces);
        }
    }
}

#[test]
fn alike_delays_both_ways_give_the_offset_to_microseconds() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut wrong = Vec::new();
    for _ in 0..100 {
        let path = path().new_tree(&mut runner).expect("a path").current();
        let path = Path { least: [path.least[0]; 2], queue: 50_000.0, packets: 6000, ..path };
        let clock = Clock::align(path.sightings()).expect("packets came both ways");
        wrong.extend(path.errors(&clock).into_iter().map(|(wrong, _)| wrong));
    }
    wrong.sort_unstable();
    let median = wrong[wrong.len() / 2];
    println!("median {median} ns, 99 % {} ns", wrong[wrong.len() * 99 / 100]);
    assert!(median <= 10_000, "{median} ns");
}

#[test]
fn a_step_parts_two_pieces_where_it_was() {
    let path = Path {
        offset: 3 * SECOND,
        drift: 5e-5,
        step_at: 12 * SECOND,
        step: -40_000_000,
        least: [100_000; 2],
        queue: 20_000.0,
        packets: 20_000,
        seconds: 30,
        seed: 7,
    };
    let clock = Clock::align(path.sightings()).expect("packets came both ways");
    let [before, after] = &clock.pieces[..] else { panic!("{:?}", clock.pieces) };
    assert!(before.end <= path.step_at && path.step_at <= after.begin, "{:?}", clock.pieces);
    assert!(after.begin - before.end < SECOND / 10, "{:?}", clock.pieces);
    assert!((before.drift - path.drift).abs() < 1e-6 && (after.drift - path.drift).abs() < 1e-6);
}

#[test]
fn packets_of_one_direction_align_nothing() {
    let all: Vec<Sighting> = (0..100).map(|at| Sighting { at, ahead: 5, forward: true }).collect();
    assert_eq!(Clock::align(all), None);
    assert_eq!(Clock::align(Vec::new()), None);
}

#[test]
fn the_same_capture_twice_has_no_room_and_no_error() {
    let all = (0..1000).map(|at| Sighting { at: at * 1000, ahead: 0, forward: at % 3 == 0 }).collect();
    let clock = Clock::align(all).expect("packets came both ways");
    assert_eq!(clock.ahead(500_000).0, 0);
}
