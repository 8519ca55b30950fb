//! Bytes that a receiver asks for and that never come to the tap beside it; and whose time a pause is where a file lacks what
//! would tell.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, diagnosis, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind};
use framegauge_packets::TcpFlags;

const RTT: i64 = 20 * MS;
const FIN: TcpFlags = TcpFlags::ACK.with(TcpFlags::FIN);

/// A request, the first segment of its answer, of this size, and a hole of two large ones behind it. Where that begins.
fn leave_hole(scene: &mut Scene, first: u32) -> u32 {
    scene.data(CLIENT, 300);
    scene.pass(RTT);
    scene.got[SERVER] = scene.next[CLIENT];
    scene.data(SERVER, first);
    scene.pass(20_000);
    scene.ack(CLIENT);
    let hole = scene.next[SERVER];
    scene.next[SERVER] = hole.wrapping_add(2 * MSS);
    hole
}

/// At the client: of an answer of two large segments and a small one only the small one comes. The client asks for the rest,
/// waits and gives up. `first`: a segment of this size passed before.
fn never_filled(first: u32, waits: i64) -> Diagnosis {
    let mut scene = Scene::met(RTT);
    let hole = leave_hole(&mut scene, first);
    let small = scene.data(SERVER, 200);
    scene.pass(20_000);
    scene.sack(CLIENT, hole, &[(small, small.wrapping_add(200))]);
    scene.pass(waits);
    scene.send(CLIENT, 0, FIN);
    scene.diagnosis()
}

#[test]
fn large_segments_that_never_come_to_who_asks_for_them_may_be_too_large() {
    let found = never_filled(100, 20_000 * MS);
    assert_eq!(kinds(&found), [Kind::PmtuBlackHole], "{found:#?}");
    let finding = one(&found, Kind::PmtuBlackHole);
    assert!(
        finding.text.starts_with("The receiver asked for 2896 bytes that never came here"),
        "{}",
        finding.text
    );
    assert!(
        finding.text.contains("up to 1448 bytes; the largest that was has 200 bytes"),
        "{}",
        finding.text
    );
    assert!(finding.remedy.contains("framegauge check"), "{}", finding.remedy);
    assert!(finding.lost_seconds > 19.9, "{}", finding.lost_seconds);
}

#[test]
fn where_as_large_ones_passed_before_no_size_is_the_reason() {
    let found = never_filled(MSS, 20_000 * MS);
    assert_eq!(kinds(&found), [Kind::RtoStall]);
    let text = one(&found, Kind::RtoStall).text;
    assert!(text.contains("or their sender died") && !text.contains("may have up to"), "{text}");
}

#[test]
fn a_file_that_ends_before_any_timer_tells_of_nothing() {
    assert_eq!(kinds(&never_filled(100, 30 * MS)), []);
}

/// At the client, without SACK: a hole of two large segments, a small one behind it, and one duplicate acknowledgement. After this
/// time the client ends its way, and the server acknowledges that, or does not.
fn never_filled_without_sack(first: u32, waits: i64, lives: bool) -> Diagnosis {
    let mut scene = Scene::new();
    scene.syn.iter_mut().for_each(|syn| syn.sack_permitted = false);
    scene.meet(RTT);
    let hole = leave_hole(&mut scene, first);
    scene.data(SERVER, 200);
    scene.pass(20_000);
    scene.sack(CLIENT, hole, &[]);
    scene.pass(waits);
    scene.send(CLIENT, 0, FIN);
    scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(1);
    if lives {
        scene.pass(RTT);
        scene.ack(SERVER);
    }
    scene.diagnosis()
}

#[test]
fn without_sack_all_that_a_receiver_says_tells_what_it_lacks() {
    for (first, lives, kind) in
        [(100, false, Kind::PmtuBlackHole), (MSS, false, Kind::RtoStall), (MSS, true, Kind::PmtuBlackHole)]
    {
        let found = never_filled_without_sack(first, 20_000 * MS, lives);
        assert_eq!(kinds(&found), [kind], "{found:#?}");
        assert!(one(&found, kind).lost_seconds > 19.9, "{found:#?}");
        assert_eq!(one(&found, kind).remedy.contains("framegauge check"), kind == Kind::PmtuBlackHole);
    }
    assert_eq!(kinds(&never_filled_without_sack(100, 150 * MS, true)), []);
}

#[test]
fn a_sender_that_only_acknowledges_lives() {
    let mut scene = Scene::met(RTT);
    scene.talk(1, RTT);
    (0..3).for_each(|_| {
        scene.data(SERVER, MSS);
        scene.ack(CLIENT);
    });
    let hole = scene.next[SERVER];
    scene.next[SERVER] = hole.wrapping_add(2 * MSS);
    let small = scene.data(SERVER, 200);
    scene.sack(CLIENT, hole, &[(small, small.wrapping_add(200))]);
    for _ in 0..10 {
        scene.pass(3_000 * MS);
        scene.data(CLIENT, 24);
        scene.pass(RTT);
        scene.got[SERVER] = scene.next[CLIENT];
        let next = std::mem::replace(&mut scene.next[SERVER], small.wrapping_add(200));
        scene.send(SERVER, 0, TcpFlags::ACK);
        scene.next[SERVER] = next;
    }
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::PmtuBlackHole], "{found:#?}");
    let finding = one(&found, Kind::PmtuBlackHole);
    assert!(finding.text.contains("none above 200 did: the path MTU has fallen, or the way"), "{finding:#?}");
    assert!(finding.lost_seconds > 29.0, "{finding:#?}");
}

#[test]
fn where_nothing_of_the_sender_is_in_the_file_the_receiver_still_asks() {
    for (count, named) in [(8, vec![Kind::RtoStall, Kind::HalfCapture]), (1, vec![Kind::HalfCapture])] {
        let mut scene = Scene::met(RTT);
        scene.talk(3, RTT);
        let hole = scene.next[SERVER];
        let behind = hole.wrapping_add(2 * MSS);
        for turn in 0..count {
            scene.sack(CLIENT, hole, &[(behind, behind.wrapping_add(300 * (turn + 1)))]);
            scene.pass(1_000 * MS);
        }
        let own: Vec<_> =
            scene.segments.iter().filter(|one| one.source == scene.ends[CLIENT]).copied().collect();
        let found = diagnosis(&own);
        assert_eq!(kinds(&found), named, "{found:#?}");
        if count > 1 {
            let finding = one(&found, Kind::RtoStall);
            assert!(
                finding.text.starts_with("The receiver asked for 2896 bytes until the end"),
                "{finding:#?}"
            );
            assert!((finding.lost_seconds - 7.0).abs() < 0.01, "{finding:#?}");
        }
    }
}

/// The time since a hole opened is told once, whatever it had been taken for.
#[test]
fn the_time_of_a_hole_is_that_of_nothing_else() {
    let mut scene = Scene::met(RTT);
    scene.data(CLIENT, 300);
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.pass(5_000 * MS);
    let hole = scene.next[SERVER];
    scene.next[SERVER] = hole.wrapping_add(2 * MSS);
    let end = scene.next[SERVER];
    for wait in [2_000, 1] {
        scene.send(SERVER, 0, FIN);
        scene.sack(CLIENT, hole, &[(end, end.wrapping_add(1))]);
        scene.pass(wait * MS);
    }
    scene.pass(30_000 * MS);
    scene.send(CLIENT, 0, TcpFlags::ACK);
    let found = scene.diagnosis();
    let time = &found.connections[0].time;
    let lost = one(&found, Kind::PmtuBlackHole);
    assert!((lost.lost_seconds - 32.0).abs() < 0.1, "{found:#?}");
    assert!((time["application_limited"] - 5.0).abs() < 0.1 && !time.contains_key("rto_stall"), "{time:?}");
    assert!(!lost.text.contains("1 bytes"), "{}", lost.text);
}

/// Bursts with rests between them, of which some segments were sent again; `keep` says what the file has.
fn bursts(keep: impl Fn(&framegauge_packets::capture::Segment, &Scene) -> bool) -> Diagnosis {
    let mut scene = Scene::met(RTT);
    scene.window = [4096; 2];
    for burst in 0..16 {
        let begins: Vec<u32> = (0..40).map(|_| scene.data(CLIENT, MSS)).collect();
        scene.pass(RTT);
        if burst == 3 {
            for behind in 2..6u32 {
                scene.sack(SERVER, begins[0], &[(begins[1], begins[0].wrapping_add(behind * MSS))]);
            }
            scene.again(CLIENT, begins[0], MSS);
            scene.pass(RTT);
        }
        scene.ack(SERVER);
        scene.pass(3_000 * MS);
    }
    scene.data(SERVER, 100);
    scene.pass(MS);
    scene.ack(CLIENT);
    let segments: Vec<_> = scene.segments.iter().filter(|segment| keep(segment, &scene)).copied().collect();
    diagnosis(&segments)
}

#[test]
fn without_acknowledgements_no_window_is_full_and_no_timer_ran_out() {
    let found = bursts(|segment, _| segment.payload_bytes > 0 || segment.flags != TcpFlags::ACK);
    let named = kinds(&found);
    for kind in [Kind::ReceiverLimited, Kind::RtoStall, Kind::TailLoss, Kind::ZeroWindow] {
        assert!(!named.contains(&kind), "{found:#?}");
    }
}

#[test]
fn of_one_direction_nobody_knows_what_its_sender_waited_for() {
    let found = bursts(|segment, scene| segment.source == scene.ends[CLIENT]);
    assert!(!kinds(&found).contains(&Kind::RtoStall), "{found:#?}");
    assert!(
        found
            .findings
            .iter()
            .all(|finding| finding.lost_seconds < 1.0 || !finding.kind.name().contains("loss"))
    );
}

#[test]
fn steps_after_rests_that_are_like_others_are_those_of_a_shared_counter() {
    for first in [0, 8] {
        let mut scene = Scene::new();
        scene.meet_at_server(RTT);
        for turn in 0..40u16 {
            // Other connections of the host send, too, here and there.
            scene.identification[CLIENT] += u16::from(turn > first && turn % 4 == 0);
            scene.data(CLIENT, 100);
            scene.pass(20_000);
            scene.got[SERVER] = scene.next[CLIENT];
            scene.data(SERVER, 1000);
            scene.pass(RTT);
            scene.ack(CLIENT);
            scene.pass(230 * MS);
        }
        assert_eq!(kinds(&scene.diagnosis()), [], "{first}");
    }
}

#[test]
fn both_ends_may_open_one_connection() {
    let mut scene = Scene::new();
    let syn_ack = TcpFlags::SYN.with(TcpFlags::ACK);
    let first = scene.next;
    scene.send(CLIENT, 0, TcpFlags::SYN);
    scene.pass(5 * MS);
    scene.send(SERVER, 0, TcpFlags::SYN);
    scene.pass(5 * MS);
    scene.got = [first[SERVER].wrapping_add(1), first[CLIENT].wrapping_add(1)];
    scene.send(CLIENT, 0, syn_ack);
    scene.pass(5 * MS);
    scene.send(SERVER, 0, syn_ack);
    scene.next = [first[CLIENT].wrapping_add(1), first[SERVER].wrapping_add(1)];
    scene.pass(5 * MS);
    scene.ack(CLIENT);
    scene.talk(5, RTT);
    let found = scene.diagnosis();
    assert_eq!((found.connections.len(), kinds(&found)), (1, vec![]), "{found:#?}");
    assert!(found.connections[0].has_handshake);
}

/// A server that thinks for so long, and whose answer's first segments are lost before they come here, and repaired.
fn thinks(before: u32, time: i64, lost: u32, is_numbered: bool) -> Vec<Kind> {
    let mut scene = Scene::met(RTT);
    scene.talk(before, RTT);
    scene.data(CLIENT, 200);
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.pass(time);
    let first = scene.next[SERVER];
    scene.next[SERVER] = first.wrapping_add(lost * MSS);
    scene.identification[SERVER] += lost as u16;
    let behind = scene.next[SERVER];
    for count in 1..=5u32 {
        scene.data(SERVER, MSS);
        scene.sack(CLIENT, first, &[(behind, behind.wrapping_add(count * MSS))]);
        scene.pass(10_000);
    }
    scene.pass(RTT);
    (0..lost).for_each(|place| scene.again(SERVER, first.wrapping_add(place * MSS), MSS));
    scene.ack(CLIENT);
    scene.pass(MS);
    scene.talk(2, RTT);
    if !is_numbered {
        scene.segments.iter_mut().for_each(|segment| segment.identification = Some(0));
    }
    kinds(&scene.diagnosis())
}

#[test]
fn a_rest_that_ends_behind_a_hole_is_not_that_of_the_hole() {
    for time in [50, 300, 5_000] {
        for lost in [1, 2] {
            for before in [2, 6] {
                let named = thinks(before, time * MS, lost, true);
                assert_eq!(named, [Kind::FastRetransmit], "{before} {time} {lost}");
            }
        }
    }
    for time in [250, 5_000] {
        for lost in [1, 2] {
            assert_eq!(thinks(6, time * MS, lost, false), [Kind::FastRetransmit], "{time} {lost}");
        }
    }
}
