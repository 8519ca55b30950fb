//! What a port is at present.

use framegauge_frames::{BitRate, Picoseconds};

use super::Port;
use crate::HostIndex;

impl Port {
    /// When the last bit of the frame leaves that is being sent.
    pub(crate) fn departure(&self) -> Option<Picoseconds> {
        self.transmission.map(|sent| sent.departs)
    }

    /// Where all frames in it and on its link go; none if they go to several.
    pub(crate) fn only_destination(&self) -> Option<HostIndex> {
        self.only_destination
    }

    /// The rate at which it sends.
    pub(crate) fn rate(&self) -> BitRate {
        self.rate
    }

    /// How long a frame is under way behind the transmitter, at least.
    pub(crate) fn delay(&self) -> Picoseconds {
        self.delay
    }
}
