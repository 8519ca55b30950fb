//! Answers of the kernel about interfaces, tunnels, addresses and remembered path MTUs.
#![no_main]

use libfuzzer_sys::fuzz_target;

use framegauge_linux::{links, routes, tunnel};

const KINDS: [&str; 11] = [
    "vxlan",
    "geneve",
    "gre",
    "gretap",
    "ip6gre",
    "ip6gretap",
    "ip6erspan",
    "ipip",
    "sit",
    "ip6tnl",
    "wireguard",
];

fuzz_target!(|bytes: &[u8]| {
    let _ = (links::parse_interface(bytes), links::parse_address(bytes), routes::parse_exception(bytes));
    for kind in KINDS {
        if let Some(encapsulation) = tunnel::parse(kind, bytes).and_then(|tunnel| tunnel.encapsulation) {
            assert!(encapsulation.overhead_bytes() >= 20);
        }
    }
});
