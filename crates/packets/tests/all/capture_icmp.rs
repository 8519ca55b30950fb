//! ICMP and ICMPv6 errors, and what they quote.

use crate::wrapping::{ETHERNET_BYTES, Wrap, ethernet, ethertype, ip};
use framegauge_packets::build::{Addresses, TcpFields, tcp_frame, too_big_frame, udp_frame};
use framegauge_packets::capture::{Checksums, Decoded, IcmpNote, LinkType, Quoted, Record, Why, decode};
use framegauge_packets::checksum::{add, fold, pseudo_header};
use std::net::{IpAddr, SocketAddr};

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

fn addresses(v6: bool) -> Addresses {
    let (source, destination): (SocketAddr, SocketAddr) = if v6 {
        ("[2001:db8::1]:40000".parse().unwrap(), "[2001:db8::2]:5201".parse().unwrap())
    } else {
        ("10.77.0.1:40000".parse().unwrap(), "10.77.0.2:5201".parse().unwrap())
    };
    Addresses { source_mac: [2; 6], destination_mac: [4; 6], source, destination }
}

/// A frame of 1,000 bytes of payload without options.
fn sent(v6: bool) -> Vec<u8> {
    tcp_frame(&addresses(v6), &TcpFields { seq: 0xdead_beef, ..TcpFields::default() }, &[5; 1_000])
}

/// A frame with a message about another frame, of whose IP packet it quotes so many bytes.
fn message(v6: bool, head: [u8; 8], about: &[u8], quoted_bytes: usize) -> Vec<u8> {
    let quote = &about[ETHERNET_BYTES..][..quoted_bytes.min(about.len() - ETHERNET_BYTES)];
    let protocol = if v6 { ICMPV6 } else { ICMP };
    ethernet(ethertype(v6), &ip(v6, protocol, &[&head[..], quote].concat()))
}

fn decoded(frame: &[u8]) -> Decoded {
    let record = Record {
        number: 9,
        nanoseconds: 8,
        link: LinkType::Ethernet,
        interface: 0,
        captured: frame,
        original_bytes: frame.len() as u32,
    };
    decode(&record, Checksums::Ignore)
}

fn noted(frame: &[u8]) -> IcmpNote {
    match decoded(frame) {
        Decoded::Icmp(note) => note,
        other => panic!("{other:?}"),
    }
}

fn quoted(v6: bool) -> Quoted {
    let Addresses { source, destination, .. } = addresses(v6);
    Quoted { source, destination, seq: 0xdead_beef, ip_bytes: if v6 { 1_060 } else { 1_040 } }
}

/// What is built is read again: as long as asked, with the largest quote that fits, and with a right checksum.
#[test]
fn an_error_that_is_built_is_read_again() {
    for (v6, message_bytes) in [(false, 556), (true, 1_068), (false, 36)] {
        let router: SocketAddr = if v6 { "[2001:db8::9]:0" } else { "10.77.0.9:0" }.parse().unwrap();
        let back = Addresses { source: router, destination: addresses(v6).source, ..addresses(v6) };
        let frame = too_big_frame(&back, 1_400, &sent(v6), message_bytes);
        assert_eq!(frame.len(), ETHERNET_BYTES + if v6 { 40 } else { 20 } + message_bytes);
        let note = noted(&frame);
        assert!(note.is_too_big());
        assert_eq!((note.mtu, note.quoted), (Some(1_400), Some(quoted(v6))));
        let message = &frame[frame.len() - message_bytes..];
        let pseudo = match v6 {
            true => pseudo_header(router.ip(), back.destination.ip(), ICMPV6, message_bytes as u32),
            false => 0,
        };
        assert_eq!(fold(add(pseudo, message)), 0xffff);
    }
}

#[test]
fn too_big_tells_the_mtu_and_the_segment() {
    // Next-hop MTU 1,400 (0x578): the lower half of the second word, or all of it.
    for (v6, head) in [(false, [3, 4, 0, 0, 0xff, 0xff, 5, 0x78]), (true, [2, 0, 0, 0, 0, 0, 5, 0x78])] {
        let header = if v6 { 40 } else { 20 };
        for bytes in [header + 8, header + 20, 1_200] {
            let router: [IpAddr; 2] = if v6 {
                [[0xfd; 16].into(), [0xfe; 16].into()]
            } else {
                [[172, 16, 0, 1].into(), [172, 16, 0, 2].into()]
            };
            let expected = IcmpNote {
                nanoseconds: 8,
                number: 9,
                source: router[0],
                destination: router[1],
                kind: head[0],
                code: head[1],
                mtu: Some(1_400),
                quoted: Some(quoted(v6)),
            };
            let note = noted(&message(v6, head, &sent(v6), bytes));
            assert_eq!(note, expected);
            assert!(note.is_too_big());
        }
        let short = noted(&message(v6, head, &sent(v6), header + 7));
        assert_eq!((short.mtu, short.quoted), (Some(1_400), None), "a port, and half a sequence number");
    }
    let old = noted(&message(false, [3, 4, 0, 0, 0, 0, 0, 0], &sent(false), 28));
    assert_eq!((old.mtu, old.is_too_big()), (None, true), "a router from before RFC 1191");
}

#[test]
fn other_errors_have_type_and_code() {
    for (v6, kind, code) in [(false, 3, 1), (false, 3, 13), (false, 11, 0), (true, 1, 4), (true, 3, 0)] {
        let note = noted(&message(v6, [kind, code, 0, 0, 0, 0, 5, 0x78], &sent(v6), 100));
        assert_eq!((note.kind, note.code, note.mtu, note.quoted), (kind, code, None, Some(quoted(v6))));
        assert!(!note.is_too_big());
    }
    for (v6, kind) in [(false, 0), (false, 8), (true, 128), (true, 134)] {
        let protocol = if v6 { ICMPV6 } else { ICMP };
        let frame = message(v6, [kind, 0, 0, 0, 0, 0, 0, 0], &sent(v6), 100);
        assert_eq!(decoded(&frame), Decoded::Other(Why::NotTcp { protocol }));
    }
}

#[test]
fn only_tcp_is_quoted() {
    let head = [3, 4, 0, 0, 0, 0, 5, 0x78];
    let about = |frame: &[u8]| noted(&message(false, head, frame, 576)).quoted;
    assert_eq!(about(&udp_frame(&addresses(false), &[0; 100])), None);
    let mut fragment = sent(false);
    fragment[21] = 1;
    assert_eq!(about(&fragment), None);
    let mut version = sent(false);
    version[14] = 0x95;
    assert_eq!(about(&version), None);
    assert_eq!(about(&ethernet(0x0800, &[])), None);
    // What lies behind the message in the frame is not quoted.
    let mut padded = message(false, head, &sent(false), 20);
    padded.extend(&sent(false)[34..]);
    assert_eq!(noted(&padded).quoted, None);
}

/// A router in the underlay says that the outer packet does not fit: the segment inside is what a diagnosis looks for.
#[test]
fn quotes_are_looked_into_as_packets_are() {
    for v6 in [false, true] {
        let head = if v6 { [2, 0, 0, 0, 0, 0, 5, 0x78] } else { [3, 4, 0, 0, 0, 0, 5, 0x78] };
        for wrap in
            [Wrap::Vxlan { port: 8472, v6 }, Wrap::Ip { v6 }, Wrap::Geneve { words: 2, ethernet: true, v6 }]
        {
            for inner in [false, true] {
                let outer = wrap.around(&sent(inner));
                assert_eq!(noted(&message(v6, head, &outer, 200)).quoted, Some(quoted(inner)), "{wrap:?}");
            }
        }
        // And a message that itself comes through a tunnel.
        let tunnelled = Wrap::Vxlan { port: 4789, v6 }.around(&message(v6, head, &sent(v6), 100));
        assert_eq!(noted(&tunnelled).quoted, Some(quoted(v6)));
    }
}

#[test]
fn cut_anywhere_nothing_is_invented() {
    for v6 in [false, true] {
        let head = if v6 { [2, 0, 0, 0, 0, 0, 5, 0x78] } else { [3, 4, 0, 0, 0, 0, 5, 0x78] };
        let frame = message(v6, head, &sent(v6), 200);
        for kept in 0..frame.len() {
            let record = Record {
                number: 9,
                nanoseconds: 8,
                link: LinkType::Ethernet,
                interface: 0,
                captured: &frame[..kept],
                original_bytes: frame.len() as u32,
            };
            match decode(&record, Checksums::Ignore) {
                Decoded::Icmp(note) => {
                    assert_eq!(note.mtu, Some(1_400));
                    assert!(note.quoted.is_none_or(|found| found == quoted(v6)));
                }
                other => assert_eq!(other, Decoded::Other(Why::Cut)),
            }
        }
    }
}
