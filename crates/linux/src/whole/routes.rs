//! The routes through an interface with everything that they say, of every table but that of local addresses.

use crate::error::{OsError, Result};
use crate::initial_windows::{Metrics, expires_seconds, replacement, restated};
use crate::netlink::{CREATE, DUMP, Message, Socket, address_of, attribute, attribute_u32, attributes};
use crate::route_mtus::{HeldMtu, MTU_LOCKED, RouteKey, held_of, is_through, key_of_any};
use std::collections::BTreeMap;
use std::fmt::Write;

const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTM_GETROUTE: u16 = 26;
/// `NLM_F_APPEND`: beside others to the same network.
const APPEND: u16 = libc::NLM_F_APPEND as u16;
const RTA_PRIORITY: u16 = 6;
const RTA_GATEWAY: u16 = 5;
const RTA_MULTIPATH: u16 = 9;
const RTA_EXPIRES: u16 = 23;
const RTA_NH_ID: u16 = 30;
const RTAX_LOCK: u16 = 1;
const RTAX_MTU: u16 = 2;
const ROUTE_BYTES: usize = 12;
const PROTOCOL_PLACE: usize = 5;
const NEXT_HOP_BYTES: usize = 8;
const NO_METRICS: Metrics = &[];

/// A route with all that it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeRoute {
    body: Vec<u8>,
    /// What of it stays the same from one listing to the next, with its metrics and without.
    said: Vec<u8>,
    path: Vec<u8>,
}

impl WholeRoute {
    fn of(body: Vec<u8>) -> Self {
        let message_body = restated(RTM_NEWROUTE, 0, &body, NO_METRICS).body().to_vec();
        let mut path = message_body[..ROUTE_BYTES].to_vec();
        for (kind, value) in
            attributes(&message_body[ROUTE_BYTES..]).filter(|attribute| attribute.0 != libc::RTA_METRICS)
        {
            path.extend(kind.to_ne_bytes());
            path.extend_from_slice(value);
        }
        Self { body, said: message_body, path }
    }

    /// Whether it says the same, its metrics included.
    pub fn is_same(&self, other: &Self) -> bool {
        self.said == other.said
    }

    /// Whether it is the same way to the same network, whatever its metrics are.
    pub fn is_same_way(&self, other: &Self) -> bool {
        self.path == other.path
    }

    /// Whether the kernel has made it, for an address.
    pub fn is_of_kernel(&self) -> bool {
        self.body[PROTOCOL_PLACE] == libc::RTPROT_KERNEL
    }

    /// Whether its MTU is told by its first next hop alone: IPv6 has one for each, and the kernel changes those of an
    /// interface.
    pub fn hides_mtus(&self) -> bool {
        let is_ipv6 = self.body[0] == libc::AF_INET6 as u8;
        is_ipv6 && attribute(&self.body[ROUTE_BYTES..], RTA_MULTIPATH).is_some()
    }

    /// What tells it from others, and the MTU that it asks for.
    pub fn held(&self) -> Option<(RouteKey, HeldMtu)> {
        let metrics = attribute(&self.body[ROUTE_BYTES..], libc::RTA_METRICS).unwrap_or(&[]);
        Some((key_of_any(&self.body)?, held_of(metrics)))
    }

    /// The MTU that it asks for; 0: none.
    pub fn mtu(&self) -> u32 {
        self.held().map_or(0, |(_, held)| held.mtu)
    }

    /// The same route that asks for another MTU. What else it has locked stays so.
    pub fn holding(&self, held: HeldMtu) -> Self {
        let metrics = attribute(&self.body[ROUTE_BYTES..], libc::RTA_METRICS).unwrap_or(&[]);
        let others = attribute_u32(metrics, RTAX_LOCK).unwrap_or(0) & !MTU_LOCKED;
        let lock = others | if held.locked { MTU_LOCKED } else { 0 };
        let metrics: Metrics = &[(RTAX_LOCK, lock), (RTAX_MTU, held.mtu)];
        Self::of(restated(RTM_NEWROUTE, 0, &self.body, metrics).body().to_vec())
    }

    /// As `ip route` has it; `names` are those of interfaces by index.
    pub fn words(&self, names: &BTreeMap<u32, String>) -> String {
        let rest = &self.body[ROUTE_BYTES..];
        let Some(key) = key_of_any(&self.body) else { return "a route".into() };
        let name = |index: u32| names.get(&index).cloned().unwrap_or_else(|| format!("if{index}"));
        let mut text = if key.prefix_length == 0 {
            "default".to_string()
        } else {
            format!("{}/{}", key.destination, key.prefix_length)
        };
        let _ = match attribute_u32(rest, RTA_NH_ID) {
            Some(object) => write!(text, " nhid {object}"),
            None => write!(text, "{}", hop(rest, attribute_u32(rest, libc::RTA_OIF), &name)),
        };
        if key.table != u32::from(libc::RT_TABLE_MAIN) {
            let _ = write!(text, " table {}", key.table);
        }
        if let Some(priority) = attribute_u32(rest, RTA_PRIORITY) {
            let _ = write!(text, " metric {priority}");
        }
        let held = held_of(attribute(rest, libc::RTA_METRICS).unwrap_or(&[]));
        if held.mtu > 0 {
            let _ = write!(text, " mtu {}{}", if held.locked { "lock " } else { "" }, held.mtu);
        }
        if attribute_u32(rest, RTA_NH_ID).is_none() {
            text += &several(attribute(rest, RTA_MULTIPATH).unwrap_or(&[]), &name);
        }
        text
    }
}

fn hop(attributes: &[u8], interface: Option<u32>, name: &impl Fn(u32) -> String) -> String {
    let gateway = attribute(attributes, RTA_GATEWAY).and_then(address_of);
    let gateway = gateway.map_or(String::new(), |address| format!(" via {address}"));
    interface.map_or(gateway.clone(), |index| format!("{gateway} dev {}", name(index)))
}

fn several(mut hops: &[u8], name: &impl Fn(u32) -> String) -> String {
    let mut text = String::new();
    while hops.len() >= NEXT_HOP_BYTES {
        let length = usize::from(u16::from_ne_bytes([hops[0], hops[1]])).clamp(NEXT_HOP_BYTES, hops.len());
        let index = u32::from_ne_bytes([hops[4], hops[5], hops[6], hops[7]]);
        let weight = u32::from(hops[3]) + 1;
        let _ =
            write!(text, " nexthop{} weight {weight}", hop(&hops[NEXT_HOP_BYTES..length], Some(index), name));
        hops = hops.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    text
}

/// The routes of an IP version through the interface of this index, alone or beside others.
pub fn read(interface: u32, version: u8) -> Result<Vec<WholeRoute>> {
    let mut header = [0u8; ROUTE_BYTES];
    header[0] = if version == 4 { libc::AF_INET as u8 } else { libc::AF_INET6 as u8 };
    let mut message = Message::new(RTM_GETROUTE, DUMP, &header);
    // A kernel that cannot filter lists all.
    message.u32(libc::RTA_OIF, interface);
    let answers = match Socket::route()?.filtering().request(message, "list the routes") {
        // A kernel without this version of IP; one that has it as a module lists the other.
        Err(error) if matches!(error.code(), libc::EOPNOTSUPP | libc::EAFNOSUPPORT) => Vec::new(),
        answers => answers?,
    };
    let of_version = answers.into_iter().filter(|body| body.first() == Some(&header[0]));
    Ok(of_version.filter_map(|body| parse(body, interface)).collect())
}

/// Reads one answer; `None` if it is no route to others through this interface, or damaged.
pub fn parse(body: Vec<u8>, interface: u32) -> Option<WholeRoute> {
    (key_of_any(&body).is_some() && is_through(&body, interface)).then(|| WholeRoute::of(body))
}

/// Puts a route back as it was: in the place of the one that is the same way with other metrics, or anew.
///
/// The kernel replaces the first route with a destination, table and priority, whichever interface that has. So where
/// another one has the same (every interface has one to `fe80::/64`) the old one is taken away first.
pub fn put_back(route: &WholeRoute, now: Option<&WholeRoute>) -> Result<()> {
    let socket = Socket::route()?;
    let operation = "put a route back";
    let Some(now) = now else {
        let mut message = restated(RTM_NEWROUTE, CREATE | APPEND, &route.body, NO_METRICS);
        expire(&mut message, route);
        return match socket.request(message, operation) {
            // Whoever else restores this host was faster.
            Err(error) if error.code() == libc::EEXIST => Ok(()),
            other => other.map(drop),
        };
    };
    let key = key_of_any(&route.body).ok_or_else(|| OsError::errno(operation, libc::EINVAL))?;
    let version = if route.body[0] == libc::AF_INET as u8 { 4 } else { 6 };
    if alike(&socket, version, &key)?.len() < 2 {
        return socket.request(replacement(&route.body, NO_METRICS), operation).map(drop);
    }
    socket.request(restated(RTM_DELROUTE, 0, &now.body, NO_METRICS), operation)?;
    put_back(route, None)
}

/// Gives the route of this key through the interface of this index another MTU, where other interfaces have one alike.
///
/// The kernel would replace the first of them, and uses the first: so it is taken away and comes last, and those that were
/// behind it follow it as they are. What cannot be put back so is put back as it was.
pub(crate) fn hold_among(interface: u32, version: u8, key: &RouteKey, held: HeldMtu) -> Result<()> {
    let socket = Socket::route()?;
    let alike = alike(&socket, version, key)?;
    let wants = |route: &WholeRoute| {
        is_through(&route.body, interface) && route.held().is_some_and(|(_, is)| is != held)
    };
    for route in alike.iter().skip_while(|route| !wants(route)) {
        socket.request(restated(RTM_DELROUTE, 0, &route.body, NO_METRICS), "take a route away")?;
        let next = if wants(route) { route.holding(held) } else { route.clone() };
        put_back(&next, None).or_else(|error| put_back(route, None).and(Err(error)))?;
    }
    Ok(())
}

/// Takes a route away.
pub fn remove(route: &WholeRoute) -> Result<()> {
    let message = restated(RTM_DELROUTE, 0, &route.body, NO_METRICS);
    Socket::route()?.request(message, "take a route away").map(drop)
}

fn expire(message: &mut Message, route: &WholeRoute) {
    if let Some(seconds) = expires_seconds(&route.body[ROUTE_BYTES..]) {
        message.u32(RTA_EXPIRES, seconds);
    }
}

/// The routes of a destination, table and priority through whichever interfaces, in the order of the kernel.
fn alike(socket: &Socket, version: u8, key: &RouteKey) -> Result<Vec<WholeRoute>> {
    let mut header = [0u8; ROUTE_BYTES];
    header[0] = if version == 4 { libc::AF_INET as u8 } else { libc::AF_INET6 as u8 };
    let answers = socket.request(Message::new(RTM_GETROUTE, DUMP, &header), "list the routes")?;
    let of_key =
        answers.into_iter().filter(|body| body.first() == Some(&header[0]) && key_of_any(body) == Some(*key));
    Ok(of_key.map(WholeRoute::of).collect())
}
