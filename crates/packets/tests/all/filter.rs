//! The filter, run as the kernel runs it, against packets of each kind.

use framegauge_packets::build::{Addresses, TcpFields, tcp_frame, udp_frame};
use framegauge_packets::filter::{Filter, Instruction, MOST_LEFT_OUT, MOST_PORTS};
use proptest::prelude::*;
use std::net::SocketAddr;

const NETWORK_HEADER: u32 = 0xfff0_0000;
const ETHERTYPE: u32 = 0xffff_f000;

/// What a program returns for a packet; `network`: where its network header begins. As in the kernel, a load beyond its
/// end returns 0.
fn run(program: &[Instruction], packet: &[u8], network: usize, ethertype: u16) -> u32 {
    let at = |place: u32, length: usize| -> Option<u32> {
        let place = if place >= NETWORK_HEADER {
            network + (place - NETWORK_HEADER) as usize
        } else {
            place as usize
        };
        let bytes = packet.get(place..place + length)?;
        Some(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    };
    let (mut a, mut x, mut place) = (0u32, 0u32, 0usize);
    loop {
        let (code, jump, otherwise, k) = program[place];
        place += 1;
        let loaded = match code {
            0x20 if k == ETHERTYPE => Some(u32::from(ethertype)),
            0x20 => at(k, 4),
            0x28 => at(k, 2),
            0x30 => at(k, 1),
            0x40 => at(k.wrapping_add(x), 4),
            0x48 => at(k.wrapping_add(x), 2),
            0xb1 => {
                let Some(byte) = at(k, 1) else { return 0 };
                x = 4 * (byte & 15);
                Some(a)
            }
            0x05 => {
                place += k as usize;
                Some(a)
            }
            0x15 => {
                place += usize::from(if a == k { jump } else { otherwise });
                Some(a)
            }
            0x45 => {
                place += usize::from(if a & k != 0 { jump } else { otherwise });
                Some(a)
            }
            0x06 => return k,
            _ => panic!("no such instruction: {code:#x}"),
        };
        let Some(value) = loaded else { return 0 };
        a = value;
    }
}

const SNAP: u32 = 192;

fn filter(ports: &[u16], left_out: &[(&str, &str)]) -> Filter {
    let end = |text: &str| -> SocketAddr { text.parse().expect("an address and a port") };
    Filter {
        ethernet: true,
        ports: ports.to_vec(),
        left_out: left_out.iter().map(|(one, other)| (end(one), end(other))).collect(),
        snap_bytes: SNAP,
    }
}

/// Whether it is taken, with an Ethernet header and without one.
fn takes(filter: &Filter, frame: &[u8]) -> bool {
    let ethertype = u16::from_be_bytes([frame[12], frame[13]]);
    let whole = run(&filter.program(), frame, 14, ethertype);
    let raw = Filter { ethernet: false, ..filter.clone() };
    assert_eq!(run(&raw.program(), &frame[14..], 0, ethertype), whole, "{filter:?}");
    assert!(whole == 0 || whole == filter.snap_bytes);
    whole > 0
}

fn addresses(source: &str, destination: &str) -> Addresses {
    Addresses {
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        source: source.parse().expect("an end"),
        destination: destination.parse().expect("an end"),
    }
}

fn tcp(source: &str, destination: &str) -> Vec<u8> {
    tcp_frame(&addresses(source, destination), &TcpFields::default(), b"payload")
}

fn udp(source: &str, destination: &str) -> Vec<u8> {
    udp_frame(&addresses(source, destination), b"payload")
}

const ENDS: [(&str, &str); 2] = [("10.0.0.1:40000", "10.0.0.2:22"), ("[fd00::1]:40000", "[fd00::2]:22")];

/// The place of the protocol in a frame of IPv4, or of IPv6.
fn with_protocol(mut frame: Vec<u8>, protocol: u8) -> Vec<u8> {
    let place = if frame[12] == 8 { 14 + 9 } else { 14 + 6 };
    frame[place] = protocol;
    frame
}

#[test]
fn what_bears_on_tcp_is_taken_and_the_rest_is_not() {
    let all = filter(&[], &[]);
    for (here, there) in ENDS {
        assert!(takes(&all, &tcp(here, there)));
        for port in [4789, 8472, 6081, 4754] {
            let tunnel = there.replace(":22", &format!(":{port}"));
            assert!(takes(&all, &udp(here, &tunnel)), "{port}");
        }
        assert!(!takes(&all, &udp(here, there)), "other datagrams fill a ring for nothing");
        let icmp = if here.starts_with('[') { 58 } else { 1 };
        for (protocol, taken) in [(icmp, true), (4, true), (41, true), (47, true), (2, false), (89, false)] {
            assert_eq!(takes(&all, &with_protocol(tcp(here, there), protocol)), taken, "{protocol}");
        }
    }
    for extension in [0, 43, 44, 60] {
        assert!(takes(&all, &with_protocol(tcp(ENDS[1].0, ENDS[1].1), extension)));
    }
    let mut other = tcp(ENDS[0].0, ENDS[0].1);
    for (ethertype, taken) in [(0x0806u16, false), (0x88cc, false), (0x8100, true), (0x88a8, true)] {
        other[12..14].copy_from_slice(&ethertype.to_be_bytes());
        assert_eq!(takes(&all, &other), taken, "{ethertype:#x}");
    }
}

#[test]
fn ports_are_those_of_either_end_whatever_the_header_length() {
    let some = filter(&[5432, 22], &[]);
    for (here, there) in ENDS {
        assert!(takes(&some, &tcp(here, there)) && takes(&some, &tcp(there, here)));
        let other = there.replace(":22", ":23");
        assert!(!takes(&some, &tcp(here, &other)) && !takes(&some, &tcp(&other, here)));
        let icmp = if here.starts_with('[') { 58 } else { 1 };
        assert!(takes(&some, &with_protocol(tcp(here, &other), icmp)), "it may tell of the path MTU");
        assert!(!takes(&some, &udp(here, &there.replace(":22", ":4789"))));
    }
    // 8 bytes of options of IPv4 between the addresses and the ports.
    for (port, taken) in [(":22", true), (":23", false)] {
        let mut frame = tcp(ENDS[0].0, &ENDS[0].1.replace(":22", port));
        frame[14] = 0x47;
        frame.splice(34..34, [1; 8]);
        assert_eq!(takes(&some, &frame), taken);
    }
    let mut later = tcp(ENDS[0].0, &ENDS[0].1.replace(":22", ":23"));
    later[14 + 7] = 100;
    assert!(takes(&some, &later), "a later fragment has no ports");
}

#[test]
fn a_connection_that_is_left_out_is_the_only_one() {
    for (here, there) in ENDS {
        for pairs in
            [vec![(here, there)], vec![("192.0.2.1:1", "192.0.2.2:2"), (there, here), ("[::1]:1", "[::2]:2")]]
        {
            let without = filter(&[], &pairs);
            assert!(!takes(&without, &tcp(here, there)) && !takes(&without, &tcp(there, here)));
            for (one, other) in [
                (here.replace(":40000", ":40001"), there.to_string()),
                (here.to_string(), there.replace(":22", ":2222")),
                (here.replace("1:4", "3:4").replace("1]", "3]"), there.to_string()),
                (here.to_string(), there.replace("2:2", "3:2").replace("2]", "3]")),
            ] {
                assert!(
                    takes(&without, &tcp(&one, &other)) && takes(&without, &tcp(&other, &one)),
                    "{one} {other}"
                );
            }
        }
    }
}

#[test]
fn the_longest_program_is_one_that_the_kernel_takes() {
    let pair = (ENDS[1].0, ENDS[1].1);
    let ports: Vec<u16> = (1..=MOST_PORTS as u16).collect();
    let longest = filter(&ports, &vec![pair; MOST_LEFT_OUT]);
    assert!(longest.program().len() <= 4096, "{}", longest.program().len());
    assert!(!takes(&longest, &tcp(pair.0, pair.1)));
}

proptest! {
    /// Every program ends for every packet, and takes all of it or nothing.
    #[test]
    fn it_ends_for_any_bytes(
        bytes in proptest::collection::vec(any::<u8>(), 14..120), ethertype in prop_oneof![Just(0x0800u16), Just(0x86dd), any::<u16>()],
        ports in proptest::collection::vec(any::<u16>(), 0..4), network in 0usize..14,
    ) {
        let mut bytes = bytes;
        bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
        for ethernet in [true, false] {
            let some = Filter { ethernet, ..filter(&ports, &ENDS) };
            let found = run(&some.program(), &bytes, if ethernet { 14 } else { network }, ethertype);
            prop_assert!(found == 0 || found == SNAP);
        }
    }
}
