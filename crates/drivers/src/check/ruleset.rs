//! Asks `nft` for the rules of this network namespace that bear on path MTUs, or says why they are unknown; and
//! `iptables-save` for what `nft` does not tell of its rules, or cannot see.

use crate::check::programs::{PATIENCE, find, printed};
use framegauge_frames::Family;
use framegauge_pathmtu::{
    ErrorFilter, LengthFilter, MssClamp, error_filters, has_unread_length, lacks_device, length_filters,
    length_filters_of_iptables, mss_clamps, with_devices,
};
use std::process::Command;

/// What rules make of packets that a check cares for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Those that clamp the MSS of TCP.
    pub mss_clamps: Vec<MssClamp>,
    /// Those that keep "packet too big" from this host.
    pub error_filters: Vec<ErrorFilter>,
    /// Those that drop packets by their length.
    pub length_filters: Vec<LengthFilter>,
}

/// The rules, or why they could not be read, in one line.
pub fn read() -> Result<Rules, String> {
    // Without the elements of sets, of which there may be a million.
    let listing = printed("nft", nft(&["--json", "--terse", "list", "ruleset"])?, PATIENCE)?;
    let mut rules = rules(&listing)?;
    if rules.length_filters.iter().any(lacks_device) {
        let chains =
            nft(&["list", "chains"]).and_then(|nft| printed("nft", nft, PATIENCE)).unwrap_or_default();
        rules.length_filters = with_devices(rules.length_filters, &String::from_utf8_lossy(&chains));
    }
    rules.length_filters.extend(of_iptables(has_unread_length(&listing)));
    Ok(rules)
}

fn nft(arguments: &[&str]) -> Result<Command, String> {
    let mut nft = Command::new(find("nft").ok_or("nft is not installed")?);
    nft.args(arguments).env("LC_ALL", "C");
    Ok(nft)
}

/// What iptables lists: of nft's tables where `in_nft`, and of its own old ones where the kernel has some. It is not asked
/// otherwise, because it would load modules.
fn of_iptables(in_nft: bool) -> Vec<LengthFilter> {
    let versions = [("ip", Family::V4), ("ip6", Family::V6)];
    let mut filters = Vec::new();
    for (prefix, version) in versions {
        let names = std::fs::read_to_string(format!("/proc/net/{prefix}_tables_names")).unwrap_or_default();
        for (is_used, backend) in [(in_nft, "nft"), (!names.trim().is_empty(), "legacy")] {
            let program = format!("{prefix}tables-{backend}-save");
            if let Some(path) = find(&program).filter(|_| is_used)
                && let Ok(saved) = printed(&program, Command::new(path), PATIENCE)
            {
                filters.extend(length_filters_of_iptables(&String::from_utf8_lossy(&saved), version));
            }
        }
    }
    filters
}

fn rules(ruleset: &[u8]) -> Result<Rules, String> {
    let reason = |error| format!("nft: {error}");
    Ok(Rules {
        mss_clamps: mss_clamps(ruleset).map_err(reason)?,
        error_filters: error_filters(ruleset).map_err(reason)?,
        length_filters: length_filters(ruleset).map_err(reason)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn read_by(nft: Command, patience: Duration) -> Result<Rules, String> {
        rules(&printed("nft", nft, patience)?)
    }

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
