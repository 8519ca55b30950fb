//! On which ports this process may listen: where a firewall stands between hosts, its keeper says.

use crate::error::{OsError, Result};
use std::str::FromStr;

/// Ports from the first to the last; the kernel's choice unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// Any that the kernel chooses.
    pub const ANY: Self = Self { first: 0, last: 0 };

    /// What `open` makes of the first port that is free.
    pub fn open<T>(self, open: impl Fn(u16) -> Result<T>) -> Result<T> {
        for port in self.first..=self.last {
            match open(port) {
                Err(error) if error.code() == libc::EADDRINUSE => {}
                done => return done,
            }
        }
        let operation =
            format!("listen on one of the ports {}-{}, all of which are in use", self.first, self.last);
        Err(OsError::errno(operation, libc::EADDRINUSE))
    }
}

impl FromStr for PortRange {
    type Err = String;

    /// Of LOW-HIGH, or of one port.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        match (low.parse(), high.parse()) {
            (Ok(first), Ok(last)) if 1 <= first && first <= last => Ok(Self { first, last }),
            _ => Err(format!("found {text:?}, expected ports such as 40000-40099")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp;
    use std::net::{IpAddr, Ipv4Addr};

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn range(text: &str) -> PortRange {
        text.parse().expect("a range")
    }

    #[test]
    fn reads_ranges_and_single_ports() {
        assert_eq!(range("40000-40099"), PortRange { first: 40_000, last: 40_099 });
        assert_eq!(range("65535"), PortRange { first: 65_535, last: 65_535 });
        for text in ["", "-", "0-10", "10-9", "1-65536", "a-b", "1-2-3"] {
            assert!(text.parse::<PortRange>().is_err(), "{text}");
        }
    }

    #[test]
    fn takes_the_first_that_is_free_and_says_when_none_is() {
        let listener = tcp::listen(HERE, PortRange::ANY, None).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let ports = range(&port.to_string());
        let refused = tcp::listen(HERE, ports, None).expect_err("it is taken").to_string();
        assert!(refused.contains(&format!("ports {port}-{port}, all of which are in use")), "{refused}");
        if port < u16::MAX {
            let two = range(&format!("{port}-{}", port.saturating_add(20)));
            let next = tcp::listen(HERE, two, None).expect("one of twenty");
            assert!(next.local_addr().expect("an address").port() > port);
        }
    }
}
