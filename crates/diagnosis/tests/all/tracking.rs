//! Connection tracking that takes windows as they are written.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, kinds, one};
use framegauge_diagnosis::Kind;
use framegauge_packets::TcpFlags;
use proptest::prelude::*;

const RTT: i64 = 10 * MS;

/// A transfer by flights of so many segments, of which those arrive that `passes` lets pass: by how far each begins from what
/// was acknowledged, by the window as it is written, and by its place. What is lost is sent again after a timeout.
fn transfer(flights: u32, segments: u32, passes: impl Fn(u32, u32, u32) -> bool) -> Scene {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    let mut place = 0;
    for _ in 0..flights {
        let una = scene.next[CLIENT];
        let begins: Vec<u32> = (0..segments).map(|_| scene.data(CLIENT, MSS)).collect();
        let written = u32::from(scene.window[SERVER]);
        let lost: Vec<u32> = begins
            .into_iter()
            .filter(|begin| {
                place += 1;
                !passes(begin.wrapping_sub(una), written, place)
            })
            .collect();
        scene.pass(RTT);
        if let Some(first) = lost.first() {
            if *first != una {
                scene.got[SERVER] = *first;
                scene.send(SERVER, 0, TcpFlags::ACK);
            }
            for begin in lost {
                scene.pass(230 * MS);
                scene.again(CLIENT, begin, MSS);
                scene.pass(RTT);
                scene.got[SERVER] = begin.wrapping_add(MSS);
                scene.send(SERVER, 0, TcpFlags::ACK);
            }
        }
        scene.pass(MS);
        scene.ack(SERVER);
        scene.pass(MS);
    }
    scene
}

#[test]
fn what_begins_beyond_the_window_as_written_and_is_always_lost_was_dropped_by_tracking() {
    // The window of the SYN-ACK, which is never scaled, holds 45 segments.
    let found = transfer(20, 5, |offset, written, place| place <= 45 || offset <= written).diagnosis();
    assert_eq!(kinds(&found), [Kind::UnscaledWindow], "{found:#?}");
    let finding = one(&found, Kind::UnscaledWindow);
    assert!(finding.lost_seconds > 1.0 && finding.count >= 3, "{finding:#?}");
    assert!(finding.text.contains("without its scale"), "{}", finding.text);
}

#[test]
fn a_path_that_is_dead_or_has_no_room_is_not() {
    // Nothing arrives at first; every seventh is lost; the last of each flight.
    for passes in [
        |_, _, place| place > 50,
        |_, _, place: u32| !place.is_multiple_of(7),
        |_, _, place: u32| !place.is_multiple_of(5),
    ] {
        let passes: fn(u32, u32, u32) -> bool = passes;
        let found = transfer(20, 5, passes).diagnosis();
        assert!(!kinds(&found).contains(&Kind::UnscaledWindow), "{found:#?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Losses by chance are called so.
    #[test]
    fn chance_is_no_tracking(draws in proptest::collection::vec(0u8..10, 7..80), segments in 2u32..12) {
        prop_assume!(draws.iter().any(|draw| *draw > 0));
        let found = transfer(30, segments, |_, _, place| draws[place as usize % draws.len()] > 0).diagnosis();
        prop_assert!(!kinds(&found).contains(&Kind::UnscaledWindow), "{found:#?}");
    }
}
