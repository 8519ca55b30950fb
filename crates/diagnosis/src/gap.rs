//! A gap between two packets of a connection, which the second one ends.

use crate::Thresholds;
use crate::connection::Side;
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

/// The time between two packets, and the second of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) from: Side,
    /// In nanoseconds.
    pub(crate) length: i64,
    /// It is longer than what packets that follow each other leave.
    pub(crate) is_pause: bool,
    pub(crate) limits: &'a Thresholds,
}

impl Gap<'_> {
    /// Whether data or a FIN ends it.
    pub(crate) fn is_ended_by_sender(&self) -> bool {
        self.segment.payload_bytes > 0 || self.segment.flags.contains(TcpFlags::FIN)
    }

    /// Whose data it is about.
    pub(crate) fn sender(&self) -> Side {
        if self.is_ended_by_sender() { self.from } else { self.from.other() }
    }
}
