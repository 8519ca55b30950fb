//! Whether this machine can carry what is asked of a rack's links at all.

use crate::pipe::message::Failure;
use framegauge_drivers::model::{Owner, PortConfig, PortIndex};
use framegauge_drivers::network::Network;
use framegauge_drivers::rack::requirements::Requirement;
use serde_json::json;

/// By how much a rate may be above what was measured: a machine that was busy just then is no reason to refuse.
const SLACK: u64 = 2;

/// Whether a rate is above all that this machine hands over; what it could not measure is no reason to refuse.
pub fn is_beyond(bits_per_second: u64, most: Option<u64>) -> bool {
    most.is_some_and(|most| bits_per_second > most.saturating_mul(SLACK))
}

/// What is missing for links of this rate, if this machine cannot carry it.
pub fn lacking(bits_per_second: u64, most: Option<u64>) -> Option<Requirement> {
    let most = most.filter(|_| is_beyond(bits_per_second, most))?;
    Some(Requirement {
        name: "speed",
        needed_for: "links as fast as asked",
        found: format!(
            "at most about {} that this machine hands over, with the largest aggregates, for a link of {}",
            shown(most),
            shown(bits_per_second)
        ),
        remedy: "ask for less",
    })
}

/// Refuses a network of which some host would send or get more than this machine can carry.
pub fn check(network: &Network, most: Option<u64>) -> Result<(), Failure> {
    match fastest(network) {
        Some((port, rate)) if is_beyond(rate, most) => {
            let what = format!("rate of {}", network.config.port_name(port));
            let limit = format!("about {}, with the largest aggregates", shown(most.unwrap_or_default()));
            let message =
                format!("a link of {}: this machine hands over at most {limit}; ask for less", shown(rate));
            Err(Failure {
                code: -32003,
                message,
                data: json!({"what": what, "asked": shown(rate), "limit": limit}),
            })
        }
        _ => Ok(()),
    }
}

/// The port at which a host can send or get most, and how much that is: never more than all hosts together send, so that
/// a link may be as fast as one likes where nothing can fill it.
fn fastest(network: &Network) -> Option<(PortIndex, u64)> {
    let Network { config, ends } = network;
    let is_host =
        |node: u16| usize::from(node) < ends.len() && matches!(ends.owner(node.into()), Owner::Host(_));
    let sends = |port: &PortConfig| port.rate.bits_per_second();
    let from_hosts = config.ports.iter().filter(|port| is_host(port.from.0));
    let together = from_hosts.fold(0, |sum: u64, port| sum.saturating_add(sends(port)));
    let of = |port: &PortConfig| match is_host(port.from.0) {
        true => Some(sends(port)),
        false => is_host(port.to.0).then(|| sends(port).min(together)),
    };
    let rates = config.ports.iter().enumerate();
    let found = rates.filter_map(|(index, port)| Some((PortIndex(index as u16), of(port)?)));
    // The first of the fastest.
    found.fold(None, |best, (port, rate)| match best {
        Some((_, most)) if most >= rate => best,
        _ => Some((port, rate)),
    })
}

/// A rate for people: three digits of its largest unit.
fn shown(bits_per_second: u64) -> String {
    let units = [(1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s")];
    let rate = bits_per_second as f64;
    let (scale, unit) = units.into_iter().find(|(scale, _)| rate >= *scale).unwrap_or((1.0, "b/s"));
    let value = rate / scale;
    let digits = if value >= 99.95 { 0 } else { usize::from(value < 9.995) + 1 };
    let text = format!("{value:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rack::params::Up;
    use serde_json::Value;

    const GIGABIT: u64 = 1_000_000_000;

    /// A dumbbell of so many hosts.
    fn network(hosts: usize, rate: u64, links: Value) -> Network {
        let hosts: Vec<Value> =
            (1..=hosts).map(|number| json!({"name": format!("h{number}"), "mtu": 1500})).collect();
        let asked: Up = serde_json::from_value(json!({
            "testbed": "fabric", "hosts": hosts, "topology": {"kind": "dumbbell", "left": hosts.len() / 2}, "links": links,
            "link": {"bits_per_second": rate, "rtt_seconds": 0.0002, "buffer_bytes": 1 << 20, "port_mtu": 9216},
            "nic": {"tso": false, "lro": false, "gro": false, "checksum": false, "moderation_seconds": 0.0,
                    "aggregate_bytes": 36864},
            "shaper": null, "congestion_control": "cubic", "family": 4, "sysctls": {},
        }))
        .unwrap();
        asked.network().unwrap().1
    }

    fn link(from: &str, to: &str, rate: u64) -> Value {
        json!([{"from": from, "to": to, "bits_per_second": rate}])
    }

    #[test]
    fn a_rate_is_beyond_from_twice_what_was_measured() {
        assert!(!is_beyond(120 * GIGABIT, Some(60 * GIGABIT)));
        assert!(is_beyond(120 * GIGABIT + 1, Some(60 * GIGABIT)));
        assert!(!is_beyond(u64::MAX, None));
        assert!(!is_beyond(u64::MAX, Some(u64::MAX)));
    }

    #[test]
    fn what_is_missing_says_both_rates_and_what_to_do() {
        assert!(lacking(100 * GIGABIT, Some(60 * GIGABIT)).is_none());
        let found = lacking(400 * GIGABIT, Some(59_600_000_000)).unwrap();
        let whole = format!("{} ({}): {}; {}", found.name, found.needed_for, found.found, found.remedy);
        assert_eq!(
            whole,
            "speed (links as fast as asked): at most about 59.6 Gb/s that this machine hands over, with the largest \
             aggregates, for a link of 400 Gb/s; ask for less"
        );
    }

    #[test]
    fn rates_are_shown_in_three_digits() {
        let cases = [
            (999, "999 b/s"),
            (1_000_000_000, "1 Gb/s"),
            (9_994_000_000, "9.99 Gb/s"),
            (9_996_000_000, "10 Gb/s"),
            (59_640_000_000, "59.6 Gb/s"),
            (99_960_000_000, "100 Gb/s"),
            (400_000_000_000, "400 Gb/s"),
            (1_500_000_000_000, "1.5 Tb/s"),
        ];
        for (rate, text) in cases {
            assert_eq!(shown(rate), text);
        }
    }

    #[test]
    fn all_links_alike_are_as_fast_as_they_say() {
        let four = network(4, 10 * GIGABIT, json!([]));
        assert_eq!(fastest(&four).unwrap().1, 10 * GIGABIT);
        assert!(check(&four, Some(5 * GIGABIT)).is_ok());
        let failure = check(&four, Some(4 * GIGABIT)).unwrap_err();
        assert_eq!(failure.code, -32003);
        assert_eq!(
            failure.message,
            "a link of 10 Gb/s: this machine hands over at most about 4 Gb/s, with the largest aggregates; ask for less"
        );
    }

    #[test]
    fn a_link_that_nothing_can_fill_may_be_as_fast_as_one_likes() {
        // Between switches nothing is handed over to a host.
        let between = network(4, GIGABIT, link("left", "right", 900 * GIGABIT));
        assert_eq!(fastest(&between).unwrap().1, GIGABIT);
        // Four hosts of 1 Gb/s each send 4 Gb/s together.
        let down = network(4, GIGABIT, link("right", "h4", 900 * GIGABIT));
        let (port, rate) = fastest(&down).unwrap();
        assert_eq!((down.config.port_name(port).as_str(), rate), ("right>h4", 4 * GIGABIT));
        // A host's own link is filled by whatever the host sends.
        let up = network(4, GIGABIT, link("h1", "left", 900 * GIGABIT));
        let (port, rate) = fastest(&up).unwrap();
        assert_eq!((up.config.port_name(port).as_str(), rate), ("h1>left", 900 * GIGABIT));
    }
}
