//! Flows of segments with damage: what is merged of them can be cut again, and all of it is there.
#![no_main]

use libfuzzer_sys::fuzz_target;

use framegauge_packets::build::{Addresses, TcpFields, tcp_frame, timestamp_options};
use framegauge_packets::{
    Coalesced, Coalescer, MAX_HEADER_BYTES, Piece, Received, Segmentation, TcpFlags, VirtioNetHeader,
    checksum,
};

const PAYLOAD_BYTES: u16 = 20;

/// Flow, frames, then what byte becomes what, and whether the IPv4 header is right again afterwards.
type Step = (u8, u8, u8, u8, bool);

fuzz_target!(|input: (u8, bool, Vec<Step>)| {
    let (interrupt, v6, steps) = input;
    let mut sent = [0u16; 4];
    let packets: Vec<_> =
        steps.iter().take(400).map(|step| packet(step, v6, &mut sent[usize::from(step.0 & 3)])).collect();
    let (mut pushed, mut given, mut bytes_in, mut bytes_out) = (0u64, 0u64, 0usize, 0usize);
    let mut give = |merged: &Coalesced<'_>| {
        let mut packet = merged.header.to_vec();
        for piece in merged.payload {
            let range = piece.start as usize..piece.end as usize;
            bytes_out += range.len();
            packet.extend(&packets[piece.packet as usize].1[range]);
        }
        given += u64::from(merged.frames);
        if merged.frames > 1 {
            let plan = Segmentation::plan(&merged.vnet, &packet).expect("an aggregate is well formed");
            assert_eq!(plan.frames(), merged.frames);
        }
    };
    let mut coalescer = Coalescer::default();
    for (number, (vnet, packet)) in packets.iter().enumerate() {
        let Ok(plan) = Segmentation::plan(vnet, packet) else { continue };
        for index in 0..plan.frames() {
            let mut header = [0; MAX_HEADER_BYTES];
            let length = plan.write_header(packet, index, &mut header);
            let range = plan.payload_range(index);
            let payload = Piece { packet: number as u32, start: range.start as u32, end: range.end as u32 };
            bytes_in += range.len();
            let frame = Received { vnet: plan.vnet_header(), header: &header[..length], payload };
            coalescer.push(&frame, &mut give);
            pushed += 1;
            if pushed % (u64::from(interrupt) + 1) == 0 {
                coalescer.flush(&mut give);
            }
        }
    }
    coalescer.flush(&mut give);
    assert_eq!((pushed, bytes_in), (given, bytes_out));
});

/// The next packet of a flow that has sent so many frames.
fn packet(step: &Step, v6: bool, sent: &mut u16) -> (VirtioNetHeader, Vec<u8>) {
    let &(flow, frames, place, value, repair) = step;
    let frames = u16::from(frames % 8).max(1);
    let socket = |host: u8, port: u16| match v6 {
        true => ([host; 16], port).into(),
        false => ([10, 0, 0, host], port).into(),
    };
    let addresses = Addresses {
        source_mac: [2; 6],
        destination_mac: [4; 6],
        source: socket(1, u16::from(flow & 3)),
        destination: socket(2, 80),
    };
    let fields = TcpFields {
        seq: u32::from(*sent) * u32::from(PAYLOAD_BYTES),
        ack: 1,
        flags: TcpFlags::ACK,
        options: timestamp_options(1, 1),
        identification: *sent,
    };
    *sent = sent.wrapping_add(frames);
    let mut frame = tcp_frame(&addresses, &fields, &vec![0; usize::from(frames * PAYLOAD_BYTES)]);
    if let Some(byte) = frame.get_mut(usize::from(place)) {
        *byte = value;
    }
    if repair && !v6 {
        frame[24..26].fill(0);
        let sum = checksum::internet_checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    }
    let kind = if v6 { VirtioNetHeader::GSO_TCPV6 } else { VirtioNetHeader::GSO_TCPV4 };
    let vnet = VirtioNetHeader {
        flags: VirtioNetHeader::NEEDS_CSUM,
        gso_type: if frames > 1 { kind } else { VirtioNetHeader::GSO_NONE },
        gso_bytes: if frames > 1 { PAYLOAD_BYTES } else { 0 },
        checksum_start: if v6 { 54 } else { 34 },
        checksum_offset: 16,
        ..VirtioNetHeader::default()
    };
    (vnet, frame)
}
