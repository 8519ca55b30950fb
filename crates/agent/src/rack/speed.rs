//! How the agent refuses links that are faster than this machine.

use crate::pipe::message::Failure;
use framegauge_drivers::rack::requirements::Requirement;
use framegauge_networks::{Network, is_beyond, shown, too_fast};
use serde_json::json;

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
    let Some(link) = too_fast(network, most) else { return Ok(()) };
    let (rate, most) = (shown(link.bits_per_second), shown(link.most_bits_per_second));
    let limit = format!("about {most}, with the largest aggregates");
    let message = format!("a link of {rate}: this machine hands over at most {limit}; ask for less");
    let subject = format!("rate of {}", link.port);
    Err(Failure { code: -32003, message, data: json!({"what": subject, "asked": rate, "limit": limit}) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rack::params::Up;

    const GIGABIT: u64 = 1_000_000_000;

    #[test]
    fn what_is_missing_says_both_rates_and_what_to_do() {
        assert!(lacking(100 * GIGABIT, Some(60 * GIGABIT)).is_none());
        let requirement = lacking(400 * GIGABIT, Some(59_600_000_000)).unwrap();
        let whole = format!(
            "{} ({}): {}; {}",
            requirement.name, requirement.needed_for, requirement.found, requirement.remedy
        );
        assert_eq!(
            whole,
            "speed (links as fast as asked): at most about 59.6 Gb/s that this machine hands over, with the largest \
             aggregates, for a link of 400 Gb/s; ask for less"
        );
    }

    #[test]
    fn a_link_that_is_too_fast_is_refused_with_both_rates() {
        let spec: Up = serde_json::from_value(json!({
            "testbed": "fabric", "hosts": [{"name": "h1", "mtu": 1500}, {"name": "h2", "mtu": 1500}],
            "link": {"bits_per_second": 10 * GIGABIT, "rtt_seconds": 0.0002, "buffer_bytes": 1 << 20, "port_mtu": 9216},
            "nic": {"tso": false, "lro": false, "gro": false, "checksum": false, "moderation_seconds": 0.0,
                    "aggregate_bytes": 36864},
            "shaper": null, "congestion_control": "cubic", "family": 4, "sysctls": {},
        }))
        .unwrap();
        let network = spec.network().unwrap().1;
        assert!(check(&network, Some(5 * GIGABIT)).is_ok());
        let failure = check(&network, Some(4 * GIGABIT)).unwrap_err();
        assert_eq!(failure.code, -32003);
        assert_eq!(
            failure.message,
            "a link of 10 Gb/s: this machine hands over at most about 4 Gb/s, with the largest aggregates; ask for less"
        );
        assert_eq!(failure.data["what"], "rate of h1>switch");
    }
}
