//! Network namespaces. Those that are made here have no name: one lives as long as a process or descriptor in it does.

use crate::error::{Context, OsError, Result, check};
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Where `ip netns` keeps its namespaces.
const NAMED: &str = "/run/netns";
/// Where a file system in memory is mounted for a moment: every kernel has it, and nobody reads it meanwhile.
pub(crate) const STAGE: &str = "/sys/kernel";
/// Of a fresh namespace's own table: a walk over it takes a fifth of a millisecond.
const CONNECTION_BUCKETS: &str = "16384";
/// What the kernel derives from the table's size. A smaller table is no reason to have less of it.
const DERIVED_LIMITS: [&str; 2] =
    ["/proc/sys/net/ipv4/tcp_max_tw_buckets", "/proc/sys/net/ipv4/tcp_max_syn_backlog"];

/// Moves the calling thread into a fresh network namespace, which ends with the thread.
pub fn enter_fresh_network() -> Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) }, "create a network namespace").map(drop)
}

/// Does `work` on a second thread, and the threads and programs that it starts, in a fresh network and mount namespace,
/// in which `/sys` shows that network. The cgroup tree stays visible in it. With `name` it has that host name there.
///
/// The first thread waits outside: by it others tell where a process is. A monitor that once a second looks into every
/// network that has a process would else do so once for each host of a rack, and hold a CPU for milliseconds each time.
pub fn apart<T: Send>(name: Option<&str>, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let inside = || {
        enter_fresh()?;
        name.map_or(Ok(()), take_name)?;
        work()
    };
    std::thread::scope(|scope| scope.spawn(inside).join())
        .unwrap_or_else(|_| Err(OsError::errno("work in a network namespace", libc::EIO)))
}

/// Moves the calling thread into a fresh network and mount namespace, in which `/sys` shows that network.
///
/// It gets a table of TCP connections of its own, where the kernel can (Linux 6.1). In the table that namespaces share
/// by default whoever lists one namespace's connections walks over all buckets (262,144 on a machine of 24 GB), which
/// holds a CPU for milliseconds: a monitor that does so delays everybody else.
fn enter_fresh() -> Result<()> {
    let limits = DERIVED_LIMITS.map(|path| (path, std::fs::read_to_string(path).ok()));
    enter_fresh_network()?;
    // Counts for the children of this namespace, which ends here.
    let own = std::fs::write("/proc/sys/net/ipv4/tcp_child_ehash_entries", CONNECTION_BUCKETS).is_ok();
    // SAFETY: no memory is passed.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS) }, "create a network namespace")?;
    for (path, value) in limits {
        if let (true, Some(value)) = (own, value) {
            std::fs::write(path, value).during(format!("write {path}"))?;
        }
    }
    mount_sys(libc::MS_PRIVATE)
}

/// Gives the calling thread, and what it starts, a host name of its own, and System V memory that ends with them: a
/// database that is killed leaves a segment otherwise, for as long as the machine runs.
fn take_name(name: &str) -> Result<()> {
    // SAFETY: no memory is passed.
    let fresh = unsafe { libc::unshare(libc::CLONE_NEWUTS | libc::CLONE_NEWIPC) };
    check(fresh, "create namespaces for a host name and shared memory")?;
    // SAFETY: pointer and length describe `name`.
    let status = unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) };
    check(status, &format!("take the host name {name:?}")).map(drop)
}

/// The host name and the System V memory that a thread has, as namespaces.
pub struct NameAndMemory([(File, libc::c_int); 2]);

impl NameAndMemory {
    /// Those of thread `id`.
    pub fn of_thread(id: u32) -> Result<Self> {
        let open = |name: &str| {
            let path = format!("/proc/{id}/ns/{name}");
            File::open(&path).during(format!("open {path}"))
        };
        Ok(Self([(open("uts")?, libc::CLONE_NEWUTS), (open("ipc")?, libc::CLONE_NEWIPC)]))
    }

    /// Gives them to the calling (single-threaded) process.
    pub fn take_on(&self) -> Result<()> {
        for (namespace, kind) in &self.0 {
            // SAFETY: the descriptor is open; no memory is passed.
            let moved = unsafe { libc::setns(namespace.as_raw_fd(), *kind) };
            check(moved, "take on a host's name and shared memory")?;
        }
        Ok(())
    }
}

/// Lets `/sys` of this mount namespace show the network of the caller; the cgroup tree stays visible in it.
fn mount_sys(propagation: libc::c_ulong) -> Result<()> {
    mount(None, "/", None, libc::MS_REC | propagation, "keep the mounts apart")?;
    let groups = File::open("/sys/fs/cgroup").ok();
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    mount(Some("sysfs"), "/sys", Some("sysfs"), flags, "mount a fresh /sys")?;
    if let Some(groups) = groups {
        let source = format!("/proc/self/fd/{}", groups.as_raw_fd());
        mount(
            Some(&source),
            "/sys/fs/cgroup",
            None,
            libc::MS_BIND | libc::MS_REC,
            "show the cgroups under the fresh /sys",
        )?;
    }
    Ok(())
}

/// Moves the calling (single-threaded) process into the network namespace that `ip netns add NAME` made, in which `/sys`
/// shows that network.
pub fn enter_named(name: &str) -> Result<()> {
    let path = format!("{NAMED}/{name}");
    let fail = |problem: &str, error: OsError| {
        let operation = format!("network namespace {name:?}: {problem}");
        OsError { operation, source: error.source }
    };
    if name.is_empty() || name.contains('/') || name == "." || name == ".." {
        let invalid = OsError::errno("", libc::EINVAL);
        return Err(fail("found no name, expected one that `ip netns` lists", invalid));
    }
    let file = File::open(&path).during("").map_err(|error| match error.code() {
        libc::ENOENT => fail(&format!("found no {path}, expected a name that `ip netns` lists"), error),
        _ => fail(&format!("cannot open {path}"), error),
    })?;
    Network { descriptor: file.into() }.enter().map_err(|error| match error.code() {
        libc::EPERM => fail("found no privilege to enter it, expected root (CAP_SYS_ADMIN)", error),
        libc::EINVAL => {
            fail(&format!("found that {path} is none, expected what `ip netns add` makes"), error)
        }
        _ => fail(&error.operation.clone(), error),
    })
}

/// Runs `work` on a thread of its own that sees a filesystem of `kind`, mounted with `options`, at `target`; nobody else
/// does.
pub fn with_private_mount<T: Send>(
    kind: &str,
    options: Option<&str>,
    target: &str,
    work: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    let inside = || {
        // SAFETY: no memory is passed; only this thread, which then ends, moves.
        check(unsafe { libc::unshare(libc::CLONE_NEWNS) }, "create a mount namespace")?;
        mount(None, "/", None, libc::MS_REC | libc::MS_PRIVATE, "make the mounts private")?;
        mount_with(Some(kind), target, Some(kind), 0, options, &format!("mount {kind} on {target}"))?;
        work()
    };
    std::thread::scope(|scope| scope.spawn(inside).join())
        .unwrap_or_else(|_| Err(OsError::errno("work under a private mount", libc::EIO)))
}

/// Gives the calling thread a mount namespace in which `/sys` shows its network; it ends with the thread.
pub fn show_network() -> Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) }, "create a mount namespace")?;
    mount_sys(libc::MS_PRIVATE)
}

/// Shows `contents` at `path` in the mount namespace of the caller, instead of the file that is there, and returns the
/// file that is shown. `path` must be a file without a symbolic link on the way, the namespace one from which no mount
/// spreads.
///
/// The file lives in memory and is on no path of its own: the file system that it is in is mounted for a moment only, and
/// then kept by the mount at `path`, so that it ends with the namespace.
pub fn show_file(path: &Path, contents: &[u8]) -> Result<File> {
    let target = path.to_str().ok_or_else(|| OsError::errno("show a file", libc::EINVAL))?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    mount(Some("tmpfs"), STAGE, Some("tmpfs"), flags, "mount a file system in memory")?;
    let source = format!("{STAGE}/file");
    let write = || {
        let mut file = File::create_new(&source)?;
        file.write_all(contents)?;
        // Whatever the umask is, everybody may read it.
        file.set_permissions(Permissions::from_mode(0o644))?;
        Ok(file)
    };
    let shown = write().during(format!("write {source}")).and_then(|file| {
        let operation = format!("show a file at {target}");
        mount(Some(&source), target, None, libc::MS_BIND, &operation).map(|()| file)
    });
    unmount(STAGE)?;
    shown
}

/// Takes away what is mounted at `target`; what of it is mounted elsewhere stays there.
fn unmount(target: &str) -> Result<()> {
    let operation = format!("unmount {target}");
    let path = std::ffi::CString::new(target).map_err(|_| OsError::errno(&*operation, libc::EINVAL))?;
    // SAFETY: the path is a terminated string that outlives the call.
    check(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) }, &operation).map(drop)
}

fn mount(
    source: Option<&str>,
    target: &str,
    kind: Option<&str>,
    flags: libc::c_ulong,
    operation: &str,
) -> Result<()> {
    mount_with(source, target, kind, flags, None, operation)
}

fn mount_with(
    source: Option<&str>,
    target: &str,
    kind: Option<&str>,
    flags: libc::c_ulong,
    options: Option<&str>,
    operation: &str,
) -> Result<()> {
    let text =
        |value: &str| std::ffi::CString::new(value).map_err(|_| OsError::errno(operation, libc::EINVAL));
    let source = source.map(text).transpose()?;
    let kind = kind.map(text).transpose()?;
    let options = options.map(text).transpose()?;
    let target = text(target)?;
    let pointer =
        |value: &Option<std::ffi::CString>| value.as_ref().map_or(std::ptr::null(), |value| value.as_ptr());
    // SAFETY: every pointer is null or a terminated string that outlives the call.
    let mounted = unsafe {
        libc::mount(pointer(&source), target.as_ptr(), pointer(&kind), flags, pointer(&options).cast())
    };
    check(mounted, operation).map(drop)
}

/// Mounts a file system in memory at `path` in the mount namespace of the caller, with this mode and at most so many bytes
/// (`None`: half of the memory). With `again` the size of one that is mounted there is changed instead.
pub fn mount_memory(path: &Path, mode: u32, bytes: Option<u64>, again: bool) -> Result<()> {
    let operation = format!("mount a file system in memory on {}", path.display());
    let target = path.to_str().ok_or_else(|| OsError::errno(&*operation, libc::EINVAL))?;
    let size = bytes.map_or("50%".to_string(), |bytes| bytes.to_string());
    let flags = libc::MS_NOSUID | libc::MS_NODEV | if again { libc::MS_REMOUNT } else { 0 };
    let options = format!("mode={mode:o},size={size}");
    mount_with(Some("framegauge"), target, Some("tmpfs"), flags, Some(&options), &operation)
}

/// A number of the calling thread's network namespace that no other gets until the machine is started anew (Linux 5.14).
pub fn cookie() -> Result<u64> {
    const SO_NETNS_COOKIE: libc::c_int = 71;
    let socket =
        std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0)).during("open a UDP socket")?;
    let mut value = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: `value` and `length` are valid for writing and describe a u64.
    let read = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    check(read, "read the cookie of the network namespace").map(|_| value)
}

/// The inode of the calling thread's network namespace, which another may get once this has ended.
pub fn inode() -> Result<u64> {
    let path = "/proc/thread-self/ns/net";
    let metadata = std::fs::metadata(path).during(format!("look at {path}"))?;
    Ok(std::os::unix::fs::MetadataExt::ino(&metadata))
}

/// A network namespace, kept alive by this descriptor.
pub struct Network {
    descriptor: OwnedFd,
}

impl Network {
    /// A fresh one, which ends when this is dropped.
    pub fn fresh() -> Result<Self> {
        std::thread::spawn(|| {
            enter_fresh_network()?;
            let path = "/proc/thread-self/ns/net";
            let file = File::open(path).during(format!("open {path}"))?;
            Ok(Self { descriptor: file.into() })
        })
        .join()
        .unwrap_or_else(|_| Err(OsError::errno("create a network namespace", libc::EIO)))
    }

    /// The namespace of thread `id`.
    pub fn of_thread(id: u32) -> Result<Self> {
        let path = format!("/proc/{id}/ns/net");
        let file = File::open(&path).during(format!("open {path}"))?;
        Ok(Self { descriptor: file.into() })
    }

    /// That of a file such as `/proc/self/ns/net`.
    pub(crate) fn of_file(file: File) -> Self {
        Self { descriptor: file.into() }
    }

    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }

    /// Moves the calling (single-threaded) process into the namespace, in which `/sys` shows that network. What is
    /// mounted elsewhere later is seen here too: whoever works by hand keeps their file systems and their folder.
    pub fn enter(&self) -> Result<()> {
        // SAFETY: the descriptor is open; no memory is passed.
        let moved = unsafe { libc::setns(self.descriptor.as_raw_fd(), libc::CLONE_NEWNET) };
        check(moved, "enter a network namespace")?;
        // SAFETY: no memory is passed.
        check(unsafe { libc::unshare(libc::CLONE_NEWNS) }, "create a mount namespace")?;
        mount_sys(libc::MS_SLAVE)
    }

    /// Runs `work` on a thread of its own inside the namespace.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let descriptor = self.descriptor.as_raw_fd();
        let inside = move || {
            // SAFETY: the descriptor is open for the whole scope; only this thread moves.
            let moved = unsafe { libc::setns(descriptor, libc::CLONE_NEWNET) };
            check(moved, "enter a network namespace")?;
            work()
        };
        std::thread::scope(|scope| {
            let operation = "work in a network namespace";
            // A machine that has no thread left is an error: whoever puts settings back goes on with the others.
            let thread = std::thread::Builder::new().spawn_scoped(scope, inside).during(operation)?;
            thread.join().unwrap_or_else(|_| Err(OsError::errno(operation, libc::EIO)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_file_is_shown_to_those_inside_only_and_leaves_nothing() {
        let folder = std::env::temp_dir().join(format!("framegauge-shown-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let path = folder.canonicalize().expect("its path").join("hosts");
        std::fs::write(&path, "the machine's").expect("a file");
        let host_name = || std::fs::read_to_string("/proc/sys/kernel/hostname").during("read the host name");
        let before = host_name().expect("every machine has one");
        let inside = apart(Some("h1"), || {
            let file = show_file(&path, b"the rack's")?;
            let text = std::fs::read_to_string(&path).during("read what is shown")?;
            let mode = std::fs::metadata(&path).during("look at it")?.mode() & 0o777;
            let mounts = std::fs::read_to_string("/proc/thread-self/mounts").during("list the mounts")?;
            let left = mounts.lines().filter(|line| line.contains(&format!(" {STAGE} tmpfs "))).count();
            drop(file);
            Ok((text, mode, left, host_name()?))
        });
        let outside = std::fs::read_to_string(&path).expect("the machine's is there");
        assert_eq!(host_name().expect("every machine has one"), before);
        std::fs::remove_dir_all(&folder).expect("nothing is mounted on it");
        match inside {
            Ok(facts) => assert_eq!(facts, ("the rack's".into(), 0o644, 0, "h1\n".into())),
            Err(error) => {
                assert!(std::env::var("CI").as_deref() != Ok("true"), "{error}");
                eprintln!("not run: needs the right to make namespaces: {error}");
            }
        }
        assert_eq!(outside, "the machine's");
    }
}
