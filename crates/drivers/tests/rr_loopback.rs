//! Request and response over loopback: every request is answered, in one thread or several, and strangers get nothing.
#![allow(clippy::disallowed_methods, reason = "these tests use real sockets")]

use framegauge_drivers::generators::rr::client::{RrOrder, RrOutcome, run};
use framegauge_drivers::generators::rr::server::RrServing;
use framegauge_drivers::{PortRange, Result};
use framegauge_traffic::{Arrivals, Load, RrSpec};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const TOKEN: [u8; 16] = [7; 16];

fn order(port: u16, connections: u32, load: Load, milliseconds: u64) -> RrOrder {
    RrOrder {
        address: SocketAddr::new(HERE, port),
        token: TOKEN,
        spec: RrSpec { connections, load, duration_nanoseconds: milliseconds * 1_000_000 },
        request_bytes: 64,
        response_bytes: 64,
        header_bytes: 0,
        nodelay: true,
    }
}

fn go(order: &RrOrder) -> Result<RrOutcome> {
    run(order, &mut |_, _| true)
}

#[test]
fn every_request_is_answered_in_every_shape() {
    // One connection waits in its calls, a few have a thread each at the server, the rest share one.
    for connections in [1, 4, 40] {
        for (request, response, header) in
            [(1, 1, 0), (64, 3000, 200), (300_000, 1, 0), (1, 8_000_000 / connections, 100)]
        {
            let serving = RrServing::start(HERE, PortRange::ANY, TOKEN, true).expect("a port");
            let mut order = order(serving.port(), connections, Load::Closed, 20);
            (order.request_bytes, order.response_bytes, order.header_bytes) = (request, response, header);
            let outcome = go(&order).expect("the requests run");
            let served = serving.finish().expect("the server ends");
            assert!(outcome.requests >= u64::from(connections), "{}", outcome.requests);
            assert_eq!((outcome.unfinished_requests, outcome.late_requests), (0, 0));
            assert_eq!(outcome.bytes, outcome.requests * u64::from(request + response));
            assert_eq!((served.requests, served.bytes), (outcome.requests, outcome.bytes));
            assert_eq!((served.connections, served.refused), (u64::from(connections), 0));
            assert!(outcome.active_seconds >= 0.02);
        }
    }
}

#[test]
fn an_open_loop_makes_the_requests_of_its_schedule() {
    for connections in [1, 8] {
        let serving = RrServing::start(HERE, PortRange::ANY, TOKEN, true).expect("a port");
        let uniform = Load::Open { rate_per_second: 1000.0, arrivals: Arrivals::Uniform };
        let outcome = go(&order(serving.port(), connections, uniform, 50)).expect("the requests run");
        assert_eq!((outcome.requests, outcome.unfinished_requests), (50, 0));
        let poisson = Load::Open { rate_per_second: 1000.0, arrivals: Arrivals::Poisson { seed: 3 } };
        let first = go(&order(serving.port(), connections, poisson, 50)).expect("the requests run");
        let second = go(&order(serving.port(), connections, poisson, 50)).expect("the requests run");
        assert_eq!(first.requests, second.requests);
        assert_eq!(serving.finish().expect("the server ends").requests, 50 + 2 * first.requests);
    }
}

#[test]
fn nodelay_is_what_the_live_sockets_say() {
    for (client, server) in [(true, false), (false, true)] {
        for connections in [1, 8] {
            let serving = RrServing::start(HERE, PortRange::ANY, TOKEN, server).expect("a port");
            let mut order = order(serving.port(), connections, Load::Closed, 5);
            order.nodelay = client;
            let outcome = go(&order).expect("the requests run");
            let served = serving.finish().expect("the server ends");
            assert_eq!(outcome.nodelay, [client]);
            assert_eq!(served.nodelay.into_iter().collect::<Vec<_>>(), [server]);
            assert_eq!(outcome.congestion_control.len(), 1);
            assert_eq!(served.congestion_control.into_iter().collect::<Vec<_>>(), outcome.congestion_control);
        }
    }
}

#[test]
fn a_stranger_gets_nothing_and_another_token_is_an_error() {
    let serving = RrServing::start(HERE, PortRange::ANY, TOKEN, true).expect("a port");
    let mut stranger = TcpStream::connect(SocketAddr::new(HERE, serving.port())).expect("it listens");
    stranger.write_all(&[0x46; 36]).expect("it reads");
    let mut answer = Vec::new();
    let _ = stranger.read_to_end(&mut answer);
    assert!(answer.is_empty());
    let mut wrong = order(serving.port(), 1, Load::Closed, 5);
    wrong.token = [8; 16];
    let error = go(&wrong).err().expect("the token is refused");
    assert!(error.operation.contains("refused"), "{error}");
    let served = serving.finish().expect("the server ends");
    assert_eq!((served.connections, served.refused, served.requests), (0, 2, 0));
}

#[test]
fn a_server_that_goes_away_is_an_error_and_so_is_a_wish_to_stop() {
    for connections in [1, 8] {
        let serving = RrServing::start(HERE, PortRange::ANY, TOKEN, true).expect("a port");
        let endless = order(serving.port(), connections, Load::Closed, 3_600_000);
        let client = std::thread::spawn(move || go(&endless).err().expect("it cannot end otherwise").code());
        let probe = order(serving.port(), connections, Load::Closed, 1);
        assert!(go(&probe).expect("the requests run").requests > 0);
        serving.finish().expect("the server ends");
        assert!(matches!(client.join().expect("no panic"), 104 | 111 | 32));
        let serving = RrServing::start(HERE, PortRange::ANY, TOKEN, true).expect("a port");
        let endless = order(serving.port(), connections, Load::Closed, 3_600_000);
        assert_eq!(run(&endless, &mut |_, _| false).err().expect("it was stopped").code(), 125);
        serving.finish().expect("the server ends");
    }
}
