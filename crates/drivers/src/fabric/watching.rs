//! What happens at ports that are watched: as records, and as a capture with the fate of every frame.

use crate::fabric::capture::{Capture, CaptureCounts};
use crate::spool::{self, Column};
use framegauge_fabric::{PortEvent, PortEventKind, PortIndex};
use framegauge_frames::Picoseconds;
use framegauge_linux::Result;
use framegauge_packets::pcapng::{Captured, Direction};
use std::collections::HashMap;
use std::fs::File;

/// Bytes of each frame in a capture: all headers there are, and a little.
pub(crate) const SNAP_BYTES: usize = 192;
/// Events that are kept; more are counted.
const MOST_EVENTS: usize = 4_000_000;
const CAPTURE_BYTES: u64 = 256 << 20;
/// A capture has three interfaces a port: what came, what left, and what did neither.
pub(crate) const SIDES: [&str; 3] = ["in", "out", "dropped"];

/// What was seen since the begin.
pub struct Watching {
    ports: Vec<PortIndex>,
    began_nanoseconds: u64,
    /// To be added to the fabric's nanoseconds for those since 1970.
    since_1970: u64,
    events: Vec<PortEvent>,
    left_out: u64,
    capture: Option<Capture>,
    around_nanoseconds: Option<u64>,
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
    /// From now (nanoseconds of the fabric) on; with a capture if `capture`. With `around_nanoseconds` only those events are
    /// kept in the end that are so near to the longest run of drops of one input at their port.
    pub(crate) fn begin(
        ports: Vec<PortIndex>,
        names: &[String],
        now: u64,
        since_1970: u64,
        capture: bool,
        around_nanoseconds: Option<u64>,
    ) -> Result<Self> {
        let port = |port: &PortIndex| names[usize::from(port.0)].clone();
        let sides = ports.iter().map(port).flat_map(|port| SIDES.map(|side| format!("{port} {side}")));
        let interfaces: Vec<String> = sides.collect();
        let capture =
            capture.then(|| Capture::begin(&interfaces, SNAP_BYTES as u32, CAPTURE_BYTES)).transpose()?;
        Ok(Self {
            ports,
            began_nanoseconds: now,
            since_1970,
            events: Vec::new(),
            left_out: 0,
            capture,
            around_nanoseconds,
        })
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

    /// Keeps what is near to the longest run of drops of one input at each port; of a port without drops the beginning.
    fn keep_around(&mut self, around: Picoseconds) {
        let spans: Vec<_> = self.ports.iter().map(|port| longest_run(&self.events, *port)).collect();
        let ports = &self.ports;
        self.events.retain(|event| {
            let span = ports.iter().position(|port| *port == event.port).map(|place| spans[place]);
            span.is_some_and(|(first, last)| first <= event.time + around && event.time <= last + around)
        });
    }

    /// The files; `names` are those of all ports.
    pub fn write(mut self, names: &[String]) -> Result<Watched> {
        self.events.sort_by_key(|event| event.time);
        if let Some(around) = self.around_nanoseconds {
            self.keep_around(Picoseconds::from_nanoseconds(around));
        }
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

/// From the first to the last drop of the longest run of drops of one input at a port, between which no other frame of that
/// input was let in; without any, the time of the first event.
fn longest_run(events: &[PortEvent], port: PortIndex) -> (Picoseconds, Picoseconds) {
    let begin = events.iter().find(|event| event.port == port).map_or(Picoseconds::ZERO, |event| event.time);
    let mut longest = (0, begin, begin);
    let mut open: HashMap<PortIndex, (u32, Picoseconds, Picoseconds)> = HashMap::new();
    let mut arrived: HashMap<PortIndex, Picoseconds> = HashMap::new();
    for event in events.iter().filter(|event| event.port == port) {
        let input = event.frame.input_port;
        match event.kind {
            PortEventKind::Arrived => {
                // A frame that came and was not dropped ends the run before it; whether it was is told next.
                if arrived.insert(input, event.time).is_some() {
                    open.remove(&input);
                }
            }
            PortEventKind::Dropped => {
                arrived.remove(&input);
                let run = open.entry(input).or_insert((0, event.time, event.time));
                (run.0, run.2) = (run.0 + 1, event.time);
                if run.0 > longest.0 {
                    longest = *run;
                }
            }
            PortEventKind::Marked | PortEventKind::Departed => {}
        }
    }
    (longest.1, longest.2)
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

#[cfg(test)]
mod tests {
    use super::*;
    use framegauge_fabric::{Ecn, Frame, HostIndex};

    /// What happened, a letter each: a frame of input a or b came and stayed, of A or B came and was dropped.
    fn events(letters: &str) -> Vec<PortEvent> {
        let mut events = Vec::new();
        for (place, letter) in letters.chars().enumerate() {
            let input = PortIndex(u16::from(letter.eq_ignore_ascii_case(&'b')));
            let frame = Frame {
                flow: 0,
                aggregate: place as u32,
                frame_bytes: 1518,
                index: 0,
                ecn: Ecn::NOT_CAPABLE,
                band: 0,
                destination: HostIndex(0),
                input_port: input,
                since: Picoseconds::ZERO,
            };
            let event = |kind| PortEvent {
                time: Picoseconds::new(place as u64),
                port: PortIndex(9),
                kind,
                frame,
                queue_bytes: 0,
                reason: None,
            };
            events.push(event(PortEventKind::Arrived));
            if letter.is_ascii_uppercase() {
                events.push(event(PortEventKind::Dropped));
            }
        }
        events
    }

    #[test]
    fn the_longest_run_is_of_one_input_while_others_may_pass() {
        for (letters, first, last) in [
            ("aBaaBbBAABaBb", 6, 11),
            ("bbbaaa", 0, 0),
            ("AbAbAaAA", 0, 4),
            ("BaB", 0, 2),
            ("AAaBaBaBb", 3, 7),
        ] {
            let span = longest_run(&events(letters), PortIndex(9));
            assert_eq!(span, (Picoseconds::new(first), Picoseconds::new(last)), "{letters}");
        }
    }
}
