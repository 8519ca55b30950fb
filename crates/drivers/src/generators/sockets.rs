//! The TCP sockets of a host, as its kernel lists them.

use framegauge_linux::Result;
use framegauge_linux::routes::way_to;
use framegauge_linux::sock_diag::destroy;
pub use framegauge_linux::sock_diag::{ConnectedSocket, connected_sockets, listening_sockets};
use std::net::IpAddr;

const NO_SUCH_SOCKET: i32 = 2; // ENOENT
/// The headers of IP and TCP without options, by IP version, and the timestamps, which may be there or not.
const HEADERS_BYTES: [u32; 2] = [40, 60];
const TIMESTAMP_BYTES: u32 = 12;

/// Ends the connections with other hosts whose MSS is below what their route would now allow, as `ss -K` does; how many
/// there were. One that was opened since, at whichever end, is left alone. One that ends by itself meanwhile does not
/// count.
pub fn end_small_connections() -> Result<usize> {
    end_small_connections_with(|_| true)
}

/// As [`end_small_connections`], of those with hosts whose address is meant.
pub fn end_small_connections_with(is_selected: impl Fn(IpAddr) -> bool) -> Result<usize> {
    let mut ended = 0;
    let others = connected_sockets()?;
    let remote = |connection: &ConnectedSocket| plain(connection.remote.ip());
    for connection in others.iter().filter(|connection| {
        connection.local.ip() != connection.remote.ip() && is_selected(remote(connection))
    }) {
        let Some(info) = connection.info else { continue };
        let headers = HEADERS_BYTES[usize::from(connection.remote.is_ipv6())];
        if info.mss_bytes + headers + TIMESTAMP_BYTES >= way_to(connection.remote.ip())?.mtu {
            continue;
        }
        match destroy(connection) {
            Ok(()) => ended += 1,
            Err(error) if error.code() == NO_SUCH_SOCKET => {}
            Err(error) => return Err(error),
        }
    }
    Ok(ended)
}

/// An address of IPv4 is one, whichever socket it is seen through.
fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}
