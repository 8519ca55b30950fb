//! What happens at ports that are watched: as records, and as a capture with the fate of every frame.

use crate::capture::{Capture, CaptureCounts};
use crate::spool::{self, Column};
use framegauge_fabric::{PortEvent, PortEventKind, PortIndex};
use framegauge_linux::Result;
use framegauge_packets::pcapng::{Captured, Direction};
use std::fs::File;

/// Bytes of each frame in a capture: all headers there are, and a little.
pub(crate) const SNAP_BYTES: usize = 192;
/// Events that are kept; more are counted.
const MOST_EVENTS: usize = 4_000_000;
const CAPTURE_BYTES: u64 = 256 << 20;
/// A capture has three interfaces a port: what came, what left, and what did neither.
const SIDES: [&str; 3] = ["in", "out", "dropped"];

/// What was seen since the begin.
pub struct Watching {
    ports: Vec<PortIndex>,
    began_nanoseconds: u64,
    /// To be added to the fabric's nanoseconds for those since 1970.
    since_1970: u64,
    events: Vec<PortEvent>,
    left_out: u64,
    capture: Option<Capture>,
}

/// The files of what was seen.
pub struct Watched {
    /// One row an event.
    pub events: File,
    /// Events that there was no room for.
    pub events_left_out: u64,
    /// The capture, if there is one.
    pub capture: Option<(File, CaptureCounts)>,
}

impl Watching {
    /// From now (nanoseconds of the fabric) on; with a capture if `capture`.
    pub(crate) fn begin(
        ports: Vec<PortIndex>,
        names: &[String],
        now: u64,
        since_1970: u64,
        capture: bool,
    ) -> Result<Self> {
        let port = |port: &PortIndex| names[usize::from(port.0)].clone();
        let sides = ports.iter().map(port).flat_map(|port| SIDES.map(|side| format!("{port} {side}")));
        let interfaces: Vec<String> = sides.collect();
        let capture =
            capture.then(|| Capture::begin(&interfaces, SNAP_BYTES as u32, CAPTURE_BYTES)).transpose()?;
        Ok(Self { ports, began_nanoseconds: now, since_1970, events: Vec::new(), left_out: 0, capture })
    }

    /// The ports that are watched.
    pub(crate) fn ports(&self) -> &[PortIndex] {
        &self.ports
    }

    /// Whether frames' bytes are wanted.
    pub(crate) fn captures(&self) -> bool {
        self.capture.is_some()
    }

    /// Takes in an event. `bytes` are the first of its frame, none of one that has no bytes; `input` is the name of the
    /// port that it came by.
    pub(crate) fn note(&mut self, event: &PortEvent, bytes: &[u8], input: &str) {
        if self.events.len() < MOST_EVENTS {
            self.events.push(*event);
        } else {
            self.left_out += 1;
        }
        let Some(place) = self.ports.iter().position(|port| *port == event.port) else { return };
        let Some(capture) = &mut self.capture else { return };
        let side = match event.kind {
            PortEventKind::Arrived => 0,
            PortEventKind::Departed => 1,
            PortEventKind::Dropped => 2,
            // It is told of a frame that stays: its departure shows the mark.
            PortEventKind::Marked => return,
        };
        capture.add(&Captured {
            interface: (SIDES.len() * place + side) as u32,
            time_nanoseconds: self.since_1970 + event.time.as_nanoseconds(),
            // A capture has frames without FCS.
            original_bytes: event.frame.frame_bytes - 4,
            bytes,
            direction: Some(if side == 0 { Direction::Inbound } else { Direction::Outbound }),
            comment: Some(&fate(event, input)),
        });
    }

    /// The files; `names` are those of all ports.
    pub fn write(mut self, names: &[String]) -> Result<Watched> {
        self.events.sort_by_key(|event| event.time);
        let events = &self.events;
        let began = self.began_nanoseconds as f64 * 1e-9;
        let name = |port: PortIndex| names.get(usize::from(port.0)).cloned().unwrap_or_default();
        let text = |value: &dyn Fn(&PortEvent) -> String| Column::Text(events.iter().map(value).collect());
        let file = spool::write(vec![
            (
                "time_seconds",
                Column::Float(events.iter().map(|event| event.time.as_seconds_f64() - began).collect()),
            ),
            ("port", text(&|event| name(event.port))),
            ("kind", text(&|event| kind(event.kind).to_owned())),
            ("input_port", text(&|event| name(event.frame.input_port))),
            ("flow", Column::Long(events.iter().map(|event| event.frame.flow).collect())),
            ("frame_bytes", Column::Word(events.iter().map(|event| event.frame.frame_bytes).collect())),
            ("queue_bytes", Column::Long(events.iter().map(|event| event.queue_bytes).collect())),
            ("reason", text(&|event| event.reason.map_or("", |reason| reason.name()).to_owned())),
        ])?;
        let capture = self.capture.map(Capture::end).transpose()?;
        Ok(Watched { events: file, events_left_out: self.left_out, capture })
    }
}

const fn kind(kind: PortEventKind) -> &'static str {
    match kind {
        PortEventKind::Arrived => "arrived",
        PortEventKind::Dropped => "dropped",
        PortEventKind::Marked => "marked",
        PortEventKind::Departed => "departed",
    }
}

/// What became of a frame, in a line.
fn fate(event: &PortEvent, input: &str) -> String {
    let queue = event.queue_bytes;
    let load = if event.frame.background().is_some() { ", background load" } else { "" };
    match event.kind {
        PortEventKind::Arrived => format!("came by {input}{load}; queue {queue} bytes"),
        PortEventKind::Departed => {
            let waited = (event.time - event.frame.since).as_seconds_f64() * 1e6;
            format!("sent {waited:.3} us after it came by {input}{load}; queue {queue} bytes")
        }
        PortEventKind::Dropped | PortEventKind::Marked => {
            let reason = event.reason.map_or("", |reason| reason.name());
            format!("{} ({reason}), came by {input}{load}; queue {queue} bytes", kind(event.kind))
        }
    }
}
