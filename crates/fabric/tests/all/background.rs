//! Load that the fabric makes itself.
//!
//! At 1 Gb/s a full frame of MTU 1500 has 1538 bytes on the wire and takes T = 12,304 ns.

use crate::common::{Log, aggregate, nanoseconds, rack_config};
use framegauge_fabric::{BackgroundConfig, Counters, Fabric, FabricConfig, HostIndex, PortCounters, Process};
use framegauge_frames::{BitRate, Picoseconds};
use proptest::prelude::*;

const T: u64 = 12_304;

fn background(from: u16, to: u16, bits_per_second: u64) -> BackgroundConfig {
    BackgroundConfig {
        from: HostIndex(from),
        to: HostIndex(to),
        rate: BitRate::new(bits_per_second).unwrap(),
        frame_bytes: 1518,
        process: Process::Constant,
        seed: 1,
    }
}

/// Three hosts without delay and room for so many full frames at each port of the switch.
fn loaded(frames: u64, background: Vec<BackgroundConfig>) -> FabricConfig {
    FabricConfig { background, ..rack_config(3, 0, frames * 1518, 9216) }
}

#[test]
fn a_share_is_exact_and_no_host_sees_it() {
    for seed in 0..5 {
        let config = loaded(100, vec![BackgroundConfig { seed, ..background(0, 2, 300_000_000) }]);
        let mut fabric = Fabric::new(&config).unwrap();
        let mut log = Log::default();
        // Three frames take 123.04 us at 300 Mb/s; the first comes within the first third.
        fabric.advance(Picoseconds::new(1_000 * 123_040_000 - 1), &mut log);
        assert_eq!(fabric.counters().background[0].sent_frames, 3_000);
        // The last has two links to pass, and the next one is two thirds of its spacing and more away.
        assert!(fabric.counters().background[0].delivered_frames >= 2_999);
        fabric.advance(Picoseconds::new(1_000 * 123_040_000 + 2 * T * 1_000), &mut log);
        let counted = fabric.counters();
        assert!((3_000..=3_001).contains(&counted.background[0].delivered_frames));
        assert_eq!(counted.background[0].delivered_bytes, counted.background[0].delivered_frames * 1518);
        assert_eq!(counted.interrupts, [0, 0, 0]);
        assert!(log.delivered.is_empty() && log.discarded.is_empty());
    }
}

#[test]
fn it_delays_the_frames_of_others_as_if_it_were_a_host_s() {
    // It enters h1's NIC at `first`, is at the switch T later, and leaves for h3 until first + 2 T. The frame of h2 is
    // handed over `after` it, is at the switch T after that, waits there, and has arrived at first + 3 T.
    for after in [1, T / 2, T - 1] {
        let mut fabric = Fabric::new(&loaded(100, vec![background(0, 2, 100_000_000)])).unwrap();
        let mut log = Log::default();
        let first = fabric.next_deadline().unwrap();
        fabric.transmit(first + nanoseconds(after), HostIndex(1), aggregate(7, 1, 1514, 2));
        fabric.advance(first + nanoseconds(4 * T), &mut log);
        assert_eq!(log.delivered, [(first + nanoseconds(3 * T), HostIndex(2), 7, 0)]);
        let waits: Vec<_> = log.waits.iter().map(|wait| (wait.1.0, wait.2)).collect();
        assert_eq!(waits, [(0, Picoseconds::ZERO), (2, nanoseconds(T - after))]);
    }
}

#[test]
fn it_shares_its_host_s_nic() {
    // Handed to h1's NIC half of a frame after the background's: that one's rest and its own are to be sent, T is to be
    // waited for half, and the switch passes one after the other.
    let mut fabric = Fabric::new(&loaded(100, vec![background(0, 2, 100_000_000)])).unwrap();
    let mut log = Log::default();
    let first = fabric.next_deadline().unwrap();
    fabric.transmit(first + nanoseconds(T / 2), HostIndex(0), aggregate(7, 1, 1514, 2));
    assert_eq!(fabric.uplink_backlog_bytes(HostIndex(0)), 769 + 1538);
    fabric.advance(first + nanoseconds(4 * T), &mut log);
    assert_eq!(log.delivered, [(first + nanoseconds(3 * T), HostIndex(2), 7, 0)]);
}

#[test]
fn what_is_dropped_of_it_is_written_down_and_told_to_nobody() {
    // Two of 1 Gb/s into one port of 1 Gb/s: once the buffer is full every second frame has to go.
    let config = loaded(4, vec![background(0, 2, 1_000_000_000), background(1, 2, 1_000_000_000)]);
    let mut fabric = Fabric::new(&config).unwrap();
    let mut log = Log::default();
    fabric.advance(nanoseconds(1_000 * T), &mut log);
    let counted = fabric.counters();
    assert_eq!(counted.background.iter().map(|background| background.sent_frames).sum::<u64>(), 2_000);
    let drops = fabric.take_drops();
    assert!((990..=1_000).contains(&drops.len()), "{}", drops.len());
    assert!(log.discarded.is_empty() && log.delivered.is_empty());
    let flows: std::collections::HashSet<_> =
        drops.iter().map(|drop| (drop.input_port.0, drop.flow)).collect();
    let inputs: std::collections::HashSet<_> = drops.iter().map(|drop| drop.input_port.0).collect();
    assert_eq!(flows.len(), inputs.len(), "a flow each");
}

#[test]
fn what_cannot_work_is_said() {
    let said = |background| loaded(100, vec![background]).check().unwrap_err().to_string();
    let good = background(0, 2, 100_000_000);
    assert_eq!(
        said(BackgroundConfig { to: HostIndex(3), ..good }),
        "background 0: found host 3, expected one of 3"
    );
    assert_eq!(
        said(BackgroundConfig { frame_bytes: 63, ..good }),
        "background 0: found frames of 63 bytes, expected 64 or more"
    );
    assert_eq!(
        said(background(0, 2, 1_000_000_001)),
        "background 0: found 1000000001 b/s, expected no more than the 1000000000 b/s of its first link"
    );
    // 12,304 bits at 100 Mb/s are 123,040,000 ps.
    let process = Process::OnOff { mean_on: nanoseconds(123), mean_off: nanoseconds(0) };
    assert_eq!(
        said(BackgroundConfig { process, ..good }),
        "background 0: found 123000 ps on, expected a thousandth of what is from frame to frame, 123041 ps"
    );
}

fn any_background() -> impl Strategy<Value = BackgroundConfig> {
    let process = prop_oneof![
        Just(Process::Constant),
        Just(Process::Poisson),
        (10_000u64..500_000, 0u64..500_000)
            .prop_map(|(on, off)| Process::OnOff { mean_on: nanoseconds(on), mean_off: nanoseconds(off) }),
    ];
    let ends = (0u16..3, 0u16..3);
    (ends, 20_000_000u64..1_000_000_000, 64u32..2_000, process, any::<u64>()).prop_map(
        |((from, to), rate, frame_bytes, process, seed)| BackgroundConfig {
            from: HostIndex(from),
            to: HostIndex(to),
            rate: BitRate::new(rate).unwrap(),
            frame_bytes,
            process,
            seed,
        },
    )
}

/// Without delay a frame that has left a port is at the next: nothing is under way but what ports hold.
fn conserves(
    counted: &Counters,
    discarded: u64,
    sent_by_hosts: u64,
    delivered: u64,
) -> Result<(), TestCaseError> {
    for port in &counted.ports {
        prop_assert_eq!(port.received_frames, port.sent_frames + port.dropped_frames + port.queued_frames);
        prop_assert_eq!(port.received_bytes, port.sent_bytes + port.dropped_bytes + port.queued_bytes);
    }
    let sum = |of: fn(&PortCounters) -> u64| counted.ports.iter().map(of).sum::<u64>();
    let background = |of: fn(&framegauge_fabric::BackgroundCounters) -> u64| -> u64 {
        counted.background.iter().map(of).sum()
    };
    let entered = sent_by_hosts + background(|background| background.sent_frames);
    let left = delivered + background(|background| background.delivered_frames);
    prop_assert_eq!(entered, left + sum(|port| port.dropped_frames) + sum(|port| port.queued_frames));
    prop_assert!(discarded <= sum(|port| port.dropped_frames));
    Ok(())
}

proptest! {
    #[test]
    fn without_hosts_it_conserves_at_every_moment(
        background in prop::collection::vec(any_background(), 1..6),
        steps in prop::collection::vec(1u64..200_000, 1..40),
    ) {
        let mut fabric = Fabric::new(&loaded(5, background)).unwrap();
        let (mut log, mut now) = (Log::default(), Picoseconds::ZERO);
        for step in steps {
            now += nanoseconds(step);
            fabric.advance(now, &mut log);
            conserves(&fabric.counters(), 0, 0, 0)?;
        }
        let recorded = fabric.take_drops().len() as u64;
        prop_assert_eq!(recorded, fabric.counters().ports.iter().map(|port| port.dropped_frames).sum::<u64>());
        prop_assert!(log.delivered.is_empty() && log.discarded.is_empty());
    }

    /// How the caller slices time changes nothing, nor whether it lets it pass before a host sends.
    #[test]
    fn with_hosts_the_outcome_is_determined_and_conserves(
        background in prop::collection::vec(any_background(), 1..4),
        sends in prop::collection::vec((0u64..100_000, 0u16..3, 1u16..8, 60u32..1514, 0u16..3), 1..30),
        step in 1u64..300_000,
    ) {
        let config = FabricConfig { background, ..rack_config(3, 0, 20_000, 1500) };
        let end = nanoseconds(5_000_000);
        let run = |before: bool, step: u64| {
            let mut fabric = Fabric::new(&config).unwrap();
            let (mut log, mut now) = (Log::default(), Picoseconds::ZERO);
            for (id, &(wait, source, frames, captured, to)) in sends.iter().enumerate() {
                now += nanoseconds(wait);
                if before {
                    fabric.advance(now, &mut log);
                }
                fabric.transmit(now, HostIndex(source), aggregate(id as u32, frames, captured, to));
            }
            while now < end {
                now = end.min(now + nanoseconds(step));
                let bound = fabric.next_delivery(Picoseconds::ZERO).expect("there is always more");
                let told = log.delivered.len();
                fabric.advance(now, &mut log);
                assert!(log.delivered[told..].iter().all(|delivery| delivery.0 >= bound));
            }
            (fabric, log)
        };
        let (mut first, log) = run(true, step);
        let sent: u64 = sends.iter().map(|send| u64::from(send.2)).sum();
        conserves(&first.counters(), log.discarded.len() as u64, sent, log.delivered.len() as u64)?;
        let (mut second, other) = run(false, 5_000_000);
        prop_assert_eq!(log, other);
        prop_assert_eq!(first.counters(), second.counters());
        prop_assert_eq!(first.take_drops(), second.take_drops());
    }
}

#[test]
fn one_seed_for_all_makes_no_two_alike() {
    // Two Poisson backgrounds in lockstep would send each frame at the same time.
    let poisson = BackgroundConfig { process: Process::Poisson, ..background(0, 2, 100_000_000) };
    let config = loaded(100, vec![poisson, BackgroundConfig { from: HostIndex(1), ..poisson }]);
    let mut fabric = Fabric::new(&config).unwrap();
    let mut apart = 0;
    for _ in 0..100 {
        let deadline = fabric.next_deadline().unwrap();
        fabric.advance(deadline, &mut Log::default());
        let counted = fabric.counters();
        apart += u64::from(counted.background[0].sent_frames != counted.background[1].sent_frames);
    }
    assert!(apart > 20, "{apart}");
}

/// Pollaczek and Khinchine: with Poisson arrivals and constant service the mean wait is ρ / (2 (1 − ρ)) services.
#[test]
fn poisson_arrivals_wait_as_long_as_in_an_m_d_1_queue() {
    for load in [0.5, 0.8] {
        let mut config = loaded(1_000_000, Vec::new());
        // Ten sources over links so fast that these delay nothing: their sum is Poisson at the switch.
        config.ports[0].rate = BitRate::new(1_000_000_000_000).unwrap();
        config.background = (0..10)
            .map(|seed| BackgroundConfig {
                process: Process::Poisson,
                seed,
                ..background(0, 2, (1e8 * load) as u64)
            })
            .collect();
        let mut fabric = Fabric::new(&config).unwrap();
        let mut log = Log::default();
        fabric.advance(nanoseconds(10_000_000_000), &mut log);
        let waits: Vec<f64> =
            log.waits.iter().map(|(_, _, wait)| wait.as_seconds_f64() * 1e9 / T as f64).collect();
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        let known = load / (2.0 * (1.0 - load));
        // 400,000 and 650,000 waits, correlated over some 1 / (1 - load)^2 of them: one per cent, and three.
        assert!((mean / known - 1.0).abs() < 0.05, "load {load}: {mean} {known}");
    }
}
