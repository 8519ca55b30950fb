//! Routes of a graph.

use std::collections::VecDeque;

use super::{Graph, Paths, Routing};
use crate::{PortConfig, PortIndex, RouteConfig, RouteTable};

/// The routes by `ports`, which are those of the graph's links.
///
/// Shortest paths: a table a switch. Equal lengths: for frames that come from below one more for each switch that is not
/// at the top, by which they go up whatever their destination is; what comes from above goes down by the shortest way.
pub(super) fn of(graph: &Graph, ports: &[PortConfig], routing: Routing) -> RouteConfig {
    let (hosts, switches) = (graph.ends.len(), graph.switches.len());
    let mut tables = shortest(graph, ports);
    let node = |index: u16| usize::from(index);
    let at = |port: &PortConfig| node(port.to.0).checked_sub(hosts);
    let mut lookup: Vec<u16> = ports.iter().map(|port| at(port).unwrap_or(0) as u16).collect();
    if routing.paths == Paths::EqualLength {
        let level = |index: usize| index.checked_sub(hosts).map_or(0, |switch| graph.switches[switch].level);
        let upward = |port: &PortConfig| level(node(port.from.0)) < level(node(port.to.0));
        for switch in 0..switches {
            let up = indices(ports, |port| node(port.from.0) == hosts + switch && upward(port));
            tables.push(match up.is_empty() {
                true => tables[switch].clone(),
                false => RouteTable::new(vec![up; hosts], graph.switches[switch].stride),
            });
        }
        for (port, lookup) in ports.iter().zip(&mut lookup) {
            if at(port).is_some() && upward(port) {
                *lookup += switches as u16;
            }
        }
    }
    RouteConfig { tables, asked: lookup, choice: routing.choice, seed: routing.seed }
}

fn indices(ports: &[PortConfig], takes: impl Fn(&PortConfig) -> bool) -> Vec<PortIndex> {
    let entries = ports.iter().enumerate().filter(|(_, port)| takes(port));
    entries.map(|(index, _)| PortIndex(index as u16)).collect()
}

/// By switch and host: all ports that lead one link nearer.
fn shortest(graph: &Graph, ports: &[PortConfig]) -> Vec<RouteTable> {
    let (hosts, nodes) = (graph.ends.len(), graph.ends.len() + graph.switches.len());
    let mut leaving: Vec<Vec<(PortIndex, usize)>> = vec![Vec::new(); nodes];
    for (index, port) in ports.iter().enumerate() {
        leaving[usize::from(port.from.0)].push((PortIndex(index as u16), usize::from(port.to.0)));
    }
    // All hosts of a switch are equally far from everywhere.
    let mut known: Vec<Option<Vec<u32>>> = vec![None; nodes];
    let homes: Vec<usize> = (0..hosts).map(|host| leaving[host][0].1).collect();
    for home in &homes {
        known[*home].get_or_insert_with(|| distances(*home, &leaving, hosts));
    }
    let table = |(switch, node): (&super::Switch, usize)| {
        let mut last: Option<(usize, Vec<PortIndex>)> = None;
        let outputs = homes.iter().enumerate().map(|(host, home)| {
            if *home == node {
                let ports = leaving[node].iter().filter(|(_, to)| *to == host);
                return ports.map(|&(port, _)| port).collect();
            }
            // Hosts of a switch follow each other.
            if let Some((_, ports)) = last.as_ref().filter(|(of, _)| of == home) {
                return ports.clone();
            }
            let distances = known[*home].as_ref().expect("every home has its distances");
            let nearer = leaving[node].iter().filter(|(_, to)| distances[*to] < distances[node]);
            let ports: Vec<PortIndex> = nearer.map(|&(port, _)| port).collect();
            last = Some((*home, ports.clone()));
            ports
        });
        RouteTable::new(outputs, switch.stride)
    };
    graph.switches.iter().zip(hosts..).map(table).collect()
}

/// Links from every switch to `home`; hosts, by which nothing passes, are as far as can be.
fn distances(home: usize, leaving: &[Vec<(PortIndex, usize)>], hosts: usize) -> Vec<u32> {
    let mut hops = vec![u32::MAX; leaving.len()];
    hops[home] = 0;
    let mut ahead = VecDeque::from([home]);
    while let Some(node) = ahead.pop_front() {
        for &(_, next) in leaving[node].iter().filter(|(_, next)| *next >= hosts) {
            if hops[next] == u32::MAX {
                hops[next] = hops[node] + 1;
                ahead.push_back(next);
            }
        }
    }
    hops
}
