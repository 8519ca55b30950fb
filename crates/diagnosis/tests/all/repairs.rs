//! Why segments were sent again, at a tap at the sender: what is told of connections.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, kinds};
use framegauge_diagnosis::{Kind, Reasons};

const RTT: i64 = 10 * MS;

fn reasons(scene: &Scene) -> Reasons {
    scene.diagnosis().connections[0].resends[CLIENT]
}

/// After some exchanges, by which the sender knows the RTT: so many segments.
fn burst(scene: &mut Scene, count: u32) -> Vec<u32> {
    scene.talk(5, RTT);
    (0..count).map(|_| scene.data(CLIENT, MSS)).collect()
}

/// The receiver has all from the second on.
fn reveal(scene: &mut Scene, begins: &[u32]) {
    scene.pass(RTT);
    scene.sack(SERVER, begins[0], &[(begins[1], scene.next[CLIENT])]);
}

#[test]
fn a_repair_that_sack_asks_for_is_fast() {
    let mut scene = Scene::met(RTT);
    let begins = burst(&mut scene, 5);
    reveal(&mut scene, &begins);
    scene.pass(RTT / 4);
    scene.again(CLIENT, begins[0], MSS);
    scene.pass(RTT);
    scene.ack(SERVER);
    assert_eq!(reasons(&scene), Reasons { fast: 1, ..Reasons::default() });
}

#[test]
fn a_repair_that_is_lost_waits_for_the_timer() {
    let mut scene = Scene::met(RTT);
    let begins = burst(&mut scene, 5);
    reveal(&mut scene, &begins);
    scene.again(CLIENT, begins[0], MSS);
    scene.pass(230 * MS);
    scene.again(CLIENT, begins[0], MSS);
    scene.pass(RTT);
    scene.ack(SERVER);
    assert_eq!(reasons(&scene), Reasons { fast: 1, timeout: 1, ..Reasons::default() });
}

#[test]
fn a_lost_flight_is_sent_again_by_the_timeout_of_its_first_segment() {
    let mut scene = Scene::met(RTT);
    let begins = burst(&mut scene, 5);
    scene.pass(230 * MS);
    for begin in begins {
        scene.again(CLIENT, begin, MSS);
        scene.pass(RTT);
        scene.sack(SERVER, begin.wrapping_add(MSS), &[]);
    }
    assert_eq!(reasons(&scene), Reasons { timeout: 5, ..Reasons::default() });
}

#[test]
fn the_last_segment_is_a_probe_and_what_it_reveals_is_fast() {
    let mut scene = Scene::met(RTT);
    let begins = burst(&mut scene, 5);
    scene.pass(22 * MS);
    scene.again(CLIENT, begins[4], MSS);
    scene.pass(RTT);
    scene.sack(SERVER, begins[0], &[(begins[4], scene.next[CLIENT])]);
    for begin in &begins[..4] {
        scene.again(CLIENT, *begin, MSS);
    }
    scene.pass(RTT);
    scene.ack(SERVER);
    assert_eq!(reasons(&scene), Reasons { probe: 1, fast: 4, ..Reasons::default() });
}

#[test]
fn of_the_only_segment_it_is_not_claimed() {
    let mut scene = Scene::met(RTT);
    let begins = burst(&mut scene, 1);
    scene.pass(210 * MS);
    scene.again(CLIENT, begins[0], MSS);
    scene.pass(RTT);
    scene.ack(SERVER);
    assert_eq!(reasons(&scene), Reasons { unclear: 1, ..Reasons::default() });
}

/// A flight whose answers are late: a timeout, then what was sent first is acknowledged, and a real loss is revealed.
fn taken_back(scene: &mut Scene, answer: impl Fn(&mut Scene, &[u32])) -> Reasons {
    let begins = burst(scene, 5);
    scene.pass(230 * MS);
    scene.again(CLIENT, begins[0], MSS);
    scene.pass(MS);
    answer(scene, &begins);
    scene.again(CLIENT, begins[1], MSS);
    scene.pass(RTT);
    scene.ack(SERVER);
    reasons(scene)
}

#[test]
fn a_timeout_that_the_echo_of_an_older_timestamp_takes_back_makes_no_more_timeouts() {
    let mut scene = Scene::met(RTT);
    let told = taken_back(&mut scene, |scene, begins| {
        scene.sack(SERVER, begins[1], &[(begins[2], scene.next[CLIENT])]);
        let old = ((scene.now - 230 * MS) / MS) as u32;
        scene.segments.last_mut().expect("just sent").timestamps = Some((1, old));
    });
    assert_eq!(told, Reasons { timeout: 1, fast: 1, ..Reasons::default() });
}

#[test]
fn a_timeout_that_repeated_what_had_arrived_makes_no_more_timeouts() {
    let mut scene = Scene::met(RTT);
    let told = taken_back(&mut scene, |scene, begins| {
        let copy = (begins[0], begins[1]);
        scene.sack(SERVER, begins[1], &[copy, (begins[2], scene.next[CLIENT])]);
        let now = (scene.now / MS) as u32;
        scene.segments.last_mut().expect("just sent").timestamps = Some((1, now));
    });
    assert_eq!(told, Reasons { timeout: 1, fast: 1, ..Reasons::default() });
}

#[test]
fn a_timeout_of_what_was_lost_is_the_reason_of_all_that_follows_it() {
    let mut scene = Scene::met(RTT);
    let told = taken_back(&mut scene, |scene, begins| {
        scene.sack(SERVER, begins[1], &[(begins[2], scene.next[CLIENT])]);
        let now = (scene.now / MS) as u32;
        scene.segments.last_mut().expect("just sent").timestamps = Some((1, now));
    });
    assert_eq!(told, Reasons { timeout: 2, ..Reasons::default() });
}

/// Ten segments of 1,000 bytes, of which the fourth has another size and is lost; SACK asks for it, and it is sent again in pieces of
/// these sizes.
fn lost_among_others(bytes: u32, pieces: &[u32]) -> Vec<Kind> {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    for count in [0, 1] {
        let mut begins = [0; 10];
        for place in 0..10u32 {
            begins[place as usize] = scene.data(CLIENT, if (place, count) == (3, 1) { bytes } else { 1000 });
        }
        scene.pass(RTT);
        if count == 1 {
            for last in begins[4..].iter().map(|begin| begin.wrapping_add(1000)) {
                scene.sack(SERVER, begins[3], &[(begins[4], last)]);
                scene.pass(20_000);
            }
            let mut begin = begins[3];
            for piece in pieces {
                scene.again(CLIENT, begin, *piece);
                begin = begin.wrapping_add(*piece);
            }
            scene.pass(RTT);
        }
        scene.ack(SERVER);
        scene.pass(RTT);
    }
    scene.talk(3, RTT);
    kinds(&scene.diagnosis())
}

#[test]
fn a_lost_probe_for_a_larger_size_is_no_loss_to_look_for() {
    assert_eq!(lost_among_others(1400, &[1000, 400]), []);
    assert_eq!(lost_among_others(1400, &[1400]), [Kind::FastRetransmit]);
    assert_eq!(lost_among_others(1000, &[1000]), [Kind::FastRetransmit]);
    assert_eq!(lost_among_others(1000, &[600, 400]), [Kind::FastRetransmit]);
}

/// A file that begins in the middle of a transfer, beside the receiver: nothing tells the RTT, and a repair takes one.
#[test]
fn a_repair_after_an_rtt_that_nobody_knows_is_fast() {
    let repaired = |after: i64| {
        let mut scene = Scene::new();
        for _ in 0..20 {
            scene.data(CLIENT, MSS);
            scene.pass(10_000);
            scene.ack(SERVER);
            scene.pass(10_000);
        }
        let begin = scene.next[CLIENT];
        scene.next[CLIENT] = begin.wrapping_add(MSS);
        scene.identification[CLIENT] += 1;
        for count in 2..=8 {
            scene.data(CLIENT, MSS);
            scene.sack(SERVER, begin, &[(begin.wrapping_add(MSS), begin.wrapping_add(MSS * count))]);
            scene.pass(10_000);
        }
        scene.pass(after);
        scene.again(CLIENT, begin, MSS);
        scene.ack(SERVER);
        scene.pass(30 * MS);
        for _ in 0..20 {
            scene.data(CLIENT, MSS);
            scene.pass(10_000);
            scene.ack(SERVER);
        }
        kinds(&scene.diagnosis())
    };
    assert_eq!(repaired(28 * MS), [Kind::FastRetransmit]);
    assert!(repaired(260 * MS).contains(&Kind::RtoStall));
}

/// Nothing of the receiver is in the file: what is sent again behind many segments may be asked for, and the last ones may not.
#[test]
fn a_repair_that_nobody_is_heard_asking_for_is_no_timeout() {
    let repaired = |place: u32, after: i64| {
        let mut scene = Scene::new();
        for turn in 0..12 {
            let begins: Vec<u32> = (0..20).map(|_| scene.data(SERVER, MSS)).collect();
            scene.pass(28 * MS);
            if turn % 4 == 1 {
                scene.pass(after);
                scene.again(SERVER, begins[place as usize], MSS);
            }
        }
        let found = scene.diagnosis();
        kinds(&found).into_iter().filter(|kind| *kind != Kind::HalfCapture).collect::<Vec<_>>()
    };
    assert!(repaired(2, 0).is_empty() && repaired(18, 0).is_empty());
    assert!(!repaired(2, 230 * MS).is_empty() && !repaired(19, 30 * MS).is_empty());
}

/// The first segment of a flight is lost before the tap, in half a file: the rest before it may have been an RTT.
#[test]
fn half_a_file_tells_no_lost_tail_before_a_flight_whose_first_is_missing() {
    let missing = |rest: i64| {
        let mut scene = Scene::new();
        for turn in 0..12 {
            scene.identification[SERVER] += u16::from(turn == 6);
            scene.next[SERVER] = scene.next[SERVER].wrapping_add(if turn == 6 { MSS } else { 0 });
            for _ in 0..20 {
                scene.data(SERVER, MSS);
                scene.pass(12_000);
            }
            scene.pass(rest);
            if turn == 6 {
                scene.again(SERVER, scene.next[SERVER].wrapping_sub(21 * MSS), MSS);
            }
        }
        kinds(&scene.diagnosis())
    };
    assert_eq!(missing(28 * MS), [Kind::HalfCapture]);
}
