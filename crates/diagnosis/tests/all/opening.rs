//! How connections open: what a server does not hear, and what is no fault.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind};
use framegauge_packets::TcpFlags;
use proptest::prelude::*;

const RTT: i64 = 10 * MS;
const LOSSES: [Kind; 6] = [
    Kind::SynLoss,
    Kind::RtoStall,
    Kind::TailLoss,
    Kind::DoubleLoss,
    Kind::PmtuBlackHole,
    Kind::SpuriousRetransmit,
];

/// The server's SYN-ACK again, and the client's answer.
fn syn_ack_again(scene: &mut Scene) {
    let begin = scene.next[SERVER].wrapping_sub(1);
    let next = std::mem::replace(&mut scene.next[SERVER], begin);
    let got = scene.got[SERVER];
    scene.got[SERVER] = scene.segments[0].seq.wrapping_add(1);
    scene.send(SERVER, 0, TcpFlags::SYN.with(TcpFlags::ACK));
    (scene.next[SERVER], scene.got[SERVER]) = (next, got);
    scene.pass(20_000);
    scene.ack(CLIENT);
}

/// A client that sends a request and its repeats, until the server takes the connection after so many SYN-ACKs.
fn overflowing(mut scene: Scene, bytes: u32, repeats: u32) -> Diagnosis {
    scene.pass(MS);
    let begin = scene.data(CLIENT, bytes);
    for turn in 0..repeats {
        scene.pass((210 * MS) << turn);
        scene.again(CLIENT, begin, bytes);
        scene.pass((790 * MS) << turn);
        syn_ack_again(&mut scene);
    }
    scene.pass(200 * MS);
    scene.again(CLIENT, begin, bytes);
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.talk(5, RTT);
    scene.diagnosis()
}

#[test]
fn a_server_that_repeats_its_syn_ack_has_not_heard_the_answer() {
    let mut scene = Scene::met(RTT);
    for wait in [1_000, 2_000] {
        scene.pass(wait * MS);
        syn_ack_again(&mut scene);
    }
    scene.pass(MS);
    scene.talk(5, RTT);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::AckUnheard]);
    let finding = one(&found, Kind::AckUnheard);
    assert_eq!((finding.count, &finding.packets[..]), (2, &[3, 4, 6][..]));
    assert!((finding.lost_seconds - 3.0).abs() < 1e-3, "{}", finding.lost_seconds);
    assert!(
        finding.text.contains("accept queue was full")
            && finding.text.contains("the ACK was lost behind this place")
    );
    assert!(
        !finding.text.contains("beside the server") && !finding.text.contains("DEFER"),
        "{}",
        finding.text
    );
}

#[test]
fn a_tap_whose_clock_does_not_tell_the_answer_from_the_syn_knows_where_it_is() {
    let mut scene = Scene::new();
    scene.meet_between(0, RTT);
    scene.pass(970 * MS);
    syn_ack_again(&mut scene);
    assert_eq!(one(&scene.diagnosis(), Kind::AckUnheard).count, 1);
}

#[test]
fn beside_the_server_the_queue_is_likelier() {
    let mut scene = Scene::new();
    scene.meet_at_server(RTT);
    scene.pass(1_000 * MS);
    syn_ack_again(&mut scene);
    let text = one(&scene.diagnosis(), Kind::AckUnheard).text;
    assert!(text.contains("beside the server") && text.contains("TCP_DEFER_ACCEPT"), "{text}");
}

#[test]
fn a_syn_ack_that_left_before_the_answer_came_tells_nothing() {
    let mut scene = Scene::met(1_200 * MS);
    scene.pass(1_000 * MS);
    syn_ack_again(&mut scene);
    scene.talk(5, 1_200 * MS);
    assert!(!kinds(&scene.diagnosis()).contains(&Kind::AckUnheard));
}

/// Both ends open at once (RFC 9293 figure 7): what the tap sees, in the order of these draws.
fn both_open(order: [bool; 2], answers: [bool; 2], gaps: [i64; 3]) -> Scene {
    let mut scene = Scene::new();
    let first = [scene.next[CLIENT], scene.next[SERVER]];
    let opening = if order[0] { [CLIENT, SERVER] } else { [SERVER, CLIENT] };
    for end in opening {
        scene.send(end, 0, TcpFlags::SYN);
        scene.pass(gaps[0]);
    }
    scene.got = [first[SERVER].wrapping_add(1), first[CLIENT].wrapping_add(1)];
    let answering = if order[1] { [CLIENT, SERVER] } else { [SERVER, CLIENT] };
    for end in answering {
        // A SYN-ACK has the number of the SYN; a mere ACK the one after it.
        if answers[end] {
            scene.send(end, 0, TcpFlags::SYN.with(TcpFlags::ACK));
            scene.next[end] = first[end].wrapping_add(1);
        } else {
            scene.next[end] = first[end].wrapping_add(1);
            scene.send(end, 0, TcpFlags::ACK);
        }
        scene.pass(gaps[1]);
    }
    scene.pass(gaps[2]);
    scene.ack(CLIENT);
    scene
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A simultaneous open is no fault, whoever is first, and whether SYNs are answered with SYN-ACKs or with ACKs.
    #[test]
    fn both_may_open_at_once(order: [bool; 2], answers: [bool; 2], gaps in [MS..30 * MS, MS..30 * MS, MS..30 * MS]) {
        let mut scene = both_open(order, answers, gaps);
        scene.talk(5, RTT);
        let found = scene.diagnosis();
        prop_assert_eq!(kinds(&found), []);
    }

    /// What a client sends to a server that has no room is not called lost, and all of the time is that of the server.
    #[test]
    fn what_a_full_queue_drops_is_no_loss(bytes in 1u32..=MSS, repeats in 1u32..5, rtt in MS..50 * MS) {
        let found = overflowing(Scene::met(rtt), bytes, repeats);
        let kinds = kinds(&found);
        prop_assert!(!LOSSES.iter().any(|kind| kinds.contains(kind)), "{found:#?}");
        prop_assert!(kinds.contains(&Kind::AckUnheard));
        let waited = f64::from((1 << repeats) - 1) + 0.2;
        let lost = one(&found, Kind::AckUnheard).lost_seconds;
        prop_assert!((lost - waited).abs() < 0.01, "{lost} of {waited}: {found:#?}");
        // It names SYN-ACKs, and counts nothing else.
        prop_assert_eq!(one(&found, Kind::AckUnheard).count, u64::from(repeats));
    }
}

/// A SYN, and so many resets in answer to it, each of which acknowledges what `acknowledges` says beyond the SYN's number;
/// without an answer to that, none acknowledges anything.
fn answered_by_resets(count: u32, acknowledges: Option<u32>) -> Scene {
    let mut scene = Scene::new();
    scene.send(CLIENT, 0, TcpFlags::SYN);
    scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(1);
    for _ in 0..count {
        scene.pass(RTT);
        scene.got[SERVER] = scene.segments[0].seq.wrapping_add(acknowledges.unwrap_or(0));
        let ack = if acknowledges.is_some() { TcpFlags::ACK } else { TcpFlags(0) };
        scene.send(SERVER, 0, TcpFlags::RST.with(ack));
    }
    scene
}

#[test]
fn a_reset_alone_that_does_not_acknowledge_the_syn_refuses_nothing() {
    for acknowledges in [None, Some(0), Some(2), Some(70_000)] {
        let found = answered_by_resets(2, acknowledges).diagnosis();
        assert_eq!(kinds(&found), [Kind::UnheededReset], "{acknowledges:?}");
        let finding = one(&found, Kind::UnheededReset);
        assert_eq!((finding.count, &finding.packets[..]), (2, &[2][..]));
        assert!(finding.text.contains("does not heed it (RFC 9293 section 3.10.7.3)"), "{}", finding.text);
    }
    assert_eq!(kinds(&answered_by_resets(1, Some(1)).diagnosis()), [Kind::ConnectionRefused]);
}

#[test]
fn where_the_syn_is_repeated_the_repeats_have_the_name() {
    let mut scene = answered_by_resets(1, None);
    scene.pass(1_000 * MS);
    scene.next[CLIENT] = scene.next[CLIENT].wrapping_sub(1);
    scene.send(CLIENT, 0, TcpFlags::SYN);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::SynLoss]);
    assert!(one(&found, Kind::SynLoss).text.contains("do not acknowledge the SYN"));
}

/// A SYN that is sent again after a second, and answered so much later, with an echo of one of them.
fn answered_late(wait: i64, echo: Option<usize>, rtt: i64) -> Diagnosis {
    let mut scene = Scene::new();
    let stamps = [0, 1_000 * MS].map(|after| ((scene.now + after) / MS) as u32);
    scene.send(CLIENT, 0, TcpFlags::SYN);
    scene.pass(1_000 * MS);
    scene.send(CLIENT, 0, TcpFlags::SYN);
    scene.pass(wait);
    scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(1);
    scene.got[SERVER] = scene.next[CLIENT];
    scene.send(SERVER, 0, TcpFlags::SYN.with(TcpFlags::ACK));
    scene.segments[2].timestamps = echo.map(|of| (1, stamps[of]));
    scene.next[SERVER] = scene.next[SERVER].wrapping_add(1);
    scene.ack(CLIENT);
    scene.talk(3, rtt);
    scene.diagnosis()
}

#[test]
fn a_syn_whose_answer_takes_longer_than_its_timer_was_not_lost() {
    for echo in [Some(0), None] {
        assert_eq!(kinds(&answered_late(300 * MS, echo, 1_300 * MS)), [], "{echo:?}");
        // A server may echo the first to each: here the answer to that was lost.
        assert_eq!(kinds(&answered_late(30 * MS, echo, 30 * MS)), [Kind::SynLoss], "{echo:?}");
        assert_eq!(kinds(&answered_late(30 * MS, echo, 70 * MS)), [Kind::SynLoss], "{echo:?}");
    }
    assert_eq!(kinds(&answered_late(300 * MS, Some(1), 1_300 * MS)), [Kind::SynLoss]);
    // All that is known of the way may have been delayed by intent.
    assert_eq!(kinds(&answered_late(1_300 * MS, None, 1_500 * MS)), [Kind::SynLoss]);
}

#[test]
fn a_client_that_answers_nothing_waits_in_no_queue() {
    let mut scene = Scene::new();
    scene.send(CLIENT, 0, TcpFlags::SYN);
    scene.got[SERVER] = scene.next[CLIENT].wrapping_add(1);
    for wait in [0, 1_000, 2_000] {
        scene.pass(wait * MS);
        scene.send(SERVER, 0, TcpFlags::SYN.with(TcpFlags::ACK));
    }
    let finding = one(&scene.diagnosis(), Kind::SynLoss);
    assert!(finding.count == 2 && !finding.remedy.contains("accept queue"), "{finding:#?}");
}

#[test]
fn a_handshake_that_was_never_made_took_no_longer() {
    for is_made in [false, true] {
        let mut scene = Scene::new();
        for _ in 0..3 {
            scene.send(CLIENT, 0, TcpFlags::SYN);
            scene.pass(RTT);
            scene.got[SERVER] = 77;
            scene.send(SERVER, 0, TcpFlags::ACK);
            scene.pass(1_000 * MS);
        }
        if is_made {
            scene.meet(RTT);
            scene.talk(3, RTT);
        }
        let finding = one(&scene.diagnosis(), Kind::ChallengeAck);
        assert_eq!(finding.count, 3);
        assert_eq!(finding.text.contains("did not take place"), !is_made, "{}", finding.text);
    }
}

proptest! {
    /// The first SYN-ACK was lost before the tap: that which the server repeats passes it so long after the SYN, shortly before
    /// or after the SYN that the client repeats.
    #[test]
    fn a_syn_ack_that_was_lost_before_the_tap_takes_the_whole_wait(
        wait in 900 * MS..1_100 * MS, between in 1_000..100 * MS, is_answer_first: bool
    ) {
        let mut scene = Scene::new();
        scene.send(CLIENT, 0, TcpFlags::SYN);
        let syn = scene.next[CLIENT];
        scene.got[SERVER] = syn.wrapping_add(1);
        scene.pass(wait);
        for turn in [is_answer_first, !is_answer_first] {
            if turn {
                scene.send(SERVER, 0, TcpFlags::SYN.with(TcpFlags::ACK));
            } else {
                scene.send(CLIENT, 0, TcpFlags::SYN);
            }
            scene.pass(between);
        }
        scene.next[CLIENT] = syn.wrapping_add(1);
        scene.next[SERVER] = scene.next[SERVER].wrapping_add(1);
        scene.ack(CLIENT);
        scene.talk(3, RTT);
        let lost = one(&scene.diagnosis(), Kind::SynLoss).lost_seconds;
        prop_assert!(lost >= wait as f64 / 1e9 - 1e-9, "{lost}");
    }
}
