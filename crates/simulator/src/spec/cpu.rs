//! The hosts' CPUs as a scenario tells them.

use framegauge_fabric::HostIndex;
use serde::Deserialize;

use super::span;
use crate::{Cost, Cpu};

/// What a core takes for a packet, an aggregate and a byte of payload.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub struct CostSpec {
    pub packet_seconds: f64,
    pub aggregate_seconds: f64,
    pub byte_seconds: f64,
}

/// The CPUs of hosts: of these, or of all.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub struct CpuSpec {
    pub cores: u16,
    /// For each time that polling begins.
    #[serde(default)]
    pub wakeup_seconds: f64,
    pub receive: CostSpec,
    pub send: CostSpec,
    /// The NIC cuts aggregates (TSO).
    #[serde(default)]
    pub tso: bool,
    #[serde(default = "usual_batch")]
    pub batch: u32,
    pub hosts: Option<Vec<String>>,
}

/// `NAPI_POLL_WEIGHT`.
const fn usual_batch() -> u32 {
    64
}

impl CostSpec {
    fn cost(&self, name: &str) -> Result<Cost, String> {
        if !(0.0..=1e-3).contains(&self.byte_seconds) {
            let actual = self.byte_seconds;
            return Err(format!("cpu.{name}.byte_seconds: found {actual}, expected 0 to 0.001 s"));
        }
        Ok(Cost {
            packet: span(&format!("cpu.{name}.packet_seconds"), self.packet_seconds)?,
            aggregate: span(&format!("cpu.{name}.aggregate_seconds"), self.aggregate_seconds)?,
            byte_picoseconds: self.byte_seconds * 1e12,
        })
    }
}

impl CpuSpec {
    /// By end, the model of its host, whose names are these; `merges`: their NICs do.
    pub(super) fn models(&self, names: &[&str], merges: bool) -> Result<Vec<Option<Cpu>>, String> {
        if !(1..=1024).contains(&self.cores) {
            return Err(format!("cpu.cores: found {}, expected 1 to 1024", self.cores));
        }
        if !(1..=65_536).contains(&self.batch) {
            return Err(format!("cpu.batch: found {}, expected 1 to 65536", self.batch));
        }
        if let Some(strange) = self.hosts.iter().flatten().find(|host| !names.contains(&host.as_str())) {
            return Err(format!("cpu.hosts: found {strange:?}, expected a host"));
        }
        let of = |host: usize| -> Result<Cpu, String> {
            Ok(Cpu {
                host: HostIndex(host as u16),
                cores: self.cores,
                wakeup: span("cpu.wakeup_seconds", self.wakeup_seconds)?,
                receive: self.receive.cost("receive")?,
                send: self.send.cost("send")?,
                merges,
                cuts: self.tso,
                batch: self.batch,
            })
        };
        let is_modelled =
            |name: &str| self.hosts.as_ref().is_none_or(|hosts| hosts.iter().any(|host| host == name));
        let model = |name: &&str| {
            let first = names.iter().position(|other| other == name).unwrap_or_default();
            is_modelled(name).then(|| of(first)).transpose()
        };
        names.iter().map(model).collect()
    }
}
