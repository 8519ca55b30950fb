//! Shapes of networks, and the ways through them.

use std::collections::{BTreeMap, HashSet};

use crate::common::{Log, advance_by_events, aggregate, gigabit, nanoseconds};
use framegauge_fabric::{
    Aggregate, Choice, Fabric, FabricConfig, Graph, HostIndex, Impairments, NicConfig, Paths, PortChange,
    PortConfig, PortIndex, QueueConfig, Routing, Spans, TopologyError,
};
use framegauge_frames::{BitRate, Mtu, Picoseconds};
use proptest::prelude::*;

/// A full frame at 1 Gb/s: 1538 bytes on the wire.
const T: u64 = 12_304;
const DELAY: u64 = 1_000;

fn names(count: usize) -> Vec<String> {
    (1..=count).map(|host| format!("h{host}")).collect()
}

/// Every link 1 Gb/s and 1 µs, every switch port with a buffer of so many bytes.
fn network(graph: Result<Graph, TopologyError>, routing: Routing, buffer_bytes: u64) -> FabricConfig {
    let graph = graph.unwrap();
    let port = |from, to| PortConfig {
        from,
        to,
        rate: gigabit(),
        delay: nanoseconds(DELAY),
        queue: QueueConfig::taildrop(if graph.is_host(from) { u64::MAX } else { buffer_bytes }),
        output_mtu: Some(Mtu::new(9216).unwrap()),
        input_mtu: None,
        impairments: Impairments::default(),
    };
    graph.fabric(routing, NicConfig::default(), port).unwrap()
}

fn spans_of_four(config: &FabricConfig) -> Spans {
    Graph::fat_tree(&names(16), 4).unwrap().ends().spans(config).unwrap()
}

fn routing(paths: Paths, choice: Choice) -> Routing {
    Routing { paths, choice, seed: 1 }
}

fn equal_length(choice: Choice) -> Routing {
    routing(Paths::EqualLength, choice)
}

fn fat_tree(k: usize, routing: Routing) -> FabricConfig {
    network(Graph::fat_tree(&names(k * k * k / 4), k), routing, 1 << 30)
}

/// All ways from a host to another, as the names of their ports.
fn ways(config: &FabricConfig, source: usize, destination: usize) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![vec![config.uplinks[source]]];
    while let Some(way) = open.pop() {
        let last = way[way.len() - 1];
        if usize::from(config.ports[usize::from(last.0)].to.0) == destination {
            found.push(way.iter().map(|port| config.port_name(*port)).collect());
            continue;
        }
        for next in config.routes.outputs(last, destination) {
            open.push(way.iter().copied().chain([*next]).collect());
        }
    }
    found
}

#[test]
fn a_fat_tree_has_the_ways_of_its_paper() {
    // Al-Fares et al. 2008: k pods of k switches, (k/2)² cores, k³/4 hosts, and (k/2)² shortest ways between pods.
    for (k, hosts, switches, links) in [(2, 2, 5, 6), (4, 16, 20, 48), (6, 54, 45, 162), (8, 128, 80, 384)] {
        let config = fat_tree(k, Routing::default());
        assert_eq!(
            (config.hosts.len(), config.switches.len(), config.ports.len()),
            (hosts, switches, 2 * links)
        );
        let last = hosts - 1;
        assert_eq!(ways(&config, 0, last).len(), k * k / 4);
        assert_eq!(ways(&config, 0, last)[0].len(), 6);
    }
    let config = fat_tree(4, Routing::default());
    // To the host beside it there is one way by the edge switch, to the other edge of the pod there are k/2.
    assert_eq!(ways(&config, 0, 1), [["h1>edge1-1", "edge1-1>h2"]]);
    assert_eq!(ways(&config, 0, 2).len(), 2);
    let spans = spans_of_four(&config);
    assert_eq!((spans.links.least, spans.links.most), (2, 6));
    // There and back over two and over six links of 1 µs.
    assert_eq!(
        (spans.round_trip.least, spans.round_trip.most),
        (nanoseconds(4 * DELAY), nanoseconds(12 * DELAY))
    );
    assert_eq!(
        ways(&config, 0, 15).into_iter().find(|way| way[2].ends_with("core1")).unwrap(),
        [
            "h1>edge1-1",
            "edge1-1>aggregation1-1",
            "aggregation1-1>core1",
            "core1>aggregation4-1",
            "aggregation4-1>edge4-2",
            "edge4-2>h16"
        ]
    );
}

#[test]
fn equal_length_routing_takes_everything_through_a_core() {
    for choice in [Choice::Flow, Choice::Packet, Choice::Destination] {
        let config = fat_tree(4, equal_length(choice));
        for (source, destination) in pairs(16) {
            let ways = ways(&config, source, destination);
            assert_eq!(ways.len(), 4, "{source} to {destination}");
            assert!(ways.iter().all(|way| way.len() == 6 && way[2].contains(">core")));
        }
        let spans = spans_of_four(&config);
        assert_eq!((spans.links.least, spans.links.most), (6, 6));
    }
    let config = network(Graph::leaf_spine(&names(4), 2, 3), equal_length(Choice::Flow), 1 << 20);
    assert!(pairs(4).all(|(one, other)| ways(&config, one, other).iter().all(|way| way.len() == 4)));
}

fn pairs(hosts: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..hosts)
        .flat_map(move |one| (0..hosts).map(move |other| (one, other)))
        .filter(|(one, other)| one != other)
}

/// Every host sends a frame to every other, each alone on the network, with flows that all differ.
fn one_each(config: &FabricConfig, flows: u64) -> (Fabric, Log) {
    let mut fabric = Fabric::new(config).unwrap();
    let mut log = Log::default();
    let mut number = 0;
    for (source, destination) in pairs(config.hosts.len()) {
        for _ in 0..flows {
            let now = nanoseconds(u64::from(number) * 100 * T);
            fabric.advance(now, &mut log);
            let one = Aggregate { flow: u64::from(number), ..aggregate(number, 1, 1514, destination as u16) };
            fabric.transmit(now, HostIndex(source as u16), one);
            number += 1;
        }
    }
    finish(&mut fabric, &mut log);
    (fabric, log)
}

fn finish(fabric: &mut Fabric, log: &mut Log) {
    while let Some(deadline) = fabric.next_deadline() {
        fabric.advance(deadline, log);
    }
}

/// Frames sent by the ports whose name the test takes.
fn sent(fabric: &Fabric, takes: impl Fn(&str) -> bool) -> Vec<u64> {
    let counters = fabric.counters();
    let names = (0..fabric.ports()).map(|port| fabric.port_name(PortIndex(port as u16)));
    names.zip(&counters.ports).filter(|(name, _)| takes(name)).map(|(_, port)| port.sent_frames).collect()
}

fn into_core(name: &str) -> bool {
    name.contains(">core")
}

#[test]
fn frames_take_as_long_as_their_ways() {
    // Alone, a frame takes a serialisation and a delay for each link.
    let (_, log) = one_each(&fat_tree(4, equal_length(Choice::Destination)), 1);
    assert_eq!(log.delivered.len(), 240);
    for &(due, _, number, _) in &log.delivered {
        assert_eq!(due, nanoseconds(u64::from(number) * 100 * T + 6 * (T + DELAY)));
    }
    let (fabric, log) = one_each(&fat_tree(4, Routing::default()), 1);
    let links =
        |due: Picoseconds, number: u32| (due.as_nanoseconds() - u64::from(number) * 100 * T) / (T + DELAY);
    let mut lengths = BTreeMap::new();
    for &(due, _, number, _) in &log.delivered {
        *lengths.entry(links(due, number)).or_insert(0) += 1;
    }
    // Of the 15 others one is at the same edge, two are in the same pod, twelve are further away.
    assert_eq!(lengths, BTreeMap::from([(2, 16), (4, 32), (6, 192)]));
    assert_eq!(sent(&fabric, into_core).iter().sum::<u64>(), 192);
}

#[test]
fn the_smallest_frame_is_there_at_its_bound() {
    // Alone it takes 84 bytes' time, 672 ns, and a delay for each link, which is known when it has been handed over.
    for routing in [Routing::default(), equal_length(Choice::Destination), equal_length(Choice::Packet)] {
        let mut fabric = Fabric::new(&fat_tree(4, routing)).unwrap();
        let mut soonest = Picoseconds::MAX;
        for (number, (source, destination)) in pairs(16).enumerate() {
            let (now, mut log) = (nanoseconds(number as u64 * 100 * T), Log::default());
            fabric.advance(now, &mut log);
            fabric.transmit(now, HostIndex(source as u16), aggregate(0, 1, 42, destination as u16));
            let bound = fabric.next_delivery(Picoseconds::ZERO).unwrap();
            finish(&mut fabric, &mut log);
            assert_eq!(log.delivered, [(bound, HostIndex(destination as u16), 0, 0)]);
            soonest = soonest.min(bound - now);
        }
        assert_eq!(fabric.lookahead(), soonest);
    }
}

#[test]
fn choices_are_balanced() {
    // By destination: each of the 16 ports into the cores carries exactly a sixteenth of 240 frames.
    let (fabric, _) = one_each(&fat_tree(4, equal_length(Choice::Destination)), 1);
    assert_eq!(sent(&fabric, into_core), [15; 16]);
    // By hash or draw: 9,600 frames, 600 a port with a standard deviation of 24 at most.
    for choice in [Choice::Flow, Choice::Packet] {
        let (fabric, _) = one_each(&fat_tree(4, equal_length(choice)), 40);
        let counts = sent(&fabric, into_core);
        assert!(counts.iter().all(|count| count.abs_diff(600) < 100), "{choice:?} {counts:?}");
    }
}

/// The aggregates that a host gets of one flow that another sends, by way of two switches joined by three links.
fn arrivals(choice: Choice) -> (Vec<u16>, usize) {
    let link = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    let switches = ["s1", "s2", "a", "b", "c"].map(str::to_owned).to_vec();
    let mut links = vec![link("h1", "s1"), link("h2", "s2")];
    links.extend(["a", "b", "c"].iter().flat_map(|middle| [link("s1", middle), link(middle, "s2")]));
    let mut config =
        network(Graph::custom(&names(2), &[], &switches, &links), routing(Paths::Shortest, choice), 1 << 20);
    // One of the ways is longer.
    let slow = config.ports.iter().position(|port| port.from.0 == 4 && port.to.0 == 3).unwrap();
    config.ports[slow].delay = nanoseconds(100 * DELAY);
    let mut fabric = Fabric::new(&config).unwrap();
    let mut log = Log::default();
    fabric.transmit(Picoseconds::ZERO, HostIndex(0), aggregate(0, 60, 1514, 1));
    finish(&mut fabric, &mut log);
    let used = sent(&fabric, |name| name.starts_with("s1>") && name != "s1>h1");
    (
        log.delivered.iter().map(|delivered| delivered.3).collect(),
        used.iter().filter(|sent| **sent > 0).count(),
    )
}

#[test]
fn a_flow_keeps_to_one_way_and_packets_do_not() {
    let (by_flow, ways) = arrivals(Choice::Flow);
    assert_eq!((by_flow, ways), ((0..60).collect(), 1));
    let (by_packet, ways) = arrivals(Choice::Packet);
    assert_eq!((by_packet.iter().collect::<HashSet<_>>().len(), ways), (60, 3));
    assert!(!by_packet.is_sorted());
}

#[test]
fn a_whole_fat_tree_conserves() {
    // 15 hosts send 200 frames each to one; every port of a switch holds ten.
    for routing in [Routing::default(), equal_length(Choice::Destination), equal_length(Choice::Packet)] {
        let config = network(Graph::fat_tree(&names(16), 4), routing, 15_180);
        let mut fabric = Fabric::new(&config).unwrap();
        let mut log = Log::default();
        for source in 1..16 {
            fabric.transmit(Picoseconds::ZERO, HostIndex(source), aggregate(u32::from(source), 200, 1514, 0));
        }
        while let Some(deadline) = fabric.next_deadline() {
            fabric.advance(deadline, &mut log);
            for (port, shape) in fabric.counters().ports.iter().zip(&config.ports) {
                assert_eq!(port.received_bytes, port.sent_bytes + port.dropped_bytes + port.queued_bytes);
                let of_host = usize::from(shape.from.0) < 16;
                assert!(of_host || port.peak_queue_bytes <= 15_180);
            }
        }
        assert_eq!((log.delivered.len() + log.discarded.len()) as u64, 15 * 200);
        assert_eq!(fabric.take_drops().len(), log.discarded.len());
        // From the first arrival until the nearest sender ends there is always a frame for the last link.
        assert!(log.delivered.len() >= 200 && !log.discarded.is_empty());
    }
}

#[test]
fn smaller_shapes_are_what_they_say() {
    let dumbbell = network(Graph::dumbbell(&names(3), 1), Routing::default(), 1 << 20);
    assert_eq!(ways(&dumbbell, 0, 2), [["h1>left", "left>right", "right>h3"]]);
    assert_eq!(ways(&dumbbell, 1, 2), [["h2>right", "right>h3"]]);
    let two = network(Graph::rack(&names(2), 2), Routing::default(), 1 << 20);
    let ends: Vec<&str> = two.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(ends, ["h1.1", "h1.2", "h2.1", "h2.2"]);
    assert_eq!(ways(&two, 1, 2), [["h1.2>switch", "switch>h2.1"]]);
    let leaves = network(Graph::leaf_spine(&names(4), 2, 2), Routing::default(), 1 << 20);
    assert_eq!(ways(&leaves, 1, 2).len(), 2);
    assert_eq!(ways(&leaves, 0, 1), [["h1>leaf1", "leaf1>h2"]]);
    let link = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    let links = vec![link("h1", "s"), link("s", "t"), link("t", "s"), link("t", "h2")];
    let parallel = Graph::custom(&names(2), &[], &["s", "t"].map(str::to_owned), &links);
    let ways = ways(&network(parallel, Routing::default(), 1 << 20), 0, 1);
    let middle: HashSet<&str> = ways.iter().map(|way| way[1].as_str()).collect();
    assert_eq!(middle, HashSet::from(["s>t", "s>t#2"]));
}

#[test]
fn what_is_no_network_is_refused() {
    let custom = |links: &[(&str, &str)], hosts: usize| {
        let links: Vec<_> =
            links.iter().map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect();
        Graph::custom(&names(hosts), &[], &["s1", "s2"].map(str::to_owned), &links)
    };
    let cases = [
        (Graph::fat_tree(&names(16), 5), "k of a fat-tree: found 5, expected an even number from 2 to 64"),
        (Graph::fat_tree(&names(12), 4), "hosts of a fat-tree: found 12, expected 16 with k = 4"),
        (
            Graph::leaf_spine(&names(8), 3, 2),
            "hosts on a leaf-spine: found 8, expected a multiple of its 3 leaves",
        ),
        (Graph::leaf_spine(&names(8), 2, 0), "spines: found 0, expected 1 to 1000"),
        (Graph::dumbbell(&names(4), 4), "hosts on the left of a dumbbell: found 4, expected 1 to 3"),
        (Graph::rack(&names(2), 9), "NICs of a host: found 9, expected 1 to 8"),
        (Graph::rack(&names(0), 1), "hosts: found 0, expected at least one"),
        (custom(&[("h1", "s3")], 1), "\"s3\" is the end of a link, expected a host or one of s1, s2"),
        (
            custom(&[("h1", "s1"), ("s1", "s1"), ("s1", "s2")], 1),
            "\"s1\" has a link to itself, expected one to another node",
        ),
        (custom(&[("h1", "s1"); 9], 1), "\"h1\" has 9 links, expected 1 to 8"),
        (
            custom(&[("h1", "h2"), ("s1", "s2")], 2),
            "\"h1\" has a link to a host or a router, expected one to a switch",
        ),
        (custom(&[("h1", "s1")], 1), "\"s2\" cannot be reached from \"h1\", expected a way"),
    ];
    for (found, expected) in cases {
        assert_eq!(found.unwrap_err().to_string(), expected);
    }
    let twice = Graph::custom(&names(1), &[], &["h1".to_owned()], &[("h1".to_owned(), "h1".to_owned())]);
    let expected = "\"h1\" is the name of two nodes, expected different names";
    assert_eq!(twice.unwrap_err().to_string(), expected);
    let graph = Graph::rack(&names(2), 1).unwrap();
    let config = network(Graph::rack(&names(2), 1), Routing::default(), 1 << 20);
    let refused = graph.fabric(equal_length(Choice::Flow), NicConfig::default(), |_, _| config.ports[0]);
    assert_eq!(refused.unwrap_err(), TopologyError::Levels { found: "rack" });
}

proptest! {
    /// Whatever hosts send, and whatever happens to links meanwhile.
    #[test]
    fn no_delivery_on_a_fat_tree_comes_before_its_bound(
        sends in prop::collection::vec((0u64..40_000, 0u16..16, 1u16..6, 42u32..1515, 1u16..16), 1..60),
        changes in prop::collection::vec((0u64..400_000, 0u16..96, 0u64..5_000, 1u64..20), 0..6),
        moderation in 0u64..60_000,
        way in 0usize..4,
    ) {
        let all = [
            Routing::default(), routing(Paths::Shortest, Choice::Packet), equal_length(Choice::Flow), equal_length(Choice::Packet),
        ];
        let mut config = network(Graph::fat_tree(&names(16), 4), all[way], 15_180);
        config.nic = NicConfig { moderation: nanoseconds(moderation) };
        let (mut fabric, mut log, mut now) = (Fabric::new(&config).unwrap(), Log::default(), 0);
        let mut changes = changes;
        changes.sort_unstable();
        let mut changes = changes.into_iter().peekable();
        for (id, &(wait, source, frames, captured, further)) in sends.iter().enumerate() {
            now += wait;
            while let Some((time, port, delay, tenths)) = changes.next_if(|change| change.0 <= now) {
                advance_by_events(&mut fabric, &mut log, nanoseconds(time));
                let change = PortChange {
                    rate: BitRate::new(tenths * 100_000_000).ok(),
                    delay: Some(nanoseconds(delay)),
                    ..PortChange::default()
                };
                fabric.change(nanoseconds(time), PortIndex(port), change, &mut log).unwrap();
            }
            advance_by_events(&mut fabric, &mut log, nanoseconds(now));
            let destination = (source + further) % 16;
            fabric.transmit(nanoseconds(now), HostIndex(source), aggregate(id as u32, frames, captured, destination));
        }
        advance_by_events(&mut fabric, &mut log, Picoseconds::MAX);
        let sent: usize = sends.iter().map(|send| usize::from(send.2)).sum();
        prop_assert_eq!(log.delivered.len() + log.discarded.len(), sent);
    }
}
