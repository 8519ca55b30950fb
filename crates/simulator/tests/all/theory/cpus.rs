//! Hosts whose CPUs are the limit: packets per second are cores by what one packet takes.

use framegauge_simulator::Outcome;
use serde_json::{Value, json};

use super::{Law, goodput, network, run, transfer};

const MICROSECONDS: f64 = 1e-6;
const PACKET: f64 = 0.6;
const AGGREGATE: f64 = 1.4;
const SENT_PACKET: f64 = 0.2;
const SENT_AGGREGATE: f64 = 0.8;
/// Of a byte, both ways.
const BYTE: f64 = 0.2e-3;

/// Streams over 40 Gb/s from one host to another, of which one has CPUs.
fn streams(mtu: u32, modelled: &str, cores: u16, flows: usize, more: Value) -> Outcome {
    let cost = |packet: f64, aggregate: f64| {
        json!({
            "packet_seconds": packet * MICROSECONDS, "aggregate_seconds": aggregate * MICROSECONDS,
            "byte_seconds": BYTE * MICROSECONDS,
        })
    };
    let flows: Vec<Value> = (0..flows).map(|_| transfer(1, 2, Value::Null)).collect();
    let mut spec = network(
        2,
        mtu,
        40_000_000_000,
        5e-5,
        json!({
            "flows": flows, "end_seconds": 0.06, "sample_seconds": 0.01,
            "cpu": {
                "cores": cores, "hosts": [modelled], "receive": cost(PACKET, AGGREGATE), "send": cost(SENT_PACKET, SENT_AGGREGATE),
            },
            "tcp": {"receive_window_bytes": [1_000_000, 1_000_000], "hystart": false},
        }),
    );
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    run(spec)
}

const SOURCE: &str = "the time of a core is all taken: L. Rizzo, \"netmap: a novel framework for fast packet I/O\", USENIX ATC \
                      2012, counts packets so";
const BECAUSE: &str =
    "The first acknowledgements are not delayed, and what waits at a sample is counted by the other";

/// `known_us`: what a segment takes of a core, in microseconds.
fn law(
    name: &'static str,
    formula: &'static str,
    known_us: f64,
    mtu: u32,
    cores: f64,
    outcome: &Outcome,
) -> Law {
    let payload = f64::from(mtu - 52);
    Law {
        name,
        formula,
        source: SOURCE,
        unit: "packets per second",
        known: cores / (known_us * MICROSECONDS),
        found: goodput(outcome, None, 0.02, 0.06) / (8.0 * payload),
        tolerance: 0.03,
        because: BECAUSE,
    }
}

/// What one full segment takes where it is received and answered by half an acknowledgement.
fn received(mtu: u32) -> f64 {
    PACKET + AGGREGATE + f64::from(mtu - 52) * BYTE + (SENT_PACKET + SENT_AGGREGATE) / 2.0
}

pub fn packets_of_a_receiver() -> Law {
    let outcome = streams(1500, "h2", 1, 4, json!({}));
    law(
        "packets of a receiver, MTU 1500",
        "1 / (c_p + c_a + b c_b + a / 2)",
        received(1500),
        1500,
        1.0,
        &outcome,
    )
}

pub fn jumbo_frames_of_a_receiver() -> Law {
    let outcome = streams(9000, "h2", 1, 4, json!({}));
    law(
        "packets of a receiver, MTU 9000",
        "1 / (c_p + c_a + b c_b + a / 2)",
        received(9000),
        9000,
        1.0,
        &outcome,
    )
}

pub fn packets_of_two_cores() -> Law {
    let outcome = streams(1500, "h2", 2, 16, json!({}));
    law("packets of two cores", "2 / (c_p + c_a + b c_b + a / 2)", received(1500), 1500, 2.0, &outcome)
}

pub fn packets_of_a_sender() -> Law {
    let tcp = json!({"receive_window_bytes": [1_000_000, 1_000_000], "hystart": false, "gso_bytes": 0});
    let outcome = streams(1500, "h1", 1, 4, json!({"tcp": tcp}));
    // The acknowledgements of a batch let so much go that aggregates are as large as they can be: 45 segments.
    let known = SENT_PACKET + SENT_AGGREGATE / 45.0 + 1448.0 * BYTE + (PACKET + AGGREGATE) / 2.0;
    law("packets of a sender", "1 / (s_p + s_a / 45 + b c_b + r / 2)", known, 1500, 1.0, &outcome)
}

pub fn merged_packets_of_a_receiver() -> Law {
    let outcome = streams(1500, "h2", 1, 1, json!({"nic": {"coalesces": true}}));
    // A batch of 64 packets is 45 of them, which make 65,160 bytes, and 19.
    let batch = 64.0 * (PACKET + 1448.0 * BYTE) + 2.0 * (AGGREGATE + SENT_PACKET + SENT_AGGREGATE);
    law(
        "merged packets of a receiver",
        "64 / (64 (c_p + b c_b) + 2 (c_a + a))",
        batch / 64.0,
        1500,
        1.0,
        &outcome,
    )
}

pub fn wakeups_of_a_receiver() -> Law {
    let cost = |packet: f64, aggregate: f64| {
        json!({
            "packet_seconds": packet * MICROSECONDS, "aggregate_seconds": aggregate * MICROSECONDS,
            "byte_seconds": BYTE * MICROSECONDS,
        })
    };
    const WAKEUP: f64 = 4.0;
    let outcome = run(network(
        2,
        1500,
        100_000_000,
        5e-5,
        json!({
            "flows": [transfer(1, 2, json!(1448 * 1000))], "end_seconds": 1.0,
            "cpu": {
                "cores": 1, "hosts": ["h2"], "wakeup_seconds": WAKEUP * MICROSECONDS, "receive": cost(PACKET, AGGREGATE),
                "send": cost(SENT_PACKET, SENT_AGGREGATE),
            },
        }),
    ));
    let cpu = &outcome.cpus[0];
    let busy = cpu.busy[0].as_seconds_f64();
    // Packets come every 123 us, when the last one is long done.
    let known = received(1500) + WAKEUP;
    Law {
        name: "wakeups of a receiver",
        formula: "w + c_p + c_a + b c_b + a / 2",
        source: "a core that is idle takes an interrupt for every packet: J. Mogul, K. Ramakrishnan, \"Eliminating receive \
                 livelock in an interrupt-driven kernel\", USENIX ATC 1996",
        unit: "microseconds of a core per packet",
        known,
        found: busy / MICROSECONDS / 1000.0,
        tolerance: 0.03,
        because: BECAUSE,
    }
}
