//! A capture: whatever is read of it is read again after it has been written.
#![no_main]

use libfuzzer_sys::fuzz_target;

use framegauge_packets::pcapng::{Captured, Reader, SNAP_BYTES_MAXIMUM, Section};

fuzz_target!(|bytes: &[u8]| {
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
    let kept = |packet: &Captured<'_>| packet.bytes.len().min(SNAP_BYTES_MAXIMUM as usize);
    let expected: Vec<_> =
        packets.iter().map(|packet| Captured { bytes: &packet.bytes[..kept(packet)], ..*packet }).collect();
    let again: Result<Vec<_>, _> = Reader::new(&out).expect("a section").collect();
    assert_eq!(again, Ok(expected));
});
