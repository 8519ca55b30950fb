//! Packet sockets, which need CAP_NET_RAW: opened here, or by `framegauge-agent sockets` through sudo, which hands them
//! over and ends. All that is done with them afterwards needs no privilege.

use crate::pipe::message::Failure;
use framegauge_drivers::own;
use framegauge_drivers::tap::{passing, socket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

/// Why there are none.
pub enum Refused {
    /// The rights were not there, and why sudo gave none.
    Rights(String),
    /// Anything else.
    Other(Failure),
}

const NOT_PERMITTED: i32 = 1;

/// Opens so many, through `sudo -n` where this process must not and `sudo` says that it may be tried.
pub fn open(count: usize, sudo: bool) -> Result<Vec<OwnedFd>, Refused> {
    let failed = match (0..count).map(|_| socket()).collect::<framegauge_drivers::Result<Vec<_>>>() {
        Ok(sockets) => return Ok(sockets),
        Err(error) => error,
    };
    let user = own::effective_user();
    if failed.code() != NOT_PERMITTED {
        return Err(Refused::Other(failed.into()));
    }
    if user == 0 || !sudo {
        return Err(Refused::Rights(format!("user {user} without it")));
    }
    let refused = |reason: &str| Refused::Rights(format!("user {user} without it, and {reason}"));
    let (child, socket) = own::spawn_handing_over(&["sockets".into(), count.to_string()])
        .map_err(|error| refused(&error.to_string()))?;
    let sockets = passing::receive(&socket).map_err(|error| Refused::Other(error.into()))?;
    let stderr = child.wait_with_output().map(|output| output.stderr).unwrap_or_default();
    if sockets.len() == count {
        return Ok(sockets);
    }
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    let last = stderr.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("sudo said nothing");
    Err(refused(last))
}

/// Opens as many as it was told, and hands them over by its standard input, which is a Unix socket.
pub fn run(mut words: impl Iterator<Item = String>) -> ExitCode {
    let count =
        words.next().and_then(|word| word.parse().ok()).filter(|count| (1..=passing::MOST).contains(count));
    let (Some(count), None) = (count, words.next()) else {
        eprintln!("framegauge-agent sockets: expected a number from 1 to {}", passing::MOST);
        return ExitCode::from(2);
    };
    let handed = (0..count).map(|_| socket()).collect::<framegauge_drivers::Result<Vec<_>>>();
    let handed =
        handed.and_then(|sockets| passing::send(&UnixStream::from(own::standard_input()?), &sockets));
    match handed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("framegauge-agent sockets: {error}");
            ExitCode::FAILURE
        }
    }
}
