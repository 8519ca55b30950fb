//! Which share of a capture has which connections: each new one goes to the share with the fewest packets so far.
//!
//! A hash alone gives one of two shares a quarter more of 120 connections than the other. Connections are kept by buckets of
//! their ends, so that a packet takes one look, whatever the number of connections. Whoever sees the same packets in the same
//! order divides them alike.

use framegauge_diagnosis::bucket;
use std::net::SocketAddr;

/// So many that some hundred connections have one each, and all of them fit into a core's own cache.
const BUCKETS: usize = 1 << 12;
const NOBODY: u16 = u16::MAX;

/// The division, as far as packets were seen.
#[derive(Debug)]
pub(super) struct Division {
    owners: Box<[u16; BUCKETS]>,
    /// Of each share so far.
    packets: Vec<u64>,
}

impl Division {
    /// Among so many shares, of which there are no more than a number of 16 bits can tell.
    pub(super) fn among(shares: usize) -> Division {
        let shares = shares.clamp(1, usize::from(NOBODY));
        Division { owners: Box::new([NOBODY; BUCKETS]), packets: vec![0; shares] }
    }

    /// The share of a packet between these ends; those of no connection are the first share's.
    #[inline]
    pub(super) fn take(&mut self, ends: Option<(SocketAddr, SocketAddr)>) -> usize {
        let Some((one, other)) = ends else { return 0 };
        let bucket = bucket(one, other, BUCKETS);
        let mut owner = self.owners[bucket];
        if owner == NOBODY {
            owner = self.settle(bucket);
        }
        self.packets[usize::from(owner)] += 1;
        usize::from(owner)
    }

    #[cold]
    fn settle(&mut self, bucket: usize) -> u16 {
        let fewest = (0..self.packets.len()).min_by_key(|share| self.packets[*share]).unwrap_or(0);
        self.owners[bucket] = fewest as u16;
        self.owners[bucket]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn ends(port: u16) -> (SocketAddr, SocketAddr) {
        let end = |host, port| SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), port));
        (end(1, port), end(2, 5201))
    }

    #[test]
    fn connections_that_are_alike_are_divided_alike() {
        for shares in [2, 3, 8] {
            let mut division = Division::among(shares);
            let mut packets = vec![0; shares];
            for round in 0..1000 {
                for connection in 0..120 {
                    // Ports as a kernel gives them, and both directions.
                    let (one, other) = ends(40_000 + 2 * connection);
                    let ends = if round % 3 == 0 { (other, one) } else { (one, other) };
                    packets[division.take(Some(ends))] += 1;
                }
            }
            let (least, most) = (packets.iter().min().unwrap(), packets.iter().max().unwrap());
            // Connections that share a bucket go together: of 120 in 4,096 there are two or so.
            assert!(most - least <= 4_000, "{packets:?}");
        }
    }

    #[test]
    fn a_connection_stays_where_it_is() {
        let mut division = Division::among(2);
        let first = division.take(Some(ends(1)));
        for port in 2..100 {
            division.take(Some(ends(port)));
        }
        let (one, other) = ends(1);
        assert_eq!((division.take(Some((other, one))), division.take(None)), (first, 0));
    }
}
