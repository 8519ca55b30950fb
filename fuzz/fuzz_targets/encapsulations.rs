//! Encapsulations as people write them: what is accepted is written back as it was meant, and the inner MTU is in range.
#![no_main]

use libfuzzer_sys::fuzz_target;

use framegauge_frames::{Mtu, Stack};

fuzz_target!(|input: (u16, &str)| {
    let (mtu, text) = input;
    let Ok(stack) = Stack::parse(text.split(',')) else { return };
    let written: Vec<String> = stack
        .layers()
        .iter()
        .flat_map(|layer| {
            [Some(layer.to_string()), layer.encapsulation.underlay().map(|family| family.to_string())]
        })
        .flatten()
        .collect();
    assert_eq!(Stack::parse(written.iter().map(String::as_str)), Ok(stack.clone()));
    let Ok(mtu) = Mtu::new(u32::from(mtu)) else { return };
    if let Ok(fit) = stack.fit(mtu) {
        assert!(fit.inner_mtu <= mtu && fit.wire_bytes >= fit.frame_bytes);
    }
});
