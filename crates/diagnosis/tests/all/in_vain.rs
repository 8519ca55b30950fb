//! Data that its sender repeats in vain while the other end goes on talking: that end's application has nothing to do with it.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind};
use framegauge_packets::TcpFlags;
use proptest::prelude::*;

const RTT: i64 = 20 * MS;

/// At the client: five segments that are lost, and repeated by the timer after so long, and twice as long each time, the last time
/// with success. The server says something of its own at these times, which the client acknowledges, and once ends its own way.
fn talked_into(first: i64, repeats: u32, said: &[i64], fin: bool) -> (Diagnosis, f64) {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    let (begin, start) = (scene.next[CLIENT], scene.now);
    (0..5).for_each(|_| _ = scene.data(CLIENT, MSS));
    let mut due = Vec::new();
    let mut at = start;
    for turn in 0..repeats {
        at += first << turn;
        due.push(at);
    }
    let mut said: Vec<i64> = said.iter().map(|after| start + after).filter(|when| *when < at).collect();
    said.sort_unstable();
    let last = said.last().copied();
    while let Some(next) = due.iter().chain(&said).min().copied() {
        scene.now = scene.now.max(next);
        if said.first() == Some(&next) {
            said.remove(0);
            match fin && Some(next) == last {
                true => {
                    scene.send(SERVER, 0, TcpFlags::ACK.with(TcpFlags::FIN));
                    scene.next[SERVER] = scene.next[SERVER].wrapping_add(1);
                }
                false => _ = scene.data(SERVER, 24),
            }
            scene.pass(10_000);
            scene.ack(CLIENT);
        } else {
            due.remove(0);
            scene.again(CLIENT, begin, MSS);
        }
    }
    let waited = (scene.now - start) as f64 / 1e9;
    scene.pass(RTT);
    scene.sack(SERVER, begin.wrapping_add(MSS), &[]);
    for place in 1..5 {
        scene.again(CLIENT, begin.wrapping_add(place * MSS), MSS);
    }
    scene.pass(RTT);
    scene.ack(SERVER);
    (scene.diagnosis(), waited)
}

#[test]
fn what_the_other_end_says_of_its_own_ends_no_silence() {
    let said: Vec<i64> = (0..20).map(|turn| (700 + 900 * turn) * MS).collect();
    for fin in [false, true] {
        let (found, waited) = talked_into(1_000 * MS, 4, &said, fin);
        assert_eq!(kinds(&found), [Kind::RtoStall], "{found:#?}");
        assert!((one(&found, Kind::RtoStall).lost_seconds - waited).abs() < 0.5, "{waited} {found:#?}");
    }
}

#[test]
fn an_acknowledgement_that_repeats_what_it_had_said_answers_nothing() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    let begin = scene.data(CLIENT, MSS);
    let small = scene.data(CLIENT, 100);
    let block = (small, small.wrapping_add(100));
    scene.pass(RTT);
    scene.sack(SERVER, begin, &[block]);
    for turn in 0..4 {
        scene.pass((210 << turn) * MS);
        scene.again(CLIENT, begin, MSS);
    }
    // The other end asks whether this one lives.
    scene.pass(2_000 * MS);
    scene.sack(SERVER, begin, &[block]);
    scene.pass(1_300 * MS);
    scene.again(CLIENT, begin, MSS);
    let found = scene.diagnosis();
    let lost = one(&found, Kind::PmtuBlackHole).lost_seconds;
    assert!((lost - 6.45).abs() < 0.1, "{found:#?}");
}

proptest! {
    /// Whenever the other end speaks, the time is that of the data that was lost.
    #[test]
    fn a_silence_is_as_long_as_its_timers(
        first in 210i64..1_100,
        repeats in 1u32..5,
        said in proptest::collection::vec(60i64..9_000, 0..12),
        fin: bool,
    ) {
        let said: Vec<i64> = said.into_iter().map(|at| at * MS).collect();
        let (found, waited) = talked_into(first * MS, repeats, &said, fin);
        let time = &found.connections[0].time;
        let lost: f64 = ["rto_stall", "tail_loss"].iter().filter_map(|kind| time.get(kind)).sum();
        // Until an acknowledgement of what the other end says has come there, it is on its way.
        prop_assert!(lost <= waited + 0.05 && lost >= waited - 0.05 - 0.05 * said.len() as f64, "{waited} {found:#?}");
    }
}
