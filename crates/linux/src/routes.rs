//! What the kernel believes of the way to a destination: source, interface, MTU; and the path MTUs it remembers.
//! Nothing here sends a packet.

use crate::error::{Context, OsError, Result};
use crate::netlink::{DUMP, Message, Socket, address_of, attribute, attribute_u32, family_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsRawFd;

const RTM_DELROUTE: u16 = 25;
const RTM_GETROUTE: u16 = 26;
const RTA_SRC: u16 = 2;
const RTAX_MTU: u16 = 2;
/// An entry that the kernel made from what it was told, not one of a routing table.
const RTM_F_CLONED: u32 = 0x200;
/// `struct rtmsg`, in bytes.
const ROUTE_BYTES: usize = 12;
/// Where `rtm_type` is in it.
const TYPE_PLACE: usize = 7;
/// A UDP socket has to be connected to some port; nothing is sent there (RFC 863: discard).
const ANY_PORT: u16 = 9;
const IP_MTU: libc::c_int = 14;
const IPV6_MTU: libc::c_int = 24;

/// A path MTU that the kernel remembers for a destination (a route exception).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathMtuException {
    /// The destination.
    pub destination: IpAddr,
    /// The path MTU in bytes.
    pub mtu: u32,
}

/// The way to a destination as a connected UDP socket sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// The address it would send from.
    pub source: IpAddr,
    /// The route MTU in bytes, a remembered path MTU included.
    pub mtu: u32,
}

/// Connects a UDP socket to `destination` and asks it.
pub fn way_to(destination: IpAddr) -> Result<Way> {
    let local = if destination.is_ipv4() {
        IpAddr::from(Ipv4Addr::UNSPECIFIED)
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let socket = UdpSocket::bind((local, 0)).during("open a UDP socket")?;
    socket.connect((destination, ANY_PORT)).during(format!("find the route to {destination}"))?;
    let source = socket.local_addr().during("read a socket's own address")?.ip();
    let (level, name) =
        if destination.is_ipv4() { (libc::IPPROTO_IP, IP_MTU) } else { (libc::IPPROTO_IPV6, IPV6_MTU) };
    let mut value: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` and `length` are valid for writing and describe a c_int.
    let read = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length)
    };
    if read < 0 {
        return Err(OsError::last(format!("read the route MTU to {destination}")));
    }
    Ok(Way { source, mtu: value.unsigned_abs() })
}

/// The index of the interface through which the kernel would send to `destination`, from `source` where that is given.
pub fn interface_to(destination: IpAddr, source: Option<IpAddr>) -> Result<Option<u32>> {
    let answers = look_up(destination, source)?;
    Ok(answers.iter().find_map(|body| attribute_u32(body.get(ROUTE_BYTES..)?, libc::RTA_OIF)))
}

/// Whether packets to `address` are taken in by this host.
pub fn is_own(address: IpAddr) -> Result<bool> {
    match look_up(address, None) {
        Ok(answers) => Ok(answers.iter().any(|body| body.get(TYPE_PLACE) == Some(&libc::RTN_LOCAL))),
        Err(error) if error.code() == libc::ENETUNREACH => Ok(false),
        Err(error) => Err(error),
    }
}

fn look_up(destination: IpAddr, source: Option<IpAddr>) -> Result<Vec<Vec<u8>>> {
    let bits = |address: IpAddr| if address.is_ipv4() { 32u8 } else { 128 };
    let mut header = [0u8; ROUTE_BYTES];
    header[..3].copy_from_slice(&[family_of(destination), bits(destination), source.map_or(0, bits)]);
    let mut message = Message::new(RTM_GETROUTE, 0, &header);
    message.attribute(libc::RTA_DST, &octets(destination));
    if let Some(source) = source {
        message.attribute(RTA_SRC, &octets(source));
    }
    Socket::route()?.request(message, &format!("look up the route to {destination}"))
}

/// Every path MTU that the kernel remembers, of both IP versions.
pub fn path_mtu_exceptions() -> Result<Vec<PathMtuException>> {
    // Filtered, the routes themselves are not listed: a router may have a million.
    let socket = Socket::route()?.filtering();
    let mut exceptions = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        exceptions.extend(cloned(&socket, family)?.iter().filter_map(|body| parse_exception(body)));
    }
    // One route with several next hops lists its exceptions once for each.
    let mut unique: Vec<PathMtuException> = Vec::with_capacity(exceptions.len());
    for exception in exceptions {
        if !unique.contains(&exception) {
            unique.push(exception);
        }
    }
    Ok(unique)
}

/// Makes the kernel forget every path MTU, of both IP versions.
pub fn forget_path_mtus() -> Result<()> {
    crate::sysctl::write("net.ipv4.route.flush", "1")?;
    // IPv6 has no such switch: the entries are deleted one by one, as `ip -6 route flush cache` does.
    let socket = Socket::route()?.filtering();
    for body in cloned(&socket, libc::AF_INET6)? {
        if parse_exception(&body).is_none() {
            continue;
        }
        let operation = "forget a path MTU";
        match socket.request(Message::new(RTM_DELROUTE, 0, &body), operation) {
            // It may have expired meanwhile.
            Err(error) if error.code() != libc::ESRCH => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The entries of one family that the kernel made by itself.
fn cloned(socket: &Socket, family: i32) -> Result<Vec<Vec<u8>>> {
    let mut header = [0u8; ROUTE_BYTES];
    header[0] = family as u8;
    header[8..12].copy_from_slice(&RTM_F_CLONED.to_ne_bytes());
    socket.request(Message::new(RTM_GETROUTE, DUMP, &header), "list the remembered path MTUs")
}

/// Reads one answer; `None` if it is no exception with a path MTU, or damaged.
pub fn parse_exception(body: &[u8]) -> Option<PathMtuException> {
    let flags = u32::from_ne_bytes(body.get(8..ROUTE_BYTES)?.try_into().ok()?);
    let attributes = body.get(ROUTE_BYTES..)?;
    if flags & RTM_F_CLONED == 0 {
        return None;
    }
    let destination = address_of(attribute(attributes, libc::RTA_DST)?)?;
    let metrics = attribute(attributes, libc::RTA_METRICS)?;
    let mtu = attribute_u32(metrics, RTAX_MTU).filter(|mtu| *mtu > 0)?;
    (family_of(destination) == body[0]).then_some(PathMtuException { destination, mtu })
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_way_to_oneself() {
        let own = IpAddr::from(Ipv4Addr::LOCALHOST);
        let mtu = crate::rtnetlink::link("lo").expect("it is there").mtu;
        assert_eq!(way_to(own).expect("a route"), Way { source: own, mtu: mtu.min(65_535) });
        assert_eq!(interface_to(own, Some(own)).expect("a route"), Some(1));
        path_mtu_exceptions().expect("the kernel answers");
        assert!(is_own(own).expect("the kernel answers"));
        // TEST-NET-1 (RFC 5737), with a way to it or without.
        assert!(!is_own([192, 0, 2, 1].into()).expect("the kernel answers"));
    }

    #[test]
    fn no_route_is_an_error_with_its_number() {
        // That takes root.
        let Ok(network) = crate::namespace::Network::fresh() else { return };
        let error =
            network.run(|| Ok(way_to([192, 0, 2, 1].into()).expect_err("nothing is up"))).expect("a thread");
        assert_eq!(error.code(), libc::ENETUNREACH);
    }

    proptest! {
        #[test]
        fn damaged_answers_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = parse_exception(&bytes);
        }

        #[test]
        fn an_exception_reads_back(destination: [u8; 4], mtu in 1u32..70_000, cloned: bool, cut in 0usize..36) {
            let mut body = vec![0u8; ROUTE_BYTES];
            body[0] = libc::AF_INET as u8;
            body[8..12].copy_from_slice(&(if cloned { RTM_F_CLONED } else { 0 }).to_ne_bytes());
            let attribute = |kind: u16, value: &[u8]| {
                let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
                bytes.extend(kind.to_ne_bytes());
                bytes.extend_from_slice(value);
                bytes
            };
            body.extend(attribute(libc::RTA_DST, &destination));
            body.extend(attribute(libc::RTA_METRICS, &attribute(RTAX_MTU, &mtu.to_ne_bytes())));
            let expected = cloned.then_some(PathMtuException { destination: destination.into(), mtu });
            prop_assert_eq!(parse_exception(&body), expected);
            prop_assert_eq!(body.len(), 32);
            prop_assert_eq!(parse_exception(&body[..cut.min(31)]), None);
        }
    }
}
