//! What routers say of a connection's packets, as evidence.

mod scene;

use framegauge_diagnosis::{Diagnosis, Kind, Table, Thresholds};
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::{IcmpNote, Quoted};
use scene::{CLIENT, MS, MSS, SERVER, Scene, kinds, one};

const RTT: i64 = 10 * MS;

/// What is found if a router says this after the packet of that number, about it.
fn said(scene: &Scene, after: u64, kind: u8, code: u8, mtu: Option<u32>) -> Diagnosis {
    let mut table = Table::new(Thresholds::default());
    for segment in &scene.segments {
        let mut moved = *segment;
        moved.number += u64::from(segment.number > after);
        table.take(&moved);
        if segment.number == after {
            table.take_note(&IcmpNote {
                nanoseconds: segment.nanoseconds + MS,
                number: after + 1,
                source: "10.0.0.254".parse().expect("an address"),
                destination: segment.source.ip(),
                kind,
                code,
                mtu,
                quoted: Some(Quoted {
                    source: segment.source,
                    destination: segment.destination,
                    seq: segment.seq,
                    ip_bytes: segment.ip_bytes,
                }),
            });
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
