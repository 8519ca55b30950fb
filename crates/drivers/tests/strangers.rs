//! Connections without a token, by the thousand: no server spends a thread on them, none keeps honest clients out for
//! long, and all are as before once the strangers have left.
#![allow(clippy::disallowed_methods, reason = "these tests use real sockets")]

use framegauge_drivers::PortRange;
use framegauge_drivers::check::path::Responder;
use framegauge_drivers::generators::rr::client::{RrOrder, run as request};
use framegauge_drivers::generators::rr::server::RrServing;
use framegauge_drivers::generators::stream::client::{Sizes, StreamOrder, run as stream};
use framegauge_drivers::generators::stream::server::Serving;
use framegauge_linux::limits::raise_open_files;
use framegauge_traffic::{Amount, Load, RrSpec, StreamSpec};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const TOKEN: [u8; 16] = [7; 16];
/// More than any server keeps, at a second descriptor each.
const STRANGERS: usize = 2500;
const FILES: u64 = 3 * STRANGERS as u64;
/// The tests count threads and descriptors of their process.
static ALONE: Mutex<()> = Mutex::new(());

fn at(port: u16) -> SocketAddr {
    SocketAddr::new(HERE, port)
}

fn count(folder: &str) -> usize {
    std::fs::read_dir(folder).expect("procfs").count()
}

fn threads() -> usize {
    count("/proc/self/task")
}

fn responder() -> Responder {
    Responder::start(&[HERE], 1, PortRange::ANY, TOKEN).expect("a port")
}

/// What a prober's connection does.
fn greet(port: u16) {
    let mut socket = TcpStream::connect(at(port)).expect("a connection");
    let mut bulk = vec![0; 64 * 1024];
    bulk[..16].copy_from_slice(&TOKEN);
    socket.write_all(&bulk).expect("bulk passes");
    let mut answer = [0; 4];
    socket.read_exact(&mut answer).expect("an answer");
    assert!(u32::from_be_bytes(answer) > 500);
}

fn ask(port: u16) {
    let order = RrOrder {
        address: at(port),
        token: TOKEN,
        spec: RrSpec { connections: 8, load: Load::Closed, duration_nanoseconds: 1_000_000 },
        request_bytes: 64,
        response_bytes: 64,
        header_bytes: 0,
        nodelay: true,
    };
    assert!(request(&order, &mut |_, _| true).expect("the requests run").requests > 0);
}

fn send(port: u16) {
    let spec = StreamSpec { flows: 2, amount: Amount::Bytes(1000), repeat_nanoseconds: 0, reverse: false };
    let order = StreamOrder {
        address: at(port),
        token: TOKEN,
        spec,
        sample_nanoseconds: 0,
        pacing_bytes_per_second: None,
        sizes: Sizes::default(),
    };
    assert_eq!(stream(&order, &mut |_, _| true).expect("the stream runs").bytes, 2000);
}

/// Silent strangers and such that show a part of a token, now and then; honest clients before, during and after.
fn besiege(port: u16, honest: impl Fn(u16)) {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let limit = raise_open_files(FILES).expect("a limit");
    assert!(limit >= FILES, "found a hard limit of {limit} open files, expected {FILES}: ulimit -Hn");
    honest(port);
    let (before, files) = (threads(), count("/proc/self/fd"));
    let mut strangers = Vec::new();
    for number in 0..STRANGERS {
        let mut stranger = TcpStream::connect(at(port)).expect("the kernel takes it");
        if number % 3 == 0 {
            let _ = stranger.write_all(&TOKEN[..number % 16]);
        }
        strangers.push(stranger);
        if number == STRANGERS / 2 {
            honest(port);
        }
    }
    honest(port);
    assert!(threads() <= before + 8, "{} threads, {before} before", threads());
    for stranger in &mut strangers {
        stranger.set_nonblocking(true).expect("a socket");
        let mut byte = [0];
        // Nothing, the end, or a reset: no byte.
        assert_ne!(stranger.read(&mut byte).unwrap_or(0), 1);
    }
    drop(strangers);
    honest(port);
    let patience = Instant::now() + Duration::from_secs(20);
    while count("/proc/self/fd") > files + 16 {
        assert!(Instant::now() < patience, "{} descriptors, {files} before", count("/proc/self/fd"));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_check_serves_on_among_strangers() {
    let responder = responder();
    besiege(responder.endpoints()[0].tcp_port, greet);
    let answered = responder.finish().expect("the responder ends");
    assert!(answered.refused >= STRANGERS as u64, "{answered:?}");
}

#[test]
fn requests_are_answered_among_strangers() {
    let serving = RrServing::start(HERE, PortRange::ANY, TOKEN, true).expect("a port");
    besiege(serving.port(), ask);
    let served = serving.finish().expect("the server ends");
    assert_eq!((served.connections, served.refused), (8 * 4, STRANGERS as u64));
}

#[test]
fn streams_are_served_among_strangers() {
    let serving = Serving::start(HERE, PortRange::ANY, TOKEN, 0, Sizes::default()).expect("a port");
    besiege(serving.port(), send);
    let served = serving.finish().expect("the server ends");
    assert_eq!((served.connections, served.refused), (2 * 4, STRANGERS as u64));
}

/// A wrong token in small pieces does not buy more time than silence.
#[test]
fn a_slow_stranger_has_one_deadline() {
    let responder = responder();
    let mut stranger = TcpStream::connect(at(responder.endpoints()[0].tcp_port)).expect("a connection");
    stranger.set_read_timeout(Some(Duration::from_millis(500))).expect("a socket");
    let begun = Instant::now();
    for byte in TOKEN {
        if stranger.write_all(&[byte]).is_err() || matches!(stranger.read(&mut [0]), Ok(0)) {
            break;
        }
    }
    // 16 bytes half a second apart would have been 8 s.
    assert!(responder.finish().expect("it ends").refused == 1, "it was let stay for {:?}", begun.elapsed());
}

/// CPU time of this process, in ticks of 10 ms.
fn ticks(stat: &File) -> u64 {
    let mut text = [0; 1024];
    let count = stat.read_at(&mut text, 0).expect("procfs");
    let text = String::from_utf8_lossy(&text[..count]);
    let fields = text.rsplit(')').next().expect("a line").split_whitespace();
    fields.skip(11).take(2).map(|field| field.parse::<u64>().expect("a number")).sum()
}

#[test]
fn without_descriptors_a_server_waits_and_goes_on_later() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    raise_open_files(FILES).expect("a limit");
    let responder = responder();
    let requests = RrServing::start(HERE, PortRange::ANY, TOKEN, true).expect("a port");
    let streams = Serving::start(HERE, PortRange::ANY, TOKEN, 0, Sizes::default()).expect("a port");
    let ports = [responder.endpoints()[0].tcp_port, requests.port(), streams.port()];
    let stat = File::open("/proc/self/stat").expect("procfs");
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    for port in ports {
        drop(files.pop());
        // Connected by the kernel; whether the server gets a descriptor for it is a race with nobody: there is none.
        let client = TcpStream::connect(at(port)).expect("the kernel takes it");
        let (before, begun) = (ticks(&stat), Instant::now());
        std::thread::sleep(Duration::from_millis(500));
        let (spent, elapsed) = (Duration::from_millis(10 * (ticks(&stat) - before)), begun.elapsed());
        assert!(spent < elapsed / 5, "{spent:?} of CPU time in {elapsed:?}");
        drop(client);
    }
    drop(files);
    greet(ports[0]);
    ask(ports[1]);
    send(ports[2]);
}
