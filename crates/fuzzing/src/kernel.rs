//! Answers of the kernel.

use framegauge_linux::tcp::TcpInfo;
use framegauge_linux::{
    aggregates, initial_windows, links, neighbour_tables, netlink, nic_counters, qdisc, routes,
    rtnetlink as links_by_name, sock_diag, tunnel, udp_error,
    whole::{addresses, neighbours, relations, routes as whole_routes},
};
use std::collections::BTreeMap;

const KINDS: [&str; 11] = [
    "vxlan",
    "geneve",
    "gre",
    "gretap",
    "ip6gre",
    "ip6gretap",
    "ip6erspan",
    "ipip",
    "sit",
    "ip6tnl",
    "wireguard",
];

/// A datagram of netlink: no answer is longer than the datagram.
pub fn netlink(bytes: &[u8]) {
    let mut answers = Vec::new();
    let _ = netlink::collect(bytes, "read it", &mut answers);
    assert!(answers.iter().map(Vec::len).sum::<usize>() <= bytes.len());
}

/// What a NIC counted of frames, by size: no range ends before it begins, and none is there of bytes that are not.
pub fn nic_counters(bytes: &[u8]) {
    let counters = nic_counters::parse(bytes);
    let ranges = || counters.received.iter().chain(&counters.sent);
    assert!(ranges().all(|range| range.least_bytes <= range.most_bytes));
    // Each has three attributes in one of its own.
    assert!(32 * ranges().count() <= bytes.len());
}

/// A queue discipline.
pub fn qdisc(bytes: &[u8]) {
    let _ = qdisc::parse(bytes);
}

/// Interfaces, tunnels, addresses, routes, neighbours and remembered path MTUs.
pub fn rtnetlink(bytes: &[u8]) {
    let _ = (links::parse_interface(bytes), links::parse_address(bytes), routes::parse_exception(bytes));
    let _ = (links_by_name::parse_link(bytes), aggregates::parse(bytes), initial_windows::parse(bytes));
    let _ = (relations::parse(bytes), addresses::parse(bytes, 1), neighbours::parse(bytes, 1));
    let _ = neighbour_tables::parse(bytes);
    if let Some(route) = whole_routes::parse(bytes.to_vec(), 1) {
        assert!(route.is_same(&route.holding(route.held().expect("it is a route").1)));
        assert!(!route.words(&BTreeMap::new()).is_empty());
    }
    for kind in KINDS {
        if let Some(encapsulation) = tunnel::parse(kind, bytes).and_then(|tunnel| tunnel.encapsulation) {
            assert!(encapsulation.overhead_bytes() >= 20);
        }
    }
}

/// The listing of sockets, attributes included: none is connected and listens.
pub fn inet_diag(bytes: &[u8]) {
    let (connected, listening) = (sock_diag::parse(bytes), sock_diag::parse_listening(bytes));
    assert!(connected.is_none() || listening.is_none());
    let _ = sock_diag::parse_destroyed(bytes);
}

/// The state of a TCP connection, of which an older kernel says less.
pub fn tcp_info(bytes: &[u8]) {
    let _ = TcpInfo::parse(bytes);
}

/// An entry of a UDP socket's error queue, in which a stranger's ICMP message is told.
pub fn udp_error(bytes: &[u8]) {
    if let Some(report) = udp_error::parse_report(bytes) {
        assert!(bytes.len() >= 12 && report.quoted.is_empty());
    }
}
