//! A path MTU that falls while a connection goes on: as large ones passed before, so that only what left since then tells.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind};
use framegauge_packets::TcpFlags;

const RTT: i64 = 10 * MS;
const LARGE: u32 = 8948;
const SMALL: u32 = 500;

/// Two ends with jumbo frames, of which `sender` has sent some that were acknowledged; at a tap beside it, or else beside the
/// other end.
fn grown(sender: usize, is_beside: bool) -> Scene {
    let mut scene = Scene::new();
    scene.syn.iter_mut().for_each(|syn| syn.mss = Some(8960));
    match is_beside == (sender == CLIENT) {
        true => scene.meet(RTT),
        false => scene.meet_at_server(RTT),
    }
    scene.talk(5, RTT);
    for _ in 0..10 {
        scene.data(sender, LARGE);
        scene.data(sender, SMALL);
        scene.pass(if is_beside { RTT } else { 20_000 });
        scene.ack(1 - sender);
        scene.pass(if is_beside { 20_000 } else { RTT });
    }
    scene
}

/// A large segment and a small one, of which the small one comes through; the large one is repeated by the timer so many times
/// in vain, and the other end is heard meanwhile, or not.
fn in_vain(scene: &mut Scene, sender: usize, times: u32, is_heard: bool) -> u32 {
    let begin = scene.data(sender, LARGE);
    let small = scene.data(sender, SMALL);
    let passed = (small, small.wrapping_add(SMALL));
    scene.pass(RTT);
    scene.sack(1 - sender, begin, &[passed]);
    for turn in 0..times {
        scene.pass((210 << turn) * MS);
        scene.again(sender, begin, LARGE);
        if is_heard {
            scene.pass(RTT);
            scene.sack(1 - sender, begin, &[passed]);
        }
    }
    begin
}

fn told(found: &Diagnosis, kind: Kind) -> String {
    let finding = one(found, kind);
    assert!(finding.remedy.contains("framegauge check"), "{finding:#?}");
    finding.text
}

#[test]
fn large_ones_that_passed_and_pass_no_more_beside_small_ones_that_do_are_a_black_hole() {
    for sender in [CLIENT, SERVER] {
        let mut scene = grown(sender, true);
        in_vain(&mut scene, sender, 3, true);
        let found = scene.diagnosis();
        assert_eq!(kinds(&found), [Kind::PmtuBlackHole], "{found:#?}");
        let text = told(&found, Kind::PmtuBlackHole);
        let said = "Until then segments of 8948 bytes passed, from then on none above 500 did: the path MTU has fallen.";
        assert!(text.contains(said), "{text}");
        assert!(one(&found, Kind::PmtuBlackHole).lost_seconds > 1.4);
    }
}

#[test]
fn an_end_that_is_not_heard_any_more_may_have_died() {
    let said =
        ["or the way was interrupted, or the other end died,", "or the way was interrupted meanwhile,"];
    for ((times, is_heard), said) in [(3, false), (2, true)].into_iter().zip(said) {
        let mut scene = grown(CLIENT, true);
        in_vain(&mut scene, CLIENT, times, is_heard);
        let found = scene.diagnosis();
        let text = told(&found, Kind::PmtuBlackHole);
        assert!(text.contains(said) && text.contains("cannot tell for sure"), "{text}");
    }
}

#[test]
fn what_passes_at_last_because_it_is_smaller_may_have_met_the_end_of_an_interruption() {
    let mut scene = grown(CLIENT, true);
    let begin = scene.data(CLIENT, LARGE);
    for turn in 0..4 {
        scene.pass((210 << turn) * MS);
        scene.again(CLIENT, begin, LARGE);
    }
    scene.pass((210 << 4) * MS);
    for place in (0..LARGE).step_by(1024) {
        let bytes = 1024.min(LARGE - place);
        scene.again(CLIENT, begin.wrapping_add(place), bytes);
        scene.pass(RTT);
        scene.sack(SERVER, begin.wrapping_add(place + bytes), &[]);
    }
    scene.talk(5, RTT);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::PmtuBlackHole], "{found:#?}");
    let text = told(&found, Kind::PmtuBlackHole);
    assert!(
        text.contains("none above 1024 did: the path MTU has fallen, or the way was interrupted meanwhile"),
        "{text}"
    );
    // If as large ones pass later, it was no matter of size.
    scene.data(CLIENT, LARGE);
    scene.pass(RTT);
    scene.ack(SERVER);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::RtoStall], "{found:#?}");
    assert!(!one(&found, Kind::RtoStall).text.contains("MTU"));
}

/// Behind a path MTU that has fallen, what passes is a full segment, which waits for the window and not for Nagle's algorithm.
#[test]
fn full_segments_of_a_smaller_path_are_not_small() {
    let mut scene = grown(CLIENT, true);
    let begin = in_vain(&mut scene, CLIENT, 3, true);
    for place in (0..LARGE).step_by(1024) {
        let bytes = 1024.min(LARGE - place);
        scene.again(CLIENT, begin.wrapping_add(place), bytes);
        scene.pass(RTT);
        scene.sack(SERVER, begin.wrapping_add(place + bytes), &[]);
    }
    for _ in 0..5 {
        scene.data(CLIENT, 1024);
        scene.pass(RTT + 40 * MS);
        scene.ack(SERVER);
        scene.pass(100_000);
        scene.data(CLIENT, 1024);
        scene.pass(RTT);
        scene.ack(SERVER);
        scene.pass(100 * MS);
    }
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::PmtuBlackHole], "{found:#?}");
}

#[test]
fn where_nothing_small_was_sent_a_jumbo_frame_may_be_too_large() {
    let mut scene = grown(CLIENT, true);
    let begin = scene.data(CLIENT, LARGE);
    for turn in 0..5 {
        scene.pass((210 << turn) * MS);
        scene.again(CLIENT, begin, LARGE);
    }
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::RtoStall], "{found:#?}");
    let text = told(&found, Kind::RtoStall);
    assert!(
        text.contains("the path MTU may have fallen, the way be interrupted, or an end have died"),
        "{text}"
    );
}

#[test]
fn what_comes_through_at_last_or_has_lost_small_ones_too_is_no_matter_of_size() {
    let mut scene = grown(CLIENT, true);
    in_vain(&mut scene, CLIENT, 3, true);
    scene.pass(RTT);
    scene.ack(SERVER);
    let found = scene.diagnosis();
    assert!(!kinds(&found).contains(&Kind::PmtuBlackHole), "{found:#?}");

    let mut scene = grown(CLIENT, true);
    let begin = in_vain(&mut scene, CLIENT, 3, true);
    // The sender tries smaller ones, in vain as well.
    for turn in 3..6 {
        scene.pass((210 << turn) * MS);
        scene.again(CLIENT, begin, 400);
    }
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::RtoStall], "{found:#?}");
    assert!(!one(&found, Kind::RtoStall).text.contains("MTU"));
}

/// The path MTU has fallen for a while: a large segment is repeated by the timer so many times in vain, and a small one that left
/// behind it arrives, of which one duplicate acknowledgement tells, or none. Then the large one passes, or smaller ones do.
fn for_a_while(times: u32, tells: bool, is_cut: bool) -> Diagnosis {
    let mut scene = grown(CLIENT, true);
    let begin = scene.data(CLIENT, LARGE);
    scene.data(CLIENT, SMALL);
    let all = scene.next[CLIENT];
    scene.pass(RTT);
    if tells {
        scene.sack(SERVER, begin, &[]);
    }
    for turn in 0..times {
        scene.pass((210 << turn) * MS);
        scene.again(CLIENT, begin, LARGE);
    }
    scene.pass((210 << times) * MS);
    for place in (0..LARGE).step_by(if is_cut { 1024 } else { LARGE as usize }) {
        let bytes = if is_cut { 1024.min(LARGE - place) } else { LARGE };
        scene.again(CLIENT, begin.wrapping_add(place), bytes);
        scene.pass(RTT);
        let up_to = if place + bytes == LARGE { all } else { begin.wrapping_add(place + bytes) };
        scene.sack(SERVER, up_to, &[]);
    }
    scene.pass(1_000 * MS);
    for _ in 0..10 {
        scene.data(CLIENT, LARGE);
        scene.pass(RTT);
        scene.ack(SERVER);
        scene.pass(20_000);
    }
    scene.diagnosis()
}

#[test]
fn a_path_mtu_that_fell_for_a_while_is_no_outage_where_smaller_ones_passed_meanwhile() {
    for (tells, is_cut) in [(true, true), (true, false), (false, false)] {
        let found = for_a_while(5, tells, is_cut);
        assert_eq!(kinds(&found), [Kind::PmtuBlackHole], "{tells} {is_cut} {found:#?}");
        let text = told(&found, Kind::PmtuBlackHole);
        assert!(text.contains("none above") && text.contains("Later such segments passed again."), "{text}");
        // What passes because it is smaller makes it sure.
        assert_eq!(text.contains("or the way was interrupted meanwhile"), !is_cut, "{text}");
    }
    // Two in vain may be chance, and where nothing tells that the small one came before, the way may have been away.
    for (times, tells, is_cut) in [(2, true, false), (5, false, true)] {
        let found = for_a_while(times, tells, is_cut);
        assert!(!kinds(&found).contains(&Kind::PmtuBlackHole), "{times} {found:#?}");
    }
}

/// At the other end: a hole as large as a jumbo frame, and small segments behind it; the sender is heard again, or not.
fn unfilled(lives: bool) -> Diagnosis {
    let mut scene = grown(SERVER, false);
    let hole = scene.next[SERVER];
    scene.next[SERVER] = hole.wrapping_add(LARGE);
    let mut block = (scene.next[SERVER], scene.next[SERVER]);
    for wait in [20 * MS, 3_000 * MS, 3_000 * MS] {
        if lives || block.0 == block.1 {
            scene.data(SERVER, SMALL);
            block.1 = block.1.wrapping_add(SMALL);
            scene.sack(CLIENT, hole, &[block]);
        }
        scene.pass(wait);
    }
    scene.send(CLIENT, 0, TcpFlags::ACK.with(TcpFlags::FIN));
    scene.diagnosis()
}

#[test]
fn behind_the_place_it_is_a_hole_that_is_never_filled() {
    let found = unfilled(true);
    let text = told(&found, Kind::PmtuBlackHole);
    assert!(text.starts_with("The receiver asked for 8948 bytes that never came here"), "{text}");
    assert!(text.contains("Until then segments of 8948 bytes passed"), "{text}");
    let found = unfilled(false);
    assert_eq!(kinds(&found), [Kind::RtoStall], "{found:#?}");
    assert!(told(&found, Kind::RtoStall).contains("the path MTU may have fallen"));
}

/// At the other end: after a silence of 3 s the sender goes on in smaller segments, which end a write each or do not. So many
/// packets are missing.
fn shrunk(flags: TcpFlags, missing: u16, is_numbered: bool) -> Diagnosis {
    let mut scene = grown(CLIENT, false);
    scene.pass(3_000 * MS);
    scene.identification[CLIENT] += missing;
    for _ in 0..20 {
        scene.send(CLIENT, 1024, flags);
        scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(1024);
        scene.pass(20_000);
        scene.ack(SERVER);
        scene.pass(RTT);
    }
    for segment in scene.segments.iter_mut().filter(|_| !is_numbered) {
        segment.identification = None;
    }
    scene.diagnosis()
}

#[test]
fn behind_the_place_the_sender_comes_back_with_smaller_segments() {
    for is_numbered in [true, false] {
        let found = shrunk(TcpFlags::ACK, 12, is_numbered);
        assert_eq!(kinds(&found), [Kind::PmtuBlackHole], "{found:#?}");
        let text = told(&found, Kind::PmtuBlackHole);
        assert!(
            text.contains("Until then segments of 8948 bytes passed") && text.contains("none above 1024"),
            "{text}"
        );
        assert!(one(&found, Kind::PmtuBlackHole).lost_seconds > 2.9);
    }
    // They are messages of that size, or nothing was lost: it had nothing to send, and learnt of another size meanwhile.
    let push = TcpFlags::ACK.with(TcpFlags::PSH);
    for (flags, missing) in [(push, 12), (TcpFlags::ACK, 0)] {
        let found = shrunk(flags, missing, true);
        assert!(!kinds(&found).contains(&Kind::PmtuBlackHole), "{found:#?}");
    }
}

#[test]
fn answers_that_are_lost_on_their_way_tell_nothing_of_the_size_of_what_they_answer() {
    let mut scene = grown(CLIENT, false);
    // What the client sends is too large from now on, and carries its acknowledgements.
    let hole = scene.next[CLIENT];
    scene.next[CLIENT] = hole.wrapping_add(LARGE);
    let small = scene.data(CLIENT, SMALL);
    scene.sack(SERVER, hole, &[(small, small.wrapping_add(SMALL))]);
    scene.pass(20 * MS);
    let begin = scene.data(SERVER, 1200);
    for turn in 0..4 {
        scene.pass((210 << turn) * MS);
        scene.again(SERVER, begin, 1200);
    }
    let found = scene.diagnosis();
    assert!(!kinds(&found).contains(&Kind::PmtuBlackHole), "{found:#?}");
}

/// Beside the other end: a request, then a silence of `length` in which so many packets are missing, then segments of so many
/// bytes with more behind them.
fn small_from_the_beginning(length: i64, missing: u16, bytes: u32) -> Diagnosis {
    let mut scene = Scene::new();
    scene.meet_at_server(RTT);
    scene.data(CLIENT, 200);
    scene.pass(20_000);
    scene.ack(SERVER);
    scene.pass(length);
    scene.identification[CLIENT] += missing;
    // The last one but two is a probe.
    for bytes in [[bytes; 17].as_slice(), &[bytes + 100, bytes, bytes]].concat() {
        scene.send(CLIENT, bytes, TcpFlags::ACK);
        scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(bytes);
        scene.pass(20_000);
        scene.ack(SERVER);
        scene.pass(RTT);
    }
    scene.diagnosis()
}

#[test]
fn behind_the_place_a_sender_that_was_silent_goes_on_with_less_than_the_syns_allow() {
    let found = small_from_the_beginning(3_700 * MS, 15, 1024);
    assert_eq!(kinds(&found), [Kind::PmtuBlackHole], "{found:#?}");
    let text = told(&found, Kind::PmtuBlackHole);
    assert!(text.contains("No segment of 1448 bytes was ever acknowledged"), "{text}");
    assert!(text.contains("the largest that was has 1124 bytes. Or the way was interrupted"), "{text}");
    // Full segments at last, nothing missing, too little for so long a wait, or a short one.
    for (length, missing, bytes) in [(3_700, 15, 1348), (3_700, 0, 1024), (3_700, 1, 1024), (300, 2, 1024)] {
        let found = small_from_the_beginning(length * MS, missing, bytes);
        assert!(!kinds(&found).contains(&Kind::PmtuBlackHole), "{length} {missing} {bytes} {found:#?}");
    }
}

/// Nothing of the sender was ever acknowledged here: the handshake tells how long its timer is.
#[test]
fn behind_the_place_a_server_comes_back_with_smaller_segments_than_it_ever_sent() {
    let answered = |length: i64| {
        let mut scene = Scene::met(RTT);
        scene.data(CLIENT, 300);
        scene.pass(RTT);
        scene.got[SERVER] = scene.next[CLIENT];
        let next = scene.next[SERVER];
        scene.next[SERVER] = next.wrapping_add(14_480);
        scene.identification[SERVER] += 10;
        scene.send(SERVER, 0, TcpFlags::ACK);
        scene.next[SERVER] = next;
        scene.pass(length);
        scene.identification[SERVER] += 2;
        for _ in 0..12 {
            scene.send(SERVER, 1024, TcpFlags::ACK);
            scene.next[SERVER] = scene.next[SERVER].wrapping_add(1024);
            scene.pass(20_000);
            scene.ack(CLIENT);
            scene.pass(RTT);
        }
        kinds(&scene.diagnosis())
    };
    assert_eq!(answered(1_300 * MS), [Kind::PmtuBlackHole]);
    assert!(!answered(300 * MS).contains(&Kind::PmtuBlackHole));
}

#[test]
fn a_copy_whose_answer_was_not_due_when_the_capture_ended_was_not_in_vain() {
    for (wait, lost) in [(10 * MS, 1024), (9_000 * MS, 512)] {
        let mut scene = Scene::met(RTT);
        scene.talk(5, RTT);
        let begin = scene.data(CLIENT, MSS);
        for (turn, bytes) in [MSS, MSS, 1024, 512].into_iter().enumerate() {
            scene.pass((210 << turn) * MS);
            scene.again(CLIENT, begin, bytes);
            scene.pass(RTT);
            scene.sack(SERVER, begin, &[]);
        }
        scene.pass(wait);
        scene.sack(SERVER, begin, &[]);
        let found = scene.diagnosis();
        let text = told(&found, Kind::PmtuBlackHole);
        assert!(text.contains(&format!("No segment of {lost} bytes")), "{wait} {text}");
    }
}
