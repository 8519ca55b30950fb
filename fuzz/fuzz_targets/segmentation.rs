//! A virtio-net header and an aggregate: every header that is written for it.
#![no_main]

use libfuzzer_sys::fuzz_target;

use framegauge_packets::{MAX_HEADER_BYTES, Segmentation, VirtioNetHeader, checksum};

fuzz_target!(|input: (u16, &[u8])| {
    let (index, bytes) = input;
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
});
