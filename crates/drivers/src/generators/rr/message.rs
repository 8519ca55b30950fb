//! Writing and reading one message, the same at both ends of request/response.

use framegauge_linux::Result;
use framegauge_linux::tcp::{self, Moved};
use std::os::fd::RawFd;

/// What is sent or received at once, in bytes.
const CHUNK_BYTES: usize = 256 * 1024;

/// A message on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outgoing {
    /// Still to be written alone, before the rest.
    header: usize,
    rest: usize,
}

impl Outgoing {
    /// A message of `bytes`, of which the first `header_bytes` are written alone if it is longer than that.
    pub fn new(bytes: u32, header_bytes: u32) -> Self {
        let header = if bytes > header_bytes { header_bytes as usize } else { 0 };
        Self { header, rest: bytes as usize - header }
    }

    /// Writes until the kernel takes no more; true when all is written.
    pub fn write(&mut self, socket: RawFd, buffers: &Buffers) -> Result<bool> {
        while self.header + self.rest > 0 {
            let part = if self.header > 0 { &mut self.header } else { &mut self.rest };
            match tcp::send(socket, &buffers.zeros[..(*part).min(CHUNK_BYTES)])? {
                Moved::Bytes(count) => *part -= count,
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// Room for messages, shared by all connections of an end.
pub(crate) struct Buffers {
    zeros: Vec<u8>,
    incoming: Vec<u8>,
}

impl Buffers {
    pub fn new() -> Self {
        Self { zeros: vec![0; CHUNK_BYTES], incoming: vec![0; CHUNK_BYTES] }
    }

    /// Reads what has come of the `left` bytes of a message; returns how many are left, `None` at the end of the
    /// connection. It never reads beyond the message, and a long one only in turn with other connections.
    pub fn read(&mut self, socket: RawFd, mut left: usize) -> Result<Option<usize>> {
        for _ in 0..8 {
            let room = left.min(CHUNK_BYTES);
            match tcp::receive(socket, &mut self.incoming[..room])? {
                Moved::Bytes(count) => {
                    left -= count;
                    // Less than asked for: the kernel has no more now, and asking again would cost a call.
                    if left == 0 || count < room {
                        break;
                    }
                }
                Moved::Nothing => break,
                Moved::End => return Ok(None),
            }
        }
        Ok(Some(left))
    }
}
