//! Rules of a host that drop packets by their length, in what `nft --json list ruleset` and `iptables-save` print.
//!
//! A datagram of UDP of which only the IP version, the size and its device are known is followed through each chain, once
//! for each size at which some rule changes its mind. A rule, or the policy of a chain, that drops it at a size and not at
//! the next smaller one drops by length.

use crate::clamps::{RulesetError, objects};
use crate::iptables;
use crate::walk::{Acts, Drop, Packet, Rules, by, has, meets, text};
use framegauge_frames::Family;
use serde_json::Value;
use std::collections::BTreeSet;

/// A packet that is always small: what is dropped at this size is not dropped by length (RFC 791: 68).
const SMALLEST: u32 = 68;
/// The largest MTU; what drops up to there has no end.
const LARGEST: u32 = 65_535;
/// Devices that are told apart.
const MOST_DEVICES: usize = 16;
/// Sizes that are tried; a rule set with more has its largest left out.
const MOST_SIZES: usize = 64;
/// On its way out of a device a packet has its Ethernet header (`nf_hook_egress`).
const ETHERNET_BYTES: u32 = 14;
/// Matches and targets of iptables of which nft shows no more than their names.
const UNREAD: [&str; 4] = ["TCPMSS", "icmp", "icmp6", "length"];
const IPV6_HEADER_BYTES: u32 = 40;
const IPV4_HEADER_BYTES: u32 = 20;

/// A rule, or the policy of a chain, that drops packets from one size on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LengthFilter {
    /// Of which IP version.
    pub version: Family,
    /// The family of its table, as nft calls it.
    pub family: String,
    /// Its table.
    pub table: String,
    /// Its chain.
    pub chain: String,
    /// The chain by which packets come there.
    pub base: String,
    /// Where that one is hooked in: `input`, `forward`, `ingress` and so on.
    pub hook: String,
    /// The device by which the packets come, or leave: that of the chain, or one that rules name.
    pub device: Option<String>,
    /// The number of the rule, where nft lists it; with no line either it is the chain's policy.
    pub handle: Option<u64>,
    /// The rule as `iptables-save` prints it.
    pub line: Option<String>,
    /// Whether iptables lists it.
    pub by_iptables: bool,
    /// The largest IP packet that it leaves alone, in bytes.
    pub above: u32,
    /// The largest that it drops, if there is an end.
    pub to: Option<u32>,
    /// Whether it drops every such packet that comes to its chain; otherwise some.
    pub certain: bool,
}

/// Those in what nft lists.
pub fn length_filters(ruleset: &[u8]) -> Result<Vec<LengthFilter>, RulesetError> {
    Ok(of_objects(&objects(ruleset)?))
}

/// Those in what `iptables-save` (IPv4) or `ip6tables-save` lists. What is not understood is a condition.
pub fn length_filters_of_iptables(saved: &str, version: Family) -> Vec<LengthFilter> {
    let mut filters = of_objects(&iptables::objects(saved, version));
    filters.iter_mut().for_each(|filter| filter.by_iptables = true);
    filters
}

/// Whether what nft lists has a rule of iptables that asks for a length or a message of ICMP, or sets an MSS: nft does
/// not say which.
pub fn has_unread(ruleset: &[u8]) -> bool {
    let is_unread = |statement: &Value| {
        statement.pointer("/xt/name").and_then(Value::as_str).is_some_and(|name| UNREAD.contains(&name))
    };
    objects(ruleset).is_ok_and(|objects| rules(&objects).any(|rule| statements(rule).iter().any(is_unread)))
}

fn rules(objects: &[Value]) -> impl Iterator<Item = &Value> {
    objects.iter().filter_map(|object| object.get("rule"))
}

fn statements(rule: &Value) -> &[Value] {
    rule.get("expr").and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
}

fn of_objects(objects: &[Value]) -> Vec<LengthFilter> {
    let sizes = sizes(objects);
    let mut filters = Vec::new();
    if sizes.len() < 2 {
        return filters;
    }
    let (rules, devices) = (Rules::of(objects), devices(objects));
    for base in objects.iter().filter_map(|object| object.get("chain")) {
        for version in [Family::V4, Family::V6] {
            if !text(base, "hook").is_empty() && meets(text(base, "family"), version) {
                filters.extend(of_base(&rules, base, version, &sizes, &devices));
            }
        }
    }
    filters
}

/// The devices that rules name, of which packets by others know nothing.
fn devices(objects: &[Value]) -> BTreeSet<&str> {
    let matches = rules(objects).flat_map(statements).filter_map(|statement| statement.get("match"));
    let of_devices =
        matches.filter(|matches| matches.get("left").is_some_and(|left| names_device(left).is_some()));
    let names = of_devices.filter_map(|matches| matches.get("right").and_then(Value::as_str));
    names.filter(|name| *name != "lo" && !is_pattern(name)).take(MOST_DEVICES).collect()
}

/// Whether it asks for the device that a packet came by, or else leaves by.
fn names_device(left: &Value) -> Option<bool> {
    match left.pointer("/meta/key").and_then(Value::as_str)? {
        "iif" | "iifname" => Some(true),
        "oif" | "oifname" => Some(false),
        _ => None,
    }
}

/// A set that has a name, or many devices at once.
fn is_pattern(name: &str) -> bool {
    name.starts_with('@') || name.ends_with(['*', '+'])
}

/// What is dropped of packets by any device, and beside it by each one that rules name.
fn of_base(
    rules: &Rules<'_>,
    base: &Value,
    version: Family,
    sizes: &[u32],
    devices: &BTreeSet<&str>,
) -> Vec<LengthFilter> {
    let hook = text(base, "hook");
    let link_bytes = if hook == "egress" { ETHERNET_BYTES } else { 0 };
    let way = match hook {
        "prerouting" | "input" => Some(true),
        "output" | "postrouting" => Some(false),
        _ => None,
    };
    let by_device =
        |device| of_steps(rules, base, sizes, Sized { version, size: 0, link_bytes, way, device });
    let mut filters = by_device(None);
    for device in devices.iter().filter(|_| way.is_some()) {
        let own = by_device(Some(*device))
            .into_iter()
            .filter(|filter| !filters.contains(filter))
            .collect::<Vec<_>>();
        filters.extend(
            own.into_iter().map(|filter| LengthFilter { device: Some(device.to_string()), ..filter }),
        );
    }
    filters
}

/// What is dropped at each size, and not at the one before.
fn of_steps(rules: &Rules<'_>, base: &Value, sizes: &[u32], packet: Sized<'_>) -> Vec<LengthFilter> {
    let at = |size: &u32| rules.drops(base, &Sized { size: *size, ..packet }, true);
    let steps: Vec<Vec<Drop<'_>>> = sizes.iter().map(at).collect();
    let mut filters = Vec::new();
    for place in 1..steps.len() {
        for drop in &steps[place] {
            let known = |step: &Vec<Drop<'_>>| how(step, drop);
            if known(&steps[place - 1]) >= known(&steps[place]) {
                continue;
            }
            let ends = (place + 1..steps.len()).find(|later| known(&steps[*later]) < known(&steps[place]));
            let to = ends.map(|end| sizes[end] - 1);
            filters.push(filter(base, packet.version, drop, sizes[place] - 1, to));
        }
    }
    filters
}

/// Whether this rule drops the packet of a step.
fn how(step: &[Drop<'_>], target: &Drop<'_>) -> Acts {
    let is_same = |drop: &&Drop<'_>| match (drop.rule, target.rule) {
        (Some(one), Some(other)) => std::ptr::eq(one, other),
        (None, None) => drop.chain == target.chain,
        _ => false,
    };
    let acts = |drop: &Drop<'_>| if drop.certain { Acts::Yes } else { Acts::Maybe };
    step.iter().filter(is_same).map(acts).max().unwrap_or(Acts::No)
}

fn filter(base: &Value, version: Family, drop: &Drop<'_>, above: u32, to: Option<u32>) -> LengthFilter {
    let of_rule = |key: &str| drop.rule.and_then(|rule| rule.get(key));
    LengthFilter {
        version,
        family: drop.chain.0.into(),
        table: drop.chain.1.into(),
        chain: drop.chain.2.into(),
        base: text(base, "name").into(),
        hook: text(base, "hook").into(),
        device: base.get("dev").and_then(Value::as_str).map(str::to_string),
        handle: of_rule("handle").and_then(Value::as_u64),
        line: of_rule(iptables::LINE).and_then(Value::as_str).map(str::to_string),
        by_iptables: false,
        above,
        to,
        certain: drop.certain,
    }
}

/// The sizes at which a rule may change its mind: its own numbers and those beside them, with what its field leaves out.
fn sizes(objects: &[Value]) -> Vec<u32> {
    let mut sizes = BTreeSet::from([SMALLEST]);
    for statement in rules(objects).flat_map(statements) {
        let (left, right) = match (statement.get("match"), statement.get("vmap")) {
            (Some(comparison), _) => (comparison.get("left"), comparison.get("right")),
            (_, Some(map)) => (map.get("key"), map.pointer("/data/set")),
            _ => continue,
        };
        let beside = left.and_then(field_of).map_or(&[][..], Field::beside);
        let mut numbers = Vec::new();
        right.into_iter().for_each(|right| collect(right, &mut numbers));
        for (number, beside) in
            numbers.iter().flat_map(|number| beside.iter().map(move |offset| (number, offset)))
        {
            let size = number.saturating_add_signed(*beside);
            sizes.extend([size.saturating_sub(1), size, size.saturating_add(1)]);
        }
    }
    sizes.into_iter().filter(|size| (SMALLEST..=LARGEST).contains(size)).take(MOST_SIZES).collect()
}

/// A field of lengths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Whole,
    Ip,
    Ip6,
    Udp,
}

impl Field {
    /// What it leaves out of, or has beyond, an IP packet.
    fn beside(self) -> &'static [i32] {
        match self {
            Field::Whole => &[0, -14],
            Field::Ip => &[0],
            Field::Ip6 => &[40],
            Field::Udp => &[20, 40],
        }
    }
}

fn field_of(left: &Value) -> Option<Field> {
    let at = |pointer: &str| left.pointer(pointer).and_then(Value::as_str);
    match (at("/meta/key"), at("/payload/protocol"), at("/payload/field")) {
        (Some("length"), ..) => Some(Field::Whole),
        (_, Some("ip"), Some("length")) => Some(Field::Ip),
        (_, Some("ip6"), Some("length")) => Some(Field::Ip6),
        (_, Some("udp"), Some("length")) => Some(Field::Udp),
        _ => None,
    }
}

fn collect(value: &Value, numbers: &mut Vec<u32>) {
    match value {
        Value::Number(number) => {
            numbers.extend(number.as_u64().and_then(|number| u32::try_from(number).ok()));
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, numbers)),
        Value::Object(object) => object.values().for_each(|value| collect(value, numbers)),
        _ => {}
    }
}

/// A datagram of UDP.
#[derive(Clone, Copy)]
struct Sized<'a> {
    version: Family,
    size: u32,
    /// What counts in its length beside IP.
    link_bytes: u32,
    /// Whether `device` is the one that it came by, or else leaves by; none: no device is known.
    way: Option<bool>,
    /// None: one that no rule names.
    device: Option<&'a str>,
}

impl Packet for Sized<'_> {
    fn compares(&self, op: &str, left: Option<&Value>, right: Option<&Value>) -> Option<Acts> {
        let (Some(left), Some(right)) = (left, right) else { return Some(Acts::Maybe) };
        let at = |pointer: &str| left.pointer(pointer).and_then(Value::as_str);
        let is_v4 = self.version == Family::V4;
        let is_absent = match at("/payload/protocol") {
            Some("ip") => !is_v4,
            Some("ip6") => is_v4,
            Some("icmp" | "icmpv6" | "tcp" | "sctp" | "dccp") => true,
            _ => false,
        };
        if is_absent {
            return None;
        }
        let header = if is_v4 { IPV4_HEADER_BYTES } else { IPV6_HEADER_BYTES };
        let is_udp = || by(op, has(right, &["udp"], 17));
        Some(match (field_of(left), at("/meta/key"), at("/payload/protocol"), at("/payload/field")) {
            (Some(Field::Whole), ..) => compared(op, self.size + self.link_bytes, right),
            (Some(Field::Ip), ..) => compared(op, self.size, right),
            (Some(Field::Ip6), ..) => compared(op, self.size.saturating_sub(IPV6_HEADER_BYTES), right),
            (Some(Field::Udp), ..) => compared(op, self.size.saturating_sub(header), right),
            (_, Some("iif" | "iifname" | "oif" | "oifname"), ..) => by(op, self.has_device(left, right)),
            (_, Some("l4proto"), ..) => is_udp(),
            (_, _, Some("ip"), Some("protocol")) | (_, _, Some("ip6"), Some("nexthdr")) => is_udp(),
            (_, Some("nfproto"), ..) if is_v4 => by(op, has(right, &["ipv4"], 2)),
            (_, Some("nfproto"), ..) => by(op, has(right, &["ipv6"], 10)),
            _ => Acts::Maybe,
        })
    }
}

impl Sized<'_> {
    fn has_device(&self, left: &Value, right: &Value) -> Acts {
        match right.as_str() {
            // What goes from host to host is by no loopback.
            Some("lo") => Acts::No,
            Some(name) if names_device(left) == self.way && !is_pattern(name) => {
                if self.device == Some(name) { Acts::Yes } else { Acts::No }
            }
            _ => Acts::Maybe,
        }
    }
}

/// How a length compares with a number, a range, or a set of them.
fn compared(op: &str, length: u32, right: &Value) -> Acts {
    let yes = |is: bool| if is { Acts::Yes } else { Acts::No };
    if let Some(number) = right.as_u64() {
        let length = u64::from(length);
        return match op {
            "<" => yes(length < number),
            ">" => yes(length > number),
            "<=" => yes(length <= number),
            ">=" => yes(length >= number),
            _ => by(op, yes(length == number)),
        };
    }
    by(op, is_among(length, right))
}

fn is_among(length: u32, right: &Value) -> Acts {
    let range = right.get("range").and_then(Value::as_array);
    let ends = range.and_then(|range| Some((range.first()?.as_u64()?, range.get(1)?.as_u64()?)));
    match (right, ends) {
        (_, Some((low, high))) if (low..=high).contains(&u64::from(length)) => Acts::Yes,
        (_, Some(_)) => Acts::No,
        (Value::Number(number), _) if number.as_u64() == Some(u64::from(length)) => Acts::Yes,
        (Value::Number(_), _) => Acts::No,
        (Value::Array(values), _) => {
            values.iter().map(|value| is_among(length, value)).max().unwrap_or(Acts::No)
        }
        (Value::Object(object), _) => object.get("set").map_or(Acts::Maybe, |set| is_among(length, set)),
        // A set that has a name is kept elsewhere.
        _ => Acts::Maybe,
    }
}
