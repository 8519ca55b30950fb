//! Outcast: few flows by one input port starve beside many by another (P. Prakash et al., NSDI 2012).
//!
//! A full queue with tail drop blacks out one input port for several packets in a row. Of many flows each loses a few; of
//! few, whole windows, so that they wait for their timers. It has the opposite sign of the bias by RTT: the few are as near
//! as the others, or nearer. A port is told by how far packets have come (TTL), or else by the host that sent them. If
//! neither divides the flows, those that starve far more are the few, and by which port they came is not known. A host has one
//! port: beside its other flows none of its own is cast out.

use crate::Thresholds;
use crate::findings::Finding;
use crate::flows::{Flow, median};
use crate::kinds::Kind;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Groups are compared while both send, for at least this, in nanoseconds.
const LEAST_TOGETHER: i64 = 200_000_000;
/// And for this, where only their share tells them apart: any flow may wait for a timer once.
const LEAST_ALONE: i64 = 1_000_000_000;
/// Then the many are so many times `outcast_ratio` as fast.
const FAR_BELOW: f64 = 2.0;
/// Senders that are named; of more, only how many there are is said.
const MOST_NAMED: usize = 3;
/// RTTs that differ by less are equal, in nanoseconds.
const SAME_RTT: i64 = 100_000;
/// So are those that differ by a quarter: a share follows the RTT's reciprocal at most, which is far from `outcast_ratio`.
const SAME_SHARE: i64 = 4;

/// The flows that come to a receiver by one port, as far as a capture tells.
type Group<'a> = Vec<&'a Flow>;

/// Every receiver at which few flows starve.
pub(crate) fn outcast(flows: &[Flow], origin: i64, limits: &Thresholds) -> Vec<Finding> {
    let mut by_receiver: BTreeMap<IpAddr, Group> = BTreeMap::new();
    for flow in flows {
        by_receiver.entry(flow.receiver.ip()).or_default().push(flow);
    }
    let mut findings = Vec::new();
    for (receiver, all) in by_receiver {
        let are_few = |few: &Group, many: &Group| few.len() * 2 <= many.len();
        let (mut outcasts, mut ports) = (compared(&groups(&all), limits, LEAST_TOGETHER, are_few), "");
        if outcasts.is_empty() {
            let are_fewer = |few: &Group, many: &Group| few.len() < many.len();
            outcasts = compared(&by_share(&all, limits), limits, LEAST_ALONE, are_fewer);
            ports = " Which of them share a port, these packets do not tell.";
        }
        findings.extend(
            outcasts.iter().map(|(few, many, shares)| finding(receiver, few, many, shares, origin, ports)),
        );
    }
    findings
}

/// Every group that starves beside the largest one, with both, if it is small enough beside it.
fn compared<'a>(
    groups: &[Group<'a>],
    limits: &Thresholds,
    together: i64,
    are_few: fn(&Group, &Group) -> bool,
) -> Vec<(Group<'a>, Group<'a>, Shares)> {
    let Some(many) = groups.iter().max_by_key(|group| group.len()) else { return Vec::new() };
    groups
        .iter()
        .filter(|few| are_few(few, many))
        .filter_map(|few| {
            starved(few, many, limits, together).map(|shares| (few.clone(), many.clone(), shares))
        })
        .collect()
}

/// Flows whose goodput is far below the median one, and all others.
fn by_share<'a>(all: &Group<'a>, limits: &Thresholds) -> Vec<Group<'a>> {
    let (begin, end) = (middle(all, |flow| flow.begin), middle(all, |flow| flow.end));
    let rate = |flow: &Flow| flow.rate(begin, end);
    let usual = median(&mut all.iter().map(|flow| rate(flow)).collect::<Vec<f64>>());
    let (mut few, many): (Group, Group) =
        all.iter().partition(|flow| rate(flow) * FAR_BELOW * limits.outcast_ratio <= usual);
    few.retain(|flow| {
        many.iter().all(|other| other.sender.ip() != flow.sender.ip() || other.hops != flow.hops)
    });
    if few.is_empty() { Vec::new() } else { vec![few, many] }
}

fn middle(group: &Group, of: fn(&Flow) -> i64) -> i64 {
    median(&mut group.iter().map(|flow| of(flow) as f64).collect::<Vec<f64>>()) as i64
}

/// By the hops that packets have made, where these differ; else by their senders.
fn groups<'a>(all: &Group<'a>) -> Vec<Group<'a>> {
    let by_hops = all.iter().any(|flow| flow.hops != all[0].hops);
    let mut groups: BTreeMap<(u8, Option<IpAddr>), Group> = BTreeMap::new();
    for flow in all {
        let host = (!by_hops).then_some(flow.sender.ip());
        groups.entry((flow.hops, host)).or_default().push(flow);
    }
    groups.into_values().collect()
}

/// How two groups shared, in bytes a second for each flow, and when.
struct Shares {
    begin: i64,
    end: i64,
    few: f64,
    many: f64,
}

fn starved(few: &Group, many: &Group, limits: &Thresholds, together: i64) -> Option<Shares> {
    let begin = middle(few, |flow| flow.begin).max(middle(many, |flow| flow.begin));
    let end = middle(few, |flow| flow.end).min(middle(many, |flow| flow.end));
    if end - begin < together {
        return None;
    }
    let of_many = middle(many, |flow| flow.rtt);
    let is_nearer = middle(few, |flow| flow.rtt) <= of_many + SAME_RTT.max(of_many / SAME_SHARE);
    let in_a_row = few.iter().any(|flow| flow.loss_run >= u64::from(limits.outcast_run));
    let timed_out = few.iter().any(|flow| flow.timeouts > 0);
    let rate =
        |group: &Group| median(&mut group.iter().map(|flow| flow.rate(begin, end)).collect::<Vec<f64>>());
    let shares = Shares { begin, end, few: rate(few), many: rate(many) };
    let is_starved = shares.few * limits.outcast_ratio <= shares.many;
    (is_nearer && in_a_row && timed_out && is_starved).then_some(shares)
}

fn finding(
    receiver: IpAddr,
    few: &Group,
    many: &Group,
    shares: &Shares,
    origin: i64,
    ports: &str,
) -> Finding {
    let seconds = |at: i64| (at - origin) as f64 / 1e9;
    let numbers: Vec<String> = few.iter().take(8).map(|flow| flow.connection.to_string()).collect();
    let run = few.iter().map(|flow| flow.loss_run).max().unwrap_or(0);
    let share = |group: &Group, rate: f64| {
        let noun = if group.len() == 1 { "flow" } else { "flows" };
        format!("{} {noun} from {} got {:.1} Mb/s each", group.len(), senders(group), rate * 8e-6)
    };
    Finding {
        kind: Kind::Outcast,
        connection: None,
        begin_seconds: seconds(shares.begin),
        end_seconds: seconds(shares.end),
        count: few.len() as u64,
        lost_seconds: 0.0,
        packets: Vec::new(),
        text: format!(
            "To {receiver}, {} (connections {}), and {}, although they came from no nearer. The few lost up to {run} \
             segments in a row, and waited for timeouts: a full queue dropped what came by their port.{ports}",
            share(few, shares.few),
            numbers.join(", "),
            share(many, shares.many),
        ),
        remedy: Kind::Outcast.remedy(),
    }
}

/// Who sent the flows of a group: the hosts, or how many there are.
fn senders(group: &Group) -> String {
    let hosts: BTreeSet<IpAddr> = group.iter().map(|flow| flow.sender.ip()).collect();
    if hosts.len() > MOST_NAMED {
        return format!("{} hosts", hosts.len());
    }
    hosts.iter().map(IpAddr::to_string).collect::<Vec<String>>().join(" and ")
}
