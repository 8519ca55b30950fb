//! Links that differ from the rest.

use framegauge_fabric::{Act, Impairments, PortIndex, Rule, Script};
use framegauge_frames::{BitRate, Picoseconds};
use serde::Deserialize;

use crate::QueueSpec;

/// One direction of some links, by the names of their ends; what is not given is as everywhere.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct LinkOverride {
    pub from: String,
    pub to: String,
    pub bits_per_second: Option<u64>,
    pub buffer_bytes: Option<u64>,
    pub delay_seconds: Option<f64>,
    pub skew_ppm: Option<i32>,
    pub phase_seconds: Option<f64>,
    pub jitter_seconds: Option<f64>,
    pub loss: Option<f64>,
    pub tagged: Option<bool>,
    pub mtu: Option<u32>,
    pub queue: Option<QueueSpec>,
    pub script: Option<Vec<RuleSpec>>,
}

/// What a link does to single frames.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct RuleSpec {
    pub frames: Vec<u32>,
    #[serde(default)]
    pub at_least_bytes: u32,
    pub act: ActSpec,
}

/// What becomes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub enum ActSpec {
    Lose,
    Mark,
    HoldSeconds(f64),
}

impl RuleSpec {
    fn rule(&self) -> Result<Rule, String> {
        let act = match self.act {
            ActSpec::Lose => Act::Lose,
            ActSpec::Mark => Act::Mark,
            ActSpec::HoldSeconds(seconds) => Act::Hold(span("a hold", seconds)?),
        };
        Ok(Rule { frames: self.frames.clone(), at_least_bytes: self.at_least_bytes, act })
    }
}

impl LinkOverride {
    /// Whether it is about the link from one node to another, each by one of its names.
    pub(crate) fn fits(&self, from: &[&str], to: &[&str]) -> bool {
        let fits = |pattern, names: &[&str]| names.iter().any(|name| matches(pattern, name));
        fits(&self.from, from) && fits(&self.to, to)
    }

    /// Puts what another says over what this one says.
    pub(crate) fn overlay(&mut self, other: &LinkOverride) {
        let other = other.clone();
        self.bits_per_second = other.bits_per_second.or(self.bits_per_second);
        self.buffer_bytes = other.buffer_bytes.or(self.buffer_bytes);
        self.delay_seconds = other.delay_seconds.or(self.delay_seconds);
        self.skew_ppm = other.skew_ppm.or(self.skew_ppm);
        self.phase_seconds = other.phase_seconds.or(self.phase_seconds);
        self.jitter_seconds = other.jitter_seconds.or(self.jitter_seconds);
        self.loss = other.loss.or(self.loss);
        self.tagged = other.tagged.or(self.tagged);
        self.mtu = other.mtu.or(self.mtu);
        self.queue = other.queue.or(self.queue.take());
        self.script = other.script.or(self.script.take());
    }

    /// Its rate before any skew, where all others have that rate.
    pub(crate) fn rate(&self, usual: BitRate) -> Result<BitRate, String> {
        self.bits_per_second.map_or(Ok(usual), BitRate::new).map_err(|error| error.to_string())
    }

    /// Its delay, where all others have that delay.
    pub(crate) fn delay(&self, usual: Picoseconds) -> Result<Picoseconds, String> {
        self.delay_seconds.map_or(Ok(usual), |delay| span("a delay", delay))
    }

    /// What it does to single frames, if anything, as the link behind that port.
    pub(crate) fn script(&self, port: PortIndex) -> Result<Option<Script>, String> {
        let Some(script) = &self.script else { return Ok(None) };
        let rules = script.iter().map(RuleSpec::rule).collect::<Result<_, _>>()?;
        Ok(Some(Script { port, rules }))
    }

    /// What makes it other than ideal, with the seed of its draws.
    pub(crate) fn impairments(&self, seed: u64) -> Result<Impairments, String> {
        Ok(Impairments {
            skew_ppm: self.skew_ppm.unwrap_or(0),
            phase: span("a phase", self.phase_seconds.unwrap_or(0.0))?,
            jitter: span("a jitter", self.jitter_seconds.unwrap_or(0.0))?,
            loss: self.loss.unwrap_or(0.0),
            tagged: self.tagged.unwrap_or(false),
            filters_icmp_errors: false,
            seed,
        })
    }
}

/// Ten seconds are more than any link has.
fn span(name: &str, seconds: f64) -> Result<Picoseconds, String> {
    match (0.0..=10.0).contains(&seconds) {
        true => Ok(Picoseconds::from_seconds_f64(seconds)),
        false => Err(format!("found {name} of {seconds} s, expected 0 to 10")),
    }
}

/// Whether a name is as a pattern says, in which `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(name) = name.strip_prefix(head) else { return false };
    rest.is_empty() || (0..=name.len()).any(|cut| name.get(cut..).is_some_and(|tail| matches(rest, tail)))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_stand_for_any_characters() {
        for (pattern, name) in
            [("*", ""), ("*", "h1"), ("h*", "h12"), ("edge*-1", "edge2-1"), ("*1*", "h21-")]
        {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("h", "h1"), ("h*", "edge1"), ("edge*-1", "edge1-2"), ("**2", "h1")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
