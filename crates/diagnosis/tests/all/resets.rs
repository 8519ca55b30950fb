//! Resets: whose they are, and where that cannot be told.

use crate::scene::{CLIENT, MS, SERVER, Scene, diagnosis, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind};
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;
use proptest::prelude::*;

const RTT: i64 = 10 * MS;

/// What is different about a reset.
type Change = fn(&mut Segment);

/// A conversation that a reset in the name of the server ends, as `change` makes it.
fn reset(change: impl Fn(&mut Segment)) -> Scene {
    let mut scene = Scene::met(RTT);
    scene.talk(8, RTT);
    scene.pass(MS);
    scene.send(SERVER, 0, TcpFlags::RST.with(TcpFlags::ACK));
    change(scene.segments.last_mut().expect("just sent"));
    scene
}

fn text(found: &Diagnosis, kind: Kind) -> String {
    one(found, kind).text
}

#[test]
fn a_reset_like_the_packets_before_it_is_that_of_the_end() {
    let found = reset(|_| {}).diagnosis();
    assert_eq!(kinds(&found), [Kind::Reset]);
    assert!(text(&found, Kind::Reset).contains("by a reset of the server: nothing about it differs"));
}

#[test]
fn a_reset_from_another_place_was_injected() {
    let found = reset(|own| own.hops = 48).diagnosis();
    assert_eq!(kinds(&found), [Kind::InjectedReset]);
    let text = text(&found, Kind::InjectedReset);
    assert!(
        text.contains("in the name of the server") && text.contains("its TTL is 48, that of the"),
        "{text}"
    );
}

#[test]
fn another_first_ttl_of_the_same_host_is_no_sign() {
    for hops in [32, 128, 255] {
        let found = reset(|own| own.hops = hops).diagnosis();
        assert_eq!(kinds(&found), [Kind::Reset], "{hops}");
    }
}

#[test]
fn one_weak_sign_is_too_little_and_two_are_enough() {
    let weak: [(&str, Change); 4] = [
        ("its TTL is 63", |own| own.hops = 63),
        ("identification", |own| own.identification = own.identification.map(|id| id.wrapping_add(20_000))),
        ("window", |own| own.window = 60_000),
        ("1460 bytes beyond", |own| own.seq = own.seq.wrapping_add(1460)),
    ];
    for (place, (word, change)) in weak.iter().enumerate() {
        let found = reset(change).diagnosis();
        assert_eq!(kinds(&found), [Kind::Reset], "{word}");
        let said = text(&found, Kind::Reset);
        assert!(said.contains("cannot be told") && said.contains(word), "{said}");
        for (other_word, other) in &weak[place + 1..] {
            let found = reset(|own| {
                change(own);
                other(own);
            })
            .diagnosis();
            let said = text(&found, Kind::InjectedReset);
            assert!(said.contains(word) && said.contains(other_word), "{said}");
        }
    }
}

#[test]
fn a_window_of_0_and_an_identification_of_0_are_those_of_a_reset_without_a_socket() {
    let found =
        reset(|own| (own.window, own.identification, own.timestamps) = (0, Some(0), None)).diagnosis();
    assert_eq!(kinds(&found), [Kind::Reset]);
    assert!(text(&found, Kind::Reset).contains("nothing about it differs"));
}

#[test]
fn an_end_that_goes_on_has_not_reset() {
    let mut scene = reset(|_| {});
    scene.pass(3 * RTT);
    let number = scene.segments.len() + 1;
    scene.data(SERVER, 1000);
    scene.pass(20_000);
    scene.ack(CLIENT);
    scene.talk(3, RTT);
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::InjectedReset]);
    let said = text(&found, Kind::InjectedReset);
    assert!(said.contains(&format!("that end went on after it (packet {number})")), "{said}");
}

#[test]
fn what_the_other_end_does_not_heed_cuts_nothing_off() {
    for heeded in [true, false] {
        let mut scene = reset(|own| own.seq = own.seq.wrapping_add(90_000_000));
        scene.pass(3 * RTT);
        scene.data(SERVER, 1000);
        scene.pass(20_000);
        if !heeded {
            scene.ack(CLIENT);
            scene.talk(3, RTT);
        }
        let found = scene.diagnosis();
        assert_eq!(kinds(&found), [Kind::InjectedReset]);
        let said = text(&found, Kind::InjectedReset);
        assert_eq!(said.contains("cut nothing off"), !heeded, "{said}");
        assert_eq!(said.contains("The connection was cut off"), heeded, "{said}");
    }
}

#[test]
fn who_only_asks_whether_somebody_listens_cuts_nothing_off() {
    let asked = |wait: i64, by: usize, bytes: u32| {
        let mut scene = Scene::met(RTT);
        if bytes > 0 {
            scene.data(CLIENT, bytes);
        }
        scene.pass(wait);
        scene.send(by, 0, TcpFlags::RST.with(TcpFlags::ACK));
        kinds(&scene.diagnosis())
    };
    assert_eq!(asked(MS, CLIENT, 0), []);
    // One that has waited, has asked for something, or is the server, may have had a reason.
    assert_eq!(asked(5_000 * MS, CLIENT, 0), [Kind::Reset]);
    assert_eq!(asked(MS, CLIENT, 100), [Kind::Reset]);
    assert_eq!(asked(MS, SERVER, 0), [Kind::Reset]);
}

/// Connections of one client to many servers, each ended by the client's reset.
fn many(end: impl Fn(&mut Scene)) -> Vec<Kind> {
    let mut all = Vec::new();
    for server in 0..20 {
        let mut scene = Scene::between("10.0.0.1:40000", &format!("10.0.1.{server}:80"));
        scene.now += i64::from(server) * 40 * MS;
        end(&mut scene);
        all.append(&mut scene.segments);
    }
    all.sort_by_key(|segment| segment.nanoseconds);
    (1..).zip(&mut all).for_each(|(number, segment)| segment.number = number);
    kinds(&diagnosis(&all))
}

/// Health checks, open or half open, refusals, and clients that reset behind the server's FIN: no storm, and nothing is cut off.
#[test]
fn resets_that_cut_nothing_off_are_no_storm() {
    let reset = TcpFlags::RST.with(TcpFlags::ACK);
    let checked = many(|scene| {
        scene.meet(RTT);
        scene.send(CLIENT, 0, reset);
    });
    assert_eq!(checked, []);
    let half_open = many(|scene| {
        scene.meet(RTT);
        scene.segments.pop();
        scene.send(CLIENT, 0, TcpFlags::RST);
    });
    assert_eq!(half_open, []);
    let refused = many(|scene| {
        scene.meet(RTT);
        scene.segments.truncate(1);
        scene.send(SERVER, 0, reset);
    });
    assert_eq!(refused, [Kind::ConnectionRefused; 20]);
    let had_all = |has_all: bool| {
        many(|scene| {
            scene.meet(RTT);
            scene.talk(2, RTT);
            scene.send(SERVER, 0, TcpFlags::FIN.with(TcpFlags::ACK));
            scene.next[SERVER] = scene.next[SERVER].wrapping_add(u32::from(has_all));
            scene.pass(20_000);
            scene.ack(CLIENT);
            scene.pass(MS);
            scene.send(CLIENT, 0, reset);
        })
    };
    assert_eq!(had_all(true), []);
    assert!(had_all(false).contains(&Kind::ResetStorm));
}

#[test]
fn what_was_under_way_when_an_end_reset_proves_nothing() {
    let mut scene = reset(|_| {});
    scene.pass(RTT / 2);
    scene.data(SERVER, 1000);
    scene.pass(5 * RTT);
    // The other end has not heard of it, and is told again.
    scene.data(CLIENT, 100);
    scene.pass(RTT);
    scene.send(SERVER, 0, TcpFlags::RST);
    assert_eq!(kinds(&scene.diagnosis()), [Kind::Reset]);
}

#[test]
fn with_too_few_packets_nobody_is_accused() {
    let mut scene = Scene::met(RTT);
    scene.pass(MS);
    scene.send(SERVER, 0, TcpFlags::RST.with(TcpFlags::ACK));
    scene.segments.last_mut().expect("just sent").hops = 3;
    let found = scene.diagnosis();
    assert_eq!(kinds(&found), [Kind::Reset]);
    assert!(text(&found, Kind::Reset).contains("too few packets"));
}

proptest! {
    /// An end whose packets come by ways of different lengths accuses nobody by its TTL.
    #[test]
    fn where_ttls_differ_anyway_they_are_no_sign(ttls in proptest::collection::vec(40u8..64, 4..30), last: u8) {
        prop_assume!(ttls.iter().any(|ttl| *ttl != ttls[0]));
        let mut scene = reset(|own| own.hops = last);
        let (server, count) = (scene.ends[SERVER], scene.segments.len());
        let mut place = 0;
        for segment in scene.segments[..count - 1].iter_mut().filter(|segment| segment.source == server) {
            segment.hops = ttls[place % ttls.len()];
            place += 1;
        }
        let seen: std::collections::BTreeSet<u8> = (0..place).map(|place| ttls[place % ttls.len()]).collect();
        prop_assume!(seen.len() > 1);
        prop_assert!(!kinds(&diagnosis(&scene.segments)).contains(&Kind::InjectedReset));
    }
}
