//! A capture that grows in memory, up to a bound, while something is measured.

use framegauge_linux::error::Context;
use framegauge_linux::{OsError, Result, files};
use framegauge_packets::pcapng::{Captured, Section};
use std::fs::File;
use std::io::Write;

/// Whole blocks are gathered up to here, so that few of them cost a system call.
const GATHERED_BYTES: usize = 128 * 1024;

/// What became of the packets that a capture was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CaptureCounts {
    /// Packets in the file.
    pub packets: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Packets that came after the file was full. It has no gaps: all of these came after all of those in it.
    pub left_out_packets: u64,
}

/// A capture under way, as pcapng. It is made for a thread that must not wait: nothing is ever written to a disk, and
/// what goes wrong is told at the end.
pub struct Capture {
    section: Section,
    file: File,
    limit_bytes: u64,
    gathered: Vec<u8>,
    counts: CaptureCounts,
    full: bool,
    failure: Option<OsError>,
}

impl Capture {
    /// Of interfaces with these names, numbered from 0, of whose packets the first `snap_bytes` are kept. The file will
    /// not be larger than `limit_bytes`; fails if these do not even hold its beginning.
    pub fn begin(interfaces: &[String], snap_bytes: u32, limit_bytes: u64) -> Result<Self> {
        let mut gathered = Vec::with_capacity(2 * GATHERED_BYTES);
        let mut section = Section::begin(&mut gathered);
        for name in interfaces {
            section.interface(&mut gathered, name, snap_bytes);
        }
        let file_bytes = gathered.len() as u64;
        if file_bytes > limit_bytes {
            let problem = format!("found a limit of {limit_bytes} bytes, expected {file_bytes} or more");
            return Err(failed(std::io::Error::other(problem)));
        }
        let counts = CaptureCounts { file_bytes, ..CaptureCounts::default() };
        let file = files::in_memory()?;
        Ok(Self { section, file, limit_bytes, gathered, counts, full: false, failure: None })
    }

    /// Appends a packet, or counts it if there is no room for it or there was none for one before it.
    pub fn add(&mut self, packet: &Captured<'_>) {
        if self.full {
            self.counts.left_out_packets += 1;
            return;
        }
        let before = self.gathered.len();
        let written = self.section.packet(&mut self.gathered, packet);
        let file_bytes = self.counts.file_bytes + (self.gathered.len() - before) as u64;
        if written.is_err() || file_bytes > self.limit_bytes {
            self.failure = written.err().map(|error| failed(std::io::Error::other(error)));
            self.gathered.truncate(before);
            self.full = true;
            self.counts.left_out_packets += 1;
            return;
        }
        self.counts.packets += 1;
        self.counts.file_bytes = file_bytes;
        if self.gathered.len() >= GATHERED_BYTES
            && let Err(error) = self.write_out()
        {
            (self.full, self.failure) = (true, Some(error));
        }
    }

    /// The whole file, and what is in it. Fails if anything went wrong on the way: memory that ran out, or a packet of
    /// an interface that is not one of the capture's.
    pub fn end(mut self) -> Result<(File, CaptureCounts)> {
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => {
                self.write_out()?;
                Ok((self.file, self.counts))
            }
        }
    }

    fn write_out(&mut self) -> Result<()> {
        self.file.write_all(&self.gathered).during("write a capture")?;
        self.gathered.clear();
        Ok(())
    }
}

fn failed(source: std::io::Error) -> OsError {
    OsError { operation: "write a capture".into(), source }
}
