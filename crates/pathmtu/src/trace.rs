//! TTL-limited pairs of a small and a large packet on one flow: up to which hop does the large one come?

use crate::round_trip::Patience;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

/// Attempts that follow each other at once.
const QUICK_ATTEMPTS: u8 = 3;
/// Routers limit how often they say that a packet has expired (Linux: six at once, then one a second, to each host).
/// Where a hop is silent though one behind it is not, one more attempt comes after that.
const RATE_LIMIT: Duration = Duration::from_millis(1100);

/// Which of the pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "they say it")]
pub enum TraceSize {
    Small,
    Large,
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HopOutcome {
    /// Nothing came back.
    #[default]
    Silent,
    /// This router says that its time has expired.
    Expired(IpAddr),
    /// The far end has it.
    Delivered,
    /// This router, or none: this host, says that it is too big, and for which MTU.
    TooBig(Option<IpAddr>, Option<u32>),
    /// This router says that it cannot be delivered.
    Unreachable(IpAddr),
}

/// The pair that was sent with one TTL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "they say it")]
pub struct Hop {
    pub ttl: u8,
    pub small: HopOutcome,
    pub large: HopOutcome,
}

/// What to trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceConfig {
    /// The largest TTL.
    pub hops: u8,
    /// Ask hops again that were silent, after a second in which they may keep silent.
    pub patient: bool,
}

/// One packet to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "they say it")]
pub struct TraceProbe {
    pub ttl: u8,
    pub size: TraceSize,
    /// Comes back in what is told of it.
    pub number: u32,
}

/// What is sent next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Small packets with every TTL: how long is the path?
    Small,
    /// Large ones, as far as the path goes.
    Large,
    /// Again, what was silent.
    Again(u8),
    /// Once more, after the routers' limit.
    Late,
    Done,
}

/// A trace along one flow.
#[derive(Debug, Clone)]
pub struct Trace {
    config: TraceConfig,
    hops: Vec<Hop>,
    /// What the queue below belongs to; none: nothing was asked yet.
    stage: Option<Stage>,
    queue: VecDeque<TraceProbe>,
    outstanding: HashMap<u32, (u8, TraceSize, Duration)>,
    last_sent: Duration,
    not_before: Duration,
    patience: Patience,
    next_number: u32,
}

impl Trace {
    /// A trace that has sent nothing.
    pub fn new(config: TraceConfig) -> Trace {
        Trace {
            config,
            hops: (1..=config.hops).map(|ttl| Hop { ttl, ..Hop::default() }).collect(),
            stage: None,
            queue: VecDeque::new(),
            outstanding: HashMap::new(),
            last_sent: Duration::ZERO,
            not_before: Duration::ZERO,
            patience: Patience::default(),
            next_number: 0,
        }
    }

    /// What to send now; none: ask again at [`Trace::deadline`].
    pub fn poll(&mut self, now: Duration) -> Option<TraceProbe> {
        while self.queue.is_empty() {
            if self.done() || self.deadline().is_some_and(|deadline| now < deadline) {
                return None;
            }
            self.advance(now);
        }
        if now < self.not_before {
            return None;
        }
        let probe = self.queue.pop_front()?;
        self.outstanding.insert(probe.number, (probe.ttl, probe.size, now));
        self.last_sent = now;
        Some(probe)
    }

    /// When to ask again, unless something arrives; none if the trace has ended or not begun.
    pub fn deadline(&self) -> Option<Duration> {
        match self.stage {
            None | Some(Stage::Done) => None,
            Some(_) if !self.queue.is_empty() => Some(self.not_before),
            // What has all been answered needs no waiting.
            Some(_) if self.outstanding.is_empty() => Some(Duration::ZERO),
            Some(_) => Some(self.last_sent + self.patience.limit()),
        }
    }

    /// Whether the trace has ended.
    pub fn done(&self) -> bool {
        self.stage == Some(Stage::Done)
    }

    /// Whether all that is left is what waits for the routers' limit.
    pub(crate) fn has_asked_quickly(&self) -> bool {
        matches!(self.stage, Some(Stage::Late | Stage::Done))
    }

    /// The hops up to the far end, or up to the last of which anything is known.
    pub fn hops(&self) -> &[Hop] {
        let known = |hop: &Hop| hop.small != HopOutcome::Silent || hop.large != HopOutcome::Silent;
        let end = self.far_end().or_else(|| self.hops.iter().rposition(known));
        &self.hops[..end.map_or(0, |index| index + 1)]
    }

    /// The place of the first hop at which the small packet reached the far end.
    fn far_end(&self) -> Option<usize> {
        self.hops.iter().position(|hop| hop.small == HopOutcome::Delivered)
    }

    /// Plans what comes next.
    fn advance(&mut self, now: Duration) {
        self.outstanding.clear();
        let next = match self.stage {
            None => Stage::Small,
            Some(Stage::Small) => Stage::Large,
            Some(Stage::Large) => Stage::Again(2),
            Some(Stage::Again(attempt)) if attempt < QUICK_ATTEMPTS => Stage::Again(attempt + 1),
            Some(Stage::Again(_)) if self.config.patient => Stage::Late,
            Some(_) => Stage::Done,
        };
        self.stage = Some(next);
        let end = self.far_end().unwrap_or(self.hops.len() - 1);
        let answered = |outcome: &HopOutcome| *outcome != HopOutcome::Silent;
        let last =
            |size: fn(&Hop) -> HopOutcome| self.hops[..=end].iter().rposition(|hop| answered(&size(hop)));
        let (small_to, large_to) = (last(|hop| hop.small), last(|hop| hop.large));
        // Again: silent ones up to one behind the last that answered, for that one decides; late: only those before it.
        let reach = |last: Option<usize>, more: usize| last.map_or(more, |index| index + more).min(end + 1);
        let (small, large) = match next {
            Stage::Small => (self.hops.len(), 0),
            Stage::Large => (0, end + 1),
            Stage::Again(_) => (reach(small_to, 2), reach(large_to, 2)),
            Stage::Late => (reach(small_to, 0), reach(large_to, 0)),
            Stage::Done => (0, 0),
        };
        let silent = |size: TraceSize, count: usize, outcome: fn(&Hop) -> HopOutcome| {
            let hops = self.hops[..count].iter().filter(move |hop| !answered(&outcome(hop)));
            hops.map(move |hop| (hop.ttl, size)).collect::<Vec<_>>()
        };
        let mut probes = silent(TraceSize::Small, small, |hop| hop.small);
        probes.extend(silent(TraceSize::Large, large, |hop| hop.large));
        for (ttl, size) in probes {
            self.queue.push_back(TraceProbe { ttl, size, number: self.next_number });
            self.next_number += 1;
        }
        self.last_sent = now;
        self.not_before = if next == Stage::Late { now + RATE_LIMIT } else { now };
    }

    /// Something is known of a probe; what is known already is not changed.
    pub fn on_outcome(&mut self, now: Duration, number: u32, outcome: HopOutcome) {
        let Some((ttl, size, at)) = self.outstanding.remove(&number) else { return };
        self.patience.answered(now.saturating_sub(at));
        let hop = &mut self.hops[usize::from(ttl) - 1];
        match size {
            TraceSize::Small => hop.small = outcome,
            TraceSize::Large => hop.large = outcome,
        }
    }
}
