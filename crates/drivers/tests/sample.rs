//! Samples of headers on a real network: sizes are those on the wire, within bounds, and what an interval came to.
#![allow(clippy::disallowed_methods, reason = "these tests use sockets")]

use framegauge_drivers::readings::{Readings, interfaces};
use framegauge_drivers::sample::{Asked, Sampled, Sampling};
use framegauge_drivers::tap::socket;
use framegauge_linux::namespace::Network;
use framegauge_linux::rtnetlink::{LinkChange, change_link};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const MTU: u32 = 1500;
/// Of a sample.
const WINDOW: std::time::Duration = std::time::Duration::from_millis(100);
/// A busy host may need longer than a window for what takes a few milliseconds.
const ATTEMPTS: u32 = 50;
/// Of a full segment with timestamps.
const FULL: u32 = 1448;

/// A network of its own with a loopback of this MTU; `None` where nobody may make one.
fn network() -> Option<Network> {
    let made = Network::fresh().and_then(|network| {
        network.run(|| {
            change_link("lo", LinkChange { up: Some(true), mtu: Some(MTU), ..LinkChange::default() })
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

fn begin() -> framegauge_linux::Result<Sampling> {
    let lo = interfaces(&["lo".into()])?.remove(0);
    assert_eq!(lo.mtu, MTU);
    let asked = Asked { interfaces: vec![(lo.interface, MTU)], targets: vec![4200, 9000], left_out: None };
    Sampling::begin(&asked, vec![socket()?])
}

/// Writes so many times so many bytes over a connection of its own, each of which is answered by one byte.
fn exchange(times: usize, bytes: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback");
    let mut client = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
    let (mut server, _) = listener.accept().expect("a connection");
    let serving = std::thread::spawn(move || {
        let mut message = vec![0; bytes];
        while server.read_exact(&mut message).is_ok() {
            server.write_all(&[1]).expect("a connection");
        }
    });
    for _ in 0..times {
        client.write_all(&vec![7; bytes]).expect("it reads");
        client.read_exact(&mut [0]).expect("it answers");
    }
    drop(client);
    serving.join().expect("it ends");
}

fn sampled(work: impl FnOnce() + Send) -> Option<Sampled> {
    let network = network()?;
    let found = network.run(|| {
        let sampling = begin()?;
        work();
        sampling.end()
    });
    Some(found.expect("a sample"))
}

#[test]
fn messages_are_counted_as_they_are_on_the_wire() {
    let (times, bytes) = (20, 10 * FULL as usize + 100);
    let found = (0..ATTEMPTS).find_map(|_| {
        let began = std::time::Instant::now();
        let mut took = WINDOW;
        let found = sampled(|| {
            exchange(times, bytes);
            took = began.elapsed();
        });
        match found {
            None => Some(None),
            // All was in the first window.
            Some(found) => (took < WINDOW && found.full_windows == 0).then_some(Some(found)),
        }
    });
    let Some(found) = found.expect("an attempt that takes less than a window") else { return };
    let sizes = &found.sizes[0];
    let [received, sent] = sizes.totals();
    // On a loopback each packet is seen twice: as it leaves, and as it comes.
    let way = &sizes.ways()[&FULL];
    let data: Vec<_> = way.iter().map(|way| (way.full, way.small_bytes)).collect();
    let expected = (10 * times as u64, 101 * times as u64);
    assert_eq!(data, [expected; 2], "{way:?}");
    assert_eq!(way[1].messages[&(10, 100)], times as u64);
    assert_eq!(sent.packets, received.packets);
    let one = sizes.connections().into_iter().find(|each| each.ways[1].segments == 11 * times as u64);
    let one = one.expect("the client's end");
    // A message of eleven segments is four of 4148 bytes, and two of 8948.
    assert_eq!(one.ways[1].after, [4 * times as u64, 2 * times as u64]);
    assert!(sent.aggregates < sent.packets, "a loopback segments nothing: {sent:?}");
    assert!(found.cpu_seconds < 1.0);
}

#[test]
fn no_load_fills_more_than_a_window_and_the_sample_goes_on() {
    let began = std::time::Instant::now();
    let Some(found) = sampled(|| {
        while began.elapsed().as_secs_f64() < 0.6 {
            exchange(2000, 10);
        }
    }) else {
        return;
    };
    let packets: u64 = found.sizes[0].totals().iter().map(|total| total.packets).sum();
    // A ring of 1 MiB has room for some 4,000 headers.
    assert!((1..=8_000 * found.windows).contains(&packets), "{packets} in {} windows", found.windows);
    assert!(found.windows >= 1 && found.full_windows <= found.windows);
    assert!(found.window_seconds <= began.elapsed().as_secs_f64());
}

#[test]
fn an_interval_has_what_was_counted_in_it() {
    let Some(network) = network() else { return };
    let (mtu, read) = network
        .run(|| {
            let readings = Readings::begin(interfaces(&["lo".into()])?, Err("not asked for".into()), None)?;
            exchange(10, 1000);
            let read = readings.end()?;
            Ok((read.interfaces[0].about.mtu, read))
        })
        .expect("readings");
    assert_eq!((mtu, read.interfaces[0].mtu_after), (MTU, MTU));
    assert!(read.interfaces[0].link.tx_bytes > 10 * 1000);
    assert_eq!(read.interfaces[0].link.tx_packets, read.loopback_packets);
    assert!(
        read.interfaces[0].nic.as_ref().is_err_and(|why| why.contains("RMON") || why.contains("ethtool"))
    );
    assert!(read.counters["TcpOutSegs"] >= 20);
    assert!(read.connections.is_empty(), "what a host sends to itself is left out: {:?}", read.connections);
    assert_eq!(read.sample.expect_err("none was begun"), "not asked for");
    assert!(!read.cpu.cpus.is_empty());
}
