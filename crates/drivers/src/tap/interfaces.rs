//! The interfaces of a host on which to capture, and the connection by which it is controlled.

use framegauge_linux::{Result, links};
use std::net::{IpAddr, SocketAddr};

/// An interface of this thread's network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its packets begin with an Ethernet header.
    pub ethernet: bool,
    /// It was told to be up; a carrier may still come.
    pub up: bool,
    /// It is where the host's own connections begin: up, with an address, and no loopback.
    pub usual: bool,
}

/// Every interface.
pub fn interfaces() -> Result<Vec<Interface>> {
    let addresses = links::addresses()?;
    let all = links::interfaces()?.into_iter().map(|link| Interface {
        usual: link.enabled && !link.loopback && addresses.iter().any(|address| address.index == link.index),
        index: link.index,
        ethernet: link.ethernet,
        up: link.enabled,
        name: link.name,
    });
    Ok(all.collect())
}

/// The ends of the ssh connection that this process was started by, as `SSH_CONNECTION` has them (ssh(1)): the client's
/// address and port, then the server's.
pub fn own_connection(variable: &str) -> Option<(SocketAddr, SocketAddr)> {
    let words: Vec<&str> = variable.split_whitespace().collect();
    let [client, client_port, server, server_port] = words.try_into().ok()?;
    let end = |address: &str, port: &str| -> Option<SocketAddr> {
        // A link-local address has its interface behind it; on the wire it has none.
        let address: IpAddr = address.split('%').next()?.parse().ok()?;
        Some(SocketAddr::new(address.to_canonical(), port.parse().ok()?))
    };
    let ends = (end(client, client_port)?, end(server, server_port)?);
    (ends.0.is_ipv4() == ends.1.is_ipv4()).then_some(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_there_and_not_usual() {
        let all = interfaces().expect("the kernel answers");
        let own =
            all.iter().find(|interface| interface.name == "lo").expect("every namespace has a loopback");
        assert!(!own.usual && own.ethernet && own.index == 1);
    }

    #[test]
    fn reads_what_ssh_says_of_its_connection() {
        let ends = |text| own_connection(text).map(|(one, other)| (one.to_string(), other.to_string()));
        let pair = |one: &str, other: &str| Some((one.to_string(), other.to_string()));
        assert_eq!(ends("192.0.2.1 51000 192.0.2.2 22"), pair("192.0.2.1:51000", "192.0.2.2:22"));
        assert_eq!(ends("fe80::1%eth0 51000 fe80::2%eth0 22"), pair("[fe80::1]:51000", "[fe80::2]:22"));
        assert_eq!(ends("::ffff:192.0.2.1 7 192.0.2.2 22"), pair("192.0.2.1:7", "192.0.2.2:22"));
        for variable in ["", "UNKNOWN 65535 UNKNOWN 65535", "192.0.2.1 51000 192.0.2.2", "::1 1 192.0.2.1 2"]
        {
            assert_eq!(ends(variable), None);
        }
    }
}
