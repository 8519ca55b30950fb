//! The TCP sockets of the calling thread's network namespace, as `ss` lists them (`NETLINK_SOCK_DIAG`).
//! Layouts: `linux/inet_diag.h`, `linux/sock_diag.h`.

use crate::error::Result;
use crate::netlink::{DUMP, Message, Socket, attribute, attribute_text};
use crate::tcp::TcpInfo;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NETLINK_SOCK_DIAG: i32 = 4;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
/// `struct inet_diag_req_v2` and `struct inet_diag_msg`, in bytes.
const REQUEST_BYTES: usize = 56;
const MESSAGE_BYTES: usize = 72;

/// Of sockets at which connections are accepted.
const LISTEN: u8 = 10;

/// States with both ends known and not forgotten, by their number in `net/tcp_states.h`, named as `ss` does.
const CONNECTED: [(u8, &str); 6] = [
    (1, "established"),
    (4, "fin-wait-1"),
    (5, "fin-wait-2"),
    (8, "close-wait"),
    (9, "last-ack"),
    (11, "closing"),
];

/// One connected TCP socket.
#[derive(Debug, Clone)]
pub struct ConnectedSocket {
    /// Its own address. An IPv4 connection of an IPv6 socket is shown as IPv4.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Its state, named as `ss` names it.
    pub state: &'static str,
    /// The congestion control in force.
    pub congestion_control: Option<String>,
    /// What the kernel knows of the connection; `None` once only its closing is left.
    pub info: Option<TcpInfo>,
}

/// A TCP socket at which connections are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListeningSocket {
    /// Its port.
    pub port: u16,
    /// Its number, by which it is known in `/proc/PID/fd`.
    pub inode: u64,
}

/// Lists every connected TCP socket, IPv4 and IPv6.
pub fn connected_sockets() -> Result<Vec<ConnectedSocket>> {
    let states = CONNECTED.iter().fold(0, |states, (state, _)| states | 1 << state);
    list(states, 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1), parse)
}

/// Lists every listening TCP socket, IPv4 and IPv6.
pub fn listening_sockets() -> Result<Vec<ListeningSocket>> {
    list(1 << LISTEN, 0, parse_listening)
}

fn list<T>(states: u32, extensions: u8, read: fn(&[u8]) -> Option<T>) -> Result<Vec<T>> {
    let socket = Socket::open(NETLINK_SOCK_DIAG)?;
    let mut found = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let message = Message::new(SOCK_DIAG_BY_FAMILY, DUMP, &request(family as u8, states, extensions));
        let answers = socket.request(message, "list TCP sockets (NETLINK_SOCK_DIAG)")?;
        found.extend(answers.iter().filter_map(|body| read(body)));
    }
    Ok(found)
}

fn request(family: u8, states: u32, extensions: u8) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[0] = family;
    bytes[1] = libc::IPPROTO_TCP as u8;
    bytes[2] = extensions;
    bytes[4..8].copy_from_slice(&states.to_ne_bytes());
    bytes
}

/// Reads one answer; `None` where it is no listening TCP socket.
pub fn parse_listening(body: &[u8]) -> Option<ListeningSocket> {
    let head = body.get(..MESSAGE_BYTES)?;
    if head[1] != LISTEN || !matches!(i32::from(head[0]), libc::AF_INET | libc::AF_INET6) {
        return None;
    }
    let inode = u32::from_ne_bytes(head[68..72].try_into().ok()?);
    Some(ListeningSocket { port: u16::from_be_bytes([head[4], head[5]]), inode: inode.into() })
}

/// Reads one answer (`inet_diag_msg` and its attributes); `None` where it is no connected TCP socket.
pub fn parse(body: &[u8]) -> Option<ConnectedSocket> {
    let (head, rest) = (body.get(..MESSAGE_BYTES)?, &body[MESSAGE_BYTES..]);
    let state = CONNECTED.iter().find(|(number, _)| *number == head[1])?.1;
    let port = |place: usize| u16::from_be_bytes([head[place], head[place + 1]]);
    let address = |place: usize| -> Option<IpAddr> {
        let octets: [u8; 16] = head.get(place..place + 16)?.try_into().ok()?;
        match i32::from(head[0]) {
            libc::AF_INET => {
                let [a, b, c, d, ..] = octets;
                Some(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
            }
            libc::AF_INET6 => Some(Ipv6Addr::from(octets).to_canonical()),
            _ => None,
        }
    };
    Some(ConnectedSocket {
        local: SocketAddr::new(address(8)?, port(4)),
        remote: SocketAddr::new(address(24)?, port(6)),
        state,
        congestion_control: attribute_text(rest, INET_DIAG_CONG),
        info: attribute(rest, INET_DIAG_INFO).map(TcpInfo::parse),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16);
        digits.chunks(2).map(|pair| byte(pair).expect("hex digits")).collect()
    }

    /// An answer of Linux 6.18: 10.9.9.1:40000 to 10.9.9.1:5201, bbr, 3000 bytes sent over a loopback of MTU 65536.
    fn sample() -> Vec<u8> {
        bytes(include_str!("../tests/captured/inet_diag_ipv4.hex"))
    }

    #[test]
    fn reads_what_a_kernel_answered() {
        let found = parse(&sample()).expect("a socket");
        assert_eq!(found.local, "10.9.9.1:40000".parse().expect("an address"));
        assert_eq!(found.remote, "10.9.9.1:5201".parse().expect("an address"));
        assert_eq!((found.state, found.congestion_control.as_deref()), ("established", Some("bbr")));
        let info = found.info.expect("it is open");
        assert_eq!((info.mss_bytes, info.path_mtu, info.bytes_sent), (0xc400, 65535, 3000));
        assert!((1e-6..1e-3).contains(&info.srtt_seconds));
    }

    #[test]
    fn an_ipv4_connection_of_an_ipv6_socket_is_shown_as_ipv4() {
        let found = parse(&bytes(include_str!("../tests/captured/inet_diag_mapped.hex"))).expect("a socket");
        assert_eq!(found.local, "10.9.9.1:5202".parse().expect("an address"));
        assert_eq!(found.remote, "10.9.9.1:40001".parse().expect("an address"));
    }

    #[test]
    fn damaged_answers_are_no_sockets() {
        let whole = sample();
        for length in 0..MESSAGE_BYTES {
            assert!(parse(&whole[..length]).is_none());
        }
        let mut listening = whole.clone();
        listening[1] = 10;
        assert!(parse(&listening).is_none());
        let mut unix = whole.clone();
        unix[0] = 1;
        assert!(parse(&unix).is_none());
        // Cut within the attributes, the socket is known and what was cut is not.
        let cut = parse(&whole[..whole.len() - 1]).expect("a socket");
        assert!(cut.congestion_control.is_none());
        // A connection does not listen; and what listens is read as far as its number, its last field.
        assert!(parse_listening(&whole).is_none() && parse_listening(&unix).is_none());
        assert!(parse_listening(&listening[..MESSAGE_BYTES - 1]).is_none());
        assert_eq!(parse_listening(&listening).expect("it listens").port, 40_000);
    }

    #[test]
    fn the_running_kernel_lists_what_listens_and_whose_it_is() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback");
        let port = listener.local_addr().expect("an address").port();
        let found = listening_sockets().expect("the kernel answers");
        let found = found.iter().find(|socket| socket.port == port).expect("it is listed");
        let link = std::fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).expect("procfs");
        assert_eq!(link.to_string_lossy(), format!("socket:[{}]", found.inode));
        assert_eq!(crate::tree::socket_inode(&link), Some(found.inode));
        drop(listener);
        assert!(listening_sockets().expect("the kernel answers").iter().all(|socket| socket.port != port));
    }

    #[test]
    fn the_running_kernel_lists_a_connection_with_both_ends() {
        for here in ["127.0.0.1:0", "[::1]:0"] {
            // A machine may run without IPv6, none without IPv4.
            let listener = match TcpListener::bind(here) {
                Err(_) if here.starts_with('[') => continue,
                listener => listener.expect("a loopback"),
            };
            let server = listener.local_addr().expect("an address");
            let client = TcpStream::connect(server).expect("it listens");
            let all = connected_sockets().expect("the kernel answers");
            let own = client.local_addr().expect("an address");
            let found = all.iter().find(|each| each.local == own).expect("the client's socket is listed");
            assert_eq!((found.remote, found.state), (server, "established"));
            let congestion_control = crate::tcp::congestion_control(client.as_raw_fd());
            assert_eq!(found.congestion_control, congestion_control.ok());
            assert!(found.info.expect("it is open").mss_bytes > 500);
            assert!(all.iter().any(|each| each.remote == own && each.local == server));
            assert!(all.iter().all(|each| each.remote.port() != 0), "a listening socket is not connected");
        }
    }
}
