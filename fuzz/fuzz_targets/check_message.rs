//! Probes and acknowledgements of the path MTU check: what is accepted is written back as it came.
#![no_main]

use libfuzzer_sys::fuzz_target;

use framegauge_pathmtu::{Acknowledgement, Probe, Token};

fuzz_target!(|input: (Vec<u8>, Token)| {
    let (bytes, token) = input;
    if let Ok(probe) = Probe::read(&token, &bytes) {
        let mut written = vec![0; 36];
        probe.write(&token, &mut written);
        assert_eq!(written[..32], bytes[..32]);
    }
    if let Ok(answer) = Acknowledgement::read(&token, &bytes) {
        assert_eq!(answer.to_bytes(&token)[..], bytes[..36]);
    }
});
