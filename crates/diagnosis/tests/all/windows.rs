//! Congestion windows that became small after a loss or a pause, at a tap at the sender; times known to the nanosecond.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind};
use framegauge_packets::TcpFlags;
use proptest::prelude::*;

const RTT: i64 = 10 * MS;
const AT_ONCE: i64 = 10_000;

/// A scene with a window of 1 MiB.
fn wide() -> Scene {
    let mut scene = Scene::new();
    scene.window = [8192; 2];
    scene.meet(RTT);
    // The window of a SYN is not scaled.
    rounds(&mut scene, &[1]);
    scene
}

/// Rounds of so many segments each, every one after the acknowledgement of the one before. The last is not full: it ends
/// a write.
fn rounds(scene: &mut Scene, sizes: &[u32]) {
    for size in sizes {
        (1..*size).for_each(|_| _ = scene.data(CLIENT, MSS));
        scene.data(CLIENT, MSS - 60);
        scene.pass(RTT);
        scene.ack(SERVER);
        scene.pass(AT_ONCE);
    }
}

fn lost(found: &Diagnosis, kind: Kind) -> f64 {
    one(found, kind).lost_seconds
}

#[test]
fn after_a_pause_longer_than_the_timeout_the_window_is_small_again() {
    let mut scene = wide();
    rounds(&mut scene, &[60; 5]);
    for _ in 0..2 {
        scene.pass(400 * MS);
        rounds(&mut scene, &[10, 20, 40, 60, 60]);
    }
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::IdleRestart]);
    assert_eq!(one(&found, Kind::IdleRestart).count, 2);
    // Two rounds each; the third has more than half of what had been under way.
    assert!((lost(&found, Kind::IdleRestart) - 0.06).abs() < 0.021, "{}", lost(&found, Kind::IdleRestart));
}

#[test]
fn a_window_that_is_large_again_in_the_second_round_was_small_in_the_first() {
    let mut scene = wide();
    rounds(&mut scene, &[60; 5]);
    scene.pass(400 * MS);
    rounds(&mut scene, &[20, 40, 60, 60]);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::IdleRestart]);
}

/// A timeout leaves a window of one segment, a rest that of the beginning (RFC 5681 sections 3.1 and 4.1): what was lost before it
/// came here is no rest, whatever tells of it.
#[test]
fn a_window_of_one_segment_is_that_of_a_timeout() {
    for (first, is_restart) in [(1, false), (10, true)] {
        let mut scene = wide();
        rounds(&mut scene, &[60; 5]);
        scene.pass(400 * MS);
        rounds(&mut scene, &[first, 2 * first, 4 * first, 8 * first, 60]);
        assert_eq!(kinds(&scene.diagnosis()).contains(&Kind::IdleRestart), is_restart, "{first}");
    }
}

#[test]
fn an_application_that_is_asked_for_more_after_a_pause_is_no_restart() {
    let mut scene = wide();
    rounds(&mut scene, &[60; 5]);
    scene.pass(400 * MS);
    for size in [20, 40, 60, 60] {
        rounds(&mut scene, &[size]);
        scene.data(SERVER, 100);
        scene.got[CLIENT] = scene.next[SERVER];
    }
    assert_eq!(kinds(&scene.diagnosis()), []);
}

/// Windows of 128 bytes each: of as many segments, and some hundred bytes.
const TWENTY: u16 = 230;
const FORTY: u16 = 459;

/// Rounds of so many full segments, each within the window of the other end; then that is wide.
fn meeting_edge(steps: &[(u32, u16)]) -> Diagnosis {
    let mut scene = Scene::new();
    scene.window = [512, steps[0].1];
    scene.meet(RTT);
    rounds(&mut scene, &[1]);
    for (place, (size, _)) in steps.iter().enumerate() {
        (0..*size).for_each(|_| _ = scene.data(CLIENT, MSS));
        scene.pass(RTT);
        scene.window[SERVER] = steps.get(place + 1).map_or(8192, |(_, window)| *window);
        scene.ack(SERVER);
        scene.pass(AT_ONCE);
    }
    rounds(&mut scene, &[40; 3]);
    scene.diagnosis()
}

#[test]
fn where_both_windows_end_the_congestion_window_is_the_limit() {
    assert_eq!(kinds(&meeting_edge(&[(10, FORTY), (20, FORTY), (40, FORTY)])), []);
}

#[test]
fn a_flight_that_grew_by_less_than_its_congestion_window_ends_at_the_receivers() {
    for (steps, rounds) in [
        (vec![(10, FORTY), (30, FORTY), (40, FORTY)], 1.0),
        (vec![(10, FORTY), (20, FORTY), (40, FORTY), (40, FORTY)], 1.0),
        // What had been the limit before, and lets twice as much through now, is the limit.
        (vec![(20, TWENTY), (20, TWENTY), (40, FORTY)], 3.0),
    ] {
        let found = meeting_edge(&steps);
        assert_eq!(kinds(&found), [Kind::ReceiverLimited], "{steps:?}");
        assert!((lost(&found, Kind::ReceiverLimited) - rounds * 0.01).abs() < 0.001, "{:?}", found.findings);
    }
}

#[test]
fn a_window_that_stays_large_over_a_pause_is_no_restart() {
    let mut scene = wide();
    rounds(&mut scene, &[60; 5]);
    scene.pass(400 * MS);
    rounds(&mut scene, &[60; 5]);
    assert_eq!(kinds(&scene.diagnosis()), []);
}

#[test]
fn an_application_that_has_little_to_send_after_a_pause_is_no_restart() {
    let mut scene = wide();
    rounds(&mut scene, &[60; 5]);
    for _ in 0..5 {
        scene.pass(400 * MS);
        rounds(&mut scene, &[10]);
    }
    assert_eq!(kinds(&scene.diagnosis()), []);
}

#[test]
fn a_pause_shorter_than_the_timeout_is_no_restart() {
    let mut scene = wide();
    rounds(&mut scene, &[60; 5]);
    scene.pass(150 * MS);
    rounds(&mut scene, &[10, 20, 40, 60, 60]);
    assert!(!kinds(&scene.diagnosis()).contains(&Kind::IdleRestart));
}

/// Sixty segments under way of which the first is lost, repaired when SACK reveals it.
fn loss(scene: &mut Scene) {
    let begin = scene.data(CLIENT, MSS);
    (1..60).for_each(|_| _ = scene.data(CLIENT, MSS));
    scene.pass(RTT);
    for count in 1..=59 {
        scene.sack(SERVER, begin, &[(begin.wrapping_add(MSS), begin.wrapping_add(MSS * (count + 1)))]);
        if count == 3 {
            scene.again(CLIENT, begin, MSS);
        }
    }
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.pass(AT_ONCE);
}

#[test]
fn a_window_that_fell_to_a_fraction_after_a_loss() {
    let mut scene = wide();
    rounds(&mut scene, &[60; 5]);
    loss(&mut scene);
    rounds(&mut scene, &[4, 5, 6, 7, 8, 9, 10, 11]);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::FastRetransmit, Kind::CwndCollapse]);
    let time = lost(&found, Kind::CwndCollapse);
    assert!((time - 0.07).abs() < 0.011, "{time}");
}

#[test]
fn a_window_that_falls_by_a_third_is_no_collapse() {
    let mut scene = wide();
    rounds(&mut scene, &[60; 5]);
    loss(&mut scene);
    rounds(&mut scene, &[42, 43, 44, 45, 46]);
    assert_eq!(kinds(&scene.diagnosis()), [Kind::FastRetransmit]);
}

#[test]
fn an_application_that_had_little_left_after_a_loss_is_no_collapse() {
    let mut scene = wide();
    rounds(&mut scene, &[60; 5]);
    loss(&mut scene);
    for _ in 0..8 {
        scene.pass(50 * MS);
        rounds(&mut scene, &[4]);
    }
    assert_eq!(kinds(&scene.diagnosis()), [Kind::FastRetransmit]);
}

/// A file that begins behind the handshake, so that nothing tells the RTT at first. Each flight ends with a small segment, and
/// two acknowledgements answer it, the second for the rest.
#[test]
fn an_answer_after_an_rtt_of_40_ms_is_no_delayed_one_while_more_is_under_way() {
    let mut scene = wide();
    for _ in 0..8 {
        (0..7).for_each(|_| _ = scene.data(CLIENT, MSS));
        let half = scene.next[CLIENT].wrapping_sub(4 * MSS);
        scene.data(CLIENT, 300);
        scene.pass(40 * MS);
        scene.sack(SERVER, half, &[]);
        scene.pass(MS / 5);
        scene.ack(SERVER);
        scene.pass(AT_ONCE);
    }
    scene.segments.drain(..5);
    let time = &scene.diagnosis().connections[0].time;
    assert!(time["network_limited"] > 0.3 && time["application_limited"] < 0.001, "{time:?}");
}

#[test]
fn who_repeats_all_after_a_timeout_does_not_wait_for_room() {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    // Less than a segment of the window is left.
    let begins: Vec<u32> = (0..45).map(|_| scene.data(CLIENT, MSS)).collect();
    scene.pass(230 * MS);
    let (mut done, mut flight) = (0, 1);
    while done < begins.len() {
        let burst = &begins[done..begins.len().min(done + flight)];
        burst.iter().for_each(|begin| scene.again(CLIENT, *begin, MSS));
        (done, flight) = (done + burst.len(), flight * 2);
        scene.pass(RTT);
        scene.sack(SERVER, begins[done - 1].wrapping_add(MSS), &[]);
        scene.pass(10_000);
    }
    scene.talk(2, RTT);
    let found = scene.diagnosis();
    assert!(!found.connections[0].time.contains_key("receiver_limited"), "{:?}", found.connections[0].time);
}

/// Of twenty segments some are acknowledged, and the window is closed, or so small, although the others are under way; then it opens,
/// and after a silence these are sent again.
fn withdrawn(taken: u32, left: u16, shut: i64, silence: i64) -> Diagnosis {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    let begins: Vec<u32> = (0..20).map(|_| scene.data(CLIENT, MSS)).collect();
    scene.pass(RTT);
    let open = std::mem::replace(&mut scene.window[SERVER], left);
    scene.sack(SERVER, begins[taken as usize], &[]);
    scene.pass(shut);
    scene.window[SERVER] = open;
    scene.sack(SERVER, begins[taken as usize], &[]);
    scene.pass(silence);
    begins[taken as usize..].iter().for_each(|begin| scene.again(CLIENT, *begin, MSS));
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.talk(3, RTT);
    scene.diagnosis()
}

proptest! {
    /// What lies beyond a window that was taken back, its receiver may have discarded: nobody lost it (RFC 9293 section 3.8.6).
    #[test]
    fn a_window_that_was_taken_back_makes_no_losses(
        taken in 1u32..15, is_closed: bool, shut in 10 * MS..100 * MS, silence in 150 * MS..400 * MS
    ) {
        let found = withdrawn(taken, if is_closed { 0 } else { 8 }, shut, silence);
        let expected = if is_closed { Kind::ZeroWindow } else { Kind::ReceiverLimited };
        prop_assert!(kinds(&found).iter().all(|kind| *kind == expected), "{:#?}", found.findings);
        prop_assert!(one(&found, expected).lost_seconds >= silence as f64 / 1e9 - 1e-9);
    }
}

/// A window of less than a segment is left to a sender with more to send; its probe repeats what was acknowledged, without data.
#[test]
fn a_window_below_a_segment_is_the_limit_until_it_opens() {
    let starved = |left: u16, bytes: u32| {
        let mut scene = Scene::met(RTT);
        scene.talk(10, RTT);
        for _ in 0..5 {
            (0..4).for_each(|_| _ = scene.data(CLIENT, MSS));
            scene.send(CLIENT, bytes, TcpFlags::ACK);
            scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(bytes);
            scene.pass(RTT);
            let open = std::mem::replace(&mut scene.window[SERVER], left);
            scene.ack(SERVER);
            scene.pass(220 * MS);
            scene.next[CLIENT] = scene.next[CLIENT].wrapping_sub(1);
            scene.send(CLIENT, 0, TcpFlags::ACK);
            scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(1);
            scene.pass(RTT);
            scene.ack(SERVER);
            scene.pass(200 * MS);
            scene.window[SERVER] = open;
            scene.ack(SERVER);
            scene.pass(AT_ONCE);
        }
        scene.talk(1, RTT);
        scene.diagnosis()
    };
    let found = starved(2, MSS);
    assert_eq!(kinds(&found), [Kind::ReceiverLimited]);
    assert!(one(&found, Kind::ReceiverLimited).lost_seconds > 2.0, "{:#?}", found.findings);
    // Room for a segment, or nothing more to send.
    assert!(kinds(&starved(200, MSS)).is_empty());
    assert!(kinds(&starved(2, 700)).is_empty());
}

/// A link of a slowest rate with a queue before it: what overflows that is lost, and the window falls to what the link carries.
#[test]
fn a_window_that_still_fills_the_slowest_link_is_no_collapse() {
    let slow = |after: u32| {
        let mut scene = wide();
        rounds(&mut scene, &[8, 15, 30]);
        // Thirty segments take 3 RTTs of a link that carries ten in each.
        for _ in 0..3 {
            (0..30).for_each(|_| _ = scene.data(CLIENT, MSS));
            scene.pass(3 * RTT);
            scene.ack(SERVER);
            scene.pass(AT_ONCE);
        }
        loss(&mut scene);
        for _ in 0..8 {
            (0..after).for_each(|_| _ = scene.data(CLIENT, MSS));
            scene.pass(RTT);
            scene.ack(SERVER);
            scene.pass(AT_ONCE);
        }
        kinds(&scene.diagnosis())
    };
    assert!(!slow(10).contains(&Kind::CwndCollapse));
    assert!(slow(4).contains(&Kind::CwndCollapse));
}
