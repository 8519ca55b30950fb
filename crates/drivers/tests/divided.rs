//! However many threads read a capture, and however few connections have room at a time: the same document.
#![allow(clippy::disallowed_methods)]

mod in_memory;

use framegauge_diagnosis::Thresholds;
use framegauge_drivers::captures::{self, Form, Room};
use framegauge_packets::TcpFlags;
use framegauge_packets::build::{Addresses, TcpFields, syn_options, tcp_frame};
use framegauge_packets::pcapng::{Captured, Section};
use in_memory::{packed, path_of};
use proptest::prelude::*;
use serde_json::Value;
use std::fs::File;

/// Hosts that talk to one server, some of them by two ports.
const CLIENTS: usize = 40;

/// A packet: whose, of which end, its flags, payload, how much is kept of it, its interface, and how long after the last.
type Step = (usize, bool, u8, usize, usize, u32, u64);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let flags =
        prop_oneof![12 => Just(0x18u8), 4 => Just(0x10), 6 => Just(0x02), 2 => Just(0x12), 1 => Just(0x04)];
    let kept = prop_oneof![10 => Just(2000usize), 1 => 30usize..80];
    // Now and then so long that a connection that was reset is forgotten.
    let pause = prop_oneof![30 => 0u64..20_000_000, 1 => 59_000_000_000u64..61_000_000_000];
    let packet = (0..CLIENTS, any::<bool>(), flags, 0usize..1400, kept, 0u32..3, pause);
    prop::collection::vec(packet, 1..400)
}

fn frame(
    next: &mut [[u32; 2]; CLIENTS],
    (client, is_back, flags, payload, ..): Step,
    number: usize,
) -> Vec<u8> {
    let ends = [format!("10.0.{}.1:{}", client % 20, 40_000 + client), "10.9.9.9:80".to_owned()];
    let [here, there] = [usize::from(is_back), usize::from(!is_back)];
    let payload = if flags == 0x18 { payload } else { 0 };
    let addresses = Addresses {
        source_mac: [2; 6],
        destination_mac: [4; 6],
        source: ends[here].parse().expect("an end"),
        destination: ends[there].parse().expect("an end"),
    };
    let fields = TcpFields {
        seq: next[client][here],
        ack: next[client][there],
        flags: TcpFlags(flags),
        identification: number as u16,
        options: if flags & 2 != 0 { syn_options(1460, 7) } else { Vec::new() },
        ..TcpFields::default()
    };
    next[client][here] += payload as u32 + u32::from(flags & 2 != 0);
    tcp_frame(&addresses, &fields, &vec![7; payload])
}

/// What a router says of a packet: it is too big for the next link (RFC 1191).
fn too_big(frame: &[u8]) -> Vec<u8> {
    let quoted = &frame[14..][..28.min(frame.len() - 14)];
    let total = (20 + 8 + quoted.len()) as u16;
    let [high, low] = total.to_be_bytes();
    let ip = [0x45, 0, high, low, 0, 0, 0, 0, 64, 1, 0, 0, 10, 9, 9, 1];
    [&frame[..14], &ip, &quoted[12..16], &[3, 4, 0, 0, 0, 0, 5, 0xdc], quoted].concat()
}

/// A capture of three interfaces, whose clock is set by so much before a packet.
fn captured(steps: &[Step], (place, by): (usize, i64)) -> File {
    let mut bytes = Vec::new();
    let mut section = Section::begin(&mut bytes);
    for name in ["eth0", "eth1", "eth2"] {
        section.interface(&mut bytes, name, 2000);
    }
    let mut next = [[1, 1]; CLIENTS];
    let mut now = 1_700_000_000_000_000_000;
    for (number, step) in steps.iter().enumerate() {
        let whole = frame(&mut next, *step, number);
        let whole = if number % 17 == 16 { too_big(&whole) } else { whole };
        now += step.6;
        let packet = Captured {
            interface: step.5,
            time_nanoseconds: now.saturating_add_signed(if number >= place { by } else { 0 }),
            original_bytes: whole.len() as u32,
            bytes: &whole[..whole.len().min(step.4)],
            direction: None,
            comment: None,
        };
        section.packet(&mut bytes, &packet).expect("its interface was described");
    }
    in_memory::file(&bytes)
}

fn written(file: &File, room: Room, form: Form) -> String {
    let mut out = Vec::new();
    captures::write(&path_of(file), Thresholds::default(), room, form, &mut out).expect("it is readable");
    String::from_utf8(out).expect("JSON is text")
}

/// The document that these rows are of.
fn put_together(rows: &str) -> Value {
    let mut whole = Value::Null;
    for line in rows.lines() {
        let row: Value = serde_json::from_str(line).expect("each line is JSON");
        let (label, value) = row.as_object().expect("an object").iter().next().expect("with one key");
        let value = value.clone();
        match label.as_str() {
            "capture" => {
                whole = value;
                whole["taps"] = Value::Array(Vec::new());
            }
            "tap" => {
                let taps = whole["taps"].as_array_mut().expect("a list");
                taps.push(value);
                let tap = taps.last_mut().expect("just added");
                ["connections", "findings"].iter().for_each(|name| tap[*name] = Value::Array(Vec::new()));
            }
            kind => {
                let tap = whole["taps"].as_array_mut().expect("a list").last_mut().expect("a tap was told");
                tap[format!("{kind}s")].as_array_mut().expect("a list").push(value);
            }
        }
    }
    whole
}

/// Packets of two clients in turn, a millisecond each, on one interface.
fn in_turn() -> Vec<Step> {
    let step = |number: usize| (number / 2 % 2, number % 2 == 1, 0x18u8, 100, 2000, 0, 1_000_000);
    (0..200).map(step).collect()
}

#[test]
fn a_clock_that_goes_back_is_told_once_however_many_read() {
    let file = captured(&in_turn(), (100, -3_600_000_000_000));
    let mut told = Vec::new();
    for threads in 1..=3 {
        let found = written(&file, Room { connections: 100, threads }, Form::Document);
        let found: Value = serde_json::from_str(&found).expect("JSON");
        let tap = &found["taps"][0];
        let jumps = tap["findings"].as_array().expect("a list").iter();
        let jumps: Vec<&Value> = jumps.filter(|each| each["kind"] == "clock_jump").collect();
        assert_eq!(jumps.len(), 1, "{tap:#}");
        assert_eq!((&jumps[0]["connection"], &jumps[0]["packets"][0]), (&Value::Null, &Value::from(101)));
        assert!((0.19..0.21).contains(&tap["seconds"].as_f64().expect("a number")), "{}", tap["seconds"]);
        assert!(!tap["findings"].to_string().contains("capture_misordered"));
        told.push(tap.to_string());
    }
    assert!(told.iter().all(|each| *each == told[0]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn threads_and_little_room_change_nothing(
        steps in steps(),
        connections in 1usize..20,
        set in (0usize..400, prop_oneof![Just(0i64), -20_000_000_000i64..20_000_000_000]),
    ) {
        let file = captured(&steps, set);
        let whole = std::fs::read(path_of(&file)).expect("it is there");
        // In the middle of the last packet, of which there is another one before.
        let cut = in_memory::file(&whole[..whole.len() - if steps.len() > 1 { 3 } else { 0 }]);
        let told = |file: &File| {
            let all = captures::diagnose(&path_of(file), Thresholds::default()).expect("it is readable");
            serde_json::to_string(&all).expect("words and finite numbers") + "\n"
        };
        let expected = told(&file);
        for threads in 1..=3 {
            for connections in [connections, usize::MAX] {
                let found = written(&file, Room { connections, threads }, Form::Document);
                prop_assert_eq!(&found, &expected, "{} threads, room for {}", threads, connections);
            }
        }
        for file in [packed(&file), cut] {
            let found = written(&file, Room { connections, threads: 2 }, Form::Document);
            prop_assert_eq!(&found, &told(&file));
        }
        let rows = written(&file, Room { connections, threads: 2 }, Form::Rows);
        prop_assert_eq!(put_together(&rows), serde_json::from_str::<Value>(&expected).expect("JSON"));
    }
}
