//! The same causes at taps that are not beside the sender, and what a tap cannot have seen.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, diagnosis, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind};
use framegauge_packets::TcpFlags;

const RTT: i64 = 10 * MS;

/// A handshake at a tap beside the server.
fn met_at_server(window: u16) -> Scene {
    let mut scene = Scene::new();
    scene.window = [window, window];
    scene.meet_at_server(RTT);
    scene
}

/// Bursts of the client that arrive, are acknowledged at once, and let the next one go: an RTT each.
fn bursts(scene: &mut Scene, count: usize, segments: usize) {
    for _ in 0..count {
        for _ in 0..segments {
            scene.data(CLIENT, MSS);
            scene.pass(10_000);
        }
        scene.ack(SERVER);
        scene.pass(RTT);
    }
}

#[test]
fn a_transfer_that_waits_for_its_congestion_window_does_so_at_the_receiver_too() {
    let mut scene = met_at_server(512);
    bursts(&mut scene, 20, 10);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), []);
    assert!(one(&found, Kind::NetworkLimited).lost_seconds > 0.19);
}

#[test]
fn the_receivers_window_limits_at_the_receiver_too() {
    let mut scene = met_at_server(114); // of 128 bytes: ten segments
    bursts(&mut scene, 20, 10);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::ReceiverLimited]);
    assert!(one(&found, Kind::ReceiverLimited).lost_seconds > 0.17);
}

#[test]
fn an_application_that_thinks_is_told_from_the_way_to_it() {
    let mut scene = met_at_server(512);
    for _ in 0..10 {
        scene.data(CLIENT, 100);
        scene.pass(20_000);
        scene.ack(SERVER);
        scene.pass(RTT + 50 * MS);
    }
    let found = scene.diagnosis();
    assert!((one(&found, Kind::ApplicationLimited).lost_seconds - 0.45).abs() < 0.001);
    let network = found.connections[0].time["network_limited"];
    assert!((network - 0.09).abs() < 0.001, "{network}");
}

/// A flight that was lost before the tap: nothing came for a while, then it goes on.
fn lost_before(scene: &mut Scene, is_marked: bool) {
    bursts(scene, 20, 10);
    scene.identification[CLIENT] += 10;
    scene.pass(200 * MS);
    scene.data(CLIENT, MSS);
    scene.pass(20_000);
    scene.ack(SERVER);
    scene.pass(RTT);
    bursts(scene, 20, 10);
    if !is_marked {
        scene.segments.iter_mut().for_each(|segment| segment.identification = None);
    }
}

#[test]
fn a_flight_that_was_lost_before_the_tap_shows_by_its_identifications() {
    let mut scene = met_at_server(512);
    lost_before(&mut scene, true);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::RtoStall]);
    assert!((one(&found, Kind::RtoStall).lost_seconds - 0.2).abs() < 0.001);
}

#[test]
fn without_identifications_nobody_is_blamed_for_it() {
    let mut scene = met_at_server(512);
    lost_before(&mut scene, false);
    let found = kinds(&scene.diagnosis());
    assert!(!found.contains(&Kind::SenderStall) && !found.contains(&Kind::RtoStall), "{found:?}");
}

#[test]
fn where_every_long_rest_ends_in_a_loss_the_short_ones_tell_how_a_sender_counts() {
    let mut scene = met_at_server(512);
    for _ in 0..8 {
        bursts(&mut scene, 4, 2);
        scene.identification[CLIENT] += 3;
        scene.pass(200 * MS);
    }
    bursts(&mut scene, 4, 2);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::RtoStall]);
    assert!(one(&found, Kind::RtoStall).lost_seconds > 1.0);
}

#[test]
fn slow_start_after_a_flight_was_lost_before_the_tap_is_no_restart_after_a_rest() {
    let mut scene = met_at_server(8192);
    bursts(&mut scene, 3, 60);
    scene.identification[CLIENT] += 60;
    scene.pass(400 * MS);
    for size in [1, 2, 4, 8, 16, 32, 60] {
        bursts(&mut scene, 1, size);
    }
    assert!(!kinds(&scene.diagnosis()).contains(&Kind::IdleRestart));
}

#[test]
fn new_data_that_probes_after_a_silence_shows_what_was_lost() {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    let begin = scene.data(CLIENT, MSS);
    (0..9).for_each(|_| _ = scene.data(CLIENT, MSS));
    scene.pass(25 * MS);
    let probe = scene.data(CLIENT, MSS);
    scene.pass(RTT);
    scene.sack(SERVER, begin, &[(probe, probe.wrapping_add(MSS))]);
    scene.pass(10_000);
    for place in 0..10 {
        scene.again(CLIENT, begin.wrapping_add(place * MSS), MSS);
    }
    scene.pass(RTT);
    scene.ack(SERVER);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::RtoStall, Kind::FastRetransmit]);
    assert!((one(&found, Kind::RtoStall).lost_seconds - 0.025).abs() < 1e-9);
}

#[test]
fn an_answer_to_the_first_copy_shows_that_the_repeat_was_needless() {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    let begin = scene.data(CLIENT, MSS);
    let stamp = scene.segments.last().expect("data").timestamps.expect("on").0;
    scene.pass(230 * MS);
    scene.again(CLIENT, begin, MSS);
    scene.pass(MS);
    scene.ack(SERVER);
    scene.segments.last_mut().expect("just sent").timestamps = Some(((scene.now / MS) as u32, stamp));
    scene.pass(10_000);
    scene.data(CLIENT, MSS);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::SpuriousRetransmit]);
    assert!((one(&found, Kind::SpuriousRetransmit).lost_seconds - 0.23).abs() < 1e-9);
}

#[test]
fn an_answer_to_a_request_that_follows_a_repair_was_not_waiting() {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    let begin = scene.data(CLIENT, 700);
    scene.pass(25 * MS);
    scene.again(CLIENT, begin, 700);
    scene.pass(RTT);
    scene.got[SERVER] = scene.next[CLIENT];
    scene.data(SERVER, 100);
    scene.pass(10_000);
    scene.got[CLIENT] = scene.next[SERVER];
    scene.data(CLIENT, 700);
    scene.pass(RTT);
    scene.ack(SERVER);
    assert_eq!(kinds(&scene.diagnosis()), [Kind::TailLoss]);
}

#[test]
fn a_repair_that_is_lost_and_revealed_again_is_a_double_loss_without_a_timeout() {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    let begin = scene.data(CLIENT, MSS);
    (0..5).for_each(|_| _ = scene.data(CLIENT, MSS));
    for repeat in 0..2 {
        scene.pass(RTT);
        scene.sack(SERVER, begin, &[(begin.wrapping_add(MSS), begin.wrapping_add(MSS * (6 + repeat)))]);
        scene.pass(10_000);
        scene.again(CLIENT, begin, MSS);
        scene.data(CLIENT, MSS);
    }
    scene.pass(RTT);
    scene.ack(SERVER);
    assert_eq!(kinds(&scene.diagnosis()), [Kind::FastRetransmit, Kind::DoubleLoss]);
}

#[test]
fn a_mirror_port_shows_a_whole_burst_before_its_copies() {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    for _ in 0..10 {
        scene.data(CLIENT, MSS);
    }
    scene.pass(50_000);
    // As with IPv6.
    scene.segments.iter_mut().for_each(|segment| segment.identification = None);
    let copies: Vec<_> = scene.segments[scene.segments.len() - 10..].to_vec();
    scene.segments.extend(copies.into_iter().map(|mut copy| {
        copy.nanoseconds += 50_000;
        copy
    }));
    scene.pass(RTT);
    scene.ack(SERVER);
    assert_eq!(kinds(&scene.diagnosis()), [Kind::CaptureDuplicates]);
}

#[test]
fn a_clock_that_is_set_back_goes_back_once() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    scene.pass(-2_000 * MS);
    scene.talk(5, RTT);
    assert_eq!(one(&scene.diagnosis(), Kind::CaptureMisordered).count, 1);
}

#[test]
fn records_in_the_wrong_order_are_no_reordering() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    for _ in 0..4 {
        scene.data(CLIENT, MSS);
        scene.pass(10_000);
    }
    scene.pass(RTT);
    scene.ack(SERVER);
    let mut segments = scene.segments.clone();
    let count = segments.len();
    segments.swap(count - 4, count - 3);
    assert_eq!(kinds(&diagnosis(&segments)), [Kind::CaptureMisordered]);
}

#[test]
fn a_window_below_a_segment_is_waited_for_by_the_receivers_fault() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    scene.data(CLIENT, MSS);
    scene.pass(RTT);
    scene.window[SERVER] = 5; // of 128 bytes
    scene.ack(SERVER);
    scene.pass(300 * MS);
    scene.data(CLIENT, 640);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::ReceiverLimited]);
}

#[test]
fn a_delayed_acknowledgement_is_not_waited_for_where_the_window_has_no_room() {
    let mut scene = Scene::met(2 * MS);
    scene.talk(3, 2 * MS);
    scene.window[SERVER] = 12; // of 128 bytes
    scene.ack(SERVER);
    for _ in 0..6 {
        scene.data(CLIENT, 1400);
        scene.pass(42 * MS);
        scene.ack(SERVER);
        scene.pass(10_000);
    }
    assert_eq!(kinds(&scene.diagnosis()), [Kind::ReceiverLimited]);
}

/// Linux answers a SYN with identification 0, and counts from anywhere then: also from where 0 would be a later one.
#[test]
fn the_identification_of_a_syn_says_nothing_about_those_that_follow() {
    for start in [1, 30_000, 61_500, 65_500] {
        let mut scene = met_at_server(512);
        scene.segments.iter_mut().for_each(|segment| segment.identification = Some(0));
        scene.identification[CLIENT] = start;
        bursts(&mut scene, 20, 10);
        scene.identification[CLIENT] = scene.identification[CLIENT].wrapping_add(10).max(1);
        scene.pass(200 * MS);
        scene.data(CLIENT, MSS);
        scene.pass(20_000);
        scene.ack(SERVER);
        scene.pass(RTT);
        bursts(&mut scene, 20, 10);
        assert_eq!(kinds(&scene.diagnosis()), [Kind::RtoStall], "from {start}");
    }
}

/// Two pauses in the middle of data that is no end of a write, before anybody knows how the sender counts.
#[test]
fn pauses_of_the_beginning_are_the_senders_own_once_it_is_known_how_it_counts() {
    let mut scene = met_at_server(512);
    for _ in 0..8 {
        scene.send(CLIENT, MSS, TcpFlags::ACK);
        scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(MSS);
        scene.pass(20_000);
        scene.ack(SERVER);
        scene.pass(RTT + 90 * MS);
    }
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::SenderStall]);
    assert!(one(&found, Kind::SenderStall).lost_seconds > 0.55);
    scene.segments.iter_mut().for_each(|segment| segment.identification = None);
    assert_eq!(kinds(&scene.diagnosis()), [Kind::Unexplained]);
}

/// The first flight after the handshake arrives, the next is lost before the tap.
#[test]
fn a_loss_of_the_beginning_shows_once_it_is_known_how_a_sender_counts() {
    let mut scene = met_at_server(512);
    for _ in 0..10 {
        scene.send(CLIENT, MSS, TcpFlags::ACK);
        scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(MSS);
        scene.pass(10_000);
    }
    scene.ack(SERVER);
    scene.pass(RTT + 250 * MS);
    scene.identification[CLIENT] += 20;
    bursts(&mut scene, 20, 4);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::RtoStall]);
    assert!((one(&found, Kind::RtoStall).lost_seconds - 0.25).abs() < 0.002);
    scene.segments.iter_mut().for_each(|segment| segment.identification = None);
    assert_eq!(kinds(&scene.diagnosis()), [Kind::Unexplained]);
}

/// Beside the receiver, of a sender without timestamps: rounds that fill a window of ten segments, each a little sooner than
/// the handshake lets expect. Once two segments are lost before the tap: what comes first lies in the new window, and beyond
/// the old one.
#[test]
fn what_goes_beyond_the_window_shows_that_its_sender_had_heard_of_the_next() {
    let mut scene = met_at_server(114);
    for round in 0..20 {
        let begin = scene.next[CLIENT];
        let lost = if round == 10 { 2 } else { 0 };
        scene.next[CLIENT] = begin.wrapping_add(lost * MSS);
        (lost..9).for_each(|_| _ = scene.data(CLIENT, MSS));
        if lost > 0 {
            scene.sack(SERVER, begin, &[(begin.wrapping_add(lost * MSS), scene.next[CLIENT])]);
            scene.pass(RTT - MS / 2);
            (0..lost).for_each(|place| scene.again(CLIENT, begin.wrapping_add(place * MSS), MSS));
        }
        scene.ack(SERVER);
        scene.pass(RTT - MS / 2);
    }
    scene.segments.iter_mut().for_each(|segment| segment.timestamps = None);
    let found = kinds(&scene.diagnosis());
    assert!(found.contains(&Kind::FastRetransmit), "{found:?}");
    assert!(!found.contains(&Kind::CaptureLoss) && !found.contains(&Kind::ProtocolViolation), "{found:?}");
}

/// Beside the client: an answer loses its second flight before the tap. Only what comes later shows that the server counts by
/// one: its SYN-ACK has no number, and nothing rested before.
fn lost_in_slow_start(counts: bool) -> Vec<Kind> {
    let mut scene = Scene::met(RTT);
    scene.segments[1].identification = Some(0);
    let flights = |scene: &mut Scene, sizes: &[u32]| {
        for (round, size) in sizes.iter().enumerate() {
            if !counts {
                scene.identification[SERVER] += 7 * round as u16;
            }
            (0..*size).for_each(|_| _ = scene.data(SERVER, MSS));
            scene.pass(20_000);
            scene.ack(CLIENT);
            scene.pass(RTT);
        }
    };
    scene.pass(RTT);
    flights(&mut scene, &[10]);
    scene.identification[SERVER] += 20;
    scene.pass(200 * MS);
    scene.data(SERVER, MSS);
    scene.pass(20_000);
    scene.ack(CLIENT);
    // What lies between had not come here, and is sent again.
    scene.pass(RTT);
    flights(&mut scene, &[2, 4, 8, 16, 20, 20, 20]);
    kinds(&scene.diagnosis())
}

#[test]
fn a_flight_that_was_lost_before_the_tap_shows_later_if_the_sender_turns_out_to_count() {
    assert_eq!(lost_in_slow_start(true), [Kind::RtoStall]);
    assert!(!lost_in_slow_start(false).contains(&Kind::RtoStall));
}

/// Two segments that left within a tick of their sender's clock, the later place first. `heard`: by how much what the second
/// one echoes is newer.
fn filled_within_a_tick(heard: u32) -> Vec<Kind> {
    let mut scene = met_at_server(512);
    bursts(&mut scene, 20, 10);
    let begin = scene.next[CLIENT];
    scene.next[CLIENT] = begin.wrapping_add(MSS);
    let stamp = (scene.now / MS) as u32;
    for (place, echo) in [(begin.wrapping_add(MSS), 7), (begin, 7 + heard)] {
        if place == begin {
            scene.pass(RTT / 5);
            scene.again(CLIENT, begin, MSS);
        } else {
            scene.data(CLIENT, MSS);
        }
        let last = scene.segments.last_mut().expect("just sent");
        last.timestamps = Some((stamp, echo));
    }
    scene.ack(SERVER);
    scene.pass(RTT);
    bursts(&mut scene, 5, 10);
    scene.segments.iter_mut().for_each(|segment| segment.identification = None);
    kinds(&scene.diagnosis())
}

#[test]
fn what_echoes_a_newer_timestamp_was_sent_later_and_not_overtaken() {
    assert_eq!(filled_within_a_tick(0), [Kind::Reordering]);
    assert_eq!(filled_within_a_tick(1), []);
}

/// Segments in pairs with pauses between them, as a sender paces them; of every third the second has PSH. Without the first
/// packets of the file, or without identifications. Without a handshake 536 bytes are full (RFC 9293 section 3.7.1).
fn paced(cut: usize, is_numbered: bool) -> Diagnosis {
    let mut scene = Scene::met(RTT);
    for pair in 0..30 {
        for segment in 0..2 {
            let flags =
                if pair % 3 == 2 && segment == 1 { TcpFlags::ACK.with(TcpFlags::PSH) } else { TcpFlags::ACK };
            scene.send(CLIENT, MSS, flags);
            scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(MSS);
            scene.pass(MS);
        }
        scene.pass(RTT);
        scene.ack(SERVER);
        scene.pass(3 * RTT);
    }
    let mut segments = scene.segments.split_off(cut);
    for segment in segments.iter_mut().filter(|_| !is_numbered) {
        segment.identification = None;
    }
    diagnosis(&segments)
}

#[test]
fn a_sender_that_paces_itself_pauses_behind_a_push_as_well() {
    let found = paced(0, true);
    assert_eq!(kinds(&found), [Kind::SenderStall], "{found:#?}");
    // The first of them with PSH comes before it is known that there are many.
    assert!(one(&found, Kind::SenderStall).count >= 28, "{found:#?}");
}

#[test]
fn without_a_handshake_nobody_knows_whether_the_sender_paused_or_the_way() {
    for is_numbered in [true, false] {
        let found = paced(3, is_numbered);
        assert_eq!(kinds(&found), [], "{is_numbered}");
        // It had more to send: it was not the application.
        assert!(one(&found, Kind::NetworkLimited).lost_seconds > 0.9, "{is_numbered} {found:#?}");
    }
    assert_eq!(kinds(&paced(0, false)), [Kind::SenderStall]);
}

/// Only the server's packets, from its SYN-ACK on or from the first data: its timer runs out either way.
#[test]
fn a_half_file_that_begins_with_a_syn_ack_is_no_handshake_to_the_end() {
    let mut scene = Scene::new();
    scene.meet_at_server(RTT);
    for _ in 0..5 {
        (0..4).for_each(|_| _ = scene.data(SERVER, MSS));
        scene.pass(RTT);
        scene.ack(CLIENT);
    }
    let begin = scene.data(SERVER, MSS);
    for turn in 0..4 {
        scene.pass((230 << turn) * MS);
        scene.again(SERVER, begin, MSS);
    }
    scene.pass(RTT);
    scene.ack(CLIENT);
    scene.data(SERVER, MSS);
    for skipped in [0, 1] {
        let own = scene.segments.iter().filter(|one| one.source == scene.ends[SERVER]).skip(skipped);
        let found = diagnosis(&own.copied().collect::<Vec<_>>());
        assert_eq!(kinds(&found), [Kind::RtoStall, Kind::HalfCapture], "{skipped}");
        assert!((one(&found, Kind::RtoStall).lost_seconds - 3.45).abs() < 0.1, "{skipped} {found:#?}");
    }
}

/// Only one end's packets: one that repeats the same until the end was not answered; one that goes on behind it was.
#[test]
fn a_half_file_shows_by_what_is_repeated_that_nobody_answered() {
    for place in [0, 1] {
        let mut scene = Scene::met(RTT);
        scene.data(CLIENT, 100);
        scene.pass(RTT);
        let begin = scene.data(CLIENT, MSS);
        (0..3).for_each(|_| _ = scene.data(CLIENT, MSS));
        for turn in 0..4 {
            scene.pass((230 << turn) * MS);
            scene.again(CLIENT, begin.wrapping_add(turn * place * MSS), MSS);
        }
        let own = scene.segments.iter().filter(|one| one.source == scene.ends[CLIENT]);
        let found = diagnosis(&own.copied().collect::<Vec<_>>());
        let finding = one(&found, Kind::RtoStall);
        assert_eq!(finding.text.contains("`framegauge check` tells"), place == 0, "{finding:#?}");
        assert_eq!(finding.remedy.contains("rto_min"), place == 1, "{finding:#?}");
    }
}

/// Beside the receiver, in the middle of a connection: bursts an RTT apart, of one of which the first segment does not come.
/// It fills its hole when it was sent again, or never.
fn first_of_a_burst_is_lost(rtt: i64, is_filled: bool) -> Vec<Kind> {
    let mut scene = Scene::new();
    let burst = |scene: &mut Scene| {
        (0..4).for_each(|_| _ = scene.data(CLIENT, MSS));
        scene.pass(20_000);
        scene.ack(SERVER);
        scene.pass(rtt);
    };
    (0..10).for_each(|_| burst(&mut scene));
    let hole = scene.next[CLIENT];
    scene.next[CLIENT] = hole.wrapping_add(MSS);
    let behind = scene.next[CLIENT];
    for _ in 0..3 {
        scene.data(CLIENT, MSS);
        scene.pass(20_000);
        scene.sack(SERVER, hole, &[(behind, scene.next[CLIENT])]);
    }
    scene.pass(rtt);
    if is_filled {
        scene.again(CLIENT, hole, MSS);
    }
    scene.pass(20_000);
    scene.ack(SERVER);
    scene.pass(rtt);
    (0..10).for_each(|_| burst(&mut scene));
    for segment in &mut scene.segments {
        (segment.timestamps, segment.identification) = (None, None);
    }
    kinds(&scene.diagnosis())
}

#[test]
fn without_a_handshake_the_rest_before_a_hole_may_be_an_rtt() {
    for rtt in [5 * MS, 20 * MS, 150 * MS] {
        assert_eq!(first_of_a_burst_is_lost(rtt, true), [Kind::FastRetransmit], "{rtt}");
        assert_eq!(first_of_a_burst_is_lost(rtt, false), [Kind::CaptureLoss], "{rtt}");
    }
}
