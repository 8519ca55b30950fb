//! The TCP sockets of the calling thread's network namespace, as `ss` lists them (`NETLINK_SOCK_DIAG`).
//! Layouts: `linux/inet_diag.h`, `linux/sock_diag.h`.

use crate::error::Result;
use crate::netlink::{DUMP, Message, Socket, attribute, attribute_text};
use crate::tcp::TcpInfo;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const SOCK_DESTROY: u16 = 21;
/// The older request, which lists both families in one walk through the kernel's table.
const TCPDIAG_GETSOCK: u16 = 18;
const NETLINK_SOCK_DIAG: i32 = 4;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_PROTOCOL: u16 = 10;
/// `SKNLGRP_INET_TCP_DESTROY`, `SKNLGRP_INET6_TCP_DESTROY`.
const GROUPS_OF_DESTROYED: [u32; 2] = [1, 3];
/// Room for notifications: some 8000, which many short connections make in a tenth of a second.
const ROOM_BYTES: i32 = 8 << 20;
const ESTABLISHED: u8 = 1;
const LISTENING: u8 = 10;
/// `struct inet_diag_req`, `struct inet_diag_req_v2` and `struct inet_diag_msg`, in bytes.
const OLD_REQUEST_BYTES: usize = 60;
const REQUEST_BYTES: usize = 56;
const MESSAGE_BYTES: usize = 72;

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
    /// The kernel's number of it, which no other socket ever has.
    pub cookie: u64,
    /// Its number in `/proc/PID/fd`; 0 where no process holds it (not accepted yet, or closed by its program).
    pub inode: u32,
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

/// Lists every connected TCP socket, IPv4 and IPv6.
pub fn connected_sockets() -> Result<Vec<ConnectedSocket>> {
    let socket = Socket::open(NETLINK_SOCK_DIAG)?;
    let mut sockets = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let message = Message::new(SOCK_DIAG_BY_FAMILY, DUMP, &request(family as u8));
        let answers = socket.request(message, "list TCP sockets (NETLINK_SOCK_DIAG)")?;
        sockets.extend(answers.iter().filter_map(|body| parse(body)));
    }
    Ok(sockets)
}

/// Ends a connection at once, as `ss -K` does: both programs are told that it was reset or aborted. Fails with `ENOENT`
/// if it has ended meanwhile, and with `EOPNOTSUPP` without `CONFIG_INET_DIAG_DESTROY`.
pub fn destroy(connection: &ConnectedSocket) -> Result<()> {
    let family = if connection.local.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let mut body = request(family as u8);
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    for (port, address, end) in [(8, 12, connection.local), (10, 28, connection.remote)] {
        body[port..port + 2].copy_from_slice(&end.port().to_be_bytes());
        let octets = octets(end.ip());
        body[address..address + octets.len()].copy_from_slice(&octets);
    }
    body[48..56].copy_from_slice(&connection.cookie.to_le_bytes());
    let message = Message::new(SOCK_DESTROY, 0, &body);
    Socket::open(NETLINK_SOCK_DIAG)?.request(message, "end a TCP connection (SOCK_DESTROY)").map(|_| ())
}

const LISTS: &str = "list TCP sockets (TCPDIAG_GETSOCK)";

/// A listening TCP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListeningSocket {
    /// Its port.
    pub port: u16,
    /// Its number in `/proc/PID/fd`.
    pub inode: u32,
}

/// Lists every listening TCP socket, IPv4 and IPv6.
pub fn listening_sockets() -> Result<Vec<ListeningSocket>> {
    let socket = Socket::open(NETLINK_SOCK_DIAG)?;
    let answers = socket.request(every_family(1 << LISTENING, 0), LISTS)?;
    Ok(answers.iter().filter_map(|body| parse_listening(body)).collect())
}

/// What a [`Lister`] finds.
#[derive(Debug, Default)]
pub struct Listing {
    /// Sockets with two ends.
    pub connected: Vec<ConnectedSocket>,
    /// Those that wait for connections.
    pub listening: Vec<ListeningSocket>,
}

/// Lists sockets again and again.
pub struct Lister {
    socket: Socket,
}

impl Lister {
    /// For the calling thread's network namespace.
    pub fn open() -> Result<Self> {
        Ok(Self { socket: Socket::open(NETLINK_SOCK_DIAG)? })
    }

    /// Every connected and every listening TCP socket, IPv4 and IPv6.
    pub fn list(&self) -> Result<Listing> {
        let message = every_family(connected_states() | 1 << LISTENING, extensions());
        let mut listing = Listing::default();
        for body in self.socket.request(message, LISTS)? {
            listing.connected.extend(parse(&body));
            listing.listening.extend(parse_listening(&body));
        }
        Ok(listing)
    }
}

/// Reads one answer; `None` where it is no listening TCP socket.
pub fn parse_listening(body: &[u8]) -> Option<ListeningSocket> {
    let head: &[u8; MESSAGE_BYTES] = body.get(..MESSAGE_BYTES)?.try_into().ok()?;
    let port = u16::from_be_bytes([head[4], head[5]]);
    (head[1] == LISTENING).then(|| ListeningSocket { port, inode: word(head, 68) })
}

/// Tells of TCP sockets that have come to their end, as `ss -E` does.
pub struct Destroyed {
    socket: Socket,
}

impl Destroyed {
    /// For the calling thread's network namespace, from now on.
    pub fn watch() -> Result<Self> {
        Self::with_room(ROOM_BYTES)
    }

    fn with_room(bytes: i32) -> Result<Self> {
        let socket = Socket::open(NETLINK_SOCK_DIAG)?;
        socket.join(&GROUPS_OF_DESTROYED, bytes)?;
        // The kernel joins any group; only a listing has it load what fills this one.
        Lister::open()?.list()?;
        Ok(Self { socket })
    }

    /// Those since the last call. Their state is of no meaning, and no process holds them.
    pub fn read(&self) -> Result<Vec<ConnectedSocket>> {
        let messages = self.socket.waiting("read notifications of destroyed TCP sockets")?;
        Ok(messages.iter().filter_map(|body| parse_destroyed(body)).collect())
    }

    /// How many notifications found no room.
    pub fn lost(&self) -> Result<u64> {
        self.socket.dropped()
    }
}

/// Reads a notification; `None` where the socket was never connected.
pub fn parse_destroyed(body: &[u8]) -> Option<ConnectedSocket> {
    let mut body = body.to_vec();
    // All of them are closed, which is no state of a connection.
    *body.get_mut(1)? = ESTABLISHED;
    let socket = parse(&body)?;
    let protocol = attribute(&body[MESSAGE_BYTES..], INET_DIAG_PROTOCOL)?;
    let is_tcp = protocol.first().copied().map(i32::from) == Some(libc::IPPROTO_TCP);
    (is_tcp && socket.remote.port() != 0 && socket.local.port() != 0).then_some(socket)
}

/// Asks for sockets of both IP families in these states.
fn every_family(states: u32, extensions: u8) -> Message {
    let mut bytes = [0; OLD_REQUEST_BYTES];
    bytes[3] = extensions;
    bytes[52..56].copy_from_slice(&states.to_ne_bytes());
    Message::new(TCPDIAG_GETSOCK, DUMP, &bytes)
}

fn extensions() -> u8 {
    1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1)
}

fn connected_states() -> u32 {
    CONNECTED.iter().fold(0, |states, (state, _)| states | 1 << state)
}

fn word(head: &[u8; MESSAGE_BYTES], place: usize) -> u32 {
    u32::from_ne_bytes([head[place], head[place + 1], head[place + 2], head[place + 3]])
}

fn request(family: u8) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[0] = family;
    bytes[1] = libc::IPPROTO_TCP as u8;
    bytes[2] = extensions();
    bytes[4..8].copy_from_slice(&connected_states().to_ne_bytes());
    bytes
}

/// Reads one answer (`inet_diag_msg` and its attributes); `None` where it is no connected TCP socket.
pub fn parse(body: &[u8]) -> Option<ConnectedSocket> {
    let head: &[u8; MESSAGE_BYTES] = body.get(..MESSAGE_BYTES)?.try_into().ok()?;
    let rest = &body[MESSAGE_BYTES..];
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
        cookie: u64::from(word(head, 44)) | u64::from(word(head, 48)) << 32,
        inode: word(head, 68),
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
    use std::io::{Read, Write};
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
    fn the_running_kernel_lists_what_listens_and_whose_it_is() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback");
        let port = listener.local_addr().expect("an address").port();
        let entry = listening_sockets().expect("the kernel answers");
        let entry = entry.iter().find(|socket| socket.port == port).expect("it is listed");
        let link = std::fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).expect("procfs");
        assert_eq!(link.to_string_lossy(), format!("socket:[{}]", entry.inode));
        assert_eq!(crate::tree::socket_inode(&link), Some(entry.inode.into()));
        drop(listener);
        assert!(listening_sockets().expect("the kernel answers").iter().all(|socket| socket.port != port));
    }

    #[test]
    fn a_connection_is_ended_under_its_program() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback");
        let mut client =
            TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (_server, _) = listener.accept().expect("a connection");
        let local = client.local_addr().expect("an address");
        let entry = connected_sockets().expect("the kernel answers");
        let entry = entry.iter().find(|socket| socket.local == local).expect("it is listed");
        match destroy(entry) {
            Ok(()) => {
                let error = client.read(&mut [0]).expect_err("an end");
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionAborted);
                assert_eq!(destroy(entry).expect_err("it is gone").code(), libc::ENOENT);
            }
            // That takes root, and a kernel that can.
            Err(error) => assert!([libc::EPERM, libc::EOPNOTSUPP].contains(&error.code()), "{error}"),
        }
    }

    #[test]
    fn reads_what_a_kernel_answered() {
        let socket = parse(&sample()).expect("a socket");
        assert_eq!(socket.local, "10.9.9.1:40000".parse().expect("an address"));
        assert_eq!(socket.remote, "10.9.9.1:5201".parse().expect("an address"));
        assert_eq!((socket.state, socket.congestion_control.as_deref()), ("established", Some("bbr")));
        let info = socket.info.expect("it is open");
        assert_eq!((info.mss_bytes, info.path_mtu, info.bytes_sent), (0xc400, 65535, 3000));
        assert!((1e-6..1e-3).contains(&info.srtt_seconds));
    }

    #[test]
    fn an_ipv4_connection_of_an_ipv6_socket_is_shown_as_ipv4() {
        let socket = parse(&bytes(include_str!("../tests/captured/inet_diag_mapped.hex"))).expect("a socket");
        assert_eq!(socket.local, "10.9.9.1:5202".parse().expect("an address"));
        assert_eq!(socket.remote, "10.9.9.1:40001".parse().expect("an address"));
    }

    #[test]
    fn a_connection_is_told_once_more_at_its_end_with_all_that_it_carried() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = match TcpListener::bind(address) {
                Err(_) if address.starts_with('[') => continue,
                listener => listener.expect("a loopback"),
            };
            let server = listener.local_addr().expect("an address");
            let destroyed = Destroyed::watch().expect("the kernel tells");
            let mut client = TcpStream::connect(server).expect("it listens");
            let (mut accepted, _) = listener.accept().expect("a connection");
            client.write_all(&[1; 1000]).expect("it is open");
            accepted.read_exact(&mut [0; 1000]).expect("it has come");
            let listing = Lister::open().and_then(|lister| lister.list()).expect("the kernel lists");
            assert!(listing.listening.iter().any(|socket| socket.port == server.port() && socket.inode != 0));
            let own = client.local_addr().expect("an address");
            let live = listing.connected.iter().find(|socket| socket.local == own).expect("it is listed");
            assert_eq!(live.cookie, crate::tcp::cookie(client.as_raw_fd()).expect("it is open"));
            drop((client, accepted));
            let mut notices = Vec::new();
            for _ in 0..1000 {
                notices.extend(destroyed.read().expect("notifications"));
                if notices.iter().filter(|socket| socket.local == server || socket.remote == server).count()
                    == 2
                {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            let end = notices.iter().find(|socket| socket.cookie == live.cookie).expect("it is told");
            assert_eq!((end.local, end.remote), (own, server));
            assert_eq!(end.info.expect("with its counts").acknowledged_payload_bytes(), 1000);
            let other = notices.iter().find(|socket| socket.local == server).expect("so is the other end");
            // One more than was sent: the kernel counts the FIN.
            let other = other.info.expect("with its counts");
            assert!((1000..=1001).contains(&other.bytes_received));
            let sent = end.info.expect("with its counts");
            assert_eq!((sent.data_segments_sent, other.data_segments_received), (1, 1));
            assert_eq!((sent.data_segments_received, other.data_segments_sent), (0, 0));
            assert!(sent.segments_sent > 1 && other.segments_received > 1);
            assert_eq!(destroyed.lost().expect("a count"), 0);
        }
    }

    #[test]
    fn notifications_that_find_no_room_are_counted_and_later_ones_come() {
        let destroyed = Destroyed::with_room(4096).expect("the kernel tells");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback");
        let server = listener.local_addr().expect("an address");
        let connect = || {
            let client = TcpStream::connect(server).expect("it listens");
            (client.local_addr().expect("an address"), listener.accept().expect("a connection"))
        };
        (0..100).for_each(|_| drop(connect()));
        let (mut notified, mut lost) = (0, 0);
        // Others' sockets may have taken the room, so there is always one more of these.
        for _ in 0..1000 {
            drop(connect());
            std::thread::sleep(std::time::Duration::from_millis(1));
            lost = destroyed.lost().expect("a count");
            notified += destroyed
                .read()
                .expect("notifications")
                .iter()
                .filter(|socket| socket.local == server)
                .count();
            if lost > 0 && notified > 0 {
                break;
            }
        }
        assert!(lost > 0 && notified > 0, "of both ends of 100 and more: {lost} lost, {notified} told");
        for _ in 0..1000 {
            let (own, _) = connect();
            if destroyed.read().expect("notifications").iter().any(|socket| socket.local == own) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("no later end is told");
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
        assert!(parse_listening(&whole).is_none() && parse_listening(&listening).is_some());
        assert!(parse_destroyed(&whole).is_none(), "a notification says that it is of TCP");
        let mut unix = whole.clone();
        unix[0] = 1;
        assert!(parse(&unix).is_none());
        // Cut within the attributes, the socket is known and what was cut is not.
        let cut = parse(&whole[..whole.len() - 1]).expect("a socket");
        assert!(cut.congestion_control.is_none());
    }

    #[test]
    fn the_running_kernel_lists_a_connection_with_both_ends() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // A machine may run without IPv6, none without IPv4.
            let listener = match TcpListener::bind(address) {
                Err(_) if address.starts_with('[') => continue,
                listener => listener.expect("a loopback"),
            };
            let server = listener.local_addr().expect("an address");
            let client = TcpStream::connect(server).expect("it listens");
            let all = connected_sockets().expect("the kernel answers");
            let own = client.local_addr().expect("an address");
            let own_socket =
                all.iter().find(|socket| socket.local == own).expect("the client's socket is listed");
            assert_eq!((own_socket.remote, own_socket.state), (server, "established"));
            let congestion_control = crate::tcp::congestion_control(client.as_raw_fd());
            assert_eq!(own_socket.congestion_control, congestion_control.ok());
            assert!(own_socket.info.expect("it is open").mss_bytes > 500);
            assert!(all.iter().any(|socket| socket.remote == own && socket.local == server));
            assert!(
                all.iter().all(|socket| socket.remote.port() != 0),
                "a listening socket is not connected"
            );
        }
    }
}
