//! `framegauge-agent simulate FOLDER`: reads a scenario as JSON on standard input, runs it in virtual time, tells how far it
//! is and what came of it as lines of JSON, and writes the tables into the folder. With `--algorithms` it reads nothing, and
//! prints the table of congestion controls.

use framegauge_drivers::simulations;
use framegauge_frames::BitRate;
use framegauge_simulator::{Algorithm, ScenarioSpec, TcpSettings};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Instead of a folder: only says what memory the scenario takes.
const MEMORY: &str = "--memory";
/// Instead of a folder: prints the table of congestion controls.
const ALGORITHMS: &str = "--algorithms";

/// Runs one scenario. Lines of output: `{"progress": {...}}`, and `{"result": {...}}` as the last one. With `--memory`
/// instead of a folder the result is what memory it would take, and what there is.
pub fn run(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(folder), None) = (words.next().map(PathBuf::from), words.next()) else {
        return failed("expected a folder for the tables");
    };
    if folder.as_os_str() == ALGORITHMS {
        return table();
    }
    let result = if folder.as_os_str() == MEMORY { memory() } else { simulate(&folder) };
    match result {
        Ok(result) if say(&json!({"result": result})) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(reason) => failed(&reason),
    }
}

/// The table as JSON, one value a line, as it is kept in the Python package.
fn table() -> ExitCode {
    let table = serde_json::to_string_pretty(Algorithm::ALL).expect("words only");
    match writeln!(std::io::stdout().lock(), "{table}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn scenario() -> Result<ScenarioSpec, String> {
    serde_json::from_reader(std::io::stdin().lock()).map_err(|error| format!("scenario: {error}"))
}

fn memory() -> Result<Value, String> {
    serde_json::to_value(simulations::Memory::of(&scenario()?)).map_err(|error| error.to_string())
}

fn simulate(folder: &std::path::Path) -> Result<Value, String> {
    let spec = scenario()?;
    simulations::check_memory(&spec)?;
    let (scenario, network) = spec.scenario()?;
    let watched = simulations::Watched::of(&spec, &scenario);
    let ceilings = ceilings(&spec, &scenario.tcp)?;
    let (outcome, cpu_seconds) = simulations::run(scenario, |progress| {
        say(&json!({"progress": progress}));
    })?;
    simulations::write(&outcome, &network.config, watched.as_ref(), folder)?;
    let mut result = simulations::describe(&outcome, &network, cpu_seconds);
    result["ceilings"] = ceilings;
    result["network"] = serde_json::to_value(network.describe()).unwrap_or_default();
    Ok(result)
}

/// What a link of the usual rate carries at best, for every MTU that a host has: inside of the overlay, if there is one.
fn ceilings(spec: &ScenarioSpec, tcp: &TcpSettings) -> Result<Value, String> {
    let rate = BitRate::new(spec.link.bits_per_second).map_err(|error| error.to_string())?;
    let mtus: BTreeSet<u32> = spec.hosts.iter().map(|host| host.mtu).collect();
    let row = |mtu: &u32| {
        let most = spec.fit(*mtu)?.ceiling(tcp.family, tcp.timestamps, rate);
        Ok(json!({"mtu": mtu, "inner_mtu": most.mtu.bytes(), "frame_bytes": most.frame_bytes,
                  "wire_bytes": most.wire_bytes, "mss_bytes": most.mss_bytes, "segment_payload_bytes": most.segment_payload_bytes,
                  "goodput_bits_per_second": most.goodput_bits_per_second}))
    };
    mtus.iter().map(row).collect()
}

fn say(line: &Value) -> bool {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").and_then(|()| output.flush()).is_ok()
}

fn failed(reason: &str) -> ExitCode {
    eprintln!("framegauge-agent simulate: {reason}");
    ExitCode::from(2)
}
