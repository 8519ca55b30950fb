//! A permutation on a fat-tree: every host sends to another one. Prints goodput, events and memory.
//! `fat_tree [k] [milliseconds] [mtu]`

use framegauge_frames::{Mtu, Picoseconds};
use framegauge_simulator::{FlowSpec, HostSpec, LinkSpec, ScenarioSpec, Simulation};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |place: usize, usual: u64| arguments.get(place).map_or(usual, |text| text.parse().unwrap());
    let (k, milliseconds, mtu) = (number(1, 8), number(2, 100), number(3, 1500));
    let hosts = k * k * k / 4;
    let _ = (Mtu::new(mtu as u32), Picoseconds::ZERO);
    let json = format!(
        r#"{{"hosts": [{}], "link": {{"bits_per_second": 1000000000, "rtt_seconds": 0.00006, "buffer_bytes": 153600,
        "port_mtu": 9216}}, "topology": {{"kind": "fat-tree", "k": {k}}}, "shaper": {{"factor": 0.999}},
        "flows": [{}], "end_seconds": {}}}"#,
        (1..=hosts).map(|host| format!(r#"{{"name": "h{host}", "mtu": {mtu}}}"#)).collect::<Vec<_>>().join(","),
        (0..hosts)
            .map(|host| {
                let to = (host + hosts / 2 + 1) % hosts + 1;
                format!(
                    r#"{{"client": "h{}", "server": "h{to}", "steps": [{{"from": "client", "bytes": null}}]}}"#,
                    host + 1
                )
            })
            .collect::<Vec<_>>()
            .join(","),
        milliseconds as f64 / 1000.0
    );
    let begun = std::time::Instant::now();
    let spec: ScenarioSpec = serde_json::from_str(&json).unwrap();
    let (scenario, _) = spec.scenario().unwrap();
    println!("built in {:?}", begun.elapsed());
    let simulation = Simulation::new(scenario).unwrap();
    println!("ready in {:?}", begun.elapsed());
    let begun = std::time::Instant::now();
    let outcome = simulation.run();
    let took = begun.elapsed().as_secs_f64();
    let bytes: u64 = outcome.transfers.iter().map(|transfer| transfer.bytes).sum();
    let hops: u64 = outcome.counters.ports.iter().map(|port| port.sent_frames).sum();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    println!(
        "{hosts} hosts: {:.1} Mb/s a flow, {} segments in {took:.2} s: {:.0} k segments/s, {:.2} M hops/s; {peak}",
        8e-3 * bytes as f64 / milliseconds as f64 / hosts as f64,
        outcome.segments,
        outcome.segments as f64 / took / 1e3,
        hops as f64 / took / 1e6
    );
}
#[allow(dead_code, reason = "names the types that the text is read as")]
type Parts = (FlowSpec, HostSpec, LinkSpec);
