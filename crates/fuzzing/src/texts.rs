//! Texts: of people, of `/proc` and of `nft`.

use framegauge_frames::{Mtu, Stack};

/// Two bytes of MTU, then encapsulations as people write them: what is accepted is written back as it was meant, and the
/// inner MTU is in range.
pub fn encapsulations(bytes: &[u8]) {
    let Some((mtu, rest)) = bytes.split_first_chunk() else { return };
    let Ok(text) = str::from_utf8(rest) else { return };
    let Ok(stack) = Stack::parse(text.split(',')) else { return };
    let written: Vec<String> = stack
        .layers()
        .iter()
        .flat_map(|layer| {
            [Some(layer.to_string()), layer.encapsulation.underlay().map(|family| family.to_string())]
        })
        .flatten()
        .collect();
    assert_eq!(Stack::parse(written.iter().map(String::as_str)), Ok(stack.clone()));
    let Ok(mtu) = Mtu::new(u32::from(u16::from_be_bytes(*mtu))) else { return };
    if let Ok(fit) = stack.fit(mtu) {
        assert!(fit.inner_mtu <= mtu && fit.wire_bytes >= fit.frame_bytes);
    }
}

/// What nft, or iptables-save, prints of its rules.
pub fn ruleset(bytes: &[u8]) {
    use framegauge_frames::Family;
    let _ = framegauge_pathmtu::mss_clamps(bytes);
    let _ = framegauge_pathmtu::error_filters(bytes);
    let saved = String::from_utf8_lossy(bytes);
    let _ = framegauge_pathmtu::mss_clamps_of_iptables(&saved, Family::V4);
    let _ = framegauge_pathmtu::error_filters_of_iptables(&saved, Family::V6);
}

macro_rules! texts {
    ($($name:ident: $parse:ident, $what:literal;)*) => {$(
        #[doc = $what]
        pub fn $name(bytes: &[u8]) {
            let _ = str::from_utf8(bytes).map(framegauge_metering::$parse);
        }
    )*};
}

texts! {
    cgroup_cpu: parse_cgroup_cpu, "`cpu.stat` of a cgroup.";
    mountinfo: parse_cgroup2_mount, "`/proc/PID/mountinfo`.";
    pressure: parse_cpu_pressure, "`cpu.pressure` of a cgroup.";
    process_stat: parse_process_stat, "`/proc/PID/stat`.";
    schedstat: parse_schedstat, "`/proc/PID/task/TID/schedstat`.";
    snmp: parse_snmp, "`/proc/net/snmp` and `/proc/net/netstat`.";
    snmp6: parse_snmp6, "`/proc/net/snmp6`.";
    softirqs: parse_softirqs, "`/proc/softirqs`.";
    stat: parse_stat, "`/proc/stat`.";
}
