//! Sockets for ICMP echoes, without privilege where the system lets this user have them (`icmp(7)`, `ping_group_range`).

use crate::error::{OsError, Result};
use crate::udp::{Kind, ProbeSocket};
use std::net::{IpAddr, SocketAddr};

const SOL_RAW: libc::c_int = 255;
const ICMP_FILTER: libc::c_int = 1;
/// All types but the echo reply, which is 0.
const ALL_BUT_REPLIES: libc::c_int = !1;

/// A socket for echoes from an address of this host: a ping socket, or a raw one where only that is allowed.
pub fn open(source: IpAddr) -> Result<ProbeSocket> {
    let v6 = source.is_ipv6();
    let socket = match ProbeSocket::unbound(v6, Kind::Ping) {
        Ok(socket) => socket,
        Err(refused) => raw(v6).map_err(|_| refused)?,
    };
    socket.set_up(SocketAddr::new(source, 0))?;
    Ok(socket)
}

/// Whether an error of [`open`] means that this user may not.
pub fn forbidden(error: &OsError) -> bool {
    matches!(error.code(), libc::EACCES | libc::EPERM)
}

fn raw(v6: bool) -> Result<ProbeSocket> {
    let socket = ProbeSocket::unbound(v6, Kind::RawIcmp)?;
    // Over IPv6 other ICMP is told apart by who reads it: its filter is no number, and nothing but time is lost.
    if !v6 {
        socket.set(SOL_RAW, ICMP_FILTER, ALL_BUT_REPLIES, "ask for echo replies only")?;
    }
    Ok(socket)
}
