//! What differs from the value that a setting had, and the commands that mend it.

use super::around::{Difference, quoted};
use super::held_routes::HeldRoutes;
use super::{DEFAULT, Setting, place_of_mtu};
use framegauge_linux::aggregates::Direction;
use framegauge_linux::rtnetlink::link;
use framegauge_linux::whole::{relations, routes};
use std::collections::BTreeMap;

impl Setting {
    /// What is not as it was: its value now, against the one that it had.
    pub fn differences(&self, expected: &str) -> Vec<Difference> {
        let subject = match self {
            Self::Mtu(interface) => format!("the MTU of {interface}"),
            _ => self.to_string(),
        };
        match (self, self.read()) {
            (_, Ok(now)) if now == expected => Vec::new(),
            // Such as an interface that is gone, which no command brings back.
            (_, Err(error)) => vec![Difference::new(subject, error, expected, Vec::new())],
            (Self::Routes(version, interface), Ok(_)) => of_routes(interface, *version, expected),
            (_, Ok(now)) => vec![Difference::new(subject, now, expected, self.commands(expected))],
        }
    }

    /// As an administrator would type it.
    fn commands(&self, value: &str) -> Vec<String> {
        let command = match self {
            Self::Mtu(interface) => format!("ip link set dev {} mtu {value}", quoted(interface)),
            Self::Ipv6Mtu(interface) => {
                format!("sysctl -w {}", quoted(&format!("net/ipv6/{}={value}", place_of_mtu(interface))))
            }
            Self::Offload(..) | Self::HardwareGro(_) => {
                let text = self.to_string();
                let (feature, interface) = text.split_once(':').unwrap_or_default();
                format!("ethtool -K {} {feature} {value}", quoted(interface))
            }
            Self::Aggregates(direction, interface) => {
                let kind = if *direction == Direction::Sent { "gso" } else { "gro" };
                let mut sizes = value.split(' ');
                let ipv6 = sizes.next().unwrap_or_default();
                let ipv4 =
                    sizes.next().map_or(String::new(), |bytes| format!(" {kind}_ipv4_max_size {bytes}"));
                format!("ip link set dev {} {kind}_max_size {ipv6}{ipv4}", quoted(interface))
            }
            Self::Qdisc(interface) if value == DEFAULT => {
                format!("tc qdisc delete dev {} root", quoted(interface))
            }
            Self::Qdisc(interface) => format!("tc qdisc replace dev {} root {value}", quoted(interface)),
            Self::Sysctl(name) => format!("sysctl -w {}", quoted(&format!("{name}={value}"))),
            Self::Routes(..) => return Vec::new(),
        };
        vec![command]
    }
}

/// The routes that do not ask for what they asked for.
fn of_routes(interface: &str, version: u8, expected: &str) -> Vec<Difference> {
    let (Ok(expected_routes), Ok(link)) = (HeldRoutes::parse(expected), link(interface)) else {
        return Vec::new();
    };
    let names: BTreeMap<u32, String> = relations::read()
        .unwrap_or_default()
        .into_iter()
        .map(|relation| (relation.index, relation.name))
        .collect();
    let mut differences = Vec::new();
    for route in routes::read(link.index as u32, version).unwrap_or_default() {
        let Some((key, held)) = route.held() else { continue };
        let before = expected_routes.of_route(&key.to_string());
        if held != before && !key.is_link_local() {
            let (now, before) = (route.words(&names), route.holding(before).words(&names));
            let commands = vec![
                format!("ip -{version} route delete {now}"),
                format!("ip -{version} route append {before}"),
            ];
            differences.push(Difference::new(format!("{interface}: a route"), now, before, commands));
        }
    }
    differences
}
