//! Runs a program of the host for what it prints, within limits: it says what it knows, or one line says why not.

use framegauge_linux::{files, process};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A host whose program does not end within this time is asked for everything else all the same.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// What is longer is not kept in memory.
const MOST_BYTES: u64 = 16 << 20;

/// Where a program is.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = process::search_path();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// What a program of this name prints; why there is nothing, in one line, if it fails or does not end in time.
pub fn printed(name: &str, program: Command, patience: Duration) -> Result<Vec<u8>, String> {
    let unnamed = || files::unnamed().map_err(|error| error.to_string());
    let (output, errors) = (unnamed()?, unnamed()?);
    let status = run(program, &output, &errors, patience).map_err(|error| format!("{name}: {error}"))?;
    match status {
        None => Err(format!("{name} did not end within {} s", patience.as_secs_f64())),
        Some(status) if !status.success() => Err(format!("{name}: {}", complaint(name, &errors, status))),
        Some(_) => text(name, &output, MOST_BYTES),
    }
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
fn complaint(name: &str, errors: &File, status: ExitStatus) -> String {
    let text = text(name, errors, MOST_BYTES).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.map_or_else(|| status.to_string(), |line| line.chars().take(200).collect())
}

fn text(name: &str, file: &File, most: u64) -> Result<Vec<u8>, String> {
    let (bytes, size) = files::read_at(file, 0, most as usize).map_err(|error| error.to_string())?;
    if size > most { Err(format!("{name} printed {size} bytes, expected at most {most}")) } else { Ok(bytes) }
}
