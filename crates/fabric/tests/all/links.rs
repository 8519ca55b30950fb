//! Links that are not ideal: skewed clocks, phase, jitter, loss and tags.
//!
//! At 1 Gb/s a full frame of MTU 1500 has 1538 bytes on the wire and takes T = 12,304 ns.

use crate::common::{Log, advance_by_events, aggregate, nanoseconds, pair, rack_config};
use framegauge_fabric::{Fabric, FabricConfig, HostIndex, Impairments, PortIndex, Reason};
use framegauge_frames::Picoseconds;
use proptest::prelude::*;

const T: u64 = 12_304;

/// Two hosts, 1 us a link; these impairments behind h1's NIC.
fn impaired(impairments: Impairments) -> FabricConfig {
    let mut config = rack_config(2, 1_000, 1 << 30, 9216);
    config.ports[0].impairments = impairments;
    config
}

/// Each (time in ns, frames, captured bytes) from h1 to h2.
fn run(config: &FabricConfig, sends: &[(u64, u16, u32)]) -> (Fabric, Log) {
    let mut fabric = Fabric::new(config).unwrap();
    let mut log = Log::default();
    for (id, &(time, frames, captured)) in sends.iter().enumerate() {
        fabric.transmit(nanoseconds(time), HostIndex(0), aggregate(id as u32, frames, captured, 1));
    }
    advance_by_events(&mut fabric, &mut log, Picoseconds::MAX);
    (fabric, log)
}

#[test]
fn skew_and_phase_are_exact() {
    // 12,304 bits at 1,000,100,000 b/s are 12,302,769.7... ps, begun ones count; then T at the exact rate.
    let (_, log) = run(&impaired(Impairments { skew_ppm: 100, ..Impairments::default() }), &[(0, 1, 1514)]);
    assert_eq!(log.delivered[0].0, Picoseconds::new(12_302_770) + nanoseconds(1_000 + T + 1_000));
    let phase = nanoseconds(777);
    let (_, log) = run(&impaired(Impairments { phase, ..Impairments::default() }), &[(0, 1, 1514)]);
    assert_eq!(log.delivered[0].0, nanoseconds(T + 1_777 + T + 1_000));
}

#[test]
fn a_skewed_sender_drifts_by_its_skew() {
    // 10,000 frames of a clock that is 50 ppm slow take 123.04 ms / 0.99995 = 123.046152 ms, then one T more.
    let (_, log) =
        run(&impaired(Impairments { skew_ppm: -50, ..Impairments::default() }), &[(0, 10_000, 1514)]);
    let last = log.delivered[9_999].0.as_nanoseconds();
    // Each is rounded up by less than a picosecond.
    assert!((123_046_152 + 2_000 + T..123_046_152 + 2_000 + T + 12).contains(&last), "{last}");
}

#[test]
fn tags_take_time_and_no_room() {
    // 1542 bytes are 12,336 ns, and the least, 88, are 704 ns; the second link is untagged.
    let config = impaired(Impairments { tagged: true, ..Impairments::default() });
    for (captured, tagged, untagged) in [(1514, 12_336, T), (42, 704, 672)] {
        let (_, log) = run(&config, &[(0, 1, captured)]);
        assert_eq!(log.delivered[0].0, nanoseconds(tagged + untagged + 2_000));
    }
    let mut fabric = Fabric::new(&config).unwrap();
    fabric.transmit(Picoseconds::ZERO, HostIndex(0), aggregate(0, 10, 1514, 1));
    assert_eq!(fabric.uplink_backlog_bytes(HostIndex(0)), 10 * 1542);
    assert_eq!(fabric.counters().ports[0].queued_bytes, 10 * 1518);
}

#[test]
fn jitter_is_even_over_its_range() {
    // 4,000 frames far apart: each is 0 to 8 us late, 4 us on average with a standard error of 8 / sqrt(12 x 4000) us
    // = 37 ns; that none of them is within 1 % of an end has a probability of 0.99^4000 = 10^-17.
    let jitter = nanoseconds(8_000);
    let sends: Vec<_> = (0..4_000).map(|number| (number * 100_000, 1, 1514)).collect();
    let config = impaired(Impairments { jitter, seed: 5, ..Impairments::default() });
    let (_, log) = run(&config, &sends);
    let late: Vec<u64> = log
        .delivered
        .iter()
        .zip(&sends)
        .map(|(delivery, send)| (delivery.0 - nanoseconds(send.0 + 2 * T + 2_000)).as_picoseconds())
        .collect();
    assert!(late.iter().all(|late| *late <= 8_000_000));
    let (least, most) = (late.iter().min().unwrap(), late.iter().max().unwrap());
    assert!(*least < 80_000 && *most > 7_920_000, "{least} {most}");
    let mean = late.iter().sum::<u64>() / 4_000;
    assert!((3_850_000..4_150_000).contains(&mean), "{mean}");
    assert_eq!(run(&config, &sends).1, log);
    let other = impaired(Impairments { jitter, seed: 6, ..Impairments::default() });
    assert_ne!(run(&other, &sends).1, log);
}

#[test]
fn jitter_never_reorders() {
    // Small frames back to back, with jitter of a hundred of them, behind the switch.
    let mut config = rack_config(2, 1_000, 1 << 30, 9216);
    let jitter = nanoseconds(67_200);
    config.ports[3].impairments = Impairments { jitter, ..Impairments::default() };
    let (_, log) = run(&config, &[(0, 5_000, 42)]);
    let frames: Vec<_> = log.delivered.iter().map(|delivery| delivery.3).collect();
    assert_eq!(frames, (0..5_000).collect::<Vec<_>>());
    for (number, pair) in log.delivered.windows(2).enumerate() {
        let ideal = nanoseconds(672 * (number as u64 + 2) + 2_000);
        assert!(pair[0].0 <= pair[1].0 && ideal <= pair[0].0 && pair[0].0 <= ideal + jitter);
    }
}

#[test]
fn loss_has_its_share_its_records_and_its_runs() {
    // 20,000 draws at 0.3: 6,000 lost, with a standard deviation of sqrt(20000 x 0.21) = 65.
    for port in [0, 3] {
        let mut config = rack_config(2, 1_000, 1 << 30, 9216);
        config.ports[port].impairments = Impairments { loss: 0.3, seed: 9, ..Impairments::default() };
        let (mut fabric, log) = run(&config, &[(0, 20_000, 1514)]);
        let lost = log.discarded.len();
        assert!((5_675..6_325).contains(&lost), "{lost}");
        assert_eq!(lost + log.delivered.len(), 20_000);
        let ports = fabric.counters().ports;
        assert_eq!((ports[port].lost_frames, ports[port].lost_bytes), (lost as u64, lost as u64 * 1518));
        assert_eq!((ports[port].sent_frames, ports[port].dropped_frames), (20_000, 0));
        assert_eq!(ports[3].received_frames, 20_000 - ports[0].lost_frames);
        let since = ports[port].since(&framegauge_fabric::PortCounters::default());
        assert_eq!((since.lost_frames, since.lost_bytes), (lost as u64, lost as u64 * 1518));
        // A frame follows the one before in a run if that was lost, too; it is lost where the link ends.
        let records = fabric.take_drops();
        assert_eq!(records.len(), lost);
        let (mut run, mut before) = (0, None);
        for (record, &(_, frame)) in records.iter().zip(&log.discarded) {
            run = if frame > 0 && before == Some(frame - 1) { run + 1 } else { 1 };
            before = Some(frame);
            let arrives = if port == 0 { T + 1_000 } else { 2 * T + 2_000 } + u64::from(frame) * T;
            assert_eq!((record.time, record.run_length), (nanoseconds(arrives), run));
            let end = (record.reason, record.marked, record.port, record.input_port);
            assert_eq!(end, (Reason::Loss, false, PortIndex(port as u16), PortIndex(0)));
        }
    }
}

#[test]
fn all_or_nothing_is_lost() {
    let all = run(&impaired(Impairments { loss: 1.0, ..Impairments::default() }), &[(0, 100, 1514)]);
    assert_eq!((all.1.delivered.len(), all.1.discarded.len()), (0, 100));
    let none =
        run(&impaired(Impairments { loss: 0.0, seed: 3, ..Impairments::default() }), &[(0, 100, 1514)]);
    let mut ideal = pair(1_000, 1 << 30, 0);
    let mut log = Log::default();
    ideal.transmit(Picoseconds::ZERO, HostIndex(0), aggregate(0, 100, 1514, 1));
    ideal.advance(Picoseconds::MAX, &mut log);
    assert_eq!(none.1, log);
}

#[test]
fn what_cannot_be_is_said() {
    let said = |impairments| impaired(impairments).check().unwrap_err().to_string();
    assert_eq!(
        said(Impairments { skew_ppm: -1_000_000, ..Impairments::default() }),
        "port 0: found 1000000000 b/s with a skew of -1000000 ppm, expected a rate of 1 b/s or more"
    );
    for loss in [-0.1, 1.1, f64::NAN] {
        let expected = format!("port 0: found a loss of {loss}, expected 0 to 1");
        assert_eq!(said(Impairments { loss, ..Impairments::default() }), expected);
    }
}

fn any_impairments() -> impl Strategy<Value = Impairments> {
    let times = (0u64..100_000, prop_oneof![Just(0u64), 1u64..200_000]);
    let loss = prop_oneof![Just(0.0), 0.0f64..1.0];
    (-200_000i32..200_000, times, loss, any::<bool>(), any::<u64>()).prop_map(
        |(skew_ppm, times, loss, tagged, seed)| {
            let (phase, jitter) = (nanoseconds(times.0), nanoseconds(times.1));
            Impairments { skew_ppm, phase, jitter, loss, tagged, seed, ..Impairments::default() }
        },
    )
}

proptest! {
    #[test]
    fn impaired_links_conserve_and_keep_the_order_of_a_flow(
        links in prop::collection::vec(any_impairments(), 8),
        sends in prop::collection::vec((0u64..60_000, 0u16..4, 0u16..4, 1u16..12, 60u32..3000), 1..40),
    ) {
        let mut config = rack_config(4, 1_000, 20_000, 9216);
        config.ports.iter_mut().zip(links).for_each(|(port, impairments)| port.impairments = impairments);
        let mut fabric = Fabric::new(&config).unwrap();
        let (mut log, mut now, mut flows) = (Log::default(), Picoseconds::ZERO, Vec::new());
        for (id, &(wait, source, to, frames, captured)) in sends.iter().enumerate() {
            now += nanoseconds(wait);
            advance_by_events(&mut fabric, &mut log, now);
            fabric.transmit(now, HostIndex(source), aggregate(id as u32, frames, captured, to));
            flows.push((source, to));
        }
        advance_by_events(&mut fabric, &mut log, Picoseconds::MAX);
        let sent: usize = sends.iter().map(|send| usize::from(send.3)).sum();
        prop_assert_eq!(log.delivered.len() + log.discarded.len(), sent);
        prop_assert_eq!(fabric.take_drops().len(), log.discarded.len());
        let mut last = std::collections::HashMap::new();
        for &(_, _, id, frame) in &log.delivered {
            let before = last.insert(flows[id as usize], (id, frame));
            prop_assert!(before.is_none_or(|before| before < (id, frame)));
        }
        let ports = fabric.counters().ports;
        let sum = |of: fn(&framegauge_fabric::PortCounters) -> u64, parity: usize| -> u64 {
            ports.iter().skip(parity).step_by(2).map(of).sum()
        };
        prop_assert_eq!(sum(|port| port.sent_bytes - port.lost_bytes, 0), sum(|port| port.received_bytes, 1));
        prop_assert_eq!(sum(|port| port.sent_frames - port.lost_frames, 1), log.delivered.len() as u64);
        for port in &ports {
            prop_assert_eq!(port.received_frames, port.sent_frames + port.dropped_frames);
        }
    }
}
