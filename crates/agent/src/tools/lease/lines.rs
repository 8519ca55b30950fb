//! Lines of standard input, until a time, a signal, or the end of another process.

use framegauge_drivers::own::{self, PollSet};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

/// What is read, and what ends it.
pub struct Lines {
    input: File,
    signals: OwnedFd,
    pending: Vec<u8>,
}

impl Lines {
    /// A change of many routes in one line.
    const LONGEST: usize = 256 * 1024;

    /// Those of this process.
    pub fn new(signals: OwnedFd) -> Result<Self, String> {
        // Unbuffered: what a buffer holds is not seen by poll.
        let input = std::io::stdin().as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
        Ok(Self { input: input.into(), signals, pending: Vec::new() })
    }

    /// The next line; otherwise why there is none: "time", "signal", "input" or "guard". `watched` is the output of a
    /// process that says nothing unless it is asked: that it can be read tells its end.
    pub fn next(&mut self, until: u64, watched: Option<RawFd>) -> Result<String, &'static str> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim().to_string());
            }
            let now = own::monotonic_nanoseconds();
            if now >= until {
                return Err("time");
            }
            if self.pending.len() > Self::LONGEST {
                return Err("input");
            }
            let mut set = PollSet::default();
            let input = set.add(self.input.as_raw_fd(), true, false);
            let signals = set.add(self.signals.as_raw_fd(), true, false);
            let watched = watched.map(|output| set.add(output, true, false));
            set.wait(Some(until - now)).map_err(|_| "input")?;
            if watched.is_some_and(|place| set.readable(place)) {
                return Err("guard");
            }
            if set.readable(signals) {
                return Err("signal");
            }
            if set.readable(input) {
                let mut bytes = [0u8; 4096];
                match self.input.read(&mut bytes) {
                    Ok(count) if count > 0 => self.pending.extend_from_slice(&bytes[..count]),
                    _ => return Err("input"),
                }
            }
        }
    }
}
