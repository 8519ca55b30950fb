//! What a machine can carry, held against what is asked of a network.

use crate::Network;
use framegauge_fabric::{Owner, PortConfig, PortIndex};

/// By how much a rate may be above what was measured: a machine that was busy just then is no reason to refuse.
const SLACK: u64 = 2;

/// Whether a rate is above all that a machine carries; what could not be measured is no reason to refuse.
pub fn is_beyond(bits_per_second: u64, most: Option<u64>) -> bool {
    most.is_some_and(|most| bits_per_second > most.saturating_mul(SLACK))
}

/// A port at which some host would send or get more than a machine can carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooFast {
    /// Its name.
    pub port: String,
    /// What the host would send or get, in bits per second.
    pub bits_per_second: u64,
    /// What the machine carries, in bits per second.
    pub most_bits_per_second: u64,
}

/// Where a network is faster than a machine that carries `most` bits per second; `None` where it is not, or that is not
/// known.
pub fn too_fast(network: &Network, most: Option<u64>) -> Option<TooFast> {
    let (port, rate) = fastest(network)?;
    let most = most.filter(|_| is_beyond(rate, most))?;
    let port = network.config.port_name(port);
    Some(TooFast { port, bits_per_second: rate, most_bits_per_second: most })
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
    let speeds = rates.filter_map(|(index, port)| Some((PortIndex(index as u16), of(port)?)));
    // The first of the fastest.
    speeds.fold(None, |best, (port, rate)| match best {
        Some((_, most)) if most >= rate => best,
        _ => Some((port, rate)),
    })
}

/// A rate for people: three digits of its largest unit.
pub fn shown(bits_per_second: u64) -> String {
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
    use crate::{LinkOverride, NetworkSpec, QueueSpec, RoutingSpec, TopologySpec};

    const GIGABIT: u64 = 1_000_000_000;

    /// A dumbbell of four hosts.
    fn network(rate: u64, links: Vec<LinkOverride>) -> Network {
        let names: Vec<String> = (1..=4).map(|host| format!("h{host}")).collect();
        let spec = NetworkSpec {
            topology: TopologySpec::Dumbbell { left: 2 },
            routing: RoutingSpec::default(),
            bits_per_second: rate,
            rtt_seconds: 0.0002,
            buffer_bytes: 1 << 20,
            port_mtu: 9216,
            queue: QueueSpec::default(),
            links,
            shared_buffer: None,
            background: Vec::new(),
            host_mtu: 1500,
            moderation_seconds: 0.0,
            seed: 1,
        };
        spec.network(&names).unwrap()
    }

    fn link(from: &str, to: &str, rate: u64) -> Vec<LinkOverride> {
        let (from, to) = (from.to_owned(), to.to_owned());
        vec![LinkOverride { from, to, bits_per_second: Some(rate), ..LinkOverride::default() }]
    }

    #[test]
    fn a_rate_is_beyond_from_twice_what_was_measured() {
        assert!(!is_beyond(120 * GIGABIT, Some(60 * GIGABIT)));
        assert!(is_beyond(120 * GIGABIT + 1, Some(60 * GIGABIT)));
        assert!(!is_beyond(u64::MAX, None));
        assert!(!is_beyond(u64::MAX, Some(u64::MAX)));
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
        let four = network(10 * GIGABIT, Vec::new());
        assert_eq!(fastest(&four).unwrap().1, 10 * GIGABIT);
        assert_eq!(too_fast(&four, None), None);
        assert_eq!(too_fast(&four, Some(5 * GIGABIT)), None);
        let speed = too_fast(&four, Some(4 * GIGABIT)).unwrap();
        assert_eq!((speed.bits_per_second, speed.most_bits_per_second), (10 * GIGABIT, 4 * GIGABIT));
    }

    #[test]
    fn a_link_that_nothing_can_fill_may_be_as_fast_as_one_likes() {
        // Between switches nothing is handed over to a host.
        let between = network(GIGABIT, link("left", "right", 900 * GIGABIT));
        assert_eq!(fastest(&between).unwrap().1, GIGABIT);
        // Four hosts of 1 Gb/s each send 4 Gb/s together.
        let down = network(GIGABIT, link("right", "h4", 900 * GIGABIT));
        let (port, rate) = fastest(&down).unwrap();
        assert_eq!((down.config.port_name(port).as_str(), rate), ("right>h4", 4 * GIGABIT));
        // A host's own link is filled by whatever the host sends.
        let up = network(GIGABIT, link("h1", "left", 900 * GIGABIT));
        let (port, rate) = fastest(&up).unwrap();
        assert_eq!((up.config.port_name(port).as_str(), rate), ("h1>left", 900 * GIGABIT));
    }
}
