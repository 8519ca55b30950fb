//! Changes during a run: what a link carries before and after them, by arithmetic, and nothing is lost from the books.

use crate::common::{assert_conserved, rate_between};
use framegauge_simulator::{Outcome, ScenarioSpec, Simulation};
use serde_json::{Value, json};

/// Two hosts on a dumbbell of 100 Mb/s, and one stream without end.
fn changed(changes: Value, more: Value) -> (Outcome, Vec<String>) {
    let mut spec = json!({
        "hosts": [{"name": "h1", "mtu": 9000}, {"name": "h2", "mtu": 9000}],
        "topology": {"kind": "dumbbell", "left": 1},
        "link": {"bits_per_second": 100_000_000, "rtt_seconds": 0.0009, "buffer_bytes": 131_072, "port_mtu": 9216},
        "shaper": {"factor": 0.999},
        "flows": [{"client": "h1", "server": "h2", "steps": [{"from": "client", "bytes": null}]}],
        "changes": changes, "end_seconds": 6.0, "sample_seconds": 0.5, "log": true,
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let spec: ScenarioSpec = serde_json::from_value(spec).unwrap();
    let (scenario, network) = spec.scenario().unwrap();
    let outcome = Simulation::new(scenario).unwrap().run();
    assert_conserved(&outcome);
    (outcome, network.config.port_names())
}

fn near(found: f64, known: f64, tolerance: f64) {
    assert!((found / known - 1.0).abs() <= tolerance, "found {found}, known {known}");
}

const FULL: f64 = 1e8 * 8948.0 / 9038.0;

#[test]
fn a_rate_changes_and_changes_back() {
    let slow = |at: f64, rate: u64| json!({"at_seconds": at, "set": {"from": "left", "to": "right", "bits_per_second": rate}});
    let longer = json!({"end_seconds": 7.0});
    let (outcome, _) = changed(json!([slow(5.0, 100_000_000), slow(2.0, 20_000_000)]), longer);
    near(rate_between(&outcome, 1000, 2000), 0.999 * FULL, 2e-3);
    // A segment more or less is 0.15 % of that.
    near(rate_between(&outcome, 2500, 5000), 0.2 * FULL, 2e-3);
    near(rate_between(&outcome, 6000, 7000), 0.999 * FULL, 0.02);
}

/// A host stays a thousandth below its own link, whatever that is by then.
#[test]
fn a_host_follows_the_rate_of_its_own_link() {
    for rate in [50_000_000, 200_000_000] {
        let change =
            json!([{"at_seconds": 2.0, "set": {"from": "h1", "to": "left", "bits_per_second": rate}}]);
        let links = json!([{"from": "left", "to": "*", "bits_per_second": 1_000_000_000},
                           {"from": "right", "to": "*", "bits_per_second": 1_000_000_000}]);
        let (outcome, _) = changed(change, json!({"links": links}));
        near(rate_between(&outcome, 1000, 2000), 0.999 * FULL, 2e-3);
        near(rate_between(&outcome, 3000, 6000), 0.999 * FULL * f64::from(rate) / 1e8, 3e-3);
    }
}

#[test]
fn a_link_that_is_down_carries_nothing_and_then_all_again() {
    let ways = |at: f64, up: bool| {
        [("left", "right"), ("right", "left")]
            .map(|(from, to)| json!({"at_seconds": at, "set": {"from": from, "to": to, "up": up}}))
    };
    let (outcome, names) = changed(json!([ways(2.0, false), ways(3.0, true)].concat()), json!({}));
    assert_eq!(rate_between(&outcome, 2500, 3000), 0.0);
    near(rate_between(&outcome, 5000, 6000), 0.999 * FULL, 2e-3);
    let lost = outcome.drops.iter().filter(|drop| drop.reason.name() == "link_down");
    assert!(lost.clone().count() > 0);
    assert!(lost.clone().all(|drop| {
        let name = &names[usize::from(drop.port.0)];
        ["left>right", "right>left"].contains(&name.as_str())
    }));
    // Timeouts 0.2, 0.4 and 0.8 s after each other: the third finds the link up.
    assert_eq!(outcome.flows[0].sender.timeouts, 3);
}

/// A switch is down when its ports are: from it and to it.
#[test]
fn a_switch_that_is_down_takes_all_its_links_along() {
    let change = [("right", "*"), ("*", "right")]
        .map(|(from, to)| json!({"at_seconds": 2.0, "set": {"from": from, "to": to, "up": false}}));
    let (outcome, _) = changed(json!(change), json!({}));
    assert_eq!(rate_between(&outcome, 2500, 6000), 0.0);
    assert!(outcome.flows[0].sender.timeouts >= 4);
}

#[test]
fn a_delay_changes_the_round_trip() {
    let change = json!([{"at_seconds": 3.0, "set": {"from": "right", "to": "left", "delay_seconds": 0.02}}]);
    let window = json!({"tcp": {"receive_window_bytes": [17_920, 17_920], "gso_bytes": 0}});
    let (outcome, _) = changed(change, window);
    let rtt = |second: f64| {
        let at = |time: f64| time == second;
        outcome
            .samples
            .iter()
            .find(|sample| at(sample.time.as_seconds_f64()))
            .unwrap()
            .smoothed_rtt
            .as_seconds_f64()
    };
    near(rtt(6.0) - rtt(2.5), 0.02 - 0.0009 / 6.0, 0.05);
}

#[test]
fn a_loss_begins_and_ends() {
    let lossy =
        |at: f64, loss: f64| json!({"at_seconds": at, "set": {"from": "left", "to": "right", "loss": loss}});
    let (outcome, names) = changed(json!([lossy(2.0, 0.02), lossy(4.0, 0.0)]), json!({}));
    let times: Vec<f64> = outcome
        .drops
        .iter()
        .filter(|drop| drop.reason.name() == "loss")
        .map(|drop| drop.time.as_seconds_f64())
        .collect();
    assert!(!times.is_empty() && times.iter().all(|time| (2.0..4.0).contains(time)), "{times:?}");
    let place = names.iter().position(|name| name == "left>right").unwrap();
    assert_eq!(outcome.counters.ports[place].lost_frames, times.len() as u64);
    let sent = outcome.log.iter().filter(|sent| sent.from_client);
    let sent = sent.filter(|sent| (2.0..4.0).contains(&sent.time.as_seconds_f64())).count() as f64;
    // Four standard deviations of a binomial.
    assert!(
        (times.len() as f64 - 0.02 * sent).abs() < 4.0 * (0.02 * 0.98 * sent).sqrt(),
        "{} {sent}",
        times.len()
    );
    near(rate_between(&outcome, 5000, 6000), 0.999 * FULL, 0.02);
}

/// A host that has another MTU sends no larger packets; a connection keeps what both ends announced, and a new one has more.
#[test]
fn an_mtu_that_is_raised_is_of_new_connections() {
    let hosts = json!([{"name": "h1", "mtu": 1500}, {"name": "h2", "mtu": 1500}]);
    let raised = json!([{"at_seconds": 2.0, "set": {"host": "h1", "mtu": 9000}},
                        {"at_seconds": 2.0, "set": {"host": "h2", "mtu": 9000}}]);
    let flow = |begin: f64, bytes: Option<u64>| json!({"client": "h1", "server": "h2", "begin_seconds": begin, "steps": [{"from": "client", "bytes": bytes}]});
    let flows = json!([flow(0.0, None), flow(3.0, Some(1_000_000))]);
    let (outcome, _) = changed(raised, json!({"hosts": hosts, "flows": flows}));
    let largest = |connection: u32| {
        outcome.log.iter().filter(|sent| sent.connection == connection).map(|sent| sent.bytes).max().unwrap()
    };
    assert_eq!((largest(0), largest(1)), (1448, 8948));
    let lowered = json!([{"at_seconds": 2.0, "set": {"host": "h1", "mtu": 1500}},
                         {"at_seconds": 4.0, "set": {"host": "h1", "mtu": 9000}}]);
    let (outcome, _) = changed(lowered, json!({}));
    let sizes = |from: f64, to: f64| {
        let there = outcome.log.iter().filter(|sent| (from..to).contains(&sent.time.as_seconds_f64()));
        there.map(|sent| sent.bytes).max().unwrap()
    };
    assert_eq!([sizes(1.0, 2.0), sizes(2.1, 4.0), sizes(4.1, 6.0)], [8948, 1448, 8948]);
    near(rate_between(&outcome, 2500, 4000), 0.999e8 * 1448.0 / 1538.0, 3e-3);
}

/// What passes a link is what its ports take: one that takes less from a time on is a black hole.
#[test]
fn a_port_that_takes_less_drops_what_is_larger() {
    let change = json!([{"at_seconds": 2.0, "set": {"from": "left", "to": "right", "mtu": 1500}}]);
    let (outcome, names) = changed(change, json!({}));
    assert_eq!(rate_between(&outcome, 2500, 6000), 0.0);
    let place = names.iter().position(|name| name == "left>right").unwrap();
    assert!(outcome.counters.ports[place].giant_frames > 0);
}

/// A router that takes less from a time on tells it, and a connection that is there goes on with smaller segments.
#[test]
fn a_router_that_takes_less_tells() {
    let topology = json!({
        "kind": "custom", "switches": ["near", "far"], "routers": [{"name": "r1", "mtu": 9000}],
        "links": [["h1", "near"], ["near", "r1"], ["r1", "far"], ["far", "h2"]],
    });
    let change = json!([{"at_seconds": 2.0, "set": {"host": "r1", "mtu": 1500}}]);
    let (outcome, _) = changed(change, json!({"topology": topology}));
    near(rate_between(&outcome, 500, 2000), 0.999 * FULL, 5e-3);
    near(rate_between(&outcome, 4000, 6000), 0.999e8 * 1448.0 / 1538.0, 3e-3);
    assert_eq!(outcome.flows[0].sender.timeouts, 0);
}

#[test]
fn what_cannot_be_changed_is_refused() {
    let refused = |set: Value, more: Value| {
        let mut spec = json!({
            "hosts": [{"name": "h1", "mtu": 9000}, {"name": "h2", "mtu": 9000}],
            "link": {"bits_per_second": 100_000_000, "rtt_seconds": 0.0009, "buffer_bytes": 131_072, "port_mtu": 9216},
            "flows": [], "changes": [{"at_seconds": 1.0, "set": set}], "end_seconds": 6.0,
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        serde_json::from_value::<ScenarioSpec>(spec).unwrap().scenario().unwrap_err()
    };
    let some = || json!({"from": "switch", "to": "h1", "up": false});
    let cases = [
        (
            json!({"host": "h3", "mtu": 1500}),
            json!({}),
            "change 1: found host \"h3\", expected a host or a router",
        ),
        (json!({"host": "h1"}), json!({}), "change 1: found no mtu, expected one beside host"),
        (json!({"from": "h1"}), json!({}), "change 1: found other ends, expected host, or both from and to"),
        (
            json!({"from": "switch", "to": "h1", "loss": 2.0}),
            json!({}),
            "change 1: port 1: found a loss of 2, expected 0 to 1",
        ),
        (
            some(),
            json!({"shared_buffer": {"bytes": 1 << 20, "alpha": 1.0, "lossless": true}}),
            "changes: found some, expected none while the network is lossless",
        ),
    ];
    for (set, more, said) in cases {
        assert_eq!(refused(set, more), said);
    }
}
