//! The tables in which a kernel keeps the Ethernet addresses of neighbours, and how full they are. All network
//! namespaces of a kernel share one table of each IP version. Layout: `linux/neighbour.h`.

use crate::error::Result;
use crate::netlink::{DUMP, Message, Socket, attribute, attribute_u32};

const RTM_GETNEIGH: u16 = 30;
const RTM_GETNEIGHTBL: u16 = 66;
const NDTA_THRESH3: u16 = 4;
const NDTA_CONFIG: u16 = 5;
const NDTA_STATS: u16 = 7;
/// `struct ndtmsg` and `struct ndmsg`, in bytes.
const TABLE_BYTES: usize = 4;
const NEIGHBOUR_BYTES: usize = 12;
/// Where `ndtc_entries` is in `struct ndt_config`, and `ndts_table_fulls` in `struct ndt_stats`.
const ENTRIES_PLACE: usize = 4;
const REFUSED_PLACE: usize = 80;
const PERMANENT: u16 = 0x80;

/// A table of one IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeighbourTable {
    /// Of the IP protocol: 4 or 6.
    pub version: u8,
    /// Entries of all network namespaces.
    pub entries: u32,
    /// How many it takes, without permanent ones (`gc_thresh3`).
    pub most: u32,
    /// How often it had no room since the kernel was started; `None` before Linux 4.3, which does not count it.
    pub refused: Option<u64>,
}

/// Those of this kernel; where there are many interfaces, it may tell one of them more than once.
pub fn read() -> Result<Vec<NeighbourTable>> {
    let message = Message::new(RTM_GETNEIGHTBL, DUMP, &[0; TABLE_BYTES]);
    let answers = Socket::route()?.request(message, "list the neighbour tables")?;
    Ok(answers.iter().filter_map(|body| parse(body)).collect())
}

/// Reads one answer; `None` if it is about one interface only, of another protocol, or damaged.
pub fn parse(body: &[u8]) -> Option<NeighbourTable> {
    let attributes = body.get(TABLE_BYTES..)?;
    let version = match i32::from(body[0]) {
        libc::AF_INET => 4,
        libc::AF_INET6 => 6,
        _ => return None,
    };
    let config = attribute(attributes, NDTA_CONFIG)?;
    let entries = config.get(ENTRIES_PLACE..ENTRIES_PLACE + 4)?.try_into().ok().map(u32::from_ne_bytes)?;
    let refused = attribute(attributes, NDTA_STATS)
        .and_then(|stats| stats.get(REFUSED_PLACE..REFUSED_PLACE + 8)?.try_into().ok())
        .map(u64::from_ne_bytes);
    Some(NeighbourTable { version, entries, most: attribute_u32(attributes, NDTA_THRESH3)?, refused })
}

/// How many neighbours of the calling thread's network are permanent, of an IP version: they need no room.
pub fn permanent(version: u8) -> Result<usize> {
    let family = if version == 4 { libc::AF_INET } else { libc::AF_INET6 } as u8;
    let mut header = [0u8; NEIGHBOUR_BYTES];
    header[0] = family;
    let answers =
        Socket::route()?.request(Message::new(RTM_GETNEIGH, DUMP, &header), "list the neighbours")?;
    Ok(answers.iter().filter(|body| is_permanent(body, family)).count())
}

fn is_permanent(body: &[u8], family: u8) -> bool {
    let state = body.get(8..10).and_then(|state| state.try_into().ok()).map_or(0, u16::from_ne_bytes);
    body.first() == Some(&family) && state & PERMANENT != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_kernel_has_both_tables_and_they_take_some() {
        let tables = read().expect("the kernel answers");
        let of = |version: u8| tables.iter().find(|table| table.version == version).expect("its table");
        assert!(of(4).most > 0 && of(6).most > 0);
    }

    #[test]
    fn only_what_was_entered_for_good_counts_as_permanent() {
        // That takes root.
        let Ok(network) = crate::namespace::Network::fresh() else { return };
        let counted = network.run(|| {
            crate::rtnetlink::add_neighbours("lo", &[([192, 0, 2, 1].into(), [2, 0, 0, 0, 0, 2])])?;
            permanent(4)
        });
        assert_eq!(counted.expect("a thread"), 1);
    }

    fn table(family: u8, entries: u32, most: u32, stats: &[u8]) -> Vec<u8> {
        let mut body = vec![family, 0, 0, 0];
        let mut add = |kind: u16, value: &[u8]| {
            body.extend((4 + value.len() as u16).to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(value);
        };
        let config = [[0; 4], entries.to_ne_bytes(), [0; 4]].concat();
        add(NDTA_THRESH3, &most.to_ne_bytes());
        add(NDTA_CONFIG, &config);
        add(NDTA_STATS, stats);
        body
    }

    #[test]
    fn a_table_reads_back_and_an_old_kernel_counts_no_refusals() {
        let inet = libc::AF_INET as u8;
        let mut stats = vec![0; REFUSED_PLACE];
        let old = parse(&table(inet, 3, 1024, &stats)).expect("a table");
        assert_eq!(old, NeighbourTable { version: 4, entries: 3, most: 1024, refused: None });
        stats.extend(9u64.to_ne_bytes());
        assert_eq!(parse(&table(inet, 3, 1024, &stats)).expect("a table").refused, Some(9));
        assert_eq!(parse(&table(libc::AF_DECnet as u8, 3, 1024, &stats)), None);
    }

    proptest! {
        #[test]
        fn damaged_answers_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..160)) {
            let _ = (parse(&bytes), is_permanent(&bytes, 2));
        }
    }
}
