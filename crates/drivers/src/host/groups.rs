//! The cgroups of agents and their hosts: what runs in one ends with it.

use framegauge_linux::cgroup::Group;
use framegauge_linux::{OsError, Result, process};
use framegauge_metering::parse_cgroup2_mount;
use std::path::{Path, PathBuf};

/// How the name of every agent's group begins.
const GROUP_PREFIX: &str = "framegauge-";

/// The mounted cgroup version 2 tree.
pub fn cgroup_root() -> Option<PathBuf> {
    parse_cgroup2_mount(&std::fs::read_to_string("/proc/self/mountinfo").ok()?)
}

/// Makes the cgroup of this agent; its hosts' lie below.
pub fn create_group() -> Result<Group> {
    let root = cgroup_root().ok_or_else(|| OsError::errno("find the cgroup2 tree", 2))?;
    let pid = std::process::id();
    let name = format!("{GROUP_PREFIX}{pid}-{}", process::start_ticks(pid).unwrap_or(0));
    Group::create(&root, &name)
}

/// Ends and removes what agents left that were killed together with all of their children.
pub fn sweep() {
    let Some(entries) = cgroup_root().and_then(|root| std::fs::read_dir(root).ok()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(GROUP_PREFIX)).and_then(|rest| {
            let (pid, ticks) = rest.split_once('-')?;
            Some((pid.parse::<u32>().ok()?, ticks.parse::<u64>().ok()?))
        });
        if let Some((pid, ticks)) = owner
            && process::start_ticks(pid) != Some(ticks)
        {
            let _ = Group::existing(entry.path()).remove();
        }
    }
}

/// Whether a cgroup folder is that of a rack agent.
pub(crate) fn is_group(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(GROUP_PREFIX))
}

/// Removes the group of one host, with whatever still runs in it.
pub fn remove_group(path: &Path) -> Result<()> {
    Group::existing(PathBuf::from(path)).remove()
}
