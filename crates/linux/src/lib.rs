//! What framegauge asks of the Linux kernel: TAP devices, namespaces, netlink, sockets, scheduling,
//! cgroups. The only crate with unsafe code. It decides nothing: every function does one thing and
//! says in its error which operation failed.
#![allow(clippy::disallowed_methods)]

pub mod aggregates;
pub mod beneath;
pub mod bridge;
pub mod cgroup;
pub mod clock;
pub mod datagrams;
pub mod detached;
pub mod epoll;
pub mod error;
pub mod ethtool;
pub mod features;
pub mod files;
pub mod fork;
pub mod genetlink;
pub mod initial_windows;
pub mod kernel_log;
pub mod limits;
pub mod links;
pub mod listening;
pub mod lock;
pub mod multipath;
pub mod namespace;
pub mod neighbour_tables;
pub mod netlink;
pub mod networks;
pub mod nic_counters;
pub mod packet_ring;
pub mod packet_socket;
pub mod passing;
pub mod perf;
pub mod pidfd;
pub mod ping;
pub mod poll;
pub mod precedence;
pub mod process;
pub mod qdisc;
pub mod route_mtus;
pub mod routes;
pub mod rtnetlink;
pub mod sched;
pub mod sock_diag;
mod socket_address;
pub mod stamps;
pub mod sysctl;
pub mod tap;
pub mod tcp;
pub mod tracing;
pub mod tree;
#[cfg(any(test, feature = "trial"))]
pub mod trial;
pub mod tunnel;
pub mod udp;
pub mod udp_error;
pub mod uring;
pub mod user;
pub mod vxlan;
pub mod whole;

pub use error::{OsError, Result};
