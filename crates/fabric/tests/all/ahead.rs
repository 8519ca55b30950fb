//! A fabric that is ahead of what it knows of hosts.
//!
//! At 1 Gb/s a full frame of MTU 1500 has 1538 bytes on the wire and takes T = 12,304 ns.

use crate::common::{Log, aggregate, any_queue, nanoseconds, pair, rack_config};
use framegauge_fabric::{
    Aggregate, BackgroundConfig, Counters, Drop, Ecn, Fabric, FabricConfig, HostIndex, Impairments,
    PortChange, PortIndex, Process, QueueConfig, SharedBufferConfig,
};
use framegauge_frames::{BitRate, Picoseconds};
use proptest::prelude::*;

const T: u64 = 12_304;
const DELAY: u64 = 10_000;

/// Sent at 0, a frame leaves its host at T, is at the switch at T + 10,000 = 22,304, leaves it a T later and is at the
/// other host at 44,608. Who knows at 34,608 that nobody has sent more can be 10,000 ahead, and no further: a frame that
/// is sent at 34,609 might be at the switch a little after 44,609.
#[test]
fn it_is_ahead_by_the_delay_of_a_hosts_link() {
    let arrival = nanoseconds(2 * T + 2 * DELAY);
    let delivered = |heard: u64| {
        let (mut fabric, mut log) = (pair(DELAY, u64::MAX, 0), Log::default());
        assert_eq!(fabric.lead(), nanoseconds(DELAY));
        fabric.transmit(nanoseconds(0), HostIndex(0), aggregate(0, 1, 1514, 1));
        fabric.advance_ahead(nanoseconds(heard), nanoseconds(1_000_000), &mut log);
        assert_eq!(fabric.now(), nanoseconds(heard));
        assert_eq!(fabric.counters().time, nanoseconds(heard + DELAY));
        log.delivered
    };
    assert_eq!(delivered(2 * T + DELAY), [(arrival, HostIndex(1), 0, 0)]);
    assert_eq!(delivered(2 * T + DELAY - 1), []);
}

/// Sent at 0 and at 1,000, when the fabric is at 10,000: the second leaves when the first has, at 2 T, and comes a T later.
/// Sent at T + 5,000, when the fabric is at T + 14,000, the NIC is idle again only since 2 T.
#[test]
fn what_was_sent_before_its_time_comes_when_it_would_have_come() {
    let (mut fabric, mut log) = (pair(DELAY, u64::MAX, 0), Log::default());
    for (id, sent, ahead) in [(0, 0, DELAY), (1, 1_000, DELAY), (2, T + 5_000, 9_000)] {
        fabric.transmit(nanoseconds(sent), HostIndex(0), aggregate(id, 1, 1514, 1));
        fabric.advance_ahead(nanoseconds(sent), nanoseconds(sent + ahead), &mut log);
        assert_eq!(fabric.counters().time, nanoseconds(sent + ahead));
    }
    fabric.advance(nanoseconds(1_000_000), &mut log);
    let arrival = |frames| nanoseconds(frames * T + 2 * DELAY);
    let expected = [(0, 2), (1, 3), (2, 4)].map(|(id, frames)| (arrival(frames), HostIndex(1), id, 0));
    assert_eq!(log.delivered, expected);
    assert_eq!(fabric.counters().clock_violations, 0);
}

/// Frames that are lost on a host's link, or seen there, are so with what is in its buffer then.
#[test]
fn it_is_not_ahead_where_a_hosts_link_is_looked_at() {
    let mut fabric = pair(DELAY, u64::MAX, 0);
    fabric.watch(PortIndex(2), true);
    assert_eq!(fabric.lead(), Picoseconds::ZERO);
    fabric.watch(PortIndex(2), false);
    assert_eq!(fabric.lead(), nanoseconds(DELAY));
    let mut config = rack_config(2, DELAY, 9_000, 9216);
    config.ports[0].impairments = Impairments { loss: 0.1, ..Impairments::default() };
    assert_eq!(Fabric::new(&config).unwrap().lead(), Picoseconds::ZERO);
}

/// Sent at 0, a frame still has the delay that there was then: it leaves its host at T and is at the switch at T + 10,000.
/// Were the fabric to go on to T + 10,001 at 2,000, it would take the NIC for idle when the next frame is sent at 3,000.
#[test]
fn a_longer_delay_does_not_let_it_be_further_ahead() {
    let (mut fabric, mut log) = (pair(DELAY, u64::MAX, 0), Log::default());
    fabric.transmit(nanoseconds(0), HostIndex(0), aggregate(0, 1, 1514, 1));
    let change = PortChange { delay: Some(nanoseconds(5 * DELAY)), ..PortChange::default() };
    fabric.change(nanoseconds(1_000), PortIndex(0), change, &mut log).unwrap();
    fabric.change(nanoseconds(1_000), PortIndex(2), change, &mut log).unwrap();
    assert_eq!(fabric.lead(), nanoseconds(DELAY));
    fabric.advance_ahead(nanoseconds(2_000), nanoseconds(1_000_000), &mut log);
    fabric.transmit(nanoseconds(3_000), HostIndex(0), aggregate(1, 1, 1514, 1));
    fabric.advance(nanoseconds(1_000_000), &mut log);
    let arrivals = [2 * T + 2 * DELAY, 3 * T + 6 * DELAY].map(nanoseconds);
    assert_eq!(log.delivered, [(arrivals[0], HostIndex(1), 0, 0), (arrivals[1], HostIndex(1), 1, 0)]);
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Send(HostIndex, Aggregate),
    Change(PortIndex, PortChange),
}

type Outcome = (Log, Vec<Drop>, Counters);

/// What all comes to a while after the last act. A host's NIC tells of what it refuses when it is asked: at which place among
/// the others is not the same.
fn outcome(mut fabric: Fabric, mut log: Log, last: Picoseconds) -> Outcome {
    fabric.advance(last + nanoseconds(10_000_000), &mut log);
    log.discarded.sort_unstable();
    let mut drops = fabric.take_drops();
    // Stable: a port may drop one frame of a flow and mark another at the same moment, and each is the first of its run.
    drops.sort_by_key(|drop| (drop.time, drop.port.0, drop.flow, drop.run_length));
    (log, drops, fabric.counters())
}

/// Acts that become known with the others of a step; afterwards the fabric goes ahead. With the times at which they were.
fn in_steps(
    config: &FabricConfig,
    acts: &[(u64, Act)],
    steps: &[(u64, u64)],
) -> (Vec<(Picoseconds, Act)>, Outcome) {
    let (mut fabric, mut log, mut done) = (Fabric::new(config).unwrap(), Log::default(), Vec::new());
    let (mut heard, mut acts) = (0, acts.iter().peekable());
    for &(pause, ahead) in steps.iter().cycle() {
        heard += pause;
        while let Some(&(time, act)) = acts.next_if(|(time, _)| *time <= heard) {
            let time = match act {
                Act::Send(host, aggregate) => {
                    let time = nanoseconds(time).max(fabric.now());
                    fabric.transmit(time, host, aggregate);
                    time
                }
                Act::Change(port, change) => {
                    let time = nanoseconds(time).max(fabric.now());
                    fabric.change(time, port, change, &mut log).unwrap();
                    fabric.now()
                }
            };
            done.push((time, act));
        }
        let at = nanoseconds(heard).max(fabric.now());
        fabric.advance_ahead(at, at + nanoseconds(ahead), &mut log);
        if acts.peek().is_none() {
            break;
        }
    }
    let last = fabric.now();
    (done, outcome(fabric, log, last))
}

/// The same, event by event.
fn in_order(config: &FabricConfig, acts: &[(Picoseconds, Act)], last: Picoseconds) -> Outcome {
    let (mut fabric, mut log) = (Fabric::new(config).unwrap(), Log::default());
    for &(time, act) in acts {
        fabric.advance(time, &mut log);
        match act {
            Act::Send(host, aggregate) => fabric.transmit(time, host, aggregate),
            Act::Change(port, change) => fabric.change(time, port, change, &mut log).unwrap(),
        }
    }
    outcome(fabric, log, last)
}

/// Sends, and now and then a change: of any link's rate or delay, or of a switch's port.
fn any_acts() -> impl Strategy<Value = Vec<(u64, Act)>> {
    let send = (0u16..3, 1u16..8, 60u32..2_000, 0u16..3).prop_map(|(host, frames, captured, to)| {
        let aggregate = Aggregate { ecn: Ecn::CAPABLE, ..aggregate(0, frames, captured, to) };
        Act::Send(HostIndex(host), aggregate)
    });
    let queue = prop::option::of(any_queue());
    let up = prop::option::of(any::<bool>());
    let link = (prop::option::of(50_000_000u64..2_000_000_000), prop::option::of(0u64..50_000));
    let change = (0u16..6, queue, up, link).prop_map(|(port, queue, up, (rate, delay))| {
        let (queue, up) = if port % 2 == 1 { (queue, up) } else { (None, None) };
        let (rate, delay) = (rate.map(|rate| BitRate::new(rate).unwrap()), delay.map(nanoseconds));
        Act::Change(PortIndex(port), PortChange { queue, up, rate, delay, ..PortChange::default() })
    });
    let acts = prop::collection::vec((0u64..30_000, prop_oneof![9 => send, 1 => change]), 1..60);
    acts.prop_map(|acts| {
        let mut now = 0;
        let number = |(id, (wait, mut act)): (usize, (u64, Act))| {
            now += wait;
            if let Act::Send(_, aggregate) = &mut act {
                (aggregate.id, aggregate.flow) = (id as u32, id as u64);
            }
            (now, act)
        };
        acts.into_iter().enumerate().map(number).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    /// Whatever the queues, a router's among the hosts: all that is told is the same, in the same order.
    #[test]
    fn who_is_ahead_comes_to_the_same(
        queues in prop::collection::vec(any_queue(), 3),
        acts in any_acts(),
        steps in prop::collection::vec((1u64..100_000, 0u64..60_000), 1..20),
        delay in 0u64..50_000,
        (router, shared) in (any::<bool>(), prop::option::of(4_000u64..20_000)),
        (loss, jitter) in (prop_oneof![Just(0.0), 0.0f64..0.5], prop_oneof![Just(0u64), 1u64..50_000]),
        (jitter_of_host, load, moderation) in (prop::option::weighted(0.1, 1u64..50_000), any::<bool>(), 0u64..50_000),
    ) {
        let mut config = rack_config(3, delay, 9_000, 1_500);
        for (port, queue) in [1, 3, 5].into_iter().zip(queues) {
            config.ports[port].queue = queue;
            config.ports[port].impairments = Impairments { loss, jitter: nanoseconds(jitter), ..Impairments::default() };
        }
        if router {
            config.ports[0].queue = QueueConfig::taildrop(3_000);
        }
        config.ports[2].impairments.jitter = nanoseconds(jitter_of_host.unwrap_or(0));
        config.nic.moderation = nanoseconds(moderation);
        config.shared_buffer = shared.map(|bytes| SharedBufferConfig { bytes, alpha: 1.0, lossless: None });
        config.background.extend(load.then_some(BackgroundConfig {
            from: HostIndex(0),
            to: HostIndex(2),
            rate: BitRate::new(30_000_000).unwrap(),
            frame_bytes: 700,
            process: Process::Poisson,
            seed: 3,
        }));
        let (acts, found) = in_steps(&config, &acts, &steps);
        let last = found.2.time - nanoseconds(10_000_000);
        prop_assert_eq!(found.2.clock_violations, 0);
        prop_assert_eq!(in_order(&config, &acts, last), found);
    }
}
