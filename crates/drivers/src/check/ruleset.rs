//! Asks `nft` for the rules of this network namespace that bear on path MTUs, or says why they are unknown.

use framegauge_linux::{files, process};
use framegauge_pathmtu::{ErrorFilter, MssClamp, error_filters, mss_clamps};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A host that cannot list its rules within this time is asked for everything else all the same.
const PATIENCE: Duration = Duration::from_secs(2);
/// What is longer is not kept in memory.
const MOST_BYTES: u64 = 16 << 20;

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

fn find(name: &str) -> Option<PathBuf> {
    let path = process::search_path();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn read_by(nft: Command, patience: Duration) -> Result<Rules, String> {
    let unnamed = || files::unnamed().map_err(|error| error.to_string());
    let (output, errors) = (unnamed()?, unnamed()?);
    let status = run(nft, &output, &errors, patience).map_err(|error| format!("nft: {error}"))?;
    match status {
        None => Err(format!("nft did not end within {} s", patience.as_secs_f64())),
        Some(status) if !status.success() => Err(format!("nft: {}", complaint(&errors, status))),
        Some(_) => rules(&text(&output, MOST_BYTES)?),
    }
}

fn rules(ruleset: &[u8]) -> Result<Rules, String> {
    let reason = |error| format!("nft: {error}");
    Ok(Rules {
        mss_clamps: mss_clamps(ruleset).map_err(reason)?,
        error_filters: error_filters(ruleset).map_err(reason)?,
    })
}

/// How it ended; `None`: it did not in time, and was killed.
fn run(
    mut program: Command,
    output: &File,
    errors: &File,
    patience: Duration,
) -> std::io::Result<Option<ExitStatus>> {
    program.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(errors.try_clone()?);
    process::end_with_starter(&mut program);
    let deadline = Instant::now() + patience;
    let mut child = program.spawn()?;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// The first line that it complained with.
fn complaint(errors: &File, status: ExitStatus) -> String {
    let text = text(errors, MOST_BYTES).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.map_or_else(|| status.to_string(), |line| line.chars().take(200).collect())
}

fn text(file: &File, most: u64) -> Result<Vec<u8>, String> {
    let (bytes, size) = files::read_at(file, 0, most as usize).map_err(|error| error.to_string())?;
    if size > most { Err(format!("nft printed {size} bytes, expected at most {most}")) } else { Ok(bytes) }
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
