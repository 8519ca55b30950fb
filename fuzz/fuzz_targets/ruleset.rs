//! What nft prints of its rules.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = framegauge_pathmtu::mss_clamps(bytes);
});
