//! Scenarios that several tests share.

use framegauge_fabric::{FabricConfig, HostConfig, HostIndex, LinkConfig, NicConfig, SwitchConfig, star};
use framegauge_frames::{BitRate, Mtu, Picoseconds};
use framegauge_simulator::{Flow, Outcome, Scenario, TcpSettings};

pub const GIGABIT: u64 = 1_000_000_000;

pub fn milliseconds(count: u64) -> Picoseconds {
    Picoseconds::from_nanoseconds(count * 1_000_000)
}

pub fn microseconds(count: u64) -> Picoseconds {
    Picoseconds::from_nanoseconds(count * 1_000)
}

/// Hosts on one switch. `rtt`: propagation there and back between two of them.
pub fn rack(hosts: usize, bits_per_second: u64, rtt: Picoseconds, buffer_bytes: u64) -> FabricConfig {
    let names = (1..=hosts).map(|number| HostConfig { name: format!("h{number}") }).collect();
    let rate = BitRate::new(bits_per_second).unwrap();
    // As a host's shaper on the rack: a thousandth below the line.
    let uplink = BitRate::new(bits_per_second - bits_per_second / 1000).unwrap();
    let link = LinkConfig { uplink, downlink: rate, delay: Picoseconds::new(rtt.get() / 4) };
    let port_mtu = Mtu::new(9216).unwrap();
    star(names, link, SwitchConfig { buffer_bytes, port_mtu }, NicConfig { moderation: Picoseconds::ZERO })
}

pub fn scenario(network: FabricConfig, mtu: u32, flows: Vec<Flow>, end: Picoseconds) -> Scenario {
    Scenario {
        mtus: vec![Mtu::new(mtu).unwrap(); network.hosts.len()],
        network,
        tunnel_bytes: 0,
        routers: None,
        cpus: Vec::new(),
        tcp: TcpSettings::default(),
        flows,
        requests: Vec::new(),
        changes: Vec::new(),
        end,
        jitter: Picoseconds::ZERO,
        sample_interval: Picoseconds::ZERO,
        port_interval: Picoseconds::ZERO,
        burst_bytes: 0,
        logs_segments: false,
        watch: Vec::new(),
        seed: 1,
    }
}

pub fn host(number: u16) -> HostIndex {
    HostIndex(number - 1)
}

/// Payload per second of all flows between two samples, in bits; times in milliseconds.
pub fn rate_between(outcome: &Outcome, from: u64, to: u64) -> f64 {
    let read = |at: u64| -> u64 {
        let there = outcome.samples.iter().filter(|sample| sample.time == milliseconds(at));
        there.map(|sample| sample.read_bytes[0] + sample.read_bytes[1]).sum()
    };
    8.0 * (read(to) - read(from)) as f64 / (to - from) as f64 * 1e3
}

/// At every port received = sent + dropped + queued; of all segments sent = delivered + dropped + under way.
pub fn assert_conserved(outcome: &Outcome) {
    for port in &outcome.counters.ports {
        assert_eq!(port.received_frames, port.sent_frames + port.dropped_frames + port.queued_frames);
        assert_eq!(port.received_bytes, port.sent_bytes + port.dropped_bytes + port.queued_bytes);
    }
    let dropped: u64 = outcome.counters.ports.iter().map(|port| port.dropped_frames + port.lost_frames).sum();
    assert_eq!(outcome.segments, outcome.delivered + dropped + outcome.under_way);
}
