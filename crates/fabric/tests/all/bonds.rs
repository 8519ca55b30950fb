//! Bonds: which member a flow takes out of a host, and into one.

use std::collections::BTreeMap;

use crate::common::{Log, aggregate, gigabit, nanoseconds};
use framegauge_fabric::{
    Aggregate, BondHash, ConfigError, Fabric, FabricConfig, Graph, HostIndex, Impairments, NicConfig,
    PortConfig, QueueConfig, Routing,
};
use framegauge_frames::Picoseconds;

fn bonded(hosts: usize, nics: u16, hash: BondHash, seed: u64) -> FabricConfig {
    let names: Vec<String> = (1..=hosts).map(|host| format!("h{host}")).collect();
    let graph = Graph::bonded_rack(&names, nics, hash).unwrap();
    let port = |from, to| PortConfig {
        from,
        to,
        rate: gigabit(),
        delay: nanoseconds(1_000),
        queue: QueueConfig::taildrop(u64::MAX),
        output_mtu: None,
        input_mtu: None,
        impairments: Impairments::default(),
    };
    graph.fabric(Routing { seed, ..Routing::default() }, NicConfig::default(), port).unwrap()
}

/// A frame of each of so many flows, numbered by them, from host 0 to host `to`: by flow the end that it came to.
fn arrivals(config: &FabricConfig, flows: u32, to: u16) -> BTreeMap<u32, HostIndex> {
    let mut fabric = Fabric::new(config).unwrap();
    let mut log = Log::default();
    for flow in 0..flows {
        let exit = fabric.outgoing(HostIndex(0), HostIndex(to), flow.into());
        fabric.transmit(Picoseconds::ZERO, exit, aggregate(flow, 1, 60, to));
    }
    fabric.advance(nanoseconds(1_000_000_000), &mut log);
    log.delivered.iter().map(|&(_, host, flow, _)| (flow, host)).collect()
}

/// Pearson's statistic of counts that are to be equal.
fn chi_square(counts: &[u64]) -> f64 {
    let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    counts.iter().map(|count| (*count as f64 - mean).powi(2) / mean).sum()
}

fn counts(of: impl Iterator<Item = usize>, kinds: usize) -> Vec<u64> {
    let mut counts = vec![0; kinds];
    of.for_each(|kind| counts[kind] += 1);
    counts
}

/// Above these a right one is once in a thousand times (chi-square of 1, 3, 7 and 63 degrees of freedom).
const LIMITS: [(usize, f64); 4] = [(2, 10.83), (4, 16.27), (8, 24.32), (64, 103.44)];

fn limit(kinds: usize) -> f64 {
    LIMITS.iter().find(|(known, _)| *known == kinds).unwrap().1
}

#[test]
fn flows_spread_evenly_over_the_members_of_both_ends() {
    for nics in [2, 4, 8] {
        let config = bonded(2, nics, BondHash::Ports, 5);
        let fabric = Fabric::new(&config).unwrap();
        let members = usize::from(nics);
        let into = arrivals(&config, 20_000, nics);
        assert_eq!(into.len(), 20_000);
        let pairs = into.iter().map(|(flow, host)| {
            let out = usize::from(fabric.outgoing(HostIndex(0), HostIndex(nics), u64::from(*flow)).0);
            (out, usize::from(host.0) - members)
        });
        let pairs: Vec<(usize, usize)> = pairs.collect();
        for each in [
            counts(pairs.iter().map(|pair| pair.0), members),
            counts(pairs.iter().map(|pair| pair.1), members),
        ] {
            assert!(chi_square(&each) < limit(members), "{each:?}");
        }
        // One end's choice says nothing of the other's.
        let both = counts(pairs.iter().map(|(out, into)| out * members + into), members * members);
        if let Some((_, most)) = LIMITS.iter().find(|(kinds, _)| *kinds == members * members) {
            assert!(chi_square(&both) < *most, "{both:?}");
        }
    }
}

/// Over seeds, one flow: the blocks of a study.
#[test]
fn seeds_spread_a_flow_evenly() {
    for hash in [BondHash::Ports, BondHash::Addresses] {
        let fabrics = (0..4_000).map(|seed| Fabric::new(&bonded(2, 4, hash, seed)).unwrap());
        let members = fabrics.map(|fabric| usize::from(fabric.outgoing(HostIndex(0), HostIndex(4), 77).0));
        let each = counts(members, 4);
        assert!(chi_square(&each) < limit(4), "{hash:?}: {each:?}");
    }
}

#[test]
fn by_addresses_pairs_of_hosts_spread_evenly_and_their_flows_stay_together() {
    let (hosts, nics) = (80_u16, 2);
    let config = bonded(hosts.into(), nics, BondHash::Addresses, 3);
    let fabric = Fabric::new(&config).unwrap();
    let mut chosen = Vec::new();
    for one in 0..hosts {
        for other in (0..hosts).filter(|other| *other != one) {
            let [from, to] = [one, other].map(|host| HostIndex(host * nics));
            let members: Vec<HostIndex> = (0..16).map(|flow| fabric.outgoing(from, to, flow)).collect();
            assert!(members.iter().all(|member| *member == members[0]));
            chosen.push(usize::from(members[0].0 - from.0));
        }
    }
    let each = counts(chosen.into_iter(), 2);
    assert!(chi_square(&each) < limit(2), "{each:?}");
    // Into a host, too, whichever member they left by.
    let into = arrivals(&config, 100, nics * 7);
    assert_eq!(into.values().collect::<std::collections::BTreeSet<_>>().len(), 1);
}

/// By which member a frame left is not asked, nor which member of the destination it was for.
#[test]
fn a_switch_looks_at_the_flow_alone() {
    for hash in [BondHash::Ports, BondHash::Addresses] {
        let config = bonded(3, 4, hash, 9);
        for flow in 0..50 {
            let mut fabric = Fabric::new(&config).unwrap();
            let mut log = Log::default();
            for exit in 0..4 {
                for to in 8..12 {
                    let frame = Aggregate { flow, ..aggregate(u32::from(exit * 4 + to), 1, 60, to) };
                    fabric.transmit(Picoseconds::ZERO, HostIndex(exit), frame);
                }
            }
            fabric.advance(nanoseconds(1_000_000_000), &mut log);
            assert_eq!(log.delivered.len(), 16);
            assert!(log.delivered.iter().all(|(_, host, ..)| *host == log.delivered[0].1), "{hash:?} {flow}");
            assert!((8..12).contains(&log.delivered[0].1.0));
        }
    }
}

#[test]
fn frames_of_a_flow_keep_their_order() {
    let config = bonded(2, 8, BondHash::Ports, 1);
    let mut fabric = Fabric::new(&config).unwrap();
    let mut log = Log::default();
    for number in 0..400 {
        let flow = u64::from(number % 20);
        let exit = fabric.outgoing(HostIndex(0), HostIndex(8), flow);
        let frame = Aggregate { flow, ..aggregate(number, 1, 60 + 40 * (number % 7), 8) };
        fabric.transmit(nanoseconds(u64::from(number)), exit, frame);
    }
    fabric.advance(nanoseconds(1_000_000_000), &mut log);
    for flow in 0..20 {
        let of_flow = log.delivered.iter().map(|delivered| delivered.2).filter(|number| number % 20 == flow);
        assert!(of_flow.collect::<Vec<_>>().is_sorted());
    }
    assert_eq!(log.delivered.len(), 400);
}

#[test]
fn a_bond_of_hosts_that_do_not_follow_each_other_is_refused() {
    let mut config = bonded(2, 2, BondHash::Ports, 1);
    let bonds = config.bonds.as_mut().unwrap();
    bonds.members[1] = (HostIndex(1), 2);
    assert_eq!(Fabric::new(&config).unwrap_err(), ConfigError::Bond { host: 0 });
    config.bonds.as_mut().unwrap().members.pop();
    let found = ConfigError::Count { what: "members of bonds", found: 3, expected: "one a host" };
    assert_eq!(Fabric::new(&config).unwrap_err(), found);
}

#[test]
fn a_bond_has_one_subnet() {
    let names = ["h1".to_owned(), "h2".to_owned()];
    assert_eq!(Graph::bonded_rack(&names, 4, BondHash::Ports).unwrap().ends().subnets(), 1);
    assert_eq!(Graph::rack(&names, 4).unwrap().ends().subnets(), 4);
    assert!(Graph::bonded_rack(&names, 1, BondHash::Ports).is_err());
}
