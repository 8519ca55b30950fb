//! Laws that every congestion control of the table keeps: a new one is held to them by its row.

use crate::common::{GIGABIT, assert_conserved, host, milliseconds, rack, rate_between, scenario};
use framegauge_fabric::QueueConfig;
use framegauge_simulator::{Algorithm, Flow, Outcome, Scenario, ScenarioSpec, Simulation};
use serde_json::json;

fn run(scenario: Scenario) -> Outcome {
    let outcome = Simulation::new(scenario).unwrap().run();
    assert_conserved(&outcome);
    outcome
}

/// A stream without end for a second over 200 Mb/s and 2 ms, whose switch marks where hosts ask for it.
fn stream(algorithm: Algorithm, flows: u16) -> Scenario {
    let mut network = rack(1 + usize::from(flows), 2 * GIGABIT / 10, milliseconds(2), 100_000);
    for port in &mut network.ports {
        if matches!(port.queue, QueueConfig::Taildrop { .. }) {
            port.queue = QueueConfig::Step { limit_bytes: 100_000, threshold_bytes: 30_000 };
        }
    }
    let all = (1..=flows).map(|number| Flow::transfer(host(number), host(flows + 1), None)).collect();
    let mut scenario = scenario(network, 1500, all, milliseconds(2000));
    scenario.tcp.algorithm = algorithm;
    scenario.sample_interval = milliseconds(500);
    scenario
}

#[test]
fn every_algorithm_fills_a_link_and_never_more() {
    // What waits in the buffer, or for a segment before it, at a sample counts by one or the other.
    for algorithm in Algorithm::ALL {
        for flows in [1, 4] {
            let outcome = run(stream(*algorithm, flows));
            let share = rate_between(&outcome, 500, 2000) / (2e8 * 1448.0 / 1538.0);
            assert!((0.9..=1.005).contains(&share), "{} {flows}: {share}", algorithm.name());
        }
    }
}

#[test]
fn every_algorithm_gives_the_same_bytes_for_the_same_seed() {
    for algorithm in Algorithm::ALL {
        let told = || format!("{:?}", run(stream(*algorithm, 3)).transfers);
        assert_eq!(told(), told(), "{}", algorithm.name());
    }
}

#[test]
fn every_algorithm_gets_through_a_link_that_loses_packets() {
    for algorithm in Algorithm::ALL {
        let mut scenario = stream(*algorithm, 1);
        scenario.network.ports[0].impairments.loss = 0.02;
        scenario.flows = vec![Flow::transfer(host(1), host(2), Some(1_000_000))];
        scenario.end = milliseconds(60_000);
        let outcome = run(scenario);
        assert!(outcome.transfers[0].is_complete, "{}", algorithm.name());
        assert!(outcome.flows[0].sender.resends > 0, "{}", algorithm.name());
    }
}

#[test]
fn scenarios_name_the_rows_of_the_table_and_the_error_lists_them() {
    let read = |name: &str| {
        let spec = json!({
            "hosts": [{"name": "h1", "mtu": 1500}, {"name": "h2", "mtu": 1500}],
            "link": {"bits_per_second": 100_000_000, "rtt_seconds": 0.001, "buffer_bytes": 65_536, "port_mtu": 9216},
            "flows": [], "end_seconds": 1.0, "tcp": {"congestion_control": name},
        });
        serde_json::from_value::<ScenarioSpec>(spec)
            .unwrap()
            .scenario()
            .map(|(scenario, _)| scenario.tcp.algorithm)
    };
    for algorithm in Algorithm::ALL {
        assert_eq!(read(algorithm.name()).unwrap(), *algorithm);
    }
    let names: Vec<&str> = Algorithm::ALL.iter().map(|algorithm| algorithm.name()).collect();
    let said = read("vegas").unwrap_err();
    assert!(said.starts_with("tcp.congestion_control: found \"vegas\", expected "), "{said}");
    assert!(names.iter().all(|name| said.contains(name)), "{said}");
}

/// A new one is one file and its row: elsewhere the sender asks what it decides, and knows no algorithm by name.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test reads the sources")]
fn no_other_file_of_the_simulator_names_an_algorithm() {
    fn sources(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            match entry.path() {
                path if path.is_dir() => sources(&path, found),
                path => found.push(path),
            }
        }
    }
    let mut found = Vec::new();
    sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(found.len() > 40, "{}", found.len());
    let elsewhere =
        found.iter().filter(|path| !path.components().any(|part| part.as_os_str() == "congestion"));
    for path in elsewhere {
        let text = std::fs::read_to_string(path).unwrap();
        for algorithm in Algorithm::ALL {
            let variant = format!("Algorithm::{algorithm:?}");
            let word = format!("\"{}\"", algorithm.name());
            assert!(
                !text.contains(&variant) && !text.contains(&word),
                "{} in {}",
                algorithm.name(),
                path.display()
            );
        }
    }
}
