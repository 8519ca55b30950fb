//! A fabric that is changed while it works.
//!
//! At 1 Gb/s a full frame of MTU 1500 has 1538 bytes on the wire and takes T = 12,304 ns.

use std::collections::{HashMap, HashSet};

use crate::common::{Log, advance_by_events, aggregate, gigabit, nanoseconds, rack, rack_config};
use framegauge_fabric::{
    CoDelConfig, Fabric, FqCoDelConfig, HostIndex, Impairments, Limit, PortChange, PortIndex, QueueConfig,
    Reason, SharedBufferConfig,
};
use framegauge_frames::{BitRate, Mtu, Picoseconds};
use proptest::prelude::*;

const T: u64 = 12_304;
const NONE: PortChange = PortChange {
    rate: None,
    delay: None,
    loss: None,
    output_mtu: None,
    input_mtu: None,
    queue: None,
    up: None,
};

fn rate(bits_per_second: u64) -> Option<BitRate> {
    Some(BitRate::new(bits_per_second).unwrap())
}

fn finish(fabric: &mut Fabric, log: &mut Log) {
    advance_by_events(fabric, log, Picoseconds::MAX);
}

fn times(log: &Log) -> Vec<u64> {
    log.delivered.iter().map(|delivery| delivery.0.as_nanoseconds()).collect()
}

#[test]
fn a_rate_holds_from_the_next_frame_on() {
    // Changed to a tenth while the first of three is half sent: it leaves at T, the others 10 T later each.
    let mut fabric = rack(2, 0, 1 << 20, 9216);
    let mut log = Log::default();
    fabric.transmit(nanoseconds(0), HostIndex(0), aggregate(0, 3, 1514, 1));
    let slower = PortChange { rate: rate(100_000_000), ..NONE };
    fabric.change(nanoseconds(T / 2), PortIndex(0), slower, &mut log).unwrap();
    // Of what waits there are 2 x 1538 bytes; the rest of the first takes as long as 77 at the new rate.
    assert_eq!(fabric.uplink_backlog_bytes(HostIndex(0)), 2 * 1538 + 77);
    finish(&mut fabric, &mut log);
    assert_eq!(times(&log), [2 * T, 12 * T, 22 * T]);
    assert_eq!(fabric.port_config(PortIndex(0)).rate.bits_per_second(), 100_000_000);
    // What is handed over later is sent, and known to be sent, at that rate, too.
    fabric.transmit(nanoseconds(100 * T), HostIndex(0), aggregate(1, 2, 1514, 1));
    fabric.advance(nanoseconds(115 * T), &mut log);
    assert_eq!(fabric.uplink_backlog_bytes(HostIndex(0)), 769);
}

#[test]
fn the_fastest_uplink_is_that_of_now() {
    // Ports 0 and 2 are the hosts', the others the switch's, of which one is faster than all.
    let mut config = rack_config(2, 0, 1 << 20, 9216);
    for (port, rate_now) in [(2, 2_500_000_000), (3, 40_000_000_000)] {
        config.ports[port].rate = rate(rate_now).unwrap();
    }
    let mut fabric = Fabric::new(&config).unwrap();
    assert_eq!(fabric.fastest_uplink(), rate(2_500_000_000));
    let slower = PortChange { rate: rate(100_000_000), ..NONE };
    fabric.change(nanoseconds(0), PortIndex(2), slower, &mut Log::default()).unwrap();
    assert_eq!(fabric.fastest_uplink(), rate(1_000_000_000));
}

#[test]
fn a_skew_outlasts_a_rate() {
    let mut config = rack_config(2, 0, 1 << 20, 9216);
    config.ports[0].impairments = Impairments { skew_ppm: 100, ..Impairments::default() };
    let mut fabric = Fabric::new(&config).unwrap();
    let mut log = Log::default();
    let faster = PortChange { rate: rate(10_000_000_000), ..NONE };
    fabric.change(nanoseconds(0), PortIndex(0), faster, &mut log).unwrap();
    fabric.transmit(nanoseconds(0), HostIndex(0), aggregate(0, 1, 1514, 1));
    finish(&mut fabric, &mut log);
    // 12,304 bits at 10,001,000,000 b/s are 1,230,276.97 ps.
    assert_eq!(log.delivered[0].0, Picoseconds::new(1_230_277) + nanoseconds(T));
}

#[test]
fn a_shorter_delay_never_reorders() {
    // 100 us on the first link. At 2.5 T two frames are on it and the third is being sent: it arrives at 3 T + 100 us,
    // and the fourth, without any delay, not before it.
    let mut config = rack_config(2, 0, 1 << 20, 9216);
    config.ports[0].delay = nanoseconds(100_000);
    let mut fabric = Fabric::new(&config).unwrap();
    let mut log = Log::default();
    fabric.transmit(nanoseconds(0), HostIndex(0), aggregate(0, 4, 1514, 1));
    let shorter = PortChange { delay: Some(Picoseconds::ZERO), ..NONE };
    fabric.change(nanoseconds(5 * T / 2), PortIndex(0), shorter, &mut log).unwrap();
    finish(&mut fabric, &mut log);
    assert_eq!(times(&log), [2, 3, 4, 5].map(|frames| frames * T + 100_000));
    let frames: Vec<_> = log.delivered.iter().map(|delivery| delivery.3).collect();
    assert_eq!(frames, [0, 1, 2, 3]);
    // At the switch it waits for the third, which came at the same time, and for nothing else.
    let waits: Vec<_> = log.waits.iter().map(|wait| wait.2.as_nanoseconds()).collect();
    assert_eq!(waits, [0, 0, 0, T]);
    // Later ones have the new delay alone.
    fabric.transmit(nanoseconds(1_000_000), HostIndex(0), aggregate(1, 1, 1514, 1));
    finish(&mut fabric, &mut log);
    assert_eq!(times(&log)[4], 1_000_000 + 2 * T);
}

#[test]
fn mtus_hold_for_what_comes_later() {
    let [small, large] = [1000, 9000].map(|mtu| Some(Mtu::new(mtu).unwrap()));
    for (port, change) in
        [(3, PortChange { output_mtu: small, ..NONE }), (0, PortChange { input_mtu: small, ..NONE })]
    {
        let mut fabric = rack(2, 0, 1 << 20, 9216);
        let mut log = Log::default();
        fabric.transmit(nanoseconds(0), HostIndex(0), aggregate(0, 2, 1514, 1));
        // The first is in the buffer by then, the second not yet.
        fabric.change(nanoseconds(T + 1), PortIndex(port), change, &mut log).unwrap();
        finish(&mut fabric, &mut log);
        assert_eq!((times(&log), log.discarded.as_slice()), (vec![2 * T], &[(0, 1)][..]));
        assert_eq!(fabric.take_drops()[0].reason, Reason::Giant);
        let back = PortChange {
            output_mtu: change.output_mtu.and(large),
            input_mtu: change.input_mtu.and(large),
            ..NONE
        };
        fabric.change(nanoseconds(10 * T), PortIndex(port), back, &mut log).unwrap();
        fabric.transmit(nanoseconds(10 * T), HostIndex(0), aggregate(1, 1, 1514, 1));
        finish(&mut fabric, &mut log);
        assert_eq!(times(&log), [2 * T, 12 * T]);
    }
}

#[test]
fn what_waits_is_offered_to_a_new_queue_in_order() {
    // h1 and h2 each send three full frames to h3 at time 0. Just after 3 T two have left, the second of h1 is being sent,
    // and there wait: second of h2, third of h1, third of h2. With room for two, the first of these stays; when the
    // second is dropped the third has not been offered yet.
    let mut fabric = rack(3, 0, 1 << 20, 9216);
    let mut log = Log::default();
    fabric.transmit(nanoseconds(0), HostIndex(0), aggregate(0, 3, 1514, 2));
    fabric.transmit(nanoseconds(0), HostIndex(1), aggregate(1, 3, 1514, 2));
    let now = nanoseconds(3 * T + 1);
    let shorter = PortChange { queue: Some(QueueConfig::taildrop(2 * 1518)), ..NONE };
    fabric.change(now, PortIndex(5), shorter, &mut log).unwrap();
    assert_eq!(log.discarded, [(0, 2), (1, 2)]);
    let drops: Vec<_> = fabric
        .take_drops()
        .iter()
        .map(|drop| (drop.time, drop.input_port.0, drop.queue_bytes, drop.reason))
        .collect();
    assert_eq!(drops, [(0, 3), (2, 2)].map(|(input, held)| (now, input, held * 1518, Reason::Taildrop)));
    finish(&mut fabric, &mut log);
    let delivered: Vec<_> = log.delivered.iter().map(|delivery| (delivery.2, delivery.3)).collect();
    assert_eq!(delivered, [(0, 0), (1, 0), (0, 1), (1, 1)]);
    // The one that stayed waited from 2 T until 4 T, as if nothing had been changed.
    assert_eq!(log.waits.iter().rfind(|wait| wait.0 == PortIndex(5)).unwrap().2, nanoseconds(2 * T));
    assert_eq!(fabric.port_config(PortIndex(5)).queue, QueueConfig::taildrop(2 * 1518));
}

#[test]
fn a_link_that_goes_down_loses_what_it_has_and_what_comes() {
    // Ten frames, 100 us a link, taken down at 4.5 T: four are on the link, one is being sent, five wait.
    let mut fabric = rack(2, 100_000, 1 << 20, 9216);
    let mut log = Log::default();
    let [down, up] = [false, true].map(|up| PortChange { up: Some(up), ..NONE });
    fabric.transmit(nanoseconds(0), HostIndex(0), aggregate(0, 10, 1514, 1));
    let now = nanoseconds(9 * T / 2);
    fabric.change(now, PortIndex(0), down, &mut log).unwrap();
    assert_eq!(log.discarded, (0..10).map(|frame| (0, frame)).collect::<Vec<_>>());
    let port = fabric.counters().ports[0];
    assert_eq!(
        (port.received_frames, port.sent_frames, port.lost_frames, port.dropped_frames),
        (10, 4, 4, 6)
    );
    assert_eq!((port.sent_bytes, port.lost_bytes, port.dropped_bytes), (4 * 1518, 4 * 1518, 6 * 1518));
    assert_eq!((port.queued_bytes, port.busy, port.occupied), (0, now, now));
    assert_eq!((fabric.uplink_backlog_bytes(HostIndex(0)), fabric.next_deadline()), (0, None));
    let records = fabric.take_drops();
    let found: Vec<_> =
        records.iter().map(|drop| (drop.time, drop.reason, drop.run_length, drop.queue_bytes)).collect();
    let held = |frame: u64| if frame < 4 { 6 } else { 9 - frame };
    let expected: Vec<_> =
        (0..10).map(|frame| (now, Reason::LinkDown, frame as u32 + 1, held(frame) * 1518)).collect();
    assert_eq!(found, expected);

    // Nothing is taken in, and it is told as soon as somebody can be told.
    fabric.transmit(nanoseconds(6 * T), HostIndex(0), aggregate(1, 2, 1514, 1));
    assert_eq!(fabric.uplink_backlog_bytes(HostIndex(0)), 0);
    assert_eq!(fabric.next_deadline(), Some(nanoseconds(6 * T)));
    finish(&mut fabric, &mut log);
    assert_eq!(log.discarded[10..], [(1, 0), (1, 1)]);
    assert_eq!(fabric.counters().ports[0].dropped_frames, 8);
    assert!(log.delivered.is_empty());

    // Up again it begins empty, and a run of drops has ended with the first that is taken in.
    fabric.change(nanoseconds(20 * T), PortIndex(0), up, &mut log).unwrap();
    fabric.transmit(nanoseconds(20 * T), HostIndex(0), aggregate(2, 1, 1514, 1));
    finish(&mut fabric, &mut log);
    assert_eq!(times(&log), [22 * T + 200_000]);
    fabric.take_drops();
    fabric.transmit(nanoseconds(100 * T), HostIndex(0), aggregate(3, 1, 1514, 1));
    fabric.change(nanoseconds(100 * T), PortIndex(0), down, &mut log).unwrap();
    assert_eq!(fabric.take_drops()[0].run_length, 1);
}

#[test]
fn a_switch_drops_what_comes_to_a_port_that_is_down() {
    let mut config = rack_config(2, 0, 1 << 20, 1500);
    for shared_buffer in [None, Some(SharedBufferConfig { bytes: 64, alpha: 1.0, lossless: None })] {
        config.shared_buffer = shared_buffer;
        let mut fabric = Fabric::new(&config).unwrap();
        let mut log = Log::default();
        let down = PortChange { up: Some(false), ..NONE };
        fabric.change(nanoseconds(0), PortIndex(3), down, &mut log).unwrap();
        // An MTU that is changed meanwhile lets nothing through.
        let mtu = PortChange { output_mtu: Some(Mtu::new(9000).unwrap()), ..NONE };
        fabric.change(nanoseconds(0), PortIndex(3), mtu, &mut log).unwrap();
        fabric.transmit(nanoseconds(0), HostIndex(0), aggregate(0, 3, 1514, 1));
        finish(&mut fabric, &mut log);
        assert_eq!((log.delivered.len(), log.discarded.len()), (0, 3));
        let records = fabric.take_drops();
        assert!(records.iter().all(|drop| drop.reason == Reason::LinkDown && drop.port == PortIndex(3)));
        let port = fabric.counters().ports[3];
        assert_eq!((port.received_frames, port.dropped_frames, port.giant_frames), (3, 3, 0));
    }
}

#[test]
fn what_cannot_work_is_refused_and_changes_nothing() {
    let mut fabric = rack(2, 1_000, 1 << 20, 9216);
    let mut log = Log::default();
    fabric.transmit(nanoseconds(0), HostIndex(0), aggregate(0, 5, 1514, 1));
    let before = (fabric.counters(), *fabric.port_config(PortIndex(3)), fabric.next_deadline());
    let bad = PortChange { queue: Some(QueueConfig::taildrop(10)), rate: rate(7), up: Some(false), ..NONE };
    let said = fabric.change(nanoseconds(5 * T), PortIndex(3), bad, &mut log).unwrap_err().to_string();
    assert_eq!(said, "port 3: found a buffer of 10 bytes, expected room for a frame of 64");
    assert_eq!(before, (fabric.counters(), *fabric.port_config(PortIndex(3)), fabric.next_deadline()));
    finish(&mut fabric, &mut log);
    assert_eq!(times(&log).len(), 5);
    let mut config = rack_config(2, 0, 1 << 20, 9216);
    config.ports[0].impairments.skew_ppm = -999_999;
    let mut fabric = Fabric::new(&config).unwrap();
    let slow = PortChange { rate: rate(400_000), ..NONE };
    let said = fabric.change(nanoseconds(0), PortIndex(0), slow, &mut log).unwrap_err().to_string();
    let expected = "port 0: found 400000 b/s with a skew of -999999 ppm, expected a rate of 1 b/s or more";
    assert_eq!(said, expected);
}

fn any_queue() -> impl Strategy<Value = QueueConfig> {
    let codel = CoDelConfig {
        limit_bytes: 9_000,
        target: nanoseconds(20_000),
        interval: nanoseconds(200_000),
        ecn: false,
    };
    prop_oneof![
        (64u64..20_000).prop_map(QueueConfig::taildrop),
        (1u64..10).prop_map(|frames| QueueConfig::Taildrop { limit: Limit::Frames(frames) }),
        Just(QueueConfig::CoDel(codel)),
        Just(QueueConfig::FqCoDel(FqCoDelConfig { codel, buckets: 4, quantum_bytes: 300, seed: 1 })),
        Just(QueueConfig::Priority { limit: Limit::Bytes(9_000), bands: 2 }),
    ]
}

fn any_change() -> impl Strategy<Value = PortChange> {
    let line = (prop::option::of(1_000_000u64..3_000_000_000), prop::option::of(0u64..200_000));
    let mtu = || prop::option::of((600u32..3_000).prop_map(|mtu| Mtu::new(mtu).unwrap()));
    let up = prop_oneof![3 => Just(None), 1 => Just(Some(false)), 2 => Just(Some(true))];
    let loss = prop::option::of(prop_oneof![Just(0.0), 0.0..1.0]);
    (line, mtu(), mtu(), prop::option::of(any_queue()), up, loss).prop_map(
        |(line, output_mtu, input_mtu, queue, up, loss)| PortChange {
            loss,
            rate: line.0.map(|rate| BitRate::new(rate).unwrap()),
            delay: line.1.map(nanoseconds),
            output_mtu,
            input_mtu,
            queue,
            up,
        },
    )
}

#[derive(Debug, Clone)]
enum Act {
    Send { source: u16, frames: u16, captured: u32, to: u16 },
    Change { port: u16, change: PortChange },
    Wait,
}

fn any_act() -> impl Strategy<Value = Act> {
    let send = (0u16..3, 1u16..8, 60u32..2_000, 0u16..3)
        .prop_map(|(source, frames, captured, to)| Act::Send { source, frames, captured, to });
    let change = (0u16..6, any_change()).prop_map(|(port, change)| {
        // A host's NIC has no limit.
        let queue = change.queue.filter(|_| port % 2 == 1);
        let output_mtu = change.output_mtu.filter(|_| port % 2 == 1);
        Act::Change { port, change: PortChange { queue, output_mtu, ..change } }
    });
    prop_oneof![3 => send, 2 => change, 1 => Just(Act::Wait)]
}

/// received = sent + dropped + queued, a NIC has a backlog as long as it has frames, and nobody is busy for longer than
/// there was time.
fn check(fabric: &Fabric) -> Result<(), TestCaseError> {
    let counted = fabric.counters();
    for port in &counted.ports {
        prop_assert_eq!(port.received_frames, port.sent_frames + port.dropped_frames + port.queued_frames);
        prop_assert_eq!(port.received_bytes, port.sent_bytes + port.dropped_bytes + port.queued_bytes);
        prop_assert!(port.lost_frames <= port.sent_frames && port.busy <= counted.time);
    }
    for host in 0..3 {
        let has_backlog = fabric.uplink_backlog_bytes(HostIndex(host as u16)) > 0;
        prop_assert_eq!(has_backlog, counted.ports[2 * host].queued_frames > 0);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn every_frame_meets_one_end_whatever_changes(
        acts in prop::collection::vec((0u64..150_000, any_act()), 1..60),
        shared in prop::option::of((64u64..30_000, 0.1f64..8.0)),
        moderation in prop_oneof![Just(0u64), 1u64..100_000],
    ) {
        let mut config = rack_config(3, 20_000, 20_000, 9216);
        config.shared_buffer = shared.map(|(bytes, alpha)| SharedBufferConfig { bytes, alpha, lossless: None });
        config.nic.moderation = nanoseconds(moderation);
        let mut fabric = Fabric::new(&config).unwrap();
        let (mut log, mut now, mut sent, mut flows) = (Log::default(), Picoseconds::ZERO, 0, HashMap::new());
        for (id, (wait, act)) in acts.into_iter().enumerate() {
            now += nanoseconds(wait);
            advance_by_events(&mut fabric, &mut log, now);
            match act {
                Act::Send { source, frames, captured, to } => {
                    let flow = u64::from(source * 3 + to);
                    let sending = framegauge_fabric::Aggregate { flow, ..aggregate(id as u32, frames, captured, to) };
                    fabric.transmit(now, HostIndex(source), sending);
                    sent += usize::from(frames);
                    flows.insert(id as u32, flow);
                }
                Act::Change { port, change } => fabric.change(now, PortIndex(port), change, &mut log).unwrap(),
                Act::Wait => {}
            }
            check(&fabric)?;
        }
        finish(&mut fabric, &mut log);
        check(&fabric)?;
        let delivered = log.delivered.iter().map(|delivery| (delivery.2, delivery.3));
        let ends: HashSet<_> = delivered.clone().chain(log.discarded.iter().copied()).collect();
        prop_assert_eq!((ends.len(), log.delivered.len() + log.discarded.len()), (sent, sent));
        prop_assert_eq!(fabric.take_drops().len(), log.discarded.len());
        let ports = fabric.counters().ports;
        for (up, down) in [(0, 1), (2, 3), (4, 5)] {
            prop_assert!(ports[up].queued_frames == 0 && ports[down].queued_frames == 0);
        }
        let sum = |of: fn(&framegauge_fabric::PortCounters) -> u64, parity: usize| -> u64 {
            ports.iter().skip(parity).step_by(2).map(of).sum()
        };
        prop_assert_eq!(sum(|port| port.sent_bytes - port.lost_bytes, 0), sum(|port| port.received_bytes, 1));
        prop_assert_eq!(sum(|port| port.sent_frames - port.lost_frames, 1), log.delivered.len() as u64);
        let mut last = HashMap::new();
        for position in delivered {
            let before = last.insert(flows[&position.0], position);
            prop_assert!(before.is_none_or(|before| before < position), "{:?} after {:?}", position, before);
        }
    }
}

#[test]
fn a_change_that_says_nothing_changes_nothing() {
    let mut fabric = rack(2, 1_000, 1 << 20, 9216);
    let mut log = Log::default();
    fabric.transmit(nanoseconds(0), HostIndex(0), aggregate(0, 5, 1514, 1));
    let same = PortChange { rate: Some(gigabit()), delay: Some(nanoseconds(1_000)), up: Some(true), ..NONE };
    for (number, change) in [NONE, same].into_iter().enumerate() {
        let now = nanoseconds(T / 3 + number as u64 * T);
        fabric.change(now, PortIndex(0), change, &mut log).unwrap();
        fabric.change(now, PortIndex(3), change, &mut log).unwrap();
    }
    finish(&mut fabric, &mut log);
    assert_eq!(times(&log), [2, 3, 4, 5, 6].map(|frames| frames * T + 2_000));
}
