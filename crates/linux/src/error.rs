//! One error type: which operation failed, on what, and the kernel's reason.

use std::fmt;
use std::io;

/// A failed request to the operating system.
#[derive(Debug)]
pub struct OsError {
    /// What was attempted, in words a user understands ("set MTU 9000 on fg1").
    pub operation: String,
    /// The kernel's reason.
    pub source: io::Error,
}

/// The result of a request to the operating system.
pub type Result<T> = std::result::Result<T, OsError>;

impl OsError {
    /// The error for `operation` with the calling thread's `errno`.
    pub fn last(operation: impl Into<String>) -> Self {
        Self { operation: operation.into(), source: io::Error::last_os_error() }
    }

    /// The error for `operation` with the given `errno`.
    pub fn errno(operation: impl Into<String>, errno: i32) -> Self {
        Self { operation: operation.into(), source: io::Error::from_raw_os_error(errno) }
    }

    /// The `errno`, 0 where the failure has none.
    pub fn code(&self) -> i32 {
        self.source.raw_os_error().unwrap_or(0)
    }
}

impl fmt::Display for OsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.operation, self.source)
    }
}

impl std::error::Error for OsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Adds the operation to an `io::Result`.
pub trait Context<T> {
    /// Names the operation that failed.
    fn during(self, operation: impl Into<String>) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn during(self, operation: impl Into<String>) -> Result<T> {
        self.map_err(|source| OsError { operation: operation.into(), source })
    }
}

/// Turns a libc return value into a result: negative means `errno`.
pub(crate) fn check(value: libc::c_int, operation: &str) -> Result<libc::c_int> {
    if value < 0 { Err(OsError::last(operation)) } else { Ok(value) }
}
