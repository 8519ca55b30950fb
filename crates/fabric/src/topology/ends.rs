//! Whose the fabric's ends are, and how packets get from one to another: subnets, and the routers between them.

use std::collections::HashSet;

use super::{Graph, TopologyError};

/// Whose NIC an end is, by its position among the hosts or the routers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// A host's.
    Host(usize),
    /// A router's: it takes packets on from one of its ends to another.
    Router(usize),
}

/// By which of its own ends somebody sends, and to which end of the same subnet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leg {
    /// The end that sends.
    pub from: usize,
    /// The end that it sends to: the destination, or a router's.
    pub to: usize,
}

/// Whose each end is, and the ways between subnets: through the fewest routers, of equal ones the first.
///
/// A subnet is what switches join, of each host one NIC: the second NIC that a host has there is in a subnet of its own,
/// with the second ones of others, over the same wires. NICs that are bonded are in one subnet: they share an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ends {
    owners: Vec<(Owner, String)>,
    /// By host, and by router: its ends, in order.
    of_hosts: Vec<Vec<usize>>,
    of_routers: Vec<Vec<usize>>,
    /// By end.
    subnets: Vec<usize>,
    count: usize,
    /// By destination and subnet.
    ways: Vec<Vec<Option<Way>>>,
}

/// From a subnet to another, or to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Way {
    /// So many routers are between.
    routers: u32,
    /// The end of the first of them.
    gateway: Option<usize>,
}

impl Ends {
    pub(super) fn of(graph: &Graph) -> Ends {
        let owners: Vec<(Owner, String)> =
            graph.ends.iter().map(|end| (end.owner, end.owner_name.clone())).collect();
        let segments = labels(graph.ends.len() + graph.switches.len(), graph.links.iter().copied());
        let mut known: Vec<(usize, usize)> = Vec::new();
        let mut subnets = Vec::with_capacity(owners.len());
        let (of_hosts, of_routers) = by_owner(&owners);
        for end in 0..owners.len() {
            let own = match owners[end].0 {
                Owner::Host(host) => &of_hosts[host],
                Owner::Router(router) => &of_routers[router],
            };
            let before = own.iter().filter(|other| **other < end && segments[**other] == segments[end]);
            let key = (segments[end], if graph.bond.is_some() { 0 } else { before.count() });
            subnets.push(known.iter().position(|other| *other == key).unwrap_or_else(|| {
                known.push(key);
                known.len() - 1
            }));
        }
        let mut ends = Ends { owners, of_hosts, of_routers, subnets, count: known.len(), ways: Vec::new() };
        ends.ways = (0..ends.count).map(|destination| ends.ways_to(destination)).collect();
        ends
    }

    /// Breadth first from the destination, so that the first way found has the fewest routers.
    fn ways_to(&self, destination: usize) -> Vec<Option<Way>> {
        let mut ways: Vec<Option<Way>> = vec![None; self.count];
        ways[destination] = Some(Way { routers: 0, gateway: None });
        for routers in 1.. {
            let mut further = false;
            for router in 0..self.owners.len() {
                let is_near = ways[self.subnets[router]].is_some_and(|way| way.routers + 1 == routers);
                if !is_near || matches!(self.owners[router].0, Owner::Host(_)) {
                    continue;
                }
                for &end in self.ends_of(self.owners[router].0) {
                    if ways[self.subnets[end]].is_none() {
                        ways[self.subnets[end]] = Some(Way { routers, gateway: Some(end) });
                        further = true;
                    }
                }
            }
            if !further {
                break;
            }
        }
        ways
    }

    /// How many ends there are.
    pub fn len(&self) -> usize {
        self.owners.len()
    }

    /// Whether there are none: never, of a graph.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// Whose an end is.
    pub fn owner(&self, end: usize) -> Owner {
        self.owners[end].0
    }

    /// The name of whoever an end belongs to.
    pub fn owner_name(&self, end: usize) -> &str {
        &self.owners[end].1
    }

    /// All ends of a host or a router, in order.
    pub fn ends_of(&self, owner: Owner) -> &[usize] {
        let (all, place) = match owner {
            Owner::Host(host) => (&self.of_hosts, host),
            Owner::Router(router) => (&self.of_routers, router),
        };
        all.get(place).map_or(&[], Vec::as_slice)
    }

    /// The subnet that an end is in.
    pub fn subnet(&self, end: usize) -> usize {
        self.subnets[end]
    }

    /// How many subnets there are.
    pub fn subnets(&self) -> usize {
        self.count
    }

    /// How somebody's packets go to a subnet that none of his own ends is in; `None`: there is no way.
    pub fn leg_to_subnet(&self, owner: Owner, subnet: usize) -> Option<Leg> {
        let ways = self.ends_of(owner).iter().copied().filter_map(|from| {
            let Way { routers, gateway } = self.ways[subnet][self.subnets[from]]?;
            gateway.map(|to| (routers, Leg { from, to }))
        });
        ways.min_by_key(|(routers, _)| *routers).map(|(_, leg)| leg)
    }

    /// All legs of the way from somebody to an end of somebody else; `None`: there is no way.
    pub fn legs(&self, owner: Owner, to: usize) -> Option<Vec<Leg>> {
        let mut legs = Vec::new();
        let mut at = owner;
        while legs.len() <= self.count {
            let own = self.ends_of(at);
            if let Some(from) = own.iter().copied().find(|end| self.subnets[*end] == self.subnets[to]) {
                legs.push(Leg { from, to });
                return Some(legs);
            }
            let leg = self.leg_to_subnet(at, self.subnets[to])?;
            legs.push(leg);
            at = self.owner(leg.to);
        }
        None
    }

    /// Pairs of different ones of these hosts' ends that talk to each other: first with first, second with second.
    pub(super) fn pairs(&self, hosts: &[usize]) -> Vec<(usize, usize)> {
        let pairs = (0..hosts.len()).flat_map(|one| (0..one).map(move |other| (hosts[other], hosts[one])));
        let ends = |(one, other): (usize, usize)| {
            self.of_hosts[one].iter().copied().zip(self.of_hosts[other].iter().copied())
        };
        pairs.flat_map(ends).collect()
    }

    /// How many hosts there are.
    pub(super) fn hosts(&self) -> usize {
        self.of_hosts.len()
    }
}

/// The ends of every host, and of every router.
fn by_owner(owners: &[(Owner, String)]) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    let (mut hosts, mut routers) = (Vec::new(), Vec::new());
    for (end, (owner, _)) in owners.iter().enumerate() {
        let (all, place): (&mut Vec<Vec<usize>>, usize) = match *owner {
            Owner::Host(host) => (&mut hosts, host),
            Owner::Router(router) => (&mut routers, router),
        };
        all.resize(all.len().max(place + 1), Vec::new());
        all[place].push(end);
    }
    (hosts, routers)
}

/// For each node the least number of all that links join it with.
pub(crate) fn labels(nodes: usize, links: impl Iterator<Item = (usize, usize)> + Clone) -> Vec<usize> {
    let mut labels: Vec<usize> = (0..nodes).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for (one, other) in links.clone() {
            let least = labels[one].min(labels[other]);
            changed |= labels[one] != least || labels[other] != least;
            (labels[one], labels[other]) = (least, least);
        }
    }
    labels
}

impl Graph {
    /// Every host can be reached from every other, and every switch from a host; no router is twice in one subnet.
    pub(super) fn check_reach(&self) -> Result<(), TopologyError> {
        let nodes = self.ends.len() + self.switches.len();
        let segments = labels(nodes, self.links.iter().copied());
        let same = |one: usize, other: usize| self.ends[one].owner == self.ends[other].owner;
        let twins = || (0..self.ends.len()).flat_map(|one| (0..one).map(move |other| (other, one)));
        let routed = |one: usize| matches!(self.ends[one].owner, Owner::Router(_));
        let between: Vec<(usize, usize)> =
            twins().filter(|(one, other)| routed(*one) && same(*one, *other)).collect();
        if let Some((one, other)) = between.iter().find(|(one, other)| segments[*one] == segments[*other]) {
            let problem = format!("is in one subnet with {:?}, expected another", self.ends[*one].name);
            return self.wrong(*other, &problem);
        }
        let islands = labels(nodes, self.links.iter().copied().chain(between));
        let ends = self.ends();
        // Hosts with several NICs are in several islands.
        let hosts: Vec<usize> = (0..self.ends.len()).filter(|end| !routed(*end)).collect();
        let apart = |one: usize, other: usize| {
            let (here, there) = (ends.ends_of(ends.owner(one)), ends.ends_of(ends.owner(other)));
            !here.iter().any(|here| there.iter().any(|there| islands[*here] == islands[*there]))
        };
        // Of hosts that are on the same islands one is enough.
        let mut known = HashSet::new();
        let first = |end: &&usize| {
            let own = ends.ends_of(ends.owner(**end));
            own[0] == **end && known.insert(own.iter().map(|end| islands[*end]).collect::<Vec<_>>())
        };
        let firsts: Vec<usize> = hosts.iter().filter(first).copied().collect();
        for (place, one) in firsts.iter().enumerate() {
            if let Some(other) = firsts[place + 1..].iter().find(|other| apart(*one, **other)) {
                return self.out_of_reach(ends.owner_name(*other), ends.owner_name(*one));
            }
        }
        let inhabited: HashSet<usize> = hosts.iter().map(|host| islands[*host]).collect();
        let alone = (0..nodes).find(|node| !inhabited.contains(&islands[*node]));
        match alone {
            None => Ok(()),
            Some(node) => {
                let name = self.name(crate::NodeIndex(node as u16)).to_owned();
                self.out_of_reach(&name, ends.owner_name(0))
            }
        }
    }

    fn out_of_reach(&self, name: &str, from: &str) -> Result<(), TopologyError> {
        let problem = format!("cannot be reached from {from:?}, expected a way");
        Err(TopologyError::Node { name: name.to_owned(), problem })
    }
}
