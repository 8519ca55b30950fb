//! Rule sets as nft 1.0.6 prints them: which of them keep "packet too big" from a host.

use framegauge_frames::Family;
use framegauge_pathmtu::{ErrorFilter, error_filters, error_filters_of_iptables};
use proptest::prelude::*;
use serde_json::{Value, json};

fn chain(family: &str, hook: &str, priority: i64, policy: &str) -> Value {
    json!({"chain": {"family": family, "table": "fw", "name": "in", "handle": 1, "type": "filter", "hook": hook,
                     "prio": priority, "policy": policy}})
}

fn rule(chain: &str, handle: u64, expr: Value) -> Value {
    json!({"rule": {"family": "inet", "table": "fw", "chain": chain, "handle": handle, "expr": expr}})
}

fn asks(left: Value, right: Value) -> Value {
    json!({"match": {"op": "==", "left": left, "right": right}})
}

fn icmp(right: Value) -> Value {
    asks(json!({"payload": {"protocol": "icmp", "field": "type"}}), right)
}

fn related() -> Value {
    asks(json!({"ct": {"key": "state"}}), json!({"set": ["established", "related"]}))
}

/// By IP version, the number of the rule, and whether it is certain.
fn read(objects: Vec<Value>) -> Vec<(u8, Option<u64>, bool)> {
    let filters = error_filters(json!({"nftables": objects}).to_string().as_bytes()).unwrap();
    let version = |filter: &ErrorFilter| if filter.version == Family::V4 { 4 } else { 6 };
    filters.iter().map(|filter| (version(filter), filter.handle, filter.certain)).collect()
}

#[test]
fn a_rule_that_drops_the_message_is_named_with_its_place() {
    let drop =
        rule("in", 5, json!([icmp(json!("destination-unreachable")), {"counter": {}}, {"drop": null}]));
    let objects = json!({"nftables": [chain("inet", "input", 0, "accept"), drop]});
    let expected = ErrorFilter {
        version: Family::V4,
        family: "inet".into(),
        table: "fw".into(),
        chain: "in".into(),
        handle: Some(5),
        line: None,
        by_iptables: false,
        certain: true,
    };
    assert_eq!(error_filters(objects.to_string().as_bytes()), Ok(vec![expected]));
}

#[test]
fn each_way_to_say_it_is_understood() {
    let types = json!({"set": ["echo-request", "destination-unreachable"]});
    let protocol = asks(json!({"meta": {"key": "l4proto"}}), json!("icmp"));
    let both = asks(json!({"meta": {"key": "l4proto"}}), json!({"set": ["icmp", "ipv6-icmp"]}));
    let six = asks(json!({"payload": {"protocol": "icmpv6", "field": "type"}}), json!("packet-too-big"));
    let not_echo = json!({"match": {"op": "!=", "left": {"payload": {"protocol": "icmp", "field": "type"}},
                                    "right": "echo-request"}});
    let map = json!({"vmap": {"key": {"ct": {"key": "state"}},
                              "data": {"set": [["established", {"accept": null}], ["related", {"drop": null}]]}}});
    for (expr, versions) in [
        (json!([icmp(types), {"drop": null}]), vec![4]),
        (json!([icmp(json!(3)), {"reject": {"type": "icmp"}}]), vec![4]),
        (json!([protocol, {"drop": null}]), vec![4]),
        (json!([both, {"drop": null}]), vec![4, 6]),
        (json!([six, {"drop": null}]), vec![6]),
        (json!([not_echo, {"drop": null}]), vec![4]),
        (json!([map]), vec![4, 6]),
        (json!([related(), {"drop": null}]), vec![4, 6]),
        (json!([{"drop": null}]), vec![4, 6]),
        (json!([icmp(json!("echo-request")), {"drop": null}]), vec![]),
        (
            json!([asks(json!({"payload": {"protocol": "tcp", "field": "dport"}}), json!(22)), {"drop": null}]),
            vec![],
        ),
    ] {
        let expected: Vec<_> = versions.into_iter().map(|version| (version, Some(7), true)).collect();
        let found = read(vec![chain("inet", "input", 0, "accept"), rule("in", 7, expr.clone())]);
        assert_eq!(found, expected, "{expr}");
    }
}

#[test]
fn what_was_accepted_before_is_not_dropped() {
    let drop = rule("in", 5, json!([icmp(json!("destination-unreachable")), {"drop": null}]));
    let accept = rule("in", 4, json!([related(), {"accept": null}]));
    assert_eq!(read(vec![chain("inet", "input", 0, "drop"), accept.clone(), drop.clone()]), []);
    // Before connections are tracked nobody knows what is related to them.
    let early = read(vec![chain("inet", "prerouting", -300, "accept"), accept, drop.clone()]);
    assert_eq!(early, [(4, Some(5), false)]);
    let maybe =
        rule("in", 4, json!([asks(json!({"meta": {"key": "iifname"}}), json!("eth0")), {"accept": null}]));
    assert_eq!(read(vec![chain("inet", "input", 0, "accept"), maybe, drop.clone()]), [(4, Some(5), false)]);
    // A chain that is not on the message's way.
    assert_eq!(read(vec![chain("inet", "output", 0, "accept"), drop.clone()]), []);
    assert_eq!(read(vec![drop]), []);
}

#[test]
fn policies_and_other_chains_count() {
    assert_eq!(read(vec![chain("inet", "input", 0, "drop")]), [(4, None, true), (6, None, true)]);
    assert_eq!(read(vec![chain("ip6", "input", 0, "drop")]), [(6, None, true)]);
    // What many hosts have: all is dropped but the loopback, answers, and a port.
    let usual = |state: Value| {
        let accepted = [
            asks(json!({"meta": {"key": "iifname"}}), json!("lo")),
            asks(json!({"ct": {"key": "state"}}), state),
            asks(json!({"payload": {"protocol": "tcp", "field": "dport"}}), json!(22)),
        ];
        let rules = accepted.into_iter().map(|asked| rule("in", 7, json!([asked, {"accept": null}])));
        read([chain("inet", "input", 0, "drop")].into_iter().chain(rules).collect())
    };
    assert_eq!(usual(json!("established")), [(4, None, true), (6, None, true)]);
    assert_eq!(usual(json!({"set": ["established", "related"]})), []);
    let protocol = asks(json!({"meta": {"key": "l4proto"}}), json!("icmp"));
    let jump = rule("in", 3, json!([protocol, {"jump": {"target": "icmp"}}]));
    let limited = rule("icmp", 8, json!([{"limit": {"rate": 1, "per": "second"}}, {"accept": null}]));
    let drop = rule("icmp", 9, json!([{"drop": null}]));
    let base = chain("inet", "input", 0, "accept");
    assert_eq!(read(vec![base.clone(), jump.clone(), drop.clone()]), [(4, Some(9), true)]);
    assert_eq!(read(vec![base.clone(), jump, limited, drop]), [(4, Some(9), false)]);
    // What iptables made, nobody understands; a chain that calls itself ends.
    let iptables = rule("in", 3, json!([{"xt": {"type": "match", "name": "icmp"}}, {"drop": null}]));
    assert_eq!(read(vec![base.clone(), iptables]), [(4, Some(3), false), (6, Some(3), false)]);
    let circle = rule("in", 3, json!([{"jump": {"target": "in"}}]));
    assert_eq!(read(vec![base.clone(), circle]), []);
    // Ten calls in each of sixteen chains are too many ways to follow; what comes behind them is not certain.
    let mut calls = vec![base];
    for depth in 0..16 {
        let chain = if depth == 0 { "in".to_string() } else { format!("c{depth}") };
        let target = format!("c{}", depth + 1);
        calls.extend((0..10).map(|call| rule(&chain, call, json!([{"jump": {"target": target}}]))));
    }
    calls.push(rule("in", 99, json!([{"drop": null}])));
    assert!(read(calls).iter().all(|(_, _, certain)| !certain));
}

/// What `iptables-save` lists of a firewall with these rules of its input: lines, and whether they are certain.
fn saved(table: &str, policy: &str, rules: &[&str], version: Family) -> Vec<(Option<String>, bool)> {
    let chain = if table == "raw" { "PREROUTING" } else { "INPUT" };
    let lines: String = rules.iter().map(|rule| format!("-A {chain} {rule}\n")).collect();
    let text = format!("*{table}\n:{chain} {policy} [0:0]\n{lines}COMMIT\n");
    let filters = error_filters_of_iptables(&text, version);
    assert!(filters.iter().all(|filter| filter.by_iptables && filter.version == version));
    filters.into_iter().map(|filter| (filter.line, filter.certain)).collect()
}

#[test]
fn the_rules_of_iptables_are_followed_as_those_of_nft() {
    let related = "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT";
    let line = |rule: &str| Some(format!("-A INPUT {rule}"));
    for (rules, expected) in [
        (vec!["-p icmp -m icmp --icmp-type 3/4 -j DROP"], vec![(0, true)]),
        (vec!["-p icmp -j DROP"], vec![(0, true)]),
        (
            vec!["-p icmp -m icmp --icmp-type any -j REJECT --reject-with icmp-port-unreachable"],
            vec![(0, true)],
        ),
        (vec!["-p icmp -m icmp ! --icmp-type 8 -j DROP"], vec![(0, true)]),
        (vec!["-p icmp -m icmp --icmp-type 8 -j DROP"], vec![]),
        (vec!["-p icmp -m icmp --icmp-type 3/1 -j DROP"], vec![]),
        (vec![related, "-p icmp -j DROP"], vec![]),
        (vec!["-m state --state INVALID -j DROP"], vec![]),
        (vec!["-m conntrack --ctstate DNAT -j ACCEPT", "-p icmp -j DROP"], vec![(1, false)]),
        (vec!["-s 10.0.0.0/8 -p icmp -j DROP"], vec![(0, false)]),
    ] {
        let expected: Vec<_> =
            expected.into_iter().map(|(rule, certain)| (line(rules[rule]), certain)).collect();
        assert_eq!(saved("filter", "ACCEPT", &rules, Family::V4), expected, "{rules:?}");
    }
    assert_eq!(saved("filter", "DROP", &["-i lo -j ACCEPT"], Family::V4), [(None, true)]);
    assert_eq!(saved("filter", "DROP", &[related], Family::V4), []);
    // Before connections are tracked nothing is related to one.
    let raw = ["-m state --state RELATED -j ACCEPT", "-p icmp -j DROP"];
    assert_eq!(saved("raw", "ACCEPT", &raw, Family::V4).len(), 1);
    let six = ["-p ipv6-icmp -m icmp6 --icmpv6-type 2 -j DROP"];
    assert_eq!(saved("filter", "ACCEPT", &six, Family::V6), [(line(six[0]), true)]);
}

proptest! {
    #[test]
    fn no_rule_set_panics(expr in "[a-z{}:\\[\\]\",0-9]{0,80}") {
        let text = format!(
            r#"{{"nftables": [{{"chain": {{"family": "ip", "table": "fw", "name": "in", "hook": "input"}}}},
               {{"rule": {{"family": "ip", "table": "fw", "chain": "in", "expr": {expr}}}}}]}}"#
        );
        let _ = error_filters(text.as_bytes());
    }
}
