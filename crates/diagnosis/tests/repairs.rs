//! Why segments were sent again, at a tap at the sender: what is told of connections.

mod scene;

use framegauge_diagnosis::Reasons;
use scene::{CLIENT, MS, MSS, SERVER, Scene};

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
