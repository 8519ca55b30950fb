//! From a connect that has begun to a connection that may carry requests, the same for every client.

use framegauge_linux::tcp::{self, Moved};
use framegauge_linux::{OsError, Result};
use framegauge_traffic::RrHello;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

/// How far a new connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Its handshake is under way: wait until it is writable.
    Connecting,
    /// It has sent its first bytes, and has so many of the answer: wait until it is readable.
    Greeting(usize),
    /// The serving end has accepted it.
    Open,
}

impl Opening {
    /// Takes a connection on, whose socket is ready; `nodelay` is set or cleared once it is connected.
    pub fn step(self, socket: &TcpStream, hello: &RrHello, nodelay: bool) -> Result<Self> {
        match self {
            Self::Connecting => {
                tcp::finish_connect(socket)?;
                tcp::set_nodelay(socket.as_raw_fd(), nodelay)?;
                // A new connection's buffer always holds the first bytes.
                if tcp::send(socket.as_raw_fd(), &hello.encode())? != Moved::Bytes(RrHello::BYTES) {
                    return Err(lost("the first bytes could not be sent"));
                }
                Ok(Self::Greeting(0))
            }
            Self::Greeting(received) => accepted(socket, received),
            Self::Open => Err(lost("the serving end closed a connection before the first request")),
        }
    }
}

fn accepted(socket: &TcpStream, received: usize) -> Result<Opening> {
    let mut answer = [0; RrHello::ACCEPTED.len()];
    // A reset is how a serving end refuses.
    let answered = tcp::receive(socket.as_raw_fd(), &mut answer[received..]);
    let received = match answered.map_err(|error| match error.code() {
        104 => lost("the serving end refused the connection (another token?)"),
        _ => error,
    })? {
        Moved::Bytes(count) if answer[received..][..count] == RrHello::ACCEPTED[received..][..count] => {
            received + count
        }
        Moved::Nothing => received,
        _ => return Err(lost("the serving end accepts no requests with these first bytes")),
    };
    Ok(if received == answer.len() { Opening::Open } else { Opening::Greeting(received) })
}

/// The other end is gone, or is none of ours.
pub(crate) fn lost(operation: &str) -> OsError {
    OsError::errno(operation, 104)
}
