//! Synchronized reads over loopback: every server answers every round in full, and one that does not is named.
#![allow(clippy::disallowed_methods, reason = "these tests use real sockets")]

use framegauge_drivers::generators::incast::{IncastOrder, IncastOutcome, Server, run};
use framegauge_drivers::generators::rr::server::RrServing;
use framegauge_drivers::{PortRange, Result};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const TOKEN: [u8; 16] = [7; 16];

fn serving(count: usize, nodelay: bool) -> Vec<RrServing> {
    (0..count).map(|_| RrServing::start(HERE, PortRange::ANY, TOKEN, nodelay).expect("a port")).collect()
}

/// Rounds over these servers, whose answers are of so many bytes each.
fn order(ports: impl IntoIterator<Item = u16>, stripes: &[u32], rounds: u32) -> IncastOrder {
    let servers = ports.into_iter().zip(stripes);
    IncastOrder {
        servers: servers
            .map(|(port, stripe)| Server { address: SocketAddr::new(HERE, port), response_bytes: *stripe })
            .collect(),
        token: TOKEN,
        request_bytes: 100,
        rounds,
        silence_nanoseconds: 60_000_000_000,
        nodelay: true,
    }
}

fn go(order: &IncastOrder) -> Result<IncastOutcome> {
    run(order, &mut |_, _| true)
}

#[test]
fn every_server_answers_every_round_in_full() {
    for (stripes, request) in [(vec![1], 1), (vec![5000, 1, 3_000_000], 100), (vec![999; 40], 400_000)] {
        let serving = serving(stripes.len(), true);
        let mut order = order(serving.iter().map(RrServing::port), &stripes, 3);
        order.request_bytes = request;
        let outcome = go(&order).expect("the rounds run");
        // Conservation: what the client received is all stripes of all rounds, and what the servers answered.
        let all: u64 = stripes.iter().map(|stripe| u64::from(*stripe)).sum();
        assert_eq!(outcome.bytes, 3 * all);
        let requests = u64::from(request);
        for (serving, stripe) in serving.into_iter().zip(&stripes) {
            let served = serving.finish().expect("the server ends");
            assert_eq!((served.connections, served.refused, served.requests), (1, 0, 3));
            assert_eq!(served.bytes, 3 * (requests + u64::from(*stripe)));
            assert_eq!(served.congestion_control.into_iter().collect::<Vec<_>>(), outcome.congestion_control);
            // A mean segment of what it sent, which are the answers and the bytes that accept the connection.
            let mean = served.sent.mean_segment_payload_bytes().expect("it sent");
            assert!((1.0..=f64::from(*stripe).max(4.0)).contains(&mean), "{mean}");
        }
        assert!(outcome.active_seconds > 0.0 && outcome.handshake_seconds > 0.0);
    }
}

#[test]
fn nodelay_is_what_the_live_sockets_say() {
    for (client, server) in [(true, false), (false, true)] {
        let serving = serving(2, server);
        let mut order = order(serving.iter().map(RrServing::port), &[10, 10], 2);
        order.nodelay = client;
        assert_eq!(go(&order).expect("the rounds run").nodelay, [client]);
        for each in serving {
            assert_eq!(each.finish().expect("it ends").nodelay.into_iter().collect::<Vec<_>>(), [server]);
        }
    }
}

/// Accepts one connection and one request, answers with `bytes` of its 1000, and stays silent.
fn lazy(listener: TcpListener, bytes: usize) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a connection");
        socket.read_exact(&mut [0; 36]).expect("its first bytes");
        socket.write_all(b"FGRA").expect("it is accepted");
        socket.read_exact(&mut [0; 100]).expect("a request");
        socket.write_all(&vec![0; bytes]).expect("part of an answer");
        // Until the client gives up.
        let _ = socket.read_to_end(&mut Vec::new());
    })
}

#[test]
fn a_server_that_falls_silent_is_named_with_what_is_missing() {
    let listener = TcpListener::bind((HERE, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let lazy = lazy(listener, 300);
    let good = serving(1, true).remove(0);
    let mut order = order([good.port(), port], &[1000, 1000], 5);
    order.silence_nanoseconds = 300_000_000;
    let error = go(&order).err().expect("it does not end");
    let expected =
        format!("server 127.0.0.1:{port}: 300 of the 1000 bytes of round 1, and nothing for 0.3 s");
    assert_eq!((error.operation, error.source.raw_os_error()), (expected, Some(110)));
    lazy.join().expect("the client has closed");
    assert_eq!(good.finish().expect("it ends").requests, 1, "the barrier holds the next round");
}

#[test]
fn a_server_that_accepts_nothing_is_named_and_so_is_one_that_is_not_there() {
    // It listens, and nobody accepts: the handshake succeeds, and no word comes.
    let listener = TcpListener::bind((HERE, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut silent = order([port], &[1000], 1);
    silent.silence_nanoseconds = 200_000_000;
    let error = go(&silent).err().expect("nobody answers").to_string();
    assert!(error.contains(&format!("server 127.0.0.1:{port}: no connection after 0.2 s")), "{error}");
    drop(listener);
    let error = go(&order([port], &[1000], 1)).err().expect("nobody listens");
    assert_eq!(
        (error.operation, error.source.raw_os_error()),
        (format!("server 127.0.0.1:{port}: connect"), Some(111))
    );
    let serving = serving(1, true).remove(0);
    let mut stranger = order([serving.port()], &[1000], 1);
    stranger.token = [8; 16];
    let error = go(&stranger).err().expect("the token is refused").to_string();
    assert!(error.contains("refused"), "{error}");
    assert_eq!(serving.finish().expect("it ends").refused, 1);
}

#[test]
fn a_server_that_goes_away_is_an_error_and_so_is_a_wish_to_stop() {
    let listener = TcpListener::bind((HERE, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let gone = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a connection");
        socket.read_exact(&mut [0; 36]).expect("its first bytes");
        socket.write_all(b"FGRA").expect("it is accepted");
        socket.read_exact(&mut [0; 100]).expect("a request");
    });
    let error = go(&order([port], &[1000], 1)).err().expect("the answer is missing");
    assert_eq!(error.operation, format!("server 127.0.0.1:{port}: closed before it answered"));
    assert_eq!(error.code(), 104);
    gone.join().expect("no panic");
    let serving = serving(1, true).remove(0);
    let endless = order([serving.port()], &[1], 10_000_000);
    let error = run(&endless, &mut |_, _| false).err().expect("it was stopped");
    assert_eq!(error.code(), 125);
    serving.finish().expect("it ends");
}
