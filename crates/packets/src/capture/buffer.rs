//! A window onto a capture that is read as it comes.

use std::io::{ErrorKind, Read};

use crate::error::CaptureError;
use crate::pcapng::blocks::error;

/// Read at once; more only where one block is longer.
const CHUNK_BYTES: usize = 256 * 1024;

const DAMAGED: &str = "more bytes: the file is damaged or cut short";

/// The bytes that were read and not yet taken. No longer than the longest block, or [`CHUNK_BYTES`].
#[derive(Debug)]
pub(super) struct Buffer<R> {
    read: R,
    bytes: Vec<u8>,
    /// What is there lies from here ...
    start: usize,
    /// ... to here.
    end: usize,
    /// Where `start` lies in the capture.
    offset: u64,
}

impl<R: Read> Buffer<R> {
    pub(super) fn new(read: R) -> Buffer<R> {
        Buffer { read, bytes: vec![0; CHUNK_BYTES], start: 0, end: 0, offset: 0 }
    }

    /// Where the next byte lies in the capture.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// What is there: at least `length` bytes, or all that are left of the capture.
    #[inline]
    pub(super) fn fill(&mut self, length: usize) -> Result<&[u8], CaptureError> {
        if self.end - self.start < length {
            self.fetch(length)?;
        }
        Ok(&self.bytes[self.start..self.end])
    }

    /// Apart, so that the way of most packets stays short.
    #[cold]
    fn fetch(&mut self, length: usize) -> Result<(), CaptureError> {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end < length {
            if self.end == self.bytes.len() {
                // By and by: a length that lies takes no more memory than twice what is really there.
                self.bytes.resize(length.min(2 * self.end), 0);
            }
            match self.read.read(&mut self.bytes[self.end..]) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(wrong) if wrong.kind() == ErrorKind::Interrupted => {}
                Err(wrong) => {
                    let offset = self.offset + (self.end - self.start) as u64;
                    return Err(match wrong.raw_os_error() {
                        Some(code) => {
                            let code = code.unsigned_abs();
                            error(offset, "the system's error number while reading", code, "no error")
                        }
                        None => error(offset, "what its packed file gives next", 0u64, DAMAGED),
                    });
                }
            }
        }
        Ok(())
    }

    /// Goes on by so many of the bytes that are there, and gives them.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize) -> &[u8] {
        let range = self.start..(self.start + bytes).min(self.end);
        self.start = range.end;
        self.offset += range.len() as u64;
        &self.bytes[range]
    }
}
