//! What a capture tells as a whole, from the shares of its connections.

use crate::closing::{ConnectionReport, Ended};
use crate::connection::Side;
use crate::findings::Finding;
use crate::flows::Flow;
use crate::kinds::Kind;
use crate::outcast::outcast;
use crate::peers::outliers;
use crate::quality::Cuts;
use crate::steps::Witness;
use crate::together::{self, Silenced};
use crate::too_big::Unclaimed;
use crate::{Picture, Thresholds};
use framegauge_packets::capture::Segment;
use serde::Serialize;
use std::cmp::Ordering;
use std::net::IpAddr;

/// What a capture tells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Its connections, in the order of their first packets.
    pub connections: Vec<ConnectionReport>,
    /// What was found, the most time lost first.
    pub findings: Vec<Finding>,
    /// TCP segments.
    pub segments: u64,
    /// From the first segment to the last, in seconds.
    pub seconds: f64,
    /// Of the connections that were to be drawn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
    /// What connections say of the capture's clock.
    #[serde(skip)]
    pub witnesses: Vec<Witness>,
}

/// What is told of a connection that has ended. A share calls it by the number of its first packet.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// The connection.
    pub report: ConnectionReport,
    /// What was found in it.
    pub findings: Vec<Finding>,
}

impl Told {
    /// What it is called.
    pub fn number(&self) -> u64 {
        self.report.connection
    }
}

/// The numbers of connections, 1 to n, by what shares call them.
#[derive(Debug, Clone, Default)]
pub struct Numbers(Vec<u64>);

impl Numbers {
    /// Of all connections of a capture.
    pub fn new(mut firsts: Vec<u64>) -> Numbers {
        firsts.sort_unstable();
        Numbers(firsts)
    }

    /// The number of one of them.
    pub fn of(&self, first: u64) -> u64 {
        self.0.partition_point(|other| *other < first) as u64 + 1
    }
}

/// Where a finding stands among others: those first that cost most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rank {
    lost_seconds: f64,
    /// Its kind.
    pub kind: Kind,
    connection: Option<u64>,
}

impl Eq for Rank {}

impl Ord for Rank {
    fn cmp(&self, other: &Rank) -> Ordering {
        (other.lost_seconds.total_cmp(&self.lost_seconds))
            .then(self.kind.name().cmp(other.kind.name()))
            .then(self.connection.cmp(&other.connection))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Rank) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Rank {
    /// The same, with the number of its connection instead of what a share calls that.
    pub fn numbered(self, numbers: &Numbers) -> Rank {
        Rank { connection: self.connection.map(|first| numbers.of(first)), ..self }
    }
}

impl Finding {
    /// Where it stands.
    pub fn rank(&self) -> Rank {
        Rank { lost_seconds: self.lost_seconds, kind: self.kind, connection: self.connection }
    }
}

/// What the connections of a table tell only together with those of others.
#[derive(Debug, Default)]
pub struct Part {
    pub(crate) silenced: Vec<Silenced>,
    pub(crate) resets: Vec<(i64, IpAddr)>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) pictures: Vec<Picture>,
    pub(crate) cuts: Cuts,
    pub(crate) unclaimed: Unclaimed,
    pub(crate) witnesses: Vec<Witness>,
    pub(crate) is_lacking: bool,
    pub(crate) origin: Option<i64>,
    last: Option<i64>,
    segments: u64,
}

/// What a capture tells besides its connections.
#[derive(Debug)]
pub struct Conclusion {
    /// Of several connections or the capture, and of connections compared with others.
    pub findings: Vec<Finding>,
    /// TCP segments.
    pub segments: u64,
    /// From the first segment to the last, in seconds.
    pub seconds: f64,
    /// Of the connections that were to be drawn.
    pub pictures: Vec<Picture>,
    /// What connections say of the capture's clock.
    pub witnesses: Vec<Witness>,
    is_lacking: bool,
}

impl Conclusion {
    /// Whether what was found of this kind in a connection stands.
    pub fn keeps(&self, kind: Kind) -> bool {
        !(self.is_lacking && kind == Kind::ProtocolViolation)
    }
}

impl Part {
    #[inline]
    pub(crate) fn take(&mut self, segment: &Segment) {
        self.last = self.last.max(Some(segment.nanoseconds));
        self.segments += 1;
    }

    /// Keeps what others need of a connection that has ended; the rest is told.
    pub(crate) fn keep(&mut self, ended: Ended) -> Told {
        if let Some(side) = ended.reset_by {
            let by = if side == Side::Client { ended.ends.client } else { ended.ends.server };
            self.resets.push((ended.last, by.ip()));
        }
        self.silenced.extend(ended.stalls.iter().map(|(at, side)| {
            let (sender, receiver) = match side {
                Side::Client => (ended.ends.client, ended.ends.server),
                Side::Server => (ended.ends.server, ended.ends.client),
            };
            Silenced {
                at: *at,
                sender: sender.ip(),
                receiver: receiver.ip(),
                rtt: ended.rtt,
                connection: ended.report.connection,
            }
        }));
        self.flows.extend(ended.flows);
        self.witnesses.extend(ended.witnesses);
        if let Some(mut picture) = ended.picture {
            picture.finish();
            self.pictures.push(*picture);
        }
        Told { report: ended.report, findings: ended.findings }
    }

    /// Adds what another share of the same capture has.
    pub fn add(&mut self, other: Part) {
        self.silenced.extend(other.silenced);
        self.resets.extend(other.resets);
        self.flows.extend(other.flows);
        self.pictures.extend(other.pictures);
        self.witnesses.extend(other.witnesses);
        self.cuts.add(other.cuts);
        self.unclaimed.add(other.unclaimed);
        self.is_lacking |= other.is_lacking;
        self.origin = self.origin.or(other.origin);
        self.last = self.last.max(other.last);
        self.segments += other.segments;
    }

    /// What its connections say of the capture's clock.
    pub fn witnesses(&self) -> &[Witness] {
        &self.witnesses
    }

    /// The capture says that it lacks packets.
    pub fn lacks_packets(&mut self) {
        self.is_lacking = true;
    }

    /// What all shares together tell.
    pub fn conclude(mut self, numbers: &Numbers, limits: &Thresholds) -> Conclusion {
        let origin = self.origin.unwrap_or(0);
        let seconds = self.last.map_or(0.0, |last| (last - origin) as f64 / 1e9);
        self.silenced.iter_mut().for_each(|entry| entry.connection = numbers.of(entry.connection));
        self.flows.iter_mut().for_each(|entry| entry.connection = numbers.of(entry.connection));
        // Whatever share had them: the same order.
        self.silenced.sort_by_key(|entry| (entry.at, entry.connection));
        self.flows.sort_by_key(|entry| entry.connection);
        let mut findings: Vec<Finding> = self.cuts.finding(seconds).into_iter().collect();
        findings.extend(self.unclaimed.findings(self.origin));
        findings.extend(together::incast(self.silenced, origin, limits));
        findings.extend(together::reset_storms(self.resets, origin, limits));
        findings.extend(outcast(&self.flows, origin, limits));
        findings.extend(outliers(&self.flows, origin, limits));
        self.pictures.sort_unstable_by_key(|entry| entry.connection);
        self.witnesses.sort_unstable();
        let (segments, is_lacking) = (self.segments, self.is_lacking);
        Conclusion {
            findings,
            segments,
            seconds,
            pictures: self.pictures,
            witnesses: self.witnesses,
            is_lacking,
        }
    }
}
