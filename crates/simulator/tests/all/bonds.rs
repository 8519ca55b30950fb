//! Hosts whose NICs are a bond: what streams get, and how they come to lie on its members.

use crate::common::assert_conserved;
use framegauge_simulator::{Outcome, ScenarioSpec, Simulation};
use serde_json::{Value, json};

/// Of one member, in bits per second.
const RATE: f64 = 1e8;
/// What a member carries of payload at MTU 1500 with timestamps.
const CEILING: f64 = RATE * 1448.0 / 1538.0;

/// Streams from h1 to each of the other hosts, `flows` to each.
fn bonded(hosts: usize, nics: usize, bond: &str, flows: usize, seed: u64) -> Value {
    let names: Vec<String> = (1..=hosts).map(|number| format!("h{number}")).collect();
    let stream = |server: &String| json!({"client": "h1", "server": server, "steps": [{"from": "client", "bytes": null}]});
    let flows: Vec<Value> = names[1..].iter().flat_map(|name| vec![stream(name); flows]).collect();
    json!({
        "hosts": names.iter().map(|name| json!({"name": name, "mtu": 1500})).collect::<Vec<_>>(),
        "link": {"bits_per_second": RATE as u64, "rtt_seconds": 0.0002, "buffer_bytes": 131_072, "port_mtu": 9216},
        "topology": {"kind": "rack", "nics": nics, "bond": bond},
        "flows": flows, "seed": seed, "end_seconds": 2.0, "sample_seconds": 0.5, "log": false,
    })
}

fn run(spec: &Value) -> (Outcome, Vec<String>) {
    let spec: ScenarioSpec = serde_json::from_value(spec.clone()).unwrap();
    let (scenario, network) = spec.scenario().unwrap();
    let outcome = Simulation::new(scenario).unwrap().run();
    assert_conserved(&outcome);
    (outcome, network.config.port_names())
}

/// Goodput of every flow after the first half second, in bits per second.
fn goodputs(outcome: &Outcome) -> Vec<f64> {
    let read = |flow: usize, at: f64| {
        let sample = outcome
            .samples
            .iter()
            .find(|sample| sample.flow as usize == flow && sample.time.as_seconds_f64() == at);
        sample.map_or(0.0, |sample| sample.read_bytes[0] as f64)
    };
    (0..outcome.flows.len()).map(|flow| 8.0 * (read(flow, 2.0) - read(flow, 0.5)) / 1.5).collect()
}

/// Bytes that passed ports whose names begin and end so.
fn bytes((outcome, names): &(Outcome, Vec<String>), from: &str, to: &str) -> Vec<u64> {
    let ports = names.iter().zip(&outcome.counters.ports);
    ports
        .filter(|(name, _)| name.starts_with(from) && name.contains(to))
        .map(|(_, port)| port.sent_bytes)
        .collect()
}

/// Frames of data alone: members that carry acknowledgements have far less.
fn loaded(bytes: &[u64]) -> Vec<usize> {
    let most = bytes.iter().copied().max().unwrap_or(0);
    (0..bytes.len()).filter(|member| bytes[*member] > most / 10).collect()
}

#[test]
fn one_stream_gets_what_one_member_carries_whatever_the_bond_has() {
    for (nics, seed) in [(2, 1), (2, 2), (4, 3), (8, 4)] {
        let ran = run(&bonded(2, nics, "layer3+4", 1, seed));
        let goodput = goodputs(&ran.0)[0];
        assert!((goodput / CEILING - 1.0).abs() < 1e-3, "{nics} NICs: {goodput}");
        // By exactly one member of the sender, and to one of the receiver.
        assert_eq!(bytes(&ran, "h1.", ">switch").iter().filter(|bytes| **bytes > 0).count(), 1);
        assert_eq!(bytes(&ran, "switch", ">h2.").iter().filter(|bytes| **bytes > 0).count(), 1);
    }
}

/// Two streams: on distinct members at both ends they get twice one, on a common one at either end they share it.
#[test]
fn streams_on_distinct_members_add_up_and_those_on_one_share_it() {
    let (mut distinct, mut common) = (0, 0);
    for seed in 1..=16 {
        let ran = run(&bonded(2, 2, "layer3+4", 2, seed));
        let total: f64 = goodputs(&ran.0).iter().sum();
        let [out, into] = [bytes(&ran, "h1.", ">switch"), bytes(&ran, "switch", ">h2.")];
        let expected = if loaded(&out).len() == 2 && loaded(&into).len() == 2 { 2.0 } else { 1.0 };
        assert!((total / (expected * CEILING) - 1.0).abs() < 2e-3, "seed {seed}: {total}, {out:?} {into:?}");
        *(if expected == 2.0 { &mut distinct } else { &mut common }) += 1;
    }
    // A quarter of the seeds has both apart. Of 16, none or all would have it once in a hundred times.
    assert!(distinct > 0 && common > 0, "{distinct} {common}");
}

/// To as many receivers: only members of the sender are the limit, and both are full.
#[test]
fn many_streams_fill_all_members() {
    let ran = run(&bonded(33, 2, "layer3+4", 1, 1));
    let total: f64 = goodputs(&ran.0).iter().sum();
    assert!((total / (2.0 * CEILING) - 1.0).abs() < 2e-3, "{total}");
}

#[test]
fn by_addresses_all_streams_of_a_pair_of_hosts_share_one_member() {
    for bond in ["layer2", "layer2+3"] {
        for seed in 1..=4 {
            let ran = run(&bonded(2, 4, bond, 8, seed));
            let total: f64 = goodputs(&ran.0).iter().sum();
            assert!((total / CEILING - 1.0).abs() < 2e-3, "{bond}: {total}");
            assert_eq!(bytes(&ran, "h1.", ">switch").iter().filter(|bytes| **bytes > 0).count(), 1);
            assert_eq!(bytes(&ran, "switch", ">h2.").iter().filter(|bytes| **bytes > 0).count(), 1);
        }
    }
    // Other receivers may lie on other members.
    let many = run(&bonded(25, 2, "layer2+3", 1, 1));
    assert_eq!(loaded(&bytes(&many, "h1.", ">switch")).len(), 2);
}

/// What follows from a bond of one flow at a time is the network without one: the same arithmetic, port by port.
#[test]
fn a_stream_over_a_bond_is_that_of_hosts_with_one_nic() {
    let over = |topology: Value| {
        let mut spec = bonded(2, 2, "layer3+4", 1, 7);
        spec["topology"] = topology;
        let (outcome, _) = run(&spec);
        (outcome.flows[0].sender, outcome.samples.iter().map(|sample| sample.read_bytes).collect::<Vec<_>>())
    };
    let bond = over(json!({"kind": "rack", "nics": 2, "bond": "layer3+4"}));
    assert_eq!(bond, over(json!({"kind": "rack"})));
}

#[test]
fn nics_of_a_bond_have_no_addresses_of_their_own() {
    let problem = |spec: Value| {
        let spec: ScenarioSpec = serde_json::from_value(spec).unwrap();
        spec.scenario().map(|_| ()).unwrap_err()
    };
    let mut spec = bonded(2, 2, "layer3+4", 1, 1);
    spec["flows"][0]["server"] = json!("h2.2");
    assert_eq!(problem(spec), "flow 1: server: found \"h2.2\", which is no host");
    assert_eq!(problem(bonded(2, 1, "layer3+4", 1, 1)), "NICs of a bond: found 1, expected 2 or more");
}

/// A capture of a host has what all members of its bond carried.
#[test]
fn a_capture_of_a_host_is_of_all_its_members() {
    let mut spec = bonded(2, 2, "layer3+4", 8, 1);
    spec["capture"] = json!(["h1"]);
    spec["end_seconds"] = json!(0.05);
    let ran = run(&spec);
    let mut members: Vec<u16> = ran.0.passed.iter().map(|passed| passed.port.0).collect();
    members.sort_unstable();
    members.dedup();
    assert_eq!(members.len(), 4);
}
