//! The work of a scenario.

use std::collections::BTreeMap;

use framegauge_fabric::HostIndex;
use framegauge_traffic::Arrivals;
use serde::Deserialize;

use super::span;
use crate::{Flow, Repeat, Requests, Step};

/// The work of a connection.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub struct FlowSpec {
    pub client: String,
    pub server: String,
    #[serde(default)]
    pub begin_seconds: f64,
    #[serde(default)]
    pub after: Vec<u32>,
    pub over: Option<u32>,
    pub steps: Vec<StepSpec>,
    pub repeat: Option<RepeatSpec>,
    pub barrier: Option<u32>,
    pub pacing_bits_per_second: Option<u64>,
}

/// A message.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub struct StepSpec {
    pub from: SideSpec,
    pub bytes: Option<u64>,
    #[serde(default)]
    pub first_write_bytes: u64,
    #[serde(default)]
    pub write_bytes: u64,
    #[serde(default)]
    pub write_gap_seconds: f64,
    #[serde(default)]
    pub think_seconds: f64,
    #[serde(default)]
    pub reader_waits_seconds: f64,
    #[serde(default)]
    pub closes: bool,
}

/// An end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub enum SideSpec {
    Client,
    Server,
}

/// How often messages are repeated.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub enum RepeatSpec {
    Rounds(u64),
    UntilSeconds(f64),
    NewUntilSeconds(f64),
    Requests(u32),
}

/// Requests at a rate; arrivals are `uniform` or `poisson`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub struct RequestsSpec {
    pub rate_per_second: f64,
    pub arrivals: String,
    #[serde(default)]
    pub seed: u64,
    pub duration_seconds: f64,
}

impl FlowSpec {
    pub(super) fn flow(&self, places: &BTreeMap<&str, HostIndex>) -> Result<Flow, String> {
        let place = |role: &str, name: &String| {
            let host = places.get(name.as_str()).copied();
            host.ok_or_else(|| format!("{role}: found {name:?}, which is no host"))
        };
        Ok(Flow {
            client: place("client", &self.client)?,
            server: place("server", &self.server)?,
            begin: span("begin_seconds", self.begin_seconds)?,
            after: self.after.clone(),
            over: self.over,
            steps: self.steps.iter().map(StepSpec::step).collect::<Result<_, _>>()?,
            repeat: match self.repeat {
                None => Repeat::Never,
                Some(RepeatSpec::Rounds(rounds)) => Repeat::Rounds(rounds),
                Some(RepeatSpec::UntilSeconds(time)) => Repeat::Until(span("until_seconds", time)?),
                Some(RepeatSpec::Requests(client)) => Repeat::Requests(client),
                Some(RepeatSpec::NewUntilSeconds(time)) => Repeat::NewUntil(span("new_until_seconds", time)?),
            },
            barrier: self.barrier,
            pacing_bits_per_second: self.pacing_bits_per_second,
        })
    }
}

impl RequestsSpec {
    pub(super) fn requests(&self) -> Result<Requests, String> {
        let arrivals = match self.arrivals.as_str() {
            "uniform" => Arrivals::Uniform,
            "poisson" => Arrivals::Poisson { seed: self.seed },
            actual => {
                return Err(format!("requests.arrivals: found {actual:?}, expected uniform or poisson"));
            }
        };
        let duration = span("requests.duration_seconds", self.duration_seconds)?;
        Ok(Requests { rate_per_second: self.rate_per_second, arrivals, duration })
    }
}

impl StepSpec {
    fn step(&self) -> Result<Step, String> {
        Ok(Step {
            from_client: self.from == SideSpec::Client,
            bytes: self.bytes,
            first_write_bytes: self.first_write_bytes,
            write_bytes: self.write_bytes,
            write_gap: span("write_gap_seconds", self.write_gap_seconds)?,
            think: span("think_seconds", self.think_seconds)?,
            reader_waits: span("reader_waits_seconds", self.reader_waits_seconds)?,
            closes: self.closes,
        })
    }
}
