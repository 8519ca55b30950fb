//! A packet on its way through the chains of a rule set, in what `nft --json list ruleset` prints: rule by rule, as the
//! kernel does (nft(8)). What a rule asks of the packet is known or not: a rule of which not all is known *may* act, and
//! all behind it is no more certain.

use framegauge_frames::Family;
use serde_json::Value;
use std::collections::HashMap;

/// Chains into chains: the kernel allows 16.
const DEEPEST: u32 = 16;
/// Rules that a packet is followed through: chains that call each other may multiply them without end.
const MOST_RULES: u32 = 100_000;

/// The family, table and chain of a rule.
pub(crate) type Name<'a> = (&'a str, &'a str, &'a str);

/// The rules by the family, table and chain that they are in.
pub(crate) struct Rules<'a>(HashMap<Name<'a>, Vec<&'a Value>>);

/// Whether a rule acts on the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Acts {
    No,
    Maybe,
    Yes,
}

/// What is known of a packet.
pub(crate) trait Packet {
    /// How `left` of it compares with `right`; none: it has no such header, so that no rule that names it acts.
    fn compares(&self, op: &str, left: Option<&Value>, right: Option<&Value>) -> Option<Acts>;
}

/// A rule that drops the packet, or the policy of a chain.
pub(crate) struct Drop<'a> {
    pub(crate) chain: Name<'a>,
    /// None: the policy.
    pub(crate) rule: Option<&'a Value>,
    /// Whether every such packet is dropped here; otherwise some may be.
    pub(crate) certain: bool,
}

/// Where a packet is when it leaves a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Accepted,
    Dropped,
    /// With the chain that called this one, or the policy.
    Back,
}

/// A packet on its way through a base chain.
struct Walk<'a, 'p> {
    packet: &'p dyn Packet,
    certain: bool,
    /// Rules that may still be looked at.
    left: u32,
    drops: Vec<Drop<'a>>,
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn name(value: &Value) -> Name<'_> {
    (text(value, "family"), text(value, "table"), text(value, "chain"))
}

impl<'a> Rules<'a> {
    pub(crate) fn of(objects: &'a [Value]) -> Rules<'a> {
        let mut rules: HashMap<Name<'a>, Vec<&'a Value>> = HashMap::new();
        for rule in objects.iter().filter_map(|object| object.get("rule")) {
            rules.entry(name(rule)).or_default().push(rule);
        }
        Rules(rules)
    }

    /// What drops the packet in a base chain; `certain`: whether it comes there at all.
    pub(crate) fn drops(&self, base: &'a Value, packet: &dyn Packet, certain: bool) -> Vec<Drop<'a>> {
        let own = (text(base, "family"), text(base, "table"), text(base, "name"));
        let mut walk = Walk { packet, certain, left: MOST_RULES, drops: Vec::new() };
        if self.walk(own, &mut walk, DEEPEST) == End::Back && text(base, "policy") == "drop" {
            walk.drops(own, None, Acts::Yes);
        }
        walk.drops
    }

    fn walk(&self, chain: Name<'a>, walk: &mut Walk<'a, '_>, depth: u32) -> End {
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
        walk: &mut Walk<'a, '_>,
        depth: u32,
    ) -> Option<End> {
        let end = match key {
            "accept" => End::Accepted,
            "return" => End::Back,
            "drop" | "reject" => {
                walk.drops(chain, Some(rule), acts);
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

impl<'a> Walk<'a, '_> {
    fn drops(&mut self, chain: Name<'a>, rule: Option<&'a Value>, acts: Acts) {
        let certain = self.certain && acts == Acts::Yes;
        self.drops.push(Drop { chain, rule, certain });
    }

    /// Whether the rule still acts behind this statement.
    fn statement(&self, key: &str, value: &Value) -> Acts {
        match key {
            "match" => {
                let acts = self.packet.compares(text(value, "op"), value.get("left"), value.get("right"));
                acts.unwrap_or(Acts::No)
            }
            "accept" | "drop" | "reject" | "jump" | "goto" | "return" | "continue" | "queue" | "counter"
            | "log" | "notrack" | "mangle" | "nftrace" => Acts::Yes,
            _ => Acts::Maybe,
        }
    }

    /// The verdict that a map has for the packet; none: it is not known, or has none.
    fn looked_up<'v>(&self, vmap: &'v Value) -> Option<(&'v str, &'v Value)> {
        let pairs = vmap.pointer("/data/set").and_then(Value::as_array)?;
        let known: Vec<(Acts, &Value)> = pairs
            .iter()
            .filter_map(|pair| {
                Some((self.packet.compares("==", vmap.get("key"), pair.get(0))?, pair.get(1)?))
            })
            .collect();
        if known.iter().any(|(acts, _)| *acts == Acts::Maybe) {
            return None;
        }
        let (_, verdict) = known.iter().find(|(acts, _)| *acts == Acts::Yes)?;
        verdict.as_object()?.iter().next().map(|(key, value)| (key.as_str(), value))
    }
}

/// What a rule with this operator makes of a value that is equal, or not.
pub(crate) fn by(op: &str, equal: Acts) -> Acts {
    match (op, equal) {
        ("==" | "in", equal) => equal,
        ("!=", Acts::Yes) => Acts::No,
        ("!=", Acts::No) => Acts::Yes,
        _ => Acts::Maybe,
    }
}

/// Whether packets of an IP version meet a chain of this family of tables.
pub(crate) fn meets(family: &str, version: Family) -> bool {
    match family {
        "ip" => version == Family::V4,
        "ip6" => version == Family::V6,
        "inet" | "netdev" | "bridge" => true,
        _ => false,
    }
}

/// Whether a value is one of these names or this number; a set, if it has it.
pub(crate) fn has(right: &Value, names: &[&str], number: u64) -> Acts {
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
