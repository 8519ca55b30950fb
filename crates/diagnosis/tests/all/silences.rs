//! Silences as their senders knew them, at taps that lie between the ends: what had not come to a sender ends none of its
//! silences, and what an end asks for again may have been answered.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, kinds, one};
use framegauge_diagnosis::Kind;
use framegauge_packets::TcpFlags;

const RTT: i64 = 10 * MS;

/// A tap beside the server, after so many bursts that arrive and are acknowledged.
fn beside_server(bursts: usize) -> Scene {
    let mut scene = Scene::new();
    scene.meet_at_server(RTT);
    go_on(&mut scene, bursts);
    scene
}

fn go_on(scene: &mut Scene, bursts: usize) {
    for _ in 0..bursts {
        (0..3).for_each(|_| _ = scene.data(CLIENT, MSS));
        scene.pass(20_000);
        scene.ack(SERVER);
        scene.pass(RTT);
    }
}

/// The timestamp of the newest segment.
fn stamp(scene: &Scene) -> u32 {
    scene.segments.last().and_then(|last| last.timestamps).map_or(0, |(value, _)| value)
}

/// The newest segment echoes a timestamp.
fn echo(scene: &mut Scene, echoed: u32) {
    let last = scene.segments.last_mut().expect("just sent");
    last.timestamps = last.timestamps.map(|(value, _)| (value, echoed));
}

/// The last of three segments is lost behind the tap, and repeated when the delayed acknowledgement of those before it is still
/// on its way: so long after them.
fn repeated_before_the_answer_comes(first: i64, then: i64) -> Scene {
    let mut scene = beside_server(20);
    let heard = stamp(&scene);
    (0..2).for_each(|_| _ = scene.data(CLIENT, MSS));
    let lost = scene.data(CLIENT, 286);
    scene.pass(first);
    scene.sack(SERVER, lost, &[]);
    scene.pass(then);
    scene.again(CLIENT, lost, 286);
    if then < RTT {
        echo(&mut scene, heard);
    }
    scene.pass(20_000);
    scene.ack(SERVER);
    scene.pass(RTT + 50 * MS);
    go_on(&mut scene, 5);
    scene
}

#[test]
fn an_answer_that_its_sender_had_not_heard_of_ends_no_silence() {
    // The first is a pause by itself or none.
    for (first, then) in [(16, 8), (40, 8), (25, 3)] {
        let found = repeated_before_the_answer_comes(first * MS, then * MS).diagnosis();
        assert_eq!(kinds(&found), [Kind::TailLoss], "{first} {then}");
        let lost = one(&found, Kind::TailLoss).lost_seconds;
        assert!((lost - (first + then) as f64 / 1e3).abs() < 1e-6, "{first} {then} {lost}");
    }
}

#[test]
fn one_that_it_had_heard_of_does() {
    let found = repeated_before_the_answer_comes(40 * MS, RTT + 30 * MS).diagnosis();
    assert!((one(&found, Kind::TailLoss).lost_seconds - 0.03).abs() < 0.011, "{found:#?}");
}

/// What follows is what a timer repeats, in small segments.
#[test]
fn what_is_sent_again_was_not_held_by_nagle() {
    for is_again in [true, false] {
        let mut scene = Scene::met(RTT);
        scene.talk(5, RTT);
        let mut place = scene.next[CLIENT];
        if is_again {
            (0..5).for_each(|_| _ = scene.data(CLIENT, MSS));
            scene.pass(250 * MS);
        }
        for _ in 0..6 {
            if is_again {
                scene.again(CLIENT, place, 700);
            } else {
                scene.data(CLIENT, 700);
            }
            place = place.wrapping_add(700);
            scene.pass(RTT + 40 * MS);
            scene.sack(SERVER, place, &[]);
        }
        let found = kinds(&scene.diagnosis());
        assert_eq!(found.contains(&Kind::NagleDelayedAck), !is_again, "{found:?}");
    }
}

/// A program writes a little now and then, also while the last that it wrote is under way: nothing is held back (RFC 896), and what
/// comes when an answer to an acknowledgement would come is a coincidence.
#[test]
fn who_sends_small_segments_behind_others_holds_nothing_back() {
    for is_open in [false, true] {
        let mut scene = Scene::new();
        scene.meet_at_server(40 * MS);
        for _ in 0..10 {
            if is_open {
                scene.data(CLIENT, 700);
                scene.pass(5 * MS);
                scene.data(CLIENT, 100);
                scene.ack(SERVER);
                scene.pass(60 * MS);
            }
            scene.data(CLIENT, 700);
            scene.pass(41 * MS);
            scene.ack(SERVER);
            scene.pass(41 * MS);
        }
        let found = kinds(&scene.diagnosis());
        assert_eq!(found.contains(&Kind::NagleDelayedAck), !is_open, "{found:?}");
    }
}

/// A program writes a little every 70 ms, to a receiver that delays its acknowledgements: what comes so long after these did not
/// wait for them, however far away the tap is.
#[test]
fn what_comes_long_after_an_acknowledgement_or_sooner_than_it_can_did_not_wait_for_it() {
    for (rest, waited) in [(41, true), (50, false), (15, false), (5, false)] {
        let mut scene = Scene::new();
        scene.meet_at_server(40 * MS);
        for _ in 0..10 {
            scene.data(CLIENT, 700);
            scene.pass(41 * MS);
            scene.ack(SERVER);
            scene.pass(rest * MS);
        }
        let found = kinds(&scene.diagnosis());
        assert_eq!(found.contains(&Kind::NagleDelayedAck), waited, "{rest} {found:?}");
    }
}

/// How a lost answer shows at a tap beside the end that asks for it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shown {
    /// Numbers are missing before its repeat.
    Numbers,
    /// What says that the question came twice lies behind it (D-SACK), and echoes the first question or the second.
    Sequence { second: bool },
    /// By nothing: it may as well have been late.
    Not,
}

fn answer_lost(shown: Shown) -> Scene {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    scene.ack(SERVER);
    let question = scene.data(CLIENT, 100);
    let asked = stamp(&scene);
    scene.pass(212 * MS);
    scene.again(CLIENT, question, 100);
    let asked_again = stamp(&scene);
    scene.pass(RTT);
    if let Shown::Sequence { second } = shown {
        scene.segments.iter_mut().for_each(|segment| segment.identification = None);
        scene.next[SERVER] = scene.next[SERVER].wrapping_add(1000);
        scene.sack(SERVER, scene.next[CLIENT], &[(question, question.wrapping_add(100))]);
        scene.next[SERVER] = scene.next[SERVER].wrapping_sub(1000);
        echo(&mut scene, if second { asked_again } else { asked });
        scene.pass(MS);
    }
    scene.identification[SERVER] += u16::from(shown == Shown::Numbers);
    scene.got[SERVER] = scene.next[CLIENT];
    scene.data(SERVER, 1000);
    echo(&mut scene, asked);
    scene.pass(20_000);
    scene.ack(CLIENT);
    scene.pass(100 * MS);
    scene.talk(5, RTT);
    if let Shown::Sequence { .. } = shown {
        scene.segments.iter_mut().for_each(|segment| segment.identification = None);
    }
    scene
}

#[test]
fn a_question_that_was_answered_and_is_asked_again_shows_that_the_answer_was_lost() {
    for shown in
        [Shown::Numbers, Shown::Sequence { second: false }, Shown::Sequence { second: true }, Shown::Not]
    {
        let found = answer_lost(shown).diagnosis();
        let lost =
            |kind| found.findings.iter().find(|each| each.kind == kind).map_or(0.0, |each| each.lost_seconds);
        let kind = if shown == Shown::Not { Kind::SpuriousRetransmit } else { Kind::TailLoss };
        assert!((lost(kind) - 0.212).abs() < 0.001, "{shown:?} {:#?}", found.findings);
        let other = if shown == Shown::Not { Kind::TailLoss } else { Kind::SpuriousRetransmit };
        assert_eq!(lost(other), 0.0, "{shown:?}");
    }
}

/// A flight is lost before the tap, and so are a probe and a repeat by the timer, so that more numbers are missing than segments.
/// The timer's second repeat comes, and what follows it at once.
#[test]
fn copies_that_were_lost_do_not_hide_that_more_was_waiting() {
    for copies in [0, 2, 5] {
        let mut scene = beside_server(20);
        let lost = scene.next[CLIENT];
        scene.identification[CLIENT] += 10 + copies;
        scene.pass(640 * MS);
        scene.data(CLIENT, MSS);
        scene.pass(20_000);
        scene.ack(SERVER);
        scene.pass(RTT);
        let high = lost.wrapping_add(10 * MSS);
        scene.next[CLIENT] = high;
        scene.data(CLIENT, MSS);
        scene.pass(20_000);
        let mut place = lost.wrapping_add(MSS);
        scene.sack(SERVER, place, &[(high, high.wrapping_add(MSS))]);
        while place != high {
            scene.pass(RTT);
            scene.again(CLIENT, place, MSS);
            place = place.wrapping_add(MSS);
            scene.pass(20_000);
            scene.sack(SERVER, place, &[(high, high.wrapping_add(MSS))]);
        }
        scene.ack(SERVER);
        scene.pass(RTT + 300 * MS);
        go_on(&mut scene, 5);
        let found = scene.diagnosis();
        assert!((one(&found, Kind::RtoStall).lost_seconds - 0.64).abs() < 0.001, "{copies} {found:#?}");
    }
}

/// Of a sender that had more to send, the first after a pause lies behind what was lost before the tap.
#[test]
fn a_sender_that_had_more_did_not_rest_before_a_hole() {
    for had_more in [true, false] {
        let mut scene = beside_server(20);
        scene.send(CLIENT, MSS, if had_more { TcpFlags::ACK } else { TcpFlags::ACK.with(TcpFlags::PSH) });
        scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(MSS);
        scene.pass(20_000);
        scene.ack(SERVER);
        let lost = scene.next[CLIENT];
        scene.identification[CLIENT] += 2;
        scene.next[CLIENT] = lost.wrapping_add(2 * MSS);
        scene.pass(60 * MS);
        let probe = scene.data(CLIENT, MSS);
        scene.pass(20_000);
        scene.sack(SERVER, lost, &[(probe, probe.wrapping_add(MSS))]);
        for place in [lost, lost.wrapping_add(MSS)] {
            scene.pass(RTT);
            scene.again(CLIENT, place, MSS);
            scene.pass(20_000);
            scene.sack(SERVER, place.wrapping_add(MSS), &[(probe, probe.wrapping_add(MSS))]);
        }
        scene.ack(SERVER);
        scene.pass(RTT);
        go_on(&mut scene, 20);
        let found = kinds(&scene.diagnosis());
        assert_eq!(found.contains(&Kind::TailLoss), had_more, "{found:?}");
        assert!(!found.contains(&Kind::Unexplained), "{found:?}");
    }
}

/// As many numbers are missing as segments, again and again: the sender counts, however much is lost.
#[test]
fn numbers_that_are_missing_with_their_segments_are_no_other_connections() {
    let mut scene = beside_server(4);
    for _ in 0..12 {
        let lost = scene.next[CLIENT];
        scene.identification[CLIENT] += 1;
        scene.next[CLIENT] = lost.wrapping_add(MSS);
        let behind = scene.data(CLIENT, MSS);
        scene.pass(20_000);
        scene.sack(SERVER, lost, &[(behind, behind.wrapping_add(MSS))]);
        scene.pass(RTT);
        scene.again(CLIENT, lost, MSS);
        scene.pass(20_000);
        scene.ack(SERVER);
        scene.pass(RTT);
    }
    // A flight that is lost as a whole shows by its numbers alone.
    scene.identification[CLIENT] += 10;
    scene.pass(210 * MS);
    go_on(&mut scene, 8);
    let found = scene.diagnosis();
    assert!((one(&found, Kind::RtoStall).lost_seconds - 0.21).abs() < 0.002, "{found:#?}");
}

/// A probe repeats the last of four segments; what comes at last answers those before it, by the echo of what was sent first. The
/// probe is answered by an echo of the first copy or of its own, or all is repeated by a timer.
#[test]
fn an_answer_to_what_lies_before_a_probe_does_not_tell_whether_it_was_needless() {
    for (echoed, is_needless) in [(Some(0), true), (Some(1), false), (None, false)] {
        let mut scene = Scene::met(RTT);
        scene.talk(20, RTT);
        let begins: Vec<u32> = (0..4).map(|_| scene.data(CLIENT, MSS)).collect();
        let first = stamp(&scene);
        scene.pass(25 * MS);
        scene.again(CLIENT, begins[3], MSS);
        let stamps = [first, stamp(&scene)];
        scene.pass(2 * MS);
        scene.sack(SERVER, begins[2], &[]);
        echo(&mut scene, first);
        scene.pass(10 * MS);
        if echoed.is_none() {
            scene.pass(230 * MS);
            begins[2..].iter().for_each(|begin| scene.again(CLIENT, *begin, MSS));
            scene.pass(RTT);
        }
        let answered = echoed.map_or(stamp(&scene), |which: usize| stamps[which]);
        scene.ack(SERVER);
        echo(&mut scene, answered);
        scene.pass(300 * MS);
        scene.talk(5, RTT);
        let found = kinds(&scene.diagnosis());
        assert_eq!(found.contains(&Kind::SpuriousRetransmit), is_needless, "{echoed:?} {found:?}");
        assert_eq!(found.contains(&Kind::TailLoss), !is_needless, "{echoed:?} {found:?}");
    }
}

/// A client whose segment is sent again five times in vain. Then comes a segment of this end, so long after the last of them:
/// a reset, or one that acknowledges nothing new. What is found, and the time of the silence.
fn in_vain_until(end: usize, flags: TcpFlags, after: i64) -> (Vec<Kind>, f64) {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    let begin = scene.data(CLIENT, 300);
    for turn in 0..5 {
        scene.pass((210 * MS) << turn);
        scene.again(CLIENT, begin, 300);
    }
    scene.pass(after);
    scene.send(end, 0, flags);
    let found = scene.diagnosis();
    (kinds(&found), one(&found, Kind::RtoStall).lost_seconds)
}

#[test]
fn what_answers_nothing_ends_no_silence() {
    const WAITED: f64 = 31.0 * 0.21;
    let reset = TcpFlags::RST.with(TcpFlags::ACK);
    for (end, flags, kinds) in [
        (SERVER, reset, &[Kind::RtoStall, Kind::Reset][..]),
        (CLIENT, reset, &[Kind::RtoStall, Kind::Reset]),
        // It asks whether the other end lives.
        (SERVER, TcpFlags::ACK, &[Kind::RtoStall]),
    ] {
        let (named, lost) = in_vain_until(end, flags, 5_000 * MS);
        assert_eq!(named, kinds, "{end} {flags:?}");
        assert!((lost - WAITED - 5.0).abs() < 0.001, "{end} {flags:?}: {lost}");
    }
}
