//! Asks `nft` for the rules of this network namespace that bear on path MTUs, or says why they are unknown.

use crate::check::programs::{PATIENCE, find, printed};
use framegauge_pathmtu::{ErrorFilter, MssClamp, error_filters, mss_clamps};
use std::process::Command;
use std::time::Duration;

/// What rules make of packets that a check cares for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Those that clamp the MSS of TCP.
    pub mss_clamps: Vec<MssClamp>,
    /// Those that keep "packet too big" from this host.
    pub error_filters: Vec<ErrorFilter>,
}

/// The rules, or why they could not be read, in one line.
pub fn read() -> Result<Rules, String> {
    let mut nft = Command::new(find("nft").ok_or("nft is not installed")?);
    // Without the elements of sets, of which there may be a million.
    nft.args(["--json", "--terse", "list", "ruleset"]).env("LC_ALL", "C");
    read_by(nft, PATIENCE)
}

fn read_by(nft: Command, patience: Duration) -> Result<Rules, String> {
    rules(&printed("nft", nft, patience)?)
}

fn rules(ruleset: &[u8]) -> Result<Rules, String> {
    let reason = |error| format!("nft: {error}");
    Ok(Rules {
        mss_clamps: mss_clamps(ruleset).map_err(reason)?,
        error_filters: error_filters(ruleset).map_err(reason)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(script: &str, patience: Duration) -> Result<Rules, String> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", script]);
        read_by(shell, patience)
    }

    #[test]
    fn whatever_nft_does_ends_in_rules_or_a_reason() {
        let patient = |script: &str| with(script, Duration::from_secs(60));
        assert_eq!(patient(r#"echo '{"nftables": []}'"#), Ok(Rules::default()));
        let reason = |script: &str| patient(script).unwrap_err();
        assert_eq!(reason("echo >&2; echo No >&2; echo more >&2; exit 1"), "nft: No");
        assert_eq!(reason("exit 3"), "nft: exit status: 3");
        assert!(reason("echo hello").starts_with("nft: found no JSON"));
        let long = reason("head -c 16777217 /dev/zero");
        assert_eq!(long, "nft printed 16777217 bytes, expected at most 16777216");
        let hanging = with("exec sleep 1000", Duration::from_millis(50));
        assert_eq!(hanging.unwrap_err(), "nft did not end within 0.05 s");
    }

    #[test]
    fn a_program_that_is_not_there_is_a_reason() {
        let none = read_by(Command::new("/nonexistent/nft"), PATIENCE);
        assert_eq!(none.unwrap_err(), "nft: No such file or directory (os error 2)");
        assert_eq!(find("framegauge-no-such-program"), None);
        assert!(find("sh").is_some());
    }
}
