//! Ends of hosts with several NICs and of routers: whose they are, and how packets get from one to another.

use crate::common::{Log, aggregate, gigabit, nanoseconds};
use framegauge_fabric::{
    Aggregate, Ecn, Fabric, FabricConfig, Graph, HostIndex, Impairments, Leg, NicConfig, Owner, PortConfig,
    PortIndex, QueueConfig, Reason, Routing, TopologyError,
};
use framegauge_frames::{Mtu, Picoseconds};

/// A full frame at 1 Gb/s: 1538 bytes on the wire.
const T: u64 = 12_304;
const DELAY: u64 = 1_000;

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

fn custom(
    switches: &[&str],
    routers: &[&str],
    links: &[(&str, &str)],
    hosts: &[&str],
) -> Result<Graph, TopologyError> {
    let links: Vec<_> = links.iter().map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect();
    Graph::custom(&words(hosts), &words(routers), &words(switches), &links)
}

/// h1 and h2 on one switch each, a router between.
fn one_router() -> Graph {
    let links = [("h1", "near"), ("near", "r1"), ("r1", "far"), ("far", "h2")];
    custom(&["near", "far"], &["r1"], &links, &["h1", "h2"]).unwrap()
}

/// Every link 1 Gb/s and 1 µs; what is not a host's has a buffer of two full frames.
fn fabric_of(graph: &Graph, impairments: impl Fn(&str) -> Impairments) -> FabricConfig {
    let port = |from, to| PortConfig {
        from,
        to,
        rate: gigabit(),
        delay: nanoseconds(DELAY),
        queue: QueueConfig::taildrop(if graph.is_host(from) { u64::MAX } else { 2 * 1518 }),
        output_mtu: Some(Mtu::new(9216).unwrap()),
        input_mtu: None,
        impairments: impairments(graph.name(from)),
    };
    graph.fabric(Routing::default(), NicConfig::default(), port).unwrap()
}

fn plain(graph: &Graph) -> FabricConfig {
    fabric_of(graph, |_| Impairments::default())
}

#[test]
fn a_router_has_an_end_a_link_and_joins_two_subnets() {
    let graph = one_router();
    let (ends, config) = (graph.ends(), plain(&graph));
    let names: Vec<&str> = config.hosts.iter().map(|end| end.name.as_str()).collect();
    assert_eq!(names, ["h1", "h2", "r1.1", "r1.2"]);
    assert_eq!((0..4).map(|end| ends.owner(end)).collect::<Vec<_>>(), {
        [Owner::Host(0), Owner::Host(1), Owner::Router(0), Owner::Router(0)]
    });
    assert_eq!(ends.owner_name(3), "r1");
    // In order of first sight: h1's, h2's.
    assert_eq!((0..4).map(|end| ends.subnet(end)).collect::<Vec<_>>(), [0, 1, 0, 1]);
    assert_eq!(ends.leg_to_subnet(Owner::Host(0), 1), Some(Leg { from: 0, to: 2 }));
    let way = [Leg { from: 0, to: 2 }, Leg { from: 3, to: 1 }];
    assert_eq!(ends.legs(Owner::Host(0), 1).unwrap(), way);
    // Two links a leg, 1 µs each: 4 there, 4 back.
    let spans = ends.spans(&config).unwrap();
    assert_eq!((spans.links.least, spans.links.most), (4, 4));
    assert_eq!(spans.round_trip.most, nanoseconds(8 * DELAY));
}

#[test]
fn packets_take_the_fewest_routers() {
    // A ring of four subnets: from a to c there are two ways of two routers, by r1 and r2 or by r4 and r3; a to b by r1.
    let links = [
        ("h1", "a"),
        ("h2", "b"),
        ("h3", "c"),
        ("h4", "d"),
        ("a", "r1"),
        ("r1", "b"),
        ("b", "r2"),
        ("r2", "c"),
        ("c", "r3"),
        ("r3", "d"),
        ("d", "r4"),
        ("r4", "a"),
    ];
    let (switches, routers) = (["a", "b", "c", "d"], ["r1", "r2", "r3", "r4"]);
    let graph = custom(&switches, &routers, &links, &["h1", "h2", "h3", "h4"]).unwrap();
    let (ends, config) = (graph.ends(), plain(&graph));
    let by = |from: usize, to: usize| -> Vec<String> {
        let legs = ends.legs(Owner::Host(from), to).unwrap();
        legs.iter().map(|leg| ends.owner_name(leg.to).to_owned()).collect()
    };
    assert_eq!(by(0, 1), ["r1", "h2"]);
    assert_eq!(by(0, 3), ["r4", "h4"]);
    // Of two equal ways that of the router that comes first.
    assert_eq!(by(0, 2), ["r1", "r2", "h3"]);
    assert_eq!(by(2, 0), ["r2", "r1", "h1"]);
    // Neighbours: 4 links; opposite: 6.
    let spans = ends.spans(&config).unwrap();
    assert_eq!((spans.links.least, spans.links.most), (4, 6));
    assert_eq!(spans.round_trip.most, nanoseconds(12 * DELAY));
}

#[test]
fn second_nics_are_in_a_subnet_of_their_own() {
    let graph = Graph::rack(&words(&["h1", "h2", "h3"]), 2).unwrap();
    let (ends, config) = (graph.ends(), plain(&graph));
    assert_eq!((0..6).map(|end| ends.subnet(end)).collect::<Vec<_>>(), [0, 1, 0, 1, 0, 1]);
    assert_eq!(ends.ends_of(Owner::Host(1)), [2, 3]);
    assert_eq!(ends.legs(Owner::Host(0), 5).unwrap(), [Leg { from: 1, to: 5 }]);
    let spans = ends.spans(&config).unwrap();
    assert_eq!((spans.links.least, spans.links.most), (2, 2));
    assert_eq!(spans.round_trip.most, nanoseconds(4 * DELAY));
}

#[test]
fn a_host_may_be_on_two_networks_without_joining_them() {
    // h3 is on both; h1 and h2 meet nobody else but it.
    let links = [("h1", "a"), ("h3", "a"), ("h2", "b"), ("h3", "b")];
    let refused = custom(&["a", "b"], &[], &links, &["h1", "h2", "h3"]).unwrap_err();
    assert_eq!(refused.to_string(), "\"h2\" cannot be reached from \"h1\", expected a way");
    let both = [("h1", "a"), ("h2", "a"), ("h1", "b"), ("h2", "b")];
    let graph = custom(&["a", "b"], &[], &both, &["h1", "h2"]).unwrap();
    assert_eq!(graph.ends().legs(Owner::Host(0), 3).unwrap(), [Leg { from: 1, to: 3 }]);
    plain(&graph);
}

#[test]
fn what_is_no_network_of_routers_is_refused() {
    let message = |routers: &[&str], links: &[(&str, &str)]| {
        custom(&["a", "b"], routers, links, &["h1", "h2"]).unwrap_err().to_string()
    };
    let ends = [("h1", "a"), ("h2", "b")];
    let with = |more: &[(&'static str, &'static str)]| [&ends, more].concat();
    assert_eq!(message(&["r1"], &with(&[("a", "r1")])), "\"r1\" has 1 links, expected 2 to 8");
    assert_eq!(
        message(&["r1"], &with(&[("a", "r1"), ("r1", "a")])),
        "\"r1.2\" is in one subnet with \"r1.1\", expected another"
    );
    assert_eq!(
        message(&["r1"], &with(&[("a", "r1"), ("r1", "h2")])),
        "\"h2.2\" has a link to a host or a router, expected one to a switch"
    );
    assert_eq!(
        message(&["h1"], &with(&[("a", "r1"), ("r1", "b")])),
        "\"h1\" is the name of two nodes, expected different names"
    );
    assert_eq!(message(&[], &ends), "\"h2\" cannot be reached from \"h1\", expected a way");
}

fn finish(fabric: &mut Fabric, log: &mut Log) {
    while let Some(deadline) = fabric.next_deadline() {
        fabric.advance(deadline, log);
    }
}

#[test]
fn a_router_queues_what_it_sends_like_a_switch() {
    let graph = one_router();
    let mut fabric = Fabric::new(&plain(&graph)).unwrap();
    let mut log = Log::default();
    // Six full frames at once, from the router's second end to h2: one is sent, one waits, four find the buffer full.
    for id in 0..6 {
        fabric.transmit(Picoseconds::ZERO, HostIndex(3), aggregate(id, 1, 1514, 1));
    }
    finish(&mut fabric, &mut log);
    let delivered: Vec<_> = log.delivered.iter().map(|(due, _, id, _)| (*id, *due)).collect();
    // Two links, each a serialisation and 1 µs; the second frame is one serialisation behind.
    let first = nanoseconds(2 * (T + DELAY));
    assert_eq!(delivered, [(0, first), (1, first + nanoseconds(T))]);
    let drops = fabric.take_drops();
    assert!(
        drops.iter().all(|drop| drop.reason == Reason::Taildrop && fabric.port_name(drop.port) == "r1.2>far")
    );
    assert_eq!(drops.len(), 4);
    let port = fabric.counters().ports[usize::from(drops[0].port.0)];
    assert_eq!((port.received_frames, port.sent_frames, port.dropped_frames), (6, 2, 4));
}

/// Until it is told what was dropped, the NIC of a router takes in frames and drops others.
#[test]
fn runs_of_drops_at_a_routers_nic_end_with_a_frame_that_is_taken_in() {
    let mut fabric = Fabric::new(&plain(&one_router())).unwrap();
    let mut log = Log::default();
    let mut send = |now, id, frames| {
        fabric.transmit(nanoseconds(now), HostIndex(3), aggregate(id, frames, 1514, 1));
    };
    // One is sent, one waits, three find the buffer full.
    (0..5).for_each(|id| send(0, id, 1));
    // After one has left, the first of three has room.
    send(T, 5, 3);
    // Two have left: there is room for two of five.
    send(3 * T, 6, 5);
    send(3 * T, 7, 1);
    let lengths = |fabric: &mut Fabric| -> Vec<(u64, u32)> {
        fabric.take_drops().iter().map(|drop| (drop.flow, drop.run_length)).collect()
    };
    let expected = [(2, 1), (3, 2), (4, 3), (5, 1), (5, 2), (6, 1), (6, 2), (6, 3), (7, 4)];
    assert_eq!(lengths(&mut fabric), expected);
    finish(&mut fabric, &mut log);
    // Told are the same, once each, and the run has ended with those that were taken in, not with the telling.
    let told: Vec<(u64, u16)> = log.discarded.iter().map(|(id, frame)| (u64::from(*id), *frame)).collect();
    assert_eq!(told, [(2, 0), (3, 0), (4, 0), (5, 1), (5, 2), (6, 2), (6, 3), (6, 4), (7, 0)]);
    assert_eq!(lengths(&mut fabric), []);
}

/// What is marked is taken in, and ends no run of marks; the first that is not does.
#[test]
fn runs_of_marks_at_a_routers_nic_count_all_in_a_row() {
    let mut config = plain(&one_router());
    let port = usize::from(config.uplinks[3].0);
    config.ports[port].queue = QueueConfig::Step { limit_bytes: 1 << 20, threshold_bytes: 1518 };
    let mut fabric = Fabric::new(&config).unwrap();
    let capable = |id, frames| Aggregate { ecn: Ecn::CAPABLE, ..aggregate(id, frames, 1514, 1) };
    // The first leaves at once; from the second on there is more than the step.
    fabric.transmit(Picoseconds::ZERO, HostIndex(3), capable(0, 4));
    fabric.transmit(Picoseconds::ZERO, HostIndex(3), capable(1, 2));
    fabric.transmit(Picoseconds::ZERO, HostIndex(3), aggregate(2, 1, 1514, 1));
    fabric.transmit(Picoseconds::ZERO, HostIndex(3), capable(3, 1));
    finish(&mut fabric, &mut Log::default());
    let found: Vec<_> =
        fabric.take_drops().iter().map(|drop| (drop.flow, drop.marked, drop.run_length)).collect();
    let marks = |flow, runs: std::ops::RangeInclusive<u32>| runs.map(move |run| (flow, true, run));
    let expected: Vec<_> = marks(0, 1..=3).chain(marks(1, 4..=5)).chain(marks(3, 1..=1)).collect();
    assert_eq!(found, expected);
}

#[test]
fn filtered_icmp_errors_die_at_the_port_that_would_send_them() {
    let graph = one_router();
    let filter =
        |name: &str| Impairments { filters_icmp_errors: name.starts_with("r1"), ..Impairments::default() };
    let mut fabric = Fabric::new(&fabric_of(&graph, filter)).unwrap();
    let mut log = Log::default();
    let error = Aggregate { icmp_error: true, data: false, ..aggregate(0, 1, 590, 0) };
    fabric.transmit(Picoseconds::ZERO, HostIndex(2), error);
    fabric.transmit(Picoseconds::ZERO, HostIndex(2), aggregate(1, 1, 1514, 0));
    // A host's own errors pass: only the router's links filter.
    fabric.transmit(Picoseconds::ZERO, HostIndex(0), Aggregate { id: 2, destination: HostIndex(2), ..error });
    finish(&mut fabric, &mut log);
    let mut delivered: Vec<u32> = log.delivered.iter().map(|(_, _, id, _)| *id).collect();
    delivered.sort_unstable();
    assert_eq!(delivered, [1, 2]);
    let drops = fabric.take_drops();
    assert_eq!(drops.len(), 1);
    assert_eq!((fabric.port_name(drops[0].port), drops[0].reason), ("r1.1>near", Reason::Filtered));
    let port = fabric.counters().ports[usize::from(drops[0].port.0)];
    assert_eq!((port.received_frames, port.sent_frames), (2, 1));
    assert_eq!((port.dropped_frames, port.filtered_frames), (1, 1));
}

#[test]
#[should_panic(expected = "no way")]
fn nothing_is_sent_past_a_router() {
    let mut fabric = Fabric::new(&plain(&one_router())).unwrap();
    fabric.transmit(Picoseconds::ZERO, HostIndex(0), aggregate(0, 1, 1514, 1));
}

#[test]
fn ports_of_several_nics_are_told_apart() {
    let graph = Graph::rack(&words(&["h1", "h2"]), 2).unwrap();
    let config = plain(&graph);
    let names: Vec<String> =
        (0..config.ports.len()).map(|port| config.port_name(PortIndex(port as u16))).collect();
    assert_eq!(names[..4], ["h1.1>switch", "switch>h1.1", "h1.2>switch", "switch>h1.2"]);
}
