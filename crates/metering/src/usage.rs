//! What the processes of a cgroup have used.

use crate::ParseError;
use crate::error::number;

/// Nanoseconds on a CPU of all processes that are or were in the group and below it, from its `cpu.stat`
/// (cgroup-v2): there also without the cpu controller.
pub fn parse_cgroup_cpu(text: &str) -> Result<u64, ParseError> {
    for (index, line) in text.lines().enumerate() {
        if let Some(("usage_usec", value)) = line.split_once(' ') {
            let microseconds: u64 = number(index, Some(value.trim()), "a number of microseconds")?;
            return Ok(microseconds.saturating_mul(1000));
        }
    }
    Err(ParseError::new(0, text, "a line that begins with usage_usec"))
}
