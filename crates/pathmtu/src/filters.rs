//! Rules of a host that keep "packet too big" from it, in what `nft --json list ruleset` prints.
//!
//! A message of a router that answers a packet of this host (ICMP type 3 code 4, ICMPv6 type 2) is followed through the
//! chains that it meets: those of ingress, prerouting and input, rule by rule, as the kernel does (nft(8)). What a rule asks
//! of the message is known (protocol, type, code, that it is related to a connection) or not (addresses, interfaces, sets, what
//! iptables made): a rule of which not all is known *may* act, and all behind it is no more certain.

use crate::clamps::{RulesetError, objects};
use framegauge_frames::Family;
use serde_json::Value;
use std::collections::HashMap;

/// Chains into chains: the kernel allows 16.
const DEEPEST: u32 = 16;
/// Rules that a message is followed through: chains that call each other may multiply them without end.
const MOST_RULES: u32 = 100_000;
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
    /// The number of the rule; none: it is the chain's policy.
    pub handle: Option<u64>,
    /// Whether every such message is dropped here; otherwise some may be.
    pub certain: bool,
}

/// Those that drop the messages of either IP version.
pub fn error_filters(ruleset: &[u8]) -> Result<Vec<ErrorFilter>, RulesetError> {
    let objects = objects(ruleset)?;
    let rules = Rules::of(&objects);
    let mut filters = Vec::new();
    for version in [Family::V4, Family::V6] {
        for base in objects.iter().filter_map(|object| object.get("chain")) {
            filters.extend(rules.of_base(base, version));
        }
    }
    Ok(filters)
}

type Name<'a> = (&'a str, &'a str, &'a str);

/// The rules by the family, table and chain that they are in.
struct Rules<'a>(HashMap<Name<'a>, Vec<&'a Value>>);

/// Whether a rule acts on the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Acts {
    No,
    Maybe,
    Yes,
}

/// Where a message is when it leaves a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Accepted,
    Dropped,
    /// With the chain that called this one, or the policy.
    Back,
}

/// A message on its way through a base chain.
struct Walk {
    version: Family,
    is_tracked: bool,
    certain: bool,
    /// Rules that may still be looked at.
    left: u32,
    filters: Vec<ErrorFilter>,
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn name(value: &Value) -> Name<'_> {
    (text(value, "family"), text(value, "table"), text(value, "chain"))
}

impl<'a> Rules<'a> {
    fn of(objects: &'a [Value]) -> Rules<'a> {
        let mut rules: HashMap<Name<'a>, Vec<&'a Value>> = HashMap::new();
        for rule in objects.iter().filter_map(|object| object.get("rule")) {
            rules.entry(name(rule)).or_default().push(rule);
        }
        Rules(rules)
    }

    fn of_base(&self, base: &'a Value, version: Family) -> Vec<ErrorFilter> {
        let own = (text(base, "family"), text(base, "table"), text(base, "name"));
        let meets = match own.0 {
            "ip" => version == Family::V4,
            "ip6" => version == Family::V6,
            "inet" | "netdev" => true,
            _ => false,
        };
        if !meets || !["ingress", "prerouting", "input"].contains(&text(base, "hook")) {
            return Vec::new();
        }
        let priority = base.get("prio").and_then(Value::as_i64).unwrap_or_default();
        // An ingress is of one device, and the message may come by another.
        let certain = text(base, "hook") != "ingress";
        let mut walk = Walk {
            version,
            is_tracked: certain && priority > TRACKED,
            certain,
            left: MOST_RULES,
            filters: Vec::new(),
        };
        if self.walk(own, &mut walk, DEEPEST) == End::Back && text(base, "policy") == "drop" {
            walk.drops(own, None, Acts::Yes);
        }
        walk.filters
    }

    fn walk(&self, chain: Name<'a>, walk: &mut Walk, depth: u32) -> End {
        for &rule in self.0.get(&chain).map_or(&[][..], Vec::as_slice) {
            if walk.left == 0 {
                walk.certain = false;
                return End::Back;
            }
            walk.left -= 1;
            let mut acts = Acts::Yes;
            for statement in rule.get("expr").and_then(Value::as_array).map_or(&[][..], Vec::as_slice) {
                let Some((key, value)) = statement.as_object().and_then(|object| object.iter().next()) else {
                    continue;
                };
                let verdict = if key == "vmap" { walk.looked_up(value) } else { Some((key.as_str(), value)) };
                let Some((key, value)) = verdict else {
                    acts = acts.min(Acts::Maybe);
                    continue;
                };
                acts = acts.min(walk.statement(key, value));
                if acts == Acts::No {
                    break;
                }
                if let Some(end) = self.verdict(chain, rule, (key, value), acts, walk, depth) {
                    return end;
                }
            }
        }
        End::Back
    }

    /// What a verdict makes of the message; none: it goes on with the next rule.
    fn verdict(
        &self,
        chain: Name<'a>,
        rule: &'a Value,
        (key, value): (&str, &'a Value),
        acts: Acts,
        walk: &mut Walk,
        depth: u32,
    ) -> Option<End> {
        let end = match key {
            "accept" => End::Accepted,
            "return" => End::Back,
            "drop" | "reject" => {
                walk.drops(chain, rule.get("handle").and_then(Value::as_u64), acts);
                End::Dropped
            }
            "jump" | "goto" if depth > 0 => {
                let target = (chain.0, chain.1, text(value, "target"));
                let certain = walk.certain;
                walk.certain &= acts == Acts::Yes;
                let end = self.walk(target, walk, depth - 1);
                walk.certain &= certain;
                if key == "jump" && end == End::Back {
                    return None;
                }
                end
            }
            "jump" | "goto" | "queue" => {
                walk.certain = false;
                return None;
            }
            _ => return None,
        };
        walk.certain &= acts == Acts::Yes;
        (acts == Acts::Yes).then_some(end)
    }
}

impl Walk {
    fn drops(&mut self, chain: Name<'_>, handle: Option<u64>, acts: Acts) {
        let certain = self.certain && acts == Acts::Yes;
        let (family, table, chain) = (chain.0.into(), chain.1.into(), chain.2.into());
        self.filters.push(ErrorFilter { version: self.version, family, table, chain, handle, certain });
    }

    /// Whether the rule still acts behind this statement.
    fn statement(&self, key: &str, value: &Value) -> Acts {
        match key {
            "match" => {
                let Some(asked) = self.asks(value.get("left"), value.get("right")) else { return Acts::No };
                match (text(value, "op"), asked) {
                    ("==" | "in", asked) => asked,
                    ("!=", Acts::Yes) => Acts::No,
                    ("!=", Acts::No) => Acts::Yes,
                    _ => Acts::Maybe,
                }
            }
            "accept" | "drop" | "reject" | "jump" | "goto" | "return" | "continue" | "queue" | "counter"
            | "log" | "notrack" | "mangle" | "nftrace" => Acts::Yes,
            _ => Acts::Maybe,
        }
    }

    /// The verdict that a map has for the message; none: it is not known, or has none.
    fn looked_up<'v>(&self, vmap: &'v Value) -> Option<(&'v str, &'v Value)> {
        let pairs = vmap.pointer("/data/set").and_then(Value::as_array)?;
        let known: Vec<(Acts, &Value)> = pairs
            .iter()
            .filter_map(|pair| Some((self.asks(vmap.get("key"), pair.get(0))?, pair.get(1)?)))
            .collect();
        if known.iter().any(|(acts, _)| *acts == Acts::Maybe) {
            return None;
        }
        let (_, verdict) = known.iter().find(|(acts, _)| *acts == Acts::Yes)?;
        verdict.as_object()?.iter().next().map(|(key, value)| (key.as_str(), value))
    }

    /// Whether what `left` names is `right` in such a message; none: it has no such header, so that no rule that names it acts.
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

/// Whether a value is one of these names or this number; a set, if it has it.
fn has(right: &Value, names: &[&str], number: u64) -> Acts {
    let yes = |is: bool| if is { Acts::Yes } else { Acts::No };
    match right {
        // A set that has a name is kept elsewhere.
        Value::String(text) if text.starts_with('@') => Acts::Maybe,
        Value::String(text) => yes(names.contains(&text.as_str())),
        Value::Number(value) => yes(value.as_u64() == Some(number)),
        Value::Array(values) => {
            values.iter().map(|value| has(value, names, number)).max().unwrap_or(Acts::No)
        }
        Value::Object(object) => match object.get("set") {
            Some(values) => has(values, names, number),
            None => Acts::Maybe,
        },
        _ => Acts::Maybe,
    }
}
