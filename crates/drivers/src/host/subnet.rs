//! What every interface of a host gets: its subnet, and settings that keep the kernel's own traffic off it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The on-link network of `address`, with its prefix length.
pub(super) fn network(address: IpAddr) -> (IpAddr, u8) {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            (Ipv4Addr::new(a, b, c, 0).into(), 24)
        }
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            (Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into(), 64)
        }
    }
}

/// The kernel's own background traffic is off before the interface comes up: only what a workload
/// sends may cross the wire, or conservation could not be checked.
pub(super) fn quiet_sysctls_of(interface: &str, address: IpAddr) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut set =
        |name: &str, value: &str| all.insert(format!("net.ipv6.conf.{interface}.{name}"), value.to_string());
    set("disable_ipv6", if address.is_ipv4() { "1" } else { "0" });
    if address.is_ipv6() {
        // Reports of multicast listeners (RFC 3810 section 9.11) come twice: within milliseconds, not a second later, when
        // a run may be under way.
        let settings = [
            ("accept_dad", "0"),
            ("router_solicitations", "0"),
            ("accept_ra", "0"),
            ("addr_gen_mode", "1"),
            ("mldv2_unsolicited_report_interval", "1"),
        ];
        for (name, value) in settings {
            set(name, value);
        }
    }
    all
}
