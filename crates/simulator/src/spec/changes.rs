//! What changes during a run, in the words of `rack.set`.

use framegauge_fabric::{HostIndex, Owner, PortChange, PortIndex};
use framegauge_frames::BitRate;
use framegauge_networks::{LinkOverride, Network, NetworkChange, NetworkSpec, QueueSpec};
use serde::Deserialize;

use super::{ScenarioSpec, span};
use crate::Change;

/// A change at a time after the beginning.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub struct ChangeSpec {
    pub at_seconds: f64,
    pub set: SetSpec,
}

/// Ports (`from`, `to`), or the MTU of a host or router.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the names of the documentation of the pipe")]
pub struct SetSpec {
    pub host: Option<String>,
    pub from: Option<String>,
    pub to: Option<String>,
    pub bits_per_second: Option<u64>,
    pub delay_seconds: Option<f64>,
    pub loss: Option<f64>,
    pub mtu: Option<u32>,
    pub buffer_bytes: Option<u64>,
    pub queue: Option<QueueSpec>,
    pub up: Option<bool>,
}

/// What becomes different, at which ports.
type Ports = Vec<(PortIndex, PortChange)>;

/// A network as it is by now: said, and in numbers.
struct Present {
    spec: NetworkSpec,
    network: Network,
}

impl ScenarioSpec {
    /// All changes in the order of time; `network` is that of the beginning, without shapers.
    pub(super) fn changes(&self, names: &[String], network: &Network) -> Result<Vec<Change>, String> {
        if self.changes.is_empty() {
            return Ok(Vec::new());
        }
        if self.shared_buffer.is_some_and(|shared| shared.lossless) {
            return Err("changes: found some, expected none while the network is lossless".into());
        }
        let mut present = Present { spec: self.network_spec(), network: network.clone() };
        let mut order: Vec<usize> = (0..self.changes.len()).collect();
        order.sort_by(|one, other| self.changes[*one].at_seconds.total_cmp(&self.changes[*other].at_seconds));
        let change = |number: usize| {
            let update = self.change(names, &mut present, &self.changes[number]);
            update.map_err(|problem| format!("change {}: {problem}", number + 1))
        };
        order.into_iter().map(change).collect()
    }

    fn change(&self, names: &[String], present: &mut Present, spec: &ChangeSpec) -> Result<Change, String> {
        let at = span("at_seconds", spec.at_seconds)?;
        let set = &spec.set;
        let (ports, mtus) = match (&set.host, &set.from, &set.to) {
            (Some(name), None, None) => {
                let mtu = set.mtu.ok_or("found no mtu, expected one beside host")?;
                self.mtu_change(names, present, name, mtu)?
            }
            (None, Some(from), Some(to)) => {
                let link = LinkOverride {
                    from: from.clone(),
                    to: to.clone(),
                    bits_per_second: set.bits_per_second,
                    delay_seconds: set.delay_seconds,
                    loss: set.loss,
                    mtu: set.mtu,
                    buffer_bytes: set.buffer_bytes,
                    queue: set.queue.clone(),
                    ..LinkOverride::default()
                };
                let update = present.spec.changed(names, &present.network, &link, set.up)?;
                (self.take(present, update)?, Vec::new())
            }
            _ => return Err("found other ends, expected host, or both from and to".into()),
        };
        Ok(Change { at, ports, mtus })
    }

    /// Of a host, or of a router: its ports let no larger frames out.
    fn mtu_change(
        &self,
        names: &[String],
        present: &mut Present,
        name: &str,
        mtu: u32,
    ) -> Result<(Ports, Vec<(HostIndex, u32)>), String> {
        let ends = present.network.ends.clone();
        let own: Vec<usize> = (0..ends.len()).filter(|end| ends.owner_name(*end) == name).collect();
        let Some(first) = own.first() else {
            return Err(format!("found host {name:?}, expected a host or a router"));
        };
        let inner = self.inner_mtu(ends.owner(*first), name, mtu)?;
        let mtus = own.iter().map(|end| (HostIndex(*end as u16), inner.bytes())).collect();
        let ports = match present.spec.with_router_mtu(names, &present.network, name, mtu) {
            None => Vec::new(),
            Some(update) => self.take(present, update?)?,
        };
        Ok((ports, mtus))
    }

    /// The network is that from now on. Hosts stay a little below their links, as behind their shapers.
    fn take(&self, present: &mut Present, update: NetworkChange) -> Result<Ports, String> {
        let NetworkChange { spec, network, mut ports } = update;
        for (port, change) in &mut ports {
            let end = network.config.uplinks.iter().position(|uplink| uplink == port);
            let of_host = end.filter(|end| matches!(network.ends.owner(*end), Owner::Host(_)));
            if let (Some(end), Some(factor), Some(_)) = (of_host, self.shaper_factor()?, change.rate) {
                let rate = network.shaped_bits_per_second(end, factor);
                change.rate = Some(BitRate::new(rate).map_err(|error| error.to_string())?);
            }
        }
        *present = Present { spec, network };
        Ok(ports)
    }
}
