//! Another process's descriptors (`pidfd_open(2)`, `pidfd_getfd(2)`), for what only a socket's holder can ask of it.

use crate::error::{OsError, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A process; one that comes later under the same number is never mistaken for it.
#[derive(Debug)]
pub struct Process {
    descriptor: OwnedFd,
}

impl Process {
    /// The process that has this number now (Linux 5.3).
    pub fn open(pid: u32) -> Result<Self> {
        // SAFETY: no memory is passed.
        let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        Ok(Self { descriptor: owned(raw, "pidfd_open")? })
    }

    /// A second descriptor for what this process has open under a number (Linux 5.6). It takes the rights of a
    /// debugger (`PTRACE_MODE_ATTACH_REALCREDS`).
    pub fn descriptor(&self, number: RawFd) -> Result<OwnedFd> {
        // SAFETY: no memory is passed.
        let raw = unsafe { libc::syscall(libc::SYS_pidfd_getfd, self.descriptor.as_raw_fd(), number, 0) };
        owned(raw, "pidfd_getfd")
    }
}

fn owned(raw: libc::c_long, operation: &str) -> Result<OwnedFd> {
    if raw < 0 {
        return Err(OsError::last(operation));
    }
    // SAFETY: `raw` is a descriptor that the kernel just opened for us; descriptors fit into an int.
    Ok(unsafe { OwnedFd::from_raw_fd(raw as RawFd) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_socket_is_asked_through_its_holder() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback");
        let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
        let own = Process::open(std::process::id()).expect("this process runs");
        let second = own.descriptor(client.as_raw_fd()).expect("it is our own");
        let cookie = |socket: RawFd| tcp::cookie(socket).expect("a socket has one");
        assert_eq!(cookie(second.as_raw_fd()), cookie(client.as_raw_fd()));
        assert_ne!(cookie(second.as_raw_fd()), cookie(listener.as_raw_fd()));
        for nodelay in [true, false] {
            client.set_nodelay(nodelay).expect("it is open");
            assert_eq!(tcp::nodelay(second.as_raw_fd()).expect("it is open"), nodelay);
        }
        assert_eq!(own.descriptor(1 << 20).expect_err("nothing is open there").code(), libc::EBADF);
    }
}
