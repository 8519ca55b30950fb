//! Merging against what it must undo: segmentation, and against what it must leave alone.

use std::collections::BTreeMap;

use crate::common::{Case, Up, case, frames, merge, whole, with_class};
use framegauge_packets::build::{Addresses, TcpFields, tcp_frame, timestamp_options, udp_frame};
use framegauge_packets::{CONTEXTS, PIECES_MAXIMUM, TcpFlags, VirtioNetHeader, checksum, parse};
use proptest::prelude::*;

/// A packet as a TAP hands it over.
type Sent = (VirtioNetHeader, Vec<u8>);

const ACK: TcpFlags = TcpFlags::ACK;
const ACK_PSH: TcpFlags = TcpFlags::ACK.with(TcpFlags::PSH);

fn addresses(port: u16, v6: bool) -> Addresses {
    let socket = |host: u8, port: u16| match v6 {
        true => ([0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host], port).into(),
        false => ([10, 77, 0, host], port).into(),
    };
    Addresses {
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        source: socket(1, port),
        destination: socket(2, 5201),
    }
}

/// A frame whose checksum its sender left to its NIC.
fn unfinished(frame: Vec<u8>) -> Sent {
    let packet = parse(&frame).unwrap();
    let transport = packet.header_bytes() - packet.tcp().map_or(0, |tcp| tcp.header_bytes());
    let vnet = VirtioNetHeader {
        flags: VirtioNetHeader::NEEDS_CSUM,
        checksum_start: transport as u16,
        checksum_offset: 16,
        ..Default::default()
    };
    (vnet, frame)
}

/// Frame number `index` of a flow that sends `bytes` in each.
fn segment(index: u32, bytes: usize, flags: TcpFlags) -> TcpFields {
    TcpFields {
        seq: 1_000 + index * bytes as u32,
        ack: 7,
        flags,
        options: timestamp_options(5, 6),
        identification: 100 + index as u16,
        ..TcpFields::default()
    }
}

fn plain(port: u16, index: u32, bytes: usize, flags: TcpFlags) -> Sent {
    let payload: Vec<u8> = (0..bytes).map(|at| (at as u32 * 7 + index) as u8).collect();
    unfinished(tcp_frame(&addresses(port, false), &segment(index, bytes, flags), &payload))
}

fn sizes(up: &[Up]) -> Vec<u16> {
    up.iter().map(|up| up.frames).collect()
}

#[test]
fn four_reads_become_one_aggregate() {
    let mut fields: Vec<TcpFields> = (0..4).map(|index| segment(index, 1448, ACK)).collect();
    (fields[3].ack, fields[3].options, fields[3].flags) = (99, timestamp_options(8, 9), ACK_PSH);
    let sent: Vec<_> =
        fields.iter().map(|fields| unfinished(tcp_frame(&addresses(1, false), fields, &[3; 1448]))).collect();
    let up = merge(&sent, 100);
    assert_eq!(sizes(&up), [4]);
    let expected = VirtioNetHeader {
        flags: VirtioNetHeader::NEEDS_CSUM,
        gso_type: VirtioNetHeader::GSO_TCPV4,
        header_bytes: 66,
        gso_bytes: 1448,
        checksum_start: 34,
        checksum_offset: 16,
    };
    assert_eq!(up[0].vnet, expected);
    let packet = parse(&up[0].bytes).unwrap();
    let tcp = packet.tcp().unwrap();
    assert_eq!((tcp.seq(), tcp.ack(), tcp.flags(), tcp.payload().len()), (1_000, 99, ACK_PSH, 4 * 1448));
    assert_eq!(up[0].bytes[54..66], timestamp_options(8, 9));
    assert_eq!(checksum::internet_checksum(&up[0].bytes[14..34]), 0);
    // The identification is that of the first frame.
    assert_eq!(up[0].bytes[18..20], [0, 100]);
}

#[test]
fn nothing_is_merged_across_interrupts() {
    let sent: Vec<_> = (0..7).map(|index| plain(1, index, 100, ACK)).collect();
    assert_eq!(sizes(&merge(&sent, 3)), [3, 3, 1]);
    let alone = merge(&sent, 1);
    assert_eq!(sizes(&alone), [1; 7]);
    assert!(alone.iter().zip(&sent).all(|(up, (vnet, frame))| up.vnet == *vnet && up.bytes == *frame));
}

#[test]
fn psh_and_a_short_frame_end_an_aggregate() {
    let mut sent: Vec<_> = (0..6).map(|index| plain(1, index, 100, ACK)).collect();
    sent[2] = plain(1, 2, 100, ACK_PSH);
    assert_eq!(sizes(&merge(&sent, 100)), [3, 3]);
    let mut fields = segment(3, 100, ACK);
    sent[3] = unfinished(tcp_frame(&addresses(1, false), &fields, &[0; 60]));
    fields.seq += 60;
    sent[4] =
        unfinished(tcp_frame(&addresses(1, false), &TcpFields { identification: 104, ..fields }, &[0; 100]));
    assert_eq!(sizes(&merge(&sent[..5], 100)), [3, 1, 1]);
}

/// Bytes of the second frame (Ethernet 14, IPv4 20, TCP 32) that make it another kind of frame.
#[test]
fn what_differs_is_not_merged() {
    let sent = [plain(1, 0, 100, ACK), plain(1, 1, 100, ACK)];
    assert_eq!(sizes(&merge(&sent, 9)), [2]);
    let at = [
        (0, "destination MAC"),
        (11, "source MAC"),
        (15, "TOS"),
        (19, "identification"),
        (20, "do not fragment"),
        (22, "TTL"),
        (26, "source"),
        (33, "destination"),
        (34, "source port"),
        (37, "destination port"),
        (41, "sequence number"),
        (46, "header length"),
        (47, "flags"),
        (53, "urgent pointer"),
        (54, "option"),
    ];
    for (place, what) in at {
        let mut sent = sent.clone();
        sent[1].1[place] ^= 0x42;
        let sum = |frame: &mut Vec<u8>| {
            frame[24..26].copy_from_slice(&[0; 2]);
            let sum = checksum::internet_checksum(&frame[14..34]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        };
        sum(&mut sent[1].1);
        let up = merge(&sent, 9);
        assert_eq!(sizes(&up), [1, 1], "{what}");
        let mut bytes: Vec<_> = up.into_iter().map(|up| up.bytes).collect();
        bytes.sort();
        let mut expected: Vec<_> = sent.iter().map(|(_, frame)| frame.clone()).collect();
        expected.sort();
        assert_eq!(bytes, expected, "{what}");
    }
}

/// One bit of ECN is enough: in an aggregate a mark would be told of all of its frames, or of none.
#[test]
fn a_mark_is_told_of_its_frame_alone() {
    let (ect0, ce) = (0b10, 0b11);
    for v6 in [false, true] {
        let sent: Vec<_> = (0..6)
            .map(|index| {
                let frame = tcp_frame(&addresses(1, v6), &segment(index, 100, ACK), &[0; 100]);
                with_class(unfinished(frame), if index == 2 { ce } else { ect0 }, false)
            })
            .collect();
        let up = merge(&sent, 9);
        assert_eq!(sizes(&up), [2, 1, 3]);
        let classes: Vec<_> =
            up.iter().map(|up| parse(&up.bytes).unwrap().traffic_class().unwrap().0).collect();
        assert_eq!(classes, [ect0, ce, ect0]);
    }
}

#[test]
fn only_trusted_whole_segments_are_merged() {
    let sent = [plain(1, 0, 100, ACK), plain(1, 1, 100, ACK), plain(1, 2, 100, ACK)];
    let with = |change: &dyn Fn(&mut Sent)| {
        let mut sent = sent.clone();
        change(&mut sent[1]);
        sizes(&merge(&sent, 9))
    };
    assert_eq!(with(&|frame| frame.0.flags = VirtioNetHeader::DATA_VALID), [3]);
    assert_eq!(with(&|frame| frame.0.flags = 0), [1, 1, 1], "a checksum that nobody has verified");
    assert_eq!(with(&|frame| frame.0.checksum_start = 0), [1, 1, 1], "a checksum of something else");
    assert_eq!(with(&|frame| frame.1[24] ^= 1), [1, 1, 1], "a damaged IP header");
    assert_eq!(with(&|frame| frame.1.extend([0; 6])), [1, 1, 1], "padding");
    assert_eq!(with(&|frame| *frame = plain(1, 1, 0, ACK)), [1, 1, 1], "no payload");
    assert_eq!(with(&|frame| *frame = plain(1, 1, 100, ACK.with(TcpFlags::ECE))), [1, 1, 1], "ECN echo");
    assert_eq!(with(&|frame| *frame = plain(1, 1, 100, ACK.with(TcpFlags::FIN))), [1, 1, 1], "FIN");
    assert_eq!(with(&|frame| *frame = plain(1, 1, 101, ACK)), [1, 1, 1], "larger than the first");
}

#[test]
fn a_fixed_identification_is_merged_if_nobody_may_fragment() {
    let sent = |df: bool| -> Vec<_> {
        let frame = |index| {
            let fields = TcpFields { identification: 0, ..segment(index, 100, ACK) };
            let (vnet, mut frame) = unfinished(tcp_frame(&addresses(1, false), &fields, &[0; 100]));
            if !df {
                frame[20] = 0;
                frame[24..26].copy_from_slice(&[0; 2]);
                let sum = checksum::internet_checksum(&frame[14..34]);
                frame[24..26].copy_from_slice(&sum.to_be_bytes());
            }
            (vnet, frame)
        };
        (0..3).map(frame).collect()
    };
    assert_eq!(sizes(&merge(&sent(true), 9)), [3]);
    assert_eq!(sizes(&merge(&sent(false), 9)), [1, 1, 1]);
}

#[test]
fn acknowledgements_and_timestamps_never_go_back() {
    for change in [
        |fields: &mut TcpFields| fields.ack = 6,
        |fields: &mut TcpFields| fields.options = timestamp_options(4, 6),
        |fields: &mut TcpFields| fields.options = timestamp_options(5, 5),
    ] {
        let mut fields = segment(1, 100, ACK);
        change(&mut fields);
        let late = unfinished(tcp_frame(&addresses(1, false), &fields, &[0; 100]));
        assert_eq!(sizes(&merge(&[plain(1, 0, 100, ACK), late], 9)), [1, 1]);
    }
}

#[test]
fn no_aggregate_exceeds_the_largest_packet() {
    let sent: Vec<_> = (0..50).map(|index| plain(1, index, 1448, ACK)).collect();
    let up = merge(&sent, 100);
    // 45 × 1448 + 52 = 65,212; one more would be 66,660.
    assert_eq!(sizes(&up), [45, 5]);
    let small: Vec<_> = (0..100).map(|index| plain(1, index, 10, ACK)).collect();
    assert_eq!(sizes(&merge(&small, 100)), [PIECES_MAXIMUM as u16, 100 - PIECES_MAXIMUM as u16]);
}

#[test]
fn the_oldest_flow_makes_room() {
    let flows = CONTEXTS as u16 + 1;
    let sent: Vec<_> =
        (0..3).flat_map(|index| (0..flows).map(move |flow| plain(flow, index, 100, ACK))).collect();
    let up = merge(&sent, 1000);
    assert_eq!(up.iter().map(|up| usize::from(up.frames)).sum::<usize>(), sent.len());
    // One flow fewer, and every flow is merged.
    let sent: Vec<_> = sent.into_iter().filter(|(_, frame)| frame[34..36] != [0, 0]).collect();
    assert_eq!(sizes(&merge(&sent, 1000)), [3; CONTEXTS]);
}

#[test]
fn fragments_and_datagrams_keep_their_place() {
    let mut fragment = plain(1, 1, 100, ACK);
    fragment.1[20] = 0x20;
    let sent = [plain(1, 0, 100, ACK), fragment.clone(), plain(1, 1, 100, ACK)];
    let up = merge(&sent, 9);
    assert_eq!((sizes(&up), &up[1].bytes), (vec![1, 1, 1], &fragment.1));
    // A datagram is of no flow that is merged, and interrupts none.
    let datagram = unfinished(udp_frame(&addresses(1, false), &[0; 100]));
    assert_eq!(sizes(&merge(&[plain(1, 0, 100, ACK), datagram, plain(1, 1, 100, ACK)], 9)), [1, 2]);
}

/// What a step does to a flow of many.
#[derive(Debug, Clone, Copy)]
enum Step {
    Data { psh: bool, newer: bool },
    Short,
    Acknowledgement,
    Lost,
    Again,
    Congested,
    Marked,
    Unverified,
}

fn step() -> impl Strategy<Value = Step> {
    let data = (prop::bool::weighted(0.1), prop::bool::weighted(0.1));
    prop_oneof![
        20 => data.prop_map(|(psh, newer)| Step::Data { psh, newer }),
        1 => Just(Step::Short), 1 => Just(Step::Acknowledgement), 1 => Just(Step::Lost),
        1 => Just(Step::Again), 1 => Just(Step::Congested), 1 => Just(Step::Marked),
        1 => Just(Step::Unverified),
    ]
}

/// What several flows send, each frame a packet of its own, or several in one.
fn traffic() -> impl Strategy<Value = Vec<Sent>> {
    let moves = prop::collection::vec((0u16..5, step(), 1usize..6), 1..80);
    (moves, any::<bool>(), any::<u32>()).prop_map(|(moves, v6, start)| {
        let mut state: BTreeMap<u16, (u32, u16, u32)> = BTreeMap::new();
        let mut number = 0u8;
        let send = |(flow, step, frames): (u16, Step, usize)| {
            let (seq, identification, clock) = state.entry(flow).or_insert((start, 65_530, 1));
            let (mut bytes, mut flags) = (100 * frames, ACK);
            match step {
                Step::Data { psh, newer } => {
                    *clock += u32::from(newer);
                    flags = if psh { ACK_PSH } else { ACK };
                }
                Step::Short => bytes = 100 * (frames - 1) + 40,
                Step::Acknowledgement => bytes = 0,
                Step::Lost => *seq = seq.wrapping_add(100),
                Step::Again => *seq = seq.wrapping_sub(100),
                Step::Congested => flags = ACK.with(TcpFlags::CWR),
                Step::Marked | Step::Unverified => {}
            }
            number = number.wrapping_add(1);
            let fields = TcpFields {
                seq: *seq,
                ack: *clock,
                flags,
                options: timestamp_options(*clock, *clock),
                identification: *identification,
                ..TcpFields::default()
            };
            let payload: Vec<u8> = (0..bytes).map(|at| (at as u8) ^ number).collect();
            *seq = seq.wrapping_add(bytes as u32);
            *identification = identification.wrapping_add(bytes.div_ceil(100).max(1) as u16);
            let case = Case { addresses: addresses(flow, v6), fields, payload, gso_bytes: 100 };
            let class = if matches!(step, Step::Marked) { 0b11 } else { 0b10 };
            let (mut vnet, frame) = with_class(whole(&case), class, false);
            if bytes <= 100 {
                (vnet.gso_type, vnet.gso_bytes) = (VirtioNetHeader::GSO_NONE, 0);
                if matches!(step, Step::Unverified) {
                    vnet.flags = 0;
                }
            }
            (vnet, frame)
        };
        moves.into_iter().map(send).collect()
    })
}

/// The frames by flow, without what the last frame of an aggregate decides: acknowledgement, window, timestamps.
fn by_flow(frames: Vec<Vec<u8>>) -> BTreeMap<u16, Vec<Vec<u8>>> {
    let mut all: BTreeMap<u16, Vec<Vec<u8>>> = BTreeMap::new();
    for mut frame in frames {
        let packet = parse(&frame).unwrap();
        let port = packet.source().unwrap().port();
        let tcp = packet.header_bytes() - packet.tcp().unwrap().header_bytes();
        for range in [tcp + 8..tcp + 12, tcp + 14..tcp + 18, tcp + 24..tcp + 32] {
            frame[range].fill(0);
        }
        all.entry(port).or_default().push(frame);
    }
    all
}

proptest! {
    /// Cutting and merging gives back the aggregate, byte for byte.
    #[test]
    fn merging_undoes_segmentation(mut case in case(), psh: bool, interrupt in 100usize..7000) {
        case.fields.flags = if psh { ACK_PSH } else { ACK };
        let (vnet, frame) = whole(&case);
        let count = case.payload.len().div_ceil(usize::from(case.gso_bytes)).max(1);
        let up = merge(&[(vnet, frame.clone())], interrupt.max(count));
        prop_assert_eq!(sizes(&up), [count as u16]);
        let mut found = up[0].bytes.clone();
        checksum::complete(&up[0].vnet, &mut found);
        prop_assert_eq!(found, frame);
        if count > 1 {
            prop_assert_eq!(up[0].vnet, vnet);
        }
    }

    /// Whatever is sent, and wherever interrupts fall: every frame of every flow, once, in order, unchanged.
    #[test]
    fn nothing_is_lost_doubled_or_reordered(sent in traffic(), interrupt in 1usize..60) {
        let up = merge(&sent, interrupt);
        let before = frames(sent.iter().map(|(vnet, frame)| (vnet, &frame[..])));
        prop_assert_eq!(up.iter().map(|up| usize::from(up.frames)).sum::<usize>(), before.len());
        let after = frames(up.iter().map(|up| (&up.vnet, &up.bytes[..])));
        prop_assert_eq!(by_flow(after), by_flow(before));
    }

    /// Merging what was merged changes nothing.
    #[test]
    fn merging_twice_is_merging_once(sent in traffic()) {
        let once = merge(&sent, usize::MAX);
        let again: Vec<_> = once.iter().map(|up| (up.vnet, up.bytes.clone())).collect();
        let twice = merge(&again, usize::MAX);
        prop_assert_eq!(once.iter().map(|up| u32::from(up.frames)).sum::<u32>(), twice.iter().map(|up| u32::from(up.frames)).sum());
        prop_assert!(twice.len() <= once.len());
    }

    #[test]
    fn hostile_bytes_never_panic(packets in prop::collection::vec((any::<(u8, u16)>(), prop::collection::vec(any::<u8>(), 14..120)), 1..9)) {
        let sent: Vec<_> = packets
            .into_iter()
            .map(|((flags, checksum_start), bytes)| {
                (VirtioNetHeader { flags, checksum_start, checksum_offset: 16, ..Default::default() }, bytes)
            })
            .collect();
        let up = merge(&sent, usize::MAX);
        prop_assert_eq!(up.iter().map(|up| usize::from(up.frames)).sum::<usize>(), sent.len());
    }

    /// Damage to a flow of segments reaches further than noise.
    #[test]
    fn damaged_segments_never_panic(sent in traffic(), damage in prop::collection::vec((any::<prop::sample::Index>(), 0usize..70, any::<u8>()), 1..9)) {
        let mut sent: Vec<_> = sent;
        for (which, at, value) in damage {
            let packet = which.index(sent.len());
            let bytes = &mut sent[packet].1;
            let at = at % bytes.len();
            bytes[at] = value;
        }
        let expected: usize = frames(sent.iter().map(|(vnet, frame)| (vnet, &frame[..]))).len();
        let up = merge(&sent, usize::MAX);
        prop_assert_eq!(up.iter().map(|up| usize::from(up.frames)).sum::<usize>(), expected);
    }
}
