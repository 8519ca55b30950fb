//! /proc/softirqs.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = framegauge_metering::parse_softirqs(text);
});
