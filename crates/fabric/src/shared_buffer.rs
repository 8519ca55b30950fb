//! One buffer for all ports of a switch.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use framegauge_frames::{Picoseconds, frame_bytes};

use crate::lossless::{Lossless, LosslessConfig};
use crate::port::Port;
use crate::{ConfigError, Fabric, Frame, PortIndex, Reason};

/// What the ports of a switch have together, with a dynamic threshold (Choudhury and Hahne, "Dynamic Queue Length
/// Thresholds for Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking 6(2), 1998).
///
/// A frame is taken if its port holds less than `alpha` times what is free, and it fits into what is free: n ports with
/// endless traffic come to `alpha bytes / (1 + n alpha)` each and leave `bytes / (1 + n alpha)` free. The limit of the
/// port's own discipline holds besides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SharedBufferConfig {
    /// The buffer, in `frame_bytes`; includes the frames being sent.
    pub bytes: u64,
    /// What a port may hold of what is free; above 0.
    pub alpha: f64,
    /// Nothing is dropped: the threshold is for each input link, and what is over it makes the sender pause. Limits of
    /// ports must leave room for all of it.
    pub lossless: Option<LosslessConfig>,
}

impl SharedBufferConfig {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let SharedBufferConfig { bytes, alpha, .. } = *self;
        let smallest = u64::from(frame_bytes(0));
        if bytes < smallest {
            let problem = format!("found {bytes} bytes, expected room for a frame of {smallest}");
            return Err(ConfigError::SharedBuffer { problem });
        }
        if !(alpha > 0.0 && alpha.is_finite()) {
            let problem = format!("found an alpha of {alpha}, expected a number above 0");
            return Err(ConfigError::SharedBuffer { problem });
        }
        Ok(())
    }

    /// Whether a port that holds so much may take the frame where all ports hold `used_bytes`.
    fn admits(&self, frame_bytes: u32, port_bytes: u64, used_bytes: u64) -> bool {
        let free_bytes = self.bytes - used_bytes;
        (port_bytes as f64) < self.alpha * free_bytes as f64 && u64::from(frame_bytes) <= free_bytes
    }
}

/// What the ports of each switch hold together, kept as frames come and leave: nothing is summed up for a frame.
///
/// A port that sends has its next departure in the set of its switch; what has left by now is taken off when a frame comes.
#[derive(Debug, Clone)]
pub(crate) struct SharedBuffers {
    config: SharedBufferConfig,
    /// By switch.
    used_bytes: Vec<u64>,
    departures: Vec<BinaryHeap<Reverse<(Picoseconds, PortIndex)>>>,
    /// By port: its part of what is used, and whether its departure is in the set.
    held: Vec<(u64, bool)>,
    /// A port has changed since: all is to be looked at.
    pub(crate) is_stale: bool,
    pub(crate) lossless: Option<Box<Lossless>>,
}

impl SharedBuffers {
    pub(crate) fn new(
        config: SharedBufferConfig,
        lossless: Option<Box<Lossless>>,
        switches: usize,
        ports: usize,
    ) -> SharedBuffers {
        SharedBuffers {
            config,
            used_bytes: vec![0; switches],
            departures: vec![BinaryHeap::new(); switches],
            held: vec![(0, false); ports],
            is_stale: false,
            lossless,
        }
    }

    /// Takes in what a port holds now.
    fn note(&mut self, now: Picoseconds, switch: usize, index: PortIndex, port: &mut Port) {
        port.catch_up(now);
        let (held, has_departure) = &mut self.held[usize::from(index.0)];
        let bytes = port.buffered_bytes();
        let used = &mut self.used_bytes[switch];
        *used = *used + bytes - *held;
        *held = bytes;
        if let Some(departs) = port.departure().filter(|_| !*has_departure) {
            *has_departure = true;
            self.departures[switch].push(Reverse((departs, index)));
        }
    }

    /// Takes off what has left a switch by now.
    fn catch_up(&mut self, now: Picoseconds, switch: usize, ports: &mut [Port]) {
        while let Some(Reverse((time, port))) = self.departures[switch].peek().copied()
            && time <= now
        {
            self.departures[switch].pop();
            self.held[usize::from(port.0)].1 = false;
            self.note(now, switch, port, &mut ports[usize::from(port.0)]);
        }
    }
}

impl Fabric {
    /// Why a switch whose ports share a buffer does not even offer a frame to a port.
    pub(crate) fn refused_by_shared_buffer(
        &mut self,
        now: Picoseconds,
        (switch, output): (usize, PortIndex),
        frame: &Frame,
    ) -> Option<Reason> {
        let shared = self.shared_buffers.as_mut()?;
        if let Some(lossless) = &shared.lossless {
            let has_room = lossless.has_room(frame.input_port, frame.frame_bytes);
            return (!has_room).then_some(Reason::SharedBuffer);
        }
        if std::mem::take(&mut shared.is_stale) {
            for (switch, ports) in self.switch_ports.iter().enumerate() {
                for port in ports {
                    shared.note(now, switch, *port, &mut self.ports[usize::from(port.0)]);
                }
            }
        }
        shared.catch_up(now, switch, &mut self.ports);
        let port = &mut self.ports[usize::from(output.0)];
        port.catch_up(now);
        let admits =
            shared.config.admits(frame.frame_bytes, port.buffered_bytes(), shared.used_bytes[switch]);
        (!admits).then_some(Reason::SharedBuffer)
    }

    /// A frame was offered to a port of a switch.
    pub(crate) fn note_shared_buffer(
        &mut self,
        now: Picoseconds,
        (switch, output): (usize, PortIndex),
        frame: &Frame,
        is_taken: bool,
    ) {
        if self.is_lossless() {
            if is_taken {
                self.note_held(now, output, (frame.input_port, frame.frame_bytes));
            }
        } else if let Some(shared) = &mut self.shared_buffers {
            shared.note(now, switch, output, &mut self.ports[usize::from(output.0)]);
        }
    }
}
