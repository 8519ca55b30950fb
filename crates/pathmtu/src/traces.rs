//! Traces of many flows of one host, whose routers answer it seldom.

use crate::trace::{Hop, HopOutcome, Trace, TraceConfig, TraceProbe};
use std::time::Duration;

/// So many traces of a group come first: with two packets of each to every router they leave two of the six answers
/// that Linux gives at once (`icmp_ratelimit`, and `icmp/ratelimit` of IPv6) for another attempt.
const FIRST_TRACES: usize = 2;

/// Traces of one host, in groups that do not share a router's limit: one of each IP version.
///
/// All at once, they would spend the answers of every router on small packets, and none would know where its large ones
/// were lost. So the first ones of a group are asked before the others, which begin as soon as these wait.
#[derive(Debug, Clone)]
pub struct Traces<Group> {
    traces: Vec<Member<Group>>,
}

#[derive(Debug, Clone)]
struct Member<Group> {
    group: Group,
    is_first: bool,
    trace: Trace,
}

impl<Group: PartialEq> Traces<Group> {
    /// One for each group named, in the order of their importance; nothing has been sent.
    pub fn new(config: TraceConfig, groups: impl IntoIterator<Item = Group>) -> Traces<Group> {
        let mut traces: Vec<Member<Group>> = Vec::new();
        for group in groups {
            let is_first = traces.iter().filter(|other| other.group == group).count() < FIRST_TRACES;
            traces.push(Member { group, is_first, trace: Trace::new(config) });
        }
        Traces { traces }
    }

    /// What to send now, and for which trace; none: ask again at [`Traces::deadline`].
    pub fn poll(&mut self, now: Duration) -> Option<(usize, TraceProbe)> {
        (0..self.traces.len()).find_map(|index| {
            let probe = if self.may_ask(index) { self.traces[index].trace.poll(now) } else { None };
            probe.map(|probe| (index, probe))
        })
    }

    /// When to ask again, unless something arrives; none if all have ended or none has begun.
    pub fn deadline(&self) -> Option<Duration> {
        self.traces.iter().filter_map(|member| member.trace.deadline()).min()
    }

    /// Whether all have ended.
    pub fn done(&self) -> bool {
        self.traces.iter().all(|member| member.trace.done())
    }

    /// Something is known of a probe; what is known already is not changed.
    pub fn on_outcome(&mut self, now: Duration, index: usize, number: u32, outcome: HopOutcome) {
        if let Some(member) = self.traces.get_mut(index) {
            member.trace.on_outcome(now, number, outcome);
        }
    }

    /// The hops of each trace, as [`Trace::hops`].
    pub fn hops(&self) -> impl Iterator<Item = &[Hop]> {
        self.traces.iter().map(|member| member.trace.hops())
    }

    fn may_ask(&self, index: usize) -> bool {
        let member = &self.traces[index];
        member.is_first
            || self
                .traces
                .iter()
                .filter(|other| other.is_first && other.group == member.group)
                .all(|first| first.trace.has_asked_quickly())
    }
}
