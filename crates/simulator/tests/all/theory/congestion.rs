//! What congestion controls come to.

use framegauge_simulator::Outcome;
use serde_json::{Value, json};

use super::{Law, goodput, network, run, run_with_names, transfer};

const RATE: f64 = 1e8;
const WIRE_BYTES: f64 = 1538.0;
/// What every stream is set to, so that one segment is sent and acknowledged at a time, as formulas have it.
fn one_by_one(algorithm: &str) -> Value {
    json!({
        "congestion_control": algorithm, "gso_bytes": 0, "delayed_ack_seconds": 0.0, "hystart": false,
        "receive_window_bytes": [16_000_000, 16_000_000],
    })
}

/// A stream over 100 Mb/s, whose own host's link is ten times as fast.
fn stream(algorithm: &str, rtt_seconds: f64, buffer_bytes: u64, seconds: f64, more: Value) -> Outcome {
    let mut spec = network(
        2,
        1500,
        RATE as u64,
        rtt_seconds,
        json!({
            "flows": [transfer(1, 2, Value::Null)], "end_seconds": seconds, "sample_seconds": 0.01,
            "links": [{"from": "h1", "to": "switch", "bits_per_second": 10 * RATE as u64}],
            "tcp": one_by_one(algorithm),
        }),
    );
    spec["link"]["buffer_bytes"] = json!(buffer_bytes);
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    run(spec)
}

/// Times and windows, in segments.
fn windows(outcome: &Outcome) -> Vec<(f64, f64)> {
    let of = |sample: &framegauge_simulator::Sample| {
        (sample.time.as_seconds_f64(), f64::from(sample.cwnd_segments))
    };
    outcome.samples.iter().map(of).collect()
}

/// Samples, by their position, at which the window begins to shrink: it does so over a round trip (RFC 6937).
fn reductions(windows: &[(f64, f64)]) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    for at in 1..windows.len() {
        let is_new = found.last().is_none_or(|last| windows[at].0 - windows[*last].0 > 0.5);
        if is_new && windows[at].1 < 0.9 * windows[at - 1].1 {
            found.push(at);
        }
    }
    found
}

pub fn reno_without_a_buffer() -> Law {
    let outcome = stream("reno", 0.05, 4 * 1518, 120.0, json!({}));
    Law {
        name: "Reno without a buffer",
        formula: "3/4 C",
        source: "G. Appenzeller, I. Keslassy, N. McKeown, \"Sizing router buffers\", SIGCOMM 2004; 50 ms, a buffer of four \
                 frames",
        unit: "Mb/s",
        known: 0.75 * RATE * 1448.0 / WIRE_BYTES * 1e-6,
        found: goodput(&outcome, None, 20.0, 120.0) * 1e-6,
        tolerance: 0.03,
        because: "Four frames are not none, and a recovery takes a round trip",
    }
}

pub fn period_of_reno() -> Law {
    // A buffer as large as what the path holds: the link is always full, and the window is halved to the path.
    let path = RATE * 0.02 / 8.0 / WIRE_BYTES;
    let outcome = stream("reno", 0.02, (path * 1518.0) as u64, 60.0, json!({}));
    let seen = windows(&outcome);
    let late: Vec<f64> =
        reductions(&seen).into_iter().map(|at| seen[at].0).filter(|time| *time > 10.0).collect();
    let most = 2.0 * path;
    Law {
        name: "period of Reno",
        formula: "3/8 Wm² L / C",
        source: "the sawtooth of RFC 5681: from Wm / 2 to Wm = C · RTT + B by one segment per window, each window taking \
                 W L / C; 20 ms, B = C · RTT",
        unit: "s",
        known: 0.375 * most * most * WIRE_BYTES * 8.0 / RATE,
        found: (late[late.len() - 1] - late[0]) / (late.len() - 1) as f64,
        tolerance: 0.03,
        because: "A loss is seen a round trip after it, and recovery takes another: some 2 in 160",
    }
}

pub fn mathis() -> Law {
    let loss: f64 = 0.002;
    let rates = (1..=4).map(|seed| {
        let spec = network(2, 1500, 1_000_000_000, 0.02, json!({
            "flows": [transfer(1, 2, Value::Null)], "end_seconds": 60.0, "sample_seconds": 10.0, "seed": seed,
            "links": [{"from": "switch", "to": "h2", "loss": loss}], "tcp": one_by_one("reno"),
        }));
        goodput(&run(spec), None, 10.0, 60.0)
    });
    Law {
        name: "Mathis",
        formula: "√(3/2) MSS / (RTT √p)",
        source: "M. Mathis, J. Semke, J. Mahdavi, T. Ott, \"The macroscopic behavior of the TCP congestion avoidance \
                 algorithm\", CCR 27(3), 1997; p 0.2 %, 20 ms",
        unit: "Mb/s",
        known: 1.5f64.sqrt() * 8.0 * 1448.0 / (0.02 * loss.sqrt()) * 1e-6,
        found: rates.sum::<f64>() / 4.0 * 1e-6,
        tolerance: 0.1,
        because: "Some 700 losses are drawn, which is good for 4 %; the formula has periodic ones",
    }
}

/// After one loss, of the frame with a number: the window at it, and windows by seconds since the epoch began.
fn cubic_course() -> (f64, Vec<(f64, f64)>) {
    // 10 Gb/s and 100 ms: nothing fills the path.
    let spec = network(
        2,
        1500,
        10_000_000_000,
        0.1,
        json!({
            "flows": [transfer(1, 2, Value::Null)], "end_seconds": 13.0, "sample_seconds": 0.01, "log": true,
            "links": [{"from": "h1", "to": "switch", "script": [{"frames": [1500], "act": "lose"}]}],
            "tcp": one_by_one("cubic"),
        }),
    );
    let outcome = run(spec);
    let threshold =
        outcome.log.iter().map(|sent| sent.ssthresh_segments).find(|segments| *segments < 1_000_000);
    let seen = windows(&outcome);
    // The epoch begins with the first acknowledgement after the recovery, from which on the window grows.
    let most = (1..seen.len()).find(|at| seen[*at].1 < seen[at - 1].1).unwrap();
    let soon: Vec<_> = seen[most..].iter().take_while(|one| one.0 < seen[most].0 + 0.5).collect();
    let least = soon.iter().map(|one| one.1).fold(f64::INFINITY, f64::min);
    let begun = soon.iter().rev().find(|one| one.1 <= least).unwrap().0;
    let course = seen.iter().filter(|one| one.0 >= begun).map(|one| (one.0 - begun, one.1)).collect();
    (f64::from(threshold.unwrap()) / 0.7, course)
}

fn cubic_law(name: &'static str, formula: &'static str, share_of_plateau: f64) -> Law {
    let (most, course) = cubic_course();
    let plateau = (most * 0.3 / 0.4).cbrt();
    let at = share_of_plateau * plateau;
    let found = course.iter().find(|one| one.0 >= at).unwrap().1;
    Law {
        name,
        formula,
        source: "RFC 9438 sections 4.1 and 4.2: W(t) = C (t − K)³ + Wm, K = ∛(0.3 Wm / C), C 0.4; one loss, 100 ms",
        unit: "segments",
        known: 0.4 * (at - plateau).powi(3) + most,
        found,
        tolerance: 0.02,
        because: "Linux aims at where the curve is a round trip later, and has 717/1024 for 0.7",
    }
}

pub fn cubic_at_half_of_its_plateau() -> Law {
    cubic_law("CUBIC's curve at K / 2", "Wm − C (K / 2)³", 0.5)
}

pub fn cubic_at_its_plateau() -> Law {
    cubic_law("CUBIC's curve at K", "Wm", 1.0)
}

pub fn cubic_among_short_round_trips() -> Law {
    let loss: f64 = 0.004;
    let rates = (1..=4).map(|seed| {
        let spec = network(2, 1500, 1_000_000_000, 0.005, json!({
            "flows": [transfer(1, 2, Value::Null)], "end_seconds": 20.0, "sample_seconds": 2.0, "seed": seed,
            "links": [{"from": "switch", "to": "h2", "loss": loss}], "tcp": one_by_one("cubic"),
        }));
        goodput(&run(spec), None, 2.0, 20.0)
    });
    Law {
        name: "CUBIC among short round trips",
        formula: "√(3/2) MSS / (RTT √p)",
        source: "RFC 9438 section 4.3: there it has the rate of Reno; p 0.4 %, 5 ms",
        unit: "Mb/s",
        known: 1.5f64.sqrt() * 8.0 * 1448.0 / (0.005 * loss.sqrt()) * 1e-6,
        found: rates.sum::<f64>() / 4.0 * 1e-6,
        tolerance: 0.15,
        because: "The rate of AIMD(0.53, 0.7) is that of Reno in a model of periodic losses only; here they are random",
    }
}

/// The queue of DCTCP's two streams, in frames: the longest, and by how much it varies.
fn dctcp_queue() -> (f64, f64) {
    let spec = network(
        3,
        1500,
        1_000_000_000,
        0.0001,
        json!({
            "flows": [transfer(1, 3, Value::Null), transfer(2, 3, Value::Null)], "end_seconds": 1.0,
            "port_sample_seconds": 5e-5, "queue": {"kind": "step", "threshold_bytes": 40 * 1518}, "jitter_seconds": 1e-6,
            "tcp": one_by_one("dctcp"),
        }),
    );
    let (outcome, names) = run_with_names(spec);
    let port = names.iter().position(|name| name == "switch>h3").unwrap();
    let late = outcome.port_samples.iter().filter(|one| usize::from(one.port.0) == port);
    let mut held: Vec<f64> = late
        .filter(|one| one.time.as_seconds_f64() > 0.2)
        .map(|one| one.queue_bytes as f64 / 1518.0)
        .collect();
    held.sort_by(f64::total_cmp);
    // Of 100 samples one may lie outside on either side.
    let (least, most) = (held[held.len() / 100], held[held.len() - 1 - held.len() / 100]);
    (most, most - least)
}

const DCTCP: &str =
    "M. Alizadeh and others, \"Data Center TCP (DCTCP)\", SIGCOMM 2010, section 3.3; N 2, K 40, 100 us";

pub fn dctcp_peak() -> Law {
    Law {
        name: "DCTCP's longest queue",
        formula: "K + N",
        source: DCTCP,
        unit: "frames",
        known: 42.0,
        found: dctcp_queue().0,
        tolerance: 0.15,
        because: "The model's senders react after one round trip to all marks; those of the handshake's end do a little later",
    }
}

pub fn dctcp_amplitude() -> Law {
    let path = 1e9 * 1e-4 / 8.0 / WIRE_BYTES;
    Law {
        name: "DCTCP's sawtooth",
        formula: "√(N (C · RTT + K) / 2)",
        source: DCTCP,
        unit: "frames",
        known: (2.0 * (path + 40.0) / 2.0).sqrt(),
        found: dctcp_queue().1,
        tolerance: 1.0,
        because: "The fluid model is for large windows that move together: with 24 segments each it holds within a factor of two",
    }
}

pub fn bbr_window() -> Law {
    let outcome = stream("bbr", 0.02, 10_000_000, 9.0, json!({}));
    let late: Vec<f64> = windows(&outcome).into_iter().filter(|one| one.0 > 4.0).map(|one| one.1).collect();
    Law {
        name: "BBR's window",
        formula: "2 C · RTT",
        source: "N. Cardwell and others, \"BBR: congestion-based congestion control\", ACM Queue 14(5), 2016; 20 ms",
        unit: "segments",
        known: 2.0 * RATE * 0.02 / 8.0 / WIRE_BYTES,
        found: late.iter().sum::<f64>() / late.len() as f64,
        tolerance: 0.1,
        because: "Linux adds room for three super-segments, and for acknowledgements that come together",
    }
}
