//! A network as `rack.up` tells it: what the fabric is made of, every number included.

use crate::Network;
use framegauge_fabric::{CoDelConfig, FabricConfig, FqCoDelConfig, Limit, PortIndex, QueueConfig};
use serde::Serialize;

/// The switches and the ports with their numbers, and how far hosts are from each other.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct NetworkDescription {
    pub switches: Vec<String>,
    pub ports: Vec<PortDescription>,
    pub hops: Option<Range<u32>>,
    pub rtt_seconds: Option<Range<f64>>,
    pub shared_buffer: Option<SharedBufferDescription>,
}

/// The least and the most of something.
#[derive(Debug, Clone, Copy, Serialize)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct Range<T> {
    pub least: T,
    pub most: T,
}

/// The buffer that the ports of each switch share.
#[derive(Debug, Clone, Copy, Serialize)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct SharedBufferDescription {
    pub bytes: u64,
    pub alpha: f64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lossless: bool,
}

/// One direction of a link. A host's own queue is its kernel's and not told here; the MTU is that of the switch's port.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct PortDescription {
    pub port: String,
    pub from: String,
    pub to: String,
    pub bits_per_second: Option<u64>,
    pub delay_seconds: f64,
    pub jitter_seconds: f64,
    pub loss: f64,
    pub tagged: bool,
    pub filters_icmp_errors: bool,
    pub mtu: Option<u32>,
    pub queue: Option<QueueDescription>,
}

/// A buffer in bytes or in frames.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct LimitDescription {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_frames: Option<u64>,
}

/// A queue discipline with its parameters.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub enum QueueDescription {
    Taildrop(LimitDescription),
    RandomDrop(LimitDescription),
    Step {
        limit_bytes: u64,
        threshold_bytes: u64,
    },
    Red {
        #[serde(flatten)]
        limit: LimitDescription,
        #[serde(flatten)]
        thresholds: RedThresholds,
        weight: f64,
        probability: f64,
        gentle: bool,
        ecn: bool,
    },
    Sfq {
        limit_bytes: u64,
        buckets: u16,
        quantum_bytes: u32,
        perturbation_seconds: f64,
    },
    #[serde(rename = "codel")]
    CoDel(CoDelDescription),
    #[serde(rename = "fq_codel")]
    FqCoDel {
        #[serde(flatten)]
        codel: CoDelDescription,
        buckets: u16,
        quantum_bytes: u32,
    },
    Priority {
        #[serde(flatten)]
        limit: LimitDescription,
        bands: u8,
    },
    Blackout {
        #[serde(flatten)]
        limit: LimitDescription,
        mean_off_seconds: f64,
        on_seconds: f64,
        frames: u32,
        input_port: Option<String>,
    },
}

/// Where RED begins to drop and where it drops all: in bytes or in frames, as its limit is.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub enum RedThresholds {
    Bytes { minimum_bytes: f64, maximum_bytes: f64 },
    Frames { minimum_frames: f64, maximum_frames: f64 },
}

/// The parameters of CoDel.
#[derive(Debug, Clone, Copy, Serialize)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct CoDelDescription {
    pub limit_bytes: u64,
    pub target_seconds: f64,
    pub interval_seconds: f64,
    pub ecn: bool,
}

impl Network {
    /// This network with every number, usual ones included.
    pub fn describe(&self) -> NetworkDescription {
        let Network { config, ends } = self;
        let spans = ends.spans(config);
        NetworkDescription {
            switches: config.switches.clone(),
            ports: (0..config.ports.len()).map(|port| describe_port(config, port)).collect(),
            hops: spans.map(|spans| Range { least: spans.links.least, most: spans.links.most }),
            rtt_seconds: spans.map(|spans| Range {
                least: spans.round_trip.least.as_seconds_f64(),
                most: spans.round_trip.most.as_seconds_f64(),
            }),
            shared_buffer: config.shared_buffer.map(|shared| SharedBufferDescription {
                bytes: shared.bytes,
                alpha: shared.alpha,
                lossless: shared.lossless.is_some(),
            }),
        }
    }
}

fn describe_port(network: &FabricConfig, index: usize) -> PortDescription {
    let port = &network.ports[index];
    PortDescription {
        port: network.port_name(PortIndex(index as u16)),
        from: network.node_name(port.from).to_owned(),
        to: network.node_name(port.to).to_owned(),
        bits_per_second: port.line_rate().map(|rate| rate.bits_per_second()),
        delay_seconds: (port.delay + port.impairments.phase).as_seconds_f64(),
        jitter_seconds: port.impairments.jitter.as_seconds_f64(),
        loss: port.impairments.loss,
        tagged: port.impairments.tagged,
        filters_icmp_errors: port.impairments.filters_icmp_errors,
        mtu: port.output_mtu.or(port.input_mtu).map(|mtu| mtu.bytes()),
        queue: port.output_mtu.is_some().then(|| describe_queue(network, &port.queue)),
    }
}

fn describe_queue(network: &FabricConfig, queue: &QueueConfig) -> QueueDescription {
    match queue {
        QueueConfig::Taildrop { limit } => QueueDescription::Taildrop(limited(*limit)),
        QueueConfig::RandomDrop { limit, .. } => QueueDescription::RandomDrop(limited(*limit)),
        QueueConfig::Step { limit_bytes, threshold_bytes } => {
            QueueDescription::Step { limit_bytes: *limit_bytes, threshold_bytes: *threshold_bytes }
        }
        QueueConfig::Red(red) => QueueDescription::Red {
            limit: limited(red.limit),
            thresholds: match red.limit {
                Limit::Bytes(_) => {
                    RedThresholds::Bytes { minimum_bytes: red.minimum, maximum_bytes: red.maximum }
                }
                Limit::Frames(_) => {
                    RedThresholds::Frames { minimum_frames: red.minimum, maximum_frames: red.maximum }
                }
            },
            weight: red.weight,
            probability: red.most_probability,
            gentle: red.gentle,
            ecn: red.ecn,
        },
        QueueConfig::Sfq(sfq) => QueueDescription::Sfq {
            limit_bytes: sfq.limit_bytes,
            buckets: sfq.buckets,
            quantum_bytes: sfq.quantum_bytes,
            perturbation_seconds: sfq.perturbation.as_seconds_f64(),
        },
        QueueConfig::CoDel(codel) => QueueDescription::CoDel(describe_codel(codel)),
        QueueConfig::FqCoDel(FqCoDelConfig { codel, buckets, quantum_bytes, .. }) => {
            QueueDescription::FqCoDel {
                codel: describe_codel(codel),
                buckets: *buckets,
                quantum_bytes: *quantum_bytes,
            }
        }
        QueueConfig::Priority { limit, bands } => {
            QueueDescription::Priority { limit: limited(*limit), bands: *bands }
        }
        QueueConfig::Blackout(blackout) => QueueDescription::Blackout {
            limit: limited(blackout.limit),
            mean_off_seconds: blackout.mean_off.as_seconds_f64(),
            on_seconds: blackout.on().as_seconds_f64(),
            frames: blackout.frames,
            input_port: blackout.input_port.map(|port| network.port_name(port)),
        },
    }
}

fn limited(limit: Limit) -> LimitDescription {
    match limit {
        Limit::Bytes(bytes) => LimitDescription { limit_bytes: Some(bytes), limit_frames: None },
        Limit::Frames(frames) => LimitDescription { limit_bytes: None, limit_frames: Some(frames) },
    }
}

fn describe_codel(codel: &CoDelConfig) -> CoDelDescription {
    CoDelDescription {
        limit_bytes: codel.limit_bytes,
        target_seconds: codel.target.as_seconds_f64(),
        interval_seconds: codel.interval.as_seconds_f64(),
        ecn: codel.ecn,
    }
}
