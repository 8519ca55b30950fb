//! Queue disciplines: one file each, registered in [`Queue`] and [`QueueConfig`].

mod taildrop;

use framegauge_frames::Picoseconds;

use crate::{DropReason, Frame, QueueConfig};

pub use taildrop::Taildrop;

/// What decides which waiting frame leaves next, and which frame never does.
///
/// A port calls with times that never go back. The frame being sent is no longer in the queue, but in the
/// buffer: its bytes are handed in where the limit counts.
pub trait Discipline {
    /// Takes a frame in, or says why not. `transmitting_bytes`: `frame_bytes` of the frame being sent.
    fn offer(&mut self, now: Picoseconds, frame: Frame, transmitting_bytes: u64) -> Result<(), DropReason>;
    /// Gives the next frame to send. A port asks when it becomes idle.
    fn take(&mut self, now: Picoseconds) -> Option<Frame>;
    /// `frame_bytes` of what waits.
    fn bytes(&self) -> u64;
    /// Frames that wait.
    fn frames(&self) -> u64;
}

/// The discipline of a port: an enum, because a call through a pointer for every frame costs more.
#[derive(Debug, Clone)]
pub enum Queue {
    /// First in, first out; what does not fit is dropped.
    Taildrop(Taildrop),
}

impl From<QueueConfig> for Queue {
    fn from(config: QueueConfig) -> Queue {
        match config {
            QueueConfig::Taildrop { limit_bytes } => Queue::Taildrop(Taildrop::new(limit_bytes)),
        }
    }
}

/// Calls a method of whichever discipline it is.
macro_rules! dispatch {
    ($queue:expr, $discipline:ident => $call:expr) => {
        match $queue {
            Queue::Taildrop($discipline) => $call,
        }
    };
}

impl Discipline for Queue {
    fn offer(&mut self, now: Picoseconds, frame: Frame, transmitting_bytes: u64) -> Result<(), DropReason> {
        dispatch!(self, queue => queue.offer(now, frame, transmitting_bytes))
    }

    fn take(&mut self, now: Picoseconds) -> Option<Frame> {
        dispatch!(self, queue => queue.take(now))
    }

    fn bytes(&self) -> u64 {
        dispatch!(self, queue => queue.bytes())
    }

    fn frames(&self) -> u64 {
        dispatch!(self, queue => queue.frames())
    }
}
