//! Rules of TCP that an end breaks, each beside the capture that only lacks packets.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, diagnosis, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind, Table, Thresholds};
use framegauge_packets::TcpFlags;

const RTT: i64 = 10 * MS;

/// A connection that has sent a few segments.
fn busy() -> Scene {
    let mut scene = Scene::met(RTT);
    for _ in 0..5 {
        scene.data(CLIENT, MSS);
        scene.pass(RTT);
        scene.ack(SERVER);
        scene.pass(10_000);
    }
    scene
}

/// The client's next segment, and its acknowledgement.
fn goes_on(scene: &mut Scene) {
    scene.data(CLIENT, MSS);
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.pass(10_000);
}

fn violation(found: &Diagnosis, words: &str) -> Vec<u64> {
    assert_eq!(kinds(found), [Kind::ProtocolViolation]);
    let finding = one(found, Kind::ProtocolViolation);
    assert!(finding.text.contains(words), "{}", finding.text);
    finding.packets
}

#[test]
fn an_acknowledgement_of_what_was_never_sent() {
    let mut scene = busy();
    scene.sack(SERVER, scene.next[CLIENT].wrapping_add(3 * MSS), &[]);
    scene.pass(5 * MS);
    goes_on(&mut scene);
    let found = scene.diagnosis();
    assert_eq!(violation(&found, "had not been sent"), [14, 15]);
    assert_eq!(found.connections[0].resent_segments, [0, 0]);
}

#[test]
fn a_capture_that_lacks_packets_by_its_own_account_proves_nothing() {
    let mut scene = busy();
    scene.send(CLIENT, 0, TcpFlags(0));
    let mut table = Table::new(Thresholds::default());
    scene.segments.iter().for_each(|segment| table.take(segment));
    table.lacks_packets();
    assert_eq!(kinds(&table.finish()), []);
}

#[test]
fn an_acknowledgement_of_what_the_capture_lacks() {
    let mut scene = busy();
    (0..3).for_each(|_| _ = scene.data(CLIENT, MSS));
    scene.segments.truncate(scene.segments.len() - 3);
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.pass(5 * MS);
    goes_on(&mut scene);
    assert_eq!(kinds(&scene.diagnosis()), [Kind::CaptureLoss]);
}

#[test]
fn an_acknowledgement_that_was_captured_before_its_data_is_neither() {
    let mut scene = busy();
    scene.data(CLIENT, MSS);
    scene.ack(SERVER);
    let last = scene.segments.len() - 1;
    scene.segments.swap(last - 1, last);
    scene.segments[last].nanoseconds += 50_000;
    scene.pass(RTT);
    goes_on(&mut scene);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), []);
    assert_eq!(found.connections[0].resent_segments, [0, 0]);
}

#[test]
fn a_resend_of_what_the_capture_lacks_proves_nothing() {
    let mut scene = busy();
    let begin = scene.data(CLIENT, MSS);
    scene.segments.pop();
    scene.pass(RTT);
    scene.ack(SERVER);
    // It did not reach the sender, whose timer runs out.
    scene.pass(300 * MS);
    scene.again(CLIENT, begin, MSS);
    scene.pass(RTT);
    scene.ack(SERVER);
    goes_on(&mut scene);
    assert!(!kinds(&scene.diagnosis()).contains(&Kind::ProtocolViolation));
}

/// A window of four segments, and two more beyond it, of which the receiver takes some.
fn overrun(takes: u32) -> Scene {
    let mut scene = Scene::new();
    scene.syn.iter_mut().for_each(|syn| syn.window_scale = Some(0));
    scene.window = [(4 * MSS) as u16; 2];
    scene.meet(RTT);
    // Beyond the window of the SYN, which was larger.
    for _ in 0..50 {
        goes_on(&mut scene);
    }
    let places: Vec<u32> = (0..6).map(|_| scene.data(CLIENT, MSS)).collect();
    scene.pass(RTT);
    scene.sack(SERVER, places[0].wrapping_add(takes * MSS), &[]);
    for begin in places.into_iter().skip(takes as usize) {
        scene.pass(300 * MS);
        scene.again(CLIENT, begin, MSS);
        scene.pass(RTT);
        scene.sack(SERVER, begin.wrapping_add(MSS), &[]);
    }
    scene
}

#[test]
fn data_beyond_the_window_that_is_not_taken() {
    let found = overrun(4).diagnosis();
    assert!(kinds(&found).contains(&Kind::ProtocolViolation), "{:?}", kinds(&found));
    assert!(one(&found, Kind::ProtocolViolation).text.contains("beyond the receiver's window"));
}

#[test]
fn data_beyond_the_window_that_is_taken_shows_that_the_window_was_larger() {
    assert!(!kinds(&overrun(6).diagnosis()).contains(&Kind::ProtocolViolation));
}

/// Beside the server: what the client sends has heard of a window that should still be on its way, and the file has its two segments
/// in the wrong order.
#[test]
fn a_window_that_has_passed_allows_what_its_sender_sends() {
    let mut scene = Scene::new();
    scene.window = [512, 114]; // of 128 bytes: ten segments
    scene.meet_at_server(10 * MS);
    let mut heard = 0;
    for _ in 0..6 {
        heard = scene.segments.last().and_then(|last| last.timestamps).map_or(0, |(value, _)| value);
        (0..10).for_each(|_| _ = scene.data(CLIENT, MSS));
        scene.pass(20_000);
        scene.ack(SERVER);
        scene.pass(10 * MS);
    }
    scene.pass(-MS);
    for _ in 0..2 {
        scene.data(CLIENT, MSS);
        let last = scene.segments.last_mut().expect("just sent");
        last.timestamps = last.timestamps.map(|(value, _)| (value, heard));
    }
    let both = scene.segments.len();
    scene.segments.swap(both - 1, both - 2);
    scene.pass(20_000);
    scene.ack(SERVER);
    scene.pass(10 * MS);
    scene.data(CLIENT, MSS);
    scene.pass(20_000);
    scene.ack(SERVER);
    let found = kinds(&scene.diagnosis());
    assert!(!found.contains(&Kind::CaptureLoss) && !found.contains(&Kind::ProtocolViolation), "{found:?}");
}

#[test]
fn a_jump_out_of_the_window_and_back() {
    let mut scene = busy();
    let next = scene.next[CLIENT];
    scene.again(CLIENT, next.wrapping_add(500_000_000), MSS);
    scene.pass(MS);
    goes_on(&mut scene);
    let found = scene.diagnosis();
    assert_eq!(violation(&found, "outside of the window"), [14, 15]);
    assert_eq!(found.connections[0].bytes[0], u64::from(6 * MSS));
}

#[test]
fn a_capture_that_stopped_for_a_while_goes_on_elsewhere() {
    let mut scene = busy();
    scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(500_000_000);
    for _ in 0..3 {
        goes_on(&mut scene);
    }
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::CaptureLoss]);
}

#[test]
fn data_after_a_fin() {
    let mut scene = busy();
    scene.send(CLIENT, 0, TcpFlags::FIN.with(TcpFlags::ACK));
    scene.next[CLIENT] = scene.next[CLIENT].wrapping_add(1);
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.pass(MS);
    scene.data(CLIENT, 100);
    assert_eq!(violation(&scene.diagnosis(), "after a FIN"), [14, 16]);
}

#[test]
fn a_second_start_of_the_same_connection() {
    let mut scene = Scene::new();
    scene.send(CLIENT, 0, TcpFlags::SYN);
    scene.next[CLIENT] += 1;
    scene.got[SERVER] = scene.next[CLIENT];
    scene.pass(RTT);
    let own = scene.next[SERVER];
    scene.send(SERVER, 0, TcpFlags::SYN.with(TcpFlags::ACK));
    scene.pass(MS);
    scene.next[SERVER] = 77_777;
    scene.send(SERVER, 0, TcpFlags::SYN.with(TcpFlags::ACK));
    scene.next[SERVER] = own.wrapping_add(1);
    scene.pass(MS);
    scene.ack(CLIENT);
    scene.talk(3, RTT);
    let found = scene.diagnosis();
    assert!(one(&found, Kind::ProtocolViolation).text.contains("another sequence number"));
}

#[test]
fn a_window_scale_that_is_none() {
    let mut scene = Scene::new();
    scene.syn[SERVER].window_scale = Some(255);
    scene.meet(RTT);
    scene.talk(2, RTT);
    assert_eq!(violation(&scene.diagnosis(), "above 14"), [2]);
}

#[test]
fn flags_that_contradict_each_other() {
    let mut scene = busy();
    scene.send(CLIENT, 0, TcpFlags(0));
    assert_eq!(violation(&scene.diagnosis(), "flags"), [14]);
}

#[test]
fn a_capture_that_lacks_other_packets_proves_nothing_about_sequence_numbers() {
    let mut scene = busy();
    scene.data(CLIENT, MSS);
    scene.segments.pop();
    goes_on(&mut scene);
    scene.sack(SERVER, scene.next[CLIENT].wrapping_add(3 * MSS), &[]);
    scene.pass(5 * MS);
    goes_on(&mut scene);
    let found = diagnosis(&scene.segments);
    assert_eq!(kinds(&found), [Kind::CaptureLoss]);
}

/// Its sender goes on at once with what it had to send, and ends far below what was acknowledged.
#[test]
fn an_acknowledgement_of_what_was_never_sent_in_the_middle_of_a_transfer() {
    for count in [3, 300] {
        let mut scene = busy();
        scene.sack(SERVER, scene.next[CLIENT].wrapping_add(1_000_000), &[]);
        for _ in 0..count {
            scene.pass(20_000);
            scene.data(CLIENT, MSS);
        }
        scene.pass(RTT);
        scene.ack(SERVER);
        let finding = one(&scene.diagnosis(), Kind::ProtocolViolation);
        assert!(
            finding.text.contains("had not been sent") && finding.packets[0] == 14,
            "{count}: {finding:?}"
        );
    }
}

/// No end takes in a SYN with a FIN, so that what it seems to send is no part of the connection.
#[test]
fn a_syn_with_a_fin_opens_and_ends_nothing() {
    let mut scene = busy();
    scene.send(CLIENT, MSS, TcpFlags::SYN.with(TcpFlags::FIN));
    scene.pass(MS);
    (0..5).for_each(|_| goes_on(&mut scene));
    let found = scene.diagnosis();
    assert_eq!(violation(&found, "flags contradicted"), [14]);
    assert_eq!(found.connections.len(), 1);
}
