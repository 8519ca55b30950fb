//! What is different about single links.

use framegauge_frames::{BitRate, Picoseconds};
use serde::Deserialize;

use super::QueueSpec;

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
    pub phase_seconds: Option<f64>,
    pub skew_ppm: Option<f64>,
    pub mtu: Option<u32>,
    pub queue: Option<QueueSpec>,
}

impl LinkOverride {
    /// Whether it is about the link from one node to another.
    pub(super) fn fits(&self, from: &str, to: &str) -> bool {
        matches(&self.from, from) && matches(&self.to, to)
    }

    /// Puts what another says over what this one says.
    pub(super) fn overlay(&mut self, other: &LinkOverride) {
        let LinkOverride { bits_per_second, buffer_bytes, delay_seconds, phase_seconds, .. } = other.clone();
        let LinkOverride { skew_ppm, mtu, queue, .. } = other.clone();
        self.bits_per_second = bits_per_second.or(self.bits_per_second);
        self.buffer_bytes = buffer_bytes.or(self.buffer_bytes);
        self.delay_seconds = delay_seconds.or(self.delay_seconds);
        self.phase_seconds = phase_seconds.or(self.phase_seconds);
        self.skew_ppm = skew_ppm.or(self.skew_ppm);
        self.mtu = mtu.or(self.mtu);
        self.queue = queue.or(self.queue.take());
    }

    /// Its rate, with its skew, where all others have that rate.
    pub(super) fn rate(&self, usual: BitRate) -> Result<BitRate, String> {
        let bits_per_second = self.bits_per_second.unwrap_or(usual.bits_per_second());
        let ppm = self.skew_ppm.unwrap_or(0.0);
        if !(-500_000.0..=1_000_000.0).contains(&ppm) {
            return Err(format!("found a skew of {ppm} ppm, expected -500000 to 1000000"));
        }
        let skewed = (bits_per_second as f64 * (1.0 + ppm * 1e-6)).round() as u64;
        BitRate::new(skewed).map_err(|error| error.to_string())
    }

    /// Its delay, with its phase, where all others have that delay.
    pub(super) fn delay(&self, usual: Picoseconds) -> Picoseconds {
        let delay = self.delay_seconds.map_or(usual, Picoseconds::from_seconds_f64);
        delay + Picoseconds::from_seconds_f64(self.phase_seconds.unwrap_or(0.0))
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
