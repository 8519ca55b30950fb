//! Two taps, between which packets above some size are lost from some packet on.

use crate::scene::{CLIENT, MS, SERVER, Scene};
use framegauge_diagnosis::joined::{Joiner, LostSizes, Place};
use framegauge_packets::capture::Segment;
use proptest::prelude::*;

const LARGE: u32 = 8948;

/// Requests of this many bytes, each repeated twice if it is lost; and which of the client's segments arrived.
fn asked(sizes: &[u32], is_lost: impl Fn(usize, u32) -> bool) -> (Scene, Vec<bool>) {
    let mut scene = Scene::new();
    scene.syn.iter_mut().for_each(|syn| syn.mss = Some(8960));
    scene.meet(MS);
    let mut arrived = vec![true; scene.segments.len()];
    let mut has_hole = false;
    for (turn, bytes) in sizes.iter().enumerate() {
        let lost = is_lost(turn, *bytes);
        let begin = scene.data(CLIENT, *bytes);
        arrived.push(!lost);
        for wait in [200, 400].into_iter().filter(|_| lost) {
            scene.pass(wait * MS);
            scene.again(CLIENT, begin, *bytes);
            arrived.push(!lost);
        }
        scene.pass(MS);
        // What was lost leaves a hole, and the other end acknowledges what lies below.
        has_hole |= lost;
        if has_hole {
            scene.send(SERVER, 0, framegauge_packets::TcpFlags::ACK);
        } else {
            scene.ack(SERVER);
        }
        arrived.push(true);
        scene.pass(MS);
    }
    (scene, arrived)
}

/// What the two taps tell of the client's direction.
fn told(scene: &Scene, arrived: &[bool]) -> Option<LostSizes> {
    let mut joiner = Joiner::default();
    let taps = [0, 1].map(|file| joiner.tap(format!("h{}", file + 1), None, file, Place::Path));
    for (segment, arrived) in scene.segments.iter().zip(arrived) {
        joiner.take(taps[0], segment);
        let delay = if segment.source == scene.ends[CLIENT] { MS / 2 } else { -MS / 2 };
        let there = Segment { nanoseconds: segment.nanoseconds + delay, ..*segment };
        if *arrived {
            joiner.take(taps[1], &there);
        }
    }
    let joined = joiner.finish().expect("a connection at both taps");
    joined.connections[0].directions[0].hops[0].sizes
}

#[test]
fn all_above_a_size_were_lost_and_all_up_to_it_arrived() {
    let sizes = [LARGE, 500, LARGE, 300, LARGE, 700, LARGE, 200, 100];
    let (scene, arrived) = asked(&sizes, |turn, bytes| turn >= 4 && bytes > 1448);
    let found = told(&scene, &arrived).expect("sizes explain it");
    assert_eq!((found.lost_bytes, found.lost_packets), (LARGE, 6));
    assert_eq!((found.passed_bytes, found.passed_packets, found.before_bytes), (700, 3, LARGE));
}

#[test]
fn no_size_explains_what_was_lost_beside_as_large_ones_or_only_once() {
    let sizes = [LARGE, 500, LARGE, 300, LARGE, 700];
    // As large a one arrives last.
    let (scene, arrived) = asked(&[LARGE, 500, LARGE, 300, LARGE], |turn, _| turn == 2);
    assert_eq!(told(&scene, &arrived), None);
    let (scene, arrived) = asked(&sizes, |_, _| false);
    assert_eq!(told(&scene, &arrived), None);
}

proptest! {
    /// Whatever is lost, what is told parts it from what arrived.
    #[test]
    fn sizes_that_are_told_part_what_was_lost(
        turns in proptest::collection::vec((1u32..LARGE, any::<bool>()), 1..40),
        limit in 1u32..LARGE,
        by_size in any::<bool>(),
    ) {
        let sizes: Vec<u32> = turns.iter().map(|(bytes, _)| *bytes).collect();
        let (scene, arrived) = asked(&sizes, |turn, bytes| if by_size { bytes > limit } else { turns[turn].1 });
        if let Some(found) = told(&scene, &arrived) {
            prop_assert!(found.passed_bytes < found.lost_bytes);
            prop_assert!(!by_size || (found.passed_bytes <= limit && limit < found.lost_bytes));
            let since = scene.segments.iter().zip(&arrived).filter(|(segment, _)| {
                segment.source == scene.ends[CLIENT] && segment.nanoseconds as f64 / 1e9 >= found.since_seconds
            });
            for (segment, arrived) in since {
                prop_assert_eq!(*arrived, segment.payload_bytes < found.lost_bytes);
            }
        }
    }
}
