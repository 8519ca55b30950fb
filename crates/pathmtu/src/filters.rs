//! Rules of a host that keep "packet too big" from it, in what `nft --json list ruleset` and `iptables-save` print.
//!
//! A message of a router that answers a packet of this host (ICMP type 3 code 4, ICMPv6 type 2) is followed through the
//! chains that it meets: those of ingress, prerouting and input. What a rule asks of the message is known (protocol, type,
//! code, that it is related to a connection) or not (addresses, interfaces, sets, what iptables made).

use crate::clamps::{RulesetError, objects};
use crate::iptables;
use crate::walk::{Acts, Drop, Packet, Rules, by, has, meets, text};
use framegauge_frames::Family;
use serde_json::Value;

/// Where connections are not tracked yet (`NF_IP_PRI_CONNTRACK`).
const TRACKED: i64 = -200;

/// A rule, or the policy of a chain, that drops such messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorFilter {
    /// Of which IP version.
    pub version: Family,
    /// The family of its table, as nft calls it.
    pub family: String,
    /// Its table.
    pub table: String,
    /// Its chain.
    pub chain: String,
    /// The number of the rule, where nft lists it; with no line either it is the chain's policy.
    pub handle: Option<u64>,
    /// The rule as `iptables-save` prints it.
    pub line: Option<String>,
    /// Whether iptables lists it.
    pub by_iptables: bool,
    /// Whether every such message is dropped here; otherwise some may be.
    pub certain: bool,
}

/// Those that drop the messages of either IP version.
pub fn error_filters(ruleset: &[u8]) -> Result<Vec<ErrorFilter>, RulesetError> {
    Ok(of_objects(&objects(ruleset)?))
}

/// Those in what `iptables-save` (IPv4) or `ip6tables-save` lists. What is not understood is a condition.
pub fn error_filters_of_iptables(saved: &str, version: Family) -> Vec<ErrorFilter> {
    let mut filters = of_objects(&iptables::objects(saved, version));
    filters.iter_mut().for_each(|filter| filter.by_iptables = true);
    filters
}

fn of_objects(objects: &[Value]) -> Vec<ErrorFilter> {
    let rules = Rules::of(objects);
    let mut filters = Vec::new();
    for version in [Family::V4, Family::V6] {
        for base in objects.iter().filter_map(|object| object.get("chain")) {
            filters.extend(of_base(&rules, base, version));
        }
    }
    filters
}

/// Such a message.
struct TooBig {
    version: Family,
    is_tracked: bool,
}

fn of_base(rules: &Rules<'_>, base: &Value, version: Family) -> Vec<ErrorFilter> {
    let hook = text(base, "hook");
    let family = text(base, "family");
    if family == "bridge" || !meets(family, version) || !["ingress", "prerouting", "input"].contains(&hook) {
        return Vec::new();
    }
    let priority = base.get("prio").and_then(Value::as_i64).unwrap_or_default();
    // An ingress is of one device, and the message may come by another.
    let certain = hook != "ingress";
    let message = TooBig { version, is_tracked: certain && priority > TRACKED };
    rules.drops(base, &message, certain).into_iter().map(|drop| filter(version, &drop)).collect()
}

fn filter(version: Family, drop: &Drop<'_>) -> ErrorFilter {
    let (family, table, chain) = (drop.chain.0.into(), drop.chain.1.into(), drop.chain.2.into());
    let of_rule = |key: &str| drop.rule.and_then(|rule| rule.get(key));
    let handle = of_rule("handle").and_then(Value::as_u64);
    let line = of_rule(iptables::LINE).and_then(Value::as_str).map(str::to_string);
    ErrorFilter { version, family, table, chain, handle, line, by_iptables: false, certain: drop.certain }
}

impl Packet for TooBig {
    fn compares(&self, op: &str, left: Option<&Value>, right: Option<&Value>) -> Option<Acts> {
        Some(by(op, self.asks(left, right)?))
    }
}

impl TooBig {
    /// Whether what `left` names is `right` in such a message; none: it has no such header.
    fn asks(&self, left: Option<&Value>, right: Option<&Value>) -> Option<Acts> {
        let (Some(left), Some(right)) = (left, right) else { return Some(Acts::Maybe) };
        let at = |pointer: &str| left.pointer(pointer).and_then(Value::as_str);
        let is_v4 = self.version == Family::V4;
        let (protocol, number) = if is_v4 { ("icmp", 1) } else { ("ipv6-icmp", 58) };
        let (header, field) = (at("/payload/protocol"), at("/payload/field"));
        let is_absent = match header {
            Some("icmp" | "ip") => !is_v4,
            Some("icmpv6" | "ip6") => is_v4,
            Some("tcp" | "udp" | "th" | "sctp" | "dccp") => true,
            _ => false,
        };
        if is_absent {
            return None;
        }
        Some(match (header, field, at("/meta/key"), at("/ct/key")) {
            (Some("icmp"), Some("type"), ..) => has(right, &["destination-unreachable"], 3),
            (Some("icmp"), Some("code"), ..) => has(right, &["frag-needed"], 4),
            (Some("icmpv6"), Some("type"), ..) => has(right, &["packet-too-big"], 2),
            (Some("icmpv6"), Some("code"), ..) => has(right, &["no-route"], 0),
            (Some("ip"), Some("protocol"), ..) => has(right, &[protocol], number),
            (Some("ip6"), Some("nexthdr"), ..) => has(right, &[protocol], number),
            // Routers are not on this host, and write to it alone.
            (_, _, Some("iif" | "iifname"), _) if *right == "lo" => Acts::No,
            (_, _, Some("pkttype"), _) => has(right, &["host", "unicast"], 0),
            (_, _, Some("l4proto"), _) => has(right, &[protocol], number),
            (_, _, Some("nfproto"), _) if is_v4 => has(right, &["ipv4"], 2),
            (_, _, Some("nfproto"), _) => has(right, &["ipv6"], 10),
            (_, _, _, Some("state")) if self.is_tracked => has(right, &["related"], 4),
            _ => Acts::Maybe,
        })
    }
}
