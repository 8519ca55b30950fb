//! What the emulated rack needs of this machine, found out without leaving a change behind.

use crate::host::aggregates::{self, Asked};
use crate::host::groups::cgroup_root;
use framegauge_linux::precedence::{self, Precedence};
use framegauge_linux::process::Capability;
use framegauge_linux::uring::Writes;
use framegauge_linux::{bridge, namespace, perf, process, rtnetlink, sched, stamps, sysctl, tap};
use std::fs;

/// Something that is missing.
#[derive(Debug, Clone)]
pub struct Requirement {
    /// A short name.
    pub name: &'static str,
    /// What it is needed for.
    pub needed_for: &'static str,
    /// What was found instead.
    pub found: String,
    /// What to do about it.
    pub remedy: &'static str,
}

/// What is missing, and what is degraded without it.
#[derive(Debug, Clone, Default)]
pub struct Requirements {
    /// Without these nothing is built.
    pub missing: Vec<Requirement>,
    /// Without these the rack runs, with less.
    pub degraded: Vec<Requirement>,
}

/// What root may lack in a container, and nothing that is tried below would tell.
const RIGHTS: [(Capability, &str, &str, &str); 2] = [
    (
        Capability::NetRaw,
        "CAP_NET_RAW",
        "capturing the handshakes that prove the MSS",
        "in a container, add the capability NET_RAW",
    ),
    (
        Capability::SysNice,
        "CAP_SYS_NICE",
        "binding what receives for a host to the hosts' CPUs",
        "in a container, add the capability SYS_NICE",
    ),
];

/// A setting that every host gets.
const SYSCTL: &str = "net.ipv4.tcp_congestion_control";

/// Tries what the rack will do. Must be called by an agent started for nothing else.
pub fn probe(fabric: bool, shaped: bool, sizes: Asked) -> Requirements {
    let mut all = Requirements::default();
    if process::effective_user() != 0 {
        all.missing.push(Requirement {
            name: "privilege",
            needed_for: "network namespaces and their interfaces",
            found: format!("user id {}", process::effective_user()),
            remedy: "run it as root, or let framegauge start its agent through sudo",
        });
        return all;
    }
    all.missing.extend(RIGHTS.iter().filter(|right| !process::is_capable(right.0)).map(|right| {
        Requirement {
            name: right.1,
            needed_for: right.2,
            found: "an agent that does not have it".into(),
            remedy: right.3,
        }
    }));
    probe_groups(&mut all);
    let tried = std::thread::spawn(move || probe_devices(fabric, shaped, sizes)).join().unwrap_or_default();
    all.missing.extend(tried.missing);
    all.degraded.extend(tried.degraded);
    let cpus = sched::allowed_cpus().len();
    if fabric && cpus < 2 {
        all.degraded.push(Requirement {
            name: "cpus",
            needed_for: "a fabric that does not compete with the hosts",
            found: format!("{cpus} CPU"),
            remedy: "two or more CPUs; slower links otherwise",
        });
    }
    if let Err(error) = perf::can_count_instructions() {
        all.degraded.push(Requirement {
            name: "perf",
            needed_for: "cycles and instructions per host; goodput and completion time do not need it",
            found: error.to_string(),
            remedy: "a machine whose hypervisor shows its performance counters",
        });
    }
    all.degraded.extend(probe_precedence());
    if fabric {
        all.degraded.extend(probe_fabric());
    }
    all
}

/// Hosts that wait for other programs.
fn probe_precedence() -> Option<Requirement> {
    let condition = match precedence::current() {
        Precedence::RealTime => return None,
        Precedence::Nice => "a larger share of the CPUs (nice)",
        Precedence::Ordinary => "no precedence",
    };
    Some(Requirement {
        name: "precedence",
        needed_for: "hosts that do not wait for other programs: without it runs on a busy machine are excluded",
        found: condition.into(),
        remedy: "give the agent CAP_SYS_NICE and a real-time share in its cgroup (SCHED_RR)",
    })
}

/// What the fabric's thread does better with.
fn probe_fabric() -> Vec<Requirement> {
    let mut degraded = Vec::new();
    if let Err(error) = stamps::can_be_had() {
        degraded.push(Requirement {
            name: "bpf",
            needed_for: "frames that enter the network when hosts send them, not when the fabric reads them",
            found: error.to_string(),
            remedy: "give the agent CAP_BPF and CAP_NET_ADMIN; a kernel with BPF, Linux 5.12 or later",
        });
    }
    if let Err(error) = Writes::new() {
        degraded.push(Requirement {
            name: "io_uring",
            needed_for: "a fabric that takes less CPU",
            found: error.to_string(),
            remedy: "Linux 5.6 or later with sysctl kernel.io_uring_disabled=0; in a container, a seccomp profile that allows it",
        });
    }
    if !matches!(std::thread::spawn(|| sched::real_time(0, 10)).join(), Ok(Ok(()))) {
        degraded.push(Requirement {
            name: "real-time scheduling",
            needed_for: "a fabric that is on time",
            found: "SCHED_FIFO refused".into(),
            remedy: "give the agent CAP_SYS_NICE and a real-time share in its cgroup",
        });
    }
    degraded
}

fn probe_groups(all: &mut Requirements) {
    let condition = match cgroup_root() {
        None => "no cgroup2 mount in /proc/self/mountinfo".to_string(),
        Some(root) => {
            let probe = root.join(format!("framegauge-probe-{}", std::process::id()));
            match fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe)) {
                Ok(()) => return,
                Err(error) => format!("{}: {error}", root.display()),
            }
        }
    };
    all.missing.push(Requirement {
        name: "cgroups",
        needed_for: "ending the programs that run in hosts with everything they started",
        found: condition,
        remedy: "mount -t cgroup2 none /sys/fs/cgroup/unified, writable for root",
    });
}

/// Runs on a thread that then ends, so its namespace ends with it.
fn probe_devices(fabric: bool, shaped: bool, sizes: Asked) -> Requirements {
    let mut all = Requirements::default();
    let missing = &mut all.missing;
    if let Err(error) = namespace::enter_fresh_network() {
        missing.push(Requirement {
            name: "network namespaces",
            needed_for: "the hosts",
            found: error.to_string(),
            remedy: "a kernel with CONFIG_NET_NS and a container that may create namespaces",
        });
        return all;
    }
    if let Err(error) = sysctl::read(SYSCTL).and_then(|value| sysctl::write(SYSCTL, &value)) {
        missing.push(Requirement {
            name: "sysctls",
            needed_for: "the settings of the hosts",
            found: error.to_string(),
            remedy: "in a container, mount -o remount,rw,bind /proc/sys",
        });
    }
    let interface = "fgprobe0";
    if fabric {
        let tap = tap::Tap::create(interface, false, false);
        match &tap {
            Err(error) => missing.push(Requirement {
                name: "tap",
                needed_for: "the hosts' network interfaces",
                found: error.to_string(),
                remedy: "modprobe tun; in a container, pass the device /dev/net/tun",
            }),
            Ok(_) => {
                missing.extend(probe_shaper(interface));
                missing.extend(probe_aggregates(interface, sizes));
            }
        }
    } else {
        match rtnetlink::create_veth(interface, "fgprobe1", sched::thread_id() as u32) {
            Err(error) => missing.push(Requirement {
                name: "veth",
                needed_for: "the kernel's own link between the hosts",
                found: error.to_string(),
                remedy: "modprobe veth",
            }),
            Ok(()) => {
                missing.extend(shaped.then(|| probe_shaper(interface)).flatten());
                missing.extend(probe_aggregates(interface, sizes));
            }
        }
        let _ = rtnetlink::delete_link(interface);
        all.degraded.extend(bridge::create("fgprobe2").err().map(|error| Requirement {
            name: "bridge",
            needed_for: "three or more hosts; two do not need it",
            found: error.to_string(),
            remedy: "modprobe bridge",
        }));
    }
    all
}

fn probe_shaper(interface: &str) -> Option<Requirement> {
    crate::host::shaping::try_shaper(interface).err().map(|error| Requirement {
        name: "tbf",
        needed_for: "bounding the sender's queue",
        found: error.to_string(),
        remedy: "modprobe sch_tbf (on Debian cloud kernels: install the full kernel image)",
    })
}

/// What stands against these sizes on a device of this kind.
fn probe_aggregates(interface: &str, sizes: Asked) -> Option<Requirement> {
    let condition = match aggregates::read(interface) {
        Ok(now) => sizes.refused(&now).map(|(name, bytes, limit)| format!("{name} {bytes} above {limit}"))?,
        Err(error) => error.to_string(),
    };
    Some(Requirement {
        name: "aggregates",
        needed_for: "BIG TCP",
        found: condition,
        remedy: "levels up to that; the NICs of testbed kind: veth take larger aggregates than the TAPs of kind: rack",
    })
}
