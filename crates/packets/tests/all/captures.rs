//! pcapng: bytes worked out by hand from draft-ietf-opsawg-pcapng, and what was written read again.

use crate::blocks::Order;
use framegauge_packets::pcapng::{Captured, Direction, LINK_ETHERNET, Reader, SNAP_BYTES_MAXIMUM, Section};
use proptest::prelude::*;

const PLAIN: Captured<'static> = Captured {
    interface: 0,
    time_nanoseconds: 0,
    original_bytes: 0,
    bytes: &[],
    direction: None,
    comment: None,
};

/// The times of all packets, or what is wrong.
fn times(bytes: &[u8]) -> Result<Vec<u64>, String> {
    let reader = Reader::new(bytes).map_err(|error| error.to_string())?;
    reader
        .map(|packet| packet.map(|packet| packet.time_nanoseconds).map_err(|error| error.to_string()))
        .collect()
}

#[test]
fn every_byte_is_where_the_draft_has_it() {
    let mut out = Vec::new();
    let mut section = Section::begin(&mut out);
    // Type, length 28 + 16 + 4 = 48, magic, version 1.0, length unknown; option 4 of 10 bytes and 2 of padding; the end.
    let mut expected = vec![0x0a, 0x0d, 0x0d, 0x0a, 48, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
    expected.extend([0xff; 8]);
    expected.extend(b"\x04\0\x0a\0framegauge\0\0\0\0\0\0");
    expected.extend([48, 0, 0, 0]);
    assert_eq!(out, expected);

    out.clear();
    assert_eq!(section.interface(&mut out, "h1>s", 256), 0);
    // Type, length 20 + 8 + 8 + 4 = 40, Ethernet, reserved, snap length; option 2; option 9 of one byte; the end.
    let mut expected = vec![1, 0, 0, 0, 40, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0];
    expected.extend(b"\x02\0\x04\0h1>s\x09\0\x01\0\x09\0\0\0\0\0\0\0");
    expected.extend([40, 0, 0, 0]);
    assert_eq!(out, expected);

    out.clear();
    let packet = Captured {
        time_nanoseconds: 0x0102_0304_0506_0708,
        original_bytes: 1514,
        bytes: b"abcde",
        direction: Some(Direction::Outbound),
        comment: Some("giant"),
        ..PLAIN
    };
    section.packet(&mut out, &packet).unwrap();
    // Type, length 32 + 8 + 8 + 12 + 4 = 64, interface, the time's upper half before the lower, 5 of 1514 (0x5ea) bytes
    // and 3 of padding; option 2 of 4 bytes; option 1 of 5; the end.
    let mut expected = vec![6, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 4, 3, 2, 1, 8, 7, 6, 5];
    expected.extend([5, 0, 0, 0, 0xea, 5, 0, 0]);
    expected.extend(b"abcde\0\0\0\x02\0\x04\0\x02\0\0\0\x01\0\x05\0giant\0\0\0\0\0\0\0");
    expected.extend([64, 0, 0, 0]);
    assert_eq!(out, expected);

    out.clear();
    section.packet(&mut out, &Captured { bytes: b"abcd", original_bytes: 4, ..PLAIN }).unwrap();
    assert_eq!(out.len(), 32 + 4, "no options, and no end of them");
}

#[test]
fn what_does_not_fit_is_cut() {
    let mut out = Vec::new();
    let mut section = Section::begin(&mut out);
    section.interface(&mut out, &"n".repeat(70_000), 0);
    section.interface(&mut out, "", u32::MAX);
    let bytes = vec![7; 300_000];
    // 65,535 is odd: the character of two bytes that would reach beyond it is left out.
    let comment = "é".repeat(40_000);
    for interface in [0, 1] {
        let packet = Captured { interface, bytes: &bytes, comment: Some(&comment), ..PLAIN };
        section.packet(&mut out, &packet).unwrap();
    }
    let mut reader = Reader::new(&out).unwrap();
    let packets: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(packets.iter().map(|packet| packet.bytes.len()).collect::<Vec<_>>(), [1, 262_144]);
    assert_eq!(packets.iter().map(|packet| packet.original_bytes).collect::<Vec<_>>(), [300_000; 2]);
    assert!(packets.iter().all(|packet| packet.comment == Some(&comment[..65_534])));
    let names: Vec<_> = reader.interfaces().iter().map(|interface| interface.name.unwrap().len()).collect();
    assert_eq!(names, [65_535, 0]);
}

#[test]
fn a_packet_needs_its_interface() {
    let mut out = Vec::new();
    let section = Section::begin(&mut out);
    let before = out.clone();
    let error = section.packet(&mut out, &PLAIN).unwrap_err();
    assert_eq!(error.to_string(), "byte 48 of the capture: interface is 0, expected one described before");
    assert_eq!(out, before);
}

/// 1,700,000,000.123456789 s as ticks of several lengths, and what is left of them.
#[test]
fn ticks_become_nanoseconds() {
    for order in [Order::Little, Order::Big] {
        let read = |options: &[u8], ticks| {
            let file =
                [order.section(u64::MAX, &[]), order.interface(0, options), order.packet(ticks, &[], 0, &[])];
            times(&file.concat())
        };
        let resolution = |value: u8| order.option(9, &[value]);
        assert_eq!(read(&[], 1_700_000_000_123_456), Ok(vec![1_700_000_000_123_456_000]), "microseconds");
        assert_eq!(read(&resolution(9), 1_700_000_000_123_456_789), Ok(vec![1_700_000_000_123_456_789]));
        assert_eq!(read(&resolution(0), 1_700_000_000), Ok(vec![1_700_000_000_000_000_000]));
        assert_eq!(read(&resolution(12), 1_999), Ok(vec![1]), "picoseconds are cut");
        assert_eq!(read(&resolution(127), u64::MAX), Ok(vec![0]));
        // 2^-10 s: 1537 ticks are 1.5009765625 s.
        assert_eq!(read(&resolution(0x80 | 10), 1537), Ok(vec![1_500_976_562]));
        assert_eq!(read(&resolution(0xff), u64::MAX), Ok(vec![0]));
        let offset = |seconds: i64| [resolution(9), order.option(14, &order.longer(seconds as u64))].concat();
        assert_eq!(read(&offset(3), 7), Ok(vec![3_000_000_007]));
        assert_eq!(read(&offset(-3), 3_000_000_007), Ok(vec![7]));
        for (options, ticks) in [(offset(-3), 7), (offset(i64::MAX), 0), (resolution(0), u64::MAX)] {
            assert!(read(&options, ticks).unwrap_err().contains("time is"), "{ticks}");
        }
    }
}

/// What another program may write: sections of both orders in one file, the length of the first told, kinds of blocks
/// and options that are not read here, padding that is not zero, several comments, a packet's other flags.
#[test]
fn other_programs_files_are_read() {
    for (order, other) in [(Order::Little, Order::Big), (Order::Big, Order::Little)] {
        let options = [
            order.option(0x0bad, b"custom!"),
            order.option(2, &order.long(0xffff_fe00 | 1)),
            order.option(1, "größer".as_bytes()),
            order.option(1, b"second"),
            order.option(0, &[]),
        ]
        .concat();
        let mut packet = order.packet(1, b"xyz", 9, &options);
        packet[31] = 0xaa;
        let inside = [
            order.block(5, &[1; 24]),
            order.interface(0, &[order.option(2, b"eth0"), order.option(12, b"Linux 6.1")].concat()),
            packet,
            order.block(0x8000_0001, b"private"),
        ]
        .concat();
        let section = order.section(inside.len() as u64, &order.option(2, b"hardware"));
        let next = [other.section(u64::MAX, &[]), other.interface(3, &[]), other.packet(2, b"xyz", 3, &[])];
        let file = [section, inside, next.concat()].concat();
        let mut reader = Reader::new(&file).unwrap();
        let first = reader.next().unwrap().unwrap();
        let expected = Captured {
            time_nanoseconds: 1_000,
            original_bytes: 9,
            bytes: b"xyz",
            direction: Some(Direction::Inbound),
            comment: Some("größer"),
            ..PLAIN
        };
        assert_eq!(first, expected);
        let [eth0] = reader.interfaces() else { panic!("one interface") };
        assert_eq!((eth0.name, eth0.link_type, eth0.snap_bytes), (Some("eth0"), LINK_ETHERNET, 0));
        let second = reader.next().unwrap().unwrap();
        assert_eq!((second.time_nanoseconds, second.direction, second.comment), (2_000, None, None));
        assert_eq!((reader.interfaces().len(), reader.interfaces()[0].snap_bytes), (1, 3));
        assert_eq!(reader.next(), None);
    }
}

/// What is wrong with a capture whose section of 28 bytes and interface of 20, which keeps 100 bytes, are right, and
/// which goes on like this: from byte 48 on. Big-endian.
fn wrong(rest: &[u8], place: usize, message: &str) {
    let begin = [Order::Big.section(u64::MAX, &[]), Order::Big.interface(100, &[])].concat();
    let good = [&begin[..], &Order::Big.packet(1, b"abc", 3, &[])].concat();
    assert_eq!((begin.len(), times(&good)), (48, Ok(vec![1_000])));
    let found = times(&[&begin, rest].concat());
    assert_eq!(found, Err(format!("byte {place} of the capture: {message}")));
}

#[test]
fn errors_of_blocks_say_where_and_what() {
    let order = Order::Big;
    wrong(&[0; 11], 48, "bytes left for a block is 11, expected 12 or more");
    let length = |value: u32| [order.long(6), order.long(value), [0; 4]].concat();
    for value in [0, 8, 13] {
        wrong(&length(value), 52, &format!("block length is {value}, expected a multiple of 4, 12 or more"));
    }
    wrong(&length(16), 52, "block length is 16, expected no more than the bytes left");
    wrong(&length(12), 56, "block length at its end is 0, expected that at its start");
    let bytes = "bytes between the lengths is";
    wrong(&order.block(6, &[0; 16]), 56, &format!("{bytes} 16, expected 20 or more in a packet's block"));
    let short = format!("{bytes} 4, expected 8 or more in an interface's description");
    wrong(&order.block(1, &[0; 4]), 56, &short);

    let captured = |bytes: u32| {
        format!(
            "captured length is {bytes}, expected no more than the block, the packet and the interface have"
        )
    };
    wrong(&order.packet(1, b"abc", 2, &[]), 68, &captured(3));
    wrong(&order.packet(1, &[0; 101], 200, &[]), 68, &captured(101));
    let mut long = order.packet(1, b"abc", 50, &[]);
    long[20..24].copy_from_slice(&order.long(50));
    wrong(&long, 68, &captured(50));
    long[8..12].copy_from_slice(&order.long(1));
    wrong(&long, 56, "interface is 1, expected one described before");
}

/// The options of a packet without bytes begin at 48 + 28 = 76, those of an interface at 64.
#[test]
fn errors_of_options_say_where_and_what() {
    let order = Order::Big;
    let options = |options: &[u8]| order.packet(1, &[], 0, options);
    let one = |code, value: &[u8]| options(&order.option(code, value));
    let cut = options(&[0, 1, 0, 5, 1, 2, 3, 4]);
    wrong(&cut, 78, "option length is 5, expected no more than the block has");
    wrong(&one(1, b"ab\xffd"), 82, "byte of a text is 255, expected UTF-8");
    wrong(&one(2, &[0; 3]), 78, "option length is 3, expected 4");
    wrong(&one(2, &order.long(3)), 80, "direction is 3, expected 0 to 2");
    wrong(&one(0, b"abcd"), 76, "bytes after the end of the options is 4, expected 0");
    let of_interface = |code| order.interface(0, &order.option(code, &[9, 9]));
    wrong(&of_interface(9), 66, "option length is 2, expected 1");
    wrong(&of_interface(14), 66, "option length is 2, expected 8");
}

#[test]
fn errors_of_sections_say_where_and_what() {
    let order = Order::Big;
    let section = order.section(u64::MAX, &[]);
    let mut magic = section.clone();
    // 002b3c4d, which is neither; read from its lower end it is 4d3c2b00.
    magic[8] = 0;
    wrong(&magic, 56, "byte-order magic is 1295788800, expected 0x1a2b3c4d");
    let mut version = section;
    version[13] = 2;
    wrong(&version, 60, "major version is 2, expected 1");
    let short = "bytes between the lengths is 4, expected 16 or more in a section's header";
    wrong(&order.block(0x0a0d_0d0a, &order.long(0x1a2b_3c4d)), 56, short);

    // Behind the header of 28 bytes there are 20.
    let sized = |length: u64| times(&[order.section(length, &[]), order.interface(0, &[])].concat());
    assert_eq!(sized(20), Ok(vec![]));
    let end = "of the capture: end of the section by its header is";
    assert_eq!(sized(16), Err(format!("byte 28 {end} 44, expected behind this block")));
    assert_eq!(sized(24), Err(format!("byte 48 {end} 52, expected where it ends")));

    let classic = Reader::new(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]).unwrap_err();
    let (field, found) = ("kind of the first block", 0xa1b2_c3d4);
    assert_eq!((classic.offset, classic.field, classic.found), (0, field, found));
    assert!(Reader::new(&[]).is_err());
}

#[test]
fn an_error_is_the_last_thing_that_is_said() {
    let order = Order::Little;
    let packet = order.packet(1, &[], 0, &[]);
    let file = [order.section(u64::MAX, &[]), order.interface(0, &[]), order.block(6, &[]), packet].concat();
    let mut reader = Reader::new(&file).unwrap();
    assert!(reader.next().unwrap().is_err());
    assert_eq!(reader.next(), None);
}

/// A packet as it may be asked to be written, of one of three interfaces.
#[derive(Debug, Clone)]
struct Asked {
    interface: u32,
    time_nanoseconds: u64,
    more_bytes: u32,
    bytes: Vec<u8>,
    direction: Option<Direction>,
    comment: Option<String>,
}

fn packets() -> impl Strategy<Value = Vec<Asked>> {
    let direction = prop_oneof![Just(None), Just(Some(Direction::Inbound)), Just(Some(Direction::Outbound))];
    let one = (
        (0u32..3, any::<u64>(), any::<u32>()),
        prop::collection::vec(any::<u8>(), 0..100),
        direction,
        prop::option::of(".{0,20}"),
    );
    let made = one.prop_map(|((interface, time_nanoseconds, more_bytes), bytes, direction, comment)| Asked {
        interface,
        time_nanoseconds,
        more_bytes,
        bytes,
        direction,
        comment,
    });
    prop::collection::vec(made, 0..20)
}

/// A capture of these packets by three interfaces with names of 0 to 3 bytes, and what should be read of it.
fn written<'a>(packets: &'a [Asked], snaps_bytes: [u32; 3]) -> (Vec<u8>, Vec<Captured<'a>>) {
    let mut out = Vec::new();
    let mut section = Section::begin(&mut out);
    for (number, snap_bytes) in snaps_bytes.into_iter().enumerate() {
        assert_eq!(section.interface(&mut out, &"abc"[..number], snap_bytes), number as u32);
    }
    let mut expected = Vec::new();
    for packet in packets {
        let captured = Captured {
            interface: packet.interface,
            time_nanoseconds: packet.time_nanoseconds,
            original_bytes: (packet.bytes.len() as u32).saturating_add(packet.more_bytes),
            bytes: &packet.bytes,
            direction: packet.direction,
            comment: packet.comment.as_deref(),
        };
        section.packet(&mut out, &captured).unwrap();
        let kept = packet.bytes.len().min(snaps_bytes[packet.interface as usize] as usize);
        expected.push(Captured { bytes: &packet.bytes[..kept], ..captured });
    }
    (out, expected)
}

proptest! {
    #[test]
    fn what_is_written_is_read(packets in packets(), snaps_bytes in prop::array::uniform3(1u32..120)) {
        let (out, expected) = written(&packets, snaps_bytes);
        prop_assert_eq!(out.len() % 4, 0);
        let mut reader = Reader::new(&out).unwrap();
        let found: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
        prop_assert_eq!(found, expected);
        let names: Vec<_> = reader.interfaces().iter().map(|each| (each.name, each.snap_bytes)).collect();
        let named: Vec<_> = ["", "a", "ab"].into_iter().map(Some).zip(snaps_bytes).collect();
        prop_assert_eq!(names, named);
    }

    /// Cut anywhere, a capture gives its first packets, and then an error unless it was cut between blocks.
    #[test]
    fn a_capture_that_is_cut_short_gives_its_beginning(packets in packets(), cut: prop::sample::Index) {
        let (out, expected) = written(&packets, [50; 3]);
        let bytes = &out[..cut.index(out.len() + 1)];
        let Ok(reader) = Reader::new(bytes) else {
            prop_assert!(bytes.len() < 48);
            return Ok(());
        };
        let found: Vec<_> = reader.collect();
        let good: Vec<_> = found.iter().filter_map(|each| each.ok()).collect();
        prop_assert_eq!(&good[..], &expected[..good.len()]);
        prop_assert!(found.len() - good.len() <= 1 && found.iter().rev().skip(1).all(Result::is_ok));
        if bytes.len() % 4 != 0 {
            prop_assert!(found.last().is_some_and(Result::is_err));
        }
    }

    #[test]
    fn hostile_bytes_never_panic(
        packets in packets(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        noise in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let (mut out, _) = written(&packets, [SNAP_BYTES_MAXIMUM; 3]);
        for (place, value) in damage {
            let place = place.index(out.len());
            out[place] = value;
        }
        out.extend(&noise);
        if let Ok(reader) = Reader::new(&out) {
            // A packet's block has 32 bytes or more; the last that is told may be an error.
            prop_assert!(reader.count() <= out.len() / 32 + 1);
        }
        prop_assert!(Reader::new(&noise).is_err());
    }
}
