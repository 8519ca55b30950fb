//! What many connections together tell: flows that starve, and one that is far slower than its peers.

use crate::scene::{CLIENT, MS, MSS, SERVER, Scene, diagnosis, kinds, one};
use framegauge_diagnosis::{Diagnosis, Kind};
use framegauge_packets::capture::Segment;

/// All scenes in one capture.
fn joined(scenes: Vec<Scene>) -> Diagnosis {
    let mut all: Vec<Segment> = scenes.into_iter().flat_map(|scene| scene.segments).collect();
    all.sort_by_key(|segment| segment.nanoseconds);
    all.iter_mut().enumerate().for_each(|(place, segment)| segment.number = place as u64 + 1);
    diagnosis(&all)
}

/// A transfer of a second in rounds of ten segments, each of which takes `rtt`.
fn bulk(scene: &mut Scene, rtt: i64, until: i64) {
    let end = 1_700_000_000_000_000_000 + until;
    while scene.now < end {
        (0..10).for_each(|_| _ = scene.data(CLIENT, MSS));
        scene.pass(rtt);
        scene.ack(SERVER);
        scene.pass(10_000);
    }
}

/// Rounds of which every second is lost as a whole, and sent again after a timeout.
fn starving(scene: &mut Scene, rtt: i64, until: i64) {
    let end = 1_700_000_000_000_000_000 + until;
    while scene.now < end {
        (0..10).for_each(|_| _ = scene.data(CLIENT, MSS));
        scene.pass(rtt);
        scene.ack(SERVER);
        scene.pass(10_000);
        let places: Vec<u32> = (0..10).map(|_| scene.data(CLIENT, MSS)).collect();
        scene.pass(220 * MS);
        for begin in places {
            scene.again(CLIENT, begin, MSS);
        }
        scene.pass(rtt);
        scene.ack(SERVER);
        scene.pass(10_000);
    }
}

fn from(host: u32, port: u32, rtt: i64, hops: u8) -> Scene {
    let mut scene = Scene::between(&format!("10.0.{host}.1:{port}"), "10.0.0.2:80");
    scene.hops = hops;
    scene.meet(rtt);
    scene
}

/// One flow that starves beside twelve of another host, with the RTTs and hops of both.
fn shared(few: (i64, u8), many: (i64, u8)) -> Diagnosis {
    let mut scenes: Vec<Scene> = (0..12).map(|flow| from(1, 40_000 + flow, many.0, many.1)).collect();
    scenes.iter_mut().for_each(|scene| bulk(scene, many.0, 2000 * MS));
    let mut alone = from(2, 40_000, few.0, few.1);
    starving(&mut alone, few.0, 2000 * MS);
    scenes.push(alone);
    joined(scenes)
}

#[test]
fn few_flows_of_one_input_that_starve_are_outcast() {
    for (few, many) in [((4 * MS, 63), (10 * MS, 61)), ((10 * MS, 64), (10 * MS, 64))] {
        let found = shared(few, many);
        let finding = one(&found, Kind::Outcast);
        assert!(finding.text.contains("(connections 13)"), "{}", finding.text);
        assert!(finding.text.contains("10 segments in a row"), "{}", finding.text);
    }
}

#[test]
fn a_flow_that_starves_far_more_is_told_where_each_host_has_one() {
    for (starving_flows, is_told) in [(1, true), (6, false)] {
        let mut scenes: Vec<Scene> = (1..=8).map(|host| from(host, 40_000, 2 * MS, 64)).collect();
        let (few, many) = scenes.split_at_mut(starving_flows);
        few.iter_mut().for_each(|scene| starving(scene, 2 * MS, 2000 * MS));
        many.iter_mut().for_each(|scene| bulk(scene, 2 * MS, 2000 * MS));
        let found = joined(scenes);
        assert_eq!(kinds(&found).contains(&Kind::Outcast), is_told);
        if is_told {
            let text = &one(&found, Kind::Outcast).text;
            assert!(
                text.contains("1 flow from 10.0.1.1 got") && text.contains("7 flows from 7 hosts"),
                "{text}"
            );
            assert!(text.ends_with("these packets do not tell."), "{text}");
        }
    }
}

#[test]
fn a_host_casts_none_of_its_own_flows_out() {
    let mut scenes: Vec<Scene> = (0..8).map(|flow| from(1, 40_000 + flow, 2 * MS, 64)).collect();
    let (few, many) = scenes.split_at_mut(1);
    few.iter_mut().for_each(|scene| starving(scene, 2 * MS, 2000 * MS));
    many.iter_mut().for_each(|scene| bulk(scene, 2 * MS, 2000 * MS));
    let found = joined(scenes);
    assert!(!kinds(&found).contains(&Kind::Outcast), "{found:#?}");
}

/// Twelve flows wait for a timeout every 240 ms, so three within 10 ms are no more than chance brings.
#[test]
fn silences_that_meet_by_chance_are_no_incast() {
    for (apart, is_told) in [(60, false), (0, true)] {
        let mut scenes: Vec<Scene> = (0..12).map(|host| from(host + 1, 40_000, 10 * MS, 64)).collect();
        for (place, scene) in (0..).zip(&mut scenes) {
            scene.pass(place % 4 * apart * MS);
            starving(scene, 10 * MS, 2000 * MS);
        }
        assert_eq!(kinds(&joined(scenes)).contains(&Kind::Incast), is_told, "{apart}");
    }
}

/// The same at a tap beside the receiver, which sees nothing of what was lost: rounds, and long rests.
fn seen_behind(scene: &mut Scene, rtt: i64, starves: bool, until: i64) {
    scene.meet_at_server(rtt);
    let end = 1_700_000_000_000_000_000 + until;
    while scene.now < end {
        for _ in 0..3 {
            (0..10).for_each(|_| _ = scene.data(CLIENT, MSS));
            scene.pass(20_000);
            scene.ack(SERVER);
            scene.pass(rtt);
        }
        if starves {
            scene.identification[CLIENT] += 10;
            scene.pass(220 * MS);
        }
    }
}

#[test]
fn a_tap_behind_the_queue_sees_by_identifications_how_many_were_lost_in_a_row() {
    let rtt = 10 * MS;
    let mut scenes: Vec<Scene> =
        (0..12).map(|flow| Scene::between(&format!("10.0.1.1:{}", 40_000 + flow), "10.0.0.2:80")).collect();
    scenes.iter_mut().for_each(|scene| seen_behind(scene, rtt, false, 2000 * MS));
    let mut alone = Scene::between("10.0.2.1:40000", "10.0.0.2:80");
    seen_behind(&mut alone, rtt, true, 2000 * MS);
    scenes.push(alone);
    let found = joined(scenes);
    let finding = one(&found, Kind::Outcast);
    assert!(finding.text.contains("10 segments in a row"), "{}", finding.text);
}

#[test]
fn flows_that_come_from_afar_are_slower_by_themselves() {
    assert!(!kinds(&shared((60 * MS, 61), (10 * MS, 63))).contains(&Kind::Outcast));
}

#[test]
fn flows_that_share_alike_are_no_outcasts() {
    let mut scenes: Vec<Scene> = (0..12).map(|flow| from(1, 40_000 + flow, 10 * MS, 64)).collect();
    scenes.push(from(2, 40_000, 10 * MS, 64));
    scenes.iter_mut().for_each(|scene| starving(scene, 10 * MS, 2000 * MS));
    assert!(!kinds(&joined(scenes)).contains(&Kind::Outcast));
}

#[test]
fn one_that_is_far_slower_than_its_peers_has_no_name() {
    // The same bytes at the same RTT, in rounds of so many segments.
    let transfer = |flow: u32, size: u32| {
        let mut scene = from(flow, 40_000, 10 * MS, 64);
        for _ in 0..240 / size {
            (0..size).for_each(|_| _ = scene.data(CLIENT, MSS));
            scene.pass(10 * MS);
            scene.ack(SERVER);
            scene.pass(10_000);
        }
        scene
    };
    let found = joined((1..=12).map(|flow| transfer(flow, if flow == 7 { 1 } else { 10 })).collect());
    let unexplained: Vec<_> = found.findings.iter().filter(|each| each.kind == Kind::Unexplained).collect();
    assert_eq!(unexplained.iter().map(|each| each.connection).collect::<Vec<_>>(), [Some(7)]);
    let alike = joined((1..=12).map(|flow| transfer(flow, [8, 10, 12][flow as usize % 3])).collect());
    assert_eq!(kinds(&alike), []);
}
