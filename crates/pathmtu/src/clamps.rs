//! Rules that clamp the MSS of TCP, in what `nft --json list ruleset` and `iptables-save` print.

use crate::iptables;
use framegauge_frames::Family;
use serde_json::Value;

/// What iptables calls it.
const TARGET: &str = "TCPMSS";

/// What a rule makes of the MSS that passes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClampedTo {
    /// This size in bytes.
    Size(u32),
    /// What the route's MTU leaves.
    RouteMtu,
    /// It depends on the packet, or nft does not tell: of rules that iptables made it knows no more than their kind.
    Unknown,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MssClamp {
    /// The family of its table, as nft calls it: `ip`, `ip6`, `inet`, `bridge`, `netdev`.
    pub family: String,
    /// Its table.
    pub table: String,
    /// Its chain.
    pub chain: String,
    /// What it sets.
    pub to: ClampedTo,
    /// The rule as `iptables-save` prints it, where iptables lists it.
    pub line: Option<String>,
}

/// It is no rule set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RulesetError {
    /// Not even JSON.
    #[error("found no JSON: {0}")]
    NotJson(String),
    /// JSON of something else.
    #[error("found no list \"nftables\", expected a rule set")]
    NoRuleset,
}

/// The clamping rules in their order. What is not understood of a rule is passed over: newer versions of nft know more.
pub fn mss_clamps(ruleset: &[u8]) -> Result<Vec<MssClamp>, RulesetError> {
    let objects = objects(ruleset)?;
    Ok(objects.iter().filter_map(|object| object.get("rule")).flat_map(of_rule).collect())
}

/// Those in what `iptables-save` (IPv4) or `ip6tables-save` lists.
pub fn mss_clamps_of_iptables(saved: &str, version: Family) -> Vec<MssClamp> {
    let family = if version == Family::V4 { "ip" } else { "ip6" };
    let rules = iptables::targeting(saved, TARGET).into_iter();
    rules
        .map(|rule| MssClamp {
            family: family.into(),
            table: rule.table.into(),
            to: set_by(&rule.options),
            chain: rule.chain,
            line: Some(rule.line.into()),
        })
        .collect()
}

/// What the options of the target set (iptables-extensions(8)).
fn set_by(options: &[String]) -> ClampedTo {
    match options.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--clamp-mss-to-pmtu", ..] => ClampedTo::RouteMtu,
        ["--set-mss", size, ..] => size.parse().map_or(ClampedTo::Unknown, ClampedTo::Size),
        _ => ClampedTo::Unknown,
    }
}

/// Tables, chains and rules of a rule set.
pub(crate) fn objects(ruleset: &[u8]) -> Result<Vec<Value>, RulesetError> {
    let mut ruleset: Value =
        serde_json::from_slice(ruleset).map_err(|error| RulesetError::NotJson(error.to_string()))?;
    match ruleset.get_mut("nftables").map(Value::take) {
        Some(Value::Array(objects)) => Ok(objects),
        _ => Err(RulesetError::NoRuleset),
    }
}

fn of_rule(rule: &Value) -> Vec<MssClamp> {
    let named = |key: &str| rule.get(key).and_then(Value::as_str).unwrap_or_default().to_string();
    let statements = rule.get("expr").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    statements
        .iter()
        .filter_map(clamped_to)
        .map(|to| MssClamp {
            family: named("family"),
            table: named("table"),
            chain: named("chain"),
            to,
            line: None,
        })
        .collect()
}

fn clamped_to(statement: &Value) -> Option<ClampedTo> {
    let text = |pointer: &str| statement.pointer(pointer).and_then(Value::as_str);
    if text("/xt/type") == Some("target") && text("/xt/name") == Some(TARGET) {
        return Some(ClampedTo::Unknown);
    }
    let option = (text("/mangle/key/tcp option/name"), text("/mangle/key/tcp option/field"));
    if option != (Some("maxseg"), Some("size")) {
        return None;
    }
    let value = statement.pointer("/mangle/value")?;
    let size = value.as_u64().and_then(|size| u32::try_from(size).ok());
    Some(match size {
        Some(size) => ClampedTo::Size(size),
        None if text("/mangle/value/rt/key") == Some("mtu") => ClampedTo::RouteMtu,
        None => ClampedTo::Unknown,
    })
}
