#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| framegauge_fuzzing::run("process_stat", bytes));
