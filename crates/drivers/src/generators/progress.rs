//! What a run tells about once a second, and how it learns that it is to stop.

use framegauge_linux::{OsError, Result};

const SECOND: u64 = 1_000_000_000;
const CANCELLED: i32 = 125;

/// Tells `tell` what has been done, of any kind, and the seconds since the beginning; it may stop the run.
pub(crate) struct Progress<'a, T> {
    began: u64,
    /// When it is due, on `CLOCK_MONOTONIC`.
    pub(crate) next: u64,
    what: &'static str,
    tell: &'a mut dyn FnMut(T, f64) -> bool,
}

impl<'a, T> Progress<'a, T> {
    /// Of a run that began at `began`; `what` it is, for the error of a run that was stopped.
    pub(crate) fn new(began: u64, what: &'static str, tell: &'a mut dyn FnMut(T, f64) -> bool) -> Self {
        Self { began, next: began + SECOND, what, tell }
    }

    /// Tells what has been done by `now`, if it is due.
    pub(crate) fn tell(&mut self, done: T, now: u64) -> Result<()> {
        if now < self.next {
            return Ok(());
        }
        self.next = now + SECOND;
        if (self.tell)(done, (now - self.began) as f64 * 1e-9) {
            return Ok(());
        }
        Err(OsError::errno(self.what, CANCELLED))
    }
}
