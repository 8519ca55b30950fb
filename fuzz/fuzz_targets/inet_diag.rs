//! An answer of the kernel's socket listing, attributes included.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = framegauge_linux::sock_diag::parse(bytes);
});
