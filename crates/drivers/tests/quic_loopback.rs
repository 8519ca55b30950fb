//! QUIC over loopback: what was written arrives, by datagrams of the size that the discovery settles at, and no stranger
//! is served.
#![allow(clippy::disallowed_methods, reason = "these tests use real sockets")]

use framegauge_drivers::generators::quic::client::{QuicOrder, QuicOutcome, run};
use framegauge_drivers::generators::quic::server::{QuicServed, QuicServing};
use framegauge_drivers::generators::quic::{Congestion, Key, QuicSettings, QuicSummary};
use framegauge_drivers::{PortRange, Result};
use framegauge_traffic::{Amount, StreamSpec};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const HERE_6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);
const TOKEN: [u8; 16] = [7; 16];
const PLAIN: QuicSettings = QuicSettings {
    plpmtud: true,
    congestion: Congestion::Cubic,
    segmentation: Some(false),
    aggregation: Some(false),
};

fn order(serving: &QuicServing, address: IpAddr, settings: QuicSettings, amount: Amount) -> QuicOrder {
    QuicOrder {
        address: SocketAddr::new(address, serving.port()),
        token: TOKEN,
        key: serving.key().clone(),
        spec: StreamSpec { flows: 2, amount, repeat_nanoseconds: 0, reverse: false },
        settings,
    }
}

fn go(order: &QuicOrder) -> Result<QuicOutcome> {
    run(order, &mut |_, _| true)
}

fn both(address: IpAddr, settings: QuicSettings, amount: Amount) -> (QuicOutcome, QuicServed) {
    let serving = QuicServing::start(address, PortRange::ANY, TOKEN, settings).expect("a port");
    let ran = go(&order(&serving, address, settings, amount)).expect("it runs");
    (ran, serving.finish().expect("it ends"))
}

fn datagrams(summary: &QuicSummary) -> u64 {
    summary.sizes.values().sum()
}

#[test]
fn what_was_written_arrives_by_datagrams_that_discovery_enlarges() {
    // Loopback has an MTU of 65536. A probe takes a round trip, so that how far it gets is the machine's business.
    for address in [HERE, HERE_6] {
        let (ran, served) = both(address, PLAIN, Amount::Bytes(2_000_000));
        assert_eq!((ran.bytes, ran.written, served.bytes), (4_000_000, 4_000_000, 4_000_000));
        assert_eq!((served.connections, served.refused, ran.rounds), (2, 0, 1));
        assert_eq!(ran.summary.settled_bytes.len(), 2);
        let largest = ran.summary.sizes.last_key_value().map_or(0, |(size, _)| *size);
        for settled in &ran.summary.settled_bytes {
            assert!(1200 < *settled && *settled <= largest && largest <= 65_507, "{:?}", ran.summary);
        }
        // One call, one datagram; no end takes in more than was sent.
        assert_eq!(ran.summary.calls, datagrams(&ran.summary));
        assert!(served.summary.received <= datagrams(&ran.summary));
        assert!(ran.summary.probes > 0);
    }
}

#[test]
fn without_discovery_no_datagram_is_above_the_base() {
    let settings = QuicSettings { plpmtud: false, congestion: Congestion::NewReno, ..PLAIN };
    let (ran, served) = both(HERE, settings, Amount::Bytes(1_000_000));
    assert_eq!(served.bytes, 2_000_000);
    assert_eq!(ran.summary.settled_bytes, [1200, 1200]);
    assert_eq!(ran.summary.probes, 0);
    assert_eq!(ran.summary.sizes.last_key_value().map(|(size, _)| *size), Some(1200));
}

#[test]
fn aggregates_save_calls_and_lose_nothing() {
    let settings = QuicSettings { plpmtud: false, segmentation: None, aggregation: None, ..PLAIN };
    let (ran, served) = both(HERE, settings, Amount::Bytes(4_000_000));
    assert_eq!((ran.bytes, served.bytes), (8_000_000, 8_000_000));
    assert!(ran.summary.calls < datagrams(&ran.summary), "{:?}", ran.summary);
    assert!(served.summary.received_aggregates > 0);
}

#[test]
fn a_duration_ends_and_all_that_was_written_is_confirmed() {
    let (ran, served) = both(HERE, PLAIN, Amount::Nanoseconds(50_000_000));
    // How much it is, and whether any, the machine decides.
    assert_eq!((ran.bytes, ran.written), (served.bytes, served.bytes));
    assert!(ran.active_seconds >= 0.05);
}

#[test]
fn strangers_are_refused_on_either_side() {
    let serving = QuicServing::start(HERE, PortRange::ANY, TOKEN, PLAIN).expect("a port");
    let mut foreign = order(&serving, HERE, PLAIN, Amount::Bytes(1000));
    foreign.spec.flows = 1;
    foreign.token = [8; 16];
    let refused = go(&foreign).err().expect("it does not know the token").to_string();
    assert!(refused.contains("QUIC connection to 127.0.0.1:"), "{refused}");
    let mut elsewhere = order(&serving, HERE, PLAIN, Amount::Bytes(1000));
    let other = QuicServing::start(HERE, PortRange::ANY, TOKEN, PLAIN).expect("a port");
    elsewhere.key = other.key().clone();
    assert!(go(&elsewhere).is_err());
    assert!(go(&QuicOrder { key: Key(Vec::new()), ..elsewhere }).is_err());
    let served = serving.finish().expect("it ends");
    assert_eq!((served.bytes, served.connections, served.refused), (0, 0, 1));
    other.finish().expect("it ends");
}

#[test]
fn a_run_that_is_told_to_stop_ends() {
    let serving = QuicServing::start(HERE, PortRange::ANY, TOKEN, PLAIN).expect("a port");
    let long = order(&serving, HERE, PLAIN, Amount::Nanoseconds(3_600_000_000_000));
    assert_eq!(run(&long, &mut |_, _| false).err().map(|error| error.code()), Some(125));
    serving.finish().expect("it ends");
}
