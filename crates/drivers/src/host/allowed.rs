//! What may be changed of a host: the list that the controller reads, too, and the form of values and names.
//!
//! A lease may run as root by a rule of sudo's for everybody who may log in, and study files come from others. So the
//! list has only what changes how a host's network performs; a value is a few numbers, or the name of a congestion
//! control. Nothing on it is the name of a file or of a program.

const LIST: &str = include_str!("../../../../python/src/framegauge/files/settings.txt");
const CONGESTION_CONTROL: &str = "net.ipv4.tcp_congestion_control";
/// What every link of IPv4 carries (RFC 791); below it the kernel takes IPv4 from an interface, too.
const LEAST_MTU: u32 = 68;
/// Below it the kernel takes IPv6 from an interface (RFC 8200).
pub const LEAST_IPV6_MTU: u32 = 1280;
const MOST_MTU: u32 = 65_535;
/// Bytes of an aggregate: several frames of any usual MTU, and what the kernel's largest holds (`GSO_MAX_SIZE`).
const LEAST_AGGREGATE: u32 = 10_000;
const MOST_AGGREGATE: u32 = 8 * 65_535;
/// Bytes of an interface's name (`IFNAMSIZ`, less its end).
const LONGEST_NAME: usize = 15;
const LONGEST_VALUE: usize = 64;

/// The names of one kind, "sysctl" or "qdisc".
fn listed(kind: &str) -> impl Iterator<Item = &'static str> + use<'_> {
    LIST.lines()
        .filter_map(move |line| line.split_once(' ').filter(|(word, _)| *word == kind).map(|row| row.1))
}

fn all(kind: &str) -> String {
    listed(kind).collect::<Vec<_>>().join(", ")
}

/// Whether a sysctl may be changed, or what is wrong with its name.
pub fn sysctl(name: &str) -> Result<(), String> {
    if listed("sysctl").any(|entry| entry == name) {
        return Ok(());
    }
    Err(format!("found the sysctl {name:?}, expected one of {}", all("sysctl")))
}

/// Whether a sysctl on the list may have a value, or what is wrong with it.
pub fn sysctl_value(name: &str, value: &str) -> Result<(), String> {
    sysctl(name)?;
    let short = !value.trim().is_empty() && value.len() <= LONGEST_VALUE;
    if name == CONGESTION_CONTROL {
        let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        return (short && value.bytes().all(word) && value.len() <= LONGEST_NAME).then_some(()).ok_or(
            format!("found {name}={value:?}, expected the name of a congestion control, such as cubic"),
        );
    }
    let numbers = value.split_ascii_whitespace().all(|word| word.parse::<i64>().is_ok());
    (short && numbers).then_some(()).ok_or(format!("found {name}={value:?}, expected whole numbers"))
}

/// Whether a name can be that of an interface whose settings may change, or what is wrong with it.
pub fn interface(name: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"/\\\"'=:".contains(&byte);
    let fits =
        (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(plain) && !matches!(name, "." | "..");
    if fits && name != "lo" {
        return Ok(());
    }
    Err(format!("found the interface {name:?}, expected one of the host's, and not the loopback"))
}

/// Whether an interface may have an MTU, or what is wrong with it.
pub fn mtu(value: &str) -> Result<(), String> {
    match value.parse::<u32>() {
        Ok(mtu) if (LEAST_MTU..=MOST_MTU).contains(&mtu) => Ok(()),
        _ => Err(format!("found the MTU {value:?}, expected {LEAST_MTU} to {MOST_MTU} bytes")),
    }
}

/// Whether IPv6 may have an MTU on an interface, or what is wrong with it.
pub fn ipv6_mtu(value: &str) -> Result<(), String> {
    match value.parse::<u32>() {
        Ok(mtu) if (LEAST_IPV6_MTU..=MOST_MTU).contains(&mtu) => Ok(()),
        _ => Err(format!("found the MTU {value:?} of IPv6, expected {LEAST_IPV6_MTU} to {MOST_MTU} bytes")),
    }
}

/// The sizes of aggregates, IPv6's and IPv4's where there are two; `None` if it is neither one number nor two.
pub fn two_sizes(value: &str) -> Option<(u32, Option<u32>)> {
    let sizes: Vec<u32> = value.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    match sizes[..] {
        [both] => Some((both, None)),
        [ipv6, ipv4] => Some((ipv6, Some(ipv4))),
        _ => None,
    }
}

/// Whether an interface may have these largest aggregates, or what is wrong with them.
pub fn aggregates(value: &str) -> Result<(), String> {
    let fits = |bytes: u32| (LEAST_AGGREGATE..=MOST_AGGREGATE).contains(&bytes);
    match two_sizes(value) {
        Some((ipv6, ipv4)) if fits(ipv6) && ipv4.is_none_or(fits) => Ok(()),
        _ => Err(format!(
            "found the aggregates {value:?}, expected one or two numbers of {LEAST_AGGREGATE} to {MOST_AGGREGATE} bytes"
        )),
    }
}

/// Whether an interface may have a kind of queue discipline, or what is wrong with it.
pub fn qdisc(kind: &str) -> Result<(), String> {
    if listed("qdisc").any(|entry| entry == kind) {
        return Ok(());
    }
    Err(format!("found the qdisc {kind:?}, expected one of {}", all("qdisc")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_list_has_only_the_network() {
        for line in LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (kind, name) = line.split_once(' ').expect("a kind and a name");
            assert!(kind == "qdisc" || kind == "sysctl" && name.starts_with("net."), "{line}");
        }
        assert!(sysctl("net.ipv4.tcp_rmem").is_ok());
        assert!(qdisc("fq").is_ok());
    }

    #[test]
    fn what_belongs_to_the_machine_or_names_a_program_is_refused() {
        for name in [
            "kernel.core_pattern",
            "kernel.printk_ratelimit",
            "kernel.modprobe",
            "vm.overcommit_memory",
            "fs.suid_dumpable",
            "net.ipv4.ip_forward",
            "net.ipv4.tcp_mem",
            "net/ipv4/tcp_rmem",
            "net.ipv4.tcp_rmem/../../../kernel/core_pattern",
            "",
        ] {
            assert!(sysctl(name).is_err(), "{name}");
        }
        assert!(sysctl_value("net.ipv4.tcp_congestion_control", "bbr").is_ok());
        for value in ["", "|/tmp/evil", "../x", "CUBIC", "a b", "averyveryverylongname"] {
            assert!(sysctl_value("net.ipv4.tcp_congestion_control", value).is_err(), "{value}");
        }
        assert!(sysctl_value("net.ipv4.tcp_rmem", "4096 131072 33554432").is_ok());
        for value in ["", " ", "1 x", "|/tmp/evil", "1e9", &"1 ".repeat(40)] {
            assert!(sysctl_value("net.ipv4.tcp_rmem", value).is_err(), "{value}");
        }
    }

    #[test]
    fn interfaces_are_real_and_keep_ipv4() {
        for (name, good) in
            [("eth0", true), ("bond0.7", true), ("lo", false), ("..", false), ("", false), ("a/b", false)]
        {
            assert_eq!(interface(name).is_ok(), good, "{name}");
        }
        for (value, good) in [("67", false), ("68", true), ("65535", true), ("65536", false), ("x", false)] {
            assert_eq!(mtu(value).is_ok(), good, "{value}");
        }
        for (value, good) in [
            ("65536", true),
            ("180000 524280", true),
            ("524281", false),
            ("65536 9999", false),
            ("65536 65536 65536", false),
            ("", false),
            ("-1", false),
            ("1e5", false),
        ] {
            assert_eq!(aggregates(value).is_ok(), good, "{value}");
        }
        assert!(qdisc("default").is_err() && qdisc("netem").is_err() && qdisc("../x").is_err());
    }

    proptest! {
        #[test]
        fn whatever_passes_is_plain(name in ".*", value in ".*") {
            if sysctl_value(&name, &value).is_ok() {
                prop_assert!(name.starts_with("net.") && !value.contains('/') && !value.contains('|'));
            }
        }
    }
}
