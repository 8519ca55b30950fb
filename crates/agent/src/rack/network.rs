//! What `rack.up` tells of the network: what the fabric is made of, every number included.

use framegauge_drivers::model::{
    BlackoutConfig, CoDelConfig, FabricConfig, FqCoDelConfig, Limit, PortIndex, QueueConfig, RedConfig,
    SfqConfig,
};
use framegauge_drivers::network::Network;
use serde_json::{Map, Value, json};

/// The switches and the ports with their numbers, and how far hosts are from each other.
pub fn describe(network: &Network) -> Value {
    let Network { config, ends } = network;
    let ports: Vec<Value> = (0..config.ports.len()).map(|port| describe_port(config, port)).collect();
    let spans = ends.spans(config).map(|spans| {
        let seconds = spans.round_trip;
        (
            json!({"least": spans.links.least, "most": spans.links.most}),
            json!({"least": seconds.least.as_seconds_f64(), "most": seconds.most.as_seconds_f64()}),
        )
    });
    let (hops, rtt) = spans.unwrap_or_default();
    let shared = config.shared_buffer.map(|shared| json!({"bytes": shared.bytes, "alpha": shared.alpha}));
    json!({"switches": config.switches, "ports": ports, "hops": hops, "rtt_seconds": rtt, "shared_buffer": shared})
}

fn describe_port(network: &FabricConfig, index: usize) -> Value {
    let port = &network.ports[index];
    // A port of a host has no MTU of its own: the host's kernel keeps to its.
    let mtu = port.output_mtu.or(port.input_mtu).map(|mtu| mtu.bytes());
    json!({
        "port": network.port_name(PortIndex(index as u16)),
        "from": network.node_name(port.from), "to": network.node_name(port.to),
        "bits_per_second": port.line_rate().map(|rate| rate.bits_per_second()),
        "delay_seconds": (port.delay + port.impairments.phase).as_seconds_f64(),
        "jitter_seconds": port.impairments.jitter.as_seconds_f64(),
        "loss": port.impairments.loss, "tagged": port.impairments.tagged,
        "filters_icmp_errors": port.impairments.filters_icmp_errors,
        "mtu": mtu, "queue": port.output_mtu.is_some().then(|| describe_queue(network, &port.queue)),
    })
}

fn describe_queue(network: &FabricConfig, queue: &QueueConfig) -> Value {
    let found = match queue {
        QueueConfig::Taildrop { limit } => limited("taildrop", *limit),
        QueueConfig::Step { limit_bytes, threshold_bytes } => {
            let mut found = limited("step", Limit::Bytes(*limit_bytes));
            found.insert("threshold_bytes".into(), json!(threshold_bytes));
            found
        }
        QueueConfig::Red(red) => describe_red(red),
        QueueConfig::Sfq(sfq) => describe_sfq(sfq),
        QueueConfig::CoDel(codel) => describe_codel("codel", codel),
        QueueConfig::FqCoDel(FqCoDelConfig { codel, buckets, quantum_bytes, .. }) => {
            let mut found = describe_codel("fq_codel", codel);
            found.insert("buckets".into(), json!(buckets));
            found.insert("quantum_bytes".into(), json!(quantum_bytes));
            found
        }
        QueueConfig::Priority { limit, bands } => {
            let mut found = limited("priority", *limit);
            found.insert("bands".into(), json!(bands));
            found
        }
        QueueConfig::Blackout(blackout) => describe_blackout(network, blackout),
    };
    Value::Object(found)
}

fn describe_blackout(network: &FabricConfig, blackout: &BlackoutConfig) -> Map<String, Value> {
    let mut found = limited("blackout", blackout.limit);
    found.insert("mean_off_seconds".into(), json!(blackout.mean_off.as_seconds_f64()));
    found.insert("on_seconds".into(), json!(blackout.on().as_seconds_f64()));
    found.insert("frames".into(), json!(blackout.frames));
    found.insert("input_port".into(), json!(blackout.input_port.map(|port| network.port_name(port))));
    found
}

fn limited(kind: &str, limit: Limit) -> Map<String, Value> {
    let mut found = Map::from_iter([("kind".to_owned(), json!(kind))]);
    match limit {
        Limit::Bytes(bytes) => found.insert("limit_bytes".into(), json!(bytes)),
        Limit::Frames(frames) => found.insert("limit_frames".into(), json!(frames)),
    };
    found
}

fn describe_red(red: &RedConfig) -> Map<String, Value> {
    let mut found = limited("red", red.limit);
    let unit = if matches!(red.limit, Limit::Frames(_)) { "frames" } else { "bytes" };
    found.insert(format!("minimum_{unit}"), json!(red.minimum));
    found.insert(format!("maximum_{unit}"), json!(red.maximum));
    found.insert("weight".into(), json!(red.weight));
    found.insert("probability".into(), json!(red.most_probability));
    found.insert("gentle".into(), json!(red.gentle));
    found.insert("ecn".into(), json!(red.ecn));
    found
}

fn describe_sfq(sfq: &SfqConfig) -> Map<String, Value> {
    let mut found = limited("sfq", Limit::Bytes(sfq.limit_bytes));
    found.insert("buckets".into(), json!(sfq.buckets));
    found.insert("quantum_bytes".into(), json!(sfq.quantum_bytes));
    found.insert("perturbation_seconds".into(), json!(sfq.perturbation.as_seconds_f64()));
    found
}

fn describe_codel(kind: &str, codel: &CoDelConfig) -> Map<String, Value> {
    let mut found = limited(kind, Limit::Bytes(codel.limit_bytes));
    found.insert("target_seconds".into(), json!(codel.target.as_seconds_f64()));
    found.insert("interval_seconds".into(), json!(codel.interval.as_seconds_f64()));
    found.insert("ecn".into(), json!(codel.ecn));
    found
}
