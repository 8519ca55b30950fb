//! Switches whose ports share a buffer with a dynamic threshold.

use crate::common::{Log, aggregate, gigabit, hosts, nanoseconds, rack_config};
use framegauge_fabric::{
    Fabric, FabricConfig, HostIndex, LinkConfig, NicConfig, Reason, SharedBufferConfig, SwitchConfig, star,
};
use framegauge_frames::{BitRate, Mtu, Picoseconds};
use proptest::prelude::*;

const FULL: u64 = 1518;

fn shared(bytes: u64, alpha: f64) -> Option<SharedBufferConfig> {
    Some(SharedBufferConfig { bytes, alpha, lossless: None })
}

#[test]
fn a_port_is_held_to_half_of_the_buffer_at_alpha_1() {
    // h1 and h2 each send ten full frames to h3 at time 0; the buffer has room for four, and a port takes a frame while
    // it holds less than what is free: none or one of four, not two. Arrivals from both at k T, a departure at (k + 1) T:
    // at k = 1 both fit, from then on one has left each time, and the frame of h2, the later one, finds two.
    let mut config = rack_config(3, 0, 1 << 20, 9216);
    config.shared_buffer = shared(4 * FULL, 1.0);
    let mut fabric = Fabric::new(&config).unwrap();
    let mut log = Log::default();
    fabric.transmit(Picoseconds::ZERO, HostIndex(0), aggregate(0, 10, 1514, 2));
    fabric.transmit(Picoseconds::ZERO, HostIndex(1), aggregate(1, 10, 1514, 2));
    fabric.advance(nanoseconds(1_000_000), &mut log);
    assert_eq!(log.discarded, (1..10).map(|frame| (1, frame)).collect::<Vec<_>>());
    let drops = fabric.take_drops();
    let expected: Vec<_> =
        (2..=10).map(|k| (nanoseconds(k * 12_304), 2 * FULL, Reason::SharedBuffer)).collect();
    let found: Vec<_> = drops.iter().map(|drop| (drop.time, drop.queue_bytes, drop.reason)).collect();
    assert_eq!(found, expected);
    assert_eq!(fabric.counters().ports[5].peak_queue_bytes, 2 * FULL);
}

/// A host at 10 Gb/s sends in turn to so many others at 1 Gb/s until their ports have long been full: what each holds.
fn saturated(ports: u16, bytes: u64, alpha: f64) -> Vec<(u64, u64)> {
    let link = LinkConfig {
        uplink: BitRate::new(10_000_000_000).unwrap(),
        downlink: gigabit(),
        delay: Picoseconds::ZERO,
    };
    let switch = SwitchConfig { buffer_bytes: 1 << 30, port_mtu: Mtu::new(9216).unwrap() };
    let mut config = star(hosts(1 + usize::from(ports)), link, switch, NicConfig::default());
    config.shared_buffer = shared(bytes, alpha);
    let mut fabric = Fabric::new(&config).unwrap();
    let mut log = Log::default();
    for id in 0..4000 {
        fabric.transmit(Picoseconds::ZERO, HostIndex(0), aggregate(id, 1, 1514, 1 + id as u16 % ports));
    }
    // 4000 frames take 4.92 ms at 10 Gb/s.
    fabric.advance(nanoseconds(4_900_000), &mut log);
    let of_port = |port: &framegauge_fabric::PortCounters| (port.queued_bytes, port.peak_queue_bytes);
    fabric.counters().ports.iter().skip(3).step_by(2).map(of_port).collect()
}

#[test]
fn saturated_ports_come_to_the_fixed_point() {
    for alpha in [0.5, 1.0, 2.0, 8.0] {
        for ports in [1, 2, 5] {
            let bytes = 600_000.0;
            // Choudhury and Hahne, equation 4: q = alpha (B - n q).
            let expected = alpha * bytes / (1.0 + f64::from(ports) * alpha);
            let held = saturated(ports, bytes as u64, alpha);
            assert_eq!(held.len(), usize::from(ports));
            for (queued, peak) in held {
                assert!((queued as f64 - expected).abs() <= FULL as f64, "{ports} at {alpha}: {queued}");
                assert!((peak as f64 - expected).abs() <= FULL as f64, "{ports} at {alpha}: peak {peak}");
            }
        }
    }
    // One port alone takes frames until it holds the threshold or more: the next multiple of a frame.
    for (alpha, threshold) in [(0.5, 200_000_u64), (1.0, 300_000), (2.0, 400_000)] {
        assert_eq!(saturated(1, 600_000, alpha)[0].1, threshold.div_ceil(FULL) * FULL);
    }
}

#[test]
fn what_cannot_work_is_said() {
    let said = |bytes, alpha| {
        let mut config = rack_config(2, 0, 1 << 20, 9216);
        config.shared_buffer = shared(bytes, alpha);
        config.check().unwrap_err().to_string()
    };
    assert_eq!(said(63, 1.0), "shared buffer: found 63 bytes, expected room for a frame of 64");
    for alpha in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let expected = format!("shared buffer: found an alpha of {alpha}, expected a number above 0");
        assert_eq!(said(64, alpha), expected);
    }
}

/// Waits so long, source, frames, captured bytes, destination.
type Send = (u64, u16, u16, u32, u16);

fn run(config: &FabricConfig, sends: &[Send], mut watch: impl FnMut(&Fabric)) -> (Fabric, Log) {
    let mut fabric = Fabric::new(config).unwrap();
    let (mut log, mut now) = (Log::default(), Picoseconds::ZERO);
    for (id, &(wait, source, frames, captured, to)) in sends.iter().enumerate() {
        now += nanoseconds(wait);
        while let Some(deadline) = fabric.next_deadline().filter(|deadline| *deadline < now) {
            fabric.advance(deadline, &mut log);
            watch(&fabric);
        }
        fabric.transmit(now, HostIndex(source), aggregate(id as u32, frames, captured, to));
    }
    while let Some(deadline) = fabric.next_deadline() {
        fabric.advance(deadline, &mut log);
        watch(&fabric);
    }
    (fabric, log)
}

proptest! {
    #[test]
    fn the_ports_never_hold_more_than_the_buffer(
        bytes in 64u64..40_000,
        alpha in 0.01f64..20.0,
        sends in prop::collection::vec((0u64..60_000, 0u16..4, 1u16..12, 60u32..3000, 0u16..4), 1..40),
    ) {
        let mut config = rack_config(4, 1000, 20_000, 9216);
        config.shared_buffer = shared(bytes, alpha);
        let mut most = 0;
        let (mut fabric, log) = run(&config, &sends, |fabric| {
            let ports = fabric.counters().ports;
            most = most.max(ports.iter().skip(1).step_by(2).map(|port| port.queued_bytes).sum());
        });
        prop_assert!(most <= bytes);
        let sent: usize = sends.iter().map(|send| usize::from(send.2)).sum();
        prop_assert_eq!(log.delivered.len() + log.discarded.len(), sent);
        prop_assert_eq!(fabric.take_drops().len(), log.discarded.len());
        for port in fabric.counters().ports {
            prop_assert_eq!(port.received_frames, port.sent_frames + port.dropped_frames);
            prop_assert_eq!(port.received_bytes, port.sent_bytes + port.dropped_bytes);
        }
    }

    #[test]
    fn a_buffer_that_is_never_short_changes_nothing(
        sends in prop::collection::vec((0u64..60_000, 0u16..4, 1u16..12, 60u32..3000, 0u16..4), 1..40),
    ) {
        let own = rack_config(4, 1000, 20_000, 1500);
        let mut config = own.clone();
        config.shared_buffer = shared(1 << 40, 1.0);
        let ((mut first, log), (mut second, other)) = (run(&own, &sends, |_| {}), run(&config, &sends, |_| {}));
        prop_assert_eq!(log, other);
        prop_assert_eq!(first.take_drops(), second.take_drops());
        prop_assert_eq!(first.counters(), second.counters());
    }
}
