//! The graph of each shape.

use super::{End, Graph, Owner, Switch, TopologyError};

/// Fat-trees beyond this are more than a machine's namespaces, and k³/4 would not be in doubt to overflow.
const MOST_PORTS: usize = 64;
/// Of one host or router.
const MOST_NICS: usize = 8;

fn number<T>(what: &'static str, actual: usize, expected: impl Into<String>) -> Result<T, TopologyError> {
    Err(TopologyError::Number { what, found: actual, expected: expected.into() })
}

fn plain(name: impl Into<String>) -> Switch {
    Switch { name: name.into(), level: 0, stride: 1 }
}

/// A host with one NIC is an end of its own name.
fn plain_ends(hosts: &[String]) -> Vec<End> {
    hosts.iter().enumerate().flat_map(|(host, name)| ends_of(Owner::Host(host), name, 1)).collect()
}

fn ends_of<'a>(owner: Owner, name: &'a str, nics: usize) -> impl Iterator<Item = End> + 'a {
    (1..=nics).map(move |nic| End {
        name: if nics == 1 { name.to_owned() } else { format!("{name}.{nic}") },
        owner,
        owner_name: name.to_owned(),
    })
}

fn some_hosts(hosts: &[String]) -> Result<(), TopologyError> {
    if hosts.is_empty() { number("hosts", 0, "at least one") } else { Ok(()) }
}

pub(super) fn rack(hosts: &[String], nics: u16) -> Result<Graph, TopologyError> {
    some_hosts(hosts)?;
    if !(1..=MOST_NICS).contains(&usize::from(nics)) {
        return number("NICs of a host", nics.into(), format!("1 to {MOST_NICS}"));
    }
    let owners = hosts.iter().enumerate().map(|(host, name)| (Owner::Host(host), name, usize::from(nics)));
    let ends: Vec<End> = owners.flat_map(|(owner, name, nics)| ends_of(owner, name, nics)).collect();
    let links = (0..ends.len()).map(|end| (end, ends.len())).collect();
    Ok(Graph { kind: "rack", ends, switches: vec![plain("switch")], links, bond: None })
}

pub(super) fn dumbbell(hosts: &[String], left: usize) -> Result<Graph, TopologyError> {
    let count = hosts.len();
    if !(1..count).contains(&left) {
        return number("hosts on the left of a dumbbell", left, format!("1 to {}", count.saturating_sub(1)));
    }
    let mut links: Vec<_> = (0..count).map(|host| (host, count + usize::from(host >= left))).collect();
    links.push((count, count + 1));
    let switches = vec![plain("left"), plain("right")];
    Ok(Graph { kind: "dumbbell", ends: plain_ends(hosts), switches, links, bond: None })
}

pub(super) fn leaf_spine(hosts: &[String], leaves: usize, spines: usize) -> Result<Graph, TopologyError> {
    some_hosts(hosts)?;
    let count = hosts.len();
    for (what, actual) in [("leaves", leaves), ("spines", spines)] {
        if !(1..=1000).contains(&actual) {
            return number(what, actual, "1 to 1000");
        }
    }
    if !count.is_multiple_of(leaves) {
        return number("hosts on a leaf-spine", count, format!("a multiple of its {leaves} leaves"));
    }
    let switch = |name: String, level: u8| Switch { name, level, stride: 1 };
    let mut switches: Vec<_> = (1..=leaves).map(|leaf| switch(format!("leaf{leaf}"), 1)).collect();
    switches.extend((1..=spines).map(|spine| switch(format!("spine{spine}"), 2)));
    let mut links: Vec<_> = (0..count).map(|host| (host, count + host / (count / leaves))).collect();
    for leaf in 0..leaves {
        links.extend((0..spines).map(|spine| (count + leaf, count + leaves + spine)));
    }
    Ok(Graph { kind: "leaf-spine", ends: plain_ends(hosts), switches, links, bond: None })
}

/// Pods of k/2 edge and k/2 aggregation switches; aggregation switch a of every pod is joined to the cores a k/2 and up.
pub(super) fn fat_tree(hosts: &[String], k: usize) -> Result<Graph, TopologyError> {
    if !(2..=MOST_PORTS).contains(&k) || !k.is_multiple_of(2) {
        return number("k of a fat-tree", k, format!("an even number from 2 to {MOST_PORTS}"));
    }
    let (half, count) = (k / 2, hosts.len());
    if count != k * half * half {
        return number("hosts of a fat-tree", count, format!("{} with k = {k}", k * half * half));
    }
    let mut switches = Vec::new();
    for (kind, level) in [("edge", 1), ("aggregation", 2)] {
        let positions = (1..=k).flat_map(|pod| (1..=half).map(move |place| (pod, place)));
        // An aggregation switch sees the hosts of its pod as half an edge switch each: these take one core.
        let stride = if level == 2 { half as u16 } else { 1 };
        switches.extend(positions.map(|(pod, place)| Switch {
            name: format!("{kind}{pod}-{place}"),
            level,
            stride,
        }));
    }
    let cores = (1..=half * half).map(|core| Switch { name: format!("core{core}"), level: 3, stride: 1 });
    switches.extend(cores);
    let (edge, aggregation, core) = (count, count + k * half, count + 2 * k * half);
    let mut links: Vec<_> = (0..count).map(|host| (host, edge + host / half)).collect();
    for pod in 0..k {
        for one in 0..half {
            links.extend((0..half).map(|other| (edge + pod * half + one, aggregation + pod * half + other)));
        }
        for one in 0..half {
            links.extend((0..half).map(|other| (aggregation + pod * half + one, core + one * half + other)));
        }
    }
    Ok(Graph { kind: "fat-tree", ends: plain_ends(hosts), switches, links, bond: None })
}

/// An end for each link of a host or a router, in the order of links.
pub(super) fn custom(
    hosts: &[String],
    routers: &[String],
    switches: &[String],
    links: &[(String, String)],
) -> Result<Graph, TopologyError> {
    some_hosts(hosts)?;
    let owners: Vec<&String> = hosts.iter().chain(routers).collect();
    let names: Vec<&String> = owners.iter().copied().chain(switches).collect();
    if let Some(twice) = (0..names.len()).find(|place| names[..*place].contains(&names[*place])) {
        let problem = "is the name of two nodes, expected different names".to_owned();
        return Err(TopologyError::Node { name: names[twice].clone(), problem });
    }
    let find = |name: &String| {
        names.iter().position(|known| *known == name).ok_or_else(|| TopologyError::Node {
            name: name.clone(),
            problem: format!(
                "is the end of a link, expected a host or one of {}",
                names[hosts.len()..].iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
            ),
        })
    };
    let link = |(one, other): &(String, String)| Ok((find(one)?, find(other)?));
    let edges = links.iter().map(link).collect::<Result<Vec<_>, TopologyError>>()?;
    if let Some((one, _)) = edges.iter().find(|(one, other)| one == other) {
        let problem = "has a link to itself, expected one to another node".to_owned();
        return Err(TopologyError::Node { name: names[*one].clone(), problem });
    }
    let mut ends = Vec::new();
    let mut next_end = Vec::with_capacity(owners.len());
    for (place, name) in owners.iter().enumerate() {
        let count = edges.iter().filter(|(one, other)| *one == place || *other == place).count();
        let (owner, expected) = match place.checked_sub(hosts.len()) {
            None => (Owner::Host(place), 1..=MOST_NICS),
            Some(router) => (Owner::Router(router), 2..=MOST_NICS),
        };
        if !expected.contains(&count) {
            let problem = format!("has {count} links, expected {} to {}", expected.start(), expected.end());
            return Err(TopologyError::Node { name: (*name).clone(), problem });
        }
        next_end.push(ends.len());
        ends.extend(ends_of(owner, name, count));
    }
    let mut end_of = |node: usize| match node.checked_sub(owners.len()) {
        Some(switch) => ends.len() + switch,
        None => {
            next_end[node] += 1;
            next_end[node] - 1
        }
    };
    let links = edges.into_iter().map(|(one, other)| (end_of(one), end_of(other))).collect();
    let switches = switches.iter().map(plain).collect();
    Ok(Graph { kind: "custom", ends, switches, links, bond: None })
}
