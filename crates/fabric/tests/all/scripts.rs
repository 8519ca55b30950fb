//! Scripts of links: exactly the frames that are named, on any clock.

use crate::common::{Log, advance_by_events, aggregate, nanoseconds, rack_config};
use framegauge_fabric::{
    Act, Aggregate, Ecn, Fabric, FabricConfig, HostIndex, PortChange, PortIndex, Reason, Rule, Script,
};
use framegauge_frames::Picoseconds;

const END: Picoseconds = Picoseconds::from_nanoseconds(100_000_000);

fn scripted(rules: Vec<Rule>) -> FabricConfig {
    let mut config = rack_config(2, 1_000, 1_000_000, 9216);
    config.scripts = vec![Script { port: PortIndex(0), rules }];
    config
}

fn rule(frames: &[u32], at_least_bytes: u32, act: Act) -> Rule {
    Rule { frames: frames.to_vec(), at_least_bytes, act }
}

/// Eight frames from h1 to h2, every second one small.
fn played(config: &FabricConfig, by_events: bool, ecn: Ecn) -> (Fabric, Log) {
    let (mut fabric, mut log) = (Fabric::new(config).unwrap(), Log::default());
    for id in 1..=8 {
        let size = if id % 2 == 0 { 60 } else { 1514 };
        let frame = Aggregate { ecn, ..aggregate(id, 1, size, 1) };
        fabric.transmit(Picoseconds::ZERO, HostIndex(0), frame);
    }
    match by_events {
        true => advance_by_events(&mut fabric, &mut log, END),
        false => fabric.advance(END, &mut log),
    }
    (fabric, log)
}

fn order(log: &Log) -> Vec<u32> {
    log.delivered.iter().map(|delivery| delivery.2).collect()
}

#[test]
fn exactly_the_frames_that_are_named_are_lost() {
    for by_events in [false, true] {
        let config = scripted(vec![rule(&[2, 3], 100, Act::Lose), rule(&[8], 0, Act::Lose)]);
        let (mut fabric, log) = played(&config, by_events, Ecn::NOT_CAPABLE);
        assert_eq!(order(&log), [1, 2, 4, 6, 7]);
        assert_eq!(log.discarded, [(3, 0), (5, 0), (8, 0)]);
        let port = fabric.counters().ports[0];
        assert_eq!((port.sent_frames, port.lost_frames, port.lost_bytes), (8, 3, 1518 + 1518 + 64));
        let drops = fabric.take_drops();
        assert!(drops.iter().all(|drop| drop.reason == Reason::Script && !drop.marked));
    }
}

#[test]
fn a_held_frame_is_overtaken_by_as_many_as_come_meanwhile() {
    for by_events in [false, true] {
        // A large frame and a small one take 12,304 + 672 ns of the line.
        let config = scripted(vec![rule(&[1], 100, Act::Hold(nanoseconds(20_000)))]);
        let (fabric, log) = played(&config, by_events, Ecn::NOT_CAPABLE);
        assert_eq!(order(&log), [2, 3, 4, 1, 5, 6, 7, 8]);
        let held = log.delivered.iter().find(|delivery| delivery.2 == 1).unwrap();
        // It is released at 33,304 ns. The third came to the switch at 26,280 ns and the fourth waits behind it: both go first.
        assert_eq!(held.0, nanoseconds(26_280 + 12_304 + 672 + 12_304 + 1_000));
        assert_eq!(fabric.counters().ports[0].lost_frames, 0);
    }
}

#[test]
fn marks_are_for_those_that_can_bear_them() {
    let config = scripted(vec![rule(&[3], 0, Act::Mark)]);
    let (mut fabric, log) = played(&config, true, Ecn::CAPABLE);
    assert_eq!((log.marked.clone(), order(&log)), (vec![(3, 0)], (1..=8).collect()));
    assert_eq!(fabric.counters().ports[0].marked_frames, 1);
    assert!(fabric.take_drops()[0].marked);
    let (_, log) = played(&config, true, Ecn::NOT_CAPABLE);
    assert_eq!((log.marked.clone(), order(&log)), (vec![], (1..=8).collect()));
}

#[test]
fn what_is_held_is_lost_with_the_link() {
    let config = scripted(vec![rule(&[1, 2], 0, Act::Hold(nanoseconds(500_000)))]);
    let (mut fabric, mut log) = (Fabric::new(&config).unwrap(), Log::default());
    for id in 1..=3 {
        fabric.transmit(Picoseconds::ZERO, HostIndex(0), aggregate(id, 1, 1514, 1));
    }
    let (down, up) = (
        PortChange { up: Some(false), ..Default::default() },
        PortChange { up: Some(true), ..Default::default() },
    );
    fabric.change(nanoseconds(100_000), PortIndex(0), down, &mut log).unwrap();
    fabric.change(nanoseconds(200_000), PortIndex(0), up, &mut log).unwrap();
    fabric.transmit(nanoseconds(200_000), HostIndex(0), aggregate(4, 1, 1514, 1));
    fabric.advance(END, &mut log);
    assert_eq!((order(&log), log.discarded.clone()), (vec![3, 4], vec![(1, 0), (2, 0)]));
    assert_eq!(fabric.counters().ports[0].lost_frames, 2);
}

#[test]
fn what_cannot_be_is_refused() {
    let said = |config: FabricConfig| config.check().unwrap_err().to_string();
    assert_eq!(
        said(scripted(vec![rule(&[0], 0, Act::Lose)])),
        "port 0: script: found frame 0, expected numbers from 1"
    );
    let mut twice = scripted(vec![rule(&[1], 0, Act::Lose)]);
    twice.scripts.push(twice.scripts[0].clone());
    assert_eq!(said(twice), "port 0: script: found a second one, expected one per port");
    let mut nowhere = scripted(vec![]);
    nowhere.scripts[0].port = PortIndex(9);
    assert_eq!(said(nowhere), "port 9: script: names a port that does not exist");
}
