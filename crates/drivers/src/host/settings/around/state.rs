//! What an interface has that a change of another setting may take along; how it is put back, and what differs then.

use super::difference::{Difference, quoted};
use super::reach::Of;
use crate::host::allowed::LEAST_IPV6_MTU;
use framegauge_linux::Result;
use framegauge_linux::aggregates::{self as sizes, AggregateSizes, Direction};
use framegauge_linux::features::{self, Switched};
use framegauge_linux::rtnetlink::{LinkChange, change_link};
use framegauge_linux::whole::addresses::{self, WholeAddress};
use framegauge_linux::whole::neighbours::{self, Neighbour};
use framegauge_linux::whole::relations::Related;
use framegauge_linux::whole::routes::{self, WholeRoute};
use framegauge_linux::whole::settings::{self, Settings};
use std::collections::BTreeMap;

const VERSIONS: [u8; 2] = [4, 6];
/// Kinds that have ports.
const MASTERS: [&str; 5] = ["bridge", "bond", "team", "openvswitch", "vrf"];
/// A route may need another one, or an address, first.
const PASSES: usize = 2;

/// The names of interfaces by their indices.
pub type Names = BTreeMap<u32, String>;

/// An interface as it is at one time.
#[derive(Debug, Clone)]
pub struct State {
    /// Its index, by which it is known again: it may be renamed.
    pub index: u32,
    mtu: u32,
    features: BTreeMap<String, Switched>,
    sizes: AggregateSizes,
    /// The MTU that IPv6 has for it, or with `whole` all that IPv6 has of settings; none without IPv6.
    settings: Settings,
    /// Those that ask for an MTU, or with `whole` all of IPv6.
    routes: BTreeMap<u8, Vec<WholeRoute>>,
    addresses: Vec<WholeAddress>,
    neighbours: Vec<Neighbour>,
    of: Of,
    /// What its ports have decides what is in force of its offloads: others may change those.
    has_ports: bool,
    /// IPv6 may have been taken from it: all of it is compared, whatever its MTU is by now, since whoever began to put it
    /// back may have been killed.
    whole: bool,
}

impl State {
    /// Reads it. `whole`: IPv6 may be taken from it.
    pub fn read(link: &Related, of: Of, whole: bool) -> Result<Self> {
        let is_kept = |place: &String| whole || place.ends_with("/mtu");
        let settings = settings::read(&link.name).into_iter().filter(|(place, _)| is_kept(place)).collect();
        let mut routes = BTreeMap::new();
        for version in VERSIONS {
            let mut all = if of == Of::Mtu { routes::read(link.index, version)? } else { Vec::new() };
            all.retain(|route| whole && version == 6 || route.mtu() > 0);
            routes.insert(version, all);
        }
        Ok(Self {
            index: link.index,
            mtu: link.mtu,
            // Not every kind of interface has them.
            features: features::read_all(&link.name).unwrap_or_default(),
            sizes: sizes::read(&link.name)?,
            settings,
            routes,
            addresses: if whole { addresses::read(link.index)? } else { Vec::new() },
            neighbours: if whole { neighbours::read(link.index)? } else { Vec::new() },
            of,
            has_ports: link.kind.as_deref().is_some_and(|kind| MASTERS.contains(&kind)),
            whole: whole && link.mtu >= LEAST_IPV6_MTU,
        })
    }

    /// Whether its MTU has to be put back.
    pub fn differs_in_mtu(&self, now: &Related) -> bool {
        self.of == Of::Mtu && now.mtu != self.mtu
    }

    /// Puts its MTU back.
    pub fn put_mtu_back(&self, name: &str) -> Result<()> {
        change_link(name, LinkChange { mtu: Some(self.mtu), ..LinkChange::default() })
    }

    /// Puts back all but its MTU. What cannot be is told by [`State::differences`].
    pub fn put_back(&self, name: &str) {
        for (direction, bytes) in self.other_sizes(name) {
            let _ = sizes::set(name, direction, bytes.0, bytes.1);
        }
        for feature in self.other_features(name) {
            let _ = features::set(name, feature, self.features[feature].asked);
        }
        if self.of == Of::Features {
            return;
        }
        if self.whole {
            self.put_ipv6_back(name);
        }
        for (place, value) in self.other_settings(name) {
            let _ = settings::write(place, value);
        }
        // What cannot be read is written anyway.
        for route in self.routes.values().flatten().filter(|route| route.mtu() > 0 && route.hides_mtus()) {
            if routes::read(self.index, 6).unwrap_or_default().iter().any(|now| now.is_same(route)) {
                let _ = routes::put_back(route, Some(route));
            }
        }
        for _ in 0..PASSES {
            for (version, before) in &self.routes {
                let now = routes::read(self.index, *version).unwrap_or_default();
                for (route, other) in other_routes(before, &now, self.whole && *version == 6) {
                    let _ = routes::put_back(route, other);
                }
            }
        }
    }

    /// Settings before addresses, which depend on them; what the kernel has made anew by itself goes.
    fn put_ipv6_back(&self, name: &str) {
        for (place, value) in self.other_settings(name) {
            let _ = settings::write(place, value);
        }
        let now = addresses::read(self.index).unwrap_or_default();
        for extra in now.iter().filter(|entry| !self.addresses.iter().any(|old| old.address == entry.address))
        {
            if extra.address.is_unicast_link_local() {
                let _ = addresses::remove(self.index, extra);
            }
        }
        // The kernel lists the newest first.
        for address in missing(&self.addresses, &now, WholeAddress::is_same).into_iter().rev() {
            let _ = addresses::put_back(self.index, address);
        }
        let now = routes::read(self.index, 6).unwrap_or_default();
        let before = &self.routes[&6];
        for extra in now
            .iter()
            .filter(|entry| entry.is_of_kernel() && !before.iter().any(|old| old.is_same_way(entry)))
        {
            let _ = routes::remove(extra);
        }
        for neighbour in
            missing(&self.neighbours, &neighbours::read(self.index).unwrap_or_default(), PartialEq::eq)
        {
            let _ = neighbours::put_back(self.index, neighbour);
        }
    }

    /// What is not as it was.
    pub fn differences(&self, now: &Related, names: &Names) -> Vec<Difference> {
        let (name, word) = (now.name.as_str(), quoted(&now.name));
        let mut lines = self.differences_of_device(name, &word);
        if self.of == Of::Features {
            return lines;
        }
        if now.mtu != self.mtu {
            let command = format!("ip link set dev {word} mtu {}", self.mtu);
            lines.insert(0, Difference::new(format!("the MTU of {name}"), now.mtu, self.mtu, vec![command]));
        }
        let settings = settings::read(name);
        for (place, value) in self.other_settings(name) {
            let current = settings.get(place).map_or("none", String::as_str);
            let command = format!("sysctl -w {}", quoted(&format!("net/ipv6/{place}={value}")));
            lines.push(Difference::new(format!("net/ipv6/{place}"), current, value, vec![command]));
        }
        if self.whole {
            let now = addresses::read(self.index).unwrap_or_default();
            for address in missing(&self.addresses, &now, WholeAddress::is_same) {
                let command = format!("ip -6 address replace {address} dev {word}");
                lines.push(Difference::new(format!("{name}: an address"), "none", address, vec![command]));
            }
            for neighbour in
                missing(&self.neighbours, &neighbours::read(self.index).unwrap_or_default(), PartialEq::eq)
            {
                let command = format!("ip -6 neighbour replace {neighbour} dev {word}");
                lines.push(Difference::new(format!("{name}: a neighbour"), "none", neighbour, vec![command]));
            }
        }
        for (version, before) in &self.routes {
            let now = routes::read(self.index, *version).unwrap_or_default();
            for (route, other) in other_routes(before, &now, self.whole && *version == 6) {
                lines.push(difference_of_route(name, *version, route, other, names));
            }
        }
        lines
    }

    /// Those of offloads and sizes. The kernel decides what follows what is asked for; where that is as it was, no command
    /// changes it.
    fn differences_of_device(&self, name: &str, word: &str) -> Vec<Difference> {
        let mut lines = Vec::new();
        let on = |on: bool| if on { "on" } else { "off" };
        let now = features::read_all(name).unwrap_or_default();
        for (feature, before) in &self.features {
            let Some(after) = now.get(feature) else { continue };
            let follows = after.now.on != before.now.on && !self.has_ports;
            if follows || self.is_other(before, after) {
                let command = format!("ethtool -K {word} {feature} {}", on(before.asked));
                let commands = if self.is_other(before, after) { vec![command] } else { Vec::new() };
                let (current, expected) = (on(after.now.on), on(before.now.on));
                lines.push(Difference::new(format!("{feature} of {name}"), current, expected, commands));
            }
        }
        for (direction, (ipv6, ipv4)) in self.other_sizes(name) {
            let kind = if direction == Direction::Sent { "gso" } else { "gro" };
            let mut command = format!("ip link set dev {word} {kind}_max_size {ipv6}");
            if let Some(ipv4) = ipv4 {
                command += &format!(" {kind}_ipv4_max_size {ipv4}");
            }
            let current = sizes::read(name).map_or("?".into(), |now| shown(now.of(direction)));
            let subject = format!("{kind}_max_size of {name}");
            lines.push(Difference::new(subject, current, shown((Some(ipv6), ipv4)), vec![command]));
        }
        lines
    }

    fn is_other(&self, before: &Switched, after: &Switched) -> bool {
        after.now.changeable && after.asked != before.asked
    }

    fn other_features(&self, name: &str) -> Vec<&str> {
        let now = features::read_all(name).unwrap_or_default();
        let is_other = |(feature, before): &(&String, &Switched)| {
            now.get(*feature).is_some_and(|after| self.is_other(before, after))
        };
        self.features.iter().filter(is_other).map(|(feature, _)| feature.as_str()).collect()
    }

    fn other_sizes(&self, name: &str) -> Vec<(Direction, (u32, Option<u32>))> {
        let Ok(now) = sizes::read(name) else { return Vec::new() };
        if self.has_ports && self.of == Of::Mtu {
            return Vec::new();
        }
        let both = [Direction::Sent, Direction::Received].into_iter();
        let other = both.filter(|direction| now.of(*direction) != self.sizes.of(*direction));
        other
            .filter_map(|direction| {
                Some((direction, (self.sizes.of(direction).0?, self.sizes.of(direction).1)))
            })
            .collect()
    }

    /// The settings of IPv6 that are not as they were: its MTU, and after a loss all of them.
    fn other_settings(&self, name: &str) -> Vec<(&String, &String)> {
        let now = settings::read(name);
        let candidates = self.settings.iter().filter(|(place, _)| self.whole || place.ends_with("/mtu"));
        candidates.filter(|(place, value)| now.get(*place).is_some_and(|after| after != *value)).collect()
    }
}

fn shown((ipv6, ipv4): (Option<u32>, Option<u32>)) -> String {
    [ipv6, ipv4].into_iter().flatten().map(|bytes| bytes.to_string()).collect::<Vec<_>>().join(" ")
}

fn missing<'a, T>(before: &'a [T], now: &[T], same: impl Fn(&T, &T) -> bool) -> Vec<&'a T> {
    before.iter().filter(|old| !now.iter().any(|new| same(old, new))).collect()
}

/// The routes whose MTU is another now, with what they have become, and with `lost` those that are gone.
fn other_routes<'a>(
    before: &'a [WholeRoute],
    now: &'a [WholeRoute],
    lost: bool,
) -> Vec<(&'a WholeRoute, Option<&'a WholeRoute>)> {
    let other = |route: &'a WholeRoute| match now.iter().find(|candidate| candidate.is_same_way(route)) {
        None => lost.then_some((route, None)),
        // What else a route says the kernel leaves alone: somebody has changed it.
        Some(after) => {
            (after.mtu() != route.mtu() || lost && !after.is_same(route)).then_some((route, Some(after)))
        }
    };
    before.iter().filter_map(other).collect()
}

fn difference_of_route(
    name: &str,
    version: u8,
    route: &WholeRoute,
    now: Option<&WholeRoute>,
    names: &Names,
) -> Difference {
    let words = |route: &WholeRoute| route.words(names).split(' ').map(quoted).collect::<Vec<_>>().join(" ");
    let mut commands = Vec::new();
    // Of two routes alike, "replace" would take the other interface's.
    commands.extend(now.map(|now| format!("ip -{version} route delete {}", words(now))));
    commands.push(format!("ip -{version} route append {}", words(route)));
    let current = now.map_or("none".into(), |now| now.words(names));
    Difference::new(format!("{name}: a route"), current, route.words(names), commands)
}
