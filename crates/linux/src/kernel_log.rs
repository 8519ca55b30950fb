//! The kernel's log (`dmesg`, the journal), for what has to be said when nobody is left to hear it.

use crate::error::{Context, Result};
use std::fs::OpenOptions;
use std::io::Write;

const DEVICE: &str = "/dev/kmsg";
/// `KERN_WARNING`.
const LEVEL: &str = "<4>";
/// A record is as long as a line of the log can be (`LOG_LINE_MAX`).
const LONGEST: usize = 900;

/// Writes one line.
pub fn warn(line: &str) -> Result<()> {
    let mut device = OpenOptions::new().write(true).open(DEVICE).during("open the kernel's log")?;
    device.write_all(record(line).as_bytes()).during("write to the kernel's log")
}

/// A record of one printable line.
fn record(line: &str) -> String {
    let plain = |sign: char| if sign.is_control() { '?' } else { sign };
    let mut text: String = line.chars().map(plain).collect();
    while text.len() > LONGEST {
        text.pop();
    }
    format!("{LEVEL}{text}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_printable_line() {
        assert_eq!(record("the MTU of a\x1b[2J\nb"), "<4>the MTU of a?[2J?b\n");
        assert!(record(&"ü".repeat(2000)).len() < 1000);
    }
}
