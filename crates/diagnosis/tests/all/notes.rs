//! What routers say of a connection's packets, as evidence.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind, Table, Thresholds};
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::{IcmpNote, Quoted, Segment};
use proptest::prelude::*;

const RTT: i64 = 10 * MS;

/// A router says something about a segment.
fn note(about: &Segment, number: u64, kind: u8, code: u8, mtu: Option<u32>) -> IcmpNote {
    IcmpNote {
        nanoseconds: about.nanoseconds + MS,
        number,
        source: "10.0.0.254".parse().expect("an address"),
        destination: about.source.ip(),
        kind,
        code,
        mtu,
        quoted: Some(Quoted {
            source: about.source,
            destination: about.destination,
            seq: about.seq,
            ip_bytes: about.ip_bytes,
        }),
    }
}

/// What is found if a router says this after the packet of that number, about it.
fn said(scene: &Scene, after: u64, kind: u8, code: u8, mtu: Option<u32>) -> Diagnosis {
    let mut table = Table::new(Thresholds::default());
    for segment in &scene.segments {
        let mut moved = *segment;
        moved.number += u64::from(segment.number > after);
        table.take(&moved);
        if segment.number == after {
            table.take_note(&note(segment, after + 1, kind, code, mtu));
        }
    }
    table.finish()
}

#[test]
fn a_syn_that_the_network_answers_is_refused() {
    let mut scene = Scene::new();
    for _ in 0..3 {
        scene.send(CLIENT, 0, TcpFlags::SYN);
        scene.pass(1000 * MS);
    }
    let found = said(&scene, 1, 3, 13, None);
    assert_eq!(kinds(&found), [Kind::SynLoss, Kind::ConnectionRefused]);
    let finding = one(&found, Kind::ConnectionRefused);
    assert!(
        finding.text.contains("10.0.0.254 said: forbidden by a filter (ICMP, packet 2)"),
        "{}",
        finding.text
    );
    assert_eq!(finding.packets, [2]);
    // A filter said so: no queue is full.
    assert_eq!(one(&found, Kind::SynLoss).remedy, finding.remedy);
}

#[test]
fn a_message_about_a_connection_that_is_made_all_the_same_refuses_nothing() {
    let mut scene = Scene::new();
    scene.send(CLIENT, 0, TcpFlags::SYN);
    scene.pass(1000 * MS);
    scene.meet(RTT);
    scene.talk(3, RTT);
    assert_eq!(kinds(&said(&scene, 1, 3, 1, None)), [Kind::SynLoss]);
}

#[test]
fn a_silence_has_the_message_as_evidence() {
    let mut scene = Scene::met(RTT);
    scene.talk(20, RTT);
    let begin = scene.data(CLIENT, MSS);
    let number = scene.segments.len() as u64;
    scene.pass(230 * MS);
    scene.again(CLIENT, begin, MSS);
    scene.pass(RTT);
    scene.ack(SERVER);
    let found = said(&scene, number, 3, 1, None);
    assert_eq!(kinds(&found), [Kind::TailLoss]);
    let finding = one(&found, Kind::TailLoss);
    assert_eq!(finding.packets, [number, number + 2, number + 1]);
    assert!(finding.text.ends_with(&format!("host unreachable (ICMP, packet {}).", number + 1)));
}

/// As large ones passed, and the other end is not heard any more: the router alone tells that it did not die.
#[test]
fn a_path_that_a_router_says_has_become_smaller() {
    for (mtu, kind) in [(1400, Kind::PmtuBlackHole), (1500, Kind::RtoStall)] {
        let mut scene = Scene::met(RTT);
        for _ in 0..5 {
            scene.data(CLIENT, MSS);
            scene.pass(RTT);
            scene.ack(SERVER);
        }
        let begin = scene.data(CLIENT, MSS);
        let number = scene.segments.len() as u64;
        for wait in [210, 420, 840, 1680] {
            scene.pass(wait * MS);
            scene.again(CLIENT, begin, MSS);
        }
        let found = said(&scene, number, 3, 4, Some(mtu));
        assert_eq!(kinds(&found), [kind], "{found:#?}");
        let text = one(&found, kind).text;
        assert_eq!(text.contains("at most 1400 bytes"), mtu == 1400, "{text}");
        assert_eq!(text.contains("the path MTU has fallen."), mtu == 1400, "{text}");
        // What it spoke of before was another packet.
        assert_eq!(kinds(&said(&scene, number - 2, 3, 4, Some(mtu))), [Kind::RtoStall]);
    }
}

#[test]
fn a_black_hole_that_somebody_spoke_of() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    let begin = scene.data(CLIENT, MSS);
    let number = scene.segments.len() as u64;
    scene.data(CLIENT, MSS);
    for wait in [210, 420, 840] {
        scene.pass(wait * MS);
        scene.again(CLIENT, begin, MSS);
        scene.pass(MS);
        scene.sack(SERVER, begin, &[]);
    }
    let found = said(&scene, number, 3, 4, Some(1400));
    assert_eq!(kinds(&found), [Kind::PmtuBlackHole]);
    let finding = one(&found, Kind::PmtuBlackHole);
    assert!(finding.text.contains("10.0.0.254 asked for packets of at most 1400 bytes"), "{}", finding.text);
    assert!(finding.packets.contains(&(number + 1)));
}

/// A segment of the middle of a connection that the capture does not have.
fn unseen() -> Segment {
    let mut scene = Scene::met(RTT);
    scene.data(CLIENT, MSS);
    *scene.segments.last().expect("just sent")
}

#[test]
fn a_router_that_asks_for_smaller_packets_is_named_without_them() {
    let mut table = Table::new(Thresholds::default());
    table.take_note(&note(&unseen(), 1, 3, 4, Some(1400)));
    table.take_note(&note(&unseen(), 2, 3, 4, Some(1400)));
    let of_datagram = IcmpNote { quoted: None, mtu: None, ..note(&unseen(), 3, 3, 4, None) };
    table.take_note(&of_datagram);
    // Something else was unreachable.
    table.take_note(&note(&unseen(), 4, 3, 1, None));
    let found = table.finish();
    let sizes: Vec<_> =
        found.findings.iter().map(|each| (each.kind, each.count, each.packets.clone())).collect();
    assert_eq!(sizes, [(Kind::PacketTooBig, 1, vec![3]), (Kind::PacketTooBig, 2, vec![1, 2])]);
    let text = &found.findings[1].text;
    assert!(
        text.contains("10.0.0.254 told 10.0.0.1 that a packet of 1500 bytes from 10.0.0.1:40000 to"),
        "{text}"
    );
    assert!(text.contains("the next link carries at most 1400 bytes (ICMP, packet 1)"), "{text}");
    assert!(found.findings[0].text.contains("which size the next link carries it does not say"));
    assert_eq!((found.findings[1].begin_seconds, found.findings[1].connection), (0.0, None));
}

#[test]
fn a_message_that_comes_before_its_packets_is_evidence_for_them() {
    let mut scene = Scene::met(RTT);
    scene.talk(5, RTT);
    let begin = scene.data(CLIENT, MSS);
    for wait in [210, 420, 840] {
        scene.pass(wait * MS);
        scene.again(CLIENT, begin, MSS);
        scene.pass(MS);
        scene.sack(SERVER, begin, &[]);
    }
    let mut table = Table::new(Thresholds::default());
    table.take_note(&note(&scene.segments[0], 1, 3, 4, Some(1400)));
    for segment in &scene.segments {
        table.take(&Segment { number: segment.number + 1, ..*segment });
    }
    let found = table.finish();
    assert_eq!(kinds(&found), [Kind::PmtuBlackHole]);
    assert!(one(&found, Kind::PmtuBlackHole).packets.contains(&1));
}

proptest! {
    /// Each message is counted once, whoever sends how many of which size.
    #[test]
    fn no_message_is_forgotten(sizes in proptest::collection::vec(proptest::option::of(68u32..9000), 1..200)) {
        let mut table = Table::new(Thresholds::default());
        for (place, mtu) in sizes.iter().enumerate() {
            table.take_note(&note(&unseen(), place as u64 + 1, 3, 4, *mtu));
        }
        let found = table.finish();
        prop_assert_eq!(found.findings.iter().map(|each| each.count).sum::<u64>(), sizes.len() as u64);
        for each in &found.findings {
            let said = sizes[each.packets[0] as usize - 1].map_or("does not say".to_owned(), |mtu| format!("{mtu} bytes (ICMP"));
            prop_assert!(each.text.contains(&said), "{}", each.text);
        }
    }
}
