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
    let mut asked: Vec<u16> = ports.iter().map(|port| at(port).unwrap_or(0) as u16).collect();
    if routing.paths == Paths::EqualLength {
        let level = |index: usize| index.checked_sub(hosts).map_or(0, |switch| graph.switches[switch].level);
        let upward = |port: &PortConfig| level(node(port.from.0)) < level(node(port.to.0));
        for switch in 0..switches {
            let up = indices(ports, |port| node(port.from.0) == hosts + switch && upward(port));
            let outputs = if up.is_empty() { tables[switch].outputs.clone() } else { vec![up; hosts] };
            tables.push(RouteTable { outputs, stride: graph.switches[switch].stride });
        }
        for (port, asked) in ports.iter().zip(&mut asked) {
            if at(port).is_some() && upward(port) {
                *asked += switches as u16;
            }
        }
    }
    RouteConfig { tables, asked, choice: routing.choice, seed: routing.seed }
}

fn indices(ports: &[PortConfig], takes: impl Fn(&PortConfig) -> bool) -> Vec<PortIndex> {
    let found = ports.iter().enumerate().filter(|(_, port)| takes(port));
    found.map(|(index, _)| PortIndex(index as u16)).collect()
}

/// By switch and host: all ports that lead one link nearer.
fn shortest(graph: &Graph, ports: &[PortConfig]) -> Vec<RouteTable> {
    let (hosts, nodes) = (graph.ends.len(), graph.ends.len() + graph.switches.len());
    let mut leaving: Vec<Vec<(PortIndex, usize)>> = vec![Vec::new(); nodes];
    for (index, port) in ports.iter().enumerate() {
        leaving[usize::from(port.from.0)].push((PortIndex(index as u16), usize::from(port.to.0)));
    }
    let mut tables: Vec<RouteTable> = graph
        .switches
        .iter()
        .map(|switch| RouteTable { outputs: Vec::with_capacity(hosts), stride: switch.stride })
        .collect();
    // All hosts of a switch are equally far from everywhere.
    let mut known: Vec<Option<Vec<usize>>> = vec![None; nodes];
    for host in 0..hosts {
        let home = leaving[host][0].1;
        let distances = known[home].get_or_insert_with(|| distances(home, &leaving, hosts));
        for (table, node) in tables.iter_mut().zip(hosts..) {
            let nearer = |&&(_, to): &&(PortIndex, usize)| match node == home {
                true => to == host,
                false => distances[to] < distances[node],
            };
            table.outputs.push(leaving[node].iter().filter(nearer).map(|&(port, _)| port).collect());
        }
    }
    tables
}

/// Links from every switch to `home`; hosts, by which nothing passes, are as far as can be.
fn distances(home: usize, leaving: &[Vec<(PortIndex, usize)>], hosts: usize) -> Vec<usize> {
    let mut found = vec![usize::MAX; leaving.len()];
    found[home] = 0;
    let mut ahead = VecDeque::from([home]);
    while let Some(node) = ahead.pop_front() {
        for &(_, next) in leaving[node].iter().filter(|(_, next)| *next >= hosts) {
            if found[next] == usize::MAX {
                found[next] = found[node] + 1;
                ahead.push_back(next);
            }
        }
    }
    found
}
