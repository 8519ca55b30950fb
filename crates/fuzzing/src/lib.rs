//! What every reader of foreign bytes must hold, whatever the bytes are: a function of bytes for each, which panics where
//! it does not hold.
//!
//! `fuzz/` gives them to libFuzzer, which needs a nightly compiler; `tests/seeds.rs` gives them the inputs in
//! `fuzz/seeds/` and damaged ones, with any.

mod agent;
mod captures;
mod diagnosis;
mod kernel;
mod packets;
mod texts;
mod wire;

/// A function that panics where a reader of bytes does not do what it must.
pub type Target = fn(&[u8]);

/// Every target, by the name of its program in `fuzz/` and of the folder of its seeds.
pub const TARGETS: &[(&str, Target)] = &[
    // Bytes of other hosts.
    ("capture_decode", captures::capture_decode),
    ("capture_diagnosis", diagnosis::capture_diagnosis),
    ("capture_evidence", diagnosis::capture_evidence),
    ("capture_joined", diagnosis::capture_joined),
    ("capture_reader", captures::capture_reader),
    ("check_echo", wire::check_echo),
    ("check_message", wire::check_message),
    ("coalesce", packets::coalesce),
    ("datagram_head", wire::datagram_head),
    ("frame", packets::frame),
    ("hello", wire::hello),
    ("pcapng", packets::pcapng),
    ("rr_hello", wire::rr_hello),
    ("segmentation", packets::segmentation),
    // What people and the controller ask for.
    ("arguments", agent::arguments),
    ("encapsulations", texts::encapsulations),
    ("lease_list", agent::lease_list),
    ("pipe_message", agent::pipe_message),
    ("rack_up", agent::rack_up),
    ("settings", agent::settings),
    ("spool_read", agent::spool_read),
    // Answers of the kernel and of programs.
    ("cgroup_cpu", texts::cgroup_cpu),
    ("inet_diag", kernel::inet_diag),
    ("mountinfo", texts::mountinfo),
    ("netlink", kernel::netlink),
    ("nic_counters", kernel::nic_counters),
    ("qdisc", kernel::qdisc),
    ("rtnetlink", kernel::rtnetlink),
    ("ruleset", texts::ruleset),
    ("pressure", texts::pressure),
    ("process_stat", texts::process_stat),
    ("schedstat", texts::schedstat),
    ("snmp", texts::snmp),
    ("snmp6", texts::snmp6),
    ("softirqs", texts::softirqs),
    ("stat", texts::stat),
    ("tcp_info", kernel::tcp_info),
    ("udp_error", kernel::udp_error),
];

/// Gives bytes to the target of this name.
///
/// # Panics
/// If the target does not hold, or there is none of this name.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.0 == name);
    target.unwrap_or_else(|| panic!("found {name:?}, expected the name of a target")).1(bytes);
}
