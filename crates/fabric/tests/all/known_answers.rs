//! Times and drops that were computed by hand.
//!
//! At 1 Gb/s a full frame of MTU 1500 has 1538 bytes on the wire and takes T = 12,304 ns, one of MTU 9000 has
//! 9038 and takes 72,304 ns, the smallest has 84 and takes 672 ns.

use crate::common::{self, Log, aggregate, gigabit, nanoseconds, pair, rack};
use framegauge_fabric::{
    Fabric, HostIndex, LinkConfig, NicConfig, PortCounters, PortIndex, Reason, RouteTable, SwitchConfig, star,
};
use framegauge_frames::{BitRate, Mtu, Picoseconds};

const T: u64 = 12_304;

/// Everything that happens to these aggregates, each (time in ns, source, frames, captured bytes, destination).
fn transmit(fabric: &mut Fabric, input: &[(u64, u16, u16, u32, u16)]) {
    for (id, &(time, source, frames, captured, destination)) in input.iter().enumerate() {
        let packet = aggregate(id as u32, frames, captured, destination);
        fabric.transmit(nanoseconds(time), HostIndex(source), packet);
    }
}

fn run(fabric: &mut Fabric, input: &[(u64, u16, u16, u32, u16)]) -> Log {
    let mut log = Log::default();
    transmit(fabric, input);
    while let Some(deadline) = fabric.next_deadline() {
        fabric.advance(deadline, &mut log);
    }
    log
}

#[test]
fn latency_of_one_frame() {
    // Two serialisations and two link delays of 50 µs: captured bytes, expected ns.
    for (captured, expected) in [
        (1514, 2 * T + 100_000),
        (9014, 2 * 72_304 + 100_000),
        (42, 2 * 672 + 100_000),
        (60, 2 * 672 + 100_000),
    ] {
        let mut fabric = pair(50_000, 1 << 20, 0);
        let log = run(&mut fabric, &[(0, 0, 1, captured, 1)]);
        assert_eq!(log.delivered, [(nanoseconds(expected), HostIndex(1), 0, 0)]);
    }
}

#[test]
fn a_small_frame_waits_for_the_one_frame_ahead_of_it() {
    // Both to h3. The full frame of h1 is in the switch after its time and leaves for as long; the small one of h2
    // arrives `after` it and waits for the rest of it: at most 72 µs with MTU 9000 at 1 Gb/s, 12 µs with 1500.
    for (captured, frame) in [(1514, T), (9014, 72_304)] {
        for after in [1, frame / 2, frame - 1] {
            let mut fabric = rack(3, 0, 1 << 20, 9216);
            let log = run(&mut fabric, &[(0, 0, 1, captured, 2), (frame + after - 672, 1, 1, 42, 2)]);
            let name = |port| fabric.port_name(port);
            let delivered: Vec<_> = log.delivered.iter().map(|&(due, _, id, _)| (id, due)).collect();
            let alone = frame + after + 672;
            assert_eq!(delivered, [(0, nanoseconds(2 * frame)), (1, nanoseconds(alone + frame - after))]);
            let waits: Vec<_> =
                log.waits.iter().map(|&(port, input, wait)| (name(port), name(input), wait)).collect();
            let expected = [("h1>switch", 0), ("h2>switch", frame - after)];
            assert_eq!(waits, expected.map(|(input, wait)| ("switch>h3", input, nanoseconds(wait))));
        }
    }
}

#[test]
fn moderation_collects_what_arrives_in_time() {
    // Frames arrive at 2 T, 3 T, 4 T, 5 T. The first interrupts at once, the next interrupt is 2 T later, at
    // 4 T, and takes the second and the third, which arrives just in time; the fourth waits until 6 T.
    let mut fabric = pair(0, 1 << 20, 2 * T);
    let log = run(&mut fabric, &[(0, 0, 4, 1514, 1)]);
    let due: Vec<_> = log.delivered.iter().map(|&(due, _, _, frame)| (due, frame)).collect();
    let at = |times: u64| nanoseconds(times * T);
    assert_eq!(due, [(at(2), 0), (at(4), 1), (at(4), 2), (at(6), 3)]);
    let h2 = HostIndex(1);
    assert_eq!(log.interrupts, [(at(2), h2, 1), (at(4), h2, 2), (at(6), h2, 1)]);
    assert_eq!(fabric.counters().interrupts, [0, 3]);
}

#[test]
fn no_delivery_comes_before_its_bound() {
    for (delay, moderation) in [(0, 0), (0, 50_000), (25_000, 0), (25_000, 50_000), (300_000, 10_000)] {
        let mut fabric = pair(delay, 20_000, moderation);
        transmit(&mut fabric, &[(0, 0, 40, 1514, 1), (0, 1, 7, 9014, 0)]);
        let mut log = Log::default();
        common::advance_by_events(&mut fabric, &mut log, Picoseconds::MAX);
        assert!(!log.delivered.is_empty());
    }
}

#[test]
fn with_slack_one_wake_up_does_for_several_deliveries() {
    // Two full frames back to back, delay 10 us: at the switch at T + 10 us = 22,304 and 34,608 ns, at h2 2 (T + 10 us)
    // = 44,608 and T later 56,912 ns. At 40 us each is on its last link, which is what they wait for next.
    let mut fabric = Fabric::new(&common::rack_config(3, 10_000, 1 << 20, 9216)).unwrap();
    let mut log = Log::default();
    fabric.transmit(Picoseconds::ZERO, HostIndex(0), aggregate(0, 1, 1514, 1));
    fabric.transmit(Picoseconds::ZERO, HostIndex(0), aggregate(1, 1, 1514, 2));
    fabric.advance(nanoseconds(40_000), &mut log);
    for (slack, bound) in [(0, 44_608), (T - 1, 44_608), (T, 56_912), (1_000_000, 56_912)] {
        assert_eq!(fabric.next_delivery(nanoseconds(slack)), Some(nanoseconds(bound)), "{slack}");
    }
    common::advance_by_events(&mut fabric, &mut log, Picoseconds::MAX);
    let times: Vec<Picoseconds> = log.delivered.iter().map(|delivery| delivery.0).collect();
    assert_eq!(times, [44_608, 56_912].map(nanoseconds));
}

#[test]
fn a_bound_is_as_late_as_the_nic_that_frames_go_to() {
    // Delay 10 us, moderation 50 us. h1's full frame is told to h3 at 2 (T + 10 us) = 44,608 ns; not again before 94,608.
    // h2's, sent then, is at the switch at 66,912 ns. The smallest frame would be with h3 at 77,584 ns: before h3 can be told.
    // To h1, which has been told of nothing, that is the bound. What comes takes T for the last link: 89,216 ns.
    for (to, bound, told) in [(2, 94_608, 94_608), (0, 77_584, 89_216)] {
        let mut config = common::rack_config(3, 10_000, 1 << 20, 9216);
        config.nic = NicConfig { moderation: nanoseconds(50_000) };
        let (mut fabric, mut log) = (Fabric::new(&config).unwrap(), Log::default());
        fabric.transmit(Picoseconds::ZERO, HostIndex(0), aggregate(0, 1, 1514, 2));
        common::advance_by_events(&mut fabric, &mut log, nanoseconds(44_608));
        assert_eq!(log.interrupts, [(nanoseconds(44_608), HostIndex(2), 1)]);
        fabric.transmit(nanoseconds(44_608), HostIndex(1), aggregate(1, 1, 1514, to));
        assert_eq!(fabric.next_delivery(Picoseconds::ZERO), Some(nanoseconds(bound)));
        common::advance_by_events(&mut fabric, &mut log, Picoseconds::MAX);
        assert_eq!(log.interrupts[1], (nanoseconds(told), HostIndex(to), 1));
    }
}

#[test]
fn a_slower_downlink_sets_the_pace() {
    let link = LinkConfig {
        uplink: gigabit(),
        downlink: BitRate::new(100_000_000).unwrap(),
        delay: Picoseconds::ZERO,
    };
    let switch = SwitchConfig { buffer_bytes: 1 << 20, port_mtu: Mtu::new(9216).unwrap() };
    let mut fabric = Fabric::new(&star(common::hosts(2), link, switch, NicConfig::default())).unwrap();
    let log = run(&mut fabric, &[(0, 0, 3, 1514, 1)]);
    let due: Vec<_> = log.delivered.iter().map(|delivery| delivery.0.as_nanoseconds()).collect();
    assert_eq!(due, [T + 10 * T, T + 20 * T, T + 30 * T]);
}

#[test]
fn two_into_one_drops_what_does_not_fit() {
    // h1 and h2 each send ten full frames to h3 at time 0, without delay; the port to h3 has room for four
    // (4 × 1518 = 6072). Arrivals from both at k T, k = 1…10; a departure at (k + 1) T.
    //
    // k    leaves  before  h1 in  h2 in
    // 1    -       0       1      2
    // 2    1       1       2      3
    // 3    1       2       3      4 (full)
    // 4    1       3       4      drop
    // 5…10 1       3       4      drop: seven drops in a row, all of h2, the later one in the total order
    let mut fabric = rack(3, 0, 4 * 1518, 9216);
    let log = run(&mut fabric, &[(0, 0, 10, 1514, 2), (0, 1, 10, 1514, 2)]);
    assert_eq!(log.delivered.len(), 13);
    assert_eq!(log.discarded, (3..10).map(|frame| (1, frame)).collect::<Vec<_>>());
    let drops = fabric.take_drops();
    let expected: Vec<_> = (4..=10).map(|k| (nanoseconds(k * T), (k - 3) as u32)).collect();
    assert_eq!(drops.iter().map(|drop| (drop.time, drop.run_length)).collect::<Vec<_>>(), expected);
    for drop in &drops {
        assert_eq!(
            (fabric.port_name(drop.port), fabric.port_name(drop.input_port)),
            ("switch>h3", "h2>switch")
        );
        assert_eq!((drop.queue_bytes, drop.frame_bytes, drop.flow), (6072, 1518, 1));
        assert_eq!(drop.reason, Reason::Taildrop);
    }
    assert!(fabric.take_drops().is_empty());
    // The frame that fills the buffer at 3 T has three before it: it is the last of the first seven to leave.
    let last = log.delivered[12];
    assert_eq!(last, (nanoseconds(14 * T), HostIndex(2), 0, 9));
    let port = fabric.counters().ports[5];
    assert_eq!(
        port,
        PortCounters {
            received_frames: 20,
            received_bytes: 20 * 1518,
            sent_frames: 13,
            sent_bytes: 13 * 1518,
            dropped_frames: 7,
            dropped_bytes: 7 * 1518,
            marked_frames: 0,
            giant_frames: 0,
            filtered_frames: 0,
            lost_frames: 0,
            lost_bytes: 0,
            queued_frames: 0,
            queued_bytes: 0,
            peak_queue_bytes: 6072,
            busy: nanoseconds(13 * T),
            occupied: nanoseconds(13 * T),
            pauses_sent: 0,
            paused: Picoseconds::ZERO,
        }
    );
}

#[test]
fn a_run_of_drops_ends_with_a_frame_that_fits() {
    // Room for one frame: of each pair that arrives at k T the one from h1 fits, as the one before has left.
    // Then h2 alone sends, and its run begins anew.
    let mut fabric = rack(3, 0, 1518, 9216);
    let mut log = Log::default();
    let mut send = |fabric: &mut Fabric, time: u64, sources: &[u16]| {
        for &source in sources {
            fabric.transmit(nanoseconds(time), HostIndex(source), aggregate(0, 1, 1514, 2));
        }
        fabric.advance(nanoseconds(time + 10 * T), &mut log);
    };
    send(&mut fabric, 0, &[0, 1]);
    send(&mut fabric, 1_000_000, &[0, 1]);
    send(&mut fabric, 2_000_000, &[1]);
    send(&mut fabric, 3_000_000, &[0, 1]);
    let runs: Vec<_> = fabric.take_drops().iter().map(|drop| drop.run_length).collect();
    assert_eq!(runs, [1, 2, 1]);
}

#[test]
fn giants_die_at_the_switch() {
    let mut fabric = rack(2, 0, 1 << 20, 1500);
    let log = run(&mut fabric, &[(0, 0, 1, 1515, 1), (0, 0, 1, 1514, 1)]);
    assert_eq!((log.delivered.len(), log.discarded.as_slice()), (1, &[(0, 0)][..]));
    let drops = fabric.take_drops();
    assert_eq!((drops.len(), drops[0].reason, drops[0].frame_bytes), (1, Reason::Giant, 1519));
    assert_eq!((drops[0].port, drops[0].input_port), (PortIndex(3), PortIndex(0)));
    let ports = fabric.counters().ports;
    assert_eq!((ports[0].sent_frames, ports[0].dropped_frames), (2, 0));
    assert_eq!((ports[3].received_frames, ports[3].giant_frames, ports[3].dropped_frames), (2, 1, 1));
}

#[test]
fn counters_and_backlog_in_the_middle_of_things() {
    let mut fabric = pair(1_000, 1 << 20, 0);
    let mut log = Log::default();
    fabric.transmit(Picoseconds::ZERO, HostIndex(0), aggregate(0, 10, 1514, 1));
    assert_eq!(fabric.uplink_backlog_bytes(HostIndex(0)), 10 * 1538);
    assert_eq!(fabric.uplink_backlog_bytes(HostIndex(1)), 0);
    assert_eq!(fabric.next_deadline(), Some(nanoseconds(T + 1_000)));
    fabric.advance(nanoseconds(3 * T + T / 2), &mut log);
    assert_eq!(fabric.uplink_backlog_bytes(HostIndex(0)), 6 * 1538 + 769);
    let before = fabric.counters();
    let uplink = before.ports[0];
    assert_eq!((uplink.sent_frames, uplink.queued_frames, uplink.queued_bytes), (3, 7, 7 * 1518));
    assert_eq!((uplink.busy, uplink.peak_queue_bytes), (nanoseconds(3 * T + T / 2), 10 * 1518));
    fabric.reset_peaks();
    fabric.advance(nanoseconds(5 * T), &mut log);
    let spent = fabric.counters().ports[0].since(&uplink);
    assert_eq!((spent.sent_frames, spent.queued_frames, spent.queued_bytes), (2, -2, -2 * 1518));
    assert_eq!((spent.busy, spent.peak_queue_bytes), (nanoseconds(T + T / 2), 7 * 1518));
}

#[test]
fn time_never_goes_back() {
    let mut fabric = pair(0, 1 << 20, 0);
    let mut log = Log::default();
    fabric.advance(nanoseconds(1_000), &mut log);
    fabric.transmit(nanoseconds(500), HostIndex(0), aggregate(0, 1, 1514, 1));
    assert_eq!(fabric.next_deadline(), Some(nanoseconds(1_000 + T)));
    assert_eq!(fabric.counters().clock_violations, 1);
}

#[test]
fn configurations_that_lead_nowhere_are_refused() {
    let config = common::rack_config(3, 0, 1 << 20, 9216);
    assert_eq!(config.check(), Ok(()));
    assert_eq!(config.port_name(PortIndex(4)), "h3>switch");

    let message = |change: fn(&mut framegauge_fabric::FabricConfig)| {
        let mut config = config.clone();
        change(&mut config);
        config.check().unwrap_err().to_string()
    };
    let circle = |config: &mut framegauge_fabric::FabricConfig| {
        // A second switch, and the first sends what is for host 2 there and back.
        let mut there = config.ports[1];
        there.to.0 = 4;
        let mut back = there;
        std::mem::swap(&mut back.from, &mut back.to);
        config.switches.push("other".to_owned());
        config.ports.extend([there, back]);
        config.routes.tables[0].set_outputs(2, vec![PortIndex(6)]);
        config.routes.tables.push(RouteTable::new(vec![vec![PortIndex(7)]; 3], 1));
        config.routes.asked.extend([1, 0]);
    };
    assert_eq!(message(circle), "node 3: the route to host 2 runs in a circle");
    let message_for_route = message(|config| config.routes.tables[0].set_outputs(2, vec![PortIndex(3)]));
    assert_eq!(message_for_route, "node 3: the route to host 2 ends at another host");
    let message_for_route = message(|config| config.routes.tables[0].set_outputs(2, vec![PortIndex(99)]));
    assert_eq!(message_for_route, "node 3: the route to host 2 names a port that does not exist");
    let message_for_uplink = message(|config| config.uplinks[0] = PortIndex(1));
    assert_eq!(message_for_uplink, "the uplink of host 0 names a port of another node");
    let message_for_none = message(|config| config.routes.tables[0].set_outputs(2, Vec::new()));
    assert_eq!(message_for_none, "node 3: the route to host 2 names no port");
    let message_for_count = message(|config| drop(config.routes.tables.pop()));
    assert_eq!(message_for_count, "a fabric has 0 route tables, expected 1 to 65535");
    assert!(Fabric::new(&common::rack_config(0, 0, 0, 9216)).is_err());
    assert!(Fabric::new(&common::rack_config(40_000, 0, 0, 9216)).is_err());
}
