//! Queue disciplines by name, with their usual numbers.

use framegauge_fabric::{
    BlackoutConfig, CoDelConfig, FabricConfig, FqCoDelConfig, Limit, PortIndex, QueueConfig, RedConfig,
    SfqConfig,
};
use framegauge_frames::{BitRate, Picoseconds, wire_bytes};
use serde::Deserialize;

/// `frame_bytes` at MTU 1500: the frame that usual numbers are about.
const USUAL_FRAME_BYTES: u32 = 1518;
/// The same at MTU 9000: a turn of SFQ, the same for all MTUs up to there.
const JUMBO_FRAME_BYTES: u32 = 9018;
/// K of DCTCP at 10 Gb/s (Alizadeh et al. 2010, section 3.4), in such frames.
const STEP_FRAMES: u64 = 65;

/// A discipline as it is asked for.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub enum QueueSpec {
    Taildrop {
        limit_frames: Option<u64>,
    },
    RandomDrop {
        limit_frames: Option<u64>,
    },
    Step {
        threshold_bytes: Option<u64>,
    },
    Red(RedSpec),
    Sfq {
        buckets: Option<u16>,
        quantum_bytes: Option<u32>,
        perturbation_seconds: Option<f64>,
    },
    #[serde(rename = "codel")]
    CoDel {
        target_seconds: Option<f64>,
        interval_seconds: Option<f64>,
        ecn: Option<bool>,
    },
    #[serde(rename = "fq_codel")]
    FqCoDel {
        target_seconds: Option<f64>,
        interval_seconds: Option<f64>,
        ecn: Option<bool>,
        buckets: Option<u16>,
        quantum_bytes: Option<u32>,
    },
    Priority {
        bands: Option<u8>,
        limit_frames: Option<u64>,
    },
    Blackout {
        mean_off_seconds: Option<f64>,
        frames: Option<u32>,
        input_port: Option<String>,
        limit_frames: Option<u64>,
    },
}

/// Random early detection, in bytes or, with a limit in frames, in frames.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct RedSpec {
    pub minimum_bytes: Option<u64>,
    pub maximum_bytes: Option<u64>,
    pub limit_frames: Option<u64>,
    pub minimum_frames: Option<f64>,
    pub maximum_frames: Option<f64>,
    pub weight: Option<f64>,
    pub probability: Option<f64>,
    pub gentle: Option<bool>,
    pub ecn: Option<bool>,
}

impl Default for QueueSpec {
    fn default() -> Self {
        QueueSpec::Taildrop { limit_frames: None }
    }
}

/// What a discipline has to know of its port.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueNumbers {
    /// Its buffer.
    pub buffer_bytes: u64,
    /// The largest frame that it can be offered and lets pass.
    pub frame_bytes: u32,
    /// Its line rate.
    pub rate: BitRate,
    /// The seed of its draws.
    pub seed: u64,
}

impl QueueSpec {
    /// This discipline with all its numbers, for a port of this fabric.
    pub(crate) fn config(&self, port: &QueueNumbers, fabric: &FabricConfig) -> Result<QueueConfig, String> {
        let buffer = |frames: Option<u64>| frames.map_or(Limit::Bytes(port.buffer_bytes), Limit::Frames);
        let (limit_bytes, seed) = (port.buffer_bytes, port.seed);
        let seconds = |value: Option<f64>, usual: f64| Picoseconds::from_seconds_f64(value.unwrap_or(usual));
        let codel = |target, interval, ecn: &Option<bool>| CoDelConfig {
            limit_bytes,
            target: seconds(target, 5e-3),
            interval: seconds(interval, 0.1),
            ecn: ecn.unwrap_or(false),
        };
        let config = match self {
            QueueSpec::Taildrop { limit_frames } => QueueConfig::Taildrop { limit: buffer(*limit_frames) },
            QueueSpec::RandomDrop { limit_frames } => {
                QueueConfig::RandomDrop { limit: buffer(*limit_frames), seed }
            }
            QueueSpec::Step { threshold_bytes } => QueueConfig::Step {
                limit_bytes,
                threshold_bytes: threshold_bytes
                    .unwrap_or(STEP_FRAMES * u64::from(USUAL_FRAME_BYTES))
                    .min(limit_bytes / 2),
            },
            QueueSpec::Red(red) => QueueConfig::Red(red.config(port)?),
            QueueSpec::Sfq { buckets, quantum_bytes, perturbation_seconds } => QueueConfig::Sfq(SfqConfig {
                limit_bytes,
                buckets: buckets.unwrap_or(128),
                quantum_bytes: quantum_bytes.unwrap_or(port.frame_bytes.max(JUMBO_FRAME_BYTES)),
                perturbation: seconds(*perturbation_seconds, 10.0),
                seed,
            }),
            QueueSpec::CoDel { target_seconds, interval_seconds, ecn } => {
                QueueConfig::CoDel(codel(*target_seconds, *interval_seconds, ecn))
            }
            QueueSpec::FqCoDel { target_seconds, interval_seconds, ecn, buckets, quantum_bytes } => {
                QueueConfig::FqCoDel(FqCoDelConfig {
                    codel: codel(*target_seconds, *interval_seconds, ecn),
                    buckets: buckets.unwrap_or(1024),
                    quantum_bytes: quantum_bytes.unwrap_or(USUAL_FRAME_BYTES),
                    seed,
                })
            }
            QueueSpec::Priority { bands, limit_frames } => {
                QueueConfig::Priority { limit: buffer(*limit_frames), bands: bands.unwrap_or(2) }
            }
            QueueSpec::Blackout { mean_off_seconds, frames, input_port, limit_frames } => {
                QueueConfig::Blackout(BlackoutConfig {
                    limit: buffer(*limit_frames),
                    mean_off: seconds(*mean_off_seconds, 5e-3),
                    frames: frames.unwrap_or(12),
                    frame_time: port.rate.serialisation(u64::from(wire_bytes(port.frame_bytes))),
                    input_port: input_port.as_deref().map(|name| find(fabric, name)).transpose()?,
                    seed,
                })
            }
        };
        config.check(u64::from(port.frame_bytes))?;
        Ok(config)
    }
}

/// The port of that name.
fn find(fabric: &FabricConfig, name: &str) -> Result<PortIndex, String> {
    let mut ports = (0..fabric.ports.len()).map(|port| PortIndex(port as u16));
    ports.find(|port| fabric.port_name(*port) == name).ok_or_else(|| {
        format!("found {name:?}, expected a port such as {:?}", fabric.port_name(PortIndex(0)))
    })
}

impl RedSpec {
    fn config(&self, port: &QueueNumbers) -> Result<RedConfig, String> {
        let in_frames = self.limit_frames.is_some();
        let strange = match in_frames {
            true => self.minimum_bytes.is_some() || self.maximum_bytes.is_some(),
            false => self.minimum_frames.is_some() || self.maximum_frames.is_some(),
        };
        if strange {
            return Err("found RED with limits in bytes and in frames, expected all in the same".into());
        }
        let limit = self.limit_frames.map_or(Limit::Bytes(port.buffer_bytes), Limit::Frames);
        let (room, minimum, maximum) = match limit {
            Limit::Frames(frames) => (frames as f64, self.minimum_frames, self.maximum_frames),
            Limit::Bytes(bytes) => (
                bytes as f64,
                self.minimum_bytes.map(|bytes| bytes as f64),
                self.maximum_bytes.map(|bytes| bytes as f64),
            ),
        };
        // A third between the two, as Floyd's "Discussions of setting parameters" (1997) has it.
        let maximum = maximum.or(minimum.map(|minimum| 3.0 * minimum)).unwrap_or(room / 4.0);
        Ok(RedConfig {
            limit,
            minimum: minimum.unwrap_or(maximum / 3.0),
            maximum,
            weight: self.weight.unwrap_or(0.002),
            most_probability: self.probability.unwrap_or(0.1),
            gentle: self.gentle.unwrap_or(true),
            ecn: self.ecn.unwrap_or(false),
            mean_frame_bytes: USUAL_FRAME_BYTES,
            mean_frame_time: port.rate.serialisation(u64::from(wire_bytes(USUAL_FRAME_BYTES))),
            seed: port.seed,
        })
    }
}
