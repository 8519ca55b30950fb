//! Ordinary UDP sockets, as applications have them: the kernel cuts what is larger than the path MTU into fragments, and
//! believes what routers report (`IP_PMTUDISC_WANT`, `ip(7)`). [`crate::udp`] has those that probe.

use crate::error::{Context, Result, check};
use crate::listening::PortRange;
use std::io::ErrorKind;
use std::mem::size_of;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Room for what waits to be read: a receiver that is not scheduled for a moment loses nothing.
const RECEIVE_BUFFER_BYTES: libc::c_int = 8 << 20;

/// What became of a datagram that was to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handed {
    /// The kernel took it.
    Taken,
    /// There is no room now.
    Full,
    /// This host has dropped it: its queue or device had no room (ENOBUFS).
    Dropped,
}

/// A socket on one of `ports`, or 0, of an address of this host, which does not block.
pub fn open(address: IpAddr, ports: PortRange) -> Result<UdpSocket> {
    let socket = ports.open(|port| {
        UdpSocket::bind(SocketAddr::new(address, port))
            .during(format!("open a port for datagrams at {address}"))
    })?;
    socket.set_nonblocking(true).during("make a socket not block")?;
    // As much room as this process may have; what does not fit is counted by the kernel (UdpRcvbufErrors).
    if set_room(&socket, libc::SO_RCVBUFFORCE).is_err() {
        set_room(&socket, libc::SO_RCVBUF)?;
    }
    Ok(socket)
}

fn set_room(socket: &UdpSocket, name: libc::c_int) -> Result<()> {
    let value = RECEIVE_BUFFER_BYTES;
    // SAFETY: pointer and length describe `value`.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as u32,
        )
    };
    check(set, "set the receive buffer of a socket").map(drop)
}

/// Whether the kernel may give a socket several datagrams of one sender at once (`UDP_GRO`, `udp(7)`).
pub fn take_aggregates(socket: &UdpSocket, on: bool) -> Result<()> {
    let value = libc::c_int::from(on);
    // SAFETY: pointer and length describe `value`.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_GRO,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as u32,
        )
    };
    check(set, "set UDP_GRO of a socket").map(drop)
}

/// Sends a datagram.
pub fn send(socket: &UdpSocket, to: SocketAddr, bytes: &[u8]) -> Result<Handed> {
    loop {
        let error = match socket.send_to(bytes, to) {
            Ok(_) => return Ok(Handed::Taken),
            Err(error) => error,
        };
        match (error.kind(), error.raw_os_error()) {
            (ErrorKind::WouldBlock, _) => return Ok(Handed::Full),
            (_, Some(libc::ENOBUFS)) => return Ok(Handed::Dropped),
            (ErrorKind::Interrupted, _) => {}
            _ => return Err(error).during(format!("send a datagram of {} bytes to {to}", bytes.len())),
        }
    }
}

/// Takes a datagram; `None`: there is none. Longer ones are cut to the buffer.
pub fn receive(socket: &UdpSocket, into: &mut [u8]) -> Result<Option<usize>> {
    loop {
        match socket.recv(into) {
            Ok(bytes) => return Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).during("receive a datagram"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn what_is_sent_comes_whole_and_what_no_packet_holds_is_refused() {
        let (one, other) =
            (open(HERE, PortRange::ANY).expect("a port"), open(HERE, PortRange::ANY).expect("a port"));
        let to = other.local_addr().expect("an address");
        let mut into = vec![0; 65_536];
        assert_eq!(receive(&other, &mut into).expect("nothing"), None);
        assert_eq!(send(&one, to, &[7; 60_000]).expect("it goes"), Handed::Taken);
        assert_eq!(receive(&other, &mut into).expect("it came"), Some(60_000));
        assert_eq!(into[59_999], 7);
        let refused = send(&one, to, &[0; 65_508]).expect_err("no packet holds it");
        assert_eq!((refused.code(), refused.operation.contains("65508 bytes")), (libc::EMSGSIZE, true));
    }
}
