//! The generator's two ends over loopback: what was sent is what arrived, and strangers get nothing.
#![allow(clippy::disallowed_methods, reason = "these tests use real sockets")]

use framegauge_drivers::PortRange;
use framegauge_drivers::serving::Serving;
use framegauge_drivers::streaming::{StreamOrder, StreamOutcome, run};
use framegauge_drivers::traffic::{Amount, StreamSpec};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const TOKEN: [u8; 16] = [7; 16];

fn stream(port: u16, flows: u32, amount: Amount, repeat: u64, reverse: bool) -> StreamOutcome {
    let spec = StreamSpec { flows, amount, repeat_nanoseconds: repeat, reverse };
    let order = StreamOrder {
        address: SocketAddr::new(HERE, port),
        token: TOKEN,
        spec,
        sample_nanoseconds: 1_000_000,
        pacing_bytes_per_second: None,
    };
    run(&order, &mut |_, _| true).expect("the stream runs")
}

#[test]
fn every_byte_arrives_in_every_shape() {
    for reverse in [false, true] {
        for (flows, bytes) in [(1, 1), (1, 100_000), (8, 1_000_001)] {
            let serving = Serving::start(HERE, PortRange::ANY, TOKEN, 1_000_000).expect("a port");
            let outcome = stream(serving.port(), flows, Amount::Bytes(bytes), 0, reverse);
            let served = serving.finish().expect("the server ends");
            assert_eq!(outcome.bytes, u64::from(flows) * bytes);
            assert_eq!(served.bytes, outcome.bytes);
            assert_eq!((served.connections, served.refused), (u64::from(flows), 0));
            let sender = if reverse { served.sender } else { outcome.sender };
            assert_eq!(sender.congestion_control.len(), 1);
        }
    }
}

#[test]
fn rounds_are_new_connections() {
    let serving = Serving::start(HERE, PortRange::ANY, TOKEN, 0).expect("a port");
    let outcome = stream(serving.port(), 2, Amount::Bytes(10_000), 20_000_000, false);
    let served = serving.finish().expect("the server ends");
    assert!(outcome.rounds > 1);
    assert_eq!(served.connections, 2 * u64::from(outcome.rounds));
    assert_eq!(served.bytes, 20_000 * u64::from(outcome.rounds));
}

#[test]
fn a_duration_is_kept() {
    for reverse in [false, true] {
        let serving = Serving::start(HERE, PortRange::ANY, TOKEN, 0).expect("a port");
        let outcome = stream(serving.port(), 1, Amount::Nanoseconds(50_000_000), 0, reverse);
        assert_eq!(serving.finish().expect("the server ends").bytes, outcome.bytes);
        assert!(outcome.active_seconds >= 0.05);
    }
}

#[test]
fn a_stranger_gets_nothing() {
    let serving = Serving::start(HERE, PortRange::ANY, TOKEN, 0).expect("a port");
    let mut stranger = TcpStream::connect(SocketAddr::new(HERE, serving.port())).expect("it listens");
    stranger.write_all(&[0x46; 48]).expect("it reads");
    let mut answer = Vec::new();
    let _ = stranger.read_to_end(&mut answer);
    assert!(answer.is_empty());
    let served = serving.finish().expect("the server ends");
    assert_eq!((served.connections, served.refused, served.bytes), (0, 1, 0));
}
