//! Rule sets as nft 1.0.6 and iptables 1.8.9 print them, and what they never should print.

use framegauge_frames::Family;
use framegauge_pathmtu::{ClampedTo, MssClamp, RulesetError, mss_clamps, mss_clamps_of_iptables};
use proptest::prelude::*;
use serde_json::{Value, json};

fn rule(family: &str, table: &str, chain: &str, statements: Value) -> Value {
    json!({"rule": {"family": family, "table": table, "chain": chain, "handle": 2, "expr": statements}})
}

fn set(value: Value) -> Value {
    json!([
        {"match": {"op": "in", "left": {"payload": {"protocol": "tcp", "field": "flags"}}, "right": "syn"}},
        {"mangle": {"key": {"tcp option": {"name": "maxseg", "field": "size"}}, "value": value}},
    ])
}

fn read(objects: Vec<Value>) -> Vec<MssClamp> {
    mss_clamps(json!({"nftables": objects}).to_string().as_bytes()).unwrap()
}

fn clamp(family: &str, table: &str, chain: &str, to: ClampedTo) -> MssClamp {
    MssClamp { family: family.into(), table: table.into(), chain: chain.into(), to, line: None }
}

#[test]
fn a_size_and_the_route_are_told_apart() {
    let found = read(vec![
        json!({"metainfo": {"version": "1.0.6", "release_name": "Lester Gooch #5", "json_schema_version": 1}}),
        json!({"table": {"family": "inet", "name": "fg", "handle": 1}}),
        json!({"chain": {"family": "inet", "table": "fg", "name": "out", "handle": 1, "type": "filter"}}),
        rule("inet", "fg", "out", set(json!(1360))),
        rule("ip6", "vpn", "forward", set(json!({"rt": {"key": "mtu"}}))),
    ]);
    let expected = [
        clamp("inet", "fg", "out", ClampedTo::Size(1360)),
        clamp("ip6", "vpn", "forward", ClampedTo::RouteMtu),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_size_that_depends_on_the_packet_is_not_known() {
    let map = json!({"map": {"key": {"payload": {"protocol": "th", "field": "dport"}}, "data": "@sizes"}});
    let found = read(vec![rule("inet", "fg", "out", set(map)), rule("inet", "fg", "out", set(json!(-1)))]);
    assert_eq!(found, vec![clamp("inet", "fg", "out", ClampedTo::Unknown); 2]);
}

#[test]
fn what_iptables_made_is_found_without_its_size() {
    let target =
        json!([{"counter": {"packets": 0, "bytes": 0}}, {"xt": {"type": "target", "name": "TCPMSS"}}]);
    let found = read(vec![rule("ip", "mangle", "POSTROUTING", target)]);
    assert_eq!(found, [clamp("ip", "mangle", "POSTROUTING", ClampedTo::Unknown)]);
}

#[test]
fn what_iptables_saves_tells_the_size_and_the_line() {
    let lines = [
        "-A POSTROUTING -o ppp0 -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1360",
        "-A FORWARD -p tcp -m comment --comment \"no -j TCPMSS --set-mss 1\" -j ACCEPT",
        "-A FORWARD -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu",
        "-A vpn -p tcp -j TCPMSS",
    ];
    let saved = format!("*mangle\n:POSTROUTING ACCEPT [0:0]\n:vpn - [0:0]\n{}\nCOMMIT\n", lines.join("\n"));
    let expected = [
        (0, "POSTROUTING", ClampedTo::Size(1360)),
        (2, "FORWARD", ClampedTo::RouteMtu),
        (3, "vpn", ClampedTo::Unknown),
    ]
    .map(|(line, chain, to)| MssClamp {
        line: Some(lines[line].into()),
        ..clamp("ip6", "mangle", chain, to)
    });
    assert_eq!(mss_clamps_of_iptables(&saved, Family::V6), expected);
}

#[test]
fn other_rules_are_none() {
    let matched = json!([
        {"match": {"op": "==", "left": {"tcp option": {"name": "maxseg", "field": "size"}}, "right": 1360}},
        {"xt": {"type": "match", "name": "tcpmss"}}, {"xt": null}, {"accept": null}, 7,
    ]);
    let window =
        json!([{"mangle": {"key": {"tcp option": {"name": "window", "field": "count"}}, "value": 3}}]);
    let mark = json!([{"mangle": {"key": {"meta": {"key": "mark"}}, "value": 1360}}]);
    let rules = [matched, window, mark, Value::Null].map(|each| rule("ip", "filter", "input", each));
    assert_eq!(read(rules.to_vec()), []);
    assert_eq!(read(vec![]), []);
}

#[test]
fn what_is_no_rule_set_says_so() {
    assert!(matches!(mss_clamps(b""), Err(RulesetError::NotJson(_))));
    assert!(matches!(mss_clamps(&[b'['; 100_000]), Err(RulesetError::NotJson(_))), "no depth is too deep");
    for other in ["{}", "[]", "null", r#"{"nftables": {}}"#] {
        assert_eq!(mss_clamps(other.as_bytes()), Err(RulesetError::NoRuleset));
    }
}

/// Any JSON made of the words that the reader looks for.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(|number| json!(number)),
        any::<f64>().prop_map(|number| json!(number)),
        prop::sample::select(vec!["maxseg", "size", "mtu", "target", "TCPMSS", ""])
            .prop_map(|text| json!(text)),
    ];
    let keys = vec![
        "rule",
        "expr",
        "mangle",
        "key",
        "tcp option",
        "name",
        "field",
        "value",
        "rt",
        "xt",
        "type",
        "family",
    ];
    leaf.prop_recursive(6, 64, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(keys.clone()), inner), 0..4).prop_map(|pairs| {
                Value::Object(pairs.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        let _ = mss_clamps(&bytes);
    }

    #[test]
    fn no_lines_panic(saved in "[-*:\"\\\\A TCPMSSj0-9a-z\n]{0,120}") {
        let _ = mss_clamps_of_iptables(&saved, Family::V4);
    }

    #[test]
    fn no_cut_panics(cut in 0usize..200) {
        let whole = json!({"nftables": [rule("inet", "fg", "out", set(json!(1360)))]}).to_string();
        prop_assert_eq!(mss_clamps(&whole.as_bytes()[..cut.min(whole.len())]).is_ok(), cut >= whole.len());
    }

    #[test]
    fn no_rule_set_panics_and_a_rule_is_found_beside_any(before in anything(), after in anything(), size: u32) {
        let rule = rule("inet", "fg", "out", set(json!(size)));
        prop_assert!(read(vec![before, rule, after]).contains(&clamp("inet", "fg", "out", ClampedTo::Size(size))));
    }
}
