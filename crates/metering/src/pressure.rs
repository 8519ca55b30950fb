//! How long tasks of a group waited for a CPU.

use crate::ParseError;
use crate::error::number;

/// The whole of the time, in microseconds, in which some task of the group was ready and waited for a CPU: the `some`
/// line of `cpu.pressure` (kernel documentation, `accounting/psi`).
pub fn parse_cpu_pressure(text: &str) -> Result<u64, ParseError> {
    let expected = "some avg10=… avg60=… avg300=… total=MICROSECONDS";
    for (place, line) in text.lines().enumerate() {
        let mut fields = line.split_whitespace();
        if fields.next() == Some("some") {
            let total = fields.find_map(|field| field.strip_prefix("total="));
            return number(place, total, expected);
        }
    }
    Err(ParseError::new(0, text.lines().next().unwrap_or_default(), expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        let text = "some avg10=0.59 avg60=1.37 avg300=0.95 total=4650668\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(parse_cpu_pressure(text), Ok(4_650_668));
        assert!(parse_cpu_pressure("").is_err());
        assert!(parse_cpu_pressure("full avg10=0.00 total=3\n").is_err());
        assert!(parse_cpu_pressure("some avg10=0.00 total=-3\n").is_err());
    }
}
