//! What `iptables-save` prints, in the words of `nft --json list ruleset`: chains, rules, and of their conditions those that
//! bear on lengths. All others are conditions that nobody knows (iptables(8), iptables-extensions(8)).

use framegauge_frames::Family;
use serde_json::{Map, Value, json};

/// Where a rule keeps its line.
pub(crate) const LINE: &str = "line";
/// Targets behind which a packet goes on with the next rule.
const PASSING: [&str; 18] = [
    "AUDIT", "CHECKSUM", "CLASSIFY", "CONNMARK", "CT", "DSCP", "HL", "LOG", "MARK", "NFLOG", "NOTRACK",
    "SET", "TCPMSS", "TEE", "TOS", "TRACE", "TTL", "ULOG",
];

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
            "-p" => statements.push(asked(op, "l4proto", left.next()?.into())),
            "--length" => statements.push(length(op, left.next()?)),
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
