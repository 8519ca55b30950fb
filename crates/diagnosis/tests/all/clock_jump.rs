//! Gaps of the capture's clock, and gaps that both ends' clocks know of.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, diagnosis, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind};
use framegauge_packets::capture::Segment;
use proptest::prelude::*;

const RTT: i64 = 10 * MS;

/// A client that asks, or sends much, for a second or so.
fn conversation(is_bulk: bool) -> Vec<Segment> {
    let mut scene = Scene::met(RTT);
    scene.talk(3, RTT);
    for _ in 0..40 {
        if is_bulk {
            (0..10).for_each(|_| _ = scene.data(CLIENT, MSS));
            scene.pass(RTT);
            scene.ack(SERVER);
            scene.pass(10_000);
        } else {
            scene.talk(1, RTT);
            scene.pass(20 * MS);
        }
    }
    scene.segments
}

/// Both ends echo what had come when they sent, and stamp with clocks that tick so often a second; from a packet on, the capture's
/// clock is ahead by `step`, and those of an end by `own`.
fn stepped(mut segments: Vec<Segment>, (from, step): (usize, i64), own: [i64; 2], hertz: i64) -> Diagnosis {
    let client = segments[0].source;
    let mut newest = [0; 2];
    for (number, segment) in segments.iter_mut().enumerate() {
        let end = usize::from(segment.source != client);
        let ahead = if number >= from { own[end] } else { 0 };
        let value = ((segment.nanoseconds + ahead) / (1_000_000_000 / hertz)) as u32;
        segment.timestamps = Some((value, newest[1 - end]));
        newest[end] = value;
        segment.nanoseconds += if number >= from { step } else { 0 };
    }
    diagnosis(&segments)
}

proptest! {
    /// Wherever the capture's clock is set forward: nobody waited for that, and no other kind has its time.
    #[test]
    fn a_clock_that_is_set_forward_is_no_pause(is_bulk: bool, place in 0.1..0.8f64, step in 700 * MS..90_000 * MS) {
        let segments = conversation(is_bulk);
        let from = (segments.len() as f64 * place) as usize;
        let found = stepped(segments, (from, step), [0; 2], 1000);
        prop_assert_eq!(kinds(&found), [Kind::ClockJump], "{:#?}", found.findings);
        prop_assert!((one(&found, Kind::ClockJump).lost_seconds - step as f64 / 1e9).abs() < 0.05);
    }

    /// Where the clock of an end went on meanwhile, or ticks too seldom to tell, the gap may be true.
    #[test]
    fn a_gap_that_an_end_knows_of_is_none_of_the_clock(
        is_bulk: bool, place in 0.1..0.8f64, step in 700 * MS..90_000 * MS, knows in 1usize..5,
    ) {
        let segments = conversation(is_bulk);
        let from = (segments.len() as f64 * place) as usize;
        let own = [knows & 1, knows >> 1 & 1].map(|knows| knows as i64 * step);
        let found = stepped(segments, (from, step), own, if knows == 4 { 100 } else { 1000 });
        prop_assert!(!kinds(&found).contains(&Kind::ClockJump), "{:#?}", found.findings);
    }
}
