//! Load that the fabric makes itself, between hosts by name.

use framegauge_fabric::{BackgroundConfig, FabricConfig, HostIndex, Process};
use framegauge_frames::{BitRate, Picoseconds};
use serde::Deserialize;

/// One load as it is asked for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct BackgroundSpec {
    pub from: String,
    pub to: String,
    pub share: Option<f64>,
    pub bits_per_second: Option<u64>,
    #[serde(default = "usual_frame")]
    pub frame_bytes: u32,
    #[serde(default)]
    pub process: ProcessSpec,
    #[serde(default = "usual_span")]
    pub mean_on_seconds: f64,
    #[serde(default = "usual_span")]
    pub mean_off_seconds: f64,
}

/// When its frames come.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub enum ProcessSpec {
    #[default]
    Constant,
    Poisson,
    OnOff,
}

const fn usual_frame() -> u32 {
    1518
}

const fn usual_span() -> f64 {
    0.01
}

impl BackgroundSpec {
    /// On this fabric.
    pub(crate) fn config(&self, fabric: &FabricConfig, seed: u64) -> Result<BackgroundConfig, String> {
        let (from, to) = (host(fabric, &self.from)?, host(fabric, &self.to)?);
        let uplink = fabric.uplinks[usize::from(from.0)];
        let line = fabric.ports[usize::from(uplink.0)].rate.bits_per_second();
        let bits_per_second = match (self.share, self.bits_per_second) {
            (Some(share), None) if share > 0.0 && share <= 1.0 => (share * line as f64).round() as u64,
            (Some(share), None) => return Err(format!("found a share of {share}, expected above 0, to 1")),
            (None, Some(rate)) => rate,
            _ => return Err("found both or neither of share and bits_per_second, expected one".into()),
        };
        let span = |seconds: f64| match seconds > 0.0 && seconds <= 1000.0 {
            true => Ok(Picoseconds::from_seconds_f64(seconds)),
            false => Err(format!("found a mean of {seconds} s, expected above 0, to 1000")),
        };
        let process = match self.process {
            ProcessSpec::Constant => Process::Constant,
            ProcessSpec::Poisson => Process::Poisson,
            ProcessSpec::OnOff => Process::OnOff {
                mean_on: span(self.mean_on_seconds)?,
                mean_off: span(self.mean_off_seconds)?,
            },
        };
        let rate = BitRate::new(bits_per_second).map_err(|error| error.to_string())?;
        Ok(BackgroundConfig { from, to, rate, frame_bytes: self.frame_bytes, process, seed })
    }
}

/// The end of that name, or the first of a host with several NICs.
fn host(fabric: &FabricConfig, name: &str) -> Result<HostIndex, String> {
    let first = format!("{name}.1");
    let place = fabric.hosts.iter().position(|host| host.name == name || host.name == first);
    place.map(|place| HostIndex(place as u16)).ok_or_else(|| {
        let names: Vec<&str> = fabric.hosts.iter().map(|host| host.name.as_str()).collect();
        format!("found {name:?}, expected one of the hosts {}", names.join(", "))
    })
}
