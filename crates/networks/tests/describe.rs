//! What is told of a network: every number, under the names of the pipe's documentation.

use framegauge_networks::{Network, NetworkSpec, SharedBufferSpec, TopologySpec};
use serde_json::{Value, json};

fn network(queue: Value, change: impl FnOnce(&mut NetworkSpec)) -> Network {
    let mut spec = NetworkSpec {
        topology: TopologySpec::default(),
        routing: Default::default(),
        bits_per_second: 1_000_000_000,
        rtt_seconds: 240e-6,
        buffer_bytes: 500_000,
        port_mtu: 9216,
        queue: serde_json::from_value(queue).unwrap(),
        links: Vec::new(),
        shared_buffer: None,
        background: Vec::new(),
        host_mtu: 1500,
        moderation_seconds: 0.0,
        seed: 1,
    };
    change(&mut spec);
    spec.network(&["h1".to_owned(), "h2".to_owned()]).unwrap()
}

fn described(network: &Network) -> Value {
    serde_json::to_value(network.describe()).unwrap()
}

#[test]
fn ports_switches_and_distances_have_all_their_numbers() {
    let network = network(json!({"kind": "taildrop"}), |spec| {
        spec.shared_buffer = Some(SharedBufferSpec { bytes: 1_000_000, alpha: 0.5, lossless: false });
        let link =
            json!({"from": "switch", "to": "h2", "jitter_seconds": 1e-6, "loss": 0.25, "tagged": true});
        spec.links = vec![serde_json::from_value(link).unwrap()];
    });
    let found = described(&network);
    let keys: Vec<&String> = found.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["hops", "ports", "rtt_seconds", "shared_buffer", "switches"]);
    assert_eq!(found["switches"], json!(["switch"]));
    assert_eq!(found["hops"], json!({"least": 2, "most": 2}));
    assert_eq!(found["rtt_seconds"], json!({"least": 240e-6, "most": 240e-6}));
    assert_eq!(found["shared_buffer"], json!({"bytes": 1_000_000, "alpha": 0.5}));
    let port = |name: &str| {
        let ports = found["ports"].as_array().unwrap();
        ports.iter().find(|port| port["port"] == name).unwrap().clone()
    };
    // A host's queue is its kernel's.
    assert_eq!(
        port("h1>switch"),
        json!({"port": "h1>switch", "from": "h1", "to": "switch", "bits_per_second": 1_000_000_000, "delay_seconds": 60e-6,
               "jitter_seconds": 0.0, "loss": 0.0, "tagged": false, "filters_icmp_errors": false, "mtu": 9216,
               "queue": null})
    );
    assert_eq!(
        port("switch>h2"),
        json!({"port": "switch>h2", "from": "switch", "to": "h2", "bits_per_second": 1_000_000_000,
               "delay_seconds": 60e-6, "jitter_seconds": 1e-6, "loss": 0.25, "tagged": true,
               "filters_icmp_errors": false, "mtu": 9216, "queue": {"kind": "taildrop", "limit_bytes": 500_000}})
    );
}

#[test]
fn every_discipline_is_told_with_the_numbers_that_nobody_gave() {
    let cases = [
        (json!({"kind": "taildrop", "limit_frames": 50}), json!({"kind": "taildrop", "limit_frames": 50})),
        (json!({"kind": "step"}), json!({"kind": "step", "limit_bytes": 500_000, "threshold_bytes": 98_670})),
        (
            json!({"kind": "red"}),
            json!({"kind": "red", "limit_bytes": 500_000, "minimum_bytes": 125_000.0 / 3.0,
                   "maximum_bytes": 125_000.0, "weight": 0.002, "probability": 0.1, "gentle": true, "ecn": false}),
        ),
        (
            json!({"kind": "red", "limit_frames": 120, "maximum_frames": 60.0, "ecn": true}),
            json!({"kind": "red", "limit_frames": 120, "minimum_frames": 20.0, "maximum_frames": 60.0,
                   "weight": 0.002, "probability": 0.1, "gentle": true, "ecn": true}),
        ),
        (
            json!({"kind": "sfq"}),
            json!({"kind": "sfq", "limit_bytes": 500_000, "buckets": 128, "quantum_bytes": 9018,
                   "perturbation_seconds": 10.0}),
        ),
        (
            json!({"kind": "codel", "ecn": true}),
            json!({"kind": "codel", "limit_bytes": 500_000, "target_seconds": 5e-3, "interval_seconds": 0.1,
                   "ecn": true}),
        ),
        (
            json!({"kind": "fq_codel"}),
            json!({"kind": "fq_codel", "limit_bytes": 500_000, "target_seconds": 5e-3, "interval_seconds": 0.1,
                   "ecn": false, "buckets": 1024, "quantum_bytes": 1518}),
        ),
        (json!({"kind": "random_drop"}), json!({"kind": "random_drop", "limit_bytes": 500_000})),
        (json!({"kind": "priority"}), json!({"kind": "priority", "limit_bytes": 500_000, "bands": 2})),
        (
            json!({"kind": "blackout", "input_port": "h1>switch"}),
            // Twelve full frames of 1538 bytes on the wire at 1 Gb/s.
            json!({"kind": "blackout", "limit_bytes": 500_000, "mean_off_seconds": 5e-3, "on_seconds": 147.648e-6,
                   "frames": 12, "input_port": "h1>switch"}),
        ),
    ];
    for (asked, expected) in cases {
        let found = described(&network(asked, |_| ()));
        assert_eq!(found["ports"][1]["queue"], expected);
    }
}
