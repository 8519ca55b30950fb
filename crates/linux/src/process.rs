//! Starting, signalling and reaping child processes.

use crate::cgroup::Group;
use crate::error::{Context, OsError, Result, check};
use crate::precedence;
use crate::user::{Account, User};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// Where programs are; the `PATH` of ordinary users, and of root after a plain `su`, leaves some of these out.
const SYSTEM_FOLDERS: [&str; 6] =
    ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Resource limits (`setrlimit(2)`); `None` leaves one as it is.
#[derive(Debug, Default, Clone, Copy)]
pub struct Limits {
    /// Open descriptors.
    pub open_files: Option<u64>,
    /// Address space in bytes.
    pub address_space_bytes: Option<u64>,
    /// CPU time in seconds.
    pub cpu_seconds: Option<u64>,
    /// The largest file it may write, in bytes.
    pub file_bytes: Option<u64>,
}

/// A program to run in the background.
#[derive(Debug)]
pub struct Program {
    /// The program and its arguments.
    pub arguments: Vec<String>,
    /// Variables added to the environment; without a `PATH` among them it has [`search_path`].
    pub environment: BTreeMap<String, String>,
    /// Its working folder.
    pub directory: Option<PathBuf>,
    /// Its limits.
    pub limits: Limits,
    /// How many descriptors it may open at first, up to its limit; `None`: as many as its starter.
    pub soft_open_files: Option<u64>,
    /// The user as whom it runs; `None`: as its starter.
    pub user: Option<Account>,
    /// Whether it lays down the real time that its starter has ([`precedence`]).
    pub gives_way: bool,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// Its exit code, if it ended by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl From<ExitStatus> for Ending {
    fn from(status: ExitStatus) -> Self {
        Self { exit_code: status.code(), signal: status.signal() }
    }
}

/// Starts `program` in `group`, if there is one, in a session of its own; its output goes where this process's goes.
/// Returns its process id, which the caller reaps ([`crate::tree::reap`]). The kernel kills it when this thread ends.
pub fn spawn(program: &Program, group: Option<&Group>) -> Result<u32> {
    let Some((name, arguments)) = program.arguments.split_first() else {
        return Err(OsError::errno("start a program without a name", libc::EINVAL));
    };
    let members = group.map(|group| File::options().write(true).open(group.members_file())).transpose();
    let members = members.during(format!("start {name}"))?;
    let (limits, open_files, gives_way) = (program.limits, program.soft_open_files, program.gives_way);
    let mut command = Command::new(name);
    command.args(arguments).env("PATH", search_path()).stdin(Stdio::null());
    if let Some(Account { name, home, .. }) = &program.user {
        command.env("HOME", home).env("USER", name).env("LOGNAME", name);
    }
    command.envs(&program.environment);
    if let Some(directory) = &program.directory {
        command.current_dir(directory);
    }
    let user = program.user.as_ref().map(|account| account.user.clone());
    // SAFETY: between fork and exec only async-signal-safe calls are made.
    unsafe {
        command.pre_exec(move || {
            // "0" moves the writer itself.
            let joined = members
                .as_ref()
                .is_none_or(|members| libc::write(members.as_raw_fd(), b"0".as_ptr().cast(), 1) == 1);
            if !joined || libc::setsid() < 0 {
                return Err(std::io::Error::last_os_error());
            }
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::pthread_sigmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            lower_open_files(open_files)?;
            apply(limits)?;
            if gives_way {
                precedence::give_way()?;
            }
            user.as_ref().map_or(Ok(()), User::become_it_in_child)
        });
    }
    // Last: the kernel forgets it with a change of user.
    signal_with_starter(&mut command, libc::SIGKILL);
    let child = command.spawn();
    let child =
        child.map_err(|source| OsError { operation: why_not_started(program, name, &source), source })?;
    Ok(child.id())
}

/// What was attempted, and what is not there if that is the reason: the kernel has one error for all that is missing.
fn why_not_started(program: &Program, name: &str, error: &std::io::Error) -> String {
    let operation = format!("start {name}");
    if error.kind() != ErrorKind::NotFound {
        return operation;
    }
    if let Some(directory) = program.directory.as_ref().filter(|directory| !directory.is_dir()) {
        return format!("{operation}: found no folder {} to start it in", directory.display());
    }
    if name.contains('/') {
        return match Path::new(name).exists() {
            true => {
                format!("{operation}: found the file, but not the program that it names in its first line")
            }
            false => format!("{operation}: found no such program"),
        };
    }
    let own = program.environment.get("PATH").map(OsString::from);
    let path = own.unwrap_or_else(search_path);
    format!("{operation}: found no such program in {}", path.display())
}

/// Where programs are looked for: this process's `PATH`, behind it the system's folders that it lacks.
pub fn search_path() -> OsString {
    with_system_folders(&std::env::var_os("PATH").unwrap_or_default())
}

fn with_system_folders(path: &OsStr) -> OsString {
    // An empty entry would mean the working folder, which is nobody's choice here.
    let own_folders = std::env::split_paths(path).filter(|folder| !folder.as_os_str().is_empty());
    let mut folders: Vec<PathBuf> = own_folders.collect();
    for folder in SYSTEM_FOLDERS.map(PathBuf::from) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    // What was split at colons has none.
    std::env::join_paths(folders).unwrap_or_default()
}

fn lower_open_files(soft: Option<u64>) -> std::io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let Some(soft) = soft else { return Ok(()) };
    // SAFETY: `limit` is valid during both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = soft.min(limit.rlim_max);
            if libc::setrlimit(libc::RLIMIT_NOFILE, &limit) == 0 {
                return Ok(());
            }
        }
    }
    Err(std::io::Error::last_os_error())
}

fn apply(limits: Limits) -> std::io::Result<()> {
    let pairs = [
        (libc::RLIMIT_NOFILE, limits.open_files),
        (libc::RLIMIT_AS, limits.address_space_bytes),
        (libc::RLIMIT_CPU, limits.cpu_seconds),
        (libc::RLIMIT_FSIZE, limits.file_bytes),
    ];
    for (resource, limit) in pairs {
        if let Some(value) = limit {
            let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
            // SAFETY: `limit` is valid during the call.
            if unsafe { libc::setrlimit(resource, &limit) } < 0 {
                return Err(std::io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// Starts this same program again as a child agent with pipes, in fresh namespaces of its own.
pub fn spawn_agent(arguments: &[&str]) -> Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    // A group of its own: Ctrl-C at a terminal reaches the controller, which ends the agents in order.
    command.process_group(0);
    command.spawn().during("start a host's agent")
}

/// The path of this program. Hosts that share a home put the same agent there at the same time, one in place of another:
/// the kernel calls the file that this process was started from deleted then, and the path has the same content.
fn own_path() -> Result<PathBuf> {
    let path = std::env::current_exe().during("find this program")?;
    Ok(without_mark(path))
}

fn without_mark(path: PathBuf) -> PathBuf {
    const DELETED: &[u8] = b" (deleted)";
    let unmarked = path
        .as_os_str()
        .as_bytes()
        .strip_suffix(DELETED)
        .map(|bytes| PathBuf::from(OsStr::from_bytes(bytes)));
    unmarked.filter(|unmarked| !path.exists() && unmarked.exists()).unwrap_or(path)
}

/// Starts this same program again with pipes, through `sudo -n` if asked to: it never waits for a password.
pub fn spawn_self(arguments: &[String], sudo: bool) -> Result<Child> {
    // By its path only where a rule for sudo names it.
    let mut command = Command::new(if sudo { "sudo" } else { "/proc/self/exe" });
    if sudo {
        command.args(["-n", "--"]).arg(own_path()?);
    }
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0);
    command.spawn().during(if sudo { "start sudo" } else { "start this program again" })
}

/// Starts this same program again through `sudo -n`, which never waits for a password. Its standard input is a Unix
/// socket, whose other end comes with it: for descriptors that it hands over.
pub fn spawn_handing_over(arguments: &[String]) -> Result<(Child, UnixStream)> {
    let own = own_path()?;
    let (socket, child_socket) = UnixStream::pair().during("start sudo")?;
    let mut command = Command::new("sudo");
    command.args(["-n", "--"]).arg(&own).args(arguments);
    command.stdin(OwnedFd::from(child_socket)).stdout(Stdio::null()).stderr(Stdio::piped());
    command.process_group(0);
    let child = command.spawn().during("start sudo")?;
    Ok((child, socket))
}

/// A second descriptor of this process's standard input.
pub fn standard_input() -> Result<OwnedFd> {
    std::io::stdin().as_fd().try_clone_to_owned().during("take over the standard input")
}

/// Has the kernel kill the program when the thread that starts it ends: also where this process is killed nothing stays.
pub fn end_with_starter(program: &mut Command) {
    signal_with_starter(program, libc::SIGKILL);
}

/// Has the kernel signal the program when the thread that starts it ends.
fn signal_with_starter(program: &mut Command, signal: i32) {
    let starter = std::process::id();
    // SAFETY: between fork and exec only async-signal-safe calls are made.
    unsafe {
        program.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, signal) < 0 {
                return Err(std::io::Error::last_os_error());
            }
            // It may have ended before the kernel was told.
            if libc::getppid() as u32 == starter {
                Ok(())
            } else {
                Err(std::io::Error::from_raw_os_error(libc::ECHILD))
            }
        });
    }
}

/// Starts this same program again with this process's standard input and output, in a group of its own; it gets a
/// SIGTERM when this thread ends.
pub fn spawn_second(arguments: &[&str]) -> Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.args(arguments);
    signal_with_starter(&mut command, libc::SIGTERM);
    command.spawn().during("start a second keeper")
}

/// Starts this same program again with these as its standard input, output and error, in a group of its own.
pub fn spawn_keeper(arguments: &[&str], input: OwnedFd, output: &File, errors: &File) -> Result<Child> {
    let operation = "start the keeper of a program";
    let duplicate = |file: &File| file.try_clone().map(Stdio::from).during(operation);
    let mut command = Command::new("/proc/self/exe");
    command.args(arguments).stdin(input).stdout(duplicate(output)?).stderr(duplicate(errors)?);
    command.process_group(0);
    command.spawn().during(operation)
}

/// Sends `signal` to a child that has not been reaped.
pub fn signal(child: u32, signal: i32) -> Result<()> {
    // SAFETY: no memory is passed; the child is not reaped, so its id is still its own.
    check(unsafe { libc::kill(child as i32, signal) }, "signal a process").map(drop)
}

/// The effective user id of this process.
pub fn effective_user() -> u32 {
    // SAFETY: cannot fail.
    unsafe { libc::geteuid() }
}

/// A right of this thread (capabilities(7)), by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Packet sockets.
    NetRaw = 13,
    /// The CPUs and priorities of threads with more rights, the kernel's among them.
    SysNice = 23,
}

/// Whether this thread may use a capability now; true where the kernel does not tell.
pub fn is_capable(capability: Capability) -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/thread-self/status") else { return true };
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    bits.is_none_or(|bits| bits >> capability as u8 & 1 == 1)
}

/// The thread of process `pid` that has been its longest, apart from its first; that one where it is the only one.
pub fn second_thread(pid: u32) -> Result<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).during("list a process's threads")?;
    let mut ids = tasks.flatten().filter_map(|task| task.file_name().to_str()?.parse().ok());
    Ok(ids.find(|id| *id != pid).unwrap_or(pid))
}

/// The kernel's release, as `uname -r` prints it.
pub fn kernel_release() -> String {
    // SAFETY: all-zero is a valid utsname, which the call fills with terminated text.
    unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        libc::uname(&mut name);
        std::ffi::CStr::from_ptr(name.release.as_ptr()).to_string_lossy().into_owned()
    }
}

/// When process `pid` was started (field 22 of `/proc/pid/stat`), by which it is told from a later one of the same
/// number; `None`: it does not run. One that has ended and only waits for its parent to notice does not run either:
/// under a first process that never looks (many containers have one) it waits for ever.
pub fn start_ticks(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{with_system_folders, without_mark};

    #[test]
    fn a_program_that_another_has_taken_the_place_of_is_found_at_its_path() {
        let folder = std::env::temp_dir().join(format!("framegauge-own-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let (file, marked) = (folder.join("agent"), folder.join("agent (deleted)"));
        assert_eq!(without_mark(marked.clone()), marked);
        std::fs::write(&file, "").expect("a file");
        assert_eq!(without_mark(marked.clone()), file);
        assert_eq!(without_mark(file.clone()), file);
        std::fs::write(&marked, "").expect("a file of that name");
        assert_eq!(without_mark(marked.clone()), marked);
        std::fs::remove_dir_all(folder).expect("the folder");
    }

    #[test]
    fn a_path_is_completed_behind_its_own_folders() {
        for (path, expected) in [
            ("", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"),
            // Debian's plain `su`: games, and no sbin.
            (
                "/usr/local/bin:/usr/bin:/bin:/usr/games",
                "/usr/local/bin:/usr/bin:/bin:/usr/games:/usr/local/sbin:/usr/sbin:/sbin",
            ),
            ("/opt/new:/sbin", "/opt/new:/sbin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin"),
            (":/opt/new:", "/opt/new:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"),
        ] {
            assert_eq!(with_system_folders(path.as_ref()), expected);
        }
    }
}
