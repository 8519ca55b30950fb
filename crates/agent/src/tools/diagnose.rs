//! `framegauge-agent diagnose`: names what makes TCP slow in capture files, as a line of JSON for each; with `--join`, what
//! several captures say together of the connections that they share, as one line.

use framegauge_diagnosis::Thresholds;
use framegauge_drivers::{captures, joins};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Reads the files that are named. Words: `[--thresholds JSON] FILE...`, or `--join JSON` with a list of names and files:
/// `[{"name": "h1", "file": "h1.pcap"}, ...]`.
pub fn run(words: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut limits = Thresholds::default();
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        if word == "--join" {
            return join(&words.next().and_then(|text| text.into_string().ok()).unwrap_or_default());
        }
        if word != "--thresholds" {
            files.push(word.into());
            continue;
        }
        let text = words.next().and_then(|text| text.into_string().ok()).unwrap_or_default();
        match serde_json::from_str(&text) {
            Ok(given) => limits = given,
            Err(error) => return failed(&format!("--thresholds: {error}")),
        }
    }
    if files.is_empty() {
        return failed("expected a file");
    }
    let mut output = std::io::stdout().lock();
    for file in files {
        let said = match captures::diagnose(&file, limits) {
            Ok(found) => serde_json::to_string(&found),
            Err(error) => {
                serde_json::to_string(&serde_json::json!({"file": file.to_string_lossy(), "error": error}))
            }
        };
        let line = said.expect("what was found has only words and finite numbers");
        if writeln!(output, "{line}").is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// One line: what these captures say together, or `null` if they share no connection.
fn join(text: &str) -> ExitCode {
    let sources: Vec<joins::Source> = match serde_json::from_str(text) {
        Ok(sources) => sources,
        Err(error) => return failed(&format!("--join: {error}")),
    };
    let joined = match joins::join(&sources) {
        Ok(joined) => joined,
        Err(error) => return failed(&error),
    };
    let line = serde_json::to_string(&joined).expect("what was found has only words and finite numbers");
    match writeln!(std::io::stdout().lock(), "{line}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn failed(why: &str) -> ExitCode {
    eprintln!("framegauge-agent diagnose: {why}");
    ExitCode::from(2)
}
