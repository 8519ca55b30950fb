//! TCP sockets, non-blocking, and what the kernel says of them (`TCP_INFO`).

use crate::error::{Context, OsError, Result, check};
use crate::listening::PortRange;
use crate::socket_address::raw_address;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Room for `struct tcp_info` of any kernel; newer ones only append to it.
const INFO_BYTES: usize = 256;

/// `TCPI_OPT_TIMESTAMPS`.
const OPTION_TIMESTAMPS: u8 = 1;

/// Connections that may wait to be accepted.
const BACKLOG: libc::c_int = 4096;

/// A snapshot of a connection. Names as in `tcp_info` of `linux/tcp.h`, with units.
#[derive(Debug, Clone, Copy, Default)]
pub struct TcpInfo {
    /// Smoothed RTT in seconds.
    pub srtt_seconds: f64,
    /// RTT variation in seconds.
    pub rttvar_seconds: f64,
    /// Congestion window.
    pub cwnd_segments: u32,
    /// Slow start threshold; `None` while it was never set.
    pub ssthresh_segments: Option<u32>,
    /// Both ends put timestamps into every segment, which are then no payload.
    pub timestamps: bool,
    /// Payload of a full segment, after options.
    pub mss_bytes: u32,
    /// The MSS that this end announced in its SYN.
    pub announced_mss_bytes: u32,
    /// Route MTU that the connection uses.
    pub path_mtu: u32,
    /// Segments sent again so far.
    pub retransmits: u32,
    /// Segments sent and not acknowledged.
    pub unacked_segments: u32,
    /// Those of them that arrived behind a hole: by SACK, or without it as many as duplicate ACKs came.
    pub sacked_segments: u32,
    /// Bytes written and not sent.
    pub not_sent_bytes: u32,
    /// The kernel's delivery rate estimate, bits per second.
    pub delivery_rate_bits_per_second: u64,
    /// The rate of `tcp_update_pacing_rate` in payload bits per second, by which the kernel sizes aggregates, and, if the
    /// connection is paced, spaces them; `None` before there is one.
    pub pacing_bits_per_second: Option<u64>,
    /// `SO_MAX_PACING_RATE` in bits per second; `None`: it was not set, and nothing makes the kernel pace.
    pub max_pacing_bits_per_second: Option<u64>,
    /// Bytes acknowledged so far.
    pub bytes_acked: u64,
    /// Bytes received so far; the other end's FIN counts as one.
    pub bytes_received: u64,
    /// Payload bytes sent, retransmits included.
    pub bytes_sent: u64,
    /// Payload bytes sent again.
    pub bytes_retransmitted: u64,
    /// Segments with payload sent, retransmits included.
    pub data_segments_sent: u32,
    /// Segments with payload received, those that came twice included.
    pub data_segments_received: u32,
    /// All segments sent.
    pub segments_sent: u32,
    /// All segments received.
    pub segments_received: u32,
    /// The smallest RTT of late, in seconds; 0 where none is known.
    pub least_rtt_seconds: f64,
    /// Time with data to send or unacknowledged, in seconds.
    pub busy_seconds: f64,
    /// Of that, time for which the receiver's window was the limit.
    pub receiver_limited_seconds: f64,
    /// Of that, time for which the send buffer was the limit.
    pub buffer_limited_seconds: f64,
    /// Duplicates of which the receiver told (D-SACK).
    pub duplicates_told: u32,
    /// Times that reordering was noticed.
    pub reorderings: u32,
    /// Retransmission timeouts; 0 before Linux 6.7.
    pub timeouts: u16,
    /// Whether the kernel counts timeouts: Linux 6.7 or later.
    pub counts_timeouts: bool,
}

impl TcpInfo {
    /// Reads a `struct tcp_info`; what an older kernel left out at its end is 0.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut whole = [0u8; INFO_BYTES];
        let length = bytes.len().min(INFO_BYTES);
        whole[..length].copy_from_slice(&bytes[..length]);
        let word = |place: usize| u32::from_ne_bytes(whole[place..place + 4].try_into().unwrap_or_default());
        let long = |place: usize| u64::from_ne_bytes(whole[place..place + 8].try_into().unwrap_or_default());
        let threshold = word(76);
        let rate = |place: usize| {
            Some(long(place)).filter(|rate| *rate < u64::MAX).map(|rate| rate.saturating_mul(8))
        };
        Self {
            srtt_seconds: f64::from(word(68)) * 1e-6,
            rttvar_seconds: f64::from(word(72)) * 1e-6,
            cwnd_segments: word(80),
            ssthresh_segments: (threshold < 0x7fff_ffff).then_some(threshold),
            timestamps: whole[5] & OPTION_TIMESTAMPS != 0,
            mss_bytes: word(16),
            announced_mss_bytes: word(84),
            path_mtu: word(60),
            retransmits: word(100),
            unacked_segments: word(24),
            sacked_segments: word(28),
            not_sent_bytes: word(144),
            delivery_rate_bits_per_second: long(160).saturating_mul(8),
            pacing_bits_per_second: rate(104),
            max_pacing_bits_per_second: rate(112),
            bytes_acked: long(120),
            bytes_received: long(128),
            bytes_sent: long(200),
            bytes_retransmitted: long(208),
            data_segments_sent: word(156),
            data_segments_received: word(152),
            segments_sent: word(136),
            segments_received: word(140),
            // All ones: none was measured.
            least_rtt_seconds: Some(word(148))
                .filter(|least| *least != u32::MAX)
                .map_or(0.0, |least| f64::from(least) * 1e-6),
            busy_seconds: long(168) as f64 * 1e-6,
            receiver_limited_seconds: long(176) as f64 * 1e-6,
            buffer_limited_seconds: long(184) as f64 * 1e-6,
            duplicates_told: word(216),
            reorderings: word(220),
            timeouts: u16::from_ne_bytes([whole[240], whole[241]]),
            counts_timeouts: length >= 242,
        }
    }
}

impl TcpInfo {
    /// Payload that the other end has acknowledged. The kernel's own count has a SYN and a FIN in it, which are no
    /// payload; a kernel before 4.19 does not tell what was sent, and theirs is taken as it is.
    pub fn acknowledged_payload_bytes(&self) -> u64 {
        match self.bytes_sent {
            0 if self.data_segments_sent > 0 => self.bytes_acked,
            sent => self.bytes_acked.min(sent.saturating_sub(self.bytes_retransmitted)),
        }
    }
}

/// Reads an option; returns how many bytes of it there are.
fn option(
    socket: RawFd,
    level: libc::c_int,
    name: libc::c_int,
    bytes: &mut [u8],
    operation: &str,
) -> Result<usize> {
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: pointer and length describe `bytes`.
    let read = unsafe { libc::getsockopt(socket, level, name, bytes.as_mut_ptr().cast(), &mut length) };
    check(read, operation).map(|_| bytes.len().min(length as usize))
}

fn set_option(
    socket: RawFd,
    level: libc::c_int,
    name: libc::c_int,
    bytes: &[u8],
    operation: &str,
) -> Result<()> {
    let length = bytes.len() as libc::socklen_t;
    // SAFETY: pointer and length describe `bytes`.
    let set = unsafe { libc::setsockopt(socket, level, name, bytes.as_ptr().cast(), length) };
    check(set, operation).map(drop)
}

/// Reads the kernel's view of a connection.
pub fn info(socket: RawFd) -> Result<TcpInfo> {
    let mut bytes = [0u8; INFO_BYTES];
    let length = option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes, "read TCP_INFO")?;
    Ok(TcpInfo::parse(&bytes[..length]))
}

/// Sets `TCP_NODELAY`: with it small segments leave at once, without it Nagle's algorithm holds them back.
pub fn set_nodelay(socket: RawFd, nodelay: bool) -> Result<()> {
    let value = i32::from(nodelay).to_ne_bytes();
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, &value, "set TCP_NODELAY")
}

/// Whether `TCP_NODELAY` is set.
pub fn nodelay(socket: RawFd) -> Result<bool> {
    let mut bytes = [0; 4];
    option(socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, &mut bytes, "read TCP_NODELAY")?;
    Ok(i32::from_ne_bytes(bytes) != 0)
}

/// Limits what a socket sends (`SO_MAX_PACING_RATE`). TCP paces itself then, with any queue discipline, and
/// counts payload. The kernel's answer is read back: one that keeps another rate is an error.
pub fn pace(socket: RawFd, bytes_per_second: u64) -> Result<()> {
    let operation = format!("pace a connection at {bytes_per_second} bytes per second");
    let (level, name) = (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE);
    set_option(socket, level, name, &bytes_per_second.to_ne_bytes(), &operation)?;
    let mut bytes = [0; 8];
    option(socket, level, name, &mut bytes, &operation)?;
    if u64::from_ne_bytes(bytes) == bytes_per_second {
        return Ok(());
    }
    Err(OsError::errno(operation, libc::EINVAL))
}

/// The kernel's number of a socket (`SO_COOKIE`), which no other socket of this machine ever has.
pub fn cookie(socket: RawFd) -> Result<u64> {
    let mut bytes = [0; 8];
    option(socket, libc::SOL_SOCKET, libc::SO_COOKIE, &mut bytes, "read SO_COOKIE")?;
    Ok(u64::from_ne_bytes(bytes))
}

/// The congestion control in force on a connection.
pub fn congestion_control(socket: RawFd) -> Result<String> {
    let mut bytes = [0u8; 16];
    option(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut bytes, "read TCP_CONGESTION")?;
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

/// A socket's buffers as the kernel keeps them (`SO_SNDBUF`, `SO_RCVBUF`): twice what was asked, to make up for its own
/// book-keeping, unless `net.core.wmem_max` or `rmem_max` is less than what was asked (socket(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    /// `SO_SNDBUF`.
    pub send_bytes: u32,
    /// `SO_RCVBUF`.
    pub receive_bytes: u32,
}

/// Reads a socket's buffers.
pub fn buffers(socket: RawFd) -> Result<Buffers> {
    let read = |name| {
        let mut bytes = [0; 4];
        option(socket, libc::SOL_SOCKET, name, &mut bytes, "read a socket's buffers")?;
        Ok(u32::from_ne_bytes(bytes))
    };
    Ok(Buffers { send_bytes: read(libc::SO_SNDBUF)?, receive_bytes: read(libc::SO_RCVBUF)? })
}

/// What a socket is before its handshake.
#[derive(Debug, Clone, Copy, Default)]
pub struct Opening {
    /// `SO_SNDBUF` and `SO_RCVBUF`; `None`: the kernel tunes them.
    pub buffer_bytes: Option<u32>,
    /// Multipath TCP (`IPPROTO_MPTCP`) instead of TCP.
    pub is_multipath: bool,
}

impl From<Option<u32>> for Opening {
    fn from(buffer_bytes: Option<u32>) -> Self {
        Self { buffer_bytes, is_multipath: false }
    }
}

/// A new socket, non-blocking. Its buffers are set before anything is sent: a SYN's window scale follows them.
fn open(address: SocketAddr, opening: Opening, operation: &str) -> Result<OwnedFd> {
    let domain = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let protocol = if opening.is_multipath { libc::IPPROTO_MPTCP } else { 0 };
    let lacking = format!("{operation} by MPTCP (which needs CONFIG_MPTCP and net.mptcp.enabled=1)");
    let operation = if opening.is_multipath { lacking.as_str() } else { operation };
    // SAFETY: no memory is passed.
    let raw = check(
        unsafe {
            libc::socket(domain, libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, protocol)
        },
        operation,
    )?;
    // SAFETY: `raw` is a descriptor that this function just opened.
    let socket = unsafe { OwnedFd::from_raw_fd(raw) };
    if let Some(bytes) = opening.buffer_bytes {
        for name in [libc::SO_SNDBUF, libc::SO_RCVBUF] {
            set_option(raw, libc::SOL_SOCKET, name, &bytes.to_ne_bytes(), "set a socket's buffers")?;
        }
    }
    Ok(socket)
}

/// Listens on `address` at one of `ports`; non-blocking. Accepted sockets are as `opening` says: an `Option` is that of
/// buffers in bytes.
pub fn listen(address: IpAddr, ports: PortRange, opening: impl Into<Opening>) -> Result<TcpListener> {
    let opening = opening.into();
    let operation = format!("listen on {address}");
    ports.open(|port| {
        let address = SocketAddr::new(address, port);
        let socket = open(address, opening, &operation)?;
        let reuse = 1_i32.to_ne_bytes();
        set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, &reuse, &operation)?;
        let (storage, length) = raw_address(address);
        // SAFETY: `storage` holds a socket address of `length` bytes.
        let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const storage).cast(), length) };
        check(bound, &operation)?;
        // SAFETY: no memory is passed.
        check(unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) }, &operation)?;
        Ok(TcpListener::from(socket))
    })
}

/// Starts to connect, as `opening` says; the socket becomes writable when the handshake is over.
pub fn start_connect(address: SocketAddr, opening: impl Into<Opening>) -> Result<TcpStream> {
    let operation = format!("connect to {address}");
    let socket = open(address, opening.into(), &operation)?;
    let (storage, length) = raw_address(address);
    // SAFETY: `storage` holds a socket address of `length` bytes.
    let started = unsafe { libc::connect(socket.as_raw_fd(), (&raw const storage).cast(), length) };
    if started < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EINPROGRESS) {
        return Err(OsError::last(operation));
    }
    Ok(TcpStream::from(socket))
}

/// The outcome of a connect that was in progress.
pub fn finish_connect(stream: &TcpStream) -> Result<()> {
    match stream.take_error().during("connect")? {
        Some(source) => Err(OsError { operation: "connect".into(), source }),
        None => Ok(()),
    }
}

/// What a non-blocking transfer came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// That many bytes.
    Bytes(usize),
    /// Nothing now; wait.
    Nothing,
    /// The other end has closed.
    End,
}

fn moved(count: isize, operation: &str) -> Result<Moved> {
    match count {
        0 => Ok(Moved::End),
        count if count > 0 => Ok(Moved::Bytes(count as usize)),
        _ => match io::Error::last_os_error() {
            error if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => Ok(Moved::Nothing),
            source => Err(OsError { operation: operation.into(), source }),
        },
    }
}

/// Sends what the kernel takes of `bytes`; never waits, whatever kind of socket it is.
pub fn send(socket: RawFd, bytes: &[u8]) -> Result<Moved> {
    // SAFETY: pointer and length describe `bytes`.
    let count = unsafe {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        libc::send(socket, bytes.as_ptr().cast(), bytes.len(), flags)
    };
    moved(count, "send")
}

/// Receives what has come; a blocking socket waits for it, within its time-out.
pub fn receive(socket: RawFd, buffer: &mut [u8]) -> Result<Moved> {
    // SAFETY: pointer and length describe `buffer`.
    let count = unsafe { libc::recv(socket, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    moved(count, "receive")
}

/// Closes at once with a reset, leaving no connection in TIME_WAIT.
pub fn reset_on_close(stream: &TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: passes a valid linger with its size.
    unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of::<libc::linger>() as u32,
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// The kernel paces once the rate is set, so what it tells of a socket says whether it does.
    #[test]
    fn the_most_of_pacing_is_none_until_it_is_set() {
        let (client, server) = connected(None);
        assert_eq!(info(client.as_raw_fd()).expect("TCP_INFO").max_pacing_bits_per_second, None);
        pace(client.as_raw_fd(), 9_375_000).expect("a rate");
        let reading = info(client.as_raw_fd()).expect("TCP_INFO");
        assert_eq!(reading.max_pacing_bits_per_second, Some(75_000_000));
        assert!(reading.pacing_bits_per_second.is_some_and(|rate| rate <= 75_000_000), "{reading:?}");
        assert_eq!(info(server.as_raw_fd()).expect("TCP_INFO").max_pacing_bits_per_second, None);
    }

    /// Both ends of a connection with buffers of so many bytes.
    fn connected(buffer_bytes: Option<u32>) -> (TcpStream, TcpStream) {
        let listener = listen(HERE, PortRange::ANY, buffer_bytes).expect("a port");
        let address = listener.local_addr().expect("an address");
        let client = start_connect(address, buffer_bytes).expect("it begins");
        client.set_nonblocking(false).expect("it may wait");
        client.set_write_timeout(Some(Duration::from_secs(5))).expect("within a time");
        // On loopback the handshake is over when connect() returns: the connection waits to be accepted.
        let (server, _) = listener.accept().expect("a connection");
        (client, server)
    }

    /// The window scale that this end announced: the upper four bits of byte 6 of `struct tcp_info`.
    fn announced_window_scale(stream: &TcpStream) -> u8 {
        let mut bytes = [0u8; INFO_BYTES];
        option(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes, "").expect("TCP_INFO");
        bytes[6] >> 4
    }

    #[test]
    fn buffers_of_both_ends_are_twice_what_was_asked() {
        for bytes in [57_344, 131_072] {
            let (client, server) = connected(Some(bytes));
            let twice = Buffers { send_bytes: 2 * bytes, receive_bytes: 2 * bytes };
            assert_eq!(buffers(client.as_raw_fd()).expect("client"), twice);
            assert_eq!(buffers(server.as_raw_fd()).expect("server"), twice);
        }
    }

    /// A window that fits into 16 bits needs no scale: 57344 < 65536. The scale is settled by the SYN and the SYN-ACK, so
    /// that buffers which are set later would leave it at that of `tcp_rmem`'s 6 MB or more, which needs 7:
    /// 65535 * 2^6 < 6291456 <= 65535 * 2^7.
    #[test]
    fn the_window_scale_of_both_ends_obeys_the_buffers() {
        let largest = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").expect("a sysctl");
        let largest: u64 = largest.split_whitespace().nth(2).expect("a third").parse().expect("a number");
        for (buffer_bytes, least, most) in [(Some(57_344), 0, 0), (None, u8::from(largest > 65_535), 14)] {
            let (client, server) = connected(buffer_bytes);
            for end in [client, server] {
                let scale = announced_window_scale(&end);
                assert!((least..=most).contains(&scale), "{buffer_bytes:?}: found {scale}");
            }
        }
    }
}
