//! What passes a port, for a capture of it.

use framegauge_fabric::{HostIndex, PortEvent, PortEventKind, PortIndex, Reason};

use crate::Logged;
use crate::net::Place;
use crate::segment::Slab;

/// Segments that are kept of all ports together, which as frames take at most 256 MiB of files; more are counted.
const MOST: usize = 1_400_000;

/// Of what a capture is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Point {
    /// A port: what came there, what left, and what was dropped.
    Port(PortIndex),
    /// A host: what it sends, by `sends`, and what comes to it, by `receives`.
    Host {
        /// Its name.
        name: String,
        /// Its own ports.
        sends: Vec<PortIndex>,
        /// Those at the other end of its links.
        receives: Vec<PortIndex>,
    },
}

impl Point {
    /// Ports of which all that passes must be known.
    pub fn ports(&self) -> Vec<PortIndex> {
        match self {
            Point::Port(port) => vec![*port],
            Point::Host { sends, receives, .. } => sends.iter().chain(receives).copied().collect(),
        }
    }
}

/// What a segment did at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// It came there.
    In,
    /// Its last bit left.
    Out,
    /// It was dropped there, or on the link after it had left.
    Dropped(Reason),
}

/// A segment at a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// Where.
    pub port: PortIndex,
    /// From which host to which.
    pub hosts: (HostIndex, HostIndex),
    /// What it was, and when.
    pub segment: Logged,
    /// What it did.
    pub side: Side,
}

/// What has passed the ports that are watched.
#[derive(Debug, Clone, Default)]
pub(crate) struct Capture {
    pub(crate) passed: Vec<Passed>,
    pub(crate) left_out: u64,
}

impl Capture {
    pub(crate) fn note(&mut self, event: &PortEvent, slab: &Slab, places: &[Place]) {
        let side = match (event.kind, event.reason) {
            (PortEventKind::Arrived, _) => Side::In,
            (PortEventKind::Departed, _) => Side::Out,
            (PortEventKind::Dropped, Some(reason)) => Side::Dropped(reason),
            (PortEventKind::Dropped | PortEventKind::Marked, _) => return,
        };
        if event.frame.background().is_some() {
            return;
        }
        if self.passed.len() >= MOST {
            self.left_out += 1;
            return;
        }
        let segment = slab.get(event.frame.aggregate);
        let Place { host, peer, .. } = places[segment.from as usize];
        let segment = Logged::of(event.time, segment);
        self.passed.push(Passed { port: event.port, hosts: (host, peer), segment, side });
    }
}
