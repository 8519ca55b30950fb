//! TCP over switches that pause instead of dropping.

use crate::common::{
    GIGABIT, assert_conserved, host, microseconds, milliseconds, rack, rate_between, scenario,
};
use framegauge_fabric::{FabricConfig, LosslessConfig, QueueConfig, SharedBufferConfig};
use framegauge_frames::Mtu;
use framegauge_simulator::{Algorithm, Flow, Outcome, Scenario, Simulation};

/// Hosts on one lossless switch, for frames of an MTU.
fn lossless(hosts: usize, mtu: u32, bytes: u64, queue: QueueConfig) -> FabricConfig {
    let mut network = rack(hosts, GIGABIT, microseconds(40), u64::MAX);
    let uplinks = network.uplinks.clone();
    for (port, config) in network.ports.iter_mut().enumerate() {
        if uplinks.iter().all(|uplink| usize::from(uplink.0) != port) {
            config.queue = queue;
        }
    }
    let frame_bytes = Mtu::new(mtu).unwrap().frame_bytes();
    let lossless = Some(LosslessConfig { frame_bytes, headroom_bytes: None });
    network.shared_buffer = Some(SharedBufferConfig { bytes, alpha: 1.0, lossless });
    network
}

fn run(scenario: Scenario) -> Outcome {
    let outcome = Simulation::new(scenario).unwrap().run();
    assert_conserved(&outcome);
    assert_eq!(outcome.drops.iter().filter(|drop| !drop.marked).count(), 0);
    let senders = outcome.flows.iter().map(|flow| flow.sender.resends + flow.sender.timeouts);
    assert_eq!(senders.sum::<u64>(), 0);
    outcome
}

fn pauses(outcome: &Outcome) -> u64 {
    outcome.counters.ports.iter().map(|port| port.pauses_sent).sum()
}

#[test]
fn two_senders_fill_an_output_and_are_paused_half_of_the_time() {
    for (mtu, bytes, payload) in [(1500, 100_000, 1448.0), (9000, 400_000, 8948.0)] {
        let flows = [1, 2].map(|from| Flow::transfer(host(from), host(3), None)).to_vec();
        let network = lossless(3, mtu, bytes, QueueConfig::taildrop(u64::MAX));
        let mut scenario = scenario(network, mtu, flows, milliseconds(1000));
        // More than the buffer at any time.
        scenario.tcp.receive_window_bytes = (4_000_000, 4_000_000);
        scenario.sample_interval = milliseconds(100);
        let outcome = run(scenario);
        let known = 1e9 * payload / f64::from(mtu + 38);
        let found = rate_between(&outcome, 200, 1000);
        assert!((found / known - 1.0).abs() < 0.001, "{found} {known}");
        // No host can be told when it has nothing to send, and TCP always has: sending and pausing fill the time.
        let end = outcome.end.as_seconds_f64();
        for port in [0, 2] {
            let counts = outcome.counters.ports[port];
            let share = counts.paused.as_seconds_f64() / end;
            assert!((0.4..0.6).contains(&share), "{share}");
            assert!(counts.busy.as_seconds_f64() / end + share > 0.95, "{share}");
        }
    }
}

#[test]
fn marks_spare_most_pauses() {
    let run = |algorithm, ecn, queue| {
        let flows = [1, 2, 3, 4].map(|from| Flow::transfer(host(from), host(5), None)).to_vec();
        let mut scenario = scenario(lossless(5, 1500, 400_000, queue), 1500, flows, milliseconds(1000));
        scenario.tcp.algorithm = algorithm;
        scenario.tcp.ecn = ecn;
        scenario.tcp.receive_window_bytes = (4_000_000, 4_000_000);
        scenario.sample_interval = milliseconds(100);
        run(scenario)
    };
    let blind = run(Algorithm::Cubic, false, QueueConfig::taildrop(u64::MAX));
    let step = QueueConfig::Step { limit_bytes: u64::MAX, threshold_bytes: 30_000 };
    let marked = run(Algorithm::Dctcp, true, step);
    let known = 1e9 * 1448.0 / 1538.0;
    for outcome in [&blind, &marked] {
        let found = rate_between(outcome, 200, 1000);
        assert!((found / known - 1.0).abs() < 0.001, "{found} {known}");
    }
    let (without, with) = (pauses(&blind), pauses(&marked));
    // DCTCP keeps the queue near its step, far below a threshold: only what begins before the first marks is paused.
    assert!(without > 1000 && with < 100, "{without} {with}");
}
