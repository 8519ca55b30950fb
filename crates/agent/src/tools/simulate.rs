//! `framegauge-agent simulate FOLDER`: reads a scenario as JSON on standard input, runs it in virtual time, tells how far it
//! is and what came of it as lines of JSON, and writes the tables into the folder.

use framegauge_drivers::simulations;
use framegauge_simulator::ScenarioSpec;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs one scenario. Lines of output: `{"progress": {...}}`, and `{"result": {...}}` as the last one.
pub fn run(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(folder), None) = (words.next().map(PathBuf::from), words.next()) else {
        return failed("expected a folder for the tables");
    };
    match simulate(&folder) {
        Ok(result) if say(&json!({"result": result})) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => failed(&why),
    }
}

fn simulate(folder: &std::path::Path) -> Result<Value, String> {
    let spec: ScenarioSpec =
        serde_json::from_reader(std::io::stdin().lock()).map_err(|error| format!("scenario: {error}"))?;
    let (scenario, network) = spec.scenario()?;
    let watched = simulations::Watched::of(&scenario);
    let (outcome, cpu_seconds) = simulations::run(scenario, |progress| {
        say(&json!({"progress": progress}));
    })?;
    simulations::write(&outcome, &network.config, watched.as_ref(), folder)?;
    let mut result = simulations::describe(&outcome, &network.config, cpu_seconds);
    result["network"] = serde_json::to_value(network.describe()).unwrap_or_default();
    Ok(result)
}

fn say(line: &Value) -> bool {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").and_then(|()| output.flush()).is_ok()
}

fn failed(why: &str) -> ExitCode {
    eprintln!("framegauge-agent simulate: {why}");
    ExitCode::from(2)
}
