//! Networks as the pipe describes them.

use framegauge_fabric::{Act, FabricConfig, Limit, PortChange, Process, QueueConfig};
use framegauge_frames::Picoseconds;
use framegauge_networks::{NetworkSpec, QueueSpec, TopologySpec};

fn names(count: usize) -> Vec<String> {
    (1..=count).map(|host| format!("h{host}")).collect()
}

fn spec() -> NetworkSpec {
    NetworkSpec {
        topology: TopologySpec::default(),
        routing: Default::default(),
        bits_per_second: 1_000_000_000,
        rtt_seconds: 240e-6,
        buffer_bytes: 524_288,
        port_mtu: 9216,
        queue: QueueSpec::default(),
        links: Vec::new(),
        shared_buffer: None,
        background: Vec::new(),
        host_mtu: 1500,
        moderation_seconds: 0.0,
        seed: 1,
    }
}

fn from_json<T: serde::de::DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap()
}

fn port<'a>(config: &'a FabricConfig, name: &str) -> &'a framegauge_fabric::PortConfig {
    let index = (0..config.ports.len())
        .find(|port| config.port_name(framegauge_fabric::PortIndex(*port as u16)) == name)
        .unwrap();
    &config.ports[index]
}

#[test]
fn the_base_rtt_is_that_of_the_hosts_furthest_apart() {
    for (topology, hosts, links) in [
        (r#"{"kind": "rack"}"#, 3, 2),
        (r#"{"kind": "dumbbell", "left": 1}"#, 3, 3),
        (r#"{"kind": "leaf-spine", "leaves": 2, "spines": 2}"#, 4, 4),
        (r#"{"kind": "fat-tree", "k": 4}"#, 16, 6),
    ] {
        let network = NetworkSpec { topology: from_json(topology), ..spec() }.network(&names(hosts)).unwrap();
        let spans = network.ends.spans(&network.config).unwrap();
        assert_eq!(spans.links.most, links, "{topology}");
        assert_eq!(spans.round_trip.most, Picoseconds::from_nanoseconds(240_000), "{topology}");
    }
}

#[test]
fn what_is_said_of_a_link_holds_for_it_alone() {
    let links = vec![
        from_json(r#"{"from": "switch", "to": "*", "bits_per_second": 500000000, "jitter_seconds": 13e-6}"#),
        from_json(
            r#"{"from": "*", "to": "h2", "skew_ppm": 5000, "phase_seconds": 6e-6, "queue": {"kind": "codel"}}"#,
        ),
        from_json(
            r#"{"from": "h1", "to": "switch", "mtu": 1500, "delay_seconds": 0.001, "loss": 0.25, "tagged": true}"#,
        ),
    ];
    let config = NetworkSpec { links, ..spec() }.network(&names(3)).unwrap().config;
    let down = |name: &str| port(&config, name).line_rate().unwrap().bits_per_second();
    assert_eq!(
        (down("switch>h1"), down("switch>h2"), down("h2>switch")),
        (500_000_000, 502_500_000, 1_000_000_000)
    );
    assert_eq!(port(&config, "switch>h2").impairments.phase, Picoseconds::from_nanoseconds(6_000));
    assert_eq!(port(&config, "switch>h3").impairments.jitter, Picoseconds::from_nanoseconds(13_000));
    assert!(matches!(port(&config, "switch>h2").queue, QueueConfig::CoDel(_)));
    assert!(matches!(
        port(&config, "switch>h3").queue,
        QueueConfig::Taildrop { limit: Limit::Bytes(524_288) }
    ));
    let first = port(&config, "h1>switch");
    assert_eq!((first.impairments.loss, first.impairments.tagged), (0.25, true));
    assert_eq!(first.input_mtu.map(|mtu| mtu.bytes()), Some(1500));
    assert_eq!(first.delay, Picoseconds::from_nanoseconds(1_000_000));
    // Draws of different links are different.
    assert_ne!(first.impairments.seed, port(&config, "h2>switch").impairments.seed);
}

#[test]
fn usual_numbers_of_disciplines_follow_the_buffer() {
    let queue = |text: &str| {
        let config = NetworkSpec { queue: from_json(text), buffer_bytes: 120_000, ..spec() };
        port(&config.network(&names(2)).unwrap().config, "switch>h1").queue
    };
    let QueueConfig::Red(red) = queue(r#"{"kind": "red"}"#) else { panic!("not RED") };
    assert_eq!((red.minimum, red.maximum, red.limit), (10_000.0, 30_000.0, Limit::Bytes(120_000)));
    // 1538 bytes at 1 Gb/s.
    assert_eq!(red.mean_frame_time, Picoseconds::from_nanoseconds(12_304));
    let QueueConfig::Red(red) = queue(r#"{"kind": "red", "limit_frames": 60, "minimum_frames": 5}"#) else {
        panic!("not RED")
    };
    assert_eq!((red.minimum, red.maximum, red.limit), (5.0, 15.0, Limit::Frames(60)));
    // Twelve full frames of 1538 bytes on the wire each.
    let QueueConfig::Blackout(blackout) = queue(r#"{"kind": "blackout"}"#) else { panic!("not a blackout") };
    assert_eq!(blackout.on(), Picoseconds::from_nanoseconds(12 * 12_304));
    let step = queue(r#"{"kind": "step"}"#);
    assert_eq!(step, QueueConfig::Step { limit_bytes: 120_000, threshold_bytes: 60_000 });
    let taildrop = queue(r#"{"kind": "taildrop", "limit_frames": 100}"#);
    assert_eq!(taildrop, QueueConfig::Taildrop { limit: Limit::Frames(100) });
}

#[test]
fn background_load_is_a_share_of_the_first_link() {
    let background = vec![
        from_json(r#"{"from": "h1", "to": "h2", "share": 0.3}"#),
        from_json(
            r#"{"from": "h2", "to": "h1", "bits_per_second": 1000000, "process": "on-off", "frame_bytes": 64}"#,
        ),
    ];
    let config = NetworkSpec { background, ..spec() }.network(&names(2)).unwrap().config;
    let rates: Vec<u64> = config.background.iter().map(|load| load.rate.bits_per_second()).collect();
    assert_eq!(rates, [300_000_000, 1_000_000]);
    assert_eq!((config.background[0].process, config.background[0].frame_bytes), (Process::Constant, 1518));
    assert!(matches!(config.background[1].process, Process::OnOff { .. }));
}

type Change<'a> = &'a dyn Fn(&mut NetworkSpec);

#[test]
fn what_cannot_be_is_one_clear_line() {
    let refused = |change: &dyn Fn(&mut NetworkSpec)| {
        let mut changed = spec();
        change(&mut changed);
        changed.network(&names(2)).unwrap_err()
    };
    let link = |text: &'static str| move |spec: &mut NetworkSpec| spec.links = vec![from_json(text)];
    let queue = |text: &'static str| move |spec: &mut NetworkSpec| spec.queue = from_json(text);
    let load = |text: &'static str| move |spec: &mut NetworkSpec| spec.background = vec![from_json(text)];
    let cases: [(Change<'_>, &str); 11] = [
        (
            &link(r#"{"from": "s1", "to": "h1"}"#),
            "links: found none from \"s1\" to \"h1\", expected names such as \"h1\" and \"switch\"",
        ),
        (
            &link(r#"{"from": "h1", "to": "*", "queue": {"kind": "sfq"}}"#),
            "port h1>switch: found a queue or a buffer for a host's NIC, expected them at a switch",
        ),
        (
            &|spec| spec.buffer_bytes = 1517,
            "port switch>h1: found a buffer of 1517 bytes, expected room for a frame of 1518",
        ),
        (
            &link(r#"{"from": "switch", "to": "h1", "phase_seconds": -1}"#),
            "port switch>h1: found a phase of -1 s, expected 0 to 10",
        ),
        (
            &link(r#"{"from": "switch", "to": "h1", "loss": 1.5}"#),
            "port 1: found a loss of 1.5, expected 0 to 1",
        ),
        (
            &queue(r#"{"kind": "red", "limit_frames": 9, "minimum_bytes": 7}"#),
            "port switch>h1: found RED with limits in bytes and in frames, expected all in the same",
        ),
        (
            &queue(r#"{"kind": "blackout", "input_port": "h9>switch"}"#),
            "port switch>h1: found \"h9>switch\", expected a port such as \"h1>switch\"",
        ),
        (
            &load(r#"{"from": "h1", "to": "h7", "share": 0.5}"#),
            "background 1: found \"h7\", expected one of the hosts h1, h2",
        ),
        (
            &load(r#"{"from": "h1", "to": "h2", "share": 1.5}"#),
            "background 1: found a share of 1.5, expected above 0, to 1",
        ),
        (
            &load(r#"{"from": "h1", "to": "h2"}"#),
            "background 1: found both or neither of share and bits_per_second, expected one",
        ),
        (
            &|spec| spec.topology = from_json(r#"{"kind": "fat-tree", "k": 3}"#),
            "k of a fat-tree: found 3, expected an even number from 2 to 64",
        ),
    ];
    for (change, expected) in cases {
        assert_eq!(refused(change), expected);
    }
}

#[test]
fn an_unknown_discipline_is_told_which_there_are() {
    let unknown = serde_json::from_str::<QueueSpec>(r#"{"kind": "pie"}"#).unwrap_err().to_string();
    assert!(unknown.starts_with("unknown variant `pie`, expected one of `taildrop`"), "{unknown}");
}

/// h1 and h2, a router of MTU 1500 between them whose errors nobody hears of.
fn routed() -> NetworkSpec {
    let topology = from_json(
        r#"{"kind": "custom", "switches": ["near", "far"], "routers": [{"name": "r1", "mtu": 1500, "icmp": "filtered"}],
            "links": [["h1", "near"], ["near", "r1"], ["r1", "far"], ["far", "h2"]]}"#,
    );
    NetworkSpec { topology, ..spec() }
}

#[test]
fn a_routers_ports_have_its_mtu_a_queue_and_its_filter() {
    // A pattern that fits the router's name fits all of its ends.
    let links = vec![from_json(r#"{"from": "r1", "to": "*", "buffer_bytes": 9999, "mtu": 4000}"#)];
    let network = NetworkSpec { links, ..routed() }.network(&names(2)).unwrap();
    let of = |name: &str| port(&network.config, name);
    for name in ["r1.1>near", "r1.2>far"] {
        let port = of(name);
        assert_eq!(port.queue, QueueConfig::Taildrop { limit: Limit::Bytes(9999) });
        // The router keeps to its own; 4000 is what the switch lets in.
        assert_eq!(port.output_mtu.map(|mtu| mtu.bytes()), Some(1500));
        assert_eq!(port.input_mtu.map(|mtu| mtu.bytes()), Some(4000));
        assert!(port.impairments.filters_icmp_errors);
    }
    assert_eq!(of("near>r1.1").input_mtu, None);
    assert!(
        !of("near>r1.1").impairments.filters_icmp_errors && !of("h1>near").impairments.filters_icmp_errors
    );
    // 240 µs there and back over four links each way.
    assert_eq!(of("h1>near").delay, Picoseconds::from_nanoseconds(30_000));
    assert_eq!(network.hosts(), names(2));
}

#[test]
fn a_change_says_a_host_and_means_all_of_its_nics() {
    let two = NetworkSpec { topology: from_json(r#"{"kind": "rack", "nics": 2}"#), ..spec() };
    let network = two.network(&names(2)).unwrap();
    let link = from_json(r#"{"from": "h2", "to": "*", "bits_per_second": 5000000}"#);
    let change = two.changed(&names(2), &network, &link, None).unwrap();
    let changed: Vec<String> = change.ports.iter().map(|(port, _)| network.config.port_name(*port)).collect();
    assert_eq!(changed, ["h2.1>switch", "h2.2>switch"]);
    let shapers = [("h2".to_owned(), 0, 4_995_000), ("h2".to_owned(), 1, 4_995_000)];
    assert_eq!(change.shapers(0.999), shapers);
}

#[test]
fn another_mtu_of_a_router_is_that_of_the_ports_it_sends_by() {
    let (asked, hosts) = (routed(), names(2));
    let network = asked.network(&hosts).unwrap();
    let change = asked.with_router_mtu(&hosts, &network, "r1", 9000).unwrap().unwrap();
    let mut changed = change.ports.iter().map(|(port, change)| {
        assert_eq!(change.output_mtu.map(|mtu| mtu.bytes()), Some(9000));
        assert_eq!(PortChange { output_mtu: None, ..*change }, PortChange::default());
        network.config.port_name(*port)
    });
    assert_eq!((changed.next(), changed.next()), (Some("r1.1>near".into()), Some("r1.2>far".into())));
    assert_eq!(changed.next(), None);
    // What holds from then on is where the next change begins.
    let again = change.spec.with_router_mtu(&hosts, &change.network, "r1", 9000).unwrap().unwrap();
    assert!(again.ports.is_empty());
    assert!(asked.with_router_mtu(&hosts, &network, "h1", 9000).is_none());
    assert!(asked.with_router_mtu(&hosts, &network, "r1", 0).unwrap().is_err());
}

#[test]
fn a_script_goes_to_every_link_that_it_is_for() {
    let links = vec![from_json(
        r#"{"from": "h*", "to": "switch", "script": [{"frames": [3, 4], "at_least_bytes": 100, "act": "lose"},
            {"frames": [5], "act": {"hold_seconds": 0.005}}, {"frames": [6], "act": "mark"}]}"#,
    )];
    let config = NetworkSpec { links, ..spec() }.network(&names(2)).unwrap().config;
    let acts: Vec<_> = config.scripts[1].rules.iter().map(|rule| rule.act).collect();
    assert_eq!(acts, [Act::Lose, Act::Hold(Picoseconds::from_nanoseconds(5_000_000)), Act::Mark]);
    assert_eq!((config.scripts.len(), config.scripts[0].rules[0].at_least_bytes), (2, 100));
    let wrong =
        vec![from_json(r#"{"from": "h1", "to": "switch", "script": [{"frames": [0], "act": "lose"}]}"#)];
    let said = NetworkSpec { links: wrong, ..spec() }.network(&names(2)).unwrap_err();
    assert_eq!(said, "port 0: script: found frame 0, expected numbers from 1");
}

#[test]
fn a_lossless_network_has_one_buffer_and_headroom_by_the_hosts_mtu() {
    let shared = |bytes: u64| from_json(&format!(r#"{{"bytes": {bytes}, "alpha": 2.0, "lossless": true}}"#));
    let made = |spec: NetworkSpec| spec.network(&names(3));
    let lossless = |host_mtu, bytes| NetworkSpec { shared_buffer: Some(shared(bytes)), host_mtu, ..spec() };
    let found = made(lossless(1500, 1 << 20)).unwrap();
    let limit = Limit::Bytes(1 << 20);
    assert_eq!(port(&found.config, "switch>h1").queue, QueueConfig::Taildrop { limit });
    assert_eq!(found.config.shared_buffer.unwrap().lossless.unwrap().frame_bytes, 1518);
    assert!(found.describe().shared_buffer.unwrap().lossless);
    let needed = |host_mtu| {
        let said = made(lossless(host_mtu, 20_000)).unwrap_err();
        let (_, number) = said.split_once("found 20000 bytes, expected ").unwrap();
        number.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    // Of each of three links four full frames are by their size: one is on the way back, one that is not headroom. The
    // larger one is less overhead on the wire.
    let (small, large) = (needed(1500), needed(9000));
    assert!((large - small).abs_diff(3 * 4 * 7500) < 1000, "{small} {large}");
    // A background's frames count, too.
    let background = vec![from_json(
        r#"{"from": "h1", "to": "h2", "share": 0.1, "frame_bytes": 9018, "process": "constant"}"#,
    )];
    let found = made(NetworkSpec { background, ..lossless(1500, 1 << 20) }).unwrap();
    assert_eq!(found.config.shared_buffer.unwrap().lossless.unwrap().frame_bytes, 9018);
    let links = vec![from_json(r#"{"from": "switch", "to": "h1", "buffer_bytes": 65536}"#)];
    let expected =
        "port switch>h1: found a buffer of 65536 bytes, expected none beside a lossless shared buffer";
    assert_eq!(made(NetworkSpec { links, ..lossless(1500, 1 << 20) }).unwrap_err(), expected);
    let queue = from_json(r#"{"kind": "codel"}"#);
    let said = made(NetworkSpec { queue, ..lossless(1500, 1 << 20) }).unwrap_err();
    assert!(said.contains("expected taildrop, step or priority"), "{said}");
}
