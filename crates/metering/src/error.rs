//! The one error of this crate.

use thiserror::Error;

/// A text that is not what `/proc` is documented to hold (proc(5)).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: found {found:?}, expected {expected}")]
pub struct ParseError {
    /// Line number, from 1.
    pub line: usize,
    /// What stood there, cut to a readable length.
    pub found: String,
    /// What should have stood there.
    pub expected: &'static str,
}

/// Longest excerpt in an error, in characters: a hostile text must not become a hostile message.
const EXCERPT_CHARS: usize = 60;

impl ParseError {
    /// `index` counts lines from 0.
    pub(crate) fn new(index: usize, actual: &str, expected: &'static str) -> ParseError {
        ParseError { line: index + 1, found: actual.chars().take(EXCERPT_CHARS).collect(), expected }
    }
}

/// A decimal number out of a field of line `index`.
pub(crate) fn number<T: std::str::FromStr>(
    index: usize,
    field: Option<&str>,
    expected: &'static str,
) -> Result<T, ParseError> {
    let field = field.unwrap_or("");
    field.parse().map_err(|_| ParseError::new(index, field, expected))
}
