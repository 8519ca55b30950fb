//! Tracepoints by name.

use crate::error::{Context, Result};
use crate::namespace;
use std::fs;

const FOLDER: &str = "/sys/kernel/tracing";

/// The number of a tracepoint, which holds until the next boot. Needs root: where tracefs is not mounted it
/// is mounted for this question, in a mount namespace that ends with it.
pub fn tracepoint_id(system: &str, name: &str) -> Result<u64> {
    let path = format!("{FOLDER}/events/{system}/{name}/id");
    let read = |path: &str| fs::read_to_string(path).during(format!("read {path}"));
    let text = match read(&path) {
        Ok(text) => text,
        Err(_) => namespace::with_private_mount("tracefs", None, FOLDER, || read(&path))?,
    };
    text.trim().parse().map_err(std::io::Error::other).during(format!("read a number in {path}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_does_not_exist_is_named() {
        let error = super::tracepoint_id("no-such-system", "none").expect_err("there is none");
        assert!(!error.to_string().is_empty());
    }
}
