//! Two clocks, one model: what a fabric does in real time between real hosts it does once more in virtual time, frame by
//! frame and to the picosecond.
//!
//! Needs the right to make network namespaces and TAP devices.
#![allow(clippy::disallowed_methods, reason = "these tests use real sockets")]

mod common;

use framegauge_drivers::fabric::{Meters, Record, RunningFabric};
use framegauge_drivers::{OsError, rack::addresses as rack};
use framegauge_fabric::{Fabric, FabricConfig, HostIndex, Sink};
use framegauge_frames::Picoseconds;
use framegauge_networks::{NetworkSpec, QueueSpec, TopologySpec};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const BYTES: usize = 4_000_000;

/// Two switches whose ports drop, mark and shuffle by draws: whatever is not a function of its input shows.
fn network(queue: &str) -> FabricConfig {
    let links = r#"[{"from": "left", "to": "right", "bits_per_second": 300000000, "jitter_seconds": 2e-5, "loss": 0.001,
                     "skew_ppm": 125, "tagged": true}]"#;
    let background = r#"[{"from": "h1", "to": "h2", "share": 0.1, "process": "poisson"}]"#;
    let spec = NetworkSpec {
        topology: serde_json::from_str::<TopologySpec>(r#"{"kind": "dumbbell", "left": 1}"#).unwrap(),
        routing: Default::default(),
        bits_per_second: 1_000_000_000,
        rtt_seconds: 1e-3,
        buffer_bytes: 60_000,
        port_mtu: 9216,
        queue: serde_json::from_str::<QueueSpec>(queue).unwrap(),
        links: serde_json::from_str(links).unwrap(),
        shared_buffer: None,
        background: serde_json::from_str(background).unwrap(),
        host_mtu: 1500,
        moderation_seconds: 50e-6,
        seed: 7,
    };
    spec.network(&["h1".to_owned(), "h2".to_owned()]).unwrap().config
}

/// Sends from the first host to the second over a running fabric; `None` where nobody may make hosts.
fn in_real_time(network: &FabricConfig, lro: bool, is_timed: bool) -> Option<Record> {
    let ((first, mut near), (second, mut far)) = common::pair(4, true)?;
    (near.is_timed, far.is_timed) = (is_timed, is_timed);
    let fabric = RunningFabric::start(network, vec![near, far], lro, None).expect("a fabric");
    fabric.begin(Meters { record: true, ..Meters::default() }).expect("it begins");
    let failed = |source| OsError { operation: "connect".into(), source };
    let address = (rack::address(1, 4), 5201);
    let listener = second.run(|| TcpListener::bind(address).map_err(failed)).expect("a port");
    let mut sender = first.run(|| TcpStream::connect(address).map_err(failed)).expect("connected");
    let receiving = std::thread::spawn(move || {
        let mut received = 0;
        let (mut connection, _) = listener.accept().expect("a connection");
        let mut buffer = vec![0; 65_536];
        while let Ok(count @ 1..) = connection.read(&mut buffer) {
            received += count;
        }
        received
    });
    sender.write_all(&vec![7; BYTES]).expect("written");
    drop(sender);
    assert_eq!(receiving.join().expect("the receiver ends"), BYTES);
    fabric.end().expect("it ends").record
}

/// What comes out in virtual time.
#[derive(Default)]
struct Replay(Record);

impl Sink for Replay {
    fn deliver(&mut self, host: HostIndex, frames: &[(u32, u16)], due: Picoseconds) {
        self.0.delivered.extend(frames.iter().map(|&(aggregate, frame)| (due, host, aggregate, frame)));
    }

    fn discard(&mut self, aggregate: u32, frame: u16) {
        self.0.discarded.push((aggregate, frame));
    }

    fn mark(&mut self, aggregate: u32, frame: u16) {
        self.0.marked.push((aggregate, frame));
    }
}

fn in_virtual_time(network: &FabricConfig, record: &Record) -> Record {
    let mut fabric = Fabric::new(network).unwrap();
    let mut replay = Replay::default();
    for &(now, host, aggregate) in &record.handed_over {
        fabric.advance(now, &mut replay);
        fabric.transmit(now, host, aggregate);
    }
    fabric.advance(record.until, &mut replay);
    Record { handed_over: record.handed_over.clone(), until: record.until, ..replay.0 }
}

#[test]
fn a_recorded_run_comes_out_the_same_in_virtual_time() {
    for (queue, lro, is_timed) in [
        (r#"{"kind": "taildrop"}"#, false, true),
        (r#"{"kind": "taildrop"}"#, false, false),
        (r#"{"kind": "red", "ecn": true, "minimum_bytes": 5000, "maximum_bytes": 15000}"#, true, true),
        (r#"{"kind": "fq_codel", "target_seconds": 0.0005, "interval_seconds": 0.005}"#, false, true),
    ] {
        let network = network(queue);
        let Some(real) = in_real_time(&network, lro, is_timed) else { return };
        let again = in_virtual_time(&network, &real);
        assert!(real.delivered.len() > BYTES / 1448, "{queue}: {} frames", real.delivered.len());
        assert!(!real.discarded.is_empty(), "{queue}: nothing was dropped");
        assert_eq!(real.marked.is_empty(), !queue.contains("ecn"), "{queue}");
        let differs = real.delivered.iter().zip(&again.delivered).position(|(real, again)| real != again);
        assert_eq!(differs, None, "{queue}");
        assert!(real == again, "{queue}: {} and {} frames", real.delivered.len(), again.delivered.len());
    }
}
