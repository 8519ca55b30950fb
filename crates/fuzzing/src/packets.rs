//! Frames of hosts, and captures of them.

use framegauge_packets::build::{Addresses, TcpFields, tcp_frame, timestamp_options};
use framegauge_packets::pcapng::{Captured, Reader, SNAP_BYTES_MAXIMUM, Section};
use framegauge_packets::{
    Coalesced, Coalescer, MAX_HEADER_BYTES, Piece, Received, Segmentation, TcpFlags, VirtioNetHeader,
    checksum,
};

const PAYLOAD_BYTES: u16 = 20;

/// One frame: every view of it.
pub fn frame(bytes: &[u8]) {
    let Ok(packet) = framegauge_packets::parse(bytes) else { return };
    assert!(bytes.get(packet.payload_range()).is_some());
    let _ = (packet.flow_hash(), packet.source(), packet.destination(), packet.source_mac());
    let _ = packet.tcp().map(|tcp| (tcp.options(), tcp.payload().len()));
}

/// A capture: whatever is read of it is read again after it has been written.
pub fn pcapng(bytes: &[u8]) {
    let Ok(reader) = Reader::new(bytes) else { return };
    let packets: Vec<Captured<'_>> = reader.map_while(Result::ok).collect();
    let mut out = Vec::new();
    let mut section = Section::begin(&mut out);
    for _ in 0..=packets.iter().map(|packet| packet.interface).max().unwrap_or(0) {
        section.interface(&mut out, "", SNAP_BYTES_MAXIMUM);
    }
    for packet in &packets {
        section.packet(&mut out, packet).expect("its interface is described");
    }
    let snap_length = |packet: &Captured<'_>| packet.bytes.len().min(SNAP_BYTES_MAXIMUM as usize);
    let expected: Vec<_> = packets
        .iter()
        .map(|packet| Captured { bytes: &packet.bytes[..snap_length(packet)], ..*packet })
        .collect();
    let again: Result<Vec<_>, _> = Reader::new(&out).expect("a section").collect();
    assert_eq!(again, Ok(expected));
}

/// A number, then a virtio-net header and an aggregate: every header that is written for it.
pub fn segmentation(bytes: &[u8]) {
    let Some((index, bytes)) = bytes.split_first_chunk() else { return };
    let index = u16::from_be_bytes(*index);
    let Ok(vnet) = VirtioNetHeader::parse(bytes) else { return };
    let frame = &bytes[VirtioNetHeader::BYTES..];
    checksum::complete(&vnet, &mut frame.to_vec());
    let Ok(plan) = Segmentation::plan(&vnet, frame) else { return };
    let mut header = [0; MAX_HEADER_BYTES];
    for index in [0, plan.frames() - 1, index] {
        let written = plan.write_header(frame, index, &mut header);
        assert_eq!(written, plan.header_bytes());
        assert!(frame.get(plan.payload_range(index)).is_some());
        let before = header;
        plan.mark(&mut header[..written]);
        let changed = before.iter().zip(&header).filter(|(before, after)| before != after).count();
        assert!(changed <= 3, "ECN is in one byte, the checksum in two");
        let _ = (plan.vnet_header(), plan.tcp_payload_bytes(index), plan.captured_bytes(index));
    }
    let all = u64::from(plan.captured_bytes(0)) + u64::from(plan.captured_bytes(plan.frames() - 1));
    assert!(
        plan.frames() > 1 || all == 2 * frame.len() as u64 || vnet.gso_kind() != VirtioNetHeader::GSO_NONE
    );
}

/// Flow, frames, then which byte becomes what, and whether the IPv4 header is right again afterwards.
type Step = [u8; 5];

/// Frames between interrupts, the family, then flows of segments with damage: what is merged of them can be cut again,
/// and all of it is there.
pub fn coalesce(bytes: &[u8]) {
    let Some((&[interrupt, family], steps)) = bytes.split_first_chunk() else { return };
    let v6 = family & 1 == 1;
    let mut sent = [0u16; 4];
    let packets: Vec<_> = steps
        .as_chunks()
        .0
        .iter()
        .take(400)
        .map(|step| packet(step, v6, &mut sent[usize::from(step[0] & 3)]))
        .collect();
    let (mut pushed, mut frames_out, mut bytes_in, mut bytes_out) = (0u64, 0u64, 0usize, 0usize);
    let mut give = |merged: &Coalesced<'_>| {
        let mut packet = merged.header.to_vec();
        for piece in merged.payload {
            let range = piece.start as usize..piece.end as usize;
            bytes_out += range.len();
            packet.extend(&packets[piece.packet as usize].1[range]);
        }
        frames_out += u64::from(merged.frames);
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
    assert_eq!((pushed, bytes_in), (frames_out, bytes_out));
}

/// The next packet of a flow that has sent so many frames.
fn packet(step: &Step, v6: bool, sent: &mut u16) -> (VirtioNetHeader, Vec<u8>) {
    let &[flow, frames, place, value, repair] = step;
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
        ..TcpFields::default()
    };
    *sent = sent.wrapping_add(frames);
    let mut frame = tcp_frame(&addresses, &fields, &vec![0; usize::from(frames * PAYLOAD_BYTES)]);
    if let Some(byte) = frame.get_mut(usize::from(place)) {
        *byte = value;
    }
    if repair & 1 == 1 && !v6 {
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
