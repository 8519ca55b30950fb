//! The generator's two ends over loopback: what was sent is what arrived, and strangers get nothing.
#![allow(clippy::disallowed_methods, reason = "these tests use real sockets")]

use framegauge_drivers::PortRange;
use framegauge_drivers::generators::stream::client::{Sizes, StreamOrder, StreamOutcome, run};
use framegauge_drivers::generators::stream::server::Serving;
use framegauge_traffic::{Amount, StreamSpec};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::num::{NonZeroU32, NonZeroU64};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const TOKEN: [u8; 16] = [7; 16];

fn serve(sample_nanoseconds: u64) -> Serving {
    Serving::start(HERE, PortRange::ANY, TOKEN, sample_nanoseconds, Sizes::default()).expect("a port")
}

fn stream(port: u16, flows: u32, amount: Amount, repeat: u64, reverse: bool) -> StreamOutcome {
    let spec = StreamSpec { flows, amount, repeat_nanoseconds: repeat, reverse };
    sized(SocketAddr::new(HERE, port), spec, Sizes::default())
}

fn sized(address: SocketAddr, spec: StreamSpec, sizes: Sizes) -> StreamOutcome {
    let order = StreamOrder {
        address,
        token: TOKEN,
        spec,
        sample_nanoseconds: 1_000_000,
        pacing_bytes_per_second: None,
        sizes,
    };
    run(&order, &mut |_, _| true).expect("the stream runs")
}

#[test]
fn every_byte_arrives_in_every_shape() {
    for reverse in [false, true] {
        for (flows, bytes) in [(1, 1), (1, 100_000), (8, 1_000_001)] {
            let serving = serve(1_000_000);
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
    let serving = serve(0);
    // Far longer than a round, also where others hold the CPUs.
    let outcome = stream(serving.port(), 2, Amount::Bytes(10_000), 1_000_000_000, false);
    let served = serving.finish().expect("the server ends");
    assert!(outcome.rounds > 1);
    assert_eq!(served.connections, 2 * u64::from(outcome.rounds));
    assert_eq!(served.bytes, 20_000 * u64::from(outcome.rounds));
}

#[test]
fn a_duration_is_kept() {
    for reverse in [false, true] {
        let serving = serve(0);
        let outcome = stream(serving.port(), 1, Amount::Nanoseconds(50_000_000), 0, reverse);
        assert_eq!(serving.finish().expect("the server ends").bytes, outcome.bytes);
        assert!(outcome.active_seconds >= 0.05);
    }
}

#[test]
fn a_stranger_gets_nothing() {
    let serving = serve(0);
    let mut stranger = TcpStream::connect(SocketAddr::new(HERE, serving.port())).expect("it listens");
    stranger.write_all(&[0x46; 48]).expect("it reads");
    let mut answer = Vec::new();
    let _ = stranger.read_to_end(&mut answer);
    assert!(answer.is_empty());
    let served = serving.finish().expect("the server ends");
    assert_eq!((served.connections, served.refused, served.bytes), (0, 1, 0));
}

/// The sender's largest call is a whole message, the receiver's at most one: 100000 bytes in writes of 16384 are six whole
/// messages, which fit into the empty buffer of 2 * 131072, and one of 1696.
#[test]
fn sizes_are_those_of_the_sockets_and_of_the_calls() {
    let sizes = Sizes {
        socket_buffer_bytes: Some(131_072),
        message_bytes: NonZeroU32::new(16_384),
        ..Sizes::default()
    };
    for reverse in [false, true] {
        let serving = Serving::start(HERE, PortRange::ANY, TOKEN, 0, sizes).expect("a port");
        let spec = StreamSpec { flows: 2, amount: Amount::Bytes(100_000), repeat_nanoseconds: 0, reverse };
        let client = sized(SocketAddr::new(HERE, serving.port()), spec, sizes).sender;
        let served = serving.finish().expect("the server ends").sender;
        for end in [&client, &served] {
            let found = end.buffers.expect("sockets");
            assert_eq!((found.send_bytes, found.receive_bytes), (262_144, 262_144));
        }
        let (sender, receiver) = if reverse { (served, client) } else { (client, served) };
        assert_eq!(sender.largest_call_bytes, Some(16_384));
        assert!((1..=16_384).contains(&receiver.largest_call_bytes.expect("payload")));
    }
}

/// Nanoseconds that this thread has spent on a CPU, by the scheduler's count.
fn used() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
    text.split_whitespace().next().and_then(|first| first.parse().ok()).expect("nanoseconds")
}

/// A client that is woken up without a cause keeps its CPU from all others, in real time from everybody.
#[test]
fn a_client_that_waits_uses_no_cpu() {
    for reverse in [false, true] {
        // Little is under way when the time is over, and is soon there.
        let sizes = Sizes { socket_buffer_bytes: Some(57_344), ..Sizes::default() };
        let serving = Serving::start(HERE, PortRange::ANY, TOKEN, 100_000_000, sizes).expect("a port");
        let amount = Amount::Nanoseconds(400_000_000);
        let spec = StreamSpec { flows: 1, amount, repeat_nanoseconds: 0, reverse };
        let order = StreamOrder {
            address: SocketAddr::new(HERE, serving.port()),
            token: TOKEN,
            spec,
            sample_nanoseconds: 100_000_000,
            pacing_bytes_per_second: NonZeroU64::new(1_000_000),
            sizes,
        };
        let (before, began) = (used(), std::time::Instant::now());
        run(&order, &mut |_, _| true).expect("the stream runs");
        let (after, elapsed) = (used(), began.elapsed());
        assert!(
            after - before < elapsed.as_nanos() as u64 / 4,
            "{} of {elapsed:?}, reverse {reverse}",
            after - before
        );
        serving.finish().expect("the server ends");
    }
}

#[test]
fn each_end_has_its_own_sizes_and_without_any_calls_are_large() {
    let sizes = Sizes {
        socket_buffer_bytes: Some(57_344),
        message_bytes: NonZeroU32::new(1_000),
        ..Sizes::default()
    };
    let serving = Serving::start(HERE, PortRange::ANY, TOKEN, 0, sizes).expect("a port");
    let spec =
        StreamSpec { flows: 1, amount: Amount::Bytes(1_000_000), repeat_nanoseconds: 0, reverse: false };
    let client = sized(SocketAddr::new(HERE, serving.port()), spec, Sizes::default()).sender;
    let served = serving.finish().expect("the server ends").sender;
    assert_eq!(served.buffers.expect("sockets").receive_bytes, 114_688);
    assert!(served.largest_call_bytes.expect("payload") <= 1_000);
    assert!(client.largest_call_bytes.expect("payload") > 1_000);
}

#[test]
fn a_server_without_connections_has_no_buffers_and_one_on_all_addresses_is_found_at_each() {
    let nobody = serve(0).finish().expect("the server ends").sender;
    assert_eq!((nobody.buffers.is_none(), nobody.largest_call_bytes), (true, None));
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let serving = Serving::start(any, PortRange::ANY, TOKEN, 0, Sizes::default()).expect("a port");
    let spec = StreamSpec { flows: 1, amount: Amount::Bytes(1000), repeat_nanoseconds: 0, reverse: false };
    for last in [1, 2] {
        let here = IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
        assert_eq!(sized(SocketAddr::new(here, serving.port()), spec, Sizes::default()).bytes, 1000);
    }
    assert_eq!(serving.finish().expect("the server ends").connections, 2);
    let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let serving = Serving::start(any, PortRange::ANY, TOKEN, 0, Sizes::default()).expect("a port");
    let here = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), serving.port());
    assert_eq!(sized(here, spec, Sizes::default()).bytes, 1000);
}
