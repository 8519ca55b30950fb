//! Reads what Linux tells in `/proc`, subtracts, and keeps histograms and a book of connections.
//!
//! Every parser takes a text that somebody else has read; nothing here opens a file or knows the time.
//! A text that does not look as documented is a [`ParseError`] with line, found and expected, never a panic
//! and never a guess.

pub mod answers;
pub mod connections;
mod counters;
mod cpu;
mod delays;
mod error;
pub mod foreign;
mod mounts;
mod packet;
mod pressure;
mod process_stat;
mod schedstat;
pub mod sizes;
mod softirqs;
mod total;
pub mod trouble;
mod usage;

pub use counters::{Counters, difference, parse_netstat, parse_snmp, parse_snmp6};
pub use cpu::{CpuSeconds, CpuTimes, parse_stat};
pub use delays::Delays;
pub use error::ParseError;
pub use mounts::parse_cgroup2_mount;
pub use pressure::parse_cpu_pressure;
pub use process_stat::{ProcessStat, parse_process_stat};
pub use schedstat::{SchedStat, parse_schedstat};
pub use softirqs::{NetworkSoftirqs, parse_softirqs};
pub use usage::parse_cgroup_cpu;
