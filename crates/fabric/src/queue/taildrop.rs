//! First in, first out, with a limit in bytes.

use std::collections::VecDeque;

use framegauge_frames::Picoseconds;

use crate::{Discipline, DropReason, Frame};

/// What most switches do: a frame that does not fit into the buffer is dropped.
#[derive(Debug, Clone)]
pub struct Taildrop {
    frames: VecDeque<Frame>,
    bytes: u64,
    limit_bytes: u64,
}

impl Taildrop {
    /// An empty queue for a buffer of `limit_bytes`, counted in `frame_bytes`.
    pub fn new(limit_bytes: u64) -> Taildrop {
        Taildrop { frames: VecDeque::new(), bytes: 0, limit_bytes }
    }
}

impl Discipline for Taildrop {
    fn offer(&mut self, _now: Picoseconds, frame: Frame, transmitting_bytes: u64) -> Result<(), DropReason> {
        let frame_bytes = u64::from(frame.frame_bytes);
        if self.bytes + transmitting_bytes + frame_bytes > self.limit_bytes {
            return Err(DropReason::Taildrop);
        }
        self.bytes += frame_bytes;
        self.frames.push_back(frame);
        Ok(())
    }

    fn take(&mut self, _now: Picoseconds) -> Option<Frame> {
        let frame = self.frames.pop_front()?;
        self.bytes -= u64::from(frame.frame_bytes);
        Some(frame)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn frames(&self) -> u64 {
        self.frames.len() as u64
    }
}
