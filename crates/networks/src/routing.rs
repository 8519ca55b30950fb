//! How frames find their way, as the pipe describes it.

use framegauge_fabric::{Choice, Paths, Routing};
use serde::Deserialize;

/// Which ways frames may take, and which of several one takes.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct RoutingSpec {
    #[serde(default)]
    pub paths: PathsSpec,
    #[serde(default)]
    pub choice: ChoiceSpec,
}

/// Which ways frames may take.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub enum PathsSpec {
    #[default]
    Shortest,
    EqualLength,
}

/// Which of several ways a frame takes.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub enum ChoiceSpec {
    #[default]
    Flow,
    Packet,
    Destination,
}

impl RoutingSpec {
    /// Whether it is what nobody has to ask for.
    pub fn is_usual(self) -> bool {
        matches!(self, RoutingSpec { paths: PathsSpec::Shortest, choice: ChoiceSpec::Flow })
    }

    pub(crate) fn routing(self, seed: u64) -> Routing {
        let paths = match self.paths {
            PathsSpec::Shortest => Paths::Shortest,
            PathsSpec::EqualLength => Paths::EqualLength,
        };
        let choice = match self.choice {
            ChoiceSpec::Flow => Choice::Flow,
            ChoiceSpec::Packet => Choice::Packet,
            ChoiceSpec::Destination => Choice::Destination,
        };
        Routing { paths, choice, seed }
    }
}
