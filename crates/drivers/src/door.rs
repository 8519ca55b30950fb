//! Where strangers come in: a listening socket that costs nothing while no connection can be taken.

use framegauge_linux::clock::monotonic_nanoseconds;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};

/// How long nobody is let in after descriptors or memory have run out: the socket stays readable all the time.
pub(crate) const PAUSE_NANOSECONDS: u64 = 100_000_000;

/// A listener. Watch it only while [`Door::is_open`].
pub(crate) struct Door {
    listener: TcpListener,
    shut_until: u64,
}

impl Door {
    /// The listener must not block.
    pub(crate) fn new(listener: TcpListener) -> Self {
        Self { listener, shut_until: 0 }
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.listener.as_raw_fd()
    }

    /// Whether to watch it; false for a moment after a connection could not be taken.
    pub(crate) fn is_open(&self) -> bool {
        self.shut_until == 0 || monotonic_nanoseconds() >= self.shut_until
    }

    /// The next connection, if somebody waits and there is a descriptor for it.
    pub(crate) fn accept(&mut self) -> Option<TcpStream> {
        self.shut_until = 0;
        loop {
            match self.listener.accept() {
                Ok((socket, _)) => return Some(socket),
                Err(error) => match error.kind() {
                    // That one has left already.
                    ErrorKind::ConnectionAborted | ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => return None,
                    _ => {
                        self.shut_until = monotonic_nanoseconds() + PAUSE_NANOSECONDS;
                        return None;
                    }
                },
            }
        }
    }
}
