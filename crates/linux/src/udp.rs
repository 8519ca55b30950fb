//! Sockets for probing, of UDP and (from `ping`) of ICMP echoes: never fragmented, deaf to what the kernel remembers of path MTUs, and with an error queue that
//! says who refused what (`ip(7)`, `ipv6(7)`). They need no privilege.

use crate::error::{OsError, Result, check};
use crate::listening::PortRange;
use crate::socket_address::{address, raw_address};
use crate::udp_error::{Report, parse_report};
use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Datagrams that one call receives at most.
pub const BATCH: usize = 32;
/// Bytes of a datagram that are kept: headers and acknowledgements are shorter, padding is only counted.
pub const KEPT_BYTES: usize = 64;
/// What a quoted datagram may have; ICMP quotes up to 576 bytes (RFC 1812), the beginning is enough.
const QUOTED_BYTES: usize = 128;
const CONTROL_BYTES: usize = 128;
/// Behind what is kept, the largest datagram.
const REST_BYTES: usize = 65_536;
const BUFFER_BYTES: libc::c_int = 8 << 20;
// Not in every libc: include/uapi/linux/in.h and in6.h.
const IP_RECVFRAGSIZE: libc::c_int = 25;
const IPV6_RECVFRAGSIZE: libc::c_int = 77;
const IPV6_DONTFRAG: libc::c_int = 62;
const IP_PMTUDISC_PROBE: libc::c_int = 3;
const IPV6_MTU: libc::c_int = 24;

/// What became of a datagram that was to be sent.
#[derive(Debug)]
pub enum Sent {
    /// The kernel took it.
    Done,
    /// It is larger than the MTU of the interface; the kernel's own limit, if it says.
    TooBig,
    /// There is no room now.
    Full,
    /// This host's queue or device has dropped it: to the other end it was lost.
    Dropped,
    /// There is no way there, or something forbids it.
    Failed(io::Error),
}

/// A datagram that was received.
#[derive(Debug, Clone, Copy)]
pub struct Received {
    /// Its beginning.
    pub kept: [u8; KEPT_BYTES],
    /// Bytes of its payload.
    pub bytes: usize,
    /// From whom.
    pub from: SocketAddr,
    /// The largest IP fragment that it came in; 0: it came whole.
    pub fragment_bytes: u32,
}

impl Received {
    /// The part of the payload that was kept.
    pub fn payload(&self) -> &[u8] {
        &self.kept[..self.bytes.min(KEPT_BYTES)]
    }
}

/// What a socket sends and receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// UDP datagrams.
    Udp,
    /// ICMP echoes, of which the kernel checks the identifier.
    Ping,
    /// ICMP echoes of the whole host.
    RawIcmp,
}

/// A socket that probes, or answers probes.
pub struct ProbeSocket {
    descriptor: OwnedFd,
    v6: bool,
    kind: Kind,
}

/// What the kernel knows of a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// The address that packets leave from.
    pub source: IpAddr,
    /// The MTU that the kernel believes in.
    pub route_mtu_bytes: Option<u32>,
}

/// How the kernel would send to an address from one of this host's: rules may choose the route by it. Nothing is sent.
pub fn way(source: IpAddr, destination: IpAddr) -> Result<Way> {
    let socket = ProbeSocket::unbound(destination.is_ipv6(), Kind::Udp)?;
    let (storage, length) = raw_address(SocketAddr::new(source, 0));
    // SAFETY: pointer and length describe `storage`.
    let bound = unsafe { libc::bind(socket.raw(), (&raw const storage).cast(), length) };
    check(bound, &format!("find a route from {source}"))?;
    let (storage, length) = raw_address(SocketAddr::new(destination, 9));
    // SAFETY: pointer and length describe `storage`.
    let joined = unsafe { libc::connect(socket.raw(), (&raw const storage).cast(), length) };
    check(joined, &format!("find a route to {destination}"))?;
    let (level, name) =
        if socket.v6 { (libc::IPPROTO_IPV6, IPV6_MTU) } else { (libc::IPPROTO_IP, libc::IP_MTU) };
    let route_mtu_bytes = socket.option(level, name).and_then(|mtu| u32::try_from(mtu).ok());
    Ok(Way { source: socket.local()?.ip(), route_mtu_bytes })
}

impl ProbeSocket {
    pub(crate) fn unbound(v6: bool, kind: Kind) -> Result<Self> {
        let family = if v6 { libc::AF_INET6 } else { libc::AF_INET };
        let (form, protocol, operation) = match (kind, v6) {
            (Kind::Udp, _) => (libc::SOCK_DGRAM, 0, "open a UDP socket"),
            (Kind::Ping, false) => (libc::SOCK_DGRAM, libc::IPPROTO_ICMP, "open a ping socket"),
            (Kind::Ping, true) => (libc::SOCK_DGRAM, libc::IPPROTO_ICMPV6, "open a ping socket"),
            (Kind::RawIcmp, false) => (libc::SOCK_RAW, libc::IPPROTO_ICMP, "open a raw ICMP socket"),
            (Kind::RawIcmp, true) => (libc::SOCK_RAW, libc::IPPROTO_ICMPV6, "open a raw ICMP socket"),
        };
        let form = form | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no memory is passed.
        let raw = check(unsafe { libc::socket(family, form, protocol) }, operation)?;
        // SAFETY: `raw` is a descriptor that this function just opened.
        Ok(Self { descriptor: unsafe { OwnedFd::from_raw_fd(raw) }, v6, kind })
    }

    /// A socket at an address of this host, on a port that the kernel chooses.
    pub fn bind(source: IpAddr) -> Result<Self> {
        Self::listen(source, PortRange::ANY)
    }

    /// A socket at an address of this host, on one of `ports`.
    pub fn listen(source: IpAddr, ports: PortRange) -> Result<Self> {
        ports.open(|port| {
            let socket = Self::unbound(source.is_ipv6(), Kind::Udp)?;
            socket.set_up(SocketAddr::new(source, port))?;
            Ok(socket)
        })
    }

    /// What it sends and receives.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Makes it probe, from an address of this host; port or identifier 0 is the kernel's choice.
    pub(crate) fn set_up(&self, source: SocketAddr) -> Result<()> {
        let needed = if self.v6 {
            [
                (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, IP_PMTUDISC_PROBE),
                (libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1),
                (libc::IPPROTO_IPV6, IPV6_DONTFRAG, 1),
            ]
        } else {
            [
                (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, IP_PMTUDISC_PROBE),
                (libc::IPPROTO_IP, libc::IP_RECVERR, 1),
                (libc::IPPROTO_IP, IP_RECVFRAGSIZE, 1),
            ]
        };
        for (level, name, value) in needed {
            self.set(level, name, value, "set up a probing socket")?;
        }
        if self.v6 {
            self.set(libc::IPPROTO_IPV6, IPV6_RECVFRAGSIZE, 1, "set up a probing socket")?;
        }
        // As much room as this process may have; less of it shows as loss, and is told from an MTU fault as loss is.
        for (forced, option) in
            [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
        {
            if self.set(libc::SOL_SOCKET, forced, BUFFER_BYTES, "").is_err() {
                let _ = self.set(libc::SOL_SOCKET, option, BUFFER_BYTES, "");
            }
        }
        let (storage, length) = raw_address(source);
        // SAFETY: pointer and length describe `storage`.
        let bound = unsafe { libc::bind(self.raw(), (&raw const storage).cast(), length) };
        check(bound, &format!("open a port at {source}")).map(drop)
    }

    /// Its address and port.
    pub fn local(&self) -> Result<SocketAddr> {
        // SAFETY: all-zero is a valid sockaddr_storage.
        let mut storage: libc::sockaddr_storage = unsafe { zeroed() };
        let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        // SAFETY: pointer and length describe `storage`.
        let read = unsafe { libc::getsockname(self.raw(), (&raw mut storage).cast(), &mut length) };
        check(read, "read the address of a socket")?;
        address(&storage).ok_or_else(|| OsError::errno("read the address of a socket", libc::EAFNOSUPPORT))
    }

    /// For polling.
    pub fn raw(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    pub(crate) fn set(
        &self,
        level: libc::c_int,
        name: libc::c_int,
        value: libc::c_int,
        operation: &str,
    ) -> Result<()> {
        // SAFETY: pointer and length describe `value`.
        let set = unsafe {
            libc::setsockopt(
                self.raw(),
                level,
                name,
                (&raw const value).cast(),
                size_of::<libc::c_int>() as u32,
            )
        };
        check(set, operation).map(drop)
    }

    fn option(&self, level: libc::c_int, name: libc::c_int) -> Option<libc::c_int> {
        let mut value: libc::c_int = 0;
        let mut length = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: pointer and length describe `value`.
        let read = unsafe { libc::getsockopt(self.raw(), level, name, (&raw mut value).cast(), &mut length) };
        (read == 0).then_some(value)
    }

    /// Sends a datagram, with a TTL (hop limit) of its own if one is given.
    pub fn send(&self, to: SocketAddr, payload: &[u8], ttl: Option<u8>) -> Sent {
        let mut again = false;
        loop {
            let error = match self.send_once(to, payload, ttl) {
                Ok(()) => return Sent::Done,
                Err(error) => error,
            };
            match error.raw_os_error() {
                Some(libc::EAGAIN) => return Sent::Full,
                Some(libc::ENOBUFS) => return Sent::Dropped,
                Some(libc::EINTR) => {}
                // An error of an earlier datagram is told on the next call, which then sends nothing. It is in the error
                // queue as well; what is said a second time is meant.
                _ if !again => again = true,
                Some(libc::EMSGSIZE) => return Sent::TooBig,
                _ => return Sent::Failed(error),
            }
        }
    }

    fn send_once(&self, to: SocketAddr, payload: &[u8], ttl: Option<u8>) -> io::Result<()> {
        let (mut storage, length) = raw_address(to);
        let mut part = libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() };
        let mut control = Control([0; CONTROL_BYTES]);
        // SAFETY: all-zero is a valid msghdr.
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_name = (&raw mut storage).cast();
        message.msg_namelen = length;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        if let Some(ttl) = ttl {
            let (level, kind) = if self.v6 {
                (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT)
            } else {
                (libc::IPPROTO_IP, libc::IP_TTL)
            };
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = CONTROL_BYTES as _;
            // SAFETY: the control buffer is aligned and large enough for one header with an int.
            unsafe {
                let head = libc::CMSG_FIRSTHDR(&raw const message);
                (*head).cmsg_level = level;
                (*head).cmsg_type = kind;
                (*head).cmsg_len = libc::CMSG_LEN(size_of::<libc::c_int>() as u32) as _;
                libc::CMSG_DATA(head).cast::<libc::c_int>().write_unaligned(libc::c_int::from(ttl));
                message.msg_controllen = libc::CMSG_SPACE(size_of::<libc::c_int>() as u32) as _;
            }
        }
        // SAFETY: everything that `message` points to outlives the call.
        let sent = unsafe { libc::sendmsg(self.raw(), &raw const message, libc::MSG_NOSIGNAL) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Takes up to [`BATCH`] datagrams, in `into`; how many there were.
    pub fn receive(&self, into: &mut Vec<Received>) -> Result<usize> {
        into.clear();
        // SAFETY: all-zero is valid for each of these.
        let (mut names, mut heads): ([libc::sockaddr_storage; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (zeroed(), zeroed()) };
        let mut bytes = [[0u8; KEPT_BYTES]; BATCH];
        let mut controls = [const { Control([0; CONTROL_BYTES]) }; BATCH];
        // A ping socket says no more of a datagram's length than it had room for: the rest goes where all rests go.
        let mut rest = vec![0u8; if self.kind == Kind::Ping { REST_BYTES } else { 0 }];
        let rest = libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: rest.len() };
        let mut parts = bytes
            .each_mut()
            .map(|bytes| [libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: KEPT_BYTES }, rest]);
        for (index, head) in heads.iter_mut().enumerate() {
            head.msg_hdr.msg_name = (&raw mut names[index]).cast();
            head.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
            head.msg_hdr.msg_iov = parts[index].as_mut_ptr();
            head.msg_hdr.msg_iovlen = 2;
            head.msg_hdr.msg_control = controls[index].0.as_mut_ptr().cast();
            head.msg_hdr.msg_controllen = CONTROL_BYTES as _;
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: the heads point at buffers of the sizes that they say, which outlive the call.
        let count = unsafe {
            libc::recvmmsg(self.raw(), heads.as_mut_ptr(), BATCH as u32, flags as _, std::ptr::null_mut())
        };
        if count < 0 {
            let source = io::Error::last_os_error();
            return match source.raw_os_error() {
                // Errors of sent datagrams are in the error queue.
                Some(code) if code != libc::EBADF && code != libc::EFAULT => Ok(0),
                _ => Err(OsError { operation: "receive datagrams".into(), source }),
            };
        }
        for index in 0..count as usize {
            let fragment_bytes = self.fragment(&heads[index].msg_hdr);
            if let Some(from) = address(&names[index]) {
                let bytes_received = heads[index].msg_len as usize;
                into.push(Received { kept: bytes[index], bytes: bytes_received, from, fragment_bytes });
            }
        }
        Ok(count as usize)
    }

    fn fragment(&self, message: &libc::msghdr) -> u32 {
        let mut fragment_bytes = 0;
        each_control(message, |level, kind, data| {
            let kinds = [(libc::IPPROTO_IP, IP_RECVFRAGSIZE), (libc::IPPROTO_IPV6, IPV6_RECVFRAGSIZE)];
            if kinds.contains(&(level, kind))
                && let Some(value) = data.first_chunk::<4>()
            {
                fragment_bytes = u32::try_from(i32::from_ne_bytes(*value)).unwrap_or(0);
            }
        });
        fragment_bytes
    }

    /// What was said of a datagram that was sent; none: nothing more.
    pub fn report(&self) -> Option<Report> {
        // SAFETY: all-zero is valid for both.
        let (mut name, mut message): (libc::sockaddr_storage, libc::msghdr) = unsafe { (zeroed(), zeroed()) };
        let mut quoted = [0u8; QUOTED_BYTES];
        let mut control = Control([0; CONTROL_BYTES]);
        let mut part = libc::iovec { iov_base: quoted.as_mut_ptr().cast(), iov_len: QUOTED_BYTES };
        message.msg_name = (&raw mut name).cast();
        message.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = CONTROL_BYTES as _;
        // SAFETY: everything that `message` points to outlives the call.
        let length =
            unsafe { libc::recvmsg(self.raw(), &raw mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
        if length < 0 {
            return None;
        }
        let mut parsed = None;
        each_control(&message, |level, kind, data| {
            let kinds = [(libc::IPPROTO_IP, libc::IP_RECVERR), (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)];
            if kinds.contains(&(level, kind)) {
                parsed = parse_report(data);
            }
        });
        let mut report = parsed.unwrap_or_default();
        report.destination = address(&name);
        report.quoted = quoted[..(length as usize).min(QUOTED_BYTES)].to_vec();
        Some(report)
    }
}

/// Room for control messages, aligned as they must be.
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// Calls with level, type and data of every control message that the kernel wrote.
fn each_control(message: &libc::msghdr, mut handler: impl FnMut(libc::c_int, libc::c_int, &[u8])) {
    // SAFETY: the kernel wrote the control messages into the buffer that `message` points to and set its length.
    unsafe {
        let mut head = libc::CMSG_FIRSTHDR(message);
        while !head.is_null() {
            let whole = (*head).cmsg_len as usize;
            let length = whole.saturating_sub(libc::CMSG_LEN(0) as usize);
            let data = std::slice::from_raw_parts(libc::CMSG_DATA(head), length);
            handler((*head).cmsg_level, (*head).cmsg_type, data);
            head = libc::CMSG_NXTHDR(message, head);
        }
    }
}
