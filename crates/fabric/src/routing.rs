//! Which port a switch sends a frame on by.

use std::collections::BTreeMap;

use framegauge_frames::{SplitMix, below, mixed};

use crate::{Frame, PortIndex};

/// How one of several ports that lead on is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Choice {
    /// By a hash of the flow, another at every switch: frames of a flow keep their order (ECMP, RFC 2992).
    #[default]
    Flow,
    /// By a draw for every frame: packet spraying, which may reorder.
    Packet,
    /// By the destination's number, so that destinations are spread evenly and each has one way.
    Destination,
}

/// Where a switch sends frames for each destination.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RouteTable {
    /// The ports that may be taken; at least one in each set. Most destinations share theirs with many others.
    sets: Vec<Vec<PortIndex>>,
    /// By destination host: its set.
    chosen: Vec<u16>,
    /// With [`Choice::Destination`]: so many destinations in a row take the same port; 0 is 1.
    pub stride: u16,
}

impl RouteTable {
    /// By destination host: the ports that may be taken.
    pub fn new(outputs: impl IntoIterator<Item = Vec<PortIndex>>, stride: u16) -> RouteTable {
        let mut table = RouteTable { stride, ..RouteTable::default() };
        let mut known: BTreeMap<Vec<PortIndex>, u16> = BTreeMap::new();
        for ports in outputs {
            let next = known.len() as u16;
            let set = *known.entry(ports).or_insert_with_key(|ports| {
                table.sets.push(ports.clone());
                next
            });
            table.chosen.push(set);
        }
        table
    }

    /// How many destinations it has.
    pub fn destinations(&self) -> usize {
        self.chosen.len()
    }

    /// The ports that may be taken to a destination; none if it has no such.
    pub fn outputs(&self, destination: usize) -> &[PortIndex] {
        self.chosen.get(destination).map_or(&[], |set| &self.sets[usize::from(*set)])
    }

    /// Gives a destination other ports.
    pub fn set_outputs(&mut self, destination: usize, outputs: Vec<PortIndex>) {
        self.chosen[destination] = self.sets.len() as u16;
        self.sets.push(outputs);
    }
}

/// All routes of a fabric.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RouteConfig {
    /// One or more a switch: which is asked may depend on the port by which a frame came in.
    pub tables: Vec<RouteTable>,
    /// By port: the table that is asked at the switch where its link ends; without meaning where that is a host.
    pub asked: Vec<u16>,
    /// How one of several ports is chosen.
    pub choice: Choice,
    /// Of draws and hashes.
    pub seed: u64,
}

impl RouteConfig {
    /// The ports that a frame may take that has come by the link of a port.
    pub fn outputs(&self, input: PortIndex, destination: usize) -> &[PortIndex] {
        let table =
            self.asked.get(usize::from(input.0)).and_then(|table| self.tables.get(usize::from(*table)));
        table.map_or(&[], |table| table.outputs(destination))
    }
}

/// The routes at work. One lookup, and a choice only where there is one.
#[derive(Debug, Clone)]
pub(crate) struct Routes {
    asked: Vec<u16>,
    hosts: usize,
    /// By table and destination: the number of its set among all sets.
    chosen: Vec<u32>,
    /// By set: where its ports begin in `ports`, and how many there are.
    sets: Vec<(u32, u32)>,
    ports: Vec<PortIndex>,
    strides: Vec<u16>,
    choice: Choice,
    seed: u64,
    draws: SplitMix,
}

impl Routes {
    /// Of a configuration that was checked, with so many hosts.
    pub(crate) fn new(config: &RouteConfig, hosts: usize) -> Routes {
        let mut ports: Vec<PortIndex> = Vec::new();
        let mut chosen = Vec::with_capacity(config.tables.len() * hosts);
        let mut sets = Vec::new();
        for table in &config.tables {
            chosen.extend(table.chosen.iter().map(|set| sets.len() as u32 + u32::from(*set)));
            for set in &table.sets {
                sets.push((ports.len() as u32, set.len() as u32));
                ports.extend(set);
            }
        }
        Routes {
            asked: config.asked.clone(),
            hosts,
            chosen,
            sets,
            ports,
            strides: config.tables.iter().map(|table| table.stride.max(1)).collect(),
            choice: config.choice,
            seed: config.seed,
            draws: SplitMix::new(config.seed),
        }
    }

    /// How many tables there are.
    pub(crate) fn tables(&self) -> usize {
        self.strides.len()
    }

    /// The table that is asked at the switch where this port's link ends.
    pub(crate) fn table(&self, port: PortIndex) -> usize {
        usize::from(self.asked[usize::from(port.0)])
    }

    /// By table and destination: the ports that may be taken.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[PortIndex]> {
        let of = |(start, count): (u32, u32)| &self.ports[start as usize..(start + count) as usize];
        self.chosen.iter().map(move |set| of(self.sets[*set as usize]))
    }

    /// The port by which a frame leaves the switch that it has come to.
    #[inline]
    pub(crate) fn output(&mut self, frame: &Frame) -> PortIndex {
        let table = usize::from(self.asked[usize::from(frame.input_port.0)]);
        let set = self.chosen[table * self.hosts + usize::from(frame.destination.0)];
        let (start, count) = self.sets[set as usize];
        let offset = if count == 1 { 0 } else { self.choose(table, frame, count) };
        self.ports[(start + offset) as usize]
    }

    fn choose(&mut self, table: usize, frame: &Frame, count: u32) -> u32 {
        let bits = match self.choice {
            Choice::Flow => mixed(frame.flow ^ mixed(self.seed ^ (table as u64) << 32)),
            Choice::Packet => self.draws.bits(),
            Choice::Destination => {
                return u32::from(frame.destination.0 / self.strides[table]) % count;
            }
        };
        below(bits, u64::from(count)) as u32
    }
}
