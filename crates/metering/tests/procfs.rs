//! Texts as kernels write them, texts as they never should be.

use std::path::PathBuf;

use framegauge_metering::{
    CpuTimes, Delays, NetworkSoftirqs, difference, parse_cgroup_cpu, parse_cgroup2_mount, parse_netstat,
    parse_schedstat, parse_snmp, parse_snmp6, parse_softirqs, parse_stat,
};
use proptest::prelude::*;

const SNMP: &str = "\
Ip: Forwarding DefaultTTL InReceives
Ip: 1 64 1200
Tcp: RtoAlgorithm MaxConn OutSegs RetransSegs
Tcp: 1 -1 987 3
";

#[test]
fn counters_are_named_as_nstat_names_them() {
    let counters = parse_snmp(SNMP).unwrap();
    assert_eq!(counters.len(), 7);
    assert_eq!(counters["TcpOutSegs"], 987);
    assert_eq!(counters["TcpMaxConn"], -1);
    let netstat = "TcpExt: SyncookiesSent TCPTimeouts\nTcpExt: 0 5\nIpExt: InOctets\nIpExt: 99999999999\n";
    let counters = parse_netstat(netstat).unwrap();
    assert_eq!((counters["TcpExtTCPTimeouts"], counters["IpExtInOctets"]), (5, 99_999_999_999));
    let counters = parse_snmp6("Ip6InReceives                   \t17\nIcmp6InMsgs\t0\n").unwrap();
    assert_eq!(counters["Ip6InReceives"], 17);
}

#[test]
fn errors_say_line_found_and_expected() {
    let error = parse_snmp("Tcp: A B\nTcp: 1 x\n").unwrap_err();
    assert_eq!(error.to_string(), "line 2: found \"x\", expected as many 64-bit numbers as there are names");
    assert_eq!(parse_snmp("Tcp: A\nUdp: 1\n").unwrap_err().found, "Udp");
    assert_eq!(parse_snmp("Tcp: A\n").unwrap_err().line, 2);
    assert_eq!(parse_snmp("Tcp: A\nTcp: 1 2\n").unwrap_err().found, "2");
    assert_eq!(parse_snmp("Tcp A\n").unwrap_err().expected, "a prefix and a colon");
    assert_eq!(parse_snmp6("\nA\n").unwrap_err().line, 2);
    assert_eq!(parse_snmp6("A 1 2\n").unwrap_err().found, "2");
}

#[test]
fn a_difference_knows_every_name() {
    let before = parse_snmp6("A 5\nGone 2\n").unwrap();
    let after = parse_snmp6("A 9\nNew 1\n").unwrap();
    let counted = difference(&before, &after);
    assert_eq!(
        counted.into_iter().collect::<Vec<_>>(),
        [("A".to_owned(), 4), ("Gone".to_owned(), -2), ("New".to_owned(), 1)]
    );
}

#[test]
fn time_that_moves_between_idle_and_waiting_counts_once() {
    let times = |idle, iowait| CpuTimes { idle, iowait, ..CpuTimes::default() };
    let spent = |later: CpuTimes, earlier| {
        let spent = later.since(&earlier);
        (spent.idle, spent.iowait)
    };
    assert_eq!(spent(times(130, 40), times(100, 30)), (30, 10));
    // 20 that were waiting are idle now, or the other way round; 10 passed.
    assert_eq!(spent(times(130, 10), times(100, 30)), (10, 0));
    assert_eq!(spent(times(80, 60), times(100, 30)), (0, 10));
    assert_eq!(spent(times(80, 40), times(100, 30)), (0, 0));
}

#[test]
fn cpu_times() {
    let text =
        "cpu  3 0 0 0 0 0 0 0 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu11 100 0 0 0 0 0 0 50\nintr 12 0\nctxt 5\n";
    let cpus = parse_stat(text).unwrap();
    assert_eq!(cpus.keys().copied().collect::<Vec<_>>(), [0, 11]);
    assert_eq!(
        cpus[&0],
        CpuTimes { user: 1, nice: 2, system: 3, idle: 4, iowait: 5, irq: 6, softirq: 7, steal: 8 }
    );
    let spent = cpus[&11].since(&cpus[&0]).seconds(100);
    assert_eq!((spent.user, spent.steal, spent.iowait), (0.99, 0.42, 0.0));
    assert_eq!(parse_stat("cpu0 1 2 3\n").unwrap_err().expected, "eight numbers of ticks");
    assert_eq!(parse_stat("cpux 1 2 3 4 5 6 7 8\n").unwrap_err().found, "x");
    assert!(parse_stat("").is_err());
}

#[test]
fn schedstat() {
    let stat = parse_schedstat("1000 20 3\n").unwrap();
    let later = parse_schedstat("5000 25 9\n").unwrap().since(&stat);
    assert_eq!((later.run_nanoseconds, later.wait_nanoseconds, later.slices), (4000, 5, 6));
    assert!(parse_schedstat("1 2\n").is_err());
    assert!(parse_schedstat("1 2 3 4\n").is_err());
}

#[test]
fn softirqs_by_cpu() {
    let text = "            CPU0       CPU2\n  HI:  0  1\n  NET_TX:  7  8\n  NET_RX:  9  10\n  RCU: 1 2\n";
    let cpus = parse_softirqs(text).unwrap();
    assert_eq!(cpus.keys().copied().collect::<Vec<_>>(), [0, 2]);
    assert_eq!(cpus[&2], NetworkSoftirqs { receive: 10, transmit: 8 });
    assert_eq!(cpus[&2].since(&cpus[&0]), NetworkSoftirqs { receive: 1, transmit: 1 });
    assert_eq!(parse_softirqs("CPU0 CPU1\nNET_TX: 1 2\nNET_RX: 1\n").unwrap_err().line, 3);
    assert_eq!(
        parse_softirqs("CPU0\nNET_TX: 1\n").unwrap_err().expected,
        "lines that begin with NET_RX and NET_TX"
    );
    assert_eq!(parse_softirqs("cpu0\n").unwrap_err().found, "cpu0");
}

#[test]
fn what_a_cgroup_used() {
    assert_eq!(parse_cgroup_cpu("usage_usec 1500\nuser_usec 500\nsystem_usec 1000\n"), Ok(1_500_000));
    assert_eq!(
        parse_cgroup_cpu("nr_periods 0\n").unwrap_err().expected,
        "a line that begins with usage_usec"
    );
    assert_eq!(parse_cgroup_cpu("usage_usec x\n").unwrap_err().found, "x");
}

#[test]
fn cgroup2_mounts() {
    let line =
        |point: &str, kind: &str| format!("35 24 0:30 / {point} rw,nosuid shared:9 - {kind} cgroup2 rw\n");
    let pure = line("/sys/fs/cgroup", "cgroup2");
    assert_eq!(parse_cgroup2_mount(&pure), Some(PathBuf::from("/sys/fs/cgroup")));
    let hybrid = line("/sys/fs/cgroup", "tmpfs") + &line("/sys/fs/cgroup/unified", "cgroup2");
    assert_eq!(parse_cgroup2_mount(&hybrid), Some(PathBuf::from("/sys/fs/cgroup/unified")));
    let odd = line("/mnt/with\\040space\\134", "cgroup2");
    assert_eq!(parse_cgroup2_mount(&odd), Some(PathBuf::from("/mnt/with space\\")));
    assert_eq!(parse_cgroup2_mount(&line("/sys/fs/cgroup", "cgroup")), None);
    assert_eq!(parse_cgroup2_mount("no mountinfo"), None);
    let without_optional_fields = "35 24 0:30 / /cg rw - cgroup2 none rw";
    assert_eq!(parse_cgroup2_mount(without_optional_fields), Some(PathBuf::from("/cg")));
}

#[test]
fn an_empty_histogram_is_zero() {
    let delays = Delays::new();
    assert_eq!((delays.count(), delays.quantile(0.5), delays.max_seconds()), (0, 0.0, 0.0));
    assert_eq!(delays.mean_seconds(), 0.0);
}

#[test]
fn quantiles_of_a_known_set() {
    let mut delays = Delays::new();
    (1..=1000).for_each(|microseconds| delays.record(microseconds * 1000));
    let close =
        |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.01, "{found} {expected}");
    close(delays.quantile(0.5), 500e-6);
    close(delays.quantile(0.99), 990e-6);
    assert!((delays.mean_seconds() - 500.5e-6).abs() < 1e-15);
    assert_eq!(delays.max_nanoseconds(), 1_000_000);
    assert_eq!(delays.quantile(1.0), delays.max_seconds());
    delays.reset();
    assert_eq!(delays, Delays::new());
}

proptest! {
    #[test]
    fn quantiles_are_right_to_one_percent(mut values in prop::collection::vec(any::<u64>(), 1..200), q in 0.0f64..=1.0) {
        let mut delays = Delays::new();
        values.iter().for_each(|&value| delays.record(value));
        values.sort_unstable();
        let rank = ((q * values.len() as f64).ceil() as usize).max(1);
        let truth = values[rank - 1] as f64 * 1e-9;
        let found = delays.quantile(q);
        prop_assert!(found >= truth * (1.0 - 1e-12) && found <= truth * 1.008, "{} for {}", found, truth);
    }

    #[test]
    fn small_values_are_exact(value in 0u64..256) {
        let mut delays = Delays::new();
        delays.record(value);
        delays.record(1 << 50);
        prop_assert_eq!(delays.quantile(0.5), value as f64 * 1e-9);
    }

    #[test]
    fn merging_is_recording_both(
        left in prop::collection::vec(any::<u64>(), 0..50), right in prop::collection::vec(any::<u64>(), 0..50),
    ) {
        let of = |values: &[u64]| {
            let mut delays = Delays::new();
            values.iter().for_each(|&value| delays.record(value));
            delays
        };
        let mut merged = of(&left);
        merged.merge(&of(&right));
        prop_assert_eq!(merged, of(&[left, right].concat()));
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in ".*", form in "(cpu[0-9]{0,12}|[A-Z]:|[0-9 -]{0,30}|\\\\[0-9]{3}| |\n)*") {
        for text in [text, form] {
            let _ = parse_snmp(&text);
            let _ = parse_snmp6(&text);
            let _ = parse_stat(&text);
            let _ = parse_schedstat(&text);
            let _ = parse_softirqs(&text);
            let _ = parse_cgroup_cpu(&text);
            let _ = parse_cgroup2_mount(&text);
            let _ = parse_cgroup2_mount(&format!("1 2 3 4 /{text} 6 - cgroup2 x"));
        }
    }

    #[test]
    fn written_counters_are_read_back(values in prop::collection::btree_map("[A-Z][a-z]{1,8}", any::<i64>(), 1..20)) {
        let names: String = values.keys().map(|name| format!(" {name}")).collect();
        let numbers: String = values.values().map(|value| format!(" {value}")).collect();
        let counters = parse_snmp(&format!("Tcp:{names}\nTcp:{numbers}\n")).unwrap();
        let expected = values.into_iter().map(|(name, value)| (format!("Tcp{name}"), value)).collect();
        prop_assert_eq!(counters, expected);
    }
}
