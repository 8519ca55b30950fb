//! `framegauge-agent diagnose`: names what makes TCP slow in capture files, as a line of JSON for each.

use framegauge_diagnosis::Thresholds;
use framegauge_drivers::captures;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Reads the files that are named. Words: `[--thresholds JSON] FILE...`.
pub fn run(words: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut limits = Thresholds::default();
    let mut words = words.peekable();
    while let Some(word) = words.next() {
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

fn failed(why: &str) -> ExitCode {
    eprintln!("framegauge-agent diagnose: {why}");
    ExitCode::from(2)
}
