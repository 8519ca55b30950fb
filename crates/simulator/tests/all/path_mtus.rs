//! Path MTUs below those of the hosts: routers that tell it, black holes, and probes.

use crate::common::assert_conserved;
use framegauge_simulator::{Outcome, ScenarioSpec, Simulation};
use serde_json::{Value, json};

const SECONDS: f64 = 20.0;

/// Two segments of 100 Mb/s with a router of MTU 1500 between them, hosts of these MTUs, and a stream without end.
fn routed(mtus: [u32; 2], icmp: &str, more: Value) -> Value {
    let mut spec = json!({
        "hosts": [{"name": "h1", "mtu": mtus[0]}, {"name": "h2", "mtu": mtus[1]}],
        "link": {"bits_per_second": 100_000_000, "rtt_seconds": 0.0008, "buffer_bytes": 262_144, "port_mtu": 9216},
        "topology": {
            "kind": "custom", "switches": ["near", "far"], "routers": [{"name": "r1", "mtu": 1500, "icmp": icmp}],
            "links": [["h1", "near"], ["near", "r1"], ["r1", "far"], ["far", "h2"]],
        },
        "flows": [{"client": "h1", "server": "h2", "steps": [{"from": "client", "bytes": null}]}],
        "end_seconds": SECONDS, "sample_seconds": 1.0, "log": true,
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    spec
}

fn run(spec: &Value) -> (Outcome, Vec<String>) {
    let spec: ScenarioSpec = serde_json::from_value(spec.clone()).unwrap();
    let (scenario, network) = spec.scenario().unwrap();
    let outcome = Simulation::new(scenario).unwrap().run();
    assert_conserved(&outcome);
    (outcome, network.config.port_names())
}

/// Payload read between two samples, in bits per second.
fn goodput(outcome: &Outcome, from: usize, to: usize) -> f64 {
    let read = |second: usize| {
        let at = outcome.samples.iter().filter(|sample| sample.time.as_seconds_f64() == second as f64);
        at.map(|sample| sample.read_bytes[0]).sum::<u64>() as f64
    };
    8.0 * (read(to) - read(from)) / (to - from) as f64
}

/// Frames that a port dropped for their size.
fn giants((outcome, names): &(Outcome, Vec<String>), port: &str) -> u64 {
    let place = names.iter().position(|name| name == port).unwrap();
    outcome.counters.ports[place].giant_frames
}

/// Segments of 8,948 bytes in a window of 65,535: fewer than the initial window of ten.
const FLIGHT: u64 = 65_535 / 8948;
const CEILING: f64 = 1e8 * 1448.0 / 1538.0;

#[test]
fn a_flight_is_lost_to_a_router_that_tells_and_then_its_mtu_is_filled() {
    let told = run(&routed([9000, 9000], "on", json!({})));
    let outcome = &told.0;
    // What the peer's first window holds, and nothing after it: every later segment fits.
    assert_eq!(giants(&told, "r1.2>far"), FLIGHT);
    let sizes: Vec<u32> = outcome.log.iter().filter(|sent| sent.from_client).map(|sent| sent.bytes).collect();
    assert_eq!(sizes.iter().filter(|bytes| **bytes > 1448).count(), FLIGHT as usize);
    assert_eq!(outcome.flows[0].sender.timeouts, 0);
    assert!((goodput(outcome, 1, 20) / CEILING - 1.0).abs() < 1e-3, "{}", goodput(outcome, 1, 20));
}

#[test]
fn a_router_whose_errors_are_filtered_is_a_black_hole() {
    let hole = run(&routed([9000, 9000], "filtered", json!({})));
    assert_eq!(goodput(&hole.0, 0, 20), 0.0);
    assert!(giants(&hole, "r1.2>far") > 10 && hole.0.flows[0].sender.timeouts > 3);
    let filtered: u64 = hole.0.counters.ports.iter().map(|port| port.filtered_frames).sum();
    assert_eq!(filtered, giants(&hole, "r1.2>far"));
    // So is a switch, which tells nobody: the router itself takes 9000.
    let mut switch = routed([9000, 9000], "on", json!({"links": [{"from": "r1", "to": "far", "mtu": 1500}]}));
    switch["topology"]["routers"][0]["mtu"] = json!(9000);
    let switch = run(&switch);
    assert_eq!(goodput(&switch.0, 0, 20), 0.0);
    assert!(giants(&switch, "far>h2") > 10);
}

#[test]
fn probes_find_the_mtu_of_a_black_hole() {
    let found = run(&routed([9000, 9000], "filtered", json!({"tcp": {"mtu_probing": 1}})));
    let outcome = &found.0;
    // Timeouts 0.2, 0.4, 0.8, 1.6 and 3.2 s after each other: the fifth is the first that is 3 s after the first resend.
    let first = outcome.log.iter().position(|sent| sent.bytes == 1024).unwrap();
    let begun = outcome.log[first].time.as_seconds_f64();
    assert!((6.2..6.6).contains(&begun), "{begun}");
    assert_eq!(outcome.flows[0].sender.timeouts, 5);
    // What a search by halves ends at is less than 8 bytes below what fits.
    let last = outcome.log.iter().rev().find(|sent| sent.bytes > 0).unwrap().bytes;
    assert!((1441..=1448).contains(&last), "{last}");
    let known = 1e8 * f64::from(last) / f64::from(last + 90);
    assert!((goodput(outcome, 10, 20) / known - 1.0).abs() < 2e-3, "{} {known}", goodput(outcome, 10, 20));
}

#[test]
fn probes_from_the_beginning_need_no_timeout() {
    let found = run(&routed([9000, 9000], "filtered", json!({"tcp": {"mtu_probing": 2}})));
    assert_eq!(found.0.flows[0].sender.timeouts, 0);
    assert!((goodput(&found.0, 10, 20) / CEILING - 1.0).abs() < 6e-3, "{}", goodput(&found.0, 10, 20));
    let alone = run(&routed(
        [9000, 9000],
        "on",
        json!({"tcp": {"mtu_probing": 2}, "topology": {
            "kind": "custom", "switches": ["near"], "links": [["h1", "near"], ["near", "h2"]],
        }}),
    ));
    let last = alone.0.log.iter().rev().find(|sent| sent.bytes > 0).unwrap().bytes;
    assert!((8941..=8948).contains(&last), "{last}");
}

/// RFC 9293 section 3.7.1: each end announces what it takes in, and neither sends more.
#[test]
fn hosts_of_different_mtus_meet_at_the_smaller() {
    for (mtus, router) in [([9000, 1500], 9000), ([1500, 9000], 9000), ([9000, 9000], 9000)] {
        let mut spec = routed(mtus, "on", json!({"end_seconds": 2.0}));
        spec["topology"]["routers"][0]["mtu"] = json!(router);
        let found = run(&spec);
        let largest = found.0.log.iter().map(|sent| sent.bytes).max().unwrap();
        assert_eq!(largest, mtus.into_iter().min().unwrap() - 52);
        assert_eq!(giants(&found, "r1.2>far") + giants(&found, "r1.1>near"), 0);
    }
}

#[test]
fn what_a_host_has_learned_holds_for_its_next_connections() {
    let spec = routed(
        [9000, 9000],
        "on",
        json!({"flows": [{
            "client": "h1", "server": "h2", "steps": [{"from": "client", "bytes": 200_000}],
            "repeat": {"new_until_seconds": 1.0},
        }]}),
    );
    let found = run(&spec);
    assert!(found.0.flows[0].connections > 10, "{:?}", found.0.flows);
    assert_eq!(giants(&found, "r1.2>far"), FLIGHT);
}

/// RFC 1191 section 6.3, RFC 8201 section 4; as Linux 6.18 does with `net.ipv4.route.mtu_expires` of 3 s: `TCP_INFO` of an open
/// connection has an MSS of 8948 again after 3 s, until the router has told it again.
#[test]
fn what_a_host_has_learned_is_forgotten_also_by_open_connections() {
    let large = |more: Value| {
        let found = run(&routed([9000, 9000], "on", more));
        let sent = found.0.log.iter().filter(|sent| sent.from_client && sent.bytes > 1448);
        (sent.map(|sent| sent.time.as_seconds_f64()).collect::<Vec<_>>(), found)
    };
    let (times, found) = large(json!({"tcp": {"path_mtu_expires_seconds": 3.0}, "end_seconds": 8.0}));
    let begins: Vec<f64> = times
        .iter()
        .enumerate()
        .filter(|(n, t)| *n == 0 || *t - times[n - 1] > 1.0)
        .map(|(_, t)| *t)
        .collect();
    assert_eq!(begins.len(), 3, "{begins:?}");
    let expired = [begins[1] - begins[0], begins[2] - begins[1]];
    assert!(expired.iter().all(|seconds| (3.0..3.1).contains(seconds)), "{begins:?}");
    assert_eq!(giants(&found, "r1.2>far"), times.len() as u64);
    // Goodput between is that of small segments.
    assert!((goodput(&found.0, 4, 6) / CEILING - 1.0).abs() < 2e-3, "{}", goodput(&found.0, 4, 6));
    // Usually that takes ten minutes.
    let slow = json!({"bits_per_second": 1_000_000, "rtt_seconds": 0.0008, "buffer_bytes": 262_144, "port_mtu": 9216});
    let (times, _) = large(json!({"link": slow, "end_seconds": 602.0}));
    let since: Vec<f64> = times.iter().map(|time| time - times[0]).filter(|since| *since > 300.0).collect();
    assert!(since.first().is_some_and(|first| (600.0..601.0).contains(first)), "{since:?}");
}

#[test]
fn ipv6_learns_from_packet_too_big() {
    let mut spec = routed([9000, 9000], "on", json!({"tcp": {"family": 6}}));
    spec["topology"]["routers"][0]["mtu"] = json!(1280);
    let found = run(&spec);
    assert_eq!(giants(&found, "r1.2>far"), FLIGHT);
    let known = 1e8 * f64::from(1280 - 72) / f64::from(1280 + 38);
    assert!((goodput(&found.0, 1, 20) / known - 1.0).abs() < 1e-3, "{}", goodput(&found.0, 1, 20));
}

#[test]
fn what_routers_cannot_be_is_refused() {
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut spec = routed([9000, 9000], "on", json!({}));
        change(&mut spec);
        serde_json::from_value::<ScenarioSpec>(spec).unwrap().scenario().unwrap_err()
    };
    let small = refused(&|spec| spec["topology"]["routers"][0]["mtu"] = json!(551));
    assert_eq!(small, "router r1: found MTU 551, expected 552 or more: below it hosts send fragments");
    let six = refused(&|spec| {
        spec["tcp"] = json!({"family": 6});
        spec["topology"]["routers"][0]["mtu"] = json!(1279);
    });
    assert_eq!(six, "router r1: MTU 1279 is below the 1280 bytes that V6 needs");
    let lossless =
        refused(&|spec| spec["shared_buffer"] = json!({"bytes": 1 << 20, "alpha": 1.0, "lossless": true}));
    assert_eq!(lossless, "shared_buffer.lossless: found routers, expected none: they pause nobody");
}

/// As Linux 6.18 on the rack: it does not read the clock when a router tells, so that what is sent again then counts as sent before
/// the small segment behind it, whose acknowledgement makes RACK take it for lost once more (RFC 8985), and cwnd shrink.
#[test]
fn what_is_sent_again_at_once_is_lost_again_if_something_smaller_came_through() {
    let sent = |bytes: u64| {
        // In two calls; the host's own link is fast, so that the second does not wait for the first to leave.
        let step =
            json!({"from": "client", "bytes": bytes, "write_bytes": 6 * 8948, "write_gap_seconds": 1e-4});
        let links = json!([{"from": "h1", "to": "near", "bits_per_second": 10_000_000_000_u64}]);
        let flows = json!([{"client": "h1", "server": "h2", "steps": [step]}]);
        run(&routed([9000, 9000], "on", json!({"flows": flows, "links": links, "tcp": {"nagle": "off"}}))).0
    };
    let (small, none) = (sent(6 * 8948 + 852), sent(6 * 8948));
    let again = |outcome: &Outcome| {
        outcome.log.iter().filter(|sent| sent.from_client && sent.sequence == 1 && sent.bytes == 1448).count()
    };
    assert_eq!((again(&small), again(&none)), (2, 1));
    assert_eq!((small.flows[0].sender.recoveries, none.flows[0].sender.recoveries), (1, 0));
    assert!(small.flows[0].sender.lost_resends > 0);
}
