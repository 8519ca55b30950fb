//! Captures in memory: their bound, and what the field's own tools read of them.
#![allow(clippy::disallowed_methods, reason = "these tests run programs")]

use framegauge_drivers::fabric::capture::{Capture, CaptureCounts};
use framegauge_packets::build::{Addresses, TcpFields, tcp_frame, udp_frame};
use framegauge_packets::pcapng::{Captured, Direction, Reader};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek};
use std::process::{Command, Stdio};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn packet(bytes: &[u8]) -> Captured<'_> {
    Captured {
        interface: 0,
        time_nanoseconds: 1,
        original_bytes: bytes.len() as u32,
        bytes,
        direction: None,
        comment: None,
    }
}

fn content(mut file: File) -> Vec<u8> {
    file.rewind().expect("a file in memory");
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).expect("readable");
    bytes
}

/// The section's header is 48 bytes, an interface with a name of two 40 (20, then 8 for each of name and resolution
/// and 4 for the end), a packet of 100 bytes 132. Room for three of them is 48 + 40 + 396 = 484.
#[test]
fn what_is_beyond_the_bound_is_counted() {
    for (limit_bytes, packets) in [(484, 3), (483, 2), (88, 0)] {
        let mut capture = Capture::begin(&names(&["h1"]), 200, limit_bytes).expect("a capture");
        for _ in 0..4 {
            capture.add(&packet(&[7; 100]));
        }
        // There would be room for it, but a capture has no gaps.
        capture.add(&packet(&[]));
        let (file, counts) = capture.end().expect("it ends");
        let file_bytes = 88 + 132 * packets;
        assert_eq!(counts, CaptureCounts { packets, file_bytes, left_out_packets: 5 - packets });
        let bytes = content(file);
        assert_eq!(bytes.len() as u64, file_bytes);
        assert_eq!(Reader::new(&bytes).expect("a section").count() as u64, packets);
    }
    let error = Capture::begin(&names(&["h1"]), 200, 87).err().expect("too small").to_string();
    assert!(error.contains("found a limit of 87 bytes, expected 88 or more"), "{error}");
}

/// More than is gathered at once: everything is in the file, once and in order.
#[test]
fn a_long_capture_is_whole() {
    let mut capture = Capture::begin(&names(&["h1", "h2"]), 64, u64::MAX).expect("a capture");
    let bytes = [5; 1_500];
    let asked = |number: u64| Captured {
        interface: (number % 2) as u32,
        time_nanoseconds: number,
        direction: Some(Direction::Outbound),
        comment: number.is_multiple_of(3).then_some("taildrop"),
        ..packet(&bytes)
    };
    (0..10_000).for_each(|number| capture.add(&asked(number)));
    let (file, counts) = capture.end().expect("it ends");
    let bytes = content(file);
    assert_eq!((counts.packets, counts.file_bytes, counts.left_out_packets), (10_000, bytes.len() as u64, 0));
    for (number, found) in Reader::new(&bytes).expect("a section").enumerate() {
        assert_eq!(found.expect("a packet"), Captured { bytes: &[5; 64], ..asked(number as u64) });
    }
}

#[test]
fn a_packet_of_no_interface_is_an_error_at_the_end() {
    let mut capture = Capture::begin(&names(&["h1"]), 200, 1_000).expect("a capture");
    capture.add(&Captured { interface: 1, ..packet(&[]) });
    capture.add(&packet(&[]));
    let error = capture.end().expect_err("no such interface").to_string();
    assert!(error.contains("interface is 1, expected one described before"), "{error}");
}

/// What a program of Wireshark says of a capture on its standard input; `None` where it is not installed.
fn told(program: &str, arguments: &[&str], capture: &File) -> Option<Vec<u8>> {
    let mut input = capture.try_clone().expect("another handle");
    input.rewind().expect("a file in memory");
    let mut command = Command::new(program);
    match command.args(arguments).env("LC_ALL", "C.UTF-8").stdin(Stdio::from(input)).output() {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program}: {errors}");
            Some(output.stdout)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{program} is not installed");
            eprintln!("not run: needs {program} (apt-get install tshark)");
            None
        }
        Err(error) => panic!("{program}: {error}"),
    }
}

/// Two ports, one frame whole and one cut, with and without direction and comment.
fn example() -> File {
    let addresses = Addresses {
        source_mac: [2, 0x66, 0x67, 0, 0, 1],
        destination_mac: [2, 0x66, 0x67, 0, 0, 2],
        source: "10.77.0.1:40000".parse().unwrap(),
        destination: "10.77.0.2:5201".parse().unwrap(),
    };
    let segment = tcp_frame(&addresses, &TcpFields { seq: 7, ..Default::default() }, &[1; 1_460]);
    let datagram = udp_frame(&addresses, b"odd");
    let mut capture = Capture::begin(&names(&["h1>switch", "switch>h2"]), 128, 1_000_000).expect("a capture");
    capture.add(&Captured {
        time_nanoseconds: 1_700_000_000_123_456_789,
        direction: Some(Direction::Inbound),
        comment: Some("dropped: taildrop, 524288 bytes queued — größer geht nicht"),
        ..packet(&segment)
    });
    capture.add(&Captured {
        interface: 1,
        time_nanoseconds: 1_700_000_000_123_456_790,
        direction: Some(Direction::Outbound),
        comment: Some("marked: step"),
        ..packet(&datagram)
    });
    capture.add(&Captured { interface: 1, time_nanoseconds: 1_700_000_001_000_000_000, ..packet(&datagram) });
    capture.end().expect("it ends").0
}

#[test]
fn tshark_reads_every_field() {
    let fields = [
        "frame.time_epoch",
        "frame.interface_name",
        "frame.len",
        "frame.cap_len",
        "frame.packet_flags_direction",
        "frame.comment",
        "ip.dst",
        "tcp.seq_raw",
        "udp.checksum.status",
    ];
    let mut arguments =
        vec!["-r", "-", "-n", "-o", "udp.check_checksum:TRUE", "-T", "fields", "-E", "separator=|"];
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    let Some(found) = told("tshark", &arguments, &example()) else { return };
    let found = String::from_utf8(found).expect("UTF-8");
    // 14 + 20 + 20 + 1460 = 1514 bytes, of which 128 are kept; 14 + 20 + 8 + 3 = 45. Directions are 1 in, 2 out, 0 not
    // told; a status of 1 is a checksum that is right.
    let expected = [
        "1700000000.123456789|h1>switch|1514|128|0x00000001|dropped: taildrop, 524288 bytes queued — größer geht nicht|10.77.0.2|7|",
        "1700000000.123456790|switch>h2|45|45|0x00000002|marked: step|10.77.0.2||1",
        "1700000001.000000000|switch>h2|45|45|||10.77.0.2||1",
    ];
    assert_eq!(found.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn capinfos_reads_section_and_interfaces() {
    let Some(found) = told("capinfos", &["-"], &example()) else { return };
    let found = String::from_utf8(found).expect("UTF-8");
    for expected in ["framegauge", "Number of packets:   3", "h1>switch", "switch>h2"] {
        assert!(found.contains(expected), "no {expected:?} in\n{found}");
    }
}

/// The other way round: what Wireshark's own writer makes of the same packets.
#[test]
fn what_tshark_writes_is_the_same_capture() {
    let example = example();
    let Some(written) = told("tshark", &["-r", "-", "-w", "-", "-F", "pcapng"], &example) else { return };
    let ours = content(example);
    let read =
        |bytes| Reader::new(bytes).expect("a section").collect::<Result<Vec<_>, _>>().expect("packets");
    assert_eq!(read(&written), read(&ours));
    assert_eq!(read(&ours).len(), 3);
}
