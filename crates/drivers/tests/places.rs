//! The places of a rack's hosts and routers: addresses, routes, and the largest packet that each can send.

use framegauge_drivers::rack::nics;
use framegauge_fabric::{Ends, Owner};
use framegauge_networks::TopologySpec;
use std::net::IpAddr;

fn names(count: usize) -> Vec<String> {
    (1..=count).map(|host| format!("h{host}")).collect()
}

/// Of hosts on one switch.
fn rack(hosts: usize) -> Ends {
    TopologySpec::default().ends(&names(hosts)).unwrap()
}

/// h1 and h2 on a switch each, a router between these.
fn routed() -> Ends {
    let topology: TopologySpec = serde_json::from_str(
        r#"{"kind": "custom", "switches": ["near", "far"], "routers": [{"name": "r1", "mtu": 1500, "icmp": "filtered"}],
            "links": [["h1", "near"], ["near", "r1"], ["r1", "far"], ["far", "h2"]]}"#,
    )
    .unwrap();
    topology.ends(&names(2)).unwrap()
}

#[test]
fn addresses_follow_subnets_and_routes_lead_through_routers() {
    let ends = routed();
    let nics = |owner| nics::of(&ends, owner, 2, 4, |_| 1500);
    let text = |address: IpAddr| address.to_string();
    let [host] = &nics(Owner::Host(1))[..] else { panic!("one NIC") };
    // The second subnet's; h2 is the second, the router the third member.
    assert_eq!((text(host.address), host.interface.as_str()), ("10.77.1.2".to_owned(), "fg2"));
    let neighbours: Vec<String> = host.neighbours.iter().map(|(address, _)| text(*address)).collect();
    assert_eq!(neighbours, ["10.77.1.3"]);
    let routes: Vec<_> = host.routes.iter().map(|(there, gateway)| (text(*there), text(*gateway))).collect();
    assert_eq!(routes, [("10.77.0.1".to_owned(), "10.77.1.3".to_owned())]);
    let router = nics(Owner::Router(0));
    assert_eq!(router.iter().map(|nic| text(nic.address)).collect::<Vec<_>>(), ["10.77.0.3", "10.77.1.3"]);
    assert!(router.iter().all(|nic| nic.routes.is_empty() && nic.neighbours.len() == 1));
    let six = nics::of(&ends, Owner::Host(1), 2, 6, |_| 1500);
    assert_eq!(text(six[0].address), "fd77:0:0:1::2");
}

#[test]
fn the_largest_packet_is_what_the_way_lets_pass() {
    let ends = routed();
    let largest = |h1: u32, h2: u32, r1: u32| {
        nics::largest_packet(&ends, 0, |end| match ends.owner(end) {
            Owner::Host(0) => h1,
            Owner::Host(_) => h2,
            Owner::Router(_) => r1,
        })
    };
    assert_eq!((largest(9000, 9000, 1500), largest(9000, 4000, 9216)), (1500, 4000));
    assert_eq!((largest(1500, 9000, 9216), largest(9000, 9000, 9216)), (1500, 9000));
    // To one of the others it is larger than to the other.
    let ends = rack(3);
    let mtus = [9000, 1500, 8000];
    assert_eq!(nics::largest_packet(&ends, 0, |end| mtus[end]), 8000);
}

#[test]
fn each_nic_has_the_packets_of_its_own_subnet() {
    let two: TopologySpec = serde_json::from_str(r#"{"kind": "rack", "nics": 2}"#).unwrap();
    let ends = two.ends(&names(3)).unwrap();
    // The first NICs have 1500, the second ones 9000 but for that of h3.
    let mtus = [1500, 9000, 1500, 9000, 1500, 4000];
    let of = |host| nics::of(&ends, Owner::Host(host), 3, 4, |end| mtus[end]);
    let sizes = |host| of(host).iter().map(|nic| (nic.mtu, nic.packet_bytes.unwrap())).collect::<Vec<_>>();
    assert_eq!(sizes(0), [(1500, 1500), (9000, 9000)]);
    assert_eq!(sizes(2), [(1500, 1500), (4000, 4000)]);
    // Whoever is joined with nobody else sends no more than its own MTU.
    let alone = [1500, 9000, 1500, 700, 1500, 600];
    assert_eq!(nics::of(&ends, Owner::Host(0), 3, 4, |end| alone[end])[1].packet_bytes, Some(700));
}
