//! Segments that came in IP fragments, from the file to what is told: by one thread, by several, and of what is packed.
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

const ETHERNET_BYTES: usize = 14;
const IP_BYTES: usize = 20;
const MS: u64 = 1_000_000;
const PAYLOAD: usize = 1448;

/// Frames with their stamps.
type Frames = Vec<(u64, Vec<u8>)>;

/// A segment of the client (0) or the server (1).
fn frame(from: usize, seq: u32, ack: u32, flags: TcpFlags, payload: usize, identification: u16) -> Vec<u8> {
    let ends = ["10.0.0.1:40000", "10.0.0.2:80"].map(|end| end.parse().expect("an end"));
    let addresses = Addresses {
        source_mac: [2; 6],
        destination_mac: [4; 6],
        source: ends[from],
        destination: ends[1 - from],
    };
    let options = if flags.contains(TcpFlags::SYN) { syn_options(1460, 7) } else { Vec::new() };
    let fields = TcpFields { seq, ack, flags, identification, options, ..TcpFields::default() };
    tcp_frame(&addresses, &fields, &vec![7; payload])
}

/// The fragments that a router makes of a frame for a link of this MTU (RFC 791 section 3.2).
fn cut(frame: &[u8], mtu: usize) -> Vec<Vec<u8>> {
    let (head, content) = frame.split_at(ETHERNET_BYTES + IP_BYTES);
    let most = (mtu - IP_BYTES) / 8 * 8;
    let count = content.len().div_ceil(most);
    let piece = |(number, bytes): (usize, &[u8])| {
        let mut head = head.to_vec();
        let total = (IP_BYTES + bytes.len()) as u16;
        let place = (number * most / 8) as u16 | if number + 1 < count { 0x2000 } else { 0 };
        head[ETHERNET_BYTES + 2..][..2].copy_from_slice(&total.to_be_bytes());
        head[ETHERNET_BYTES + 6..][..2].copy_from_slice(&place.to_be_bytes());
        [&head[..], bytes].concat()
    };
    content.chunks(most).enumerate().map(piece).collect()
}

/// A transfer of so many segments in fragments, of which acknowledgements come in between; `keeps`: whether the file has a
/// fragment, by the number of its segment and its own.
fn transfer(segments: u32, mtu: usize, keeps: impl Fn(u32, usize) -> bool) -> Frames {
    let (syn, ack) = (TcpFlags::SYN, TcpFlags::ACK);
    let mut now = 1_700_000_000_000 * MS;
    let mut frames = vec![
        (now, frame(0, 1000, 0, syn, 0, 1)),
        (now + 10 * MS, frame(1, 5000, 1001, syn.with(ack), 0, 0)),
        (now + 10 * MS, frame(0, 1001, 5001, ack, 0, 2)),
    ];
    now += 11 * MS;
    for number in 0..segments {
        let seq = 1001 + number * PAYLOAD as u32;
        let pieces = cut(&frame(0, seq, 5001, ack, PAYLOAD, 3 + number as u16), mtu);
        let count = pieces.len();
        for (place, piece) in pieces.into_iter().enumerate() {
            if keeps(number, place) {
                frames.push((now, piece));
            }
            // What answers the segment before is on its way back.
            if place + 1 < count && number > 0 {
                frames.push((now + MS / 100, frame(1, 5001, seq, ack, 0, 1 + number as u16)));
            }
            now += MS / 50;
        }
        now += if number % 10 == 9 { 10 * MS } else { 0 };
    }
    frames.push((now + 10 * MS, frame(1, 5001, 1001 + segments * PAYLOAD as u32, ack, 0, 999)));
    frames
}

fn capture(frames: &Frames) -> File {
    let mut bytes = Vec::new();
    let mut section = Section::begin(&mut bytes);
    section.interface(&mut bytes, "eth0", 96);
    for (at, frame) in frames {
        let packet = Captured {
            interface: 0,
            time_nanoseconds: *at,
            original_bytes: frame.len() as u32,
            // Headers are enough.
            bytes: &frame[..frame.len().min(96)],
            direction: None,
            comment: None,
        };
        section.packet(&mut bytes, &packet).expect("its interface was described");
    }
    in_memory::file(&bytes)
}

/// What is told of it: the same however it is read.
fn told(frames: &Frames) -> Value {
    let file = capture(frames);
    let written = |file: &File, threads: usize| -> Value {
        let (mut out, room) = (Vec::new(), Room { threads, ..Room::default() });
        captures::write(&path_of(file), Thresholds::default(), room, Form::Document, &mut out)
            .expect("it is readable");
        serde_json::from_slice(&out).expect("JSON")
    };
    let one = written(&file, 1);
    assert_eq!(written(&file, 3), one);
    let mut of_packed = written(&packed(&file), 2);
    of_packed["file"] = one["file"].clone();
    assert_eq!(of_packed, one);
    one["taps"][0].clone()
}

/// The finding of a kind, with what it says.
fn finding<'a>(told: &'a Value, kind: &str) -> Option<(u64, &'a str)> {
    let mut findings = told["findings"].as_array().expect("a list").iter();
    let one = findings.find(|one| one["kind"] == kind)?;
    Some((one["count"].as_u64().expect("a count"), one["text"].as_str().expect("a text")))
}

#[test]
fn a_segment_in_fragments_is_whole() {
    let told = told(&transfer(100, 1006, |_, _| true));
    assert_eq!(finding(&told, "capture_loss"), None);
    let (count, text) = finding(&told, "ip_fragments").expect("it is worth knowing");
    assert_eq!(count, 100);
    assert!(text.contains("if it fills that link, its MTU is 1004 to 1011"), "{text}");
    let connection = &told["connections"][0];
    assert_eq!(connection["bytes"][0], 100 * PAYLOAD);
    assert_eq!(
        (&connection["data_segments"][0], &connection["largest_segment_bytes"][0]),
        (&100.into(), &PAYLOAD.into())
    );
}

#[test]
fn a_filter_by_ports_leaves_out_all_but_first_fragments() {
    let told = told(&transfer(100, 1006, |_, place| place == 0));
    let (_, text) = finding(&told, "capture_loss").expect("the file lacks fragments");
    assert!(text.contains("Of 100 segments it has the first IP fragment only"), "{text}");
    assert_eq!(finding(&told, "ip_fragments").map(|(count, _)| count), Some(100));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the link carries, and whichever segments the file has not all fragments of: only those are lacking, and
    /// nothing was lost on the way.
    #[test]
    fn only_what_the_file_lacks_is_lacking(mtu in 576usize..1300, gaps in prop::collection::btree_set(0u32..60, 0..4)) {
        let told = told(&transfer(60, mtu, |number, place| place == 0 || !gaps.contains(&number)));
        prop_assert_eq!(finding(&told, "capture_loss").is_some(), !gaps.is_empty());
        for kind in ["rto_stall", "tail_loss", "fast_retransmit", "reordering", "spurious_retransmit", "pmtu_black_hole"] {
            prop_assert_eq!(finding(&told, kind), None);
        }
    }
}
