//! What only many connections together tell.

use crate::Thresholds;
use crate::findings::Finding;
use crate::kinds::Kind;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

const SECOND: i64 = 1_000_000_000;
/// Silences that begin within an RTT begin together; RTTs below are the stamps' noise.
const TOGETHER_LEAST: i64 = 2_000_000;

/// A sender that fell silent until a timeout: a host, since its own connections share its link, and take turns there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Silenced {
    pub(crate) at: i64,
    pub(crate) sender: IpAddr,
    pub(crate) receiver: IpAddr,
    pub(crate) rtt: i64,
    pub(crate) connection: u64,
}

/// So many silences at the same time come about by chance less often than that.
const CHANCE: f64 = 1e-3;

/// Several senders to one receiver that fell silent within an RTT (V. Vasudevan et al., SIGCOMM 2009). They are more than
/// would by chance: where many flows share a full link, each waits for a timer now and then.
pub(crate) fn incast(silenced: Vec<Silenced>, origin: i64, limits: &Thresholds) -> Vec<Finding> {
    let mut by_receiver: BTreeMap<IpAddr, Vec<Silenced>> = BTreeMap::new();
    for silence in silenced {
        by_receiver.entry(silence.receiver).or_default().push(silence);
    }
    let mut findings = Vec::new();
    for (receiver, mut list) in by_receiver {
        list.sort_unstable_by_key(|silence| silence.at);
        let span = (list[list.len() - 1].at - list[0].at).max(SECOND) as f64;
        let silences = list.len() as f64;
        let mut groups: Vec<&[Silenced]> = Vec::new();
        let mut begin = 0;
        while begin < list.len() {
            let within = list[begin].rtt.max(TOGETHER_LEAST);
            let end = begin + list[begin..].partition_point(|silence| silence.at - list[begin].at <= within);
            let senders = hosts(&list[begin..end]);
            let expected = silences * within as f64 / span;
            if senders >= limits.incast_senders as usize && at_least(senders, expected) < CHANCE {
                groups.push(&list[begin..end]);
            }
            begin = end;
        }
        let (Some(first), Some(last)) = (groups.first(), groups.last()) else { continue };
        let most = groups.iter().map(|group| hosts(group)).max().unwrap_or(0);
        let connections: BTreeSet<u64> =
            groups.iter().flat_map(|group| group.iter().map(|silence| silence.connection)).collect();
        findings.push(Finding {
            kind: Kind::Incast,
            connection: None,
            begin_seconds: (first[0].at - origin) as f64 / 1e9,
            end_seconds: (last[last.len() - 1].at - origin) as f64 / 1e9,
            count: groups.len() as u64,
            lost_seconds: 0.0,
            packets: Vec::new(),
            text: format!(
                "Up to {most} senders to {receiver} fell silent within one RTT ({} times; connections {}): together \
                 they overflow a buffer on the way.",
                groups.len(),
                listed(&connections),
            ),
            remedy: Kind::Incast.remedy(),
        });
    }
    findings
}

/// The probability of so many or more where so many are expected (Poisson).
fn at_least(count: usize, expected: f64) -> f64 {
    let mut term = (-expected).exp();
    let mut below = 0.0;
    for number in 0..count {
        below += term;
        term *= expected / (number + 1) as f64;
    }
    1.0 - below
}

fn hosts(silenced: &[Silenced]) -> usize {
    silenced.iter().map(|silence| silence.sender).collect::<BTreeSet<IpAddr>>().len()
}

/// Many resets by one host within a second.
pub(crate) fn reset_storms(resets: Vec<(i64, IpAddr)>, origin: i64, limits: &Thresholds) -> Vec<Finding> {
    let mut by_host: BTreeMap<IpAddr, Vec<i64>> = BTreeMap::new();
    for (at, host) in resets {
        by_host.entry(host).or_default().push(at);
    }
    let mut findings = Vec::new();
    for (host, mut times) in by_host {
        times.sort_unstable();
        let most = limits.resets as usize;
        let Some(place) = times.windows(most).position(|window| window[most - 1] - window[0] <= SECOND)
        else {
            continue;
        };
        findings.push(Finding {
            kind: Kind::ResetStorm,
            connection: None,
            begin_seconds: (times[place] - origin) as f64 / 1e9,
            end_seconds: (times[times.len() - 1] - origin) as f64 / 1e9,
            count: times.len() as u64,
            lost_seconds: 0.0,
            packets: Vec::new(),
            text: format!("{host} reset {} connections, {most} of them within a second.", times.len()),
            remedy: Kind::ResetStorm.remedy(),
        });
    }
    findings
}

fn listed(connections: &BTreeSet<u64>) -> String {
    let numbers: Vec<String> = connections.iter().take(8).map(u64::to_string).collect();
    let more = connections.len().saturating_sub(8);
    if more > 0 { format!("{} and {more} more", numbers.join(", ")) } else { numbers.join(", ") }
}
