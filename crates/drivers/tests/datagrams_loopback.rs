//! Datagrams over loopback: what was sent is what came, and strangers' are counted apart.
#![allow(clippy::disallowed_methods, reason = "these tests use real sockets")]

use framegauge_drivers::generators::datagrams::receiver::{Awaited, DatagramsReceived, Receiving};
use framegauge_drivers::generators::datagrams::sender::{DatagramsOrder, DatagramsSent, run};
use framegauge_drivers::{PortRange, Result};
use framegauge_traffic::{DatagramsSpec, Periods};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const TOKEN: [u8; 16] = [7; 16];
const MILLISECOND: u64 = 1_000_000;

fn order(address: IpAddr, port: u16, size_bytes: u32) -> DatagramsOrder {
    let spec = DatagramsSpec {
        flows: 3,
        rate_per_second: 500.0,
        periods: None,
        duration_nanoseconds: 40 * MILLISECOND,
    };
    DatagramsOrder { address: SocketAddr::new(address, port), token: TOKEN, spec, size_bytes }
}

fn go(order: &DatagramsOrder) -> Result<DatagramsSent> {
    run(order, &mut |_, _| true)
}

fn close(receiving: Receiving, expected: u64) -> DatagramsReceived {
    let silence_nanoseconds = 300 * MILLISECOND;
    receiving.finish(Awaited { expected, silence_nanoseconds }).expect("it ends")
}

/// No more than the buffer of a socket without privilege holds: a receiver that has to wait loses nothing.
#[test]
fn what_was_sent_comes_whole_whatever_its_size_and_family() {
    let here = IpAddr::V6(Ipv6Addr::LOCALHOST);
    for (address, size_bytes, rate, count) in
        [(HERE, 20, 500.0, 60), (HERE, 1000, 500.0, 60), (HERE, 60_000, 25.0, 3), (here, 200, 500.0, 60)]
    {
        let receiving = Receiving::start(address, PortRange::ANY, TOKEN).expect("a port");
        let mut order = order(address, receiving.port(), size_bytes);
        order.spec.rate_per_second = rate;
        let sent = go(&order).expect("it sends");
        assert_eq!((sent.sent, sent.dropped_by_host), (count, 0));
        assert!(sent.active_seconds >= 0.04);
        let received = close(receiving, sent.sent);
        assert_eq!((received.received, received.bytes, received.refused), (count, sent.bytes, 0));
        assert_eq!((sent.bytes, &received.clock), (count * u64::from(size_bytes), &sent.clock));
    }
}

#[test]
fn in_periods_only_these_have_datagrams() {
    let receiving = Receiving::start(HERE, PortRange::ANY, TOKEN).expect("a port");
    let mut order = order(HERE, receiving.port(), 100);
    order.spec.flows = 1;
    order.spec.periods =
        Some(Periods { spurt_nanoseconds: 10 * MILLISECOND, pause_nanoseconds: 15 * MILLISECOND });
    assert_eq!(go(&order).expect("it sends").sent, 10);
    assert_eq!(close(receiving, 10).received, 10);
}

#[test]
fn strangers_are_refused_and_what_is_missing_is_waited_for_no_longer_than_said() {
    let receiving = Receiving::start(HERE, PortRange::ANY, TOKEN).expect("a port");
    let stranger = UdpSocket::bind((HERE, 0)).expect("a socket");
    stranger.send_to(b"who is there?", (HERE, receiving.port())).expect("it goes");
    let mut foreign = order(HERE, receiving.port(), 100);
    foreign.token = [8; 16];
    assert_eq!(go(&foreign).expect("it sends").sent, 60);
    assert_eq!(go(&order(HERE, receiving.port(), 100)).expect("it sends").sent, 60);
    let received = close(receiving, 1000);
    assert_eq!((received.received, received.refused), (60, 61));
}

#[test]
fn a_run_that_is_told_to_stop_ends() {
    let receiving = Receiving::start(HERE, PortRange::ANY, TOKEN).expect("a port");
    let mut long = order(HERE, receiving.port(), 100);
    long.spec.duration_nanoseconds = 3_600_000 * MILLISECOND;
    long.spec.rate_per_second = 0.1;
    assert_eq!(run(&long, &mut |_, _| false).err().map(|error| error.code()), Some(125));
    close(receiving, 0);
}
