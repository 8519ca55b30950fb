//! The largest aggregates of an interface: what the stack builds for it (GSO) and merges from it (GRO), per IP version.
//! Sizes above 64 KiB are BIG TCP. Layout: `linux/if_link.h`.

use crate::error::{OsError, Result};
use crate::netlink::{Message, Socket, attribute_u32};
use crate::rtnetlink::{self, link_header};

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const GSO_MAX_SIZE: u16 = 41;
const GRO_MAX_SIZE: u16 = 58;
const TSO_MAX_SIZE: u16 = 59;
const GSO_IPV4_MAX_SIZE: u16 = 63;
const GRO_IPV4_MAX_SIZE: u16 = 64;
/// `struct ifinfomsg`, in bytes.
const LINK_BYTES: usize = 16;

/// The sizes of an interface in bytes; `None` where this kernel has no such setting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AggregateSizes {
    /// `gso_max_size`, for IPv6 alone where `gso_ipv4_bytes` is there.
    pub gso_bytes: Option<u32>,
    /// `gro_max_size`, likewise.
    pub gro_bytes: Option<u32>,
    /// `gso_ipv4_max_size` (Linux 6.3).
    pub gso_ipv4_bytes: Option<u32>,
    /// `gro_ipv4_max_size` (Linux 6.3).
    pub gro_ipv4_bytes: Option<u32>,
    /// `tso_max_size`: the largest aggregate that the device takes.
    pub tso_maximum_bytes: Option<u32>,
}

/// One direction, sent or received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// What the stack builds (GSO).
    Sent,
    /// What it merges (GRO).
    Received,
}

impl Direction {
    /// The attributes of IPv6 and IPv4.
    fn attributes(self) -> (u16, u16) {
        match self {
            Self::Sent => (GSO_MAX_SIZE, GSO_IPV4_MAX_SIZE),
            Self::Received => (GRO_MAX_SIZE, GRO_IPV4_MAX_SIZE),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Sent => "gso_max_size",
            Self::Received => "gro_max_size",
        }
    }
}

impl AggregateSizes {
    /// The sizes of one direction: IPv6 (or both, on an older kernel), then IPv4.
    pub fn of(&self, direction: Direction) -> (Option<u32>, Option<u32>) {
        match direction {
            Direction::Sent => (self.gso_bytes, self.gso_ipv4_bytes),
            Direction::Received => (self.gro_bytes, self.gro_ipv4_bytes),
        }
    }
}

/// Reads the sizes of an interface.
pub fn read(interface: &str) -> Result<AggregateSizes> {
    let mut message = Message::new(RTM_GETLINK, 0, &link_header(0, 0, 0));
    message.text(libc::IFLA_IFNAME, interface);
    let operation = format!("read the aggregates of {interface}");
    let answers = Socket::route()?.request(message, &operation)?;
    answers.iter().find_map(|body| parse(body)).ok_or_else(|| OsError::errno(operation, libc::ENODEV))
}

/// Reads one answer about a link; `None` if it is damaged.
pub fn parse(body: &[u8]) -> Option<AggregateSizes> {
    let attributes = body.get(LINK_BYTES..)?;
    let size = |kind| attribute_u32(attributes, kind);
    Some(AggregateSizes {
        gso_bytes: size(GSO_MAX_SIZE),
        gro_bytes: size(GRO_MAX_SIZE),
        gso_ipv4_bytes: size(GSO_IPV4_MAX_SIZE),
        gro_ipv4_bytes: size(GRO_IPV4_MAX_SIZE),
        tso_maximum_bytes: size(TSO_MAX_SIZE),
    })
}

/// Sets the sizes of one direction. IPv4 comes second, in a message of its own: a size of IPv6 of at most 64 KiB sets
/// IPv4's, too. A kernel without a size of its own for IPv4 takes none.
pub fn set(interface: &str, direction: Direction, ipv6: u32, ipv4: Option<u32>) -> Result<()> {
    let index = rtnetlink::link(interface)?.index;
    let (kind6, kind4) = direction.attributes();
    for (kind, bytes, version) in [(kind6, Some(ipv6), ""), (kind4, ipv4, " for IPv4")] {
        let Some(bytes) = bytes else { continue };
        let mut message = Message::new(RTM_NEWLINK, 0, &link_header(index, 0, 0));
        message.u32(kind, bytes);
        let operation = format!("set {} of {interface} to {bytes}{version}", direction.word());
        Socket::route()?.request(message, &operation)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Network;
    use crate::sched;
    use proptest::prelude::*;

    fn on_veth(test: impl FnOnce() -> Result<()> + Send) -> Option<()> {
        let outcome = Network::fresh().and_then(|network| {
            network.run(|| {
                rtnetlink::create_veth("fgbig0", "fgbig1", sched::thread_id() as u32)?;
                test()
            })
        });
        match outcome {
            Ok(()) => Some(()),
            Err(error) => crate::trial::not_run("network namespaces and veth", &error),
        }
    }

    #[test]
    fn each_size_reads_back_and_ipv4_survives_ipv6() {
        on_veth(|| {
            let before = read("fgbig0")?;
            if before.gso_ipv4_bytes.is_none() {
                eprintln!("not run: needs Linux 6.3");
                return Ok(());
            }
            assert!(before.tso_maximum_bytes >= Some(196_608), "{before:?}");
            set("fgbig0", Direction::Sent, 180_000, Some(150_000))?;
            set("fgbig0", Direction::Received, 65_536, Some(120_000))?;
            let now = read("fgbig0")?;
            assert_eq!(now.of(Direction::Sent), (Some(180_000), Some(150_000)));
            assert_eq!(now.of(Direction::Received), (Some(65_536), Some(120_000)));
            set("fgbig0", Direction::Sent, 600_000, None).expect_err("above the device's limit");
            assert_eq!(read("fgbig0")?, now);
            Ok(())
        });
    }

    proptest! {
        #[test]
        fn damaged_answers_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn sizes_read_back(sizes: [Option<u32>; 5]) {
            let mut body = vec![0; LINK_BYTES];
            let kinds = [GSO_MAX_SIZE, GRO_MAX_SIZE, GSO_IPV4_MAX_SIZE, GRO_IPV4_MAX_SIZE, TSO_MAX_SIZE];
            for (kind, bytes) in kinds.into_iter().zip(sizes) {
                let Some(bytes) = bytes else { continue };
                body.extend(8u16.to_ne_bytes());
                body.extend(kind.to_ne_bytes());
                body.extend(bytes.to_ne_bytes());
            }
            let reading = parse(&body).expect("it is whole");
            prop_assert_eq!(reading.of(Direction::Sent), (sizes[0], sizes[2]));
            prop_assert_eq!(reading.of(Direction::Received), (sizes[1], sizes[3]));
            prop_assert_eq!(reading.tso_maximum_bytes, sizes[4]);
            prop_assert_eq!(parse(&body[..LINK_BYTES - 1]), None);
        }
    }
}
