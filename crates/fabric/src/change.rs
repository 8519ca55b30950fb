//! Changes of a fabric that works.

use std::cmp::Reverse;

use framegauge_frames::{BitRate, Mtu, Picoseconds};

use crate::{ConfigError, Fabric, Impairments, PortConfig, PortIndex, QueueConfig, Sink};

/// What is to become different at a port and the link behind it; `None`: nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PortChange {
    /// From the next frame on; the skew of the link still holds.
    pub rate: Option<BitRate>,
    /// For frames that begin to be sent from now on; they never overtake.
    pub delay: Option<Picoseconds>,
    /// The share of frames that the link loses, of those that come to its end from now on.
    pub loss: Option<f64>,
    /// Larger packets are no longer let out by this port.
    pub output_mtu: Option<Mtu>,
    /// Larger packets are no longer let in at the far end of the link, those under way included.
    pub input_mtu: Option<Mtu>,
    /// Frames that wait are offered to the new queue in the order in which they came.
    pub queue: Option<QueueConfig>,
    /// Down: what waits, is being sent or is on the link is lost, and so is what comes, until it is up again.
    pub up: Option<bool>,
}

impl PortChange {
    fn of(&self, config: PortConfig) -> PortConfig {
        PortConfig {
            rate: self.rate.unwrap_or(config.rate),
            delay: self.delay.unwrap_or(config.delay),
            output_mtu: self.output_mtu.or(config.output_mtu),
            input_mtu: self.input_mtu.or(config.input_mtu),
            queue: self.queue.unwrap_or(config.queue),
            impairments: Impairments {
                loss: self.loss.unwrap_or(config.impairments.loss),
                ..config.impairments
            },
            ..config
        }
    }
}

impl Fabric {
    /// Changes a port at `now`, after all that is due by then. What cannot work is refused and changes nothing.
    ///
    /// # Panics
    ///
    /// If the port is not one of this fabric.
    pub fn change(
        &mut self,
        now: Picoseconds,
        port: PortIndex,
        change: PortChange,
        sink: &mut impl Sink,
    ) -> Result<(), ConfigError> {
        if self.is_lossless() {
            let problem = "found a change, expected none while the network is lossless".into();
            return Err(ConfigError::SharedBuffer { problem });
        }
        let place = usize::from(port.0);
        let config = change.of(self.configs[place]);
        config.check(place)?;
        // Not before what has happened; what hosts have sent since they were heard last comes after it.
        self.advance(now.max(self.clock), sink);
        let now = self.clock;
        let changed = &mut self.ports[place];
        changed.reconfigure(now, &config);
        if let Some(queue) = change.queue {
            changed.replace_queue(now, queue);
        }
        match change.up {
            Some(true) => changed.bring_up(),
            Some(false) => {
                changed.take_down(now);
                self.events.retain(|Reverse(event)| event.source != u32::from(port.0));
                self.lose_held(port, sink);
            }
            None => {}
        }
        self.configs[place] = config;
        self.derive_from_ports(port);
        self.settle(port, sink);
        Ok(())
    }

    /// What was computed from a port that has changed since.
    fn derive_from_ports(&mut self, port: PortIndex) {
        self.bounds = None;
        self.shared_buffers.iter_mut().for_each(|shared| shared.is_stale = true);
        let changed = &self.ports[usize::from(port.0)];
        for uplink in self.uplinks.iter_mut().filter(|uplink| uplink.port == port) {
            uplink.rate = changed.rate();
            uplink.idle_from = changed.idle_from(self.clock);
        }
    }

    /// What a port is at present: as configured, with all changes since.
    ///
    /// # Panics
    ///
    /// If the port is not one of this fabric.
    pub fn port_config(&self, port: PortIndex) -> &PortConfig {
        &self.configs[usize::from(port.0)]
    }
}
