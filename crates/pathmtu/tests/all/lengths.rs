//! Rule sets as nft 1.0.6 and iptables 1.8.9 print them: which of them drop packets by their length, and from which size on.

use framegauge_frames::Family;
use framegauge_pathmtu::{
    LengthFilter, has_unread, lacks_device, length_filters, length_filters_of_iptables, with_devices,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn chain(family: &str, hook: &str, policy: &str) -> Value {
    json!({"chain": {"family": family, "table": "fw", "name": "c", "handle": 1, "type": "filter", "hook": hook,
                     "prio": 0, "policy": policy}})
}

fn rule(family: &str, handle: u64, expr: Value) -> Value {
    json!({"rule": {"family": family, "table": "fw", "chain": "c", "handle": handle, "expr": expr}})
}

fn meta(op: &str, right: Value) -> Value {
    json!({"match": {"op": op, "left": {"meta": {"key": "length"}}, "right": right}})
}

fn field(protocol: &str, op: &str, right: Value) -> Value {
    json!({"match": {"op": op, "left": {"payload": {"protocol": protocol, "field": "length"}}, "right": right}})
}

type Read = (u8, Option<u64>, u32, Option<u32>, bool);

/// By IP version, number of the rule, the largest that passes, the largest that is dropped, and whether it is certain.
fn short(filters: &[LengthFilter]) -> Vec<Read> {
    let version = |filter: &LengthFilter| if filter.version == Family::V4 { 4 } else { 6 };
    filters.iter().map(|each| (version(each), each.handle, each.above, each.to, each.certain)).collect()
}

fn read(objects: Vec<Value>) -> Vec<Read> {
    short(&length_filters(json!({"nftables": objects}).to_string().as_bytes()).unwrap())
}

#[test]
fn each_way_to_ask_for_a_length_is_understood() {
    let accept = json!({"accept": null});
    let map = json!({"vmap": {"key": {"meta": {"key": "length"}},
                              "data": {"set": [[{"range": [0, 1500]}, accept], [{"range": [1501, 65535]}, {"drop": null}]]}}});
    for (asked, versions, above, to, certain) in [
        (vec![meta(">", json!(1500))], vec![4, 6], 1500, None, true),
        (vec![meta(">=", json!(1501))], vec![4, 6], 1500, None, true),
        (vec![meta("==", json!({"range": [1501, 4000]}))], vec![4, 6], 1500, Some(4000), true),
        (vec![meta("!=", json!({"range": [0, 1500]}))], vec![4, 6], 1500, None, true),
        (vec![field("ip", ">", json!(1500))], vec![4], 1500, None, true),
        (vec![field("ip6", ">", json!(1460))], vec![6], 1500, None, true),
        (vec![field("udp", ">", json!(1480))], vec![4], 1500, None, true),
        (
            vec![json!({"limit": {"rate": 1, "per": "second"}}), meta(">", json!(1500))],
            vec![4, 6],
            1500,
            None,
            false,
        ),
    ] {
        let expr: Vec<Value> =
            asked.iter().cloned().chain([json!({"counter": {}}), json!({"drop": null})]).collect();
        let mut found = read(vec![chain("inet", "input", "accept"), rule("inet", 7, json!(expr))]);
        found.retain(|each| versions.contains(&each.0));
        let expected: Vec<Read> = versions.iter().map(|each| (*each, Some(7), above, to, certain)).collect();
        assert_eq!(found, expected, "{asked:?}");
    }
    let mapped = vec![chain("inet", "input", "accept"), rule("inet", 7, json!([map]))];
    assert_eq!(read(mapped), [(4, Some(7), 1500, None, true), (6, Some(7), 1500, None, true)]);
    // Out of a device the Ethernet header counts.
    let out = vec![
        chain("netdev", "egress", "accept"),
        rule("netdev", 7, json!([meta(">", json!(1514)), {"drop": null}])),
    ];
    assert_eq!(read(out)[0], (4, Some(7), 1500, None, true));
}

#[test]
fn a_policy_drops_by_length_what_the_rules_before_it_let_pass() {
    let accept = |asked: Value| rule("inet", 7, json!([asked, {"accept": null}]));
    let found = read(vec![chain("inet", "forward", "drop"), accept(meta("<=", json!(1500)))]);
    assert_eq!(found, [(4, None, 1500, None, true), (6, None, 1500, None, true)]);
    // What is dropped at any size, or let pass before, is not dropped by length.
    assert_eq!(read(vec![chain("inet", "forward", "drop"), accept(meta(">", json!(1500)))]), []);
    let drop = rule("inet", 8, json!([meta(">", json!(1500)), {"drop": null}]));
    assert_eq!(
        read(vec![
            chain("inet", "input", "accept"),
            rule("inet", 7, json!([{"accept": null}])),
            drop.clone()
        ]),
        []
    );
    assert_eq!(read(vec![drop]), [], "no hook leads there");
}

#[test]
fn what_rules_ask_of_datagrams_and_devices_is_known() {
    let of = |key: &str, value: &str| json!({"match": {"op": "==", "left": {"meta": {"key": key}}, "right": value}});
    let found = |asked: Value| {
        let drop = rule("ip", 7, json!([asked, meta(">", json!(1500)), {"drop": null}]));
        let text = json!({"nftables": [chain("ip", "input", "accept"), drop]}).to_string();
        let filters = length_filters(text.as_bytes()).unwrap();
        filters.into_iter().map(|each| (each.device, each.certain)).collect::<Vec<_>>()
    };
    assert_eq!(found(of("iifname", "eth0")), [(Some("eth0".into()), true)]);
    assert_eq!(found(of("iifname", "eth*")), [(None, false)]);
    assert_eq!(found(of("iifname", "lo")), []);
    assert_eq!(found(of("l4proto", "udp")), [(None, true)]);
    assert_eq!(found(of("l4proto", "tcp")), []);
    assert_eq!(
        found(json!({"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": "new"}})),
        [(None, false)]
    );
}

#[test]
fn the_devices_of_a_chain_come_from_its_own_listing() {
    let objects = [
        chain("netdev", "ingress", "accept"),
        rule("netdev", 7, json!([meta(">", json!(1500)), {"drop": null}])),
    ];
    let read = |chains: &str| {
        let filters = length_filters(json!({"nftables": objects}).to_string().as_bytes()).unwrap();
        assert!(filters.iter().all(lacks_device));
        let filters = with_devices(filters, chains).into_iter().filter(|each| each.version == Family::V4);
        filters.map(|each| (each.device, each.certain)).collect::<Vec<_>>()
    };
    let listed = |devices: &str| {
        format!(
            "table netdev fw {{\n\tchain c {{\n\t\ttype filter hook ingress {devices} priority 0; policy accept;\n\t}}\n}}\n"
        )
    };
    assert_eq!(read(&listed("device \"v0\"")), [(Some("v0".into()), true)]);
    assert_eq!(read(&listed("devices = { v0, v2 }")), [(Some("v0".into()), true), (Some("v2".into()), true)]);
    assert_eq!(read(""), [(None, false)]);
}

#[test]
fn the_rules_of_iptables_are_read_as_it_saves_them() {
    let saved = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n:big - [0:0]\n\
        -A INPUT -i lo -j ACCEPT\n-A INPUT -m length --length 1501:65535 -m comment --comment \"no -j ACCEPT\" -j big\n\
        -A big -j LOG --log-prefix \"big \"\n-A big -j DROP\n\
        -A FORWARD -p udp -m udp --dport 53 -j ACCEPT\n-A FORWARD -m length ! --length 1401:65535 -j ACCEPT\nCOMMIT\n";
    let filters = length_filters_of_iptables(saved, Family::V4);
    let lines: Vec<(&str, Option<&str>)> =
        filters.iter().map(|each| (each.hook.as_str(), each.line.as_deref())).collect();
    assert_eq!(lines, [("input", Some("-A big -j DROP")), ("forward", None)]);
    assert_eq!(short(&filters), [(4, None, 1500, None, true), (4, None, 1400, None, false)]);
    assert!(filters.iter().all(|each| each.by_iptables));
    let nft = json!({"nftables": [rule("ip", 2, json!([{"xt": {"type": "match", "name": "length"}}, {"drop": null}]))]});
    assert!(has_unread(nft.to_string().as_bytes()));
    assert!(!has_unread(b"{\"nftables\": []}"));
}

proptest! {
    #[test]
    fn a_rule_drops_just_what_is_longer(limit in 100u32..65_000, v6: bool) {
        let (protocol, beside, version) = if v6 { ("ip6", 40, 6) } else { ("ip", 0, 4) };
        let rules = [rule("inet", 7, json!([field(protocol, ">", json!(limit)), {"drop": null}]))];
        let found = read([chain("inet", "input", "accept")].into_iter().chain(rules).collect());
        prop_assert_eq!(found, [(version, Some(7), limit + beside, None, true)]);
    }

    #[test]
    fn nothing_panics(expr in "[a-z{}:\\[\\]\",0-9]{0,80}", saved in "[-*:!\"\\\\A-Za-z0-9 \n]{0,120}") {
        let text = format!(
            r#"{{"nftables": [{{"chain": {{"family": "ip", "table": "fw", "name": "c", "hook": "input"}}}},
               {{"rule": {{"family": "ip", "table": "fw", "chain": "c", "expr": [{expr}, {{"drop": null}}]}}}}]}}"#
        );
        let _ = length_filters(text.as_bytes());
        let _ = length_filters_of_iptables(&saved, Family::V6);
    }
}
