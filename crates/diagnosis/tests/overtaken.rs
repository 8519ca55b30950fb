//! Segments that are overtaken behind a rest: what comes late was not lost, and counts once, whoever tells of it.

mod scene;

use framegauge_diagnosis::{Diagnosis, Kind};
use proptest::prelude::*;
use scene::{CLIENT, MS, MSS, SERVER, Scene, kinds, one};

const RTT: i64 = 30 * MS;

/// So many segments that arrive and are acknowledged.
fn go_on(scene: &mut Scene, count: usize) {
    for _ in 0..count {
        scene.data(CLIENT, MSS);
        scene.pass(20_000);
        scene.ack(SERVER);
        scene.pass(RTT);
    }
}

/// Bursts of three segments beside the receiver, after rests of so long. The first of each comes last, so much later, and the
/// receiver says by SACK that it lacks it. `marked`: with identifications and timestamps.
fn overtaken(bursts: usize, rest: i64, late: i64, marked: bool) -> Diagnosis {
    let mut scene = Scene::new();
    if !marked {
        scene.syn.iter_mut().for_each(|syn| syn.timestamps = false);
    }
    scene.meet_at_server(RTT);
    go_on(&mut scene, 3);
    for _ in 0..bursts {
        scene.pass(rest);
        let (begin, number) = (scene.data(CLIENT, MSS), scene.segments.len() - 1);
        let mut first = scene.segments.remove(number);
        for _ in 0..2 {
            scene.data(CLIENT, MSS);
            scene.pass(20_000);
            scene.sack(SERVER, begin, &[(begin.wrapping_add(MSS), scene.next[CLIENT])]);
        }
        scene.pass(late);
        first.nanoseconds = scene.now;
        scene.segments.push(first);
        scene.pass(20_000);
        scene.ack(SERVER);
        scene.pass(RTT);
    }
    go_on(&mut scene, 2);
    for (place, segment) in scene.segments.iter_mut().enumerate() {
        segment.number = place as u64 + 1;
        if !marked {
            (segment.timestamps, segment.identification) = (None, None);
        }
    }
    scene.diagnosis()
}

#[test]
fn each_counts_once() {
    for marked in [true, false] {
        let found = overtaken(4, 2_000 * MS, 2 * MS, marked);
        assert_eq!(one(&found, Kind::Reordering).count, 4, "{marked}");
    }
}

proptest! {
    /// A receiver asks for what it lacks, also where that only comes late: asking is no evidence of loss while it may still come.
    #[test]
    fn none_was_lost(
        bursts in 1usize..6, rest in 40 * MS..5_000 * MS, late in MS / 10..14 * MS, marked: bool
    ) {
        let found = overtaken(bursts, rest, late, marked);
        prop_assert_eq!(kinds(&found), [Kind::Reordering]);
        prop_assert_eq!(one(&found, Kind::Reordering).count, bursts as u64);
    }
}
