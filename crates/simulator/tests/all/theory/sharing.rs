//! How flows share links.

use framegauge_frames::SplitMix;
use serde_json::{Value, json};

use super::{Law, goodput, network, run, run_with_names, transfer};

const RATE: f64 = 1e9;
const JUMBO_PAYLOAD: f64 = 8948.0;
const JUMBO_WIRE: f64 = 9038.0;

fn exponential(draws: &mut SplitMix, mean: f64) -> f64 {
    -mean * (1.0 - draws.even()).ln()
}

fn fair() -> Value {
    json!({"kind": "sfq", "buckets": 1024, "quantum_bytes": 9018})
}

/// Transfers of 500 kB to one host, at these times.
fn arrivals(times: &[f64]) -> f64 {
    let flows: Vec<Value> = times
        .iter()
        .enumerate()
        .map(|(number, time)| {
            let mut flow = transfer(2 + number % 40, 1, json!(500_000));
            flow["begin_seconds"] = json!(time);
            flow
        })
        .collect();
    let spec = network(
        41,
        9000,
        RATE as u64,
        2e-5,
        json!({
            "flows": flows, "end_seconds": 1000.0, "queue": fair(), "tcp": {"congestion_control": "reno"},
        }),
    );
    let outcome = run(spec);
    let took = outcome.transfers.iter().map(|one| (one.ended - one.begun).as_seconds_f64());
    took.sum::<f64>() / times.len() as f64
}

pub fn processor_sharing() -> Law {
    let alone = arrivals(&[0.0]);
    let (mut draws, mut time, mut times) = (SplitMix::new(7), 0.0, Vec::new());
    for _ in 0..3000 {
        time += exponential(&mut draws, alone / 0.5);
        times.push(time);
    }
    let load = times.len() as f64 * alone / time;
    Law {
        name: "processor sharing",
        formula: "S / (1 − ρ)",
        source: "L. Kleinrock, \"Queueing systems\", volume 2, 1976: M/G/1-PS, whatever the sizes; transfers of 500 kB, ρ 0.5, \
                 a fair queue",
        unit: "ms",
        known: alone / (1.0 - load) * 1e3,
        found: arrivals(&times) * 1e3,
        tolerance: 0.08,
        because: "3,000 arrivals are good for 3 %; a flow begins with ten segments, and has its share some round trips later",
    }
}

/// Uploads per second of users who each send 200 kB, wait for a word, and think for 4 ms on average; and what one takes alone.
fn closed(users: usize) -> (f64, f64) {
    let rounds = 300;
    let mut draws = SplitMix::new(11);
    let flows: Vec<Value> = (0..users)
        .map(|user| {
            let steps: Vec<Value> = (0..rounds)
                .flat_map(|_| {
                    let think = exponential(&mut draws, 0.004);
                    [
                        json!({"from": "client", "bytes": 200_000, "think_seconds": think}),
                        json!({"from": "server", "bytes": 64}),
                    ]
                })
                .collect();
            json!({"client": format!("h{}", user + 2), "server": "h1", "steps": steps})
        })
        .collect();
    let spec = network(
        users + 1,
        9000,
        RATE as u64,
        2e-5,
        json!({
            "flows": flows, "end_seconds": 1000.0, "queue": fair(),
            "tcp": {"congestion_control": "reno", "slow_start_after_idle": false},
        }),
    );
    let outcome = run(spec);
    // All users work until the first has done all of its rounds.
    let last = |flow: u32| {
        outcome
            .transfers
            .iter()
            .filter(|one| one.flow == flow)
            .map(|one| one.ended.as_seconds_f64())
            .fold(0.0, f64::max)
    };
    let end = (0..users as u32).map(last).fold(f64::INFINITY, f64::min);
    let done = outcome.transfers.iter().filter(|one| one.step % 2 == 1 && one.ended.as_seconds_f64() <= end);
    let segments = 200_000.0 / JUMBO_PAYLOAD;
    (done.count() as f64 / end, segments * JUMBO_WIRE * 8.0 / RATE)
}

/// Mean value analysis of one queue and users who think (seconds): customers per second.
fn mean_value(users: usize, service: f64, think: f64) -> f64 {
    let (mut rate, mut held) = (0.0, 0.0);
    for count in 1..=users {
        let response = service * (1.0 + held);
        rate = count as f64 / (response + think);
        held = rate * response;
    }
    rate
}

/// What a round takes besides thinking and the link's time: to the server and back, and by the hosts' own links.
const AROUND_SECONDS: f64 = 2e-5 + 1e-4;

pub fn closed_network() -> Law {
    let (found, service) = closed(5);
    Law {
        name: "closed network",
        formula: "MVA: X(n) = n / (S (1 + Q(n − 1)) + Z)",
        source: "M. Reiser, S. Lavenberg, \"Mean-value analysis of closed multichain queuing networks\", JACM 27(2), 1980; \
                 five users, 200 kB, Z 4 ms",
        unit: "per second",
        known: mean_value(5, service, 0.004 + AROUND_SECONDS),
        found,
        tolerance: 0.04,
        because: "1,500 rounds are good for 2 %; a round takes some 0.1 ms besides, by its first and last segments",
    }
}

pub fn closed_network_bound() -> Law {
    let (found, service) = closed(20);
    Law {
        name: "closed network, many users",
        formula: "1 / S",
        source: "P. Denning, J. Buzen, \"The operational analysis of queueing network models\", ACM Computing Surveys 10(3), \
                 1978: the asymptote; 20 users, 200 kB, Z 4 ms",
        unit: "per second",
        known: 1.0 / service,
        found,
        tolerance: 0.02,
        because: "Twenty users leave the link idle at the beginning, and for less than 1 % of the time",
    }
}

pub fn max_min() -> Law {
    let spec = network(
        4,
        1500,
        RATE as u64,
        1e-4,
        json!({
            "flows": [transfer(1, 4, Value::Null), transfer(2, 4, Value::Null), transfer(3, 4, Value::Null)],
            "links": [{"from": "h1", "to": "switch", "bits_per_second": 100_000_000}],
            "queue": {"kind": "sfq", "buckets": 1024}, "end_seconds": 1.0, "sample_seconds": 0.25,
        }),
    );
    Law {
        name: "max-min fairness",
        formula: "(C − d) / 2",
        source: "D. Bertsekas, R. Gallager, \"Data networks\", section 6.5.2; one of three flows is held to 100 Mb/s",
        unit: "Mb/s",
        known: (RATE - 1e8) / 2.0 * 1448.0 / 1538.0 * 1e-6,
        found: goodput(&run(spec), Some(1), 0.25, 1.0) * 1e-6,
        tolerance: 0.02,
        because: "A round of the fair queue is one segment of each",
    }
}

pub fn ecmp_collisions() -> Law {
    let seeds = 80;
    let used = |seed: u64| {
        let flows: Vec<Value> = (1..=8).map(|host| transfer(host, host + 8, json!(20_000))).collect();
        let spec = network(
            16,
            1500,
            RATE as u64,
            1e-4,
            json!({
                "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 8}, "flows": flows, "end_seconds": 5.0, "seed": seed,
            }),
        );
        let (outcome, names) = run_with_names(spec);
        let carries = |(name, counts): &(&String, &framegauge_fabric::PortCounters)| {
            name.starts_with("leaf1>spine") && counts.sent_bytes > 15_000
        };
        names.iter().zip(&outcome.counters.ports).filter(carries).count()
    };
    Law {
        name: "ECMP collisions",
        formula: "m (1 − (1 − 1 / m)ⁿ)",
        source: "W. Feller, \"An introduction to probability theory\", volume 1: balls in bins; 8 flows over 8 paths",
        unit: "paths",
        known: 8.0 * (1.0 - f64::powi(7.0 / 8.0, 8)),
        found: (1..=seeds).map(used).sum::<usize>() as f64 / seeds as f64,
        tolerance: 0.06,
        because: "The mean of 80 seeds, each with a standard deviation of 0.9 paths, is good for 2 %",
    }
}

pub fn incast_after_its_collapse() -> Law {
    let (servers, block, rounds) = (40_u64, 1_000_000_u64, 10);
    let flows: Vec<Value> = (0..servers)
        .map(|server| {
            json!({
                "client": "h1", "server": format!("h{}", server + 2), "barrier": 0, "repeat": {"rounds": rounds},
                "steps": [{"from": "client", "bytes": 64}, {"from": "server", "bytes": block / servers}],
            })
        })
        .collect();
    let mut spec = network(
        servers as usize + 1,
        1500,
        RATE as u64,
        1e-4,
        json!({
            "flows": flows, "end_seconds": 100.0, "jitter_seconds": 5e-6, "tcp": {"tick_seconds": 0.0},
        }),
    );
    spec["link"]["buffer_bytes"] = json!(32_000);
    let took = run(spec).end.as_seconds_f64() / rounds as f64;
    Law {
        name: "incast after its collapse",
        formula: "B / (B / C + RTOmin)",
        source: "A. Phanishayee and others, \"Measurement and analysis of TCP throughput collapse in cluster-based storage \
                 systems\", FAST 2008; 40 servers, 1 MB, 32 kB of buffer",
        unit: "Mb/s",
        known: 8.0 * block as f64 / (8.0 * block as f64 / (RATE * 1448.0 / 1538.0) + 0.2) * 1e-6,
        found: 8.0 * block as f64 / took * 1e-6,
        tolerance: 0.25,
        because: "A block waits for one timeout and what is sent after it; a few wait for a second one",
    }
}

fn lossless(flows: Value, hosts: usize) -> (framegauge_simulator::Outcome, Vec<String>) {
    let spec = network(
        hosts,
        1500,
        RATE as u64,
        4e-5,
        json!({
            "flows": flows, "end_seconds": 1.0, "sample_seconds": 0.1,
            "shared_buffer": {"bytes": 400_000, "alpha": 1.0, "lossless": true},
            "tcp": {"receive_window_bytes": [2_000_000, 2_000_000]},
        }),
    );
    run_with_names(spec)
}

pub fn lossless_pauses() -> Law {
    let (outcome, names) = lossless(json!([transfer(1, 3, Value::Null), transfer(2, 3, Value::Null)]), 3);
    let port = names.iter().position(|name| name == "h1>switch").unwrap();
    let counts = outcome.counters.ports[port];
    Law {
        name: "lossless pauses",
        formula: "1 − C / 2C",
        source: "IEEE 802.1Qbb; conservation: nothing is lost, so each of two senders is paused half of the time",
        unit: "",
        known: 0.5,
        found: 1.0 - counts.busy.as_seconds_f64() / outcome.end.as_seconds_f64(),
        tolerance: 0.03,
        because: "Neither is paused while the buffer fills at first",
    }
}
