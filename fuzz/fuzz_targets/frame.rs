//! One frame: every view of it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(packet) = framegauge_packets::parse(bytes) else { return };
    assert!(bytes.get(packet.payload_range()).is_some());
    let _ = (packet.flow_hash(), packet.source(), packet.destination(), packet.source_mac());
    let _ = packet.tcp().map(|tcp| (tcp.options(), tcp.payload().len()));
});
