//! Enters a host of a rack: its network, its name and those of others, its shared memory, its CPUs, its cgroup.

use crate::host::groups::{cgroup_root, is_group};
use crate::host::names::Shown;
use framegauge_linux::cgroup::Group;
use framegauge_linux::namespace::{NameAndMemory, Network};
use framegauge_linux::{OsError, Result, process, sched};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

fn refused(pid: u32, reason: &str) -> OsError {
    OsError {
        operation: format!("enter the host of process {pid}"),
        source: std::io::Error::new(std::io::ErrorKind::NotFound, reason.to_string()),
    }
}

/// Moves the calling (single-threaded) process into the host whose agent is process `pid`, started at `start_ticks`:
/// what it becomes then ends with the host.
pub fn enter(pid: u32, start_ticks: u64) -> Result<()> {
    let alive = || match process::start_ticks(pid) {
        Some(ticks) if ticks == start_ticks => Ok(()),
        Some(_) => Err(refused(pid, "it is another process by now, the host has gone")),
        None => Err(refused(pid, "it has ended, the host has gone")),
    };
    alive()?;
    let group = group_of(pid).ok_or_else(|| refused(pid, "it is not the agent of a rack's host"))?;
    let thread = process::second_thread(pid)?;
    let (network, names) = (Network::of_thread(thread)?, Shown::by_thread(thread)?);
    let own = NameAndMemory::of_thread(thread)?;
    let cpus = sched::allowed_cpus_of(pid as i32);
    group.join()?;
    // From here on the host's end is ours; but what was opened above must have been the host's.
    alive()?;
    sched::bind(0, &cpus)?;
    network.enter()?;
    own.take_on()?;
    names.map_or(Ok(()), |names| names.show_here())
}

/// The cgroup of a host by the command line of its agent; `None` for any other process. Anybody may start a program
/// under any name, so only root's word counts, and only for a group that is where a rack's groups are.
fn group_of(pid: u32) -> Option<Group> {
    if std::fs::metadata(format!("/proc/{pid}")).ok()?.uid() != 0 {
        return None;
    }
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let path = group_argument(&line)?;
    let rack = path.parent().filter(|rack| is_group(rack))?;
    (rack.parent() == Some(cgroup_root()?.as_path()) && path.is_dir()).then(|| Group::existing(path))
}

/// The value of `--group` in `PROGRAM host … --group PATH …`, as `/proc/PID/cmdline` has it.
fn group_argument(line: &[u8]) -> Option<PathBuf> {
    let mut words = line.split(|byte| *byte == 0).skip(1);
    if words.next() != Some(b"host") {
        return None;
    }
    words.find(|word| *word == b"--group")?;
    words.next().map(|path| Path::new(OsStr::from_bytes(path)).to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_group_of_a_hosts_agent_only() {
        let host = b"/proc/self/exe\0host\0--fresh\0--group\0/cg/framegauge-1-2/h1\0";
        assert_eq!(group_argument(host), Some("/cg/framegauge-1-2/h1".into()));
        assert_eq!(group_argument(b"agent\0rack\0--group\0/x\0"), None);
        assert_eq!(group_argument(b"agent\0host\0--group"), None);
        assert!(group_of(1).is_none());
    }

    #[test]
    fn another_process_with_the_same_number_is_no_host() {
        let own = std::process::id();
        let ticks = process::start_ticks(own).expect("a process knows itself");
        let message = |ticks| enter(own, ticks).expect_err("a test is no host").to_string();
        assert!(message(ticks + 1).contains("another process by now"));
        assert!(message(ticks).contains("not the agent of a rack's host"));
    }
}
