//! Packets that a sample at MTU 1500 foresees at 9000, beside those that came: recorded from Linux 6.18, of blocks over
//! iSCSI between two namespaces at 200 Mb/s without offloads, as the client's host saw them.
//!
//! A line is a packet: microseconds, `>` for one that the client sent, its payload, and the bytes that it acknowledges
//! beyond the one before. Segments that were sent again are left out. Of `read-8k-slow` it is the longest part in which
//! requests kept their distance of 50 ms.

use framegauge_metering::sizes::{Kind, Packet, Sizes};
use std::net::SocketAddr;

const HEADERS: u32 = 52;
const WINDOW_NANOSECONDS: u64 = 100_000_000;

fn packets(recorded: &str) -> Vec<Packet> {
    let end = |text: &str| text.parse::<SocketAddr>().expect("an end");
    let ends = Some((end("192.0.2.1:40000"), end("192.0.2.2:3260")));
    let (mut sent, mut acknowledged) = ([0; 2], [0; 2]);
    let read = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [microseconds, bytes, more] =
            [0, 2, 3].map(|word: usize| words[word].parse::<u32>().expect("a number"));
        let outgoing = words[1] == ">";
        let place = usize::from(outgoing);
        acknowledged[place] += more;
        let numbers = (sent[place], acknowledged[place]);
        sent[place] += bytes;
        Packet {
            outgoing,
            ends,
            kind: if bytes > 0 { Kind::Data } else { Kind::Acknowledgement },
            bytes: bytes + HEADERS,
            payload_bytes: bytes,
            segment_bytes: None,
            numbers,
            nanoseconds: u64::from(microseconds) * 1000,
            pushed: true,
            foreign: None,
        }
    };
    recorded.lines().map(read).collect()
}

/// Packets with data and acknowledgements at MTU 9000, from windows as an agent takes them.
fn foreseen(recorded: &str) -> (u64, f64) {
    let mut sizes = Sizes::new(1500, &[9000]);
    let all = packets(recorded);
    for window in all
        .chunk_by(|one, next| one.nanoseconds / WINDOW_NANOSECONDS == next.nanoseconds / WINDOW_NANOSECONDS)
    {
        let began = window.first().map_or(0, |first| first.nanoseconds);
        sizes.window(window, (began / WINDOW_NANOSECONDS + 1) * WINDOW_NANOSECONDS);
    }
    let data = sizes.connections().iter().flat_map(|each| &each.ways).map(|way| way.after[0]).sum();
    let left = |way: &framegauge_metering::sizes::Way| match way.known {
        0 => way.acknowledgements as f64,
        known => way.acknowledgements as f64 * way.left[0].settled().likely as f64 / known as f64,
    };
    (data, sizes.ways().values().flatten().map(left).sum())
}

/// Of as many bytes at MTU 9000: packets with data, and acknowledgements.
#[track_caller]
fn comes(recorded: &str, data: u32, acknowledgements: u32) {
    let (told, answers) = foreseen(recorded);
    let (all, came) = (told as f64 + answers, f64::from(data + acknowledgements));
    assert!(
        (all / came - 1.0).abs() < 0.05,
        "{told} and {answers:.0}, but {data} and {acknowledgements} came"
    );
}

macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("acknowledgements/", $name, ".txt"))
    };
}

#[test]
fn blocks_of_one_segment_are_acknowledged_with_the_next_request() {
    comes(recorded!("read-4k"), 250, 39);
    comes(recorded!("read-8k"), 154, 13);
}

/// 50 ms until the next request: each block is acknowledged by itself.
#[test]
fn blocks_that_are_asked_for_rarely_are_acknowledged_by_themselves() {
    comes(recorded!("read-8k-slow"), 28, 14);
}

/// A header, and behind it a block of one segment: together they are more than one.
#[test]
fn blocks_that_are_written_behind_a_header_are_acknowledged_at_once() {
    comes(recorded!("write-8k"), 226, 78);
}

#[test]
fn blocks_of_eight_segments_are_acknowledged_at_every_second_one() {
    comes(recorded!("read-64k"), 229, 51);
    comes(recorded!("write-64k"), 247, 58);
}
