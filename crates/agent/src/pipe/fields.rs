//! Parameters that several commands have in common.

use crate::pipe::message::Failure;
use framegauge_traffic::{TOKEN_BYTES, Token};

/// A token from its 32 hex digits.
pub fn token(method: &str, text: &str) -> Result<Token, Failure> {
    let failure = || Failure::invalid_params(method, "token: expected 32 hex digits");
    let mut token = [0; TOKEN_BYTES];
    if text.len() != 2 * TOKEN_BYTES || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(failure());
    }
    for (place, byte) in token.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).map_err(|_| failure())?;
    }
    Ok(token)
}

/// Nanoseconds from seconds between 0 and `most`.
pub fn nanoseconds(method: &str, name: &str, seconds: f64, most: f64) -> Result<u64, Failure> {
    within(method, name, seconds, 0.0, most).map(|seconds| (seconds * 1e9) as u64)
}

/// A number that must lie between `least` and `most`, both included.
pub fn within<T: PartialOrd + std::fmt::Display>(
    method: &str,
    name: &str,
    value: T,
    least: T,
    most: T,
) -> Result<T, Failure> {
    if (&least..=&most).contains(&&value) {
        return Ok(value);
    }
    Err(Failure::invalid_params(method, format!("{name}: {value} is not within {least} and {most}")))
}

/// A chance that is neither 0 nor 1.
pub fn chance(method: &str, name: &str, value: f64) -> Result<f64, Failure> {
    if value > 0.0 && value < 1.0 {
        return Ok(value);
    }
    Err(Failure::invalid_params(method, format!("{name} is a chance above 0 and below 1")))
}
