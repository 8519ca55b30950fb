//! Layers below IP and link types that are rare, each by hand from its specification.

use crate::wrapping::{ETHERNET_BYTES, Wrap, ethernet, ethertype, ip};
use framegauge_packets::TcpFlags;
use framegauge_packets::build::{Addresses, TcpFields, tcp_frame, udp_frame};
use framegauge_packets::capture::{Checksums, Decoded, LinkType, Record, Why, decode};
use proptest::prelude::*;

const PAYLOAD: usize = 33;
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];

/// An Ethernet frame with a TCP segment.
fn frame(v6: bool) -> Vec<u8> {
    let (source, destination) =
        if v6 { ("[2001:db8::1]:40000", "[2001:db8::2]:5201") } else { ("10.0.0.1:40000", "10.0.0.2:5201") };
    let addresses = Addresses {
        source_mac: [2; 6],
        destination_mac: [4; 6],
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    };
    let fields =
        TcpFields { seq: 7, ack: 9, flags: TcpFlags::ACK, identification: 3, ..TcpFields::default() };
    tcp_frame(&addresses, &fields, &[5; PAYLOAD])
}

fn packet(v6: bool) -> Vec<u8> {
    frame(v6)[ETHERNET_BYTES..].to_vec()
}

fn read(link: LinkType, bytes: &[u8]) -> Decoded {
    let original_bytes = bytes.len() as u32;
    decode(
        &Record { number: 1, nanoseconds: 2, link, interface: 0, captured: bytes, original_bytes },
        Checksums::Verify,
    )
}

/// The segment of [`frame`] is found behind these bytes, with a trailer that belongs to nothing, and nowhere else: what
/// is cut off gives an answer, too.
fn finds(link: LinkType, bytes: &[u8], v6: bool) {
    let padded = [bytes, &[0xee; 4]].concat();
    let Decoded::Tcp(found) = read(link, &padded) else {
        panic!("{link:?} {bytes:02x?}: {:?}", read(link, bytes))
    };
    assert_eq!((found.seq, found.payload_bytes as usize, found.source.port()), (7, PAYLOAD, 40_000));
    assert_eq!((found.source.is_ipv6(), found.checksum_is_right), (v6, Some(true)));
    for kept in 0..bytes.len() - PAYLOAD - 20 {
        assert!(matches!(read(link, &bytes[..kept]), Decoded::Other(_)), "{link:?} {kept}");
    }
}

fn finds_ethernet(kind: u16, head: &[u8], content: &[u8], v6: bool) {
    finds(LinkType::Ethernet, &ethernet(kind, &[head, content].concat()), v6);
}

#[test]
fn llc_with_snap_carries_ip() {
    for v6 in [false, true] {
        let llc = [&SNAP[..], &ethertype(v6).to_be_bytes()].concat();
        finds_ethernet((llc.len() + packet(v6).len()) as u16, &llc, &packet(v6), v6);
        let tagged = [&[0, 5, 0, 60][..], &llc].concat();
        finds_ethernet(0x8100, &tagged, &packet(v6), v6);
    }
}

#[test]
fn pppoe_and_ppp_in_every_form() {
    for v6 in [false, true] {
        let low = if v6 { 0x57 } else { 0x21 };
        let content = packet(v6);
        let length = (content.len() as u16 + 2).to_be_bytes();
        let session = [0x11, 0, 0, 9, length[0], length[1]];
        for protocol in [&[0, low][..], &[low], &[0xff, 3, 0, low], &[0xff, 3, low]] {
            finds_ethernet(0x8864, &[&session, protocol].concat(), &content, v6);
            finds(LinkType::Ppp, &[protocol, &content].concat(), v6);
            finds(LinkType::PppEther, &[&session, protocol, &content].concat(), v6);
        }
        finds(LinkType::Ppp, &[&[2, 0x81, 0, 0, 0x11, 9][..], &content].concat(), v6);
        let [high, low] = ethertype(v6).to_be_bytes();
        finds(LinkType::CiscoHdlc, &[&[15, 0, high, low][..], &content].concat(), v6);
    }
    // Control protocols: LCP.
    assert_eq!(
        read(LinkType::Ppp, &[0xff, 3, 0xc0, 0x21, 1, 1, 0, 4]),
        Decoded::Other(Why::NotIp { ethertype: 0xc021 })
    );
}

#[test]
fn mpls_with_ip_and_with_ethernet() {
    let label = |last: u8| [0, 0x01, 0x30 | last, 64];
    for v6 in [false, true] {
        for labels in 1..=10 {
            let stack: Vec<u8> = (1..=labels).flat_map(|index| label(u8::from(index == labels))).collect();
            for kind in [0x8847, 0x8848] {
                finds_ethernet(kind, &stack, &packet(v6), v6);
                finds_ethernet(kind, &[&stack[..], &[0; 4]].concat(), &frame(v6), v6);
            }
        }
    }
    let endless: Vec<u8> = (0..11).flat_map(|_| label(0)).collect();
    assert_eq!(read(LinkType::Ethernet, &ethernet(0x8847, &endless)), Decoded::Other(Why::TooDeep));
}

fn udp(port: u16, content: &[u8]) -> Vec<u8> {
    let addresses = Addresses {
        source_mac: [2; 6],
        destination_mac: [4; 6],
        source: "172.16.0.1:50000".parse().unwrap(),
        destination: format!("172.16.0.2:{port}").parse().unwrap(),
    };
    udp_frame(&addresses, content)
}

#[test]
fn tunnels_in_udp_that_are_rare() {
    for v6 in [false, true] {
        let inside = |port, head: &[u8], content: &[u8]| {
            finds(LinkType::Ethernet, &udp(port, &[head, content].concat()), v6);
        };
        let next = if v6 { 2 } else { 1 };
        inside(4790, &[0x0c, 0, 0, next, 0, 0, 77, 0], &packet(v6));
        inside(4790, &[0x0c, 0, 0, 3, 0, 0, 77, 0], &frame(v6));
        inside(4790, &[0x08, 0, 0, 0, 0, 0, 77, 0], &frame(v6));
        inside(6635, &[0, 1, 0x31, 64], &packet(v6));
        inside(2152, &[0x30, 255, 0, 53, 0, 0, 0, 7], &packet(v6));
        inside(2152, &[0x32, 255, 0, 57, 0, 0, 0, 7, 0, 5, 0, 0], &packet(v6));
        // A PDU session container of one word, and one of two.
        let extended =
            [0x34, 255, 0, 65, 0, 0, 0, 7, 0, 0, 0, 0x85, 1, 0x10, 0, 0x85, 2, 0, 0, 0, 0, 0, 0, 0];
        inside(2152, &extended, &packet(v6));
    }
    let none = Decoded::Other(Why::NotTcp { protocol: 17 });
    for (port, head) in [(2152, [0x32, 1, 0, 4, 0, 0, 0, 0]), (4790, [0x0c, 0, 0, 9, 0, 0, 77, 0])] {
        assert_eq!(read(LinkType::Ethernet, &udp(port, &[&head[..], &packet(false)].concat())), none);
    }
    let endless = [&[0x34, 255, 0, 65, 0, 0, 0, 7, 0, 0, 0, 0x85][..], &[0; 60]].concat();
    assert_eq!(read(LinkType::Ethernet, &udp(2152, &endless)), Decoded::Other(Why::Malformed));
}

/// A data frame of 802.11 of this subtype and these flags, with what stands between its header and LLC.
fn wireless(subtype: u8, flags: u8, between: &[u8], v6: bool) -> Vec<u8> {
    let llc = [&SNAP[..], &ethertype(v6).to_be_bytes()].concat();
    [&[8 | subtype << 4, flags][..], &[0x21; 22], between, &llc, &packet(v6)].concat()
}

#[test]
fn data_frames_of_wireless_networks() {
    for v6 in [false, true] {
        finds(LinkType::Wireless, &wireless(0, 1, &[], v6), v6);
        finds(LinkType::Wireless, &wireless(0, 3, &[6; 6], v6), v6);
        finds(LinkType::Wireless, &wireless(8, 2, &[5, 0], v6), v6);
        finds(LinkType::Wireless, &wireless(8, 3, &[6, 6, 6, 6, 6, 6, 5, 0], v6), v6);
        finds(LinkType::Wireless, &wireless(8, 0x82, &[5, 0, 1, 2, 3, 4], v6), v6);
        // Several frames in one: the first of them.
        let llc = [&SNAP[..], &ethertype(v6).to_be_bytes(), &packet(v6)].concat();
        let inner = ethernet(llc.len() as u16, &llc);
        finds(LinkType::Wireless, &[&[0x88, 2][..], &[0x21; 22], &[0x80, 0], &inner].concat(), v6);
        // Radiotap: no field at all; clock and flags, with the header padded to words; a second bitmap.
        let bare = wireless(0, 1, &[], v6);
        finds(LinkType::Radiotap, &[&[0, 0, 8, 0, 0, 0, 0, 0][..], &bare].concat(), v6);
        let padded = wireless(8, 2, &[5, 0, 0xcc, 0xcc], v6);
        let tap = [&[0, 0, 17, 0, 3, 0, 0, 0][..], &[9; 8], &[0x20]].concat();
        finds(LinkType::Radiotap, &[&tap[..], &padded].concat(), v6);
        let tap = [&[0, 0, 25, 0, 3, 0, 0, 0x80, 0, 0, 0, 0][..], &[0; 4], &[9; 8], &[0x20]].concat();
        finds(LinkType::Radiotap, &[&tap[..], &padded].concat(), v6);
        finds(LinkType::PerPacket, &[&[0, 0, 12, 0, 105, 0, 0, 0, 1, 2, 3, 4][..], &bare].concat(), v6);
        finds(LinkType::PerPacket, &[&[0, 0, 8, 0, 1, 0, 0, 0][..], &frame(v6)].concat(), v6);
    }
    let other = |bytes: &[u8], why| assert_eq!(read(LinkType::Wireless, bytes), Decoded::Other(why));
    other(&wireless(0, 0x41, &[], false), Why::Encrypted);
    other(&wireless(4, 1, &[], false), Why::NotIp { ethertype: 0x48 });
    other(&[0xd4, 0, 0, 0, 2, 2, 2, 2, 2, 2], Why::NotIp { ethertype: 0xd4 });
    assert_eq!(read(LinkType::Radiotap, &[0, 0, 7, 0, 0, 0, 0, 0]), Decoded::Other(Why::Malformed));
}

/// The bytes of each are written out, so that reader and test do not share a mistake.
#[test]
fn tags_that_are_longer_than_a_vlan_tag() {
    for v6 in [false, true] {
        let [high, low] = ethertype(v6).to_be_bytes();
        finds_ethernet(0x8926, &[0x80, 1, 0, 7, high, low], &packet(v6), v6);
        finds_ethernet(0x893f, &[0xe0, 1, 0, 7, 1, 2, high, low], &packet(v6), v6);
        // The customer's own tag behind that of a port extender, and all of it in a backbone's frame behind its tag.
        finds_ethernet(0x893f, &[0xe0, 1, 0, 7, 1, 2, 0x81, 0, 0, 5, high, low], &packet(v6), v6);
        let customer = Wrap::Tag(0x88a8).around(&Wrap::Tag(0x8100).around(&frame(v6)));
        finds_ethernet(0x88a8, &[0, 9, 0x88, 0xe7, 0x20, 1, 2, 3], &customer, v6);
    }
}

#[test]
fn gre_in_udp_carries_packets_and_frames() {
    for v6 in [false, true] {
        let [high, low] = ethertype(v6).to_be_bytes();
        finds(LinkType::Ethernet, &udp(4754, &[&[0, 0, high, low][..], &packet(v6)].concat()), v6);
        let keyed = [&[0x20, 0, 0x65, 0x58, 1, 2, 3, 4][..], &frame(v6)].concat();
        finds(LinkType::Ethernet, &udp(4754, &keyed), v6);
    }
    // With DTLS it has another port (RFC 8086 section 6).
    let none = Decoded::Other(Why::NotTcp { protocol: 17 });
    assert_eq!(read(LinkType::Ethernet, &udp(4755, &[&[0, 0, 8, 0][..], &packet(false)].concat())), none);
}

#[test]
fn frame_relay_in_every_form() {
    // Addresses of two, three and four bytes.
    let addresses: [&[u8]; 3] = [&[0x18, 0x41], &[0x18, 0x40, 0x41], &[0x18, 0x40, 0x40, 0x43]];
    for v6 in [false, true] {
        let (content, own) = (packet(v6), if v6 { 0x8e } else { 0xcc });
        let [high, low] = ethertype(v6).to_be_bytes();
        let protocol = if v6 { 0x57 } else { 0x21 };
        for address in addresses {
            let found = |head: &[u8], content: &[u8]| {
                finds(LinkType::FrameRelay, &[address, head, content].concat(), v6);
            };
            found(&[3, own], &content);
            found(&[3, 0, own], &content);
            found(&[3, 0, 0x80, 0, 0, 0, high, low], &content);
            found(&[3, 0, 0x80, 0, 0x80, 0xc2, 0, 7], &frame(v6));
            found(&[3, 0, 0x80, 0, 0x80, 0xc2, 0, 1], &frame(v6));
            found(&[3, 0xcf, protocol], &content);
            found(&[high, low], &content);
        }
    }
    let other = |bytes: &[u8], ethertype| {
        assert_eq!(read(LinkType::FrameRelay, bytes), Decoded::Other(Why::NotIp { ethertype }))
    };
    // Management of the link itself, bridged FDDI, and CDP of Cisco.
    other(&[0, 1, 3, 8, 0, 0x75], 8);
    other(&[0x18, 0x41, 3, 0, 0x80, 0, 0x80, 0xc2, 0, 4, 0, 0], 4);
    other(&[0x18, 0x41, 0x20, 0, 1, 180], 0x2000);
    for address in [&[0x19, 3, 0xcc][..], &[0x18, 0x40, 0x40, 0x40, 3, 0xcc]] {
        assert_eq!(read(LinkType::FrameRelay, address), Decoded::Other(Why::Malformed));
    }
}

#[test]
fn fddi_with_snap_carries_ip() {
    for v6 in [false, true] {
        let llc = [&SNAP[..], &ethertype(v6).to_be_bytes(), &packet(v6)].concat();
        // Asynchronous with and without a priority, and synchronous.
        for control in [0x50, 0x54, 0xd0] {
            finds(LinkType::Fddi, &[&[control][..], &[7; 12], &llc].concat(), v6);
        }
    }
    // A token, and what stations tell each other.
    for control in [0x80, 0x41, 0x4f] {
        let other = Decoded::Other(Why::NotIp { ethertype: control.into() });
        assert_eq!(read(LinkType::Fddi, &[control]), other);
    }
}

/// An attribute of netlink, padded to words.
fn attribute(little: bool, kind: u16, content: &[u8]) -> Vec<u8> {
    let bytes = |value: u16| if little { value.to_le_bytes() } else { value.to_be_bytes() };
    let mut whole = [&bytes(4 + content.len() as u16)[..], &bytes(kind), content].concat();
    whole.resize(whole.len().next_multiple_of(4), 0);
    whole
}

#[test]
fn packets_of_a_firewalls_log() {
    for (v6, family) in [(false, 2), (true, 10)] {
        // As the kernel gives it on a little-endian host: what it says of the packet, a prefix, the packet.
        let header = [8, 0, 1, 0, if v6 { 0x86 } else { 8 }, if v6 { 0xdd } else { 0 }, 3, 0];
        let prefix = [6, 0, 10, 0, b'x', 0, 0, 0];
        let length = (packet(v6).len() as u16 + 4).to_le_bytes();
        let head = [&[family, 0, 0, 5][..], &header, &prefix, &length, &[9, 0]].concat();
        finds(LinkType::Nflog, &[head, packet(v6)].concat(), v6);
    }
    // Of a bridge: the packet's own EtherType is known by the kernel.
    let arp = [&[7, 0, 0, 5][..], &attribute(true, 1, &[8, 6, 3, 0]), &attribute(true, 9, &[0; 28])].concat();
    assert_eq!(read(LinkType::Nflog, &arp), Decoded::Other(Why::NotIp { ethertype: 0x0806 }));
    let nothing = [&[7, 0, 0, 5][..], &attribute(true, 9, &packet(false))].concat();
    assert_eq!(read(LinkType::Nflog, &nothing), Decoded::Other(Why::NotIp { ethertype: 7 }));
    let short = [2, 0, 0, 5, 3, 0, 9, 0];
    assert_eq!(read(LinkType::Nflog, &short), Decoded::Other(Why::Malformed));
    let endless = [&[2, 0, 0, 5][..], &attribute(false, 2, &[]).repeat(65)].concat();
    assert_eq!(read(LinkType::Nflog, &endless), Decoded::Other(Why::TooDeep));
}

proptest! {
    /// Whatever was said of a packet, in either byte order, and however much of it was kept.
    #[test]
    fn a_logged_packet_ends_where_the_log_kept_it(
        (v6, little) in any::<(bool, bool)>(),
        before in prop::collection::vec((2u16..9, any::<bool>(), prop::collection::vec(any::<u8>(), 0..40)), 0..6),
        kept in 0usize..200,
    ) {
        let mut log = vec![if v6 { 10 } else { 2 }, 0, 0, 5];
        for (kind, nested, content) in before {
            log.extend(attribute(little, kind | u16::from(nested) << 15, &content));
        }
        let whole = packet(v6);
        let headers = whole.len() - PAYLOAD;
        log.extend(attribute(little, 9, &whole[..kept.min(whole.len())]));
        // What follows is no part of the packet.
        log.extend(attribute(little, 18, &[0xee; 80]));
        match read(LinkType::Nflog, &log) {
            Decoded::Tcp(found) => {
                prop_assert!(kept >= headers);
                prop_assert_eq!((found.seq, found.payload_bytes as usize), (7, PAYLOAD));
                prop_assert_eq!(found.checksum_is_right, (kept >= whole.len()).then_some(true));
            }
            other => prop_assert!(kept < headers && matches!(other, Decoded::Other(_)), "{:?} of {}", other, kept),
        }
    }
}

#[test]
fn layers_are_bounded() {
    // A tag in PPPoE cannot be, but MPLS in PPP in PPPoE in tags can.
    let stack = [0x11, 0, 0, 9, 0, 99, 2, 0x81, 0, 1, 0x31, 64];
    finds_ethernet(0x8100, &[&[0, 5, 0x88, 0x64][..], &stack].concat(), &packet(false), false);
    let nested = (0..6).fold(frame(false), |inner, _| {
        ethernet(0x8847, &[&[0, 1, 0x31, 64, 0, 0, 0, 0][..], &inner].concat())
    });
    assert_eq!(read(LinkType::Ethernet, &nested), Decoded::Other(Why::TooDeep));
    assert!(matches!(
        read(LinkType::Ethernet, &ethernet(0x0800, &ip(false, 50, &[0; 40]))),
        Decoded::Other(Why::NotTcp { protocol: 50 })
    ));
}
