//! Marks against the kernel: two hosts with real TCP stacks, whose own counters say which packets had CE.
//!
//! Needs the right to make network namespaces and TAP devices.
#![allow(clippy::disallowed_methods, reason = "these tests use real sockets")]

mod common;

use framegauge_drivers::fabric::{Meters, RunningFabric};
use framegauge_drivers::{OsError, rack::addresses as rack};
use framegauge_fabric::{
    FabricConfig, HostConfig, LinkConfig, NicConfig, PortInterval, QueueConfig, SwitchConfig, star,
};
use framegauge_frames::{BitRate, Mtu, Picoseconds};
use framegauge_linux::namespace::Network;
use framegauge_metering::{Counters, parse_netstat, parse_snmp, parse_snmp6};
use std::fs::read_to_string;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};

const BYTES: usize = 4_000_000;
const BUFFER_BYTES: u64 = 16_000_000;

/// Both hosts on one switch whose ports mark above a step, and send half as fast as hosts do; no buffer is ever full.
fn network(threshold_bytes: u64) -> FabricConfig {
    let [uplink, downlink] = [1_000_000_000, 500_000_000].map(|rate| BitRate::new(rate).unwrap());
    let mut config = star(
        ["h1", "h2"].map(|name| HostConfig { name: name.to_owned() }).to_vec(),
        LinkConfig { uplink, downlink, delay: Picoseconds::from_nanoseconds(10_000) },
        SwitchConfig { buffer_bytes: BUFFER_BYTES, port_mtu: Mtu::new(9_216).unwrap() },
        NicConfig { moderation: Picoseconds::from_nanoseconds(50_000) },
    );
    for port in config.ports.iter_mut().filter(|port| port.output_mtu.is_some()) {
        port.queue = QueueConfig::Step { limit_bytes: BUFFER_BYTES, threshold_bytes };
    }
    config
}

/// The protocol counters of a host.
fn counters(host: &Network) -> Counters {
    let read = || {
        let text = |name: &str| read_to_string(format!("/proc/thread-self/net/{name}")).expect("readable");
        let mut all = parse_snmp(&text("snmp")).expect("snmp");
        all.extend(parse_netstat(&text("netstat")).expect("netstat"));
        all.extend(parse_snmp6(&text("snmp6")).expect("snmp6"));
        Ok(all)
    };
    host.run(read).expect("counters")
}

/// What became of a transfer.
struct Transfer {
    sender: Counters,
    receiver: Counters,
    port: PortInterval,
    /// Frames that LRO merged with one before them: the kernel counts what it is handed.
    merged_frames: u64,
}

/// Sends from the first host to the second; `None` where nobody may make hosts.
fn transfer(version: u8, tso: bool, lro: bool, threshold_bytes: u64) -> Option<Transfer> {
    let ((first, near), (second, far)) = common::pair(version, tso)?;
    let fabric =
        RunningFabric::start(&network(threshold_bytes), vec![near, far], lro, None).expect("a fabric");
    fabric.begin(Meters::default()).expect("it begins");
    let address: IpAddr = rack::address(1, version);
    let failed = |source| OsError { operation: "connect".into(), source };
    let listener = second.run(|| TcpListener::bind((address, 5201)).map_err(failed)).expect("a port");
    let mut sender = first.run(|| TcpStream::connect((address, 5201)).map_err(failed)).expect("connected");
    let receiving = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().expect("a connection");
        let mut bytes = Vec::new();
        connection.read_to_end(&mut bytes).expect("read to the end");
        (bytes, connection)
    });
    let sent: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
    sender.write_all(&sent).expect("written");
    drop(sender);
    // The connection stays open on the far side, so that nothing is under way when counters are read.
    let (received, _open) = receiving.join().expect("the receiver ends");
    assert!(received == sent, "the bytes are others");
    let measured = fabric.end().expect("it ends").measurement;
    let (name, port) = &measured.ports[3];
    assert_eq!((name.as_str(), port.dropped_frames), ("switch>h2", 0));
    let merged_frames = measured.hosts[1].written_frames - measured.hosts[1].written_packets;
    Some(Transfer { sender: counters(&first), receiver: counters(&second), port: *port, merged_frames })
}

/// Packets that the receiver's IP has counted: with CE, with ECT(0), and without either.
fn classes(found: &Transfer, version: u8) -> [u64; 3] {
    let prefix = if version == 4 { "IpExt" } else { "Ip6" };
    ["InCEPkts", "InECT0Pkts", "InNoECTPkts"].map(|name| found.receiver[&format!("{prefix}{name}")] as u64)
}

/// The kernel has counted each frame that the port has sent. Hosts with IPv6 also send ICMPv6 of their own (multicast
/// reports, neighbor discovery), which may come before the fabric's measurement begins or after it has ended.
fn check_total(found: &Transfer, counted: u64, what: &str) {
    let own = found.receiver["Icmp6InMsgs"] as u64;
    let sent = found.port.sent_frames;
    assert!(
        (sent..=sent + own).contains(&counted),
        "{what}: {sent} sent, {counted} counted, {own} of ICMPv6"
    );
}

/// Nothing is damaged, and the sender hears of marks.
fn check_ends(found: &Transfer, what: &str) {
    assert_eq!((found.receiver["IpInHdrErrors"], found.receiver["TcpInCsumErrors"]), (0, 0), "{what}");
    assert!(found.sender["TcpExtTCPDeliveredCE"] > 0, "{what}");
}

#[test]
fn the_kernel_sees_exactly_the_marks_of_the_queue() {
    for (version, tso) in [(4, false), (4, true), (6, true)] {
        let what = format!("IPv{version}, TSO {tso}");
        let Some(found) = transfer(version, tso, false, 30_000) else { return };
        let [marked, capable, others] = classes(&found, version);
        assert_eq!((marked, found.merged_frames), (found.port.marked_frames, 0), "{what}");
        check_total(&found, marked + capable + others, &what);
        assert!(marked > 0 && capable > 0, "{what}: {marked} with CE, {capable} with ECT(0)");
        check_ends(&found, &what);
    }
}

/// With a step of nothing all that is ECT is marked, so that what LRO merges is marked too.
#[test]
fn merged_frames_keep_their_mark() {
    for version in [4, 6] {
        let what = format!("IPv{version}");
        let Some(found) = transfer(version, true, true, 0) else { return };
        let [marked, capable, _] = classes(&found, version);
        assert_eq!((capable, marked + found.merged_frames), (0, found.port.marked_frames), "{what}");
        assert!(found.merged_frames > 0, "{what}");
        check_ends(&found, &what);
    }
}

/// Where only some are marked, merging ends at each change: nothing but whole frames of one kind is merged.
#[test]
fn merging_does_not_hide_marks() {
    let Some(found) = transfer(4, true, true, 30_000) else { return };
    let [marked, capable, others] = classes(&found, 4);
    check_total(&found, marked + capable + others + found.merged_frames, "LRO");
    assert!(marked > 0 && capable > 0, "{marked} with CE, {capable} with ECT(0)");
    check_ends(&found, "LRO");
}
