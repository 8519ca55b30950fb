//! What hosts send enters the fabric as of the time at which they sent it, not when the fabric came to read it.
//!
//! Needs the right to make network namespaces and TAP devices, and to load BPF programs.
#![allow(clippy::disallowed_methods, reason = "these tests use real sockets")]

mod common;

use framegauge_drivers::fabric::{Meters, RunningFabric};
use framegauge_drivers::{OsError, rack::addresses as rack};
use framegauge_fabric::FabricConfig;
use framegauge_linux::clock::monotonic_nanoseconds;
use framegauge_networks::{NetworkSpec, TopologySpec};
use std::net::UdpSocket;
use std::time::Duration;

const PACKETS: usize = 200;
/// Ways so long, and interrupts so rare, that the fabric has no need to look for a while.
const WAY_SECONDS: f64 = 2e-3;
const MODERATION_SECONDS: f64 = 1e-3;

fn network() -> FabricConfig {
    let spec = NetworkSpec {
        topology: serde_json::from_str::<TopologySpec>(r#"{"kind": "rack"}"#).unwrap(),
        routing: Default::default(),
        bits_per_second: 1_000_000_000,
        rtt_seconds: 2.0 * WAY_SECONDS,
        buffer_bytes: 1_000_000,
        port_mtu: 9216,
        queue: Default::default(),
        links: Vec::new(),
        shared_buffer: None,
        background: Vec::new(),
        host_mtu: 1500,
        moderation_seconds: MODERATION_SECONDS,
        seed: 7,
    };
    spec.network(&["h1".to_owned(), "h2".to_owned()]).unwrap().config
}

/// When the fabric took packets in and when they were sent, each as (not before, not after), all in nanoseconds but from
/// different zeros; `None` where nobody may make hosts.
fn sent_and_taken_in(is_timed: bool) -> Option<Vec<(u64, u64, u64)>> {
    let ((first, mut near), (second, mut far)) = common::pair(4, false)?;
    (near.is_timed, far.is_timed) = (is_timed, is_timed);
    let fabric = RunningFabric::start(&network(), vec![near, far], false, None).expect("a fabric");
    let failed = |source| OsError { operation: "open a socket".into(), source };
    let receiver = second.run(|| UdpSocket::bind((rack::address(1, 4), 9)).map_err(failed)).expect("a port");
    let sender = first.run(|| UdpSocket::bind((rack::address(0, 4), 0)).map_err(failed)).expect("a port");
    sender.connect((rack::address(1, 4), 9)).expect("there is a route");
    fabric.begin(Meters { record: true, ..Meters::default() }).expect("it begins");
    let mut brackets = Vec::new();
    for number in 0..PACKETS {
        let before = monotonic_nanoseconds();
        sender.send(&[7; 100]).expect("it is sent");
        brackets.push((before, monotonic_nanoseconds()));
        std::thread::sleep(Duration::from_micros([5, 70, 400, 1500][number % 4]));
    }
    std::thread::sleep(Duration::from_secs_f64(2.0 * WAY_SECONDS + 2.0 * MODERATION_SECONDS));
    let record = fabric.end().expect("it ends").record.expect("it was asked for");
    drop(receiver);
    let taken_in: Vec<u64> = record
        .handed_over
        .iter()
        // What the kernel sends by itself is shorter or longer.
        .filter(|(_, host, aggregate)| host.0 == 0 && aggregate.captured_bytes == 14 + 20 + 8 + 100)
        .map(|(time, ..)| time.as_nanoseconds())
        .collect();
    assert_eq!(taken_in.len(), PACKETS);
    Some(brackets.iter().zip(taken_in).map(|(&(before, after), taken)| (before, after, taken)).collect())
}

/// The smallest and the largest zero of the fabric's clock with which each of these was taken in when it was sent.
fn zeros(found: &[(u64, u64, u64)]) -> (u64, u64) {
    let least = found.iter().map(|(before, _, taken)| before - taken).max().unwrap();
    let most = found.iter().map(|(_, after, taken)| after - taken).min().unwrap();
    (least, most)
}

#[test]
fn packets_enter_when_they_are_sent() {
    let Some(found) = sent_and_taken_in(true) else { return };
    let (least, most) = zeros(&found);
    assert!(least <= most, "no zero fits: {least} to {most}");
}

/// So the test above can fail.
#[test]
fn without_times_packets_enter_when_they_are_read() {
    let Some(found) = sent_and_taken_in(false) else { return };
    let (least, most) = zeros(&found);
    assert!(least > most, "all were read at once: {least} to {most}");
}
