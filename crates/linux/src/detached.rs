//! A process that whoever started it can neither end nor hold up. What somebody else's program inherits from its caller,
//! such as through sudo, may bear the caller's marks: a cgroup that the caller may freeze, end or starve, a session whose
//! terminal signals it, limits of CPU time and memory, a low place in the order of the scheduler, timers that may be late, a
//! high place in the order of the kernel when memory runs out.

use crate::error::{Context, OsError, Result, check};
use crate::namespace::{self, STAGE};
use crate::precedence;
use crate::process::effective_user;
use crate::sched;
use std::fs;
use std::path::{Path, PathBuf};

const OWN_GROUPS: &str = "/proc/self/cgroup";
const MOUNTS: &str = "/proc/self/mountinfo";
/// Which of several processes the kernel ends last.
const NEVER: &str = "-1000";
/// A group below the root, for a process that cannot be in the root itself.
const OF_ITS_OWN: &str = "framegauge-lease";
const OPEN_FILES: libc::rlim_t = 1024;
const MOST_CPUS: usize = libc::CPU_SETSIZE as usize;

/// Leaves all of that. An error if it cannot: it would stay in a cgroup below the root of what it sees, which may be its
/// caller's, or under a limit that ends it.
pub fn detach() -> Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::setsid() }, "leave the caller's session")?;
    sched::finest_timers();
    std::env::set_current_dir("/").during("leave the caller's folder")?;
    if effective_user() != 0 {
        // Who started it is this same user, who may do whatever it may, and has changed the host by the same right.
        return Ok(());
    }
    leave_groups(Path::new(OWN_GROUPS), Path::new(MOUNTS))?;
    lift_limits()?;
    // Without the right to these, it competes as its caller does, and gets its turn later.
    let all: Vec<usize> = (0..MOST_CPUS).collect();
    let _ = (precedence::take_usual(), sched::bind(0, &all), fs::write("/proc/self/oom_score_adj", NEVER));
    Ok(())
}

/// Removes the groups that [`detach`] had to make, unless a process is in one.
pub fn sweep() {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (own, mounts) = (read(OWN_GROUPS), read(MOUNTS));
    for group in own.lines().filter_map(OwnGroup::parse) {
        if let Some((_, point)) = group.root(&mounts) {
            let _ = fs::remove_dir(point.join(OF_ITS_OWN));
        }
    }
}

/// Limits by which the kernel ends a process, or refuses what it needs to put settings back.
fn lift_limits() -> Result<()> {
    let unlimited = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    for resource in
        [libc::RLIMIT_CPU, libc::RLIMIT_AS, libc::RLIMIT_DATA, libc::RLIMIT_FSIZE, libc::RLIMIT_RTTIME]
    {
        let mut now = unlimited;
        // SAFETY: both are valid during the calls.
        unsafe {
            check(libc::getrlimit(resource, &mut now), "read the caller's limits")?;
            if now.rlim_cur != libc::RLIM_INFINITY {
                check(libc::setrlimit(resource, &unlimited), "lift the caller's limits")?;
            }
        }
    }
    // So few that nobody can have been given less by a mistake, and enough.
    let files = libc::rlimit { rlim_cur: OPEN_FILES, rlim_max: OPEN_FILES };
    // SAFETY: `files` is valid during the call. Where it is refused, there are as many as the caller has.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &files) };
    Ok(())
}

/// Moves this process into the root of each hierarchy of cgroups, as far as it sees them.
fn leave_groups(own: &Path, mounts: &Path) -> Result<()> {
    let read = |path: &Path| fs::read_to_string(path).during(format!("read {}", path.display()));
    let (groups, mounts) = (read(own)?, read(mounts)?);
    for group in groups.lines().filter_map(OwnGroup::parse).filter(|group| group.path != "/") {
        let operation = format!("leave the caller's cgroup {}", group.path);
        match group.root(&mounts) {
            Some((root, _)) if root == group.path => {}
            Some((_, point)) => join(&point).during(operation)?,
            // Such as below `ip netns exec`, which shows a /sys of its own.
            None => {
                let (kind, options) = group.mount_words();
                let joined = || join(Path::new(STAGE)).during(operation.clone());
                namespace::with_private_mount(kind, options.as_deref(), STAGE, joined)
                    .map_err(|error| OsError { operation: operation.clone(), source: error.source })?;
            }
        }
    }
    Ok(())
}

/// Moves this process into a group, or where that takes no processes (a container's, which has given its controllers to
/// groups below) into one of its own in there, which is root's.
fn join(folder: &Path) -> std::io::Result<()> {
    // "0" stands for the writer itself.
    let enter = |folder: &Path| fs::write(folder.join("cgroup.procs"), "0");
    enter(folder).or_else(|error| {
        if error.raw_os_error() != Some(libc::EBUSY) {
            return Err(error);
        }
        let own = folder.join(OF_ITS_OWN);
        let result = fs::create_dir(&own);
        result.or_else(|error| if own.is_dir() { Ok(()) } else { Err(error) }).and_then(|()| enter(&own))
    })
}

/// A line of `/proc/PID/cgroup`: the hierarchy, by its controllers or name (none: version 2), and the group in it.
struct OwnGroup<'a> {
    hierarchy: &'a str,
    path: &'a str,
}

impl<'a> OwnGroup<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (_, rest) = line.split_once(':')?;
        let (hierarchy, path) = rest.split_once(':')?;
        Some(Self { hierarchy, path })
    }

    /// How its hierarchy is mounted: the kind of file system, and its options.
    fn mount_words(&self) -> (&'static str, Option<String>) {
        match self.hierarchy {
            "" => ("cgroup2", None),
            // One without a controller.
            name if name.starts_with("name=") => ("cgroup", Some(format!("none,{name}"))),
            controllers => ("cgroup", Some(controllers.into())),
        }
    }

    /// The group above it that is mounted somewhere and is the highest, and where. A container may see a part only.
    fn root(&self, mounts: &str) -> Option<(String, PathBuf)> {
        let places = mounts.lines().filter_map(|line| {
            let (place, kind) = line.split_once(" - ")?;
            let mut fields = place.split(' ').skip(3);
            let (root, point) = (unescaped(fields.next()?), fields.next()?);
            let mut kind = kind.split(' ');
            let (name, options) = (kind.next()?, kind.nth(1)?);
            let is_it = match name {
                "cgroup2" => self.hierarchy.is_empty(),
                // The controllers are options of the mount, as is the name of one without any.
                "cgroup" => {
                    !self.hierarchy.is_empty()
                        && self
                            .hierarchy
                            .split(',')
                            .all(|word| options.split(',').any(|option| option == word))
                }
                _ => false,
            };
            let below = self.path.strip_prefix(root.trim_end_matches('/'));
            let is_above = below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            (is_it && is_above).then(|| (root, PathBuf::from(unescaped(point))))
        });
        places.min_by_key(|(root, _)| root.len())
    }
}

/// The octal escapes of a mount's place undone.
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .into_iter()
        .fold(text.to_string(), |text, (escape, byte)| text.replace(escape, byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
35 34 0:33 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw,nsdelegate
36 34 0:34 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:3 - cgroup cgroup rw,cpu,cpuacct
37 34 0:35 / /sys/fs/cgroup/systemd rw,nosuid - cgroup cgroup rw,xattr,name=systemd
38 34 0:37 /docker/12 /mnt/part rw - cgroup cgroup rw,devices
40 34 0:36 /docker /mnt/less rw - cgroup cgroup rw,freezer
39 34 0:36 / /mnt/a\\040b rw - cgroup cgroup rw,freezer
";

    #[test]
    fn the_root_of_each_hierarchy_is_known_by_its_mount() {
        for (line, expected) in [
            ("0::/user.slice/a.scope", Some(("/", "/sys/fs/cgroup/unified"))),
            ("4:cpu,cpuacct:/a", Some(("/", "/sys/fs/cgroup/cpu,cpuacct"))),
            ("1:name=systemd:/a:b", Some(("/", "/sys/fs/cgroup/systemd"))),
            ("7:freezer:/docker/12/a", Some(("/", "/mnt/a b"))),
            ("9:devices:/docker/12/a", Some(("/docker/12", "/mnt/part"))),
            ("9:devices:/docker/123", None),
            ("8:pids:/a", None),
        ] {
            let group = OwnGroup::parse(line).expect("a line");
            let expected = expected.map(|(root, point)| (root.to_string(), PathBuf::from(point)));
            assert_eq!(group.root(HYBRID), expected, "{line}");
        }
    }

    #[test]
    fn a_group_that_cannot_be_left_is_an_error() {
        let folder = std::env::temp_dir().join(format!("framegauge-groups-{}", std::process::id()));
        fs::create_dir(&folder).expect("a folder");
        let (own, mounts) = (folder.join("own"), folder.join("mounts"));
        fs::write(&mounts, "").expect("a file");
        fs::write(&own, "0::/\n9:pids:/\n").expect("a file");
        assert!(leave_groups(&own, &mounts).is_ok());
        fs::write(&own, "5:no-such-controller:/a\n").expect("a file");
        let error = leave_groups(&own, &mounts).expect_err("the kernel has none").to_string();
        assert!(error.starts_with("leave the caller's cgroup /a:"), "{error}");
        fs::remove_dir_all(folder).expect("the folder");
    }
}
