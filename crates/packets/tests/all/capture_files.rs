//! The streaming reader: files worked out by hand from draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.

use crate::blocks::{Order, pad};
use framegauge_packets::capture::{
    CaptureLoss, Checksums, LinkType, PACKET_BYTES_MAXIMUM, Reader, Record, decode,
};
use framegauge_packets::pcapng::{self, Captured, Section};
use proptest::prelude::*;
use std::io::{Error, ErrorKind, Read};

const ORDERS: [Order; 2] = [Order::Little, Order::Big];

/// A record that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owned {
    nanoseconds: i64,
    link: LinkType,
    interface: u32,
    bytes: Vec<u8>,
    original_bytes: u32,
}

fn owned(record: &Record<'_>) -> Owned {
    let &Record { nanoseconds, link, interface, captured, original_bytes, .. } = record;
    Owned { nanoseconds, link, interface, bytes: captured.to_vec(), original_bytes }
}

/// All packets, and the error at the end if there is one.
fn read(input: impl Read) -> (Vec<Owned>, Option<String>) {
    let mut reader = match Reader::new(input) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error.to_string())),
    };
    let mut found = Vec::new();
    loop {
        match reader.next() {
            Ok(Some(record)) => {
                assert_eq!(record.number, found.len() as u64 + 1);
                found.push(owned(&record));
            }
            Ok(None) => return (found, None),
            Err(error) => {
                assert_eq!(reader.next(), Ok(None), "an error is the last thing that is said");
                return (found, Some(error.to_string()));
            }
        }
    }
}

fn times(bytes: &[u8]) -> Vec<i64> {
    let (found, error) = read(bytes);
    assert_eq!(error, None);
    found.iter().map(|record| record.nanoseconds).collect()
}

/// Gives a few bytes at a time, and is interrupted before each.
struct Dribble<'a> {
    rest: &'a [u8],
    step: usize,
    is_interrupted: bool,
}

impl Read for Dribble<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        self.is_interrupted = !self.is_interrupted;
        if self.is_interrupted {
            return Err(Error::from(ErrorKind::Interrupted));
        }
        let step = self.step.min(out.len());
        self.rest.read(&mut out[..step])
    }
}

fn dribble(rest: &[u8], step: usize) -> Dribble<'_> {
    Dribble { rest, step, is_interrupted: false }
}

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;

/// The header of a pcap file: magic, version 2.4, two fields that nobody uses, snap length, link type.
fn pcap(order: Order, magic: u32, link_type: u32) -> Vec<u8> {
    let long = |value| order.long(value);
    [&long(magic)[..], &order.word(2), &order.word(4), &[0; 8], &long(262_144), &long(link_type)].concat()
}

fn pcap_packet(order: Order, time: (u32, u32), bytes: &[u8], original_bytes: u32) -> Vec<u8> {
    let numbers = [time.0, time.1, bytes.len() as u32, original_bytes];
    let mut packet: Vec<u8> = numbers.into_iter().flat_map(|number| order.long(number)).collect();
    packet.extend(bytes);
    packet
}

#[test]
fn pcap_of_every_kind_is_read() {
    for order in ORDERS {
        for (magic, fraction, more) in
            [(MICROSECONDS, 123_456, 0), (NANOSECONDS, 123_456_000, 0), (MODIFIED, 123_456, 8)]
        {
            let mut packet = pcap_packet(order, (1_700_000_000, fraction), b"abcde", 1514);
            packet.splice(16..16, vec![0xee; more]);
            let second = pcap_packet(order, (u32::MAX, 0), &vec![7; more], 0);
            let file = [pcap(order, magic, 0x0400_0071), packet, second].concat();
            let (found, error) = read(&file[..]);
            let first = Owned {
                nanoseconds: 1_700_000_000_123_456_000,
                link: LinkType::LinuxCooked,
                interface: 0,
                bytes: b"abcde".to_vec(),
                original_bytes: 1514,
            };
            assert_eq!(found[0], first);
            match more {
                0 => assert_eq!((found[1].nanoseconds, error), (4_294_967_295_000_000_000, None)),
                // Its header is cut short by eight bytes less than the captured bytes say.
                _ => assert!(
                    error.unwrap().ends_with("captured length is 8, expected no more than the bytes left")
                ),
            }
            let reader = Reader::new(&file[..]).unwrap();
            assert_eq!((reader.interfaces()[0].link_type, reader.interfaces()[0].snap_bytes), (113, 262_144));
            assert_eq!(reader.loss(), CaptureLoss::default());
        }
    }
}

#[test]
fn what_is_no_capture_is_one_clear_error() {
    let wrong = |bytes: &[u8], message: &str| {
        assert_eq!(read(bytes), (vec![], Some(message.to_owned())), "{bytes:?}");
    };
    wrong(&[], "byte 0 of the capture: bytes of the capture is 0, expected 24 or more");
    wrong(&[0xa1, 0xb2, 0xc3], "byte 0 of the capture: bytes of the capture is 3, expected 24 or more");
    let magic = "expected 0xa1b2c3d4 of pcap or 0x0a0d0d0a of pcapng";
    wrong(&[0; 100], &format!("byte 0 of the capture: magic number is 0x00000000, {magic}"));
    wrong(b"GET / HTTP/1.1\r\n\r\n", &format!("byte 0 of the capture: magic number is 0x47455420, {magic}"));
    wrong(
        &[0x1f, 0x8b, 8, 0, 0],
        "byte 0 of the capture: magic number, that of a compressed file, is 0x1f8b0800, expected that of pcap or \
         pcapng: unpack it first",
    );
    for order in ORDERS {
        let header = pcap(order, MICROSECONDS, 1);
        wrong(&header[..23], "byte 0 of the capture: bytes of the capture is 23, expected 24 or more");
        let mut version = header;
        version[4..6].copy_from_slice(&order.word(3));
        wrong(&version, "byte 4 of the capture: major version is 3, expected 2");
        let links =
            "expected one that is read: 0 108 1 9 50 10 12 14 101 228 229 51 104 105 107 113 127 192 239 276";
        wrong(&pcap(order, NANOSECONDS, 147), &format!("byte 20 of the capture: link type is 147, {links}"));
        let file = [
            order.section(u64::MAX, &[]),
            order.interface_of(147, 0, &[]),
            order.interface(0, &[]),
            order.packet_of(1, 1, b"abc", 3, &[]),
            order.packet(2, b"abc", 3, &[]),
        ];
        let message = format!("byte 112 of the capture: link type of the packet's interface is 147, {links}");
        let (found, error) = read(&file.concat()[..]);
        assert_eq!((found.len(), error), (1, Some(message)), "only packets of that interface are in the way");
    }
}

#[test]
fn a_file_without_packets_is_no_error() {
    for order in ORDERS {
        assert_eq!(times(&pcap(order, MICROSECONDS, 1)), [0; 0]);
        assert_eq!(times(&order.section(u64::MAX, &[])), [0; 0]);
    }
}

/// All packets before the break, then where it is.
#[test]
fn a_file_that_breaks_gives_what_was_before() {
    for order in ORDERS {
        let packet = pcap_packet(order, (1, 2), b"abcd", 4);
        let file = [pcap(order, MICROSECONDS, 1), packet.clone(), packet].concat();
        for cut in 25..file.len() {
            let (found, error) = read(&file[..cut]);
            let (whole, left) = ((cut - 24) / 20, (cut - 24) % 20);
            assert_eq!(found.len(), whole);
            let start = 24 + 20 * whole;
            let expected = match left {
                0 => None,
                1..16 => Some(format!(
                    "byte {start} of the capture: bytes left for a packet's header is {left}, expected 16 or more"
                )),
                _ => Some(format!(
                    "byte {} of the capture: captured length is 4, expected no more than the bytes left",
                    start + 8
                )),
            };
            assert_eq!(error, expected);
        }
        let begin = [order.section(u64::MAX, &[]), order.interface(0, &[])].concat();
        let packet = order.packet(1, b"abcd", 4, &[]);
        let file = [&begin[..], &packet, &packet].concat();
        assert_eq!((begin.len(), packet.len()), (48, 36));
        for cut in 48..file.len() {
            let (found, error) = read(&file[..cut]);
            let (whole, left) = ((cut - 48) / 36, (cut - 48) % 36);
            assert_eq!(found.len(), whole);
            let start = 48 + 36 * whole;
            let expected = match left {
                0 => None,
                1..12 => Some(format!(
                    "byte {start} of the capture: bytes left for a block is {left}, expected 12 or more"
                )),
                _ => Some(format!(
                    "byte {} of the capture: block length is 36, expected no more than the bytes left",
                    start + 4
                )),
            };
            assert_eq!(error, expected);
        }
    }
}

#[test]
fn lengths_that_lie_are_refused() {
    for order in ORDERS {
        let begin = [order.section(u64::MAX, &[]), order.interface(0, &[])].concat();
        let lying = |length: u32| [order.long(6), order.long(length), [0; 4]].concat();
        let error = |rest: &[u8]| read(&[&begin[..], rest].concat()[..]).1.unwrap();
        let most = PACKET_BYTES_MAXIMUM;
        assert_eq!(
            error(&lying(most + 4)),
            "byte 52 of the capture: block length is 16777220, expected 16777216 or less"
        );
        assert_eq!(
            error(&lying(most)),
            "byte 52 of the capture: block length is 16777216, expected no more than the bytes left"
        );
        assert_eq!(
            error(&lying(13)),
            "byte 52 of the capture: block length is 13, expected a multiple of 4, 12 or more"
        );
        let mut end = order.packet(1, b"abc", 3, &[]);
        end[32..].copy_from_slice(&order.long(40));
        assert_eq!(
            error(&end),
            "byte 80 of the capture: block length at its end is 40, expected that at its start"
        );
        let mut long = order.packet(1, b"abc", 3, &[]);
        long[20..24].copy_from_slice(&order.long(5));
        assert_eq!(
            error(&long),
            "byte 68 of the capture: captured length is 5, expected no more than the block has"
        );
        assert_eq!(
            error(&order.packet_of(1, 1, b"", 0, &[])),
            "byte 56 of the capture: interface is 1, expected one described before"
        );

        let mut packet = pcap_packet(order, (0, 0), &[], 0);
        packet[8..12].copy_from_slice(&order.long(most + 1));
        let file = [pcap(order, MICROSECONDS, 1), packet].concat();
        assert_eq!(
            read(&file[..]).1.unwrap(),
            "byte 32 of the capture: captured length is 16777217, expected 16777216 or less"
        );
    }
}

#[test]
fn big_packets_fit() {
    let big = vec![3; PACKET_BYTES_MAXIMUM as usize - 32];
    for order in ORDERS {
        let small = order.packet(1, b"abc", 3, &[]);
        let file = [
            order.section(u64::MAX, &[]),
            order.interface(0, &[]),
            small.clone(),
            order.packet(2, &big, big.len() as u32, &[]),
            small,
        ];
        let (found, error) = read(&file.concat()[..]);
        let lengths: Vec<usize> = found.iter().map(|record| record.bytes.len()).collect();
        assert_eq!((lengths, error), (vec![3, big.len(), 3], None));
        let aggregate = pcap_packet(order, (0, 0), &[7; 524_288], 524_288);
        let file = [pcap(order, MICROSECONDS, 1), aggregate.clone(), aggregate].concat();
        assert_eq!(times(&file), [0, 0]);
    }
}

/// Sections of both orders, interfaces of several kinds, every kind of packet block, and blocks that are passed over.
fn everything(order: Order, other: Order) -> Vec<u8> {
    let resolution = |value: u8| order.option(9, &[value]);
    let simple = [&order.long(6)[..], &pad(b"abcd")].concat();
    let obsolete = {
        let head: Vec<u8> =
            [0, 3_000_000_000, 2, 9].into_iter().flat_map(|value| order.long(value)).collect();
        [&order.word(2)[..], &order.word(5), &head, &pad(b"xy"), &order.option(2, &[0; 4])].concat()
    };
    let statistics = |interface: u32, dropped: u64| {
        let options =
            [order.option(5, &order.longer(dropped)), order.option(7, &order.longer(1)), vec![0; 4]];
        order.block(5, &[&order.long(interface)[..], &[0; 8], &options.concat()].concat())
    };
    let dropped = order.option(4, &order.longer(40));
    [
        // It says nothing true of its length, as it was cut by some program.
        order.section(12, &order.option(4, b"other")),
        order.interface_of(1, 4, &[order.option(2, b"eth0"), order.option(12, b"Linux")].concat()),
        order.interface_of(101, 0, &resolution(9)),
        order.interface_of(276, 0, &[resolution(0), order.option(14, &order.longer(-1i64 as u64))].concat()),
        order.block(10, &[1; 24]),
        order.packet_of(1, 77, b"raw", 3, &dropped),
        statistics(0, 3),
        order.block(3, &simple),
        order.block(2, &obsolete),
        order.block(0x8000_0bad, b"private"),
        statistics(0, 8),
        statistics(2, 100),
        other.section(u64::MAX, &[]),
        other.interface_of(113, 2, &[]),
        // More than its interface keeps, and more than it had.
        other.packet(5, b"abc", 2, &[]),
    ]
    .concat()
}

#[test]
fn everything_that_pcapng_has_is_read() {
    for (order, other) in [(Order::Little, Order::Big), (Order::Big, Order::Little)] {
        let file = everything(order, other);
        let mut reader = Reader::new(dribble(&file, 7)).unwrap();
        let mut found = Vec::new();
        while let Ok(Some(record)) = reader.next() {
            found.push(owned(&record));
        }
        let record = |nanoseconds, link, interface, bytes: &[u8], original_bytes| Owned {
            nanoseconds,
            link,
            interface,
            bytes: bytes.to_vec(),
            original_bytes,
        };
        let expected = [
            record(77, LinkType::Ip, 1, b"raw", 3),
            record(0, LinkType::Ethernet, 0, b"abcd", 6),
            record(2_999_999_999_000_000_000, LinkType::LinuxCooked2, 2, b"xy", 9),
            record(5_000, LinkType::LinuxCooked, 3, b"abc", 3),
        ];
        assert_eq!(found, expected);
        assert_eq!(reader.untimed_packets(), 1);
        let names: Vec<_> = reader.interfaces().iter().map(|each| each.name.as_deref()).collect();
        assert_eq!(names, [Some("eth0"), None, None, None]);
        let loss = reader.loss();
        let told =
            CaptureLoss { interface_drops: Some(108), system_drops: Some(2), before_packets: Some(45) };
        assert_eq!((loss, loss.packets()), (told, Some(110)));
        assert_eq!(read(&file[..]), (expected.to_vec(), None));
    }
}

#[test]
fn ticks_of_every_length() {
    for order in ORDERS {
        let read = |value: u8, ticks| {
            let file = [
                order.section(u64::MAX, &[]),
                order.interface(0, &order.option(9, &[value])),
                order.packet(ticks, &[], 0, &[]),
            ];
            read(&file.concat()[..])
        };
        for (resolution, ticks, nanoseconds) in [
            (0, 3, 3_000_000_000),
            (3, 3, 3_000_000),
            (9, i64::MAX as u64, i64::MAX),
            (12, 1_999, 1),
            (0x80 | 10, 1537, 1_500_976_562),
            (0x80 | 0x7f, u64::MAX, 0),
        ] {
            assert_eq!(read(resolution, ticks).0[0].nanoseconds, nanoseconds, "{resolution}");
        }
        let late = read(9, i64::MAX as u64 + 1).1.unwrap();
        assert!(late.ends_with("time is 9223372036854775808, expected one between 1677 and 2262"), "{late}");
    }
}

#[test]
fn a_read_that_fails_is_told() {
    struct Broken(usize);
    impl Read for Broken {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            match self.0 {
                0 => Err(Error::from_raw_os_error(5)),
                left => {
                    self.0 = 0;
                    out[..left].copy_from_slice(&pcap(Order::Little, MICROSECONDS, 1)[..left]);
                    Ok(left)
                }
            }
        }
    }
    let message = |at| {
        format!("byte {at} of the capture: the system's error number while reading is 5, expected no error")
    };
    assert_eq!(read(Broken(10)), (vec![], Some(message(10))));
    assert_eq!(read(Broken(24)), (vec![], Some(message(24))));
}

/// Our own captures, read by both readers.
#[test]
fn both_readers_agree_on_what_is_written() {
    let mut out = Vec::new();
    let mut section = Section::begin(&mut out);
    section.interface(&mut out, "h1>s", 64);
    section.interface(&mut out, "s>h2", 100);
    for number in 0..1_000u32 {
        let bytes = vec![number as u8; (number % 200) as usize];
        let packet = Captured {
            interface: number % 2,
            time_nanoseconds: 1_700_000_000_000_000_000 + u64::from(number),
            original_bytes: bytes.len() as u32,
            bytes: &bytes,
            direction: None,
            comment: number.is_multiple_of(3).then_some("taildrop"),
        };
        section.packet(&mut out, &packet).unwrap();
    }
    let in_memory: Vec<Owned> = pcapng::Reader::new(&out)
        .unwrap()
        .map(Result::unwrap)
        .map(|packet| Owned {
            nanoseconds: packet.time_nanoseconds as i64,
            link: LinkType::Ethernet,
            interface: packet.interface,
            bytes: packet.bytes.to_vec(),
            original_bytes: packet.original_bytes,
        })
        .collect();
    assert_eq!(in_memory.len(), 1_000);
    assert_eq!(read(&out[..]), (in_memory, None));
}

/// Packets of one file: interface, time, bytes, bytes that were not kept.
fn packets() -> impl Strategy<Value = Vec<(u32, u64, Vec<u8>, u32)>> {
    let one = (0u32..3, 0u64..1 << 62, prop::collection::vec(any::<u8>(), 0..120), 0u32..100_000);
    prop::collection::vec(one, 0..20)
}

/// A pcapng or pcap file of these, in one byte order, and what should be read.
fn written(order: Order, is_pcapng: bool, packets: &[(u32, u64, Vec<u8>, u32)]) -> (Vec<u8>, Vec<Owned>) {
    let (mut file, mut expected) = (Vec::new(), Vec::new());
    if is_pcapng {
        file.extend(order.section(u64::MAX, &[]));
        (0..3).for_each(|_| file.extend(order.interface(0, &order.option(9, &[9]))));
    } else {
        file.extend(pcap(order, NANOSECONDS, 1));
    }
    for (interface, time, bytes, more) in packets {
        let original_bytes = bytes.len() as u32 + more;
        let seconds = time >> 32;
        let (interface, nanoseconds) = if is_pcapng {
            file.extend(order.packet_of(*interface, *time, bytes, original_bytes, &[]));
            (*interface, *time as i64)
        } else {
            let fraction = (time % 1_000_000_000) as u32;
            file.extend(pcap_packet(order, (seconds as u32, fraction), bytes, original_bytes));
            (0, seconds as i64 * 1_000_000_000 + i64::from(fraction))
        };
        let bytes = bytes.clone();
        expected.push(Owned { nanoseconds, link: LinkType::Ethernet, interface, bytes, original_bytes });
    }
    (file, expected)
}

proptest! {
    #[test]
    fn what_is_written_is_read(packets in packets(), big in any::<bool>(), is_pcapng in any::<bool>(), step in 1usize..50) {
        let (file, expected) = written(ORDERS[usize::from(big)], is_pcapng, &packets);
        prop_assert_eq!(read(&file[..]), (expected.clone(), None));
        prop_assert_eq!(read(dribble(&file, step)), (expected, None));
    }

    /// Cut anywhere, damaged or not: no panic, one error at most, and the same however the bytes come.
    #[test]
    fn hostile_files_never_panic(
        packets in packets(),
        (big, is_pcapng, step) in any::<(bool, bool, u8)>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let (mut file, _) = written(ORDERS[usize::from(big)], is_pcapng, &packets);
        for (place, value) in damage {
            let place = place.index(file.len());
            file[place] = value;
        }
        let file = &file[..cut.index(file.len() + 1)];
        let (found, error) = read(file);
        prop_assert!(found.len() <= file.len() / 16);
        prop_assert_eq!(read(dribble(file, usize::from(step) + 1)), (found, error));
    }

    #[test]
    fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..200), begin in 0usize..4) {
        let headers = [pcap(Order::Big, MODIFIED, 1), pcap(Order::Little, NANOSECONDS, 0), Order::Little.section(0, &[])];
        let bytes = [headers.get(begin).map_or(&[][..], |header| header), &noise].concat();
        if let Ok(mut reader) = Reader::new(&bytes[..]) {
            while let Ok(Some(record)) = reader.next() {
                let _ = decode(&record, Checksums::Verify);
            }
        }
    }
}
