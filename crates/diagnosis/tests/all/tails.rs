//! What a probe of a tail ends is no timeout (RFC 8985 section 7): a timer sends the oldest segment, a probe the newest.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind};
use framegauge_packets::TcpFlags;
use proptest::prelude::*;

const RTT: i64 = 10 * MS;

/// The client goes on when what it repeated was acknowledged: more had been waiting.
fn go_on(scene: &mut Scene) {
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.pass(10_000);
    (0..2).for_each(|_| _ = scene.data(CLIENT, MSS));
    scene.pass(RTT);
    scene.ack(SERVER);
}

/// The last two of four segments are lost. After a silence one of them is repeated; SACK then asks for the other.
fn lost_tail(is_probed: bool, wait: i64) -> Scene {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    let begins: Vec<u32> = (0..4).map(|_| scene.data(CLIENT, MSS)).collect();
    scene.pass(wait);
    if is_probed {
        scene.again(CLIENT, begins[3], MSS);
        scene.pass(RTT);
        scene.sack(SERVER, begins[2], &[(begins[3], begins[3].wrapping_add(MSS))]);
        scene.pass(MS / 10);
        scene.again(CLIENT, begins[2], MSS);
    } else {
        begins.iter().for_each(|begin| scene.again(CLIENT, *begin, MSS));
    }
    go_on(&mut scene);
    scene
}

#[test]
fn a_probe_after_which_sack_asks_for_the_rest_is_no_timeout_though_more_was_waiting() {
    let found = lost_tail(true, 25 * MS).diagnosis();
    assert_eq!(kinds(&found), [Kind::TailLoss, Kind::FastRetransmit]);
    assert!((one(&found, Kind::TailLoss).lost_seconds - 0.025).abs() < 1e-9);
}

#[test]
fn the_oldest_that_is_repeated_after_a_silence_is_a_timeout() {
    assert_eq!(kinds(&lost_tail(false, 230 * MS).diagnosis()), [Kind::RtoStall]);
}

#[test]
fn a_timeout_after_a_probe_that_was_lost_is_a_timeout() {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    let begins: Vec<u32> = (0..4).map(|_| scene.data(CLIENT, MSS)).collect();
    scene.pass(25 * MS);
    scene.again(CLIENT, begins[3], MSS);
    scene.pass(230 * MS);
    begins.iter().for_each(|begin| scene.again(CLIENT, *begin, MSS));
    go_on(&mut scene);
    assert_eq!(kinds(&scene.diagnosis()), [Kind::RtoStall]);
}

/// Beside the server the tail is a hole before the probe: a timeout would have sent what is missing.
#[test]
fn a_probe_behind_a_hole_is_no_timeout_beside_the_receiver_either() {
    let mut scene = Scene::new();
    scene.meet_at_server(RTT);
    for _ in 0..20 {
        (0..4).for_each(|_| _ = scene.data(CLIENT, MSS));
        scene.ack(SERVER);
        scene.pass(RTT);
    }
    let arrived = scene.data(CLIENT, MSS);
    let lost = arrived.wrapping_add(MSS);
    scene.ack(SERVER);
    scene.next[CLIENT] = lost.wrapping_add(MSS);
    scene.pass(40 * MS);
    let probe = scene.data(CLIENT, MSS);
    scene.pass(20_000);
    scene.sack(SERVER, lost, &[(probe, probe.wrapping_add(MSS))]);
    scene.pass(RTT);
    scene.again(CLIENT, lost, MSS);
    scene.pass(20_000);
    scene.ack(SERVER);
    scene.pass(RTT);
    for _ in 0..20 {
        (0..4).for_each(|_| _ = scene.data(CLIENT, MSS));
        scene.ack(SERVER);
        scene.pass(RTT);
    }
    assert_eq!(kinds(&scene.diagnosis()), [Kind::TailLoss, Kind::FastRetransmit]);
}

/// Of a direction alone nothing is ever acknowledged: a FIN that comes after a pause is new, and repeats nothing.
#[test]
fn a_fin_after_a_pause_is_no_repeat() {
    for is_again in [false, true] {
        let mut scene = Scene::met(RTT);
        scene.talk(5, RTT);
        (0..4).for_each(|_| _ = scene.data(CLIENT, MSS));
        let end = TcpFlags::FIN.with(TcpFlags::ACK);
        if is_again {
            scene.send(CLIENT, 0, end);
        }
        scene.pass(3 * RTT);
        scene.send(CLIENT, 0, end);
        scene.segments.retain(|segment| segment.source == scene.ends[CLIENT]);
        let found = kinds(&scene.diagnosis());
        assert_eq!(found.contains(&Kind::TailLoss), is_again, "{found:?}");
    }
}

#[test]
fn what_is_sent_again_does_not_tell_that_more_was_waiting() {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    let begins: Vec<u32> = [MSS, MSS, 100].iter().map(|bytes| scene.data(CLIENT, *bytes)).collect();
    scene.pass(RTT);
    scene.sack(SERVER, begins[1], &[(begins[2], scene.next[CLIENT])]);
    scene.pass(MS / 10);
    // A full segment without PSH, which the middle of a write has as well.
    scene.again(CLIENT, begins[1], MSS);
    scene.segments.last_mut().expect("just sent").flags = TcpFlags::ACK;
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.pass(60 * MS);
    scene.talk(3, RTT);
    assert!(!kinds(&scene.diagnosis()).contains(&Kind::SenderStall), "{:#?}", scene.diagnosis().findings);
}

/// Beside the server: the client acknowledges what the server sends, and its number says that it has sent something of which the
/// file has nothing until so much later.
fn announced(wait: i64, is_lost: bool) -> Diagnosis {
    let mut scene = Scene::new();
    scene.meet_at_server(RTT);
    scene.talk(6, RTT);
    scene.data(SERVER, MSS);
    let begin = scene.next[CLIENT];
    let end = begin.wrapping_add(500);
    scene.pass(RTT);
    scene.next[CLIENT] = if is_lost { end } else { begin };
    scene.ack(CLIENT);
    scene.pass(wait);
    scene.again(CLIENT, begin, 500);
    scene.next[CLIENT] = end;
    scene.pass(20_000);
    scene.ack(SERVER);
    for segment in &mut scene.segments {
        segment.identification = None;
    }
    scene.diagnosis()
}

proptest! {
    /// A number of what will be sent next tells what was sent (RFC 9293 section 3.10.4).
    #[test]
    fn what_an_acknowledgement_lies_behind_had_been_sent(wait in 200 * MS..2_000 * MS) {
        prop_assert_eq!(kinds(&announced(wait, true)), [Kind::TailLoss]);
        prop_assert_eq!(kinds(&announced(wait, false)), []);
    }
}

/// A segment is lost; so long after it the next one leaves, and soon after that the first is sent again. Nothing marks packets.
fn timed(wait: i64, then: i64) -> Diagnosis {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    let begin = scene.data(CLIENT, 500);
    scene.pass(wait);
    scene.data(CLIENT, 500);
    scene.pass(then);
    scene.again(CLIENT, begin, 500);
    scene.pass(RTT);
    scene.ack(SERVER);
    for segment in &mut scene.segments {
        (segment.identification, segment.timestamps) = (None, None);
    }
    scene.diagnosis()
}

proptest! {
    /// A timer runs since the oldest left: what leaves meanwhile does not set it again (RFC 6298 section 5).
    #[test]
    fn new_data_does_not_keep_a_timer_from_running_out(wait in 150 * MS..300 * MS, then in MS / 10..9 * MS) {
        let found = timed(wait, then);
        let is_timed = wait + then >= 200 * MS;
        prop_assert_eq!(kinds(&found).contains(&Kind::UnclearRepeats), !is_timed, "{:?}", found.findings);
        if is_timed {
            prop_assert!(one(&found, Kind::RtoStall).lost_seconds >= wait as f64 / 1e9 - 1e-9);
        }
    }
}

/// Beside the receiver: after long rests in which nothing is missing, a write whose last segments are lost. What came of it ends within
/// the write, or not.
#[test]
fn numbers_that_are_missing_within_a_write_are_those_of_lost_data() {
    for is_within in [true, false] {
        let mut scene = Scene::new();
        scene.meet_at_server(RTT);
        for _ in 0..4 {
            scene.talk(2, RTT);
            scene.pass(500 * MS);
        }
        let write = |scene: &mut Scene, flags: TcpFlags| {
            scene.send(CLIENT, MSS, TcpFlags::ACK.with(flags));
            scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(MSS);
        };
        write(&mut scene, TcpFlags(0));
        write(&mut scene, if is_within { TcpFlags(0) } else { TcpFlags::PSH });
        scene.ack(SERVER);
        scene.identification[CLIENT] += 2;
        scene.pass(230 * MS);
        write(&mut scene, TcpFlags(0));
        scene.ack(SERVER);
        scene.pass(RTT);
        write(&mut scene, TcpFlags::PSH);
        scene.ack(SERVER);
        scene.pass(500 * MS);
        scene.talk(3, RTT);
        let found = scene.diagnosis();
        assert_eq!(kinds(&found).contains(&Kind::TailLoss), is_within, "{:#?}", found.findings);
    }
}

/// Beside the client: each answer is two segments, and acknowledges what was asked, so that the server sends nothing that only
/// acknowledges. Of one answer the second segment is lost on its way here.
#[test]
fn a_server_that_only_answers_shows_its_losses_by_numbers() {
    for is_lost in [true, false] {
        let mut scene = Scene::met(RTT);
        for turn in 0..12 {
            scene.data(CLIENT, 100);
            scene.pass(RTT);
            scene.got[SERVER] = scene.next[CLIENT];
            scene.send(SERVER, MSS, TcpFlags::ACK);
            scene.next[SERVER] = scene.next[SERVER].wrapping_add(MSS);
            if turn == 8 {
                scene.identification[SERVER] += u16::from(is_lost);
                scene.pass(40 * MS);
                scene.ack(CLIENT);
                scene.pass(185 * MS);
            }
            scene.data(SERVER, 500);
            scene.pass(20_000);
            scene.ack(CLIENT);
            scene.pass(MS);
        }
        let found = scene.diagnosis();
        assert_eq!(kinds(&found).contains(&Kind::TailLoss), is_lost, "{:#?}", found.findings);
    }
}
