//! Frames in the order of their arrival, with the sum of their bytes.

use std::collections::VecDeque;

use crate::Frame;

/// What every discipline is made of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fifo {
    frames: VecDeque<Frame>,
    bytes: u64,
}

impl Fifo {
    pub(crate) fn push(&mut self, frame: Frame) {
        self.bytes += u64::from(frame.frame_bytes);
        self.frames.push_back(frame);
    }

    pub(crate) fn pop(&mut self) -> Option<Frame> {
        let frame = self.frames.pop_front()?;
        self.bytes -= u64::from(frame.frame_bytes);
        Some(frame)
    }

    pub(crate) fn pop_last(&mut self) -> Option<Frame> {
        let frame = self.frames.pop_back()?;
        self.bytes -= u64::from(frame.frame_bytes);
        Some(frame)
    }

    /// Takes the frame at this place out, if there is one.
    pub(crate) fn remove(&mut self, place: u64) -> Option<Frame> {
        let frame = self.frames.remove(place as usize)?;
        self.bytes -= u64::from(frame.frame_bytes);
        Some(frame)
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Frame> {
        self.bytes = 0;
        self.frames.drain(..)
    }

    pub(crate) fn first(&self) -> Option<&Frame> {
        self.frames.front()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn len(&self) -> u64 {
        self.frames.len() as u64
    }
}

/// Empties all of these: their frames in the order in which they came, those of one queue in its order.
pub(crate) fn drain_all(queues: &mut [Fifo]) -> Vec<Frame> {
    let mut frames: Vec<Frame> = queues.iter_mut().flat_map(Fifo::drain).collect();
    frames.sort_by_key(|frame| frame.since);
    frames
}
