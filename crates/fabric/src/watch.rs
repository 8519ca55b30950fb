//! What happens at a port, frame by frame.

use framegauge_frames::Picoseconds;

use crate::{Fabric, Frame, PortIndex, Reason, Sink};

/// What has happened to a frame at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PortEventKind {
    /// It came to the port; if it was not taken in, that follows.
    Arrived,
    /// It was dropped, or lost on the link behind the port after it had left.
    Dropped,
    /// It was marked, and goes on.
    Marked,
    /// Its last bit has left.
    Departed,
}

/// One thing that happened at a port that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortEvent {
    /// When.
    pub time: Picoseconds,
    /// Where.
    pub port: PortIndex,
    /// What.
    pub kind: PortEventKind,
    /// To which frame; as it is after.
    pub frame: Frame,
    /// What the buffer holds after it, in `frame_bytes`, the frame being sent included.
    pub queue_bytes: u64,
    /// Why it was dropped or marked.
    pub reason: Option<Reason>,
}

/// What has happened at a port and nobody was told yet.
#[derive(Debug, Clone)]
pub(crate) struct PortLog {
    port: PortIndex,
    events: Vec<PortEvent>,
}

impl PortLog {
    pub(crate) fn new(port: PortIndex) -> PortLog {
        PortLog { port, events: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// Writes something down, before everything that was written down since there were `place` events.
    pub(crate) fn insert(
        &mut self,
        place: usize,
        time: Picoseconds,
        (kind, reason): (PortEventKind, Option<Reason>),
        frame: Frame,
        queue_bytes: u64,
    ) {
        let port = self.port;
        self.events.insert(place, PortEvent { time, port, kind, frame, queue_bytes, reason });
    }

    pub(crate) fn take(&mut self) -> Vec<PortEvent> {
        std::mem::take(&mut self.events)
    }
}

impl Fabric {
    /// Whether [`Sink::seen`] is told what happens at a port, from now on. What nobody was told when it ends is forgotten:
    /// since the last [`Fabric::advance`].
    ///
    /// # Panics
    ///
    /// If the port is not one of this fabric.
    pub fn watch(&mut self, port: PortIndex, watched: bool) {
        self.watched.retain(|other| *other != port);
        if watched {
            self.watched.push(port);
        }
        self.ports[usize::from(port.0)].watch(watched.then_some(port));
    }

    /// Tells what has happened at a port, if it is watched.
    pub(crate) fn tell_seen(&mut self, port: PortIndex, sink: &mut impl Sink) {
        for event in self.ports[usize::from(port.0)].take_log() {
            sink.seen(&event);
        }
    }

    /// Tells what has happened by now at all ports that are watched, frames that have left and not arrived included.
    #[cold]
    pub(crate) fn tell_all_seen(&mut self, sink: &mut impl Sink) {
        for place in 0..self.watched.len() {
            let port = self.watched[place];
            self.ports[usize::from(port.0)].catch_up(self.heard);
            self.tell_seen(port, sink);
        }
    }
}
