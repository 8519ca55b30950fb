//! The processes that descend from one, their sockets, and their end.

use crate::error::{Result, check};
use crate::process::Ending;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

/// Every process that `/proc` shows.
pub fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
}

/// The processes that descend from `ancestor`, without those that have ended. One that forks meanwhile may have a child
/// that is not among them.
pub fn descendants(ancestor: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let mut children: BTreeMap<u32, Vec<(u32, bool)>> = BTreeMap::new();
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let text = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some((parent, runs)) = parse_stat(&text) {
            children.entry(parent).or_default().push((pid, runs));
        }
    }
    let (mut pids, mut next) = (Vec::new(), vec![ancestor]);
    while let Some(parent) = next.pop() {
        // Taken out, so that a number that came into use again meanwhile makes no circle.
        for (pid, runs) in children.remove(&parent).unwrap_or_default() {
            next.push(pid);
            pids.extend(runs.then_some(pid));
        }
    }
    pids
}

/// The parent in `/proc/PID/stat`, and whether the process has not ended. Its name may have spaces and brackets.
fn parse_stat(text: &str) -> Option<(u32, bool)> {
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let runs = !matches!(fields.next()?, "Z" | "X" | "x");
    Some((fields.next()?.parse().ok()?, runs))
}

/// The numbers of the sockets that a process has open; empty where it has ended, or is another user's.
pub fn sockets(pid: u32) -> BTreeSet<u64> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return BTreeSet::new() };
    let links = entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    links.filter_map(|link| socket_inode(&link)).collect()
}

/// The number in what a link of `/proc/PID/fd` to a socket says, such as `socket:[1234]`.
pub(crate) fn socket_inode(link: &Path) -> Option<u64> {
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// From now on the processes that descend from this one stay its descendants, also those whose parents have ended.
pub fn adopt_orphans() -> Result<()> {
    // SAFETY: no memory is passed.
    let done = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    check(done, "become the parent of orphans").map(drop)
}

/// What became of the children of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaped {
    /// This one has ended, and is known no more.
    Ended(u32, Ending),
    /// All that there are run.
    Running,
    /// There are none; with [`adopt_orphans`], no descendants either.
    Nobody,
}

/// Looks whether a child has ended.
pub fn reap() -> Reaped {
    let mut status = 0;
    loop {
        // SAFETY: `status` is valid during the call.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
        match pid {
            0 => return Reaped::Running,
            1.. => return Reaped::Ended(pid as u32, ExitStatus::from_raw(status).into()),
            _ if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
            _ => return Reaped::Nobody,
        }
    }
}

/// Kills (SIGKILL) the descendants that this process has now.
pub fn kill_descendants() {
    for pid in descendants(std::process::id()) {
        // SAFETY: no memory is passed; it was our descendant a moment ago.
        unsafe { libc::kill(pid as i32, libc::SIGKILL) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn reads_what_the_kernel_writes() {
        assert_eq!(parse_stat("7 (a) b) ) S 3 7 7 0"), Some((3, true)));
        assert_eq!(parse_stat("7 (sh) Z 3 7"), Some((3, false)));
        assert_eq!(parse_stat("7 (sh) S"), None);
        assert_eq!(parse_stat(""), None);
        assert_eq!(socket_inode(Path::new("socket:[12]")), Some(12));
        assert_eq!(socket_inode(Path::new("pipe:[12]")), None);
    }

    #[test]
    fn finds_grandchildren_and_nobody_else() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 1000 & echo $!; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut line = String::new();
        let output = child.stdout.take().expect("a pipe");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("a line");
        let grandchild: u32 = line.trim().parse().expect("a process");
        assert_eq!(descendants(child.id()), [grandchild]);
        assert!(descendants(std::process::id()).contains(&grandchild));
        assert_eq!(descendants(grandchild), []);
        child.kill().and_then(|()| child.wait()).expect("it ends");
        assert!(Command::new("kill").arg(grandchild.to_string()).status().expect("a program").success());
    }
}
