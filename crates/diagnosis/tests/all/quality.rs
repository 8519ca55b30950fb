//! What a capture cannot tell: cut packets, and checksums that a NIC was still to fill in.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, kinds, one};
use framegauge_diagnosis::{Cut, Kind, Table, Thresholds};

const RTT: i64 = 10 * MS;

/// What is found if `cut` says how each packet was cut, by its number.
fn cut(scene: &Scene, cut: impl Fn(u64) -> Option<Cut>) -> framegauge_diagnosis::Diagnosis {
    let mut table = Table::new(Thresholds::default());
    for segment in &scene.segments {
        match cut(segment.number) {
            Some(Cut::Headers) => table.take_cut(Cut::Headers, segment.number),
            Some(other) => {
                table.take(segment);
                table.take_cut(other, segment.number);
            }
            None => table.take(segment),
        }
    }
    table.finish()
}

#[test]
fn payloads_that_are_cut_lose_nothing() {
    let mut scene = Scene::met(RTT);
    scene.talk(3, RTT);
    let found = cut(&scene, |number| (number > 3).then_some(Cut::Payload));
    assert_eq!(kinds(&found), [Kind::Truncated]);
    let finding = one(&found, Kind::Truncated);
    assert_eq!((finding.count, finding.connection), (9, None));
    assert_eq!(finding.packets, (4..=12).collect::<Vec<u64>>());
    assert!(finding.text.contains("All headers are whole"), "{}", finding.text);
}

#[test]
fn options_and_headers_that_are_cut_are_told_apart() {
    let mut scene = Scene::met(RTT);
    scene.talk(3, RTT);
    let found = cut(&scene, |number| match number {
        5 => Some(Cut::Options),
        12 => Some(Cut::Headers),
        _ => Some(Cut::Payload),
    });
    let finding = one(&found, Kind::Truncated);
    assert_eq!((finding.count, finding.packets), (12, vec![5, 12]));
    assert!(finding.text.contains("TCP options") && finding.text.contains("in no connection"));
}

/// A conversation in which the checksums of an end's packets are as `is_right` says, by their place among them.
fn checked(end: usize, is_right: impl Fn(usize) -> bool) -> Vec<Kind> {
    let mut scene = Scene::met(RTT);
    scene.talk(10, RTT);
    let own = scene.ends[end];
    let mut place = 0;
    for segment in &mut scene.segments {
        segment.checksum_is_right = Some(segment.source != own || is_right(place));
        place += usize::from(segment.source == own);
    }
    kinds(&scene.diagnosis())
}

#[test]
fn checksums_of_the_capturing_host_are_left_to_its_nic() {
    for end in [CLIENT, SERVER] {
        assert_eq!(checked(end, |_| false), [Kind::ChecksumOffload]);
        assert_eq!(checked(end, |_| true), []);
    }
}

#[test]
fn a_few_that_are_wrong_were_damaged() {
    assert_eq!(checked(CLIENT, |place| place != 7), []);
}

#[test]
fn aggregates_alone_may_have_them_open() {
    let mut scene = Scene::met(RTT);
    for _ in 0..5 {
        for bytes in [MSS, 10 * MSS] {
            scene.data(SERVER, bytes);
            scene.pass(RTT);
            scene.ack(CLIENT);
        }
    }
    for segment in &mut scene.segments {
        segment.checksum_is_right = Some(segment.payload_bytes <= MSS);
    }
    assert_eq!(kinds(&scene.diagnosis()), [Kind::Aggregates, Kind::ChecksumOffload]);
}

#[test]
fn nobody_who_answers_says_nothing_about_checksums() {
    let mut scene = Scene::new();
    for _ in 0..4 {
        scene.send(CLIENT, 0, framegauge_packets::TcpFlags::SYN);
        scene.pass(1000 * MS);
    }
    scene.segments.iter_mut().for_each(|segment| segment.checksum_is_right = Some(false));
    assert_eq!(kinds(&scene.diagnosis()), [Kind::SynLoss]);
}

/// A conversation and then a request whose first copies have a wrong checksum; `repaired`: the last copy has a right one.
fn damaged(copies: u32, repaired: bool, hops: u8) -> framegauge_diagnosis::Diagnosis {
    let mut scene = Scene::met(RTT);
    scene.hops = hops;
    scene.talk(5, RTT);
    let right = scene.segments.len();
    let begin = scene.data(CLIENT, MSS);
    for turn in 0..copies {
        scene.pass((210 * MS) << turn);
        scene.again(CLIENT, begin, MSS);
    }
    let last = scene.segments.len() - 1;
    if repaired {
        scene.pass(RTT);
        scene.ack(SERVER);
        scene.pass(MS);
        scene.talk(3, RTT);
    }
    for (place, segment) in scene.segments.iter_mut().enumerate() {
        segment.checksum_is_right = Some(!(right..=last).contains(&place) || (repaired && place == last));
    }
    scene.diagnosis()
}

#[test]
fn what_is_wrong_on_the_wire_is_discarded() {
    for (copies, repaired) in [(4, false), (3, true), (1, true)] {
        let found = damaged(copies, repaired, 64);
        assert_eq!(kinds(&found), [Kind::BadChecksum], "{copies} {repaired} {found:#?}");
        let finding = one(&found, Kind::BadChecksum);
        assert_eq!(finding.count, u64::from(copies + 1) - u64::from(repaired));
        assert_eq!(finding.packets.len() as u64, finding.count);
        let waited = 0.21 * f64::from((1u32 << copies) - 1);
        assert!((finding.lost_seconds - waited).abs() < 1e-6, "{}", finding.lost_seconds);
        assert!(finding.text.contains("the receiver discards them"), "{}", finding.text);
    }
}

#[test]
fn beside_the_sender_a_loss_is_a_loss_whatever_its_nic_still_fills_in() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    let begin = scene.data(CLIENT, 700);
    scene.pass(230 * MS);
    scene.again(CLIENT, begin, 700);
    scene.pass(RTT);
    scene.ack(SERVER);
    let own = scene.ends[CLIENT];
    scene.segments.iter_mut().for_each(|segment| segment.checksum_is_right = Some(segment.source != own));
    assert_eq!(kinds(&scene.diagnosis()), [Kind::TailLoss, Kind::ChecksumOffload]);
}

#[test]
fn syns_that_a_router_has_passed_on_wrong_are_not_a_nics() {
    for (hops, word) in
        [(64, "at the sender, the NIC still fills it in"), (61, "a router had passed them on")]
    {
        let mut scene = Scene::new();
        scene.hops = hops;
        for _ in 0..4 {
            scene.send(CLIENT, 0, framegauge_packets::TcpFlags::SYN);
            scene.pass(1000 * MS);
        }
        scene.segments.iter_mut().for_each(|segment| segment.checksum_is_right = Some(false));
        let found = scene.diagnosis();
        assert!(one(&found, Kind::SynLoss).text.contains(word), "{found:#?}");
    }
}

/// A receiver that raises its window while it lacks a segment, in a capture that ends behind the timestamps. `more`: bytes of
/// options that each of these acknowledgements has more than others.
fn cut_behind_timestamps(more: u8, is_cut: bool, count: usize) -> framegauge_diagnosis::Diagnosis {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    let begins: Vec<u32> = (0..6).map(|_| scene.data(CLIENT, MSS)).collect();
    scene.pass(RTT);
    for _ in 0..count {
        scene.window[SERVER] += 8;
        scene.sack(SERVER, begins[0], &[]);
        let last = scene.segments.last_mut().expect("just sent");
        (last.option_bytes, last.options_are_cut) = (12 + more, is_cut);
    }
    scene.again(CLIENT, begins[0], MSS);
    scene.pass(RTT);
    scene.ack(SERVER);
    scene.diagnosis()
}

#[test]
fn acknowledgements_whose_sack_was_cut_off_reveal_a_loss_whatever_their_window() {
    for count in [1, 5] {
        assert_eq!(kinds(&cut_behind_timestamps(12, true, count)), [Kind::FastRetransmit]);
    }
    // Windows alone reveal nothing (RFC 5681 section 2), and neither do options that are too short for SACK.
    assert_eq!(kinds(&cut_behind_timestamps(0, false, 5)), []);
    assert_eq!(kinds(&cut_behind_timestamps(8, true, 5)), []);
}

/// Flights of ten segments that are acknowledged by two, from a handshake on. The file begins with this acknowledgement of the
/// third flight.
#[test]
fn what_was_under_way_when_a_file_began_is_not_missing_in_it() {
    for first in 0..5 {
        let mut scene = Scene::met(RTT);
        let mut begin = 0;
        for flight in 0..6 {
            let una = scene.next[CLIENT];
            (0..10).for_each(|_| _ = scene.data(CLIENT, MSS));
            scene.pass(RTT);
            for pair in 1..=5 {
                if (flight, pair) == (3, first + 1) {
                    begin = scene.segments.len();
                }
                scene.sack(SERVER, una.wrapping_add(2 * pair * MSS), &[]);
                // An acknowledgement lets go on, while the rest is under way.
                scene.data(CLIENT, MSS);
                scene.pass(MS / 10);
            }
            scene.pass(RTT);
            scene.ack(SERVER);
            scene.pass(MS / 10);
        }
        scene.segments.drain(..begin);
        assert_eq!(kinds(&scene.diagnosis()), [], "{first}");
    }
}
