//! The path MTU that each route asks for (`ip route … mtu 1500`), in every routing table. Layout: `linux/rtnetlink.h`.
//!
//! One that is `locked` stays whatever becomes of the interface. Of IPv6 that matters: when the MTU of an interface
//! rises, the kernel raises with it every path MTU that was equal to the old one (`rt6_mtu_change_route`). A locked one
//! is also one for which no path MTU discovery is done, so it is for as long as a raise takes, and not for longer.

use crate::error::Result;
use crate::initial_windows::{Metrics, replacement};
use crate::netlink::{DUMP, Message, Socket, address_of, attribute, attribute_u32};
use crate::rtnetlink::link;
use crate::whole::routes::hold_among;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const RTM_GETROUTE: u16 = 26;
const RTA_PRIORITY: u16 = 6;
const RTA_GATEWAY: u16 = 5;
const RTA_MULTIPATH: u16 = 9;
const RTA_TABLE: u16 = 15;
const RTA_VIA: u16 = 18;
const RTAX_LOCK: u16 = 1;
const RTAX_MTU: u16 = 2;
pub(crate) const MTU_LOCKED: u32 = 1 << RTAX_MTU;
/// An entry that the kernel made from what it was told, not one of a routing table.
const RTM_F_CLONED: u32 = 0x200;
/// `struct rtmsg`, in bytes; in it the length of the prefix, the table, the type and the flags.
const ROUTE_BYTES: usize = 12;
const PREFIX_PLACE: usize = 1;
const TABLE_PLACE: usize = 4;
const TYPE_PLACE: usize = 7;
const FLAGS_PLACE: usize = 8;
/// `struct rtnexthop`, in bytes: its length, flags, weight and interface.
const NEXT_HOP_BYTES: usize = 8;

/// What a route asks for: 0 is nothing, so that the interface decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeldMtu {
    /// In bytes.
    pub mtu: u32,
    /// Whether it stays when the MTU of the interface changes.
    pub locked: bool,
}

/// What tells a route from the others of its IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouteKey {
    /// The network that it leads to.
    pub destination: IpAddr,
    /// How many bits of the destination are the network's.
    pub prefix_length: u8,
    /// Its routing table.
    pub table: u32,
    /// Of several to one network the smallest is used.
    pub priority: u32,
}

impl RouteKey {
    /// Whether it leads to link-local addresses, as one of every interface does.
    pub fn is_link_local(&self) -> bool {
        matches!(self.destination, IpAddr::V6(address) if address.is_unicast_link_local())
    }
}

impl fmt::Display for RouteKey {
    /// `10.0.0.0/24`, with `@TABLE` unless that is the main one, and `#PRIORITY` unless that is 0.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.destination, self.prefix_length)?;
        if self.table != u32::from(libc::RT_TABLE_MAIN) {
            write!(out, "@{}", self.table)?;
        }
        if self.priority != 0 {
            write!(out, "#{}", self.priority)?;
        }
        Ok(())
    }
}

/// A route to others through an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldRoute {
    /// Which one.
    pub key: RouteKey,
    /// Whether it leads to a subnet of the interface, and through no gateway.
    pub connected: bool,
    /// What it asks for.
    pub held: HeldMtu,
}

/// A route, and what the kernel told of it.
type Told = (HeldRoute, Vec<u8>);

/// The routes of every table through `interface`, alone or beside others, of IP version 4 or 6. Those to link-local
/// addresses are left out: every interface has one alike.
pub fn read(interface: &str, version: u8) -> Result<Vec<HeldRoute>> {
    Ok(listed(interface, version)?.0.into_iter().map(|(route, _)| route).collect())
}

/// Gives each of them the MTU that `wanted` says; what else a route says, it keeps, and its place among others alike.
pub fn set(interface: &str, version: u8, wanted: impl Fn(&RouteKey) -> HeldMtu) -> Result<()> {
    let socket = Socket::route()?;
    let (routes, alike) = listed(interface, version)?;
    for (route, body) in routes {
        let held = wanted(&route.key);
        if held == route.held {
            continue;
        }
        if alike.contains(&route.key) {
            hold_among(link(interface)?.index as u32, version, &route.key, held)?;
            continue;
        }
        let others = attribute(&body[ROUTE_BYTES..], libc::RTA_METRICS).unwrap_or(&[]);
        let others = attribute_u32(others, RTAX_LOCK).unwrap_or(0) & !MTU_LOCKED;
        let lock = others | if held.locked { MTU_LOCKED } else { 0 };
        let metrics: Metrics = &[(RTAX_LOCK, lock), (RTAX_MTU, held.mtu)];
        let operation = format!("hold the route to {} at an MTU of {}", route.key, held.mtu);
        socket.request(replacement(&body, metrics), &operation)?;
    }
    Ok(())
}

/// The routes through an interface as the kernel tells them, and the keys that several routes have, through whichever.
fn listed(interface: &str, version: u8) -> Result<(Vec<Told>, Vec<RouteKey>)> {
    let index = link(interface)?.index as u32;
    let mut header = [0u8; ROUTE_BYTES];
    header[0] = if version == 4 { libc::AF_INET as u8 } else { libc::AF_INET6 as u8 };
    let answers = Socket::route()?.request(Message::new(RTM_GETROUTE, DUMP, &header), "list the routes")?;
    let mut keys: Vec<RouteKey> = answers.iter().filter_map(|body| key_of(body)).collect();
    keys.sort_unstable();
    let alike = keys.windows(2).filter(|two| two[0] == two[1]).map(|two| two[0]).collect();
    Ok((answers.into_iter().filter_map(|body| Some((parse(&body, index)?, body))).collect(), alike))
}

/// What tells one from others; `None` if it is no route to others, or damaged. Link-local networks are left out.
fn key_of(body: &[u8]) -> Option<RouteKey> {
    key_of_any(body).filter(|key| !key.is_link_local())
}

/// The same, of link-local networks as well.
pub(crate) fn key_of_any(body: &[u8]) -> Option<RouteKey> {
    let flags = u32::from_ne_bytes(body.get(FLAGS_PLACE..ROUTE_BYTES)?.try_into().ok()?);
    let attributes = &body[ROUTE_BYTES..];
    let table = attribute_u32(attributes, RTA_TABLE).unwrap_or(u32::from(body[TABLE_PLACE]));
    if body[TYPE_PLACE] != libc::RTN_UNICAST || table == u32::from(libc::RT_TABLE_LOCAL) {
        return None;
    }
    let unspecified: IpAddr = match i32::from(body[0]) {
        libc::AF_INET => Ipv4Addr::UNSPECIFIED.into(),
        libc::AF_INET6 => Ipv6Addr::UNSPECIFIED.into(),
        _ => return None,
    };
    // The default route has no destination.
    let destination = attribute(attributes, libc::RTA_DST).map_or(Some(unspecified), address_of)?;
    if destination.is_ipv4() != unspecified.is_ipv4() || flags & RTM_F_CLONED != 0 {
        return None;
    }
    Some(RouteKey {
        destination,
        prefix_length: body[PREFIX_PLACE],
        table,
        priority: attribute_u32(attributes, RTA_PRIORITY).unwrap_or(0),
    })
}

/// What the metrics of a route say of its MTU.
pub(crate) fn held_of(metrics: &[u8]) -> HeldMtu {
    let metric = |kind| attribute_u32(metrics, kind).unwrap_or(0);
    HeldMtu { mtu: metric(RTAX_MTU), locked: metric(RTAX_LOCK) & MTU_LOCKED != 0 }
}

/// Whether a route leads through an interface, alone or beside others.
pub(crate) fn is_through(body: &[u8], interface: u32) -> bool {
    let attributes = &body[ROUTE_BYTES..];
    attribute_u32(attributes, libc::RTA_OIF) == Some(interface)
        || attribute(attributes, RTA_MULTIPATH)
            .is_some_and(|hops| next_hops(hops).any(|hop| hop == interface))
}

/// Reads one answer; `None` if it is no route to others through this interface, or damaged.
pub fn parse(body: &[u8], interface: u32) -> Option<HeldRoute> {
    let key = key_of(body)?;
    let attributes = &body[ROUTE_BYTES..];
    if !is_through(body, interface) {
        return None;
    }
    let several = attribute(attributes, RTA_MULTIPATH);
    let held = held_of(attribute(attributes, libc::RTA_METRICS).unwrap_or(&[]));
    let far = [RTA_GATEWAY, RTA_VIA].into_iter().any(|kind| attribute(attributes, kind).is_some());
    Some(HeldRoute { key, connected: several.is_none() && !far, held })
}

/// The interfaces of several next hops.
fn next_hops(mut bytes: &[u8]) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let index = u32::from_ne_bytes(bytes.get(4..NEXT_HOP_BYTES)?.try_into().ok()?);
        if length < NEXT_HOP_BYTES {
            return None;
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some(index)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Network;
    use crate::rtnetlink::{LinkChange, add_address, change_link, set_route};
    use proptest::prelude::*;

    const HELD: HeldMtu = HeldMtu { mtu: 1500, locked: false };
    const LOCKED: HeldMtu = HeldMtu { mtu: 1500, locked: true };
    const FREE: HeldMtu = HeldMtu { mtu: 0, locked: false };

    /// Runs in a fresh namespace that has a device with a subnet and a default route of each IP version.
    fn with_routes(work: impl FnOnce(&str) -> Result<()> + Send) {
        // That takes root.
        let Ok(network) = Network::fresh() else { return };
        let done = network.run(|| {
            let tap = crate::tap::Tap::create("fgm0", false, false)?;
            change_link("fgm0", LinkChange { up: Some(true), mtu: Some(1500), ..LinkChange::default() })?;
            for (own, net, any, gateway, bits) in [
                ("10.9.0.1", "10.9.0.0", "0.0.0.0", "10.9.0.9", 24),
                ("fd09::1", "fd09::", "::", "fd09::9", 64),
            ] {
                let [own, net, any, gateway] =
                    [own, net, any, gateway].map(|text| text.parse::<IpAddr>().expect("an address"));
                add_address("fgm0", own, bits)?;
                set_route("fgm0", net, bits, None, "reno")?;
                set_route("fgm0", any, 0, Some(gateway), "reno")?;
            }
            let done = work("fgm0");
            drop(tap);
            done
        });
        done.expect("the kernel takes it");
    }

    fn raise(name: &str, mtu: u32) -> Result<()> {
        change_link(name, LinkChange { mtu: Some(mtu), ..LinkChange::default() })
    }

    fn held(name: &str, version: u8) -> Result<Vec<HeldMtu>> {
        Ok(read(name, version)?.into_iter().map(|route| route.held).collect())
    }

    #[test]
    fn what_is_held_stays_when_the_interface_is_raised_and_is_released() {
        with_routes(|name| {
            for (version, first) in [(4, HELD), (6, LOCKED)] {
                assert!(held(name, version)?.iter().all(|route| *route == FREE));
                set(name, version, |_| first)?;
                raise(name, 9000)?;
                assert!(held(name, version)?.iter().all(|route| *route == first), "{version}");
                set(name, version, |_| HELD)?;
                assert!(held(name, version)?.iter().all(|route| *route == HELD), "{version}");
                set(name, version, |_| FREE)?;
                assert!(held(name, version)?.iter().all(|route| *route == FREE), "{version}");
                raise(name, 1500)?;
            }
            Ok(())
        });
    }

    #[test]
    fn without_a_lock_ipv6_rises_with_its_interface() {
        with_routes(|name| {
            set(name, 6, |_| HELD)?;
            raise(name, 9000)?;
            assert!(held(name, 6)?.iter().any(|route| route.mtu == 9000));
            Ok(())
        });
    }

    #[test]
    fn each_route_has_what_was_asked_for_it() {
        with_routes(|name| {
            for version in [4, 6] {
                set(name, version, |key| if key.prefix_length == 0 { HELD } else { FREE })?;
                for route in read(name, version)? {
                    assert_eq!(route.held, if route.connected { FREE } else { HELD }, "{}", route.key);
                }
            }
            Ok(())
        });
    }

    #[test]
    fn of_two_that_cannot_be_told_apart_the_own_one_changes_and_both_keep_their_places() {
        with_routes(|name| {
            let tap = crate::tap::Tap::create("fgm1", false, false)?;
            change_link("fgm1", LinkChange { up: Some(true), ..LinkChange::default() })?;
            // The same network through the other device, beside the first route and not in its place.
            let own = read(name, 6)?.into_iter().find(|route| route.connected).expect("a subnet").key;
            let mut header = [0u8; ROUTE_BYTES];
            header[..8].copy_from_slice(&[libc::AF_INET6 as u8, 64, 0, 0, libc::RT_TABLE_MAIN, 4, 0, 1]);
            let mut alike = Message::new(24, crate::netlink::CREATE, &header);
            alike.attribute(libc::RTA_DST, &"fd09::".parse::<Ipv6Addr>().expect("an address").octets());
            alike.u32(RTA_PRIORITY, own.priority).u32(libc::RTA_OIF, link("fgm1")?.index as u32);
            Socket::route()?.request(alike, "add a route")?;
            let order = || -> Result<Vec<(u32, HeldMtu)>> {
                let indexes = [link(name)?.index as u32, link("fgm1")?.index as u32];
                let mut header = [0u8; ROUTE_BYTES];
                header[0] = libc::AF_INET6 as u8;
                let all =
                    Socket::route()?.request(Message::new(RTM_GETROUTE, DUMP, &header), "list the routes")?;
                let parsed =
                    |body: &Vec<u8>| indexes.into_iter().find_map(|index| Some((index, parse(body, index)?)));
                let routes = all.iter().filter_map(parsed).filter(|(_, route)| route.key == own);
                Ok(routes.map(|(index, route)| (index, route.held)).collect())
            };
            let before = order()?;
            assert_eq!(before.len(), 2, "{before:?}");
            for (target, others) in [(name, "fgm1"), ("fgm1", name)] {
                let (target_index, other_routes) = (link(target)?.index as u32, read(others, 6)?);
                set(target, 6, |_| LOCKED)?;
                let expected = before
                    .iter()
                    .map(|(index, held)| (*index, if *index == target_index { LOCKED } else { *held }));
                assert_eq!(order()?, expected.collect::<Vec<_>>());
                assert_eq!(read(others, 6)?, other_routes);
                set(target, 6, |_| FREE)?;
                assert_eq!(order()?, before);
            }
            drop(tap);
            Ok(())
        });
    }

    fn encoded(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend_from_slice(value);
        bytes
    }

    proptest! {
        #[test]
        fn damaged_answers_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120), index: u32) {
            if parse(&bytes, index).is_some() {
                drop(replacement(&bytes, &[(RTAX_LOCK, 4), (RTAX_MTU, 1500)]));
            }
        }

        #[test]
        fn a_route_of_several_next_hops_reads_back(
            octets: [u8; 4], prefix_length in 0u8..=32, indices in proptest::collection::vec(any::<u32>(), 1..4),
            mtu: u32, locked: bool, table in 256u32..,
        ) {
            let mut body = vec![libc::AF_INET as u8, prefix_length, 0, 0, 252, 4, 0, libc::RTN_UNICAST];
            body.extend(0u32.to_ne_bytes());
            body.extend(encoded(libc::RTA_DST, &octets));
            body.extend(encoded(RTA_TABLE, &table.to_ne_bytes()));
            let lock = if locked { MTU_LOCKED } else { 0 };
            let metrics = [encoded(RTAX_LOCK, &lock.to_ne_bytes()), encoded(RTAX_MTU, &mtu.to_ne_bytes())];
            body.extend(encoded(libc::RTA_METRICS, &metrics.concat()));
            let hop = |index: &u32| [&[16, 0, 16, 0][..], &index.to_ne_bytes(), &encoded(RTA_GATEWAY, &[9; 4])].concat();
            body.extend(encoded(RTA_MULTIPATH, &indices.iter().flat_map(hop).collect::<Vec<u8>>()));
            let key = RouteKey { destination: octets.into(), prefix_length, table, priority: 0 };
            let expected = HeldRoute { key, connected: false, held: HeldMtu { mtu, locked } };
            for index in &indices {
                prop_assert_eq!(parse(&body, *index), Some(expected));
            }
            let other = (0u32..).find(|other| !indices.contains(other)).expect("one of many");
            prop_assert_eq!(parse(&body, other), None);
        }
    }
}
