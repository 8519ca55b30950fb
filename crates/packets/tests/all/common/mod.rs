//! What the tests of segmentation and of merging share.

use framegauge_packets::build::{Addresses, TcpFields, tcp_frame};
use framegauge_packets::{
    Coalesced, Coalescer, IpVersion, MAX_HEADER_BYTES, Piece, Received, Segmentation, TcpFlags,
    VirtioNetHeader, checksum, parse,
};
use proptest::prelude::*;

/// An aggregate to be.
#[derive(Debug, Clone)]
pub struct Case {
    pub addresses: Addresses,
    pub fields: TcpFields,
    pub payload: Vec<u8>,
    pub gso_bytes: u16,
}

fn addresses() -> impl Strategy<Value = Addresses> {
    (any::<bool>(), any::<([u8; 16], [u8; 16], u16, u16)>()).prop_map(
        |(v6, (source, destination, from, to))| {
            let socket = |octets: [u8; 16], port| match v6 {
                true => (octets, port).into(),
                false => ([octets[0], octets[1], octets[2], octets[3]], port).into(),
            };
            Addresses {
                source_mac: [2, 0, 0, 0, 0, 1],
                destination_mac: [2, 0, 0, 0, 0, 2],
                source: socket(source, from),
                destination: socket(destination, to),
            }
        },
    )
}

pub fn case() -> impl Strategy<Value = Case> {
    let fields = (any::<(u32, u32, u8, u16)>(), prop::collection::vec(any::<u8>(), 0..=40));
    let payload = (0usize..6000, any::<u8>());
    (addresses(), fields, payload, 1u16..3000).prop_map(|(addresses, fields, (length, seed), gso_bytes)| {
        let ((seq, ack, flags, identification), options) = fields;
        let byte = |index: usize| (index.wrapping_mul(31) as u8).wrapping_add(seed);
        Case {
            addresses,
            fields: TcpFields {
                seq,
                ack,
                flags: TcpFlags(flags),
                options,
                identification,
                ..TcpFields::default()
            },
            payload: (0..length).map(byte).collect(),
            gso_bytes,
        }
    })
}

/// The aggregate as a TAP hands it over.
pub fn whole(case: &Case) -> (VirtioNetHeader, Vec<u8>) {
    let frame = tcp_frame(&case.addresses, &case.fields, &case.payload);
    let packet = parse(&frame).unwrap();
    let v6 = packet.ip_version() == Some(IpVersion::V6);
    let vnet = VirtioNetHeader {
        flags: VirtioNetHeader::NEEDS_CSUM,
        gso_type: if v6 { VirtioNetHeader::GSO_TCPV6 } else { VirtioNetHeader::GSO_TCPV4 },
        header_bytes: packet.header_bytes() as u16,
        gso_bytes: case.gso_bytes,
        checksum_start: (packet.header_bytes() - packet.tcp().unwrap().header_bytes()) as u16,
        checksum_offset: 16,
    };
    (vnet, frame)
}

/// The packet with another traffic class, and an IPv4 checksum that is right; behind a tag if `tagged`.
pub fn with_class(
    (mut vnet, mut frame): (VirtioNetHeader, Vec<u8>),
    class: u8,
    tagged: bool,
) -> (VirtioNetHeader, Vec<u8>) {
    if frame[12..14] == [0x08, 0x00] {
        frame[15] = class;
        frame[24..26].fill(0);
        let sum = checksum::internet_checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    } else {
        frame[14] = 0x60 | class >> 4;
        frame[15] = class << 4 | frame[15] & 0x0f;
    }
    if tagged {
        frame.splice(12..12, [0x81, 0x00, 0x20, 0x05]);
        vnet.checksum_start += 4;
        vnet.header_bytes += 4;
    }
    (vnet, frame)
}

/// Header and payload of a frame, as they would be written to a TAP.
pub fn cut(plan: &Segmentation, frame: &[u8], index: u16) -> Vec<u8> {
    let mut header = [0; MAX_HEADER_BYTES];
    let bytes = plan.write_header(frame, index, &mut header);
    let mut out = header[..bytes].to_vec();
    out.extend(&frame[plan.payload_range(index)]);
    out
}

/// What comes up when the packets, each as a TAP hands it over, are cut into frames and merged by interrupts of
/// so many frames; with the frames in each.
pub fn merge(packets: &[(VirtioNetHeader, Vec<u8>)], interrupt: usize) -> Vec<Up> {
    let mut up = Vec::new();
    let mut give = |merged: &Coalesced<'_>| {
        let mut bytes = merged.header.to_vec();
        for piece in merged.payload {
            bytes.extend(&packets[piece.packet as usize].1[piece.start as usize..piece.end as usize]);
        }
        up.push(Up { vnet: merged.vnet, bytes, frames: merged.frames });
    };
    let mut coalescer = Coalescer::default();
    let mut count = 0;
    for (number, (vnet, packet)) in packets.iter().enumerate() {
        let Ok(plan) = Segmentation::plan(vnet, packet) else { continue };
        for index in 0..plan.frames() {
            let mut header = [0; MAX_HEADER_BYTES];
            let bytes = plan.write_header(packet, index, &mut header);
            let range = plan.payload_range(index);
            let payload = Piece { packet: number as u32, start: range.start as u32, end: range.end as u32 };
            coalescer
                .push(&Received { vnet: plan.vnet_header(), header: &header[..bytes], payload }, &mut give);
            count += 1;
            if count % interrupt == 0 {
                coalescer.flush(&mut give);
            }
        }
    }
    coalescer.flush(&mut give);
    up
}

/// What went up to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Up {
    pub vnet: VirtioNetHeader,
    pub bytes: Vec<u8>,
    pub frames: u16,
}

/// The frames of packets, in order, with full checksums.
pub fn frames<'a>(packets: impl Iterator<Item = (&'a VirtioNetHeader, &'a [u8])>) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (vnet, packet) in packets {
        let Ok(plan) = Segmentation::plan(vnet, packet) else { continue };
        for index in 0..plan.frames() {
            let mut frame = cut(&plan, packet, index);
            checksum::complete(&plan.vnet_header(), &mut frame);
            all.push(frame);
        }
    }
    all
}

/// Calls everything that takes bytes from outside.
pub fn exercise(bytes: &[u8], index: u16, out_bytes: usize) {
    if let Ok(packet) = parse(bytes) {
        let _ = (packet.flow_hash(), packet.payload_bytes(), packet.source(), packet.destination_mac());
        let _ = packet.tcp().map(|tcp| tcp.options());
    }
    let Ok(vnet) = VirtioNetHeader::parse(bytes) else { return };
    assert_eq!(vnet.to_bytes(), bytes[..VirtioNetHeader::BYTES]);
    let frame = &bytes[VirtioNetHeader::BYTES..];
    checksum::complete(&vnet, &mut frame.to_vec());
    let Ok(plan) = Segmentation::plan(&vnet, frame) else { return };
    let mut out = vec![0; out_bytes];
    for index in [0, plan.frames() - 1, index] {
        let written = plan.write_header(frame, index, &mut out);
        assert!(written == 0 || written == plan.header_bytes());
        assert!(plan.header_bytes() <= MAX_HEADER_BYTES);
        let _ = plan.write_header(&frame[..frame.len() / 2], index, &mut out);
        let _ = (plan.vnet_header(), plan.tcp_payload_bytes(index), plan.captured_bytes(index));
        assert!(frame.get(plan.payload_range(index)).is_some());
    }
}
