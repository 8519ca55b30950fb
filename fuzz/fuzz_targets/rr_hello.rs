//! The opening message of request/response: what is accepted is written back as it came.
#![no_main]

use libfuzzer_sys::fuzz_target;

use framegauge_traffic::{RrHello, Token};

fuzz_target!(|input: ([u8; RrHello::BYTES], Token)| {
    let (bytes, token) = input;
    if let Ok(hello) = RrHello::decode(&bytes, &token) {
        assert_eq!(hello.encode(), bytes);
    }
});
