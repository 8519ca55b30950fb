#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| framegauge_fuzzing::run("lease_list", bytes));
