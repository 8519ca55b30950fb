//! Queues in front of a link of 1 Gb/s, whose frames come by faster links and regardless of what is lost.

use framegauge_fabric::{
    CoDelConfig, Discipline, Ecn, Frame, HostIndex, Limit, PortIndex, Queue, QueueConfig, Red, RedConfig,
};
use framegauge_frames::Picoseconds;
use framegauge_simulator::Outcome;
use serde_json::{Value, json};

use super::{Law, mean_queue, network, run_with_loads};

const RATE: f64 = 1e9;

/// Poisson loads, each a share of the link with frames of a size; nothing else is sent.
fn loads(loads: &[(f64, u32)], seconds: f64, more: Value) -> (Outcome, Vec<String>) {
    let loads: Vec<Value> = loads
        .iter()
        .enumerate()
        .map(|(place, (share, bytes))| {
            json!({
                "from": format!("h{}", place + 2), "to": "h1", "bits_per_second": (share * RATE) as u64,
                "frame_bytes": bytes, "process": "poisson",
            })
        })
        .collect();
    let mut spec = network(
        4,
        1500,
        RATE as u64,
        1e-5,
        json!({
            "background": loads, "end_seconds": seconds, "port_sample_seconds": 2e-4,
            "links": [{"from": "h*", "to": "switch", "bits_per_second": 100_000_000_000_u64}],
        }),
    );
    // It never begins.
    spec["flows"] = json!([{
        "client": "h2", "server": "h3", "begin_seconds": 1000.0, "steps": [{"from": "client", "bytes": 1}]
    }]);
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    run_with_loads(spec)
}

fn service(frame_bytes: u32) -> f64 {
    f64::from(frame_bytes + 20) * 8.0 / RATE
}

/// The mean time in the queue before it is served, of Poisson arrivals of these shares and sizes.
fn pollaczek_khinchine(loads: &[(f64, u32)]) -> f64 {
    let load: f64 = loads.iter().map(|(share, _)| share).sum();
    let second_moment: f64 = loads.iter().map(|(share, bytes)| share * service(*bytes)).sum();
    second_moment / (2.0 * (1.0 - load))
}

pub fn utilisation() -> Law {
    let (outcome, names) = loads(&[(0.6, 1518)], 2.0, json!({"port_sample_seconds": 0.0}));
    let port = names.iter().position(|name| name == "switch>h1").unwrap();
    Law {
        name: "utilisation",
        formula: "λ S",
        source: "P. Denning, J. Buzen, \"The operational analysis of queueing network models\", ACM Computing Surveys 10(3), \
                 1978; 60 % of the link",
        unit: "",
        known: 0.6,
        found: outcome.counters.ports[port].busy.as_seconds_f64() / outcome.end.as_seconds_f64(),
        tolerance: 0.01,
        because: "Some 100,000 arrivals are drawn, which is good for 0.3 %",
    }
}

pub fn poisson_arrivals_of_one_size() -> Law {
    let load: f64 = 0.7;
    let found = loads(&[(load, 1518)], 4.0, json!({}));
    Law {
        name: "M/D/1",
        formula: "ρ + ρ² / 2(1 − ρ)",
        source: "A. Erlang, 1909; D. Gross, C. Harris, \"Fundamentals of queueing theory\"; ρ 0.7",
        unit: "frames",
        known: load + load * load / (2.0 * (1.0 - load)),
        found: mean_queue(&found, "switch>h1", 0.01) / 1518.0,
        tolerance: 0.05,
        because: "20,000 samples of a queue that remembers for some of them are good for 2 %",
    }
}

pub fn poisson_arrivals_of_two_sizes() -> Law {
    let given = [(0.35, 1518), (0.35, 218)];
    let found = loads(&given, 4.0, json!({}));
    let waits = pollaczek_khinchine(&given);
    // Little's law in bytes: of each kind those that came while one waited and was sent.
    let held =
        |(share, bytes): &(f64, u32)| share / service(*bytes) * f64::from(*bytes) * (waits + service(*bytes));
    Law {
        name: "M/G/1",
        formula: "λ b̄ (λ E[S²] / 2(1 − ρ) + S)",
        source: "F. Pollaczek, 1930; A. Khinchine, 1932; J. Little, 1961; frames of 1518 and 218 bytes, 35 % each",
        unit: "kB",
        known: given.iter().map(held).sum::<f64>() * 1e-3,
        found: mean_queue(&found, "switch>h1", 0.01) * 1e-3,
        tolerance: 0.05,
        because: "20,000 samples of a queue that remembers for some of them are good for 2 %",
    }
}

pub fn overload() -> Law {
    let mut more = json!({"port_sample_seconds": 0.0});
    more["queue"] = json!({"kind": "taildrop", "limit_frames": 40});
    let (outcome, names) = loads(&[(1.25, 1518)], 2.0, more);
    let counts = outcome.counters.ports[names.iter().position(|name| name == "switch>h1").unwrap()];
    Law {
        name: "overload",
        formula: "1 − 1 / ρ",
        source: "conservation: what leaves is what the link carries; ρ 1.25",
        unit: "",
        known: 0.2,
        found: counts.dropped_frames as f64 / counts.received_frames as f64,
        tolerance: 0.02,
        because: "Some 200,000 arrivals are drawn; a buffer of 40 frames is hardly ever empty",
    }
}

pub fn random_loss() -> Law {
    let links = json!([{"from": "switch", "to": "h1", "loss": 0.01}]);
    let (outcome, names) = loads(&[(0.3, 218)], 1.0, json!({"port_sample_seconds": 0.0, "links": links}));
    let counts = outcome.counters.ports[names.iter().position(|name| name == "switch>h1").unwrap()];
    Law {
        name: "random loss",
        formula: "p",
        source: "J. Bernoulli, 1713; p 1 %",
        unit: "",
        known: 0.01,
        found: counts.lost_frames as f64 / counts.sent_frames as f64,
        tolerance: 0.08,
        because: "157,000 frames are good for 2.5 %: three standard deviations",
    }
}

fn frame(number: u32, since: Picoseconds) -> Frame {
    Frame {
        flow: 0,
        aggregate: number,
        frame_bytes: 1518,
        index: 0,
        ecn: Ecn::CAPABLE,
        band: 0,
        destination: HostIndex(0),
        input_port: PortIndex(0),
        since,
    }
}

pub fn red_between_its_thresholds() -> Law {
    let mut red = Red::new(RedConfig {
        limit: Limit::Frames(1000),
        minimum: 5.0,
        maximum: 15.0,
        weight: 1.0,
        most_probability: 0.1,
        gentle: false,
        ecn: false,
        mean_frame_bytes: 1518,
        mean_frame_time: Picoseconds::from_nanoseconds(12_304),
        seed: 1,
    });
    let (mut fates, mut offered, mut dropped) = (Vec::new(), 0_u32, 0_u32);
    while dropped < 40_000 {
        let is_held = red.frames() >= 10;
        let came = red.offer(Picoseconds::ZERO, frame(offered, Picoseconds::ZERO), 0, &mut fates).is_ok();
        if is_held {
            offered += 1;
            dropped += u32::from(!came);
            if came {
                red.take(Picoseconds::ZERO, &mut fates);
            }
        }
    }
    Law {
        name: "RED between its thresholds",
        formula: "(1 / p + 1) / 2, p = pm (q − min) / (max − min)",
        source: "S. Floyd, V. Jacobson, \"Random early detection gateways for congestion avoidance\", ToN 1(4), 1993, section \
                 7; q 10 between 5 and 15, pm 0.1: p 1/20",
        unit: "frames per drop",
        known: 10.5,
        found: f64::from(offered) / f64::from(dropped),
        tolerance: 0.01,
        because: "40,000 drops evenly in 1 … 20 are good for 0.3 %",
    }
}

pub fn codel_first_drops() -> Law {
    let milliseconds = |count: u64| Picoseconds::from_nanoseconds(1_000_000 * count);
    let config = CoDelConfig {
        limit_bytes: 100_000_000,
        target: milliseconds(5),
        interval: milliseconds(100),
        ecn: false,
    };
    let mut queue = Queue::from(QueueConfig::CoDel(config));
    let mut fates = Vec::new();
    for number in 0..20_000 {
        queue.offer(Picoseconds::ZERO, frame(number, Picoseconds::ZERO), 0, &mut fates).unwrap();
    }
    for tenth in 1..=10_000 {
        queue.take(Picoseconds::from_nanoseconds(100_000 * tenth), &mut fates);
    }
    let later: f64 = (1..=19).map(|count| 1.0 / f64::from(count).sqrt()).sum();
    Law {
        name: "CoDel's twentieth drop",
        formula: "target + interval (1 + Σ 1 / √k), k 1 … 19",
        source: "RFC 8289 sections 3.2 and 5; a queue that never empties, 5 and 100 ms",
        unit: "ms",
        known: 105.0 + 100.0 * later,
        found: fates[19].time.as_nanoseconds() as f64 * 1e-6,
        tolerance: 0.002,
        because: "A frame leaves every 0.1 ms, so that each drop is up to so much late",
    }
}
