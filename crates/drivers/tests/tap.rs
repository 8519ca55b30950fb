//! Captures of headers on a real network: nothing is missing, lengths and directions are true, and it ends in time.
#![allow(clippy::disallowed_methods, reason = "these tests use sockets")]

use framegauge_drivers::tap::interfaces::interfaces;
use framegauge_drivers::tap::kernel::{KernelWatch, named};
use framegauge_drivers::tap::{Asked, Capturing, Done, Filter, socket};
use framegauge_linux::namespace::Network;
use framegauge_linux::rtnetlink::{LinkChange, change_link};
use framegauge_packets::capture::Reader;
use std::io::{Read, Seek, Write};
use std::net::{TcpListener, TcpStream};

/// A network of its own with a loopback of this MTU; `None` where nobody may make one.
fn network(mtu: u32) -> Option<Network> {
    let made = Network::fresh().and_then(|network| {
        network.run(|| {
            change_link("lo", LinkChange { up: Some(true), mtu: Some(mtu), ..LinkChange::default() })
        })?;
        Ok(network)
    });
    match made {
        Ok(network) => Some(network),
        Err(error) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{error}");
            eprintln!("not run: needs network namespaces: {error}");
            None
        }
    }
}

fn begin(snap_bytes: u32, most_bytes: u64) -> framegauge_linux::Result<Capturing> {
    let lo = interfaces()?.into_iter().find(|each| each.name == "lo").expect("a loopback");
    let filter = Filter { ethernet: true, ports: vec![], left_out: vec![], snap_bytes };
    let asked = Asked { host: "h1".into(), interfaces: vec![lo], filter, most_bytes };
    Capturing::begin(&asked, vec![socket()?])
}

/// Sends so many bytes over a connection of its own, and waits until they have arrived.
fn transfer(bytes: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback");
    let mut client = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
    let (mut server, _) = listener.accept().expect("a connection");
    let reading = std::thread::spawn(move || {
        let mut left = vec![0; 1 << 16];
        while server.read(&mut left).expect("a connection") > 0 {}
    });
    client.write_all(&vec![7; bytes]).expect("it reads");
    drop(client);
    reading.join().expect("it ends");
}

struct Seen {
    lengths: Vec<(usize, u32)>,
    stamps: Vec<i64>,
}

fn read(done: &mut Done) -> Seen {
    done.file.rewind().expect("a file");
    let mut reader = Reader::new(&mut done.file).expect("a capture");
    let mut seen = Seen { lengths: Vec::new(), stamps: Vec::new() };
    while let Some(record) = reader.next().expect("it is whole") {
        seen.lengths.push((record.captured.len(), record.original_bytes));
        seen.stamps.push(record.nanoseconds);
    }
    assert_eq!(reader.loss().packets(), Some(done.interfaces[0].dropped_packets));
    assert_eq!(reader.interfaces()[0].name.as_deref(), Some("lo"));
    seen
}

#[test]
fn every_byte_of_a_transfer_is_accounted_for() {
    let Some(network) = network(65_536) else { return };
    let payload: usize = 20 << 20;
    let mut done = network
        .run(|| {
            let capturing = begin(192, 256 << 20)?;
            transfer(payload);
            capturing.end(None)
        })
        .expect("a capture");
    let seen = read(&mut done);
    assert_eq!(done.kept.packets, seen.lengths.len() as u64);
    assert_eq!(done.interfaces[0].packets, done.state.packets + done.interfaces[0].dropped_packets);
    assert!(seen.lengths.iter().all(|(kept, whole)| *kept <= 192 && *kept as u32 <= *whole));
    let first = done.start_nanoseconds as i64;
    assert!(seen.stamps.iter().all(|stamp| (first..=done.end_nanoseconds as i64).contains(stamp)));
    if done.interfaces[0].dropped_packets == 0 {
        // On a loopback each packet is seen twice: as it leaves, and as it comes.
        let carried: u64 = seen.lengths.iter().map(|(_, whole)| u64::from(*whole)).sum();
        assert!(carried >= 2 * payload as u64, "{carried}");
        assert_eq!(done.state.wire_bytes, carried);
        assert!(seen.lengths.iter().any(|(_, whole)| *whole > 32_768), "aggregates have their true length");
    }
}

#[test]
fn an_aggregate_is_kept_whole_if_asked_for() {
    let Some(network) = network(65_536) else { return };
    let mut done = network
        .run(|| {
            let capturing = begin(262_144, 256 << 20)?;
            transfer(4 << 20);
            capturing.end(None)
        })
        .expect("a capture");
    let seen = read(&mut done);
    assert!(seen.lengths.iter().all(|(kept, whole)| *kept as u32 == *whole));
    assert!(seen.lengths.iter().any(|(kept, _)| *kept > 32_768));
}

#[test]
fn the_ring_keeps_the_newest_and_what_is_asked_for_of_those() {
    let Some(network) = network(65_536) else { return };
    let run = |last_seconds: Option<f64>, snap_bytes: u32, most_bytes: u64| {
        network.run(|| {
            let capturing = begin(snap_bytes, most_bytes)?;
            transfer(20 << 20);
            std::thread::sleep(std::time::Duration::from_millis(1500));
            transfer(100);
            capturing.end(last_seconds)
        })
    };
    let mut bounded = run(None, 262_144, 1 << 20).expect("a capture");
    let seen = read(&mut bounded);
    assert!(bounded.kept.given_up > 0 && bounded.kept.bytes <= 1 << 20, "{:?}", bounded.kept);
    assert_eq!(bounded.kept.packets + bounded.kept.given_up, bounded.state.packets);
    assert_eq!(bounded.kept.packets, seen.lengths.len() as u64);
    let mut last = run(Some(1.0), 192, 256 << 20).expect("a capture");
    let seen = read(&mut last);
    assert!(last.kept.cut > 0);
    assert_eq!(last.kept.packets + last.kept.cut, last.state.packets);
    assert!((1..100).contains(&seen.lengths.len()), "{}: the second transfer only", seen.lengths.len());
}

#[test]
fn the_kernel_is_watched_meanwhile() {
    let Some(network) = network(65_536) else { return };
    // The kernel tells of an end a moment later, on a busy machine perhaps after the watch.
    for _ in 0..50 {
        let watched = network
            .run(|| {
                let signs = vec![(named("syn_retransmits").expect("a sign"), 1)];
                let watch = KernelWatch::begin(signs)?;
                transfer(3 << 20);
                std::thread::sleep(std::time::Duration::from_millis(20));
                assert!(watch.trouble().is_none());
                watch.end()
            })
            .expect("a watch");
        let moved = |name: &str| watched.after[name] - watched.before[name];
        assert!(moved("TcpActiveOpens") == 1 && moved("TcpOutSegs") > 2);
        assert!(watched.connections.iter().all(|each| each.before.is_none()));
        let told = watched.connections.iter().find(|each| each.ended && each.after.bytes_sent == 3 << 20);
        // The kernel counts the time in ticks of some milliseconds: a fast transfer may fall between two.
        if told.is_some_and(|told| told.after.busy_seconds > 0.0) {
            return;
        }
    }
    panic!("no end was told, or none with the time for which it was busy");
}
