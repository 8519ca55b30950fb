//! A path that was away for a while: no timer is to blame for how long a sender was silent.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, kinds, one};
use framegauge_diagnosis::{Finding, Kind};

const RTT: i64 = 20 * MS;
const FIRST: i64 = 220 * MS;

fn go_on(scene: &mut Scene, bursts: usize) {
    for _ in 0..bursts {
        (0..4).for_each(|_| _ = scene.data(CLIENT, MSS));
        scene.pass(RTT);
        scene.ack(SERVER);
        scene.pass(MS / 10);
    }
}

/// A flight of so many segments is lost, and so are all repeats by the timer but the last, each after twice the time.
/// `is_heard`: the other end repeats meanwhile what it had said.
fn away(scene: &mut Scene, segments: u32, repeats: u32, is_heard: bool) {
    let up_to = scene.next[CLIENT];
    let lost = (0..segments).map(|_| scene.data(CLIENT, MSS)).collect::<Vec<_>>();
    for repeat in 0..repeats {
        scene.pass((FIRST << repeat) / 2);
        if is_heard {
            scene.sack(SERVER, up_to, &[]);
        }
        scene.pass((FIRST << repeat) / 2);
        scene.again(CLIENT, lost[0], MSS);
    }
    scene.pass(RTT);
    for (place, begin) in lost.iter().enumerate().skip(1) {
        if place == 1 {
            scene.sack(SERVER, *begin, &[]);
        }
        scene.again(CLIENT, *begin, MSS);
    }
    scene.pass(if segments > 1 { RTT } else { 0 });
    scene.ack(SERVER);
    scene.pass(MS / 10);
}

fn stall(repeats: u32, is_heard: bool) -> Finding {
    let mut scene = Scene::met(RTT);
    go_on(&mut scene, 20);
    away(&mut scene, 4, repeats, is_heard);
    go_on(&mut scene, 20);
    one(&scene.diagnosis(), Kind::RtoStall)
}

fn blames_the_timer(finding: &Finding) -> bool {
    assert_eq!(finding.remedy.contains("rto_min"), !finding.text.contains("had been away"), "{finding:#?}");
    finding.remedy.contains("rto_min")
}

#[test]
fn repeats_in_a_row_without_an_answer_are_an_outage_and_no_fault_of_the_timer() {
    let found = stall(5, false);
    assert!(!blames_the_timer(&found));
    let words = "sent the same again 5 times in 6.8";
    assert!(found.text.contains(words) && !found.text.contains("more data was waiting"), "{found:#?}");
    // One that is lost may be so by chance, and who is heard meanwhile is not away.
    assert!(blames_the_timer(&stall(2, false)));
    assert!(blames_the_timer(&stall(5, true)));
}

#[test]
fn a_request_alone_that_was_sent_again_says_nothing_of_more_that_waited() {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    away(&mut scene, 1, 4, false);
    scene.data(SERVER, 800);
    scene.pass(MS / 10);
    scene.ack(CLIENT);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::RtoStall]);
    assert!(!blames_the_timer(&one(&found, Kind::RtoStall)));
}

#[test]
fn of_many_silences_the_outage_is_told_where_most_of_the_time_was_its_own() {
    for (short, is_outage) in [(2, true), (60, false)] {
        let mut scene = Scene::met(RTT);
        for _ in 0..short {
            go_on(&mut scene, 10);
            away(&mut scene, 4, 1, false);
        }
        go_on(&mut scene, 10);
        away(&mut scene, 4, 4, false);
        go_on(&mut scene, 10);
        let found = one(&scene.diagnosis(), Kind::RtoStall);
        assert_eq!(blames_the_timer(&found), !is_outage);
        assert_eq!(found.text.contains("In the longest of them it sent the same again 4 times"), is_outage);
    }
}
