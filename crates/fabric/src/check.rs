//! What cannot work is refused before anything runs.

use std::collections::HashSet;

use crate::{ConfigError, FabricConfig, PortIndex};

/// Whether the ways on from a port have been looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Not,
    /// It is on the way that is being followed.
    Under,
    Done,
}

impl FabricConfig {
    /// Whether every frame finds its way, in a fabric that the indices can number.
    pub fn check(&self) -> Result<(), ConfigError> {
        const SIXTEEN_BITS: usize = 1 << 16;
        // The last port number means "from no port", the last host number is left over.
        let within = |what, found, low: usize, expected| match (low..SIXTEEN_BITS).contains(&found) {
            true => Ok(()),
            false => Err(ConfigError::Count { what, found, expected }),
        };
        within("hosts", self.hosts.len(), 1, "1 to 65535")?;
        within("nodes", self.nodes(), 1, "1 to 65535")?;
        within("ports", self.ports.len(), 1, "1 to 65535")?;
        within("route tables", self.routes.tables.len(), 1, "1 to 65535")?;
        let exactly = |what, found, required, expected| match found == required {
            true => Ok(()),
            false => Err(ConfigError::Count { what, found, expected }),
        };
        exactly("uplinks", self.uplinks.len(), self.hosts.len(), "one a host")?;
        exactly("tables asked", self.routes.asked.len(), self.ports.len(), "one a port")?;
        for table in &self.routes.tables {
            exactly("destinations in a route table", table.destinations(), self.hosts.len(), "one a host")?;
        }
        for (port, config) in self.ports.iter().enumerate() {
            config.check(port)?;
        }
        self.shared_buffer.map_or(Ok(()), |shared| shared.check())?;
        self.check_lossless()?;
        for (host, uplink) in self.uplinks.iter().enumerate() {
            let next = self.follow(host, *uplink);
            next.and_then(|next| if next < self.hosts.len() { Err("leads to a host") } else { Ok(()) })
                .map_err(|problem| ConfigError::Uplink { host, problem })?;
        }
        self.bonds.as_ref().map_or(Ok(()), |bonds| bonds.check(self.hosts.len()))?;
        for script in &self.scripts {
            script.check(self)?;
        }
        for (number, background) in self.background.iter().enumerate() {
            let result = background.check(self);
            result.map_err(|problem| ConfigError::Background { background: number, problem })?;
        }
        let segments = self.segments();
        let mut known = HashSet::new();
        let differs = |destination: &usize| known.insert(self.ways(*destination, &segments));
        (0..self.hosts.len())
            .filter(differs)
            .try_for_each(|destination| self.check_ways(destination, &segments))
    }

    /// What the ways to a host depend on. Those to two hosts of one switch differ only in their last links: where these are
    /// right for both, it is enough to follow one.
    fn ways(&self, destination: usize, segments: &[usize]) -> (usize, Vec<Option<&[PortIndex]>>) {
        let last = |outputs: &&[PortIndex]| {
            let port = match outputs {
                [port] => self.ports.get(usize::from(port.0)),
                _ => None,
            };
            port.is_some_and(|port| usize::from(port.to.0) == destination)
        };
        let outputs = self.routes.tables.iter().map(|table| table.outputs(destination));
        let outputs = outputs.map(|outputs| Some(outputs).filter(|outputs| !last(outputs)));
        (segments[destination], outputs.collect())
    }

    /// Where a port of this node leads.
    fn follow(&self, node: usize, port: PortIndex) -> Result<usize, &'static str> {
        let port = self.ports.get(usize::from(port.0)).ok_or("names a port that does not exist")?;
        let next = usize::from(port.to.0);
        match (usize::from(port.from.0) == node, next < self.nodes()) {
            (false, _) => Err("names a port of another node"),
            (true, false) => Err("names a port that leads nowhere"),
            (true, true) => Ok(next),
        }
    }

    /// From every switch that is joined to a host and at which a frame can come in, all ways to the host end there.
    fn check_ways(&self, destination: usize, segments: &[usize]) -> Result<(), ConfigError> {
        let mut states = vec![Seen::Not; self.ports.len()];
        let is_joined = |port: &usize| {
            let to = usize::from(self.ports[*port].to.0);
            segments.get(to).is_none_or(|segment| *segment == segments[destination])
        };
        for start in (0..self.ports.len()).filter(is_joined) {
            // Depth first without recursion: a way may have as many links as there are ports.
            let mut way = vec![(PortIndex(start as u16), 0)];
            while let Some((at, branch)) = way.last_mut() {
                let (input, choice) = (*at, *branch);
                *branch += 1;
                let node = usize::from(self.ports[usize::from(input.0)].to.0);
                if choice == 0 {
                    states[usize::from(input.0)] = Seen::Under;
                }
                let problem = |problem| ConfigError::Route { node, destination, problem };
                match self.next_of(input, destination, choice).map_err(problem)? {
                    Some(next) => match states[usize::from(next.0)] {
                        Seen::Not => way.push((next, 0)),
                        Seen::Under => return Err(problem("runs in a circle")),
                        Seen::Done => {}
                    },
                    None => {
                        states[usize::from(input.0)] = Seen::Done;
                        way.pop();
                    }
                }
            }
        }
        Ok(())
    }

    /// The port number `choice` by which frames that came by the link of `input` may go on to a host.
    fn next_of(
        &self,
        input: PortIndex,
        destination: usize,
        choice: usize,
    ) -> Result<Option<PortIndex>, &'static str> {
        let node = usize::from(self.ports[usize::from(input.0)].to.0);
        if node < self.hosts.len() {
            return Ok(None);
        }
        let outputs = self.routes.outputs(input, destination);
        if outputs.is_empty() {
            return Err("names no port");
        }
        let Some(&next) = outputs.get(choice) else { return Ok(None) };
        let end = self.follow(node, next)?;
        if end < self.hosts.len() && end != destination {
            return Err("ends at another host");
        }
        Ok(Some(next))
    }
}
