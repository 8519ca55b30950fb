//! The names of problems, and all that is known of each beforehand: one table (`table.rs`), from which whatever lists
//! them is made, here and elsewhere (`framegauge-agent diagnose --kinds`).

use crate::Thresholds;
use crate::words::Told;
use serde::{Serialize, Serializer};

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// A problem: somebody may want to mend it.
    Problem,
    /// Worth knowing, and no fault by itself.
    Note,
    /// What set the pace: every connection has that, since somebody is always the limit.
    Pace,
    /// The capture, not the network: what it cannot tell.
    Capture,
}

/// Kinds that are alike, which share a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Loss and resends.
    Loss,
    /// The receiver.
    Receiver,
    /// The sender and its application.
    Sender,
    /// Queues and the path.
    Network,
    /// Nothing to send.
    Idle,
    /// Data on its way.
    Way,
    /// All others.
    Other,
}

impl Group {
    const ALL: [(Group, &str); 7] = [
        (Group::Loss, "loss and resends"),
        (Group::Receiver, "the receiver"),
        (Group::Sender, "the sender and its application"),
        (Group::Network, "queues and the path"),
        (Group::Idle, "nothing to send"),
        (Group::Way, "data on its way"),
        (Group::Other, "other"),
    ];
}

/// How much time must be lost before a connection has a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Least {
    /// Any.
    Any,
    /// `share_of_life` of its life.
    OfLife,
    /// `share_of_life` of the time in which the application had something to send.
    OfBusy,
    /// `unexplained_share` of its life: programs that wait for a CPU are late by some milliseconds.
    Unexplained,
}

/// What is known of a kind beforehand.
#[derive(Debug, Serialize)]
pub struct Row {
    name: &'static str,
    about: About,
    group: Group,
    means: &'static str,
    headline: &'static str,
    remedy: &'static str,
    limits: &'static [&'static str],
    #[serde(skip)]
    least: Least,
    #[serde(skip)]
    says: fn(&Told) -> String,
}

/// The table, for those who are not compiled with it.
#[derive(Debug, Serialize)]
pub struct Kinds {
    groups: Vec<GroupRow>,
    kinds: &'static [Row],
    limits: Thresholds,
}

#[derive(Debug, Serialize)]
struct GroupRow {
    name: Group,
    words: &'static str,
}

/// All kinds and their groups, and the limits that decide them.
pub fn kinds() -> Kinds {
    let groups = Group::ALL.map(|(name, words)| GroupRow { name, words }).into();
    Kinds { groups, kinds: Kind::TABLE, limits: Thresholds::default() }
}

/// Defines [`Kind`] and its table. A kind that lacks a column does not compile, and neither does a limit that is none.
macro_rules! kinds {
    ($($kind:ident {
        name: $name:literal, about: $about:ident, group: $group:ident, least: $least:ident,
        means: $means:literal,
        headline: $headline:literal,
        says: $says:expr,
        remedy: $remedy:literal,
        limits: [$($limit:ident),*],
    })*) => {
        /// A named problem, or a property of a capture that limits what can be said. Of those that cost as much, the first is
        /// told first.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $(#[doc = $means] $kind,)*
        }

        impl Kind {
            /// Which kinds there are.
            pub const ALL: &'static [Kind] = &[$(Kind::$kind),*];

            pub(super) const TABLE: &'static [Row] = &[$(Row {
                name: $name,
                about: About::$about,
                group: Group::$group,
                means: $means,
                headline: $headline,
                remedy: $remedy,
                limits: &[$(stringify!($limit)),*],
                least: Least::$least,
                says: $says,
            }),*];
        }

        const _: fn(&Thresholds) = |limits| {
            $($(let _ = limits.$limit;)*)*
        };
    };
}

mod table;

pub use table::Kind;

impl Kind {
    fn row(self) -> &'static Row {
        &Kind::TABLE[self as usize]
    }

    /// Its name, as in the document.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether it is about the capture, not the network.
    pub fn is_quality(self) -> bool {
        self.row().about == About::Capture
    }

    /// What helps against it, in one sentence.
    pub fn remedy(self) -> &'static str {
        self.row().remedy
    }

    /// What it is, as the cause that a headline names.
    pub(crate) fn headline(self) -> &'static str {
        self.row().headline
    }

    /// What happened, in one sentence.
    pub(crate) fn sentence(self, finding: &Told) -> String {
        (self.row().says)(finding)
    }

    /// Whether so much lost time is worth a finding. `life` and `busy`: those of the connection; all in nanoseconds.
    pub(crate) fn is_worth(self, lost: i64, life: i64, busy: i64, limits: &Thresholds) -> bool {
        let is_share = |share: f64, of: i64, least: i64| lost as f64 >= share * of as f64 && lost >= least;
        match self.row().least {
            Least::Any => true,
            Least::OfLife => is_share(limits.share_of_life, life, limits.pause_nanoseconds),
            Least::OfBusy => is_share(limits.share_of_life, busy, limits.pause_nanoseconds),
            Least::Unexplained => is_share(limits.unexplained_share, life, limits.unexplained_nanoseconds),
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_kind_has_a_name_of_its_own_and_sentences() {
        let names: BTreeSet<&str> = Kind::TABLE.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), Kind::ALL.len());
        for kind in Kind::ALL {
            assert_eq!(serde_json::to_value(kind).expect("a word"), kind.name());
            assert!(kind.remedy().ends_with('.'), "{kind:?}");
            assert!(!kind.headline().ends_with('.') && !kind.row().means.ends_with('.'), "{kind:?}");
        }
    }

    #[test]
    fn every_limit_decides_some_kind() {
        let all = serde_json::to_value(Thresholds::default()).expect("numbers");
        let all: BTreeSet<&str> = all.as_object().expect("by name").keys().map(String::as_str).collect();
        let named: BTreeSet<&str> = Kind::TABLE.iter().flat_map(|row| row.limits).copied().collect();
        assert_eq!(named, all);
    }
}
