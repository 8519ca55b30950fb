//! What `iptables-save` prints, in the words of `nft --json list ruleset`: chains, rules, and of their conditions those that
//! bear on lengths and on "packet too big". All others are conditions that nobody knows (iptables(8),
//! iptables-extensions(8)).

use framegauge_frames::Family;
use serde_json::{Map, Value, json};

/// Where a rule keeps its line.
pub(crate) const LINE: &str = "line";
/// Targets behind which a packet goes on with the next rule.
const PASSING: [&str; 18] = [
    "AUDIT", "CHECKSUM", "CLASSIFY", "CONNMARK", "CT", "DSCP", "HL", "LOG", "MARK", "NFLOG", "NOTRACK",
    "SET", "TCPMSS", "TEE", "TOS", "TRACE", "TTL", "ULOG",
];

/// The priority of the table `raw` (`NF_IP_PRI_RAW`): before connections are tracked.
const RAW: i64 = -300;

/// A rule with a target that is asked for.
pub(crate) struct Targeting<'a> {
    pub(crate) table: &'a str,
    pub(crate) chain: String,
    pub(crate) line: &'a str,
    /// The words behind the target.
    pub(crate) options: Vec<String>,
}

/// The rules that go to a target, in their order.
pub(crate) fn targeting<'a>(saved: &'a str, target: &str) -> Vec<Targeting<'a>> {
    let (mut table, mut rules) = ("", Vec::new());
    for line in saved.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('*') {
            table = name;
        } else if line.starts_with("-A ") {
            let mut words = words(line);
            let place = words.windows(2).position(|pair| pair[0] == "-j" && pair[1] == target);
            if let Some(place) = place
                && words.len() > 1
            {
                let options = words.split_off(place + 2);
                rules.push(Targeting { table, chain: words.swap_remove(1), line, options });
            }
        }
    }
    rules
}

/// The tables in what `iptables-save` lists.
pub fn tables_of_iptables(saved: &str) -> impl Iterator<Item = &str> {
    saved.lines().filter_map(|line| line.trim().strip_prefix('*'))
}

/// Chains and rules; lines that are none are passed over.
pub(crate) fn objects(saved: &str, version: Family) -> Vec<Value> {
    let family = if version == Family::V4 { "ip" } else { "ip6" };
    let mut table = String::new();
    let mut objects = Vec::new();
    for line in saved.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('*') {
            table = name.to_string();
        } else if let Some(chain) = line.strip_prefix(':') {
            objects.extend(chain_of(chain, family, &table));
        } else if line.starts_with("-A ") {
            objects.extend(rule_of(line, family, &table));
        }
    }
    objects
}

fn chain_of(line: &str, family: &str, table: &str) -> Option<Value> {
    let mut words = line.split_whitespace();
    let (name, policy) = (words.next()?, words.next()?);
    let mut chain = json!({"family": family, "table": table, "name": name});
    // Only the kernel's own chains have a policy, and the names of their hooks.
    if policy != "-" {
        chain["hook"] = name.to_lowercase().into();
        chain["policy"] = policy.to_lowercase().into();
        chain["prio"] = if table == "raw" { RAW.into() } else { 0.into() };
    }
    Some(json!({"chain": chain}))
}

fn rule_of(line: &str, family: &str, table: &str) -> Option<Value> {
    let words = words(line);
    let mut left = words.iter().map(String::as_str).skip(1);
    let chain = left.next()?;
    let mut statements: Vec<Value> = Vec::new();
    let mut op = "==";
    while let Some(word) = left.next() {
        let negated = op == "!=";
        match word {
            "!" => {
                op = "!=";
                continue;
            }
            "-m" | "--match" | "--comment" => drop(left.next()),
            "-i" => statements.push(asked(op, "iifname", left.next()?.into())),
            "-o" => statements.push(asked(op, "oifname", left.next()?.into())),
            "-p" => statements.push(asked(op, "l4proto", protocol(left.next()?).into())),
            "--length" => statements.push(length(op, left.next()?)),
            "--state" | "--ctstate" => statements.push(state(op, left.next()?)),
            "--icmp-type" | "--icmpv6-type" => {
                statements.extend(message(op, family == "ip6", left.next()?));
            }
            "-j" | "-g" if !negated => {
                statements.extend(verdict(word, left.next()?));
                break;
            }
            // Words of a condition that is not known, be it its name or its value.
            _ => statements.push(json!({"xt": null})),
        }
        op = "==";
    }
    let mut rule = json!({"family": family, "table": table, "chain": chain, "expr": statements});
    rule[LINE] = line.into();
    Some(json!({"rule": rule}))
}

fn asked(op: &str, key: &str, right: Value) -> Value {
    json!({"match": {"op": op, "left": {"meta": {"key": key}}, "right": right}})
}

/// As nft calls it.
fn protocol(name: &str) -> &str {
    if ["icmpv6", "icmp6"].contains(&name) { "ipv6-icmp" } else { name }
}

/// `RELATED,ESTABLISHED`; those that tell of a translation beside the state are not known.
fn state(op: &str, words: &str) -> Value {
    let states: Vec<String> = words.split(',').map(str::to_lowercase).collect();
    if states.iter().any(|state| state == "snat" || state == "dnat") {
        return json!({"xt": null});
    }
    json!({"match": {"op": op, "left": {"ct": {"key": "state"}}, "right": states}})
}

/// `3`, `3/4` or `any`, of a message of either IP version; one that is written by its name is not known.
fn message(op: &str, is_v6: bool, text: &str) -> Vec<Value> {
    let header = if is_v6 { "icmpv6" } else { "icmp" };
    let field = |op: &str, name: &str, number: u8| json!({"match": {"op": op, "left": {"payload": {"protocol": header, "field": name}}, "right": number}});
    let (kind, code) = text.split_once('/').map_or((text, None), |(kind, code)| (kind, Some(code)));
    match (kind.parse(), code.map(str::parse)) {
        (Ok(kind), None) => vec![field(op, "type", kind)],
        (Ok(kind), Some(Ok(code))) if op == "==" => vec![field(op, "type", kind), field(op, "code", code)],
        _ if text == "any" && op == "==" => Vec::new(),
        _ => vec![json!({"xt": null})],
    }
}

/// `1501:65535`, `1501:`, `:1500` or `1500`, of the whole IP packet (the kernel's `xt_length.c`).
fn length(op: &str, words: &str) -> Value {
    let (low, high) = words.split_once(':').unwrap_or((words, words));
    let number = |text: &str, otherwise: u32| if text.is_empty() { Ok(otherwise) } else { text.parse() };
    match (number(low, 0), number(high, 65_535)) {
        (Ok(low), Ok(high)) => asked(op, "length", json!({"range": [low, high]})),
        _ => json!({"xt": null}),
    }
}

/// What a target makes of the packet; one that is not known may do anything.
fn verdict(word: &str, target: &str) -> Option<Value> {
    let key = match target {
        "ACCEPT" => "accept",
        "DROP" => "drop",
        "REJECT" => "reject",
        "RETURN" => "return",
        "DNAT" | "MASQUERADE" | "NFQUEUE" | "QUEUE" | "REDIRECT" | "SNAT" | "SYNPROXY" | "TPROXY" => "queue",
        passing if PASSING.contains(&passing) => return None,
        _ if word == "-g" => return Some(json!({"goto": {"target": target}})),
        _ => return Some(json!({"jump": {"target": target}})),
    };
    let mut verdict = Map::new();
    verdict.insert(key.to_string(), Value::Null);
    Some(Value::Object(verdict))
}

/// The words of a line; in quotes are blanks, and what is behind a backslash stands for itself.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '\\' => word.extend(letters.next()),
            blank if blank.is_whitespace() && !is_quoted => words.push(std::mem::take(&mut word)),
            other => word.push(other),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}
