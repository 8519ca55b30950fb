//! What routes ask for: the initial windows of a new connection, which are what it sends, and offers to take in, before it
//! has heard anything (`ip route … initcwnd 10 initrwnd 20`), and a path MTU (`… mtu 1500`). Layout: `linux/rtnetlink.h`.

use crate::error::Result;
use crate::netlink::{DUMP, Message, REPLACE, Socket, address_of, attribute, attribute_u32, attributes};
use crate::rtnetlink::link;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTA_GATEWAY: u16 = 5;
const RTA_MULTIPATH: u16 = 9;
const RTA_CACHEINFO: u16 = 12;
const RTA_VIA: u16 = 18;
const RTA_EXPIRES: u16 = 23;
const RTA_NH_ID: u16 = 30;
const RTAX_LOCK: u16 = 1;
const RTAX_MTU: u16 = 2;
const RTAX_INITCWND: u16 = 11;
const RTAX_INITRWND: u16 = 14;
/// An entry that the kernel made from what it was told, not one of a routing table.
const RTM_F_CLONED: u32 = 0x200;
/// Of the flags in a listing, the only one that somebody may ask for; the others tell the state of the link.
const RTNH_F_ONLINK: u32 = 4;
/// `struct rtnexthop`, in bytes, and where its flags are.
const NEXT_HOP_BYTES: usize = 8;
const NEXT_HOP_FLAGS_PLACE: usize = 2;
/// Where `struct rta_cacheinfo` has the time after which a route ends, and how many of its ticks a second has.
const EXPIRES_PLACE: std::ops::Range<usize> = 8..12;
const TICKS_PER_SECOND: u32 = 100;
/// `struct rtmsg`, in bytes; in it the length of the prefix, the table, the type and the flags.
const ROUTE_BYTES: usize = 12;
const PREFIX_PLACE: usize = 1;
const TABLE_PLACE: usize = 4;
const TYPE_PLACE: usize = 7;
const FLAGS_PLACE: usize = 8;

/// Initial windows in segments; none are the kernel's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InitialWindows {
    /// The congestion window that connections begin with (`initcwnd`).
    pub send: Option<u32>,
    /// The largest receive window that they announce first (`initrwnd`).
    pub receive: Option<u32>,
}

/// A route, and the initial windows of connections over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteWindows {
    /// The network that it leads to.
    pub destination: IpAddr,
    /// How many bits of the destination are the network's.
    pub prefix_length: u8,
    /// The index of its interface.
    pub interface: u32,
    /// What it asks for.
    pub windows: InitialWindows,
}

/// The routes of the main table through `interface`, of IP version 4 or 6. Those to link-local addresses are left out:
/// no connection of a program uses them.
pub fn read(interface: &str, version: u8) -> Result<Vec<RouteWindows>> {
    Ok(listed(interface, version)?.into_iter().map(|(route, _)| route).collect())
}

/// Gives all of them initial windows; what else a route says, it keeps, and so does a window that is none.
pub fn set(interface: &str, version: u8, windows: InitialWindows) -> Result<()> {
    let metrics = [(RTAX_INITCWND, windows.send), (RTAX_INITRWND, windows.receive)];
    let metrics: Vec<(u16, u32)> =
        metrics.into_iter().filter_map(|(kind, value)| Some((kind, value?))).collect();
    replace(interface, version, &metrics, "set the initial windows of")
}

/// Holds the path MTU of all of them, whatever that of the interface becomes; 0 releases it. Connections announce their
/// MSS by it, too (Linux 4.15).
pub fn hold_mtu(interface: &str, version: u8, mtu: u32) -> Result<()> {
    // Of IPv6 the kernel raises it with that of the interface, unless it is locked (route_mtus.rs).
    let lock = if version == 6 && mtu > 0 { 1 << RTAX_MTU } else { 0 };
    replace(interface, version, &[(RTAX_LOCK, lock), (RTAX_MTU, mtu)], "hold the MTU of")
}

fn replace(interface: &str, version: u8, metrics: &[(u16, u32)], operation: &str) -> Result<()> {
    let socket = Socket::route()?;
    for (route, body) in listed(interface, version)? {
        let operation = format!("{operation} the route to {}/{}", route.destination, route.prefix_length);
        socket.request(replacement(&body, metrics), &operation)?;
    }
    Ok(())
}

fn listed(interface: &str, version: u8) -> Result<Vec<(RouteWindows, Vec<u8>)>> {
    let index = link(interface)?.index as u32;
    let mut header = [0u8; ROUTE_BYTES];
    header[0] = if version == 4 { libc::AF_INET as u8 } else { libc::AF_INET6 as u8 };
    let answers = Socket::route()?.request(Message::new(RTM_GETROUTE, DUMP, &header), "list the routes")?;
    let routes = answers.into_iter().filter_map(|body| Some((parse(&body)?, body)));
    Ok(routes.filter(|(route, _)| route.interface == index && !is_link_local(route.destination)).collect())
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

/// Reads one answer; `None` if it is no route to others of the main table through one interface, or damaged.
pub fn parse(body: &[u8]) -> Option<RouteWindows> {
    let flags = u32::from_ne_bytes(body.get(FLAGS_PLACE..ROUTE_BYTES)?.try_into().ok()?);
    let (family, prefix_length) = (i32::from(body[0]), body[PREFIX_PLACE]);
    if body[TABLE_PLACE] != libc::RT_TABLE_MAIN || body[TYPE_PLACE] != libc::RTN_UNICAST {
        return None;
    }
    let attributes = &body[ROUTE_BYTES..];
    let unspecified: IpAddr = match family {
        libc::AF_INET => Ipv4Addr::UNSPECIFIED.into(),
        libc::AF_INET6 => Ipv6Addr::UNSPECIFIED.into(),
        _ => return None,
    };
    // The default route has no destination.
    let destination = attribute(attributes, libc::RTA_DST).map_or(Some(unspecified), address_of)?;
    if destination.is_ipv4() != unspecified.is_ipv4() || flags & RTM_F_CLONED != 0 {
        return None;
    }
    let metrics = attribute(attributes, libc::RTA_METRICS).unwrap_or(&[]);
    let window = |kind| attribute_u32(metrics, kind).filter(|segments| *segments > 0);
    let windows = InitialWindows { send: window(RTAX_INITCWND), receive: window(RTAX_INITRWND) };
    let interface = attribute_u32(attributes, libc::RTA_OIF)?;
    Some(RouteWindows { destination, prefix_length, interface, windows })
}

/// Metrics of a route by their kind; 0 takes one away.
pub(crate) type Metrics<'a> = &'a [(u16, u32)];

/// The request that puts a route in the place of itself, with other metrics; those of 0 are left out. `body` is one that
/// was parsed.
pub(crate) fn replacement(body: &[u8], metrics: Metrics) -> Message {
    let mut message = restated(RTM_NEWROUTE, REPLACE, body, metrics);
    if let Some(seconds) = expires_seconds(&body[ROUTE_BYTES..]) {
        message.u32(RTA_EXPIRES, seconds);
    }
    message
}

/// A request of this kind about a route as it was told, without what the kernel alone says of it.
pub(crate) fn restated(kind: u16, flags: u16, body: &[u8], changes: Metrics) -> Message {
    let (header, rest) = body.split_at(ROUTE_BYTES);
    let mut header = header.to_vec();
    let asked_flags =
        u32::from_ne_bytes(header[FLAGS_PLACE..].try_into().unwrap_or_default()) & RTNH_F_ONLINK;
    header[FLAGS_PLACE..].copy_from_slice(&asked_flags.to_ne_bytes());
    let mut message = Message::new(kind, flags, &header);
    // How long a route was not used is the kernel's to say; what a next hop's object says is not said again.
    let mut left_out = vec![libc::RTA_METRICS, RTA_CACHEINFO, RTA_EXPIRES];
    if attribute(rest, RTA_NH_ID).is_some() {
        left_out.extend([libc::RTA_OIF, RTA_GATEWAY, RTA_MULTIPATH, RTA_VIA]);
    }
    for (kind, value) in attributes(rest).filter(|(kind, _)| !left_out.contains(kind)) {
        if kind == RTA_MULTIPATH {
            message.attribute(kind, &asked_hops(value));
        } else {
            message.attribute(kind, value);
        }
    }
    message.nest(libc::RTA_METRICS, |metrics| {
        let existing = attributes(attribute(rest, libc::RTA_METRICS).unwrap_or(&[]));
        for (kind, value) in existing.filter(|(kind, _)| !changes.iter().any(|(new, _)| new == kind)) {
            metrics.attribute(kind, value);
        }
        for &(kind, value) in changes.iter().filter(|(_, value)| *value > 0) {
            metrics.u32(kind, value);
        }
    });
    message
}

/// Several next hops without the flags that only tell the state of their links.
fn asked_hops(hops: &[u8]) -> Vec<u8> {
    let mut bytes = hops.to_vec();
    let mut place = 0;
    while let Some(hop) = bytes.get_mut(place..).filter(|rest| rest.len() >= NEXT_HOP_BYTES) {
        hop[NEXT_HOP_FLAGS_PLACE] &= RTNH_F_ONLINK as u8;
        let length = usize::from(u16::from_ne_bytes([hop[0], hop[1]]));
        place += length.max(NEXT_HOP_BYTES).next_multiple_of(4);
    }
    bytes
}

/// After how long a route ends by itself, if it does, as one that a router has announced.
pub(crate) fn expires_seconds(rest: &[u8]) -> Option<u32> {
    let ticks =
        attribute(rest, RTA_CACHEINFO)?.get(EXPIRES_PLACE)?.try_into().ok().map(i32::from_ne_bytes)?;
    u32::try_from(ticks).ok().filter(|ticks| *ticks > 0).map(|ticks| ticks.div_ceil(TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Network;
    use crate::rtnetlink::{LinkChange, add_address, change_link, route_congestion_control, set_route};
    use proptest::prelude::*;

    const BOTH: InitialWindows = InitialWindows { send: Some(3), receive: Some(4) };

    /// The routes of a device of a fresh namespace once `change` was made to it, by IP version.
    fn after(change: impl FnOnce(&str) -> Result<()> + Send) -> Option<Vec<Vec<RouteWindows>>> {
        // That takes root.
        let network = Network::fresh().ok()?;
        let tables = network.run(|| {
            let tap = crate::tap::Tap::create("fgw0", false, false)?;
            change_link("fgw0", LinkChange { up: Some(true), ..LinkChange::default() })?;
            for (own, net, destination, gateway, bits) in [
                ("10.9.0.1", "10.9.0.0", "10.9.1.0", "10.9.0.9", 24),
                ("fd09::1", "fd09::", "fd09:1::", "fd09::9", 64),
            ] {
                let [own, net, destination, gateway] =
                    [own, net, destination, gateway].map(|text| text.parse::<IpAddr>().expect("an address"));
                add_address("fgw0", own, bits)?;
                set_route("fgw0", net, bits, None, "reno")?;
                set_route("fgw0", destination, bits, Some(gateway), "reno")?;
            }
            change("fgw0")?;
            for version in [4, 6] {
                assert_eq!(route_congestion_control("fgw0", version)?.as_deref(), Some("reno"));
            }
            let tables = [4, 6].map(|version| read("fgw0", version)).into_iter().collect();
            drop(tap);
            tables
        });
        Some(tables.expect("the kernel takes it"))
    }

    #[test]
    fn a_fresh_route_has_the_kernels_windows() {
        let Some(tables) = after(|_| Ok(())) else { return };
        for routes in tables {
            assert_eq!(routes.len(), 2, "{routes:?}");
            assert!(routes.iter().all(|route| route.windows == InitialWindows::default()), "{routes:?}");
        }
    }

    #[test]
    fn windows_are_set_on_every_route_and_outlive_a_change_of_the_mtu() {
        let change = |name: &str| {
            [4, 6].into_iter().try_for_each(|version| set(name, version, BOTH))?;
            change_link(name, LinkChange { mtu: Some(1400), ..LinkChange::default() })
        };
        let Some(tables) = after(change) else { return };
        for routes in tables {
            assert_eq!(routes.len(), 2, "{routes:?}");
            assert!(routes.iter().all(|route| route.windows == BOTH), "{routes:?}");
        }
    }

    #[test]
    fn a_held_mtu_outlives_that_of_the_interface_until_it_is_released() {
        let change = |name: &str| {
            let mtu = |mtu| change_link(name, LinkChange { mtu: Some(mtu), ..LinkChange::default() });
            for (version, destination) in [(4, "10.9.0.9"), (6, "fd09::9")] {
                let destination = destination.parse().expect("an address");
                let way = || crate::routes::way_to(destination).map(|way| way.mtu);
                set(name, version, BOTH)?;
                mtu(1500)?;
                hold_mtu(name, version, 1500)?;
                mtu(9000)?;
                assert_eq!(way()?, 1500);
                hold_mtu(name, version, 0)?;
                assert_eq!(way()?, 9000);
            }
            Ok(())
        };
        let Some(tables) = after(change) else { return };
        assert!(tables[0].iter().all(|route| route.windows == BOTH), "{tables:?}");
    }

    #[test]
    fn a_window_that_is_none_stays() {
        let change = |name: &str| {
            set(name, 4, BOTH)?;
            set(name, 4, InitialWindows { send: Some(20), receive: None })
        };
        let Some(tables) = after(change) else { return };
        let expected = InitialWindows { send: Some(20), receive: Some(4) };
        assert!(tables[0].iter().all(|route| route.windows == expected), "{tables:?}");
        assert!(tables[1].iter().all(|route| route.windows == InitialWindows::default()), "{tables:?}");
    }

    fn encoded(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend_from_slice(value);
        bytes
    }

    proptest! {
        #[test]
        fn damaged_answers_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            if parse(&bytes).is_some() {
                drop(replacement(&bytes, &[(RTAX_MTU, 1500), (RTAX_INITCWND, 0)]));
            }
        }

        #[test]
        fn a_route_reads_back(
            octets: [u8; 4], prefix_length in 0u8..=32, interface: u32, send: u32, receive: u32, cloned: bool,
            main: bool, cut in 0usize..44,
        ) {
            let mut body = vec![libc::AF_INET as u8, prefix_length, 0, 0];
            body.extend([if main { libc::RT_TABLE_MAIN } else { 7 }, 4, 253, libc::RTN_UNICAST]);
            body.extend((if cloned { RTM_F_CLONED } else { 0 }).to_ne_bytes());
            body.extend(encoded(libc::RTA_DST, &octets));
            let metrics = [
                encoded(RTAX_INITCWND, &send.to_ne_bytes()), encoded(RTAX_INITRWND, &receive.to_ne_bytes()),
            ];
            body.extend(encoded(libc::RTA_METRICS, &metrics.concat()));
            body.extend(encoded(libc::RTA_OIF, &interface.to_ne_bytes()));
            prop_assert_eq!(body.len(), 48);
            let window = |segments: u32| Some(segments).filter(|segments| *segments > 0);
            let expected = (main && !cloned).then_some(RouteWindows {
                destination: octets.into(),
                prefix_length,
                interface,
                windows: InitialWindows { send: window(send), receive: window(receive) },
            });
            prop_assert_eq!(parse(&body), expected);
            prop_assert_eq!(parse(&body[..cut]), None);
        }
    }
}
