//! What a change of some links means for a network at work.

use framegauge_fabric::{Owner, PortChange, PortConfig, PortIndex};

use crate::network::{names_of, shaped};
use crate::{LinkOverride, Network, NetworkSpec};

/// A network after a change, and what becomes different at which ports.
#[derive(Debug, Clone)]
pub struct NetworkChange {
    /// What holds from then on.
    pub spec: NetworkSpec,
    /// The same in numbers.
    pub network: Network,
    /// The ports that become different.
    pub ports: Vec<(PortIndex, PortChange)>,
}

impl NetworkChange {
    /// Hosts' NICs, from 0, whose links have another rate now, and which rate a shaper that lets so much of it pass has.
    pub fn shapers(&self, factor: f64) -> Vec<(String, usize, u64)> {
        let Network { config, ends } = &self.network;
        let of_host = |(port, change): &(PortIndex, PortChange)| {
            let rate = change.rate?;
            let end = config.uplinks.iter().position(|uplink| uplink == port)?;
            let own = ends.ends_of(ends.owner(end));
            let nic = own.iter().position(|other| *other == end)?;
            let bits_per_second = shaped(rate, factor);
            matches!(ends.owner(end), Owner::Host(_))
                .then(|| (ends.owner_name(end).to_owned(), nic, bits_per_second))
        };
        self.ports.iter().filter_map(of_host).collect()
    }
}

impl NetworkSpec {
    /// What becomes of this network of hosts, which is `network`, if that is said of some links besides, and their ports are
    /// up or down. The message says what cannot be.
    pub fn changed(
        &self,
        hosts: &[String],
        network: &Network,
        link: &LinkOverride,
        up: Option<bool>,
    ) -> Result<NetworkChange, String> {
        let fixed = [
            ("skew_ppm", link.skew_ppm.is_some()),
            ("phase_seconds", link.phase_seconds.is_some()),
            ("jitter_seconds", link.jitter_seconds.is_some()),
            ("tagged", link.tagged.is_some()),
            ("script", link.script.is_some()),
        ];
        if let Some((name, _)) = fixed.iter().find(|(_, is_set)| *is_set) {
            return Err(format!("found {name}, expected what can be changed while the network works"));
        }
        let mut spec = self.clone();
        spec.links.push(link.clone());
        let after = spec.network(hosts)?;
        let names = |node| names_of(&network.ends, &network.config, node);
        let changed = |old: &PortConfig, new: &PortConfig| match link.fits(&names(old.from), &names(old.to)) {
            true => PortChange { up, ..difference(old, new) },
            false => PortChange::default(),
        };
        Ok(NetworkChange { ports: changes(network, &after, changed), spec, network: after })
    }

    /// What becomes of this network of hosts, which is `network`, if that router has another MTU: the ports that it sends
    /// by let no larger frames out. None if there is no such router.
    pub fn with_router_mtu(
        &self,
        hosts: &[String],
        network: &Network,
        router: &str,
        mtu: u32,
    ) -> Option<Result<NetworkChange, String>> {
        let mut spec = self.clone();
        spec.topology.router_mut(router)?.mtu = Some(mtu);
        let changed = spec.network(hosts).map(|after| (changes(network, &after, difference), after));
        Some(changed.map(|(ports, after)| NetworkChange { ports, spec, network: after }))
    }
}

/// What becomes different at which ports, by the change from one port to its successor.
fn changes(
    before: &Network,
    after: &Network,
    change: impl Fn(&PortConfig, &PortConfig) -> PortChange,
) -> Vec<(PortIndex, PortChange)> {
    let ports = before.config.ports.iter().zip(&after.config.ports).enumerate();
    let changed = ports.map(|(index, (old, new))| (PortIndex(index as u16), change(old, new)));
    changed.filter(|(_, change)| *change != PortChange::default()).collect()
}

/// Only what is different: to change nothing must not empty a queue into another of its kind.
fn difference(old: &PortConfig, new: &PortConfig) -> PortChange {
    fn other<T: PartialEq + Copy>(old: T, new: T) -> Option<T> {
        (old != new).then_some(new)
    }
    PortChange {
        rate: other(old.rate, new.rate),
        delay: other(old.delay, new.delay),
        loss: other(old.impairments.loss, new.impairments.loss),
        output_mtu: other(old.output_mtu, new.output_mtu).flatten(),
        input_mtu: other(old.input_mtu, new.input_mtu).flatten(),
        queue: other(old.queue, new.queue),
        up: None,
    }
}
