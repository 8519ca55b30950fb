//! Frames whose bytes are known.

use framegauge_packets::build::{Addresses, TcpFields, syn_options, tcp_frame, timestamp_options, udp_frame};
use framegauge_packets::{
    IpVersion, Layer, LengthSource, ParseError, Segmentation, SynOptions, TcpFlags, Transport,
    VirtioNetHeader, checksum, parse,
};

fn addresses() -> Addresses {
    Addresses {
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        source: "10.77.0.1:40000".parse().unwrap(),
        destination: "10.77.0.2:5201".parse().unwrap(),
    }
}

fn syn() -> Vec<u8> {
    let fields =
        TcpFields { seq: 7, flags: TcpFlags::SYN, options: syn_options(1460, 7), ..Default::default() };
    tcp_frame(&addresses(), &fields, &[])
}

#[test]
fn a_syn_is_read() {
    let frame = syn();
    let packet = parse(&frame).unwrap();
    let tcp = packet.tcp().unwrap();
    assert_eq!(packet.ip_version(), Some(IpVersion::V4));
    assert_eq!(packet.source(), Some(addresses().source));
    assert_eq!(packet.destination(), Some(addresses().destination));
    assert_eq!(packet.destination_mac(), [2, 0, 0, 0, 0, 2]);
    assert_eq!((packet.ethertype(), packet.payload_bytes(), tcp.header_bytes()), (0x0800, 0, 40));
    assert_eq!((tcp.seq(), tcp.flags()), (7, TcpFlags::SYN));
    let expected =
        SynOptions { mss: Some(1460), timestamps: true, window_scale: Some(7), sack_permitted: true };
    assert_eq!(tcp.options(), expected);
}

#[test]
fn checksums_of_rfc_1071() {
    let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(checksum::fold(checksum::add(0, &bytes)), 0xddf2);
    assert_eq!(checksum::internet_checksum(&bytes), 0x220d);
    assert_eq!(checksum::internet_checksum(&[0xff]), 0x00ff);
}

#[test]
fn built_frames_verify() {
    for frame in [syn(), udp_frame(&addresses(), b"odd")] {
        let packet = parse(&frame).unwrap();
        assert_eq!(checksum::internet_checksum(&frame[14..34]), 0);
        let (source, destination) = (packet.source().unwrap().ip(), packet.destination().unwrap().ip());
        let protocol = packet.protocol().unwrap();
        assert_eq!(checksum::transport_checksum(source, destination, protocol, &frame[34..]), 0);
    }
}

#[test]
fn malformed_options_end_the_list() {
    let options = |bytes: &[u8]| {
        let fields = TcpFields { options: bytes.to_vec(), ..Default::default() };
        let frame = tcp_frame(&addresses(), &fields, &[]);
        parse(&frame).unwrap().tcp().unwrap().options()
    };
    let mss = SynOptions { mss: Some(1460), ..Default::default() };
    assert_eq!(options(&[2, 4, 0x05, 0xb4, 4, 0, 4, 2]), mss, "a length of 0");
    assert_eq!(options(&[2, 4, 0x05, 0xb4, 1, 1, 1, 3]), mss, "no length");
    assert_eq!(options(&[2, 4, 0x05, 0xb4, 0, 4, 2, 0]), mss, "after the end");
    assert_eq!(options(&[2, 40, 0x05, 0xb4]), SynOptions::default(), "beyond the header");
    assert_eq!(options(&[2, 3, 0x05, 1]), SynOptions::default(), "an MSS of one byte");
    assert!(options(&timestamp_options(1, 2)).timestamps);
}

#[test]
fn tags_padding_and_other_content() {
    let mut tagged = syn();
    tagged.splice(12..12, [0x81, 0x00, 0, 5]);
    let packet = parse(&tagged).unwrap();
    assert_eq!((packet.ethertype(), packet.network_start(), packet.tcp().unwrap().seq()), (0x0800, 18, 7));

    let mut padded = udp_frame(&addresses(), b"a");
    padded.resize(60, 0);
    assert_eq!(parse(&padded).unwrap().payload_bytes(), 1);

    let mut fragment = udp_frame(&addresses(), b"a");
    fragment[20] = 0x20;
    assert_eq!(parse(&fragment).unwrap().transport(), Transport::Other);

    let arp = [&[0xff; 12][..], &[0x08, 0x06], &[0; 28]].concat();
    let packet = parse(&arp).unwrap();
    assert_eq!((packet.ip_version(), packet.source(), packet.ethertype()), (None, None, 0x0806));
}

#[test]
fn an_ipv6_extension_header_is_other() {
    let addresses = Addresses {
        source: "[fd00::1]:1".parse().unwrap(),
        destination: "[fd00::2]:2".parse().unwrap(),
        ..addresses()
    };
    let mut frame = udp_frame(&addresses, b"abc");
    assert_eq!(parse(&frame).unwrap().udp().unwrap().payload(), b"abc");
    for extension in [0, 44] {
        frame[20] = extension;
        let packet = parse(&frame).unwrap();
        assert_eq!((packet.transport(), packet.ip_version()), (Transport::Other, Some(IpVersion::V6)));
    }
}

#[test]
fn errors_say_who_claimed_what() {
    let frame = syn();
    let length = |layer, required, found, length_source| {
        Err(ParseError::Length { layer, required, found, length_source })
    };
    assert_eq!(parse(&frame[..13]), length(Layer::Ethernet, 14, 13, LengthSource::Slice));
    assert_eq!(parse(&frame[..30]), length(Layer::Ipv4, 20, 16, LengthSource::Slice));
    assert_eq!(parse(&frame[..50]), length(Layer::Ipv4, 60, 36, LengthSource::Slice));
    let mut short = frame.clone();
    short[17] = 30;
    assert_eq!(parse(&short), length(Layer::Tcp, 20, 10, LengthSource::Ipv4TotalLength));
    let mut long_header = frame.clone();
    long_header[46] = 0xf0;
    let error = parse(&long_header).unwrap_err();
    assert_eq!(error.to_string(), "TCP needs 60 bytes, found 40 within the IPv4 total length");
    let mut version = frame;
    version[14] = 0x65;
    assert_eq!(parse(&version).unwrap_err().to_string(), "IPv4: version is 6, expected 4");
}

#[test]
fn flow_hashes() {
    let frame = syn();
    let hash = parse(&frame).unwrap().flow_hash();
    assert_eq!(hash, 2_198_045_941_287_132_819, "fixed: the same on every machine");
    let data = tcp_frame(&addresses(), &TcpFields { seq: 9, ..Default::default() }, b"payload");
    assert_eq!(parse(&data).unwrap().flow_hash(), hash, "one flow");
    let reverse =
        Addresses { source: addresses().destination, destination: addresses().source, ..addresses() };
    let back = tcp_frame(&reverse, &TcpFields::default(), &[]);
    assert_ne!(parse(&back).unwrap().flow_hash(), hash, "a flow is one-way");
}

#[test]
fn an_aggregate_must_be_what_it_claims() {
    let plan = |gso_type, gso_bytes, frame: &[u8]| {
        let vnet = VirtioNetHeader { gso_type, gso_bytes, ..Default::default() };
        Segmentation::plan(&vnet, frame).map(|plan| plan.frames())
    };
    let tcp = tcp_frame(&addresses(), &TcpFields::default(), &[0; 100]);
    assert_eq!(plan(VirtioNetHeader::GSO_TCPV4, 30, &tcp), Ok(4));
    assert_eq!(plan(VirtioNetHeader::GSO_TCPV4 | VirtioNetHeader::GSO_ECN, 100, &tcp), Ok(1));
    assert!(plan(VirtioNetHeader::GSO_TCPV4, 0, &tcp).is_err());
    assert!(plan(VirtioNetHeader::GSO_TCPV6, 30, &tcp).is_err());
    assert!(plan(VirtioNetHeader::GSO_UDP_L4, 30, &udp_frame(&addresses(), &[0; 100])).is_err());
    assert!(plan(VirtioNetHeader::GSO_TCPV4, 30, &udp_frame(&addresses(), &[0; 100])).is_err());
}

#[test]
fn cwr_stays_on_the_first_frame() {
    let flags = TcpFlags::ACK.with(TcpFlags::CWR).with(TcpFlags::PSH).with(TcpFlags::FIN);
    let frame = tcp_frame(&addresses(), &TcpFields { flags, ..Default::default() }, &[0; 4000]);
    let vnet = VirtioNetHeader {
        flags: VirtioNetHeader::NEEDS_CSUM,
        gso_type: VirtioNetHeader::GSO_TCPV4 | VirtioNetHeader::GSO_ECN,
        gso_bytes: 1000,
        ..Default::default()
    };
    let plan = Segmentation::plan(&vnet, &frame).unwrap();
    let flags_of = |index| {
        let mut header = [0; 138];
        let bytes = plan.write_header(&frame, index, &mut header);
        assert_eq!(bytes, 54);
        TcpFlags(header[47])
    };
    assert_eq!(flags_of(0), TcpFlags::ACK.with(TcpFlags::CWR));
    assert_eq!(flags_of(1), TcpFlags::ACK);
    assert_eq!(flags_of(3), TcpFlags::ACK.with(TcpFlags::PSH).with(TcpFlags::FIN));
    assert_eq!(plan.vnet_header().gso_type, VirtioNetHeader::GSO_NONE);
}
