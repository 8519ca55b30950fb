//! What is drawn of a connection: every packet in its place, and no connection that was not asked for.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, diagnosis};
use framegauge_diagnosis::{Diagnosis, Table, Thresholds};
use serde_json::Value;

const RTT: i64 = 10 * MS;

fn drawn(scene: &Scene, connections: &[u64]) -> Diagnosis {
    let mut table = Table::new(Thresholds::default());
    table.draw(connections);
    scene.segments.iter().for_each(|segment| table.take(segment));
    table.finish()
}

/// A column with its differences added up.
fn column(picture: &Value, side: usize, kind: &str, name: &str) -> Vec<i64> {
    summed(&picture["directions"][side][kind][name])
}

fn summed(differences: &Value) -> Vec<i64> {
    let mut value = 0;
    let add = |each: &Value| {
        value += each.as_i64().expect("a number");
        value
    };
    differences.as_array().expect("a list").iter().map(add).collect()
}

/// Three segments, of which the second is lost, revealed by SACK, and lost again, so that only the timer repairs it.
fn lossy() -> Scene {
    let mut scene = Scene::met(RTT);
    let first = scene.data(CLIENT, MSS);
    let second = scene.data(CLIENT, MSS);
    let third = scene.data(CLIENT, MSS);
    scene.pass(RTT);
    scene.sack(SERVER, second, &[(third, third + MSS)]);
    scene.pass(230 * MS);
    scene.again(CLIENT, second, MSS);
    scene.pass(RTT);
    scene.ack(SERVER);
    assert_eq!(first, 1001);
    scene
}

fn picture(scene: &Scene) -> Value {
    let found = serde_json::to_value(drawn(scene, &[1])).expect("only words and numbers");
    found["pictures"][0].clone()
}

#[test]
fn every_segment_is_in_its_place() {
    let picture = picture(&lossy());
    let mss = i64::from(MSS);
    // SYN, three segments, the resend; sequence numbers count from the SYN.
    assert_eq!(column(&picture, CLIENT, "segments", "begin"), [0, 1, 1 + mss, 1 + 2 * mss, 1 + mss]);
    assert_eq!(column(&picture, CLIENT, "segments", "bytes"), [0, mss, mss, mss, mss]);
    assert_eq!(column(&picture, CLIENT, "segments", "number"), [1, 4, 5, 6, 8]);
    // 4: SYN, 1: sent again.
    assert_eq!(column(&picture, CLIENT, "segments", "flags"), [4, 0, 0, 0, 1]);
    let begin = RTT + 10_000;
    let times = column(&picture, CLIENT, "segments", "time");
    assert_eq!(times, [0, begin, begin, begin, begin + RTT + 230 * MS]);
    assert_eq!(picture["begin_seconds"], 0.0);
}

#[test]
fn acknowledgements_tell_their_windows_and_what_arrived_above_a_hole() {
    let picture = picture(&lossy());
    let mss = i64::from(MSS);
    // The SYN-ACK, then two.
    assert_eq!(column(&picture, CLIENT, "acks", "ack"), [1, 1 + mss, 1 + 3 * mss]);
    assert_eq!(column(&picture, CLIENT, "acks", "window"), [64_240, 512 << 7, 512 << 7]);
    assert_eq!(column(&picture, CLIENT, "acks", "number"), [2, 7, 9]);
    assert_eq!(column(&picture, CLIENT, "sacks", "begin"), [1 + 2 * mss]);
    assert_eq!(column(&picture, CLIENT, "sacks", "bytes"), [mss]);
    assert_eq!(column(&picture, CLIENT, "sacks", "duplicate"), [0]);
    assert_eq!(column(&picture, CLIENT, "flight", "value"), [mss, 2 * mss, 3 * mss, mss, 0]);
    // The first segment's; what was sent twice gives none (Karn).
    assert_eq!(column(&picture, CLIENT, "rtt", "value").last(), Some(&RTT));
}

#[test]
fn the_stretches_of_a_cause_add_up_to_what_was_lost() {
    let scene = lossy();
    let found = drawn(&scene, &[1]);
    let picture = picture(&scene);
    let stretches = picture["stretches"].as_array().expect("a list");
    let stall = stretches.iter().find(|each| each["kind"] == "rto_stall").expect("the timer ran out");
    assert_eq!(summed(&stall["begin"]), [2 * RTT + 10_000]);
    assert_eq!(summed(&stall["end"]), [2 * RTT + 10_000 + 230 * MS]);
    assert!((found.connections[0].time["rto_stall"] - 0.23).abs() < 1e-9);
}

#[test]
fn only_what_is_asked_for_is_drawn_and_nothing_else_changes() {
    let mut scene = lossy();
    let mut other = Scene::between("10.0.0.3:1000", "10.0.0.4:80");
    other.now = scene.now;
    other.meet(RTT);
    other.talk(5, RTT);
    let before = scene.segments.len() as u64;
    scene.segments.extend(other.segments.iter().map(|segment| {
        let mut segment = *segment;
        segment.number += before;
        segment
    }));
    let plain = diagnosis(&scene.segments);
    assert_eq!(plain.pictures, []);
    let mut found = drawn(&scene, &[2, 7]);
    assert_eq!(found.pictures.iter().map(|each| each.connection).collect::<Vec<_>>(), [2]);
    found.pictures.clear();
    assert_eq!(found, plain);
}

#[test]
fn a_d_sack_and_a_copy_of_the_capture_are_told_apart() {
    let mut scene = Scene::met(RTT);
    let first = scene.data(CLIENT, MSS);
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.again(CLIENT, first, MSS);
    scene.pass(RTT);
    scene.sack(SERVER, first + MSS, &[(first, first + MSS)]);
    let mut copy = *scene.segments.last().expect("just sent");
    (copy.number, copy.nanoseconds) = (copy.number + 1, copy.nanoseconds + 5_000);
    scene.segments.push(copy);
    let picture = picture(&scene);
    assert_eq!(column(&picture, CLIENT, "sacks", "duplicate"), [1]);
    assert_eq!(column(&picture, CLIENT, "acks", "number"), [2, 5, 7]);
}

/// Bounded, however long the connection is: what is joined counts as many as it stands for.
#[test]
fn a_long_connection_has_no_more_marks_than_there_is_room_for() {
    let mut scene = Scene::met(RTT);
    let count = 2 * framegauge_diagnosis::MOST_MARKS;
    for _ in 0..count / 4 {
        for _ in 0..4 {
            scene.data(CLIENT, 100);
        }
        scene.pass(RTT);
        scene.ack(SERVER);
        scene.pass(100_000);
    }
    let picture = picture(&scene);
    let counts = column(&picture, CLIENT, "segments", "count");
    assert!(counts.len() <= framegauge_diagnosis::MOST_MARKS);
    // With the SYN.
    assert_eq!(counts.iter().sum::<i64>(), count as i64 + 1);
    assert_eq!(picture["directions"][CLIENT]["left_out"], 0);
}
