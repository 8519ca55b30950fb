//! Asks `nft` for the rules of this network namespace that bear on path MTUs, or says why they are unknown; and
//! `iptables-save` for what `nft` does not tell of its rules, or cannot see.

use crate::check::programs::{PATIENCE, find, printed};
use framegauge_frames::Family;
use framegauge_pathmtu::{
    ClampedTo, ErrorFilter, LengthFilter, MssClamp, error_filters, error_filters_of_iptables, has_unread,
    lacks_device, length_filters, length_filters_of_iptables, mss_clamps, mss_clamps_of_iptables,
    tables_of_iptables, with_devices,
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

/// What `iptables-save` prints of one IP version.
struct Saved {
    text: String,
    version: Family,
    /// Of tables of nft, so that its listing has these rules as well.
    is_nft: bool,
}

/// The rules, or why they could not be read, in one line.
pub fn read() -> Result<Rules, String> {
    let listing = listed();
    let saved = saved(listing.as_deref().is_ok_and(has_unread));
    // A host of old may have no nft, and rules of iptables alone.
    let mut all = match listing.and_then(|listing| rules(&listing)) {
        Err(reason) if saved.is_empty() => return Err(reason),
        rules => rules.unwrap_or_default(),
    };
    if all.length_filters.iter().any(lacks_device) {
        let chains =
            nft(&["list", "chains"]).and_then(|nft| printed("nft", nft, PATIENCE)).unwrap_or_default();
        all.length_filters = with_devices(all.length_filters, &String::from_utf8_lossy(&chains));
    }
    saved.iter().for_each(|saved| add(&mut all, saved));
    Ok(all)
}

/// Without the elements of sets, of which there may be a million.
fn listed() -> Result<Vec<u8>, String> {
    printed("nft", nft(&["--json", "--terse", "list", "ruleset"])?, PATIENCE)
}

fn nft(arguments: &[&str]) -> Result<Command, String> {
    let mut nft = Command::new(find("nft").ok_or("nft is not installed")?);
    nft.args(arguments).env("LC_ALL", "C");
    Ok(nft)
}

/// What iptables lists: of nft's tables where `in_nft`, and of its own old ones where the kernel has some. It is not asked
/// otherwise, because it would load modules.
fn saved(in_nft: bool) -> Vec<Saved> {
    let mut all = Vec::new();
    for (prefix, version) in [("ip", Family::V4), ("ip6", Family::V6)] {
        let names = std::fs::read_to_string(format!("/proc/net/{prefix}_tables_names")).unwrap_or_default();
        for (is_used, is_nft) in [(in_nft, true), (!names.trim().is_empty(), false)] {
            let program = format!("{prefix}tables-{}-save", if is_nft { "nft" } else { "legacy" });
            // Of old there was one program, without a name of its kind.
            let of_old = || if is_nft { None } else { find(&format!("{prefix}tables-save")) };
            if is_used
                && let Some(path) = find(&program).or_else(of_old)
                && let Ok(text) = printed(&program, Command::new(path), PATIENCE)
            {
                all.push(Saved { text: String::from_utf8_lossy(&text).into_owned(), version, is_nft });
            }
        }
    }
    all
}

/// Adds what iptables lists. Of rules that nft lists as well, without what they ask for or set, that takes their place.
fn add(rules: &mut Rules, saved: &Saved) {
    let (clamps, family) = (mss_clamps_of_iptables(&saved.text, saved.version), saved.version);
    if saved.is_nft {
        let is_again = |old: &MssClamp| {
            let place = (&old.family, &old.table, &old.chain);
            old.to == ClampedTo::Unknown
                && clamps.iter().any(|new| (&new.family, &new.table, &new.chain) == place)
        };
        rules.mss_clamps.retain(|old| !is_again(old));
        let tables: Vec<&str> = tables_of_iptables(&saved.text).collect();
        let name = if family == Family::V4 { "ip" } else { "ip6" };
        rules.error_filters.retain(|old| old.family != name || !tables.contains(&old.table.as_str()));
    }
    rules.mss_clamps.extend(clamps);
    rules.error_filters.extend(error_filters_of_iptables(&saved.text, family));
    rules.length_filters.extend(length_filters_of_iptables(&saved.text, family));
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
    fn what_iptables_knows_takes_the_place_of_what_nft_does_not_show() {
        let clamp = |to, line: Option<&str>| MssClamp {
            family: "ip".into(),
            table: "mangle".into(),
            chain: "FORWARD".into(),
            to,
            line: line.map(str::to_string),
        };
        let filter = |table: &str| ErrorFilter {
            version: Family::V4,
            family: "ip".into(),
            table: table.into(),
            chain: "INPUT".into(),
            handle: Some(3),
            line: None,
            by_iptables: false,
            certain: false,
        };
        let line = "-A FORWARD -p tcp -j TCPMSS --set-mss 1360";
        let text =
            format!("*mangle\n:FORWARD ACCEPT [0:0]\n{line}\nCOMMIT\n*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n");
        for is_nft in [true, false] {
            let mut all = Rules {
                mss_clamps: vec![clamp(ClampedTo::Unknown, None)],
                error_filters: vec![filter("filter"), filter("own")],
                ..Rules::default()
            };
            add(&mut all, &Saved { text: text.clone(), version: Family::V4, is_nft });
            let own = clamp(ClampedTo::Size(1360), Some(line));
            let known = if is_nft { vec![own] } else { vec![clamp(ClampedTo::Unknown, None), own] };
            assert_eq!(all.mss_clamps, known);
            assert_eq!(all.error_filters.len(), if is_nft { 1 } else { 2 });
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_a_reason() {
        let none = read_by(Command::new("/nonexistent/nft"), PATIENCE);
        assert_eq!(none.unwrap_err(), "nft: No such file or directory (os error 2)");
        assert_eq!(find("framegauge-no-such-program"), None);
        assert!(find("sh").is_some());
    }
}
