//! What live sockets tell of what they sent, read when all is done.

use framegauge_linux::Result;
use framegauge_linux::tcp;
use std::os::fd::RawFd;

/// The sums over an end's sockets.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts; `None` where the kernel does not count them (before Linux 6.7).
    pub timeouts: Option<u64>,
    payload_bytes: u64,
    payload_segments: u64,
}

impl Default for Sent {
    fn default() -> Self {
        Self { retransmits: 0, timeouts: Some(0), payload_bytes: 0, payload_segments: 0 }
    }
}

impl Sent {
    /// Adds what the kernel tells of a connection.
    pub(crate) fn read(&mut self, socket: RawFd) -> Result<()> {
        let info = tcp::info(socket)?;
        self.add(Self {
            retransmits: u64::from(info.retransmits),
            timeouts: info.counts_timeouts.then_some(u64::from(info.timeouts)),
            payload_bytes: info.bytes_sent,
            payload_segments: u64::from(info.data_segments_sent),
        });
        Ok(())
    }

    /// Adds other sums.
    pub(crate) fn add(&mut self, other: Self) {
        self.retransmits += other.retransmits;
        self.timeouts = self.timeouts.zip(other.timeouts).map(|(one, more)| one + more);
        self.payload_bytes += other.payload_bytes;
        self.payload_segments += other.payload_segments;
    }

    /// Payload bytes a segment, as TCP counted them, retransmits included.
    pub fn mean_segment_payload_bytes(&self) -> Option<f64> {
        (self.payload_segments > 0).then(|| self.payload_bytes as f64 / self.payload_segments as f64)
    }
}
