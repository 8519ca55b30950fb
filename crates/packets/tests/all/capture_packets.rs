//! From packets to segments: what is inside, and what never comes out.

use crate::wrapping::{ETHERNET_BYTES, InGre, Wrap, ethernet, ethertype, ip};
use framegauge_packets::build::{Addresses, TcpFields, syn_options, tcp_frame, timestamp_options, udp_frame};
use framegauge_packets::capture::{
    Checksums, Decoded, Fragments, LinkType, Record, SackBlocks, Segment, Why, decode, ends, outline,
};
use framegauge_packets::{SynOptions, TcpFlags};
use proptest::prelude::*;

fn addresses(v6: bool) -> Addresses {
    let (source, destination) = if v6 {
        ("[2001:db8::1]:40000", "[2001:db8::2]:5201")
    } else {
        ("10.77.0.1:40000", "10.77.0.2:5201")
    };
    Addresses {
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    }
}

fn fields(options: Vec<u8>) -> TcpFields {
    TcpFields {
        seq: 7,
        ack: 0x8000_0009,
        flags: TcpFlags::ACK,
        options,
        identification: 3,
        ..TcpFields::default()
    }
}

/// A segment with timestamps and `payload` bytes.
fn data(v6: bool, payload: usize) -> Vec<u8> {
    tcp_frame(&addresses(v6), &fields(timestamp_options(11, 12)), &vec![5; payload])
}

/// What should be read of [`data`].
fn expected(v6: bool, payload: usize) -> Segment {
    Segment {
        nanoseconds: 1_234,
        number: 56,
        source: addresses(v6).source,
        destination: addresses(v6).destination,
        seq: 7,
        ack: 0x8000_0009,
        flags: TcpFlags::ACK,
        window: 0xffff,
        payload_bytes: payload as u32,
        ip_bytes: (payload + 32 + if v6 { 40 } else { 20 }) as u32,
        timestamps: Some((11, 12)),
        sack: SackBlocks::default(),
        syn: None,
        multipath: false,
        fast_open: false,
        identification: (!v6).then_some(3),
        hops: 64,
        ecn: 0,
        checksum_is_right: None,
        option_bytes: 12,
        options_are_cut: false,
        fragments: None,
    }
}

fn record(link: LinkType, captured: &[u8], original_bytes: usize) -> Record<'_> {
    let original_bytes = original_bytes as u32;
    Record { number: 56, nanoseconds: 1_234, link, interface: 0, captured, original_bytes }
}

fn decoded(frame: &[u8]) -> Decoded {
    decode(&record(LinkType::Ethernet, frame, frame.len()), Checksums::Ignore)
}

fn segment(frame: &[u8]) -> Segment {
    match decoded(frame) {
        Decoded::Tcp(segment) => segment,
        other => panic!("{other:?}"),
    }
}

/// Differences and sums of stamps have room in 64 bits, whatever a capture says.
#[test]
fn stamps_are_between_1970_and_2100() {
    let packet = data(false, 10);
    for (stamp, expected) in [
        (i64::MIN, 0),
        (-1, 0),
        (1_234, 1_234),
        (4_102_444_800_000_000_001, 4_102_444_800_000_000_000),
        (i64::MAX, 4_102_444_800_000_000_000),
    ] {
        let late = Record { nanoseconds: stamp, ..record(LinkType::Ethernet, &packet, packet.len()) };
        let Decoded::Tcp(segment) = decode(&late, Checksums::Ignore) else { panic!("no segment") };
        assert_eq!(segment.nanoseconds, expected);
    }
}

#[test]
fn every_field_of_a_segment() {
    for v6 in [false, true] {
        assert_eq!(segment(&data(v6, 100)), expected(v6, 100));
        let mut frame = data(v6, 0);
        let tcp = frame.len() - 32;
        // Hop limit 17, ECN 3 beside another six bits, window 500.
        if v6 {
            (frame[21], frame[14], frame[15]) = (17, 0x6b, 0xb0);
        } else {
            (frame[22], frame[15]) = (17, 0xbb);
        }
        frame[tcp + 14..tcp + 16].copy_from_slice(&500u16.to_be_bytes());
        frame[tcp + 13] = 0xff;
        let found = segment(&frame);
        assert_eq!((found.hops, found.ecn, found.window, found.flags), (17, 3, 500, TcpFlags(0xff)));
        assert_eq!(found.syn, Some(SynOptions { timestamps: true, ..SynOptions::default() }));
    }
}

#[test]
fn every_option_that_counts() {
    let with = |flags, options: Vec<u8>| {
        segment(&tcp_frame(&addresses(false), &TcpFields { flags, ..fields(options) }, &[]))
    };
    let syn = with(TcpFlags::SYN, syn_options(8960, 9));
    let told = SynOptions { mss: Some(8960), timestamps: true, window_scale: Some(9), sack_permitted: true };
    assert_eq!((syn.syn, syn.timestamps), (Some(told), Some((1, 0))));
    assert_eq!(with(TcpFlags::ACK, syn_options(8960, 9)).syn, None);

    let blocks = [(1u32, 2u32), (0xffff_fff0, 5), (7, 8), (9, 10)];
    for count in 1..=4u8 {
        let mut options = vec![1, 1, 5, 2 + 8 * count];
        for block in &blocks[..usize::from(count)] {
            options.extend(block.0.to_be_bytes());
            options.extend(block.1.to_be_bytes());
        }
        let found = with(TcpFlags::ACK, options);
        assert_eq!(found.sack.as_slice(), &blocks[..usize::from(count)]);
        assert_eq!(found.timestamps, None);
    }
    // A SACK option without a block, or with half of one.
    for length in [2, 6, 11] {
        let options = [vec![5, length], vec![9; usize::from(length) - 2]].concat();
        assert_eq!(with(TcpFlags::ACK, options).sack, SackBlocks::default());
    }
    let told = |options: &[u8]| {
        let found = with(TcpFlags::SYN, options.to_vec());
        (found.multipath, found.fast_open)
    };
    assert_eq!(told(&[30, 4, 0, 1]), (true, false));
    assert_eq!(told(&[34, 2, 1, 1]), (false, true));
    assert_eq!(told(&[254, 4, 0xf9, 0x89]), (false, true));
    assert_eq!(told(&[254, 4, 0xf9, 0x88]), (false, false));
    assert_eq!(told(&[2, 4, 5, 180, 0, 30, 4, 0]), (false, false), "after the end");
    assert_eq!(told(&[30, 1, 34, 2]), (false, false), "a malformed option ends the list");
}

/// 1,448 bytes of which 96 - 66 = 30 were kept; and as few as the header itself.
#[test]
fn the_wire_decides_what_a_segment_carries() {
    for v6 in [false, true] {
        let frame = data(v6, 1_448);
        let headers = frame.len() - 1_448;
        for kept in headers - 12..frame.len() {
            let found = decode(&record(LinkType::Ethernet, &frame[..kept], frame.len()), Checksums::Verify);
            let Decoded::Tcp(found) = found else { panic!("{kept}: {found:?}") };
            assert_eq!((found.payload_bytes, found.options_are_cut), (1_448, kept < headers));
            assert_eq!(found.timestamps.is_some(), kept >= headers);
            assert_eq!(found.checksum_is_right, None);
        }
        // Padding of short frames, and a frame check sequence, belong to nothing.
        let mut padded = data(v6, 0);
        padded.resize(padded.len().max(60) + 40, 0xff);
        assert_eq!(segment(&padded), expected(v6, 0));
    }
}

#[test]
fn checksums_are_computed_if_asked_for() {
    for v6 in [false, true] {
        let mut frame = data(v6, 1_001);
        frame.extend([9; 7]);
        let right = |frame: &[u8], checksums| match decode(
            &record(LinkType::Ethernet, frame, frame.len()),
            checksums,
        ) {
            Decoded::Tcp(found) => found.checksum_is_right,
            other => panic!("{other:?}"),
        };
        assert_eq!(right(&frame, Checksums::Verify), Some(true));
        assert_eq!(right(&frame, Checksums::Ignore), None);
        frame[500] ^= 1;
        assert_eq!(right(&frame, Checksums::Verify), Some(false));
        frame.truncate(500);
        assert_eq!(right(&frame, Checksums::Verify), None);
    }
    // Segments left: the checksum covers the last of the destinations.
    let mut routed = Wrap::Extension(43).around(&data(true, 10));
    let verified = |frame: &[u8]| decode(&record(LinkType::Ethernet, frame, frame.len()), Checksums::Verify);
    let whole =
        |right| Decoded::Tcp(Segment { ip_bytes: 98, checksum_is_right: right, ..expected(true, 10) });
    assert_eq!(verified(&routed), whole(Some(true)));
    routed[ETHERNET_BYTES + 43] = 1;
    assert_eq!(verified(&routed), whole(None));
}

#[test]
fn every_link_type() {
    let check = |link, head: &[u8], v6: bool| {
        let bytes = [head, &data(v6, 33)[ETHERNET_BYTES..]].concat();
        let found = decode(&record(link, &bytes, bytes.len()), Checksums::Ignore);
        assert_eq!(found, Decoded::Tcp(expected(v6, 33)), "{link:?} {head:?}");
    };
    for v6 in [false, true] {
        let [high, low] = ethertype(v6).to_be_bytes();
        check(LinkType::Ip, &[], v6);
        check(LinkType::Ethernet, &ethernet(ethertype(v6), &[]), v6);
        check(LinkType::LinuxCooked, &[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, high, low], v6);
        let cooked2 = [high, low, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
        check(LinkType::LinuxCooked2, &cooked2, v6);
        let tagged = [0x81, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0, 9, high, low];
        check(LinkType::LinuxCooked2, &tagged, v6);
        let families: &[u8] = if v6 { &[10, 24, 28, 30] } else { &[2] };
        for &family in families {
            check(LinkType::Loopback, &[family, 0, 0, 0], v6);
            check(LinkType::Loopback, &[0, 0, 0, family], v6);
        }
    }
    for (number, link) in [
        (0, Some(LinkType::Loopback)),
        (108, Some(LinkType::Loopback)),
        (1, Some(LinkType::Ethernet)),
        (12, Some(LinkType::Ip)),
        (14, Some(LinkType::Ip)),
        (101, Some(LinkType::Ip)),
        (228, Some(LinkType::Ip)),
        (229, Some(LinkType::Ip)),
        (113, Some(LinkType::LinuxCooked)),
        (276, Some(LinkType::LinuxCooked2)),
        (9, Some(LinkType::Ppp)),
        (50, Some(LinkType::Ppp)),
        (51, Some(LinkType::PppEther)),
        (104, Some(LinkType::CiscoHdlc)),
        (105, Some(LinkType::Wireless)),
        (127, Some(LinkType::Radiotap)),
        (192, Some(LinkType::PerPacket)),
        (10, Some(LinkType::Fddi)),
        (107, Some(LinkType::FrameRelay)),
        (239, Some(LinkType::Nflog)),
        (119, None),
        (u16::MAX, None),
    ] {
        assert_eq!(LinkType::from_number(number), link);
    }
}

#[test]
fn fragments() {
    // The first of an IPv4 packet has the header, and its own bytes; the others have neither.
    let mut first = data(false, 100);
    first[20] = 0x20;
    let alone = |first_bytes| Some(Fragments { first_bytes, are_whole: false });
    assert_eq!(segment(&first), Segment { fragments: alone(152), ..expected(false, 100) });
    first[21] = 1;
    assert_eq!(decoded(&first), Decoded::Other(Why::Fragment));
    first[20] = 0;
    assert_eq!(decoded(&first), Decoded::Other(Why::Fragment));

    let mut v6 = Wrap::Extension(44).around(&data(true, 100));
    assert_eq!(segment(&v6), Segment { ip_bytes: 180, ..expected(true, 100) });
    // More fragments: offset 0, and the lowest bit.
    v6[ETHERNET_BYTES + 43] = 1;
    let verified = decode(&record(LinkType::Ethernet, &v6, v6.len()), Checksums::Verify);
    let cut = Segment { ip_bytes: 180, fragments: alone(180), ..expected(true, 100) };
    assert_eq!(verified, Decoded::Tcp(cut));
    v6[ETHERNET_BYTES + 43] = 8;
    assert_eq!(decoded(&v6), Decoded::Other(Why::Fragment));
}

/// Where a fragment lies in its packet, by RFC 791 section 3.2 and RFC 8200 section 4.5: offsets count eight bytes each.
#[test]
fn fragments_say_what_they_are_a_part_of() {
    let mut v4 = data(false, 100);
    let place = |frame: &[u8]| {
        let part = outline(&record(LinkType::Ethernet, frame, frame.len())).fragment.expect("a fragment");
        (part.packet.identification, part.begin, part.end, part.is_last)
    };
    assert_eq!(outline(&record(LinkType::Ethernet, &v4, v4.len())).fragment, None);
    // The header of TCP has 32 bytes here.
    v4[20] = 0x20;
    assert_eq!(place(&v4), (3, 0, 132, false));
    v4[21] = 0xb9;
    assert_eq!(place(&v4), (3, 1480, 1612, false));
    v4[20] = 0;
    assert_eq!(place(&v4), (3, 1480, 1612, true));
    let mut v6 = Wrap::Extension(44).around(&data(true, 100));
    assert_eq!(outline(&record(LinkType::Ethernet, &v6, v6.len())).fragment, None, "an atomic one is none");
    v6[ETHERNET_BYTES + 43] = 1;
    assert_eq!(place(&v6), (0x0102_0304, 0, 132, false));
    v6[ETHERNET_BYTES + 42..][..2].copy_from_slice(&[0x05, 0xa8]);
    assert_eq!(place(&v6), (0x0102_0304, 1448, 1580, true));
}

#[test]
fn ipv4_options_are_stepped_over() {
    let mut frame = data(false, 10);
    frame[14] = 0x47;
    frame[17] += 8;
    frame.splice(34..34, [1; 8]);
    assert_eq!(segment(&frame), Segment { ip_bytes: 70, ..expected(false, 10) });
    let packet = ip(false, 51, &[&[6, 4][..], &[0; 22], &data(false, 9)[34..]].concat());
    let found = segment(&ethernet(0x0800, &packet));
    assert_eq!((found.seq, found.payload_bytes, found.ip_bytes), (7, 9, 85), "an authentication header");
}

/// 512 KiB of payload: IPv4 with total length 0, IPv6 with payload length 0 and with a jumbo payload option (RFC 2675).
#[test]
fn big_tcp_has_its_length_elsewhere() {
    let payload = 524_288;
    let decoded = |frame: &[u8], extra: usize| {
        let original = frame.len() + payload + extra;
        match decode(&record(LinkType::Ethernet, frame, original), Checksums::Verify) {
            Decoded::Tcp(found) => (found.payload_bytes as usize, found.ip_bytes as usize, found.seq),
            other => panic!("{other:?}"),
        }
    };
    let mut v4 = data(false, 0);
    v4[16..18].fill(0);
    assert_eq!(decoded(&v4, 0), (payload, payload + 52, 7));
    let mut v6 = data(true, 0);
    v6[18..20].fill(0);
    assert_eq!(decoded(&v6, 0), (payload, payload + 72, 7));
    let jumbo = ((payload + 40) as u32).to_be_bytes();
    v6[20] = 0;
    v6.splice(54..54, [&[6, 0, 0xc2, 4][..], &jumbo].concat());
    // The option counts from behind the IPv6 header on, and decides although the frame is longer.
    assert_eq!(decoded(&v6, 7), (payload, payload + 80, 7));
    v6.splice(54..62, [&[6, 1, 1, 4, 0, 0, 0, 0, 0, 0xc2, 4][..], &jumbo, &[0]].concat());
    assert_eq!(decoded(&v6, 7), (payload - 8, payload + 80, 7), "after padding");
    v6.splice(54..70, [6, 0, 1, 4, 0, 0, 0, 0]);
    assert_eq!(decoded(&v6, 7), (payload + 7, payload + 87, 7), "without the option");

    // In a tunnel neither IP header nor UDP has a length.
    let mut inner = data(false, 0);
    inner[16..18].fill(0);
    for (wrap, lengths) in [
        (Wrap::Vxlan { port: 4789, v6: false }, [16, 38]),
        (Wrap::Vxlan { port: 8472, v6: true }, [18, 58]),
        (Wrap::Geneve { words: 2, ethernet: false, v6: true }, [18, 58]),
    ] {
        let mut frame = wrap.around(&inner);
        for at in lengths {
            frame[at..at + 2].fill(0);
        }
        assert_eq!(decoded(&frame, 0), (payload, payload + 52, 7), "{wrap:?}");
    }
}

#[test]
fn what_is_none_of_this_says_why() {
    let other = |frame: &[u8], why| assert_eq!(decoded(frame), Decoded::Other(why), "{frame:?}");
    other(&ethernet(0x0806, &[0; 28]), Why::NotIp { ethertype: 0x0806 });
    other(&ethernet(38, &[0x42; 46]), Why::NotIp { ethertype: 38 });
    other(&udp_frame(&addresses(false), b"abc"), Why::NotTcp { protocol: 17 });
    other(&ethernet(0x86dd, &ip(true, 132, &[0; 20])), Why::NotTcp { protocol: 132 });
    other(&ethernet(0x86dd, &ip(true, 59, &[])), Why::NotTcp { protocol: 59 });
    other(&ethernet(0x0800, &ip(false, 1, &[8, 0, 0, 0, 0, 1, 0, 1])), Why::NotTcp { protocol: 1 });
    // ICMP belongs to its own version of IP.
    other(&ethernet(0x86dd, &ip(true, 1, &[3, 4, 0, 0, 0, 0, 0, 1])), Why::NotTcp { protocol: 1 });
    other(&[], Why::Malformed);

    let vxlan = Wrap::Vxlan { port: 4789, v6: false }.around(&data(false, 0));
    let mut invalid = vxlan.clone();
    invalid[42] = 0;
    other(&invalid, Why::NotTcp { protocol: 17 });
    let mut pptp = Wrap::Gre { checksum: false, key: true, sequence: true, inside: InGre::Ip, v6: false }
        .around(&data(false, 0));
    pptp[35] = 1;
    other(&pptp, Why::NotTcp { protocol: 47 });

    let tags = |count| (0..count).fold(data(false, 0), |frame, _| Wrap::Tag(0x8100).around(&frame));
    assert_eq!(segment(&tags(4)), expected(false, 0));
    other(&tags(5), Why::TooDeep);
    for wrap in [Wrap::Ip { v6: true }, Wrap::Vxlan { port: 4789, v6: true }] {
        let deep = |count| (0..count).fold(data(false, 0), |frame, _| wrap.around(&frame));
        assert_eq!(segment(&deep(4)), expected(false, 0));
        other(&deep(5), Why::TooDeep);
    }
    let extended = |count| (0..count).fold(data(true, 0), |frame, _| Wrap::Extension(60).around(&frame));
    assert_eq!(segment(&extended(3)).payload_bytes, 0);
    other(&extended(13), Why::TooDeep);
}

#[test]
fn headers_that_contradict_themselves() {
    let changed = |at: usize, value: u8| {
        let mut frame = data(false, 10);
        frame[at] = value;
        decoded(&frame)
    };
    // Version 6 behind the EtherType of IPv4, a header of four words, a total length of 19 and of 51, a data offset of
    // 4 and of 15 words.
    for (at, value) in [(14, 0x65), (14, 0x44), (17, 19), (17, 51), (46, 0x40), (46, 0xf0)] {
        assert_eq!(changed(at, value), Decoded::Other(Why::Malformed), "{at}");
    }
    let raw = [0x70; 60];
    assert_eq!(decode(&record(LinkType::Ip, &raw, 60), Checksums::Ignore), Decoded::Other(Why::Malformed));
}

fn wraps() -> impl Strategy<Value = Vec<Wrap>> {
    let inside = prop_oneof![
        Just(InGre::Ip),
        Just(InGre::Ethernet),
        Just(InGre::Erspan1),
        Just(InGre::Erspan2),
        any::<bool>().prop_map(|subheader| InGre::Erspan3 { subheader }),
    ];
    let tunnel = prop_oneof![
        (prop_oneof![Just(4789), Just(8472)], any::<bool>()).prop_map(|(port, v6)| Wrap::Vxlan { port, v6 }),
        (0u8..64, any::<bool>(), any::<bool>()).prop_map(|(words, ethernet, v6)| Wrap::Geneve {
            words,
            ethernet,
            v6
        }),
        (any::<(bool, bool, bool, bool)>(), inside).prop_map(|((checksum, key, sequence, v6), inside)| {
            Wrap::Gre { checksum, key, sequence, inside, v6 }
        }),
        any::<bool>().prop_map(|v6| Wrap::Ip { v6 }),
        any::<bool>().prop_map(|v6| Wrap::GreInUdp { v6 }),
    ];
    let extension =
        prop::sample::select(vec![0u8, 43, 44, 51, 60, 135]).prop_map(|number| vec![Wrap::Extension(number)]);
    let tags = [0x8100u16, 0x88a8, 0x9100].map(Wrap::Tag);
    let tags = [&tags[..], &[Wrap::VirtualNic, Wrap::PortExtender, Wrap::Backbone]].concat();
    let tag = prop::sample::select(tags).prop_map(|tag| vec![tag]);
    let around = prop::collection::vec(prop_oneof![extension, tag], 0..3);
    prop::collection::vec((tunnel, around), 0..=4).prop_map(|levels| {
        levels.into_iter().flat_map(|(tunnel, around)| [vec![tunnel], around.concat()].concat()).collect()
    })
}

proptest! {
    /// Whatever is around it, the same segment comes out; cut at any byte, the same or none.
    #[test]
    fn what_is_wrapped_comes_out(
        v6 in any::<bool>(),
        payload in 0usize..200,
        wraps in wraps(),
        padding in 0usize..50,
    ) {
        let inner = data(v6, payload);
        let mut frame = wraps.iter().fold(inner, |frame, wrap| wrap.around(&frame));
        let headers = frame.len() - payload;
        let original = frame.len() + padding;
        frame.resize(original, 0xee);
        let expected = expected(v6, payload);
        for kept in 0..=original {
            match decode(&record(LinkType::Ethernet, &frame[..kept], original), Checksums::Verify) {
                Decoded::Tcp(found) => {
                    prop_assert!(kept >= headers - 12);
                    let ends = ends(&record(LinkType::Ethernet, &frame[..kept], original));
                    prop_assert_eq!(ends, Some((found.source, found.destination)));
                    let whole = kept >= headers + payload;
                    let same = Segment {
                        timestamps: if kept < headers { None } else { expected.timestamps },
                        options_are_cut: kept < headers,
                        checksum_is_right: whole.then_some(true),
                        ..expected
                    };
                    prop_assert_eq!(found, same);
                }
                other => {
                    prop_assert_eq!(other, Decoded::Other(Why::Cut));
                    prop_assert!(kept < headers - 12, "{} of {}", kept, headers);
                }
            }
        }
    }

    /// Noise, and noise in a packet that was none: no panic, and lengths that add up.
    #[test]
    fn hostile_packets_never_panic(
        v6 in any::<bool>(),
        wraps in wraps(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        noise in prop::collection::vec(any::<u8>(), 0..100),
        (link, original, cut) in (0usize..9, any::<u32>(), any::<prop::sample::Index>()),
    ) {
        let mut frame = wraps.iter().fold(data(v6, 20), |frame, wrap| wrap.around(&frame));
        for (place, value) in damage {
            let place = place.index(frame.len());
            frame[place] = value;
        }
        frame.truncate(cut.index(frame.len() + 1));
        frame.extend(&noise);
        let links = [
            LinkType::Ethernet,
            LinkType::Ip,
            LinkType::LinuxCooked,
            LinkType::LinuxCooked2,
            LinkType::Loopback,
            LinkType::FrameRelay,
            LinkType::Fddi,
            LinkType::Nflog,
        ];
        let link = links.get(link).copied().unwrap_or(LinkType::Ethernet);
        for bytes in [&frame, &noise] {
            for original in [original as usize, bytes.len()] {
                let record = Record { original_bytes: original as u32, ..record(link, bytes, 0) };
                match decode(&record, Checksums::Verify) {
                    Decoded::Tcp(found) => prop_assert!(found.payload_bytes < found.ip_bytes),
                    Decoded::Icmp(note) => {
                        prop_assert!(note.quoted.is_none_or(|quoted| quoted.ip_bytes >= 28));
                        prop_assert!(note.mtu.is_none() || note.is_too_big());
                    }
                    Decoded::Other(_) => {}
                }
            }
        }
    }
}
