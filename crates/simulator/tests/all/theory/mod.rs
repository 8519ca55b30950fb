//! Theory's table: what a simulation has to come to by a formula, each with its source.
//!
//! Every law is a test, and a row of `docs/measured/laws.md`. Simulations give the same bytes on any machine, so the page is
//! compared figure by figure; `FRAMEGAUGE_BLESS=1` writes it anew.

mod congestion;
mod cpus;
mod queues;
mod sharing;
mod windows;

use std::sync::OnceLock;

use framegauge_simulator::{Outcome, ScenarioSpec, Simulation};
use serde_json::{Value, json};

use crate::common::assert_conserved;

/// A law, and what came of it.
struct Law {
    name: &'static str,
    /// The formula, and where it is from.
    formula: &'static str,
    source: &'static str,
    unit: &'static str,
    known: f64,
    found: f64,
    /// The largest difference, as a share of what is known, and why there is any.
    tolerance: f64,
    because: &'static str,
}

impl Law {
    fn difference(&self) -> f64 {
        self.found / self.known - 1.0
    }

    fn check(&self) {
        let Law { name, known, found, tolerance, .. } = self;
        assert!(
            self.difference().abs() <= *tolerance,
            "{name}: {found}, known {known}, at most {tolerance} apart"
        );
    }
}

/// For each law a test, and all of them in order.
macro_rules! laws {
    ($($file:ident: $($law:ident)*;)*) => {
        $($(
            mod $law {
                use super::*;

                /// It is simulated once, for its test and for the page.
                pub fn once() -> &'static Law {
                    static LAW: OnceLock<Law> = OnceLock::new();
                    LAW.get_or_init($file::$law)
                }

                #[test]
                fn holds() {
                    once().check();
                }
            }
        )*)*

        const ALL: &[fn() -> &'static Law] = &[$($($law::once,)*)*];
    };
}

laws! {
    windows: ceiling_of_ipv4 ceiling_without_timestamps ceiling_of_ipv6 ceiling_of_jumbo_frames ceiling_of_tagged_frames
        ceiling_of_vxlan window_per_round_trip standing_queue slow_start delayed_acknowledgements store_and_forward
        pipelining timeouts_double;
    congestion: reno_without_a_buffer period_of_reno mathis cubic_at_half_of_its_plateau cubic_at_its_plateau
        cubic_among_short_round_trips dctcp_peak dctcp_amplitude bbr_window;
    queues: utilisation poisson_arrivals_of_one_size poisson_arrivals_of_two_sizes overload random_loss
        red_between_its_thresholds codel_first_drops;
    sharing: processor_sharing closed_network closed_network_bound max_min ecmp_collisions incast_after_its_collapse
        lossless_pauses;
    cpus: packets_of_a_receiver jumbo_frames_of_a_receiver packets_of_two_cores packets_of_a_sender
        merged_packets_of_a_receiver wakeups_of_a_receiver;
}

/// Hosts of one MTU on a switch with links of a rate; `more` replaces keys.
fn network(hosts: usize, mtu: u32, bits_per_second: u64, rtt_seconds: f64, more: Value) -> Value {
    let hosts: Vec<Value> =
        (1..=hosts).map(|number| json!({"name": format!("h{number}"), "mtu": mtu})).collect();
    let mut spec = json!({
        "hosts": hosts, "flows": [], "end_seconds": 1.0,
        "link": {
            "bits_per_second": bits_per_second, "rtt_seconds": rtt_seconds, "buffer_bytes": 100_000_000, "port_mtu": 9216
        },
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    spec
}

/// A transfer from the first host to another; `null`: without end.
fn transfer(from: usize, to: usize, bytes: Value) -> Value {
    json!({"client": format!("h{from}"), "server": format!("h{to}"), "steps": [{"from": "client", "bytes": bytes}]})
}

fn run(spec: Value) -> Outcome {
    run_with_names(spec).0
}

fn run_with_names(spec: Value) -> (Outcome, Vec<String>) {
    let found = run_with_loads(spec);
    assert_conserved(&found.0);
    found
}

/// Beside background loads, whose frames are no segments.
fn run_with_loads(spec: Value) -> (Outcome, Vec<String>) {
    let spec: ScenarioSpec = serde_json::from_value(spec).unwrap();
    let (scenario, network) = spec.scenario().unwrap();
    (Simulation::new(scenario).unwrap().run(), network.config.port_names())
}

/// Payload of all flows, or of one, read between two samples, in bits per second; times in seconds.
fn goodput(outcome: &Outcome, flow: Option<u32>, from: f64, to: f64) -> f64 {
    let read = |at: f64| -> u64 {
        let there = outcome.samples.iter().filter(|sample| {
            (sample.time.as_seconds_f64() - at).abs() < 1e-9 && flow.is_none_or(|flow| flow == sample.flow)
        });
        there.map(|sample| sample.read_bytes[0] + sample.read_bytes[1]).sum()
    };
    8.0 * (read(to) - read(from)) as f64 / (to - from)
}

/// The mean of a port's queue between two times, in bytes, the frame that is being sent included.
fn mean_queue((outcome, names): &(Outcome, Vec<String>), port: &str, from: f64) -> f64 {
    let place = names.iter().position(|name| name == port).unwrap();
    let after = outcome.port_samples.iter().filter(|sample| sample.time.as_seconds_f64() > from);
    // Samples are left out where nothing happens.
    let held: Vec<f64> =
        after.filter(|one| usize::from(one.port.0) == place).map(|one| one.queue_bytes as f64).collect();
    held.iter().sum::<f64>() / held.len() as f64
}

fn page() -> String {
    let mut page = String::from(
        "# Laws that simulations keep\n\n\
         Each row is a simulation that has to come to what a formula says, and a test \
         (`crates/simulator/tests/all/theory/`).\nSimulations give the same figures on any machine. This page is written by\n\n\
         ```text\nFRAMEGAUGE_BLESS=1 cargo test -p framegauge-simulator --test all theory\n```\n",
    );
    let laws: Vec<&Law> = ALL.iter().map(|law| law()).collect();
    page.push_str("\n| law | formula | known | simulated | difference | at most |\n| --- | --- | --- | --- | --- | --- |\n");
    for law in &laws {
        let figure = |value: f64| format!("{} {}", shown(value), law.unit);
        page.push_str(&format!(
            "| {} | {} | {} | {} | {:+.2} % | {} % |\n",
            law.name,
            law.formula,
            figure(law.known).trim_end(),
            figure(law.found).trim_end(),
            100.0 * law.difference(),
            (law.tolerance * 1e6).round() / 1e4,
        ));
    }
    page.push_str("\n## Sources, and why a simulation may differ\n\n");
    for law in &laws {
        let told = format!("- **{}**: {}. {}.", law.name, law.source, law.because);
        page.push_str(&folded(&told, 118));
    }
    page
}

/// A point of a list in lines of so many characters.
fn folded(text: &str, width: usize) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > width {
            lines.push_str(&line);
            lines.push('\n');
            line = format!("  {word}");
        } else {
            line = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        }
    }
    lines + &line + "\n"
}

/// Five significant digits.
fn shown(value: f64) -> String {
    let digits = (4.0 - value.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{value:.digits$}")
}

#[allow(clippy::disallowed_methods, reason = "a test compares a page")]
#[test]
fn the_page_has_these_figures() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/measured/laws.md");
    let page = page();
    if std::env::var_os("FRAMEGAUGE_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = page.lines().zip(kept.lines()).find(|(new, old)| new != old);
    assert!(page == kept, "docs/measured/laws.md is out of date: {differs:?}");
}

#[test]
fn there_are_thirty_laws_and_each_has_a_name_of_its_own() {
    assert!(ALL.len() >= 30, "{}", ALL.len());
}
