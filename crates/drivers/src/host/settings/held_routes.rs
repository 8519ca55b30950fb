//! The path MTUs of the routes through an interface as one value: `1500` for all of them, `1500 10.0.0.0/24=0` for all but
//! one, which leaves it to the interface. `!` behind an MTU locks it. A route is named as [`RouteKey`] shows it.

use crate::{OsError, Result};
use framegauge_linux::route_mtus;
pub use framegauge_linux::route_mtus::{HeldMtu, HeldRoute, read};
use std::collections::BTreeMap;
use std::fmt;

/// The smallest that a route may be held at: what every host takes in (RFC 791), and for IPv6 every link (RFC 8200).
const LEAST: [(u8, u32); 2] = [(4, 576), (6, 1280)];
const MOST: u32 = 65_535;
/// A host with more exceptions than fit is left alone.
const LONGEST_VALUE: usize = 60_000;
const INVALID: i32 = 22; // EINVAL

/// What each route is to ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldRoutes {
    /// Of those that are not named.
    pub others: HeldMtu,
    /// By name.
    pub named: BTreeMap<String, HeldMtu>,
}

impl HeldRoutes {
    /// Reads a value; what is wrong with it otherwise.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        let mut words = text.split_ascii_whitespace();
        let others = held(words.next().unwrap_or_default())?;
        let mut named = BTreeMap::new();
        for word in words {
            let (name, value) = word
                .split_once('=')
                .ok_or(format!("found {word:?}, expected ROUTE=MTU, such as 10.0.0.0/24=0"))?;
            let plain = |byte: u8| byte.is_ascii_hexdigit() || b".:/@#".contains(&byte);
            if name.is_empty()
                || !name.bytes().all(plain)
                || named.insert(name.into(), held(value)?).is_some()
            {
                return Err(format!("found the route {name:?}, expected each once, such as 10.0.0.0/24"));
            }
        }
        Ok(Self { others, named })
    }

    /// Whether routes of an IP version may be held so, or what is wrong with it.
    pub fn allows(text: &str, version: u8) -> std::result::Result<(), String> {
        let routes = Self::parse(text)?;
        let least = LEAST.iter().find(|row| row.0 == version).map_or(MOST, |row| row.1);
        let fits = |held: &HeldMtu| held.mtu == 0 && !held.locked || (least..=MOST).contains(&held.mtu);
        if text.len() <= LONGEST_VALUE
            && std::iter::once(&routes.others).chain(routes.named.values()).all(fits)
        {
            return Ok(());
        }
        Err(format!("found the route MTUs {text:?}, expected 0, or {least} to {MOST} bytes"))
    }

    /// What a route is to ask for, by its name.
    pub fn of_route(&self, name: &str) -> HeldMtu {
        self.named.get(name).copied().unwrap_or(self.others)
    }

    /// What the routes of an interface ask for now: most of them, and those that differ.
    pub fn read(interface: &str, version: u8) -> Result<Self> {
        Ok(Self::of(&read(interface, version)?))
    }

    fn of(routes: &[HeldRoute]) -> Self {
        let mut counts: BTreeMap<HeldMtu, usize> = BTreeMap::new();
        for route in routes {
            *counts.entry(route.held).or_default() += 1;
        }
        let most = counts.values().max().copied().unwrap_or(0);
        let others = counts.iter().find(|row| *row.1 == most).map_or_else(HeldMtu::default, |row| *row.0);
        let differ = routes.iter().filter(|route| route.held != others);
        Self { others, named: differ.map(|route| (route.key.to_string(), route.held)).collect() }
    }

    /// Gives each route what is asked for it, and sees to it that it has it.
    pub fn write(&self, interface: &str, version: u8) -> Result<()> {
        let expected = |name: String| self.of_route(&name);
        route_mtus::set(interface, version, |key| expected(key.to_string()))?;
        for route in read(interface, version)? {
            if route.held != expected(route.key.to_string()) {
                return Err(OsError::errno(
                    format!("hold the route to {}, which has {}", route.key, shown(route.held)),
                    INVALID,
                ));
            }
        }
        Ok(())
    }
}

impl fmt::Display for HeldRoutes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", shown(self.others))?;
        self.named.iter().try_for_each(|(name, held)| write!(out, " {name}={}", shown(*held)))
    }
}

fn shown(held: HeldMtu) -> String {
    format!("{}{}", held.mtu, if held.locked { "!" } else { "" })
}

fn held(word: &str) -> std::result::Result<HeldMtu, String> {
    let (number, locked) = word.strip_suffix('!').map_or((word, false), |number| (number, true));
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match number.parse() {
        Ok(mtu) if digits => Ok(HeldMtu { mtu, locked }),
        _ => Err(format!("found the route MTU {word:?}, expected bytes, such as 1500, or 0 for none")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use framegauge_linux::route_mtus::RouteKey;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_reads_back() {
        for text in ["0", "1500", "1500!", "1500 10.0.0.0/24=0 fd00::/64@100#256=1400!"] {
            assert_eq!(HeldRoutes::parse(text).expect("a value").to_string(), text);
        }
        for text in [
            "",
            "x",
            "!",
            "+1500",
            "1500 10.0.0.0/24",
            "1500 =0",
            "1500 a=0 a=0",
            "1500 lo;=0",
            "99999999999",
        ] {
            assert!(HeldRoutes::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_no_host_could_use_is_refused() {
        for (version, text, good) in [
            (4, "576", true),
            (4, "575", false),
            (4, "0 0.0.0.0/0=65536", false),
            (4, "0!", false),
            (6, "1280!", true),
            (6, "1279", false),
        ] {
            assert_eq!(HeldRoutes::allows(text, version).is_ok(), good, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_most_routes_have_needs_no_names(mtus in proptest::collection::vec(0u32..3, 1..20)) {
            let route = |(place, mtu): (usize, &u32)| HeldRoute {
                key: RouteKey {
                    destination: [10, 0, place as u8, 0].into(), prefix_length: 24, table: 254, priority: 0,
                },
                connected: true,
                held: HeldMtu { mtu: *mtu, locked: false },
            };
            let routes: Vec<HeldRoute> = mtus.iter().enumerate().map(route).collect();
            let held_routes = HeldRoutes::of(&routes);
            prop_assert_eq!(HeldRoutes::parse(&held_routes.to_string()), Ok(held_routes.clone()));
            prop_assert!(held_routes.named.len() <= routes.len() - routes.len().div_ceil(3));
            for row in &routes {
                let held = held_routes.named.get(&row.key.to_string()).copied().unwrap_or(held_routes.others);
                prop_assert_eq!(held, row.held);
            }
        }
    }
}
