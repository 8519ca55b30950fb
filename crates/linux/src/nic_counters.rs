//! What a NIC itself has counted of frames (`ETHTOOL_MSG_STATS_GET`, Linux 5.13): its histogram of their sizes (RMON, RFC
//! 2819 section 5), and the frames of its MAC (IEEE 802.3 clause 30.3.1). These are sizes on the wire, whatever the host
//! segments or merges. Layout: `linux/ethtool_netlink.h`; few drivers fill it in.

use crate::error::Result;
use crate::genetlink;
use crate::netlink::{Message, Socket, attribute, attribute_u32, attributes};

const STATS_GET: u8 = 32;
/// `ETHTOOL_A_STATS_HEADER`, `_GROUPS` and `_GRP`.
const HEADER: u16 = 2;
const GROUPS: u16 = 3;
const GROUP: u16 = 4;
/// `ETHTOOL_A_HEADER_DEV_NAME`.
const DEVICE_NAME: u16 = 2;
/// `ETHTOOL_A_BITSET_NOMASK`, `_SIZE` and `_VALUE`.
const BITSET_NO_MASK: u16 = 1;
const BITSET_SIZE: u16 = 2;
const BITSET_VALUE: u16 = 4;
/// Bits of groups, which are also their ids: `ETHTOOL_STATS_ETH_MAC` and `ETHTOOL_STATS_RMON`.
const MAC: u32 = 1;
const RMON: u32 = 3;
const GROUP_COUNT: u32 = 4;
/// `ETHTOOL_A_STATS_GRP_ID`, `_STAT`, `_HIST_RX`, `_HIST_TX` and what is in a range.
const ID: u16 = 2;
const STATISTIC: u16 = 4;
const RECEIVED: u16 = 5;
const SENT: u16 = 6;
const LOW: u16 = 7;
const HIGH: u16 = 8;
const VALUE: u16 = 9;
/// `ETHTOOL_A_STATS_ETH_MAC_2_TX_PKT` and `_5_RX_PKT`.
const MAC_SENT: u16 = 0;
const MAC_RECEIVED: u16 = 3;

/// Frames of a range of sizes since the driver was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeRange {
    /// The smallest frame in it, with header and FCS.
    pub least_bytes: u32,
    /// The largest.
    pub most_bytes: u32,
    /// How many.
    pub frames: u64,
}

/// What a NIC has counted; empty and `None` where its driver does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NicCounters {
    /// Sizes of frames received.
    pub received: Vec<SizeRange>,
    /// Sizes of frames sent.
    pub sent: Vec<SizeRange>,
    /// Frames received without error, as the MAC counts them.
    pub received_frames: Option<u64>,
    /// Frames sent without error.
    pub sent_frames: Option<u64>,
}

/// Reads the counters of an interface. `EOPNOTSUPP` if its driver has none of them, `ENOENT` before Linux 5.6.
pub fn nic_counters(interface: &str) -> Result<NicCounters> {
    let operation = format!("read the frame counters of the NIC {interface}");
    let socket = Socket::open(libc::NETLINK_GENERIC)?;
    let family = genetlink::family(&socket, "ethtool", &operation)?;
    let mut ask = Message::new(family, 0, &[STATS_GET, 1, 0, 0]);
    ask.nest(HEADER, |header| {
        header.text(DEVICE_NAME, interface);
    });
    ask.nest(GROUPS, |groups| {
        let mask: u32 = 1 << MAC | 1 << RMON;
        groups.attribute(BITSET_NO_MASK, &[]).u32(BITSET_SIZE, GROUP_COUNT).u32(BITSET_VALUE, mask);
    });
    let answers = socket.request(ask, &operation)?;
    let counters =
        answers.iter().map(|body| parse(body)).find(|counters| *counters != NicCounters::default());
    counters.ok_or_else(|| crate::OsError::errno(operation, libc::EOPNOTSUPP))
}

/// Reads an answer. What is malformed or of other groups is left out.
pub fn parse(body: &[u8]) -> NicCounters {
    let mut counters = NicCounters::default();
    // Behind `struct genlmsghdr`.
    for (_, group) in attributes(body.get(4..).unwrap_or(&[])).filter(|(kind, _)| *kind == GROUP) {
        match attribute_u32(group, ID) {
            Some(MAC) => read_mac(group, &mut counters),
            Some(RMON) => read_rmon(group, &mut counters),
            _ => {}
        }
    }
    counters
}

fn read_mac(group: &[u8], counters: &mut NicCounters) {
    for (_, statistic) in attributes(group).filter(|(kind, _)| *kind == STATISTIC) {
        // The one attribute inside has the number of what was counted as its type, from 0 on.
        match attributes(statistic).next() {
            Some((MAC_SENT, value)) => counters.sent_frames = long(value),
            Some((MAC_RECEIVED, value)) => counters.received_frames = long(value),
            _ => {}
        }
    }
}

fn read_rmon(group: &[u8], counters: &mut NicCounters) {
    for (kind, range) in attributes(group) {
        let list = match kind {
            RECEIVED => &mut counters.received,
            SENT => &mut counters.sent,
            _ => continue,
        };
        list.extend(size_range(range));
    }
}

/// A range; `None` unless it is whole and its ends are in order.
fn size_range(bytes: &[u8]) -> Option<SizeRange> {
    let (least_bytes, most_bytes) = (attribute_u32(bytes, LOW)?, attribute_u32(bytes, HIGH)?);
    let frames = long(attribute(bytes, VALUE)?)?;
    (least_bytes <= most_bytes).then_some(SizeRange { least_bytes, most_bytes, frames })
}

fn long(value: &[u8]) -> Option<u64> {
    value.get(..8)?.try_into().ok().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The answer of a kernel, put together as `net/ethtool/stats.c` does.
    fn answer(counters: &NicCounters) -> Vec<u8> {
        let mut message = Message::new(0, 0, &[38, 1, 0, 0]);
        message.nest(2, |header| {
            header.u32(1, 7).text(DEVICE_NAME, "eth0");
        });
        let long = |value: u64| value.to_ne_bytes();
        message.nest(GROUP, |group| {
            group.u32(ID, MAC).u32(3, 17);
            for (kind, value) in [(MAC_SENT, counters.sent_frames), (MAC_RECEIVED, counters.received_frames)]
            {
                if let Some(value) = value {
                    group.nest(STATISTIC, |nested| {
                        nested.attribute(kind, &long(value));
                    });
                }
            }
            // FCS errors are not asked for.
            group.nest(STATISTIC, |nested| {
                nested.attribute(4, &long(99));
            });
        });
        message.nest(GROUP, |group| {
            group.u32(ID, RMON).u32(3, 19);
            group.nest(STATISTIC, |nested| {
                nested.attribute(0, &long(3));
            });
            for (kind, ranges) in [(RECEIVED, &counters.received), (SENT, &counters.sent)] {
                for range in ranges {
                    group.nest(kind, |nested| {
                        nested.u32(LOW, range.least_bytes).u32(HIGH, range.most_bytes);
                        nested.attribute(VALUE, &long(range.frames));
                    });
                }
            }
        });
        message.body().to_vec()
    }

    fn range() -> impl Strategy<Value = SizeRange> {
        (0u32..20_000, 0u32..20_000, any::<u64>()).prop_map(|(one, other, frames)| SizeRange {
            least_bytes: one.min(other),
            most_bytes: one.max(other),
            frames,
        })
    }

    fn counters() -> impl Strategy<Value = NicCounters> {
        let ranges = || prop::collection::vec(range(), 0..10);
        let frames = || proptest::option::of(any::<u64>());
        (ranges(), ranges(), frames(), frames()).prop_map(|(received, sent, received_frames, sent_frames)| {
            NicCounters { received, sent, received_frames, sent_frames }
        })
    }

    proptest! {
        #[test]
        fn what_a_kernel_says_reads_back(counters in counters()) {
            prop_assert_eq!(parse(&answer(&counters)), counters);
        }

        #[test]
        fn what_was_cut_is_left_out(counters in counters(), place in any::<prop::sample::Index>()) {
            let whole = answer(&counters);
            let parsed = parse(&whole[..place.index(whole.len())]);
            // A group that was cut is no attribute, so that whole ranges are there or none.
            prop_assert!(parsed.received.is_empty() || parsed.received == counters.received);
            prop_assert!(parsed.sent.is_empty() || parsed.sent == counters.sent);
        }
    }

    #[test]
    fn ranges_whose_ends_are_not_in_order_are_none() {
        let range = SizeRange { least_bytes: 128, most_bytes: 127, frames: 5 };
        let counters = parse(&answer(&NicCounters { received: vec![range], ..NicCounters::default() }));
        assert!(counters.received.is_empty());
    }

    #[test]
    fn a_loopback_has_no_frames_and_a_name_that_is_none_is_told() {
        let refused = nic_counters("lo").expect_err("a loopback has no MAC").code();
        assert!([libc::EOPNOTSUPP, libc::ENOENT].contains(&refused), "{refused}");
        let refused = nic_counters("no-such-if").expect_err("there is none").code();
        assert!([libc::ENODEV, libc::ENOENT].contains(&refused), "{refused}");
    }
}
