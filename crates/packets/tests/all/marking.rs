//! ECN: what a mark does to a header, against full checksums and headers worked out by hand.

use crate::common::{Case, case, cut, whole, with_class};
use framegauge_packets::build::{Addresses, udp_frame};
use framegauge_packets::{
    EcnCodepoint, MAX_HEADER_BYTES, Segmentation, TrafficClass, VirtioNetHeader, checksum, parse,
};
use proptest::prelude::*;

const ECT0: u8 = 0b10;
const CE: u8 = 0b11;

/// A frame that is passed on as it is, marked.
fn marked(frame: &[u8]) -> Vec<u8> {
    let mut marked = frame.to_vec();
    Segmentation::plan(&VirtioNetHeader::default(), frame).unwrap().mark(&mut marked);
    marked
}

fn ethernet(ethertype: [u8; 2], packet: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &ethertype, packet].concat()
}

/// RFC 1624 section 4: 0xdd2f with 0x5555 changed to 0x3285 becomes 0, where RFC 1141 had 0xffff.
#[test]
fn the_example_of_rfc_1624() {
    assert_eq!(checksum::replace(0xdd2f, 0x5555, 0x3285), 0x0000);
}

#[test]
fn codepoints_of_rfc_3168_and_classes_of_rfc_2474() {
    let found: Vec<_> = (0..4).map(|bits| TrafficClass(bits).ecn()).collect();
    assert_eq!(found, [EcnCodepoint::NotEct, EcnCodepoint::Ect1, EcnCodepoint::Ect0, EcnCodepoint::Ce]);
    // Expedited forwarding is 46, class selector 5 is 40.
    assert_eq!((TrafficClass(0xb8).dscp(), TrafficClass(0xa3).dscp()), (46, 40));
}

/// The words without the checksum, 4502 0073 0000 4000 40fd c0a8 0001 c0a8 00c7 (protocol 253, RFC 3692), add up to
/// 2488a, folded 488c: the checksum is b773. CE is one more than ECT(0) and two more than ECT(1), its checksum less by
/// as much.
#[test]
fn an_ipv4_header_by_hand() {
    let header = |class: u8, sum: [u8; 2]| {
        let mut header =
            [0x45, class, 0x00, 0x73, 0, 0, 0x40, 0, 0x40, 0xfd, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
        header[10..12].copy_from_slice(&sum);
        ethernet([0x08, 0x00], &[&header[..], &[0; 95]].concat())
    };
    let sent = header(ECT0, [0xb7, 0x73]);
    assert_eq!(checksum::internet_checksum(&sent[14..34]), 0);
    assert_eq!(parse(&sent).unwrap().traffic_class(), Some(TrafficClass(ECT0)));
    assert_eq!(marked(&sent), header(CE, [0xb7, 0x72]));
    assert_eq!(marked(&header(0b01, [0xb7, 0x74])), header(CE, [0xb7, 0x72]));
    // A checksum that is off by 0x1000 stays so.
    assert_eq!(marked(&header(ECT0, [0xc7, 0x73])), header(CE, [0xc7, 0x72]));
    for class in [0x00, 0xb8, CE, 0xbb] {
        assert_eq!(marked(&header(class, [1, 2])), header(class, [1, 2]), "what is not ECT, or CE already");
    }
}

/// Expedited forwarding with ECT(0) is class ba, which lies between version and flow label: 6b a0.
#[test]
fn an_ipv6_header_by_hand() {
    let packet = |second: u8| {
        ethernet([0x86, 0xdd], &[&[0x6b, second, 0x12, 0x34, 0, 0, 59, 64][..], &[7; 32]].concat())
    };
    assert_eq!(parse(&packet(0xa5)).unwrap().traffic_class(), Some(TrafficClass(0xba)));
    assert_eq!(marked(&packet(0xa5)), packet(0xb5));
    assert_eq!(marked(&packet(0x95)), packet(0xb5));
    assert_eq!(marked(&packet(0x85)), packet(0x85));
    assert_eq!(marked(&packet(0xb5)), packet(0xb5));
}

#[test]
fn what_is_not_ip_has_no_class_and_is_not_marked() {
    // The bytes of an IPv4 header that could be marked, called ARP; then one that a tag of a provider hides (802.1ad).
    let header = [0x45, ECT0, 0, 20, 0, 0, 0, 0, 64, 253, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let arp = ethernet([0x08, 0x06], &header);
    let hidden = ethernet([0x88, 0xa8], &[&[0, 5, 0x08, 0x00][..], &header].concat());
    let cut_off = ethernet([0x08, 0x00], &header[..19]);
    for frame in [arp, hidden, cut_off] {
        let plan = Segmentation::plan(&VirtioNetHeader::default(), &frame).unwrap();
        assert_eq!(plan.traffic_class(), TrafficClass(0));
        assert_eq!(marked(&frame), frame);
    }
    assert_eq!(parse(&[0; 14]).unwrap().traffic_class(), None);
}

/// What is not enough of a header is left alone.
#[test]
fn a_header_that_is_cut_short_is_not_marked() {
    let (_, frame) = with_class((VirtioNetHeader::default(), udp_frame(&addresses(), &[0; 9])), ECT0, false);
    let plan = Segmentation::plan(&VirtioNetHeader::default(), &frame).unwrap();
    for bytes in 0..34 {
        let mut short = frame[..bytes].to_vec();
        plan.mark(&mut short);
        assert_eq!(short, frame[..bytes]);
    }
}

fn addresses() -> Addresses {
    Addresses {
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        source: "10.77.0.1:40000".parse().unwrap(),
        destination: "10.77.0.2:5201".parse().unwrap(),
    }
}

/// An IPv4 packet of protocol 253 with any fields and options, whose checksum is off by `error`.
fn any_ipv4() -> impl Strategy<Value = Vec<u8>> {
    (prop::collection::vec(any::<u8>(), 60), 5u8..=15, 0usize..40, any::<u16>()).prop_map(
        |(mut header, words, payload_bytes, error)| {
            header.truncate(usize::from(words) * 4);
            header[0] = 0x40 | words;
            let total = (header.len() + payload_bytes) as u16;
            header[2..4].copy_from_slice(&total.to_be_bytes());
            header[9] = 253;
            header[10..12].fill(0);
            let sum = checksum::internet_checksum(&header).wrapping_add(error);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            header.resize(usize::from(total), 9);
            header
        },
    )
}

fn tagged(mut frame: Vec<u8>) -> Vec<u8> {
    frame.splice(12..12, [0x81, 0x00, 0x20, 0x05]);
    frame
}

proptest! {
    /// The sum over the header, checksum included, is what it was: right if it was right, and as wrong if it was not.
    #[test]
    fn a_mark_changes_two_bits_and_keeps_the_checksum(packet in any_ipv4(), tag: bool) {
        let plain = ethernet([0x08, 0x00], &packet);
        let (frame, ip) = if tag { (tagged(plain), 18) } else { (plain, 14) };
        let header = ip..ip + usize::from(packet[0] & 15) * 4;
        let after = marked(&frame);
        let before_class = TrafficClass(packet[1]);
        prop_assert_eq!(parse(&frame).unwrap().traffic_class(), Some(before_class));
        let ecn = before_class.ecn();
        let expected = if ecn == EcnCodepoint::NotEct { packet[1] } else { packet[1] | CE };
        prop_assert_eq!(after[ip + 1], expected);
        // 0 and 0xffff are the same number in one's complement.
        let sum = |frame: &[u8]| checksum::fold(checksum::add(0, &frame[header.clone()])) % 0xffff;
        prop_assert_eq!(sum(&after), sum(&frame));
        if sum(&frame) == 0 && ecn != EcnCodepoint::NotEct {
            let mut fresh = after.clone();
            fresh[ip + 10..ip + 12].fill(0);
            let full = checksum::internet_checksum(&fresh[header.clone()]);
            fresh[ip + 10..ip + 12].copy_from_slice(&full.to_be_bytes());
            prop_assert_eq!(&after, &fresh);
        }
        let mut restored = after.clone();
        restored[ip + 1] = frame[ip + 1];
        restored[ip + 10..ip + 12].copy_from_slice(&frame[ip + 10..ip + 12]);
        prop_assert_eq!(&restored, &frame, "nothing but the class and the checksum");
        prop_assert_eq!(marked(&after), after, "twice is once");
    }

    /// Of an aggregate: the frame that is marked equals the one that a host would have sent with CE, whatever its
    /// neighbours are, and the original stays as it is.
    #[test]
    fn one_frame_of_an_aggregate(case in case(), dscp in 0u8..64, tag: bool, which: prop::sample::Index) {
        let class = dscp << 2 | ECT0;
        let (vnet, frame) = with_class(whole(&case), class, tag);
        let (vnet_ce, frame_ce) = with_class(whole(&case), class | CE, tag);
        let plan = Segmentation::plan(&vnet, &frame).unwrap();
        let plan_ce = Segmentation::plan(&vnet_ce, &frame_ce).unwrap();
        prop_assert_eq!(plan.traffic_class(), TrafficClass(class));
        prop_assert_eq!(plan_ce.traffic_class().ecn(), EcnCodepoint::Ce);
        let index = which.index(usize::from(plan.frames())) as u16;
        let mut header = [0; MAX_HEADER_BYTES];
        let bytes = plan.write_header(&frame, index, &mut header);
        plan.mark(&mut header[..bytes]);
        prop_assert_eq!(&header[..bytes], &cut(&plan_ce, &frame_ce, index)[..bytes]);
    }

    /// A single frame may be marked before its header is written, or after.
    #[test]
    fn marking_commutes_with_writing(case in case()) {
        let case = Case { gso_bytes: case.payload.len().max(1) as u16, ..case };
        let (vnet, frame) = with_class(whole(&case), ECT0, false);
        let plan = Segmentation::plan(&vnet, &frame).unwrap();
        prop_assert_eq!(plan.frames(), 1);
        let mut before = frame.clone();
        plan.mark(&mut before);
        let mut after = cut(&plan, &frame, 0);
        plan.mark(&mut after);
        prop_assert_eq!(cut(&plan, &before, 0), after);
    }

    #[test]
    fn hostile_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 14..100), cut_at in 0usize..100) {
        let plan = Segmentation::plan(&VirtioNetHeader::default(), &bytes).unwrap();
        let mut other = bytes.clone();
        other.truncate(cut_at);
        plan.mark(&mut other);
        prop_assert_eq!(other.len(), cut_at.min(bytes.len()));
    }
}
