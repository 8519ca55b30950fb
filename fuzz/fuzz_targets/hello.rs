//! The opening message of a stream: what is accepted is written back as it came.
#![no_main]

use libfuzzer_sys::fuzz_target;

use framegauge_traffic::{Hello, Token};

fuzz_target!(|input: ([u8; Hello::BYTES], Token)| {
    let (bytes, token) = input;
    if let Ok(hello) = Hello::decode(&bytes, &token) {
        assert_eq!(hello.encode(), bytes);
    }
});
