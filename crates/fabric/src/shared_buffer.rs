//! One buffer for all ports of a switch.

use framegauge_frames::{Picoseconds, frame_bytes};

use crate::{ConfigError, Fabric, PortIndex, Reason};

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
}

impl SharedBufferConfig {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let SharedBufferConfig { bytes, alpha } = *self;
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

impl Fabric {
    /// Why a switch whose ports share a buffer does not even offer a frame to a port.
    #[cold]
    pub(crate) fn refused_by_shared_buffer(
        &mut self,
        now: Picoseconds,
        (switch, output): (usize, PortIndex),
        frame_bytes: u32,
        shared: SharedBufferConfig,
    ) -> Option<Reason> {
        let mut used_bytes = 0;
        for port in &self.switch_ports[switch] {
            let port = &mut self.ports[usize::from(port.0)];
            port.catch_up(now);
            used_bytes += port.buffered_bytes();
        }
        let port_bytes = self.ports[usize::from(output.0)].buffered_bytes();
        (!shared.admits(frame_bytes, port_bytes, used_bytes)).then_some(Reason::SharedBuffer)
    }
}
