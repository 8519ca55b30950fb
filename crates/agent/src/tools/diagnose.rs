//! `framegauge-agent diagnose`: names what makes TCP slow in capture files, as a line of JSON for each. With `--rows` each
//! connection and each finding has a line of its own. With `--draw` it draws connections of one file instead; with
//! `--evidence` it copies packets, of which standard input says what there is to say, to standard output; with `--join` it
//! says what several captures tell together of the connections that they share, as one line. With `--kinds` it reads
//! nothing, and prints the table of all kinds of findings.

use framegauge_diagnosis::Thresholds;
use framegauge_drivers::captures::{self, Form, Room, evidence, pictures};
use framegauge_drivers::joins;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const OUTPUT_BYTES: usize = 1 << 16;

#[derive(Debug, Default)]
struct Words {
    files: Vec<PathBuf>,
    limits: Thresholds,
    /// Connections, by the places of their taps and their numbers there.
    draw: Option<Vec<(usize, u64)>>,
    join: Option<Vec<joins::Source>>,
    evidence: bool,
    room: Room,
    rows: bool,
    kinds: bool,
}

/// Reads the files that are named. Words: `[--thresholds JSON] [--threads NUMBER] [--rows | --draw JSON | --evidence]
/// FILE...`, or `--join JSON` with a list of names and files: `[{"name": "h1", "file": "h1.pcap"}, ...]`; or `--kinds`.
pub fn run(words: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let words = match parse(words) {
        Ok(words) => words,
        Err(reason) => return failed(&reason),
    };
    if words.kinds {
        return table();
    }
    if let Some(sources) = words.join {
        return join(&sources);
    }
    if words.evidence {
        return copy(&words.files);
    }
    let mut output = BufWriter::with_capacity(OUTPUT_BYTES, std::io::stdout().lock());
    let written = words.files.iter().try_for_each(|file| match &words.draw {
        None => {
            let form = if words.rows { Form::Rows } else { Form::Document };
            match captures::write(file, words.limits, words.room, form, &mut output) {
                Ok(()) => Ok(()),
                Err(captures::Failed::Read(reason)) => {
                    writeln!(output, "{}", said(file, Err::<(), String>(reason)))
                }
                Err(captures::Failed::Write(error)) => Err(error),
            }
        }
        Some(connections) => {
            writeln!(output, "{}", said(file, pictures::draw(file, words.limits, connections)))
        }
    });
    match written.and_then(|()| output.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// The table of kinds as JSON, one value a line, as it is kept in the Python package.
fn table() -> ExitCode {
    let table =
        serde_json::to_string_pretty(&framegauge_diagnosis::kinds()).expect("words and finite numbers");
    match writeln!(std::io::stdout().lock(), "{table}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// One line: what these captures say together, or `null` if they share no connection.
fn join(sources: &[joins::Source]) -> ExitCode {
    let joined = match joins::join(sources) {
        Ok(joined) => joined,
        Err(error) => return failed(&error),
    };
    let line = serde_json::to_string(&joined).expect("what was found has only words and finite numbers");
    match writeln!(std::io::stdout().lock(), "{line}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn parse(mut words: impl Iterator<Item = std::ffi::OsString>) -> Result<Words, String> {
    let mut arguments = Words::default();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--thresholds") => arguments.limits = json(words.next(), "--thresholds")?,
            Some("--join") => arguments.join = Some(json(words.next(), "--join")?),
            Some("--draw") => arguments.draw = Some(json(words.next(), "--draw")?),
            Some("--evidence") => arguments.evidence = true,
            Some("--kinds") => arguments.kinds = true,
            Some("--rows") => arguments.rows = true,
            Some("--threads") => {
                arguments.room.threads = json::<NonZeroUsize>(words.next(), "--threads")?.get();
            }
            _ => arguments.files.push(word.into()),
        }
    }
    let is_complete = !arguments.files.is_empty() || arguments.join.is_some() || arguments.kinds;
    if is_complete { Ok(arguments) } else { Err("expected a file".to_owned()) }
}

fn json<T: DeserializeOwned>(word: Option<std::ffi::OsString>, option: &str) -> Result<T, String> {
    let text = word.and_then(|text| text.into_string().ok()).unwrap_or_default();
    serde_json::from_str(&text).map_err(|error| format!("{option}: {error}"))
}

fn said(file: &Path, result: Result<impl Serialize, String>) -> String {
    let line = match result {
        Ok(result) => serde_json::to_string(&result),
        Err(error) => {
            serde_json::to_string(&serde_json::json!({"file": file.to_string_lossy(), "error": error}))
        }
    };
    line.expect("what was found has only words and finite numbers")
}

/// Standard input has an object for each file, with comments by the numbers of packets.
fn copy(files: &[PathBuf]) -> ExitCode {
    let comments: Vec<evidence::Comments> = match serde_json::from_reader(std::io::stdin().lock()) {
        Ok(comments) => comments,
        Err(error) => return failed(&format!("--evidence: {error}")),
    };
    if comments.len() != files.len() {
        return failed(&format!("--evidence: found {} objects, expected {}", comments.len(), files.len()));
    }
    let sources: Vec<_> = files.iter().cloned().zip(comments).collect();
    let mut output = BufWriter::new(std::io::stdout().lock());
    match evidence::write(&sources, &mut output) {
        Ok(_) if output.flush().is_ok() => ExitCode::SUCCESS,
        Ok(_) | Err(evidence::Failed::Write(_)) => ExitCode::FAILURE,
        Err(evidence::Failed::Read(reason)) => failed(&reason),
    }
}

fn failed(reason: &str) -> ExitCode {
    eprintln!("framegauge-agent diagnose: {reason}");
    ExitCode::from(2)
}
