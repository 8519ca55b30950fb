//! `framegauge-agent exec`: becomes a program inside a host of a rack. It speaks no JSON-RPC.

use framegauge_drivers::host::visit;
use framegauge_drivers::own::User;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::{CommandExt, parent_id};
use std::process::{Command, ExitCode};

const HELP: &str = "\
framegauge-agent exec --pid PID --start-ticks T [--groups 1000,27] [--keep-user] -- COMMAND [ARGUMENT]...

Becomes COMMAND inside a host of a rack: in its network namespace (/sys shows it too), on its CPUs, in its
cgroup, so that it ends with the host. Needs root; people use `framegauge rack exec`.

  --pid PID          the agent of the host
  --start-ticks T    when that was started, field 22 of /proc/PID/stat: another process may have its number by now
  --groups LIST      the caller's supplementary groups (started through sudo; otherwise ignored)
  --keep-user        run COMMAND as root although SUDO_UID names a user

Started through sudo, COMMAND runs as the user who called sudo (SUDO_UID, SUDO_GID, --groups), not as root, and has
that user's whole environment: what sudo strips is read back from sudo's own, and what sudo adds is left out.
Terminal, working folder, open files and umask are as they came.

exit code: that of COMMAND; 127 if it is not found, 126 if it cannot be started, 2 for bad arguments, 1 otherwise
";

/// What to run where.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Exec {
    pid: u32,
    start_ticks: u64,
    groups: Vec<u32>,
    keep_user: bool,
    command: Vec<OsString>,
}

/// Reads what follows `exec`; `None`: show the help.
pub fn parse(mut words: impl Iterator<Item = OsString>) -> Result<Option<Exec>, String> {
    let mut exec = Exec::default();
    let (mut pid, mut ticks) = (None, None);
    while let Some(word) = words.next() {
        let word = word.to_string_lossy().into_owned();
        let mut value = || -> Result<String, String> {
            let value = words.next().ok_or(format!("{word} needs a value"))?;
            value.into_string().map_err(|raw| format!("{word} {raw:?}: expected a number"))
        };
        let failure = |value: &str| format!("{word} {value:?}: expected a number");
        match word.as_str() {
            "--pid" => pid = Some(value().and_then(|text| text.parse().map_err(|_| failure(&text)))?),
            "--start-ticks" => {
                ticks = Some(value().and_then(|text| text.parse().map_err(|_| failure(&text)))?)
            }
            "--groups" => {
                let list = value()?;
                let numbers = list.split(',').filter(|part| !part.is_empty()).map(str::parse);
                exec.groups = numbers
                    .collect::<Result<_, _>>()
                    .map_err(|_| format!("--groups {list:?}: expected numbers such as 1000,27"))?;
            }
            "--keep-user" => exec.keep_user = true,
            "--help" | "-h" => return Ok(None),
            "--" => break,
            _ => {
                let options = "--pid, --start-ticks, --groups, --keep-user or --";
                return Err(format!("{word:?} is not an option; expected {options}"));
            }
        }
    }
    exec.command = words.collect();
    match (pid, ticks) {
        (Some(pid), Some(ticks)) if !exec.command.is_empty() => {
            Ok(Some(Exec { pid, start_ticks: ticks, ..exec }))
        }
        _ => Err("exec needs --pid, --start-ticks and, after --, a command".into()),
    }
}

/// Becomes the program, or says why not.
pub fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    let exec = match parse(words) {
        Ok(Some(exec)) => exec,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("framegauge-agent: {error}");
            return ExitCode::from(2);
        }
    };
    let user = match calling_user(&exec) {
        Ok(user) => user,
        Err(error) => {
            eprintln!("framegauge-agent: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut command = Command::new(&exec.command[0]);
    command.args(&exec.command[1..]);
    if user.is_some()
        && let Some(environment) = environment_before_sudo()
    {
        command.env_clear().envs(environment);
    }
    let entered = visit::enter(exec.pid, exec.start_ticks);
    if let Err(error) = entered.and_then(|()| user.map_or(Ok(()), |user| user.become_it())) {
        eprintln!("framegauge-agent: {error}");
        return ExitCode::FAILURE;
    }
    let error = command.exec();
    eprintln!("framegauge-agent: start {}: {error}", exec.command[0].display());
    ExitCode::from(if error.kind() == ErrorKind::NotFound { 127 } else { 126 })
}

/// The user that sudo was called by; `None`: stay who we are.
fn calling_user(exec: &Exec) -> Result<Option<User>, String> {
    let number = |name: &str| -> Result<Option<u32>, String> {
        let Some(text) = std::env::var_os(name) else { return Ok(None) };
        // Who cannot be told must not become root instead.
        let id = text.to_str().and_then(|text| text.parse().ok());
        id.map(Some).ok_or(format!("{name}: found {text:?}, expected a number"))
    };
    let (user, group) = (number("SUDO_UID")?, number("SUDO_GID")?);
    match (user, group) {
        _ if exec.keep_user => Ok(None),
        (None | Some(0), _) => Ok(None),
        (Some(_), None) => Err("SUDO_GID: found nothing, expected the group of the calling user".into()),
        (Some(user), Some(group)) => Ok(Some(User { user, group, groups: exec.groups.clone() })),
    }
}

/// What the caller of sudo had in their environment; `None` if our parent is not sudo.
fn environment_before_sudo() -> Option<Vec<(OsString, OsString)>> {
    let parent = parent_id();
    let name = std::fs::read_to_string(format!("/proc/{parent}/comm")).ok()?;
    if name.trim_end() != "sudo" {
        return None;
    }
    Some(variables(&std::fs::read(format!("/proc/{parent}/environ")).ok()?))
}

/// The variables in `/proc/PID/environ`: `NAME=VALUE`, each ended by a zero byte.
fn variables(block: &[u8]) -> Vec<(OsString, OsString)> {
    let pairs = block.split(|byte| *byte == 0).filter_map(|entry| {
        let place = entry.iter().position(|byte| *byte == b'=').filter(|place| *place > 0)?;
        Some((OsString::from_vec(entry[..place].to_vec()), OsString::from_vec(entry[place + 1..].to_vec())))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Option<Exec>, String> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn reads_its_arguments() {
        let exec = words("--pid 7 --start-ticks 99 --groups 5,6 --keep-user -- ls --pid -- x");
        let command = ["ls", "--pid", "--", "x"].map(OsString::from).to_vec();
        assert_eq!(
            exec,
            Ok(Some(Exec { pid: 7, start_ticks: 99, groups: vec![5, 6], keep_user: true, command }))
        );
        assert_eq!(words("--pid 7 --help"), Ok(None));
    }

    #[test]
    fn says_what_is_wrong() {
        assert_eq!(words("--pid x -- ls"), Err("--pid \"x\": expected a number".into()));
        assert_eq!(words("--pid"), Err("--pid needs a value".into()));
        let needs = "exec needs --pid, --start-ticks and, after --, a command";
        assert_eq!(words("--pid 7 --start-ticks 1 --"), Err(needs.into()));
        assert_eq!(words("-- ls"), Err(needs.into()));
        assert!(words("ls").is_err_and(|error| error.starts_with("\"ls\" is not an option")));
    }

    #[test]
    fn reads_an_environment() {
        let environment = variables(b"A=1\0EMPTY=\0=odd\0nothing\0B=x=y\0");
        let pairs = [("A", "1"), ("EMPTY", ""), ("B", "x=y")];
        assert_eq!(environment, pairs.map(|(name, value)| (name.into(), value.into())));
    }
}
