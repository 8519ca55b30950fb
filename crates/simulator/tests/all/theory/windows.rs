//! Headers, windows and round trips.

use serde_json::{Value, json};

use super::{Law, goodput, mean_queue, network, run, run_with_names, transfer};

const RATE: u64 = 100_000_000;

/// What a host reads at most, of a link of 100 Mb/s.
fn ceiling(mtu: u32, more: Value) -> f64 {
    let mut spec = network(2, mtu, RATE, 0.0002, json!({"end_seconds": 1.0, "sample_seconds": 0.5}));
    spec["flows"] = json!([transfer(1, 2, Value::Null)]);
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    goodput(&run(spec), None, 0.5, 1.0)
}

fn ceiling_law(name: &'static str, formula: &'static str, payload: f64, wire: f64, found: f64) -> Law {
    Law {
        name,
        formula,
        source: "IEEE 802.3 (preamble 8, header 14, FCS 4, gap 12 bytes), RFC 791, RFC 8200, RFC 9293, RFC 7323",
        unit: "Mb/s",
        known: RATE as f64 * payload / wire * 1e-6,
        found: found * 1e-6,
        tolerance: 0.002,
        because: "Segments that are under way when a sample is taken count by the one or the other sample",
    }
}

pub fn ceiling_of_ipv4() -> Law {
    ceiling_law("ceiling, IPv4", "C · 1448 / 1538", 1448.0, 1538.0, ceiling(1500, json!({})))
}

pub fn ceiling_without_timestamps() -> Law {
    let found = ceiling(1500, json!({"tcp": {"timestamps": false}}));
    ceiling_law("ceiling without timestamps", "C · 1460 / 1538", 1460.0, 1538.0, found)
}

pub fn ceiling_of_ipv6() -> Law {
    let found = ceiling(1500, json!({"tcp": {"family": 6}}));
    ceiling_law("ceiling, IPv6", "C · 1428 / 1538", 1428.0, 1538.0, found)
}

pub fn ceiling_of_jumbo_frames() -> Law {
    ceiling_law("ceiling, MTU 9000", "C · 8948 / 9038", 8948.0, 9038.0, ceiling(9000, json!({})))
}

pub fn ceiling_of_tagged_frames() -> Law {
    let found = ceiling(1500, json!({"links": [{"from": "*", "to": "*", "tagged": true}]}));
    ceiling_law("ceiling, 802.1Q", "C · 1448 / 1542", 1448.0, 1542.0, found)
}

pub fn ceiling_of_vxlan() -> Law {
    let found = ceiling(1500, json!({"overlay": "vxlan"}));
    ceiling_law("ceiling in VXLAN", "C · 1398 / 1538", 1398.0, 1538.0, found)
}

pub fn window_per_round_trip() -> Law {
    let window = 40 * 1460;
    let spec = network(
        2,
        1500,
        1_000_000_000,
        0.02,
        json!({
            "flows": [transfer(1, 2, Value::Null)], "end_seconds": 4.0, "sample_seconds": 1.0,
            "tcp": {"receive_window_bytes": [window, window], "gso_bytes": 0, "delayed_ack_seconds": 0.0},
        }),
    );
    Law {
        name: "window per round trip",
        formula: "W / RTT",
        source: "RFC 7323 section 1.1; a window of 40 segments, 20 ms",
        unit: "Mb/s",
        known: 8.0 * 40.0 * 1448.0 / 0.02 * 1e-6,
        found: goodput(&run(spec), None, 1.0, 4.0) * 1e-6,
        tolerance: 0.01,
        because: "A segment takes 25 us on its way and at the switch, which adds to 20 ms",
    }
}

pub fn standing_queue() -> Law {
    // The host's own link is ten times as fast, so that what exceeds the path waits at the switch.
    let window: u32 = 200 * 1460;
    let spec = network(
        2,
        1500,
        RATE,
        0.01,
        json!({
            "flows": [transfer(1, 2, Value::Null)], "end_seconds": 2.0, "sample_seconds": 1.0, "port_sample_seconds": 1e-4,
            "links": [{"from": "h1", "to": "switch", "bits_per_second": 10 * RATE}],
            "tcp": {"receive_window_bytes": [window, window], "gso_bytes": 0, "delayed_ack_seconds": 0.0},
        }),
    );
    // In frames: 200 under way, less what the path holds.
    let path = RATE as f64 * 0.01 / 8.0 / 1538.0;
    Law {
        name: "standing queue",
        formula: "W − C · RTT",
        source: "L. Kleinrock, \"Power and deterministic rules of thumb for probabilistic problems in computer \
                 communications\", ICC 1979; Little's law; 200 segments, 100 Mb/s, 10 ms",
        unit: "frames",
        known: 200.0 - path,
        found: mean_queue(&run_with_names(spec), "switch>h2", 1.0) / 1518.0,
        tolerance: 0.02,
        because: "The frames that the hosts' links hold are not counted: fewer than two",
    }
}

pub fn slow_start() -> Law {
    let (segments, rtt) = (1270_u64, 0.1);
    let spec = network(
        2,
        1500,
        10_000_000_000,
        rtt,
        json!({
            "flows": [transfer(1, 2, json!(segments * 1448))], "end_seconds": 10.0,
            "tcp": {
                "congestion_control": "reno", "receive_window_bytes": [16_000_000, 16_000_000], "delayed_ack_seconds": 0.0,
                "gso_bytes": 0,
            },
        }),
    );
    let outcome = run(spec);
    let transfer = outcome.transfers[0];
    // 10 + 20 + … + 640 = 1270: seven windows, the last of which arrives half a round trip after it was sent.
    Law {
        name: "slow start",
        formula: "(log2(n / IW + 1) − 1/2) RTT",
        source: "N. Cardwell, S. Savage, T. Anderson, \"Modeling TCP latency\", INFOCOM 2000; RFC 5681, RFC 6928; 1270 \
                 segments, 100 ms",
        unit: "s",
        known: (f64::log2(1270.0 / 10.0 + 1.0) - 0.5) * rtt,
        found: (transfer.ended - transfer.connected).as_seconds_f64(),
        tolerance: 0.01,
        because: "The last window of 640 segments takes 0.8 ms to be sent",
    }
}

pub fn delayed_acknowledgements() -> Law {
    let spec = network(
        2,
        1500,
        RATE,
        0.001,
        json!({
            "flows": [transfer(1, 2, json!(5_000_000))], "end_seconds": 10.0, "log": true,
        }),
    );
    let outcome = run(spec);
    let count = |from_client: bool, data: bool| {
        outcome.log.iter().filter(|sent| sent.from_client == from_client && (sent.bytes > 0) == data).count()
            as f64
    };
    Law {
        name: "delayed acknowledgements",
        formula: "1 / 2 per segment",
        source: "RFC 1122 section 4.2.3.2, RFC 5681 section 4.2",
        unit: "",
        known: 0.5,
        found: count(false, false) / count(true, true),
        tolerance: 0.05,
        because: "The first ones are not delayed (Linux' quick acknowledgements), and handshake and end have their own",
    }
}

/// A chain of five links of 100 Mb/s, and what one message of so many full segments takes over it.
fn chain(segments: u64) -> f64 {
    let spec = network(
        2,
        1500,
        RATE,
        0.01,
        json!({
            "topology": {
                "kind": "custom", "switches": ["a", "b", "c", "d"],
                "links": [["h1", "a"], ["a", "b"], ["b", "c"], ["c", "d"], ["d", "h2"]],
            },
            "flows": [transfer(1, 2, json!(segments * 1448))], "end_seconds": 10.0, "tcp": {"gso_bytes": 0},
        }),
    );
    let outcome = run(spec);
    (outcome.transfers[0].ended - outcome.transfers[0].connected).as_seconds_f64() * 1e3
}

const FRAME_MILLISECONDS: f64 = 1538.0 * 8.0 / RATE as f64 * 1e3;
/// The acknowledgement that ends the handshake leaves the host just before: 90 bytes on the wire.
const BEFORE_MILLISECONDS: f64 = 90.0 * 8.0 / RATE as f64 * 1e3;

pub fn store_and_forward() -> Law {
    Law {
        name: "store and forward",
        formula: "a / C + h · L / C + d",
        source: "J. Kurose, K. Ross, \"Computer Networking\", section 1.3; a full frame over five links, d 5 ms, behind an acknowledgement of a bytes",
        unit: "ms",
        known: BEFORE_MILLISECONDS + 5.0 * FRAME_MILLISECONDS + 5.0,
        found: chain(1),
        tolerance: 1e-6,
        because: "Times are rounded to picoseconds",
    }
}

pub fn pipelining() -> Law {
    Law {
        name: "pipelining",
        formula: "a / C + (h + n − 1) L / C + d",
        source: "J. Kurose, K. Ross, \"Computer Networking\", section 1.3; ten full frames over five links, d 5 ms, behind an acknowledgement of a bytes",
        unit: "ms",
        known: BEFORE_MILLISECONDS + 14.0 * FRAME_MILLISECONDS + 5.0,
        found: chain(10),
        tolerance: 1e-6,
        because: "Times are rounded to picoseconds",
    }
}

pub fn timeouts_double() -> Law {
    // The link is down from 1 s on.
    let spec = network(
        2,
        1500,
        RATE,
        0.001,
        json!({
            "flows": [transfer(1, 2, Value::Null)], "end_seconds": 30.0, "log": true,
            "tcp": {"tick_seconds": 0.0},
            "changes": [{"at_seconds": 1.0, "set": {"from": "switch", "to": "h2", "up": false}}],
        }),
    );
    let outcome = run(spec);
    let late = outcome.log.iter().filter(|sent| sent.from_client && sent.is_resend);
    let times: Vec<f64> = late.map(|sent| sent.time.as_seconds_f64()).filter(|time| *time > 1.1).collect();
    let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    Law {
        name: "timeouts double",
        formula: "RTO(k + 1) / RTO(k) = 2",
        source: "RFC 6298 section 5.5; the link goes down",
        unit: "",
        known: 2.0,
        found: (gaps[4] / gaps[1]).cbrt(),
        tolerance: 0.001,
        because: "The timer counts milliseconds",
    }
}
