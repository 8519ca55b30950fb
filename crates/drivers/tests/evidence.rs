//! Packets copied out of captures: byte for byte, with their interfaces, and comments that tshark shows.
#![allow(clippy::disallowed_methods, reason = "these tests run programs and write files")]

use framegauge_drivers::captures::evidence::{Comments, write};
use framegauge_packets::build::{Addresses, TcpFields, tcp_frame};
use framegauge_packets::pcapng::{Captured, Reader, Section};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder that goes away with its value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("framegauge-evidence-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).expect("a file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn frame(number: u8) -> Vec<u8> {
    let addresses = Addresses {
        source_mac: [2; 6],
        destination_mac: [4; 6],
        source: "10.0.0.1:1000".parse().expect("an address"),
        destination: "10.0.0.2:80".parse().expect("an address"),
    };
    tcp_frame(&addresses, &TcpFields { seq: number.into(), ..TcpFields::default() }, &[number; 50])
}

/// A pcap file of raw IP with microseconds and a snap length of 40.
fn pcap() -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 40, 101] {
        out.extend(word.to_le_bytes());
    }
    for number in 1..=4u8 {
        let packet = &frame(number)[14..];
        for word in [1_700_000_000, u32::from(number), 40, packet.len() as u32] {
            out.extend(word.to_le_bytes());
        }
        out.extend(&packet[..40]);
    }
    out
}

/// Two interfaces, whose packets take turns.
fn pcapng() -> Vec<u8> {
    let mut out = Vec::new();
    let mut section = Section::begin(&mut out);
    section.interface(&mut out, "eth0", 0x4_0000);
    section.interface(&mut out, "eth1", 60);
    for number in 0..6u8 {
        let bytes = frame(number);
        let packet = Captured {
            interface: u32::from(number % 2),
            time_nanoseconds: 1_700_000_000_123_456_789 + u64::from(number),
            original_bytes: bytes.len() as u32,
            bytes: &bytes,
            direction: None,
            comment: Some("of the capture"),
        };
        section.packet(&mut out, &packet).expect("an interface that was described");
    }
    out
}

fn comments(numbers: &[u64]) -> Comments {
    numbers.iter().map(|number| (*number, format!("packet {number}\nrto_stall: 0.4 s lost"))).collect()
}

fn copied(files: &[(PathBuf, Comments)]) -> (u64, Vec<u8>) {
    let mut out = Vec::new();
    let count = write(files, &mut out).expect("it can be read");
    (count, out)
}

fn tshark(path: &Path) -> Vec<String> {
    let fields = ["frame.number", "frame.interface_name", "frame.cap_len", "frame.len", "frame.time_epoch"];
    let mut command = Command::new("tshark");
    command.arg("-r").arg(path).args(["-T", "fields", "-E", "separator=|"]);
    fields.iter().chain(&["frame.comment"]).for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.output().expect("tshark: apt-get install tshark");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn packets_are_copied_as_they_were_captured() {
    let folder = Folder::new("copied");
    let source = pcapng();
    let file = folder.file("a.pcapng", &source);
    let (count, bytes) = copied(&[(file, comments(&[2, 3, 6]))]);
    assert_eq!(count, 3);
    let mut reader = Reader::new(&bytes).expect("a section");
    let found: Vec<_> = reader.by_ref().map(|packet| packet.expect("a packet")).collect();
    let original: Vec<_> =
        Reader::new(&source).expect("a section").map(|packet| packet.expect("a packet")).collect();
    for (copy, number) in found.iter().zip([2usize, 3, 6]) {
        let first = original[number - 1];
        assert_eq!(
            (copy.bytes, copy.original_bytes, copy.time_nanoseconds),
            (first.bytes, first.original_bytes, first.time_nanoseconds)
        );
        assert_eq!(copy.comment, Some(format!("packet {number}\nrto_stall: 0.4 s lost").as_str()));
    }
    // Described in the order in which they were met.
    let names: Vec<_> = reader.interfaces().iter().map(|each| (each.name, each.snap_bytes)).collect();
    assert_eq!(names, [(Some("eth1"), 60), (Some("eth0"), 0x4_0000)]);
}

proptest! {
    /// Whatever is asked for: what the capture has of it, once each, in order and as it was; and nothing else.
    #[test]
    fn each_packet_of_the_evidence_is_one_of_the_capture(asked in prop::collection::btree_set(0u64..12, 0..12)) {
        let folder = Folder::new("any");
        let source = pcapng();
        let asked: Vec<u64> = asked.into_iter().collect();
        let (count, bytes) = copied(&[(folder.file("any.pcapng", &source), comments(&asked))]);
        let original: Vec<_> =
            Reader::new(&source).expect("a section").map(|packet| packet.expect("a packet")).collect();
        let expected: Vec<u64> =
            asked.into_iter().filter(|number| (1..=original.len() as u64).contains(number)).collect();
        prop_assert_eq!(count, expected.len() as u64);
        let mut reader = Reader::new(&bytes).expect("a section");
        let found: Vec<_> = reader.by_ref().map(|packet| packet.expect("a packet")).collect();
        prop_assert_eq!(found.len(), expected.len());
        for (copy, number) in found.iter().zip(expected) {
            let said = comments(&[number])[&number].clone();
            let first = original[number as usize - 1];
            let same = Captured { interface: copy.interface, comment: Some(&said), ..first };
            prop_assert_eq!(*copy, same);
            let name = reader.interfaces()[copy.interface as usize].name;
            prop_assert_eq!(name, Some(if first.interface == 0 { "eth0" } else { "eth1" }));
        }
    }
}

#[test]
fn tshark_shows_the_comments_and_the_interfaces_of_several_files() {
    let folder = Folder::new("several");
    let files = [
        (folder.file("a.pcapng", &pcapng()), comments(&[1, 2])),
        (folder.file("b.pcap", &pcap()), comments(&[4])),
        (folder.file("c.pcap", &pcap()), comments(&[])),
    ];
    let (count, bytes) = copied(&files);
    assert_eq!(count, 3);
    let whole = frame(1).len();
    let time = "1700000000.1234567";
    assert_eq!(
        tshark(&folder.file("out.pcapng", &bytes)),
        [
            format!("1|a.pcapng: eth0|{whole}|{whole}|{time}89|packet 1\\nrto_stall: 0.4 s lost"),
            format!("2|a.pcapng: eth1|60|{whole}|{time}90|packet 2\\nrto_stall: 0.4 s lost"),
            format!(
                "3|b.pcap: interface 0|40|{}|1700000000.000004000|packet 4\\nrto_stall: 0.4 s lost",
                whole - 14
            ),
        ]
    );
}

#[test]
fn a_packet_longer_than_its_interface_says_is_whole() {
    let folder = Folder::new("long");
    let mut source = pcap();
    // The file's header says that 20 bytes are kept.
    source[16..20].copy_from_slice(&20u32.to_le_bytes());
    let (_, bytes) = copied(&[(folder.file("a.pcap", &source), comments(&[1]))]);
    let packet = Reader::new(&bytes).expect("a section").next().expect("one").expect("a packet");
    assert_eq!(packet.bytes, &frame(1)[14..54]);
}

#[test]
fn what_a_capture_has_not_is_left_out() {
    let folder = Folder::new("absent");
    let source = pcap();
    let cut = folder.file("cut.pcap", &source[..source.len() - 5]);
    let (count, bytes) = copied(&[(cut, comments(&[0, 3, 4, 9]))]);
    assert_eq!((count, Reader::new(&bytes).expect("a section").count()), (1, 1));
    let missing = write(&[(folder.0.join("missing"), comments(&[1]))], &mut Vec::new());
    assert!(
        matches!(missing, Err(framegauge_drivers::captures::evidence::Failed::Read(why)) if why.contains("missing"))
    );
}
