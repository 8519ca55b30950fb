//! A port of a lossless network: it stops when the far end says PAUSE, and says so to the far end itself.

use framegauge_frames::{Picoseconds, wire_bytes};

use super::Port;
use crate::lossless::PAUSE_FRAME_BYTES;
use crate::{Discipline, PortIndex};

/// What such a port has besides. A frame that is being sent is always finished.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pausing {
    /// It is a switch's, which counts what it holds.
    is_switch: bool,
    /// The far end has said PAUSE: no frame begins.
    is_paused: bool,
    /// When that began last, and how long it was so before.
    paused_since: Picoseconds,
    paused: Picoseconds,
    /// Since when frames wait for nothing else, and how long they did before.
    held_since: Option<Picoseconds>,
    held: Picoseconds,
    /// Whether the far end is to pause, and what it was told last.
    wanted: bool,
    told: bool,
    pauses: u64,
    /// Until when a PAUSE or a RESUME is being sent.
    control_until: Picoseconds,
    /// The frame being sent: by whose link it came, and its size.
    sending: Option<(PortIndex, u32)>,
    /// The same of frames that have left, until somebody takes it.
    left: Vec<(PortIndex, u32)>,
    /// What the far end was told, and when the last bit of that is there, until somebody takes it.
    said: Vec<(Picoseconds, bool)>,
}

impl Port {
    /// It belongs to a lossless network.
    pub(crate) fn obey_pauses(&mut self, is_switch: bool) {
        self.pausing = Some(Box::new(Pausing { is_switch, ..Pausing::default() }));
    }

    /// The part of [`Port::start`] for such a port: what the far end is told goes first.
    #[cold]
    pub(super) fn start_unless_paused(&mut self, now: Picoseconds) {
        let Some(pausing) = &mut self.pausing else { return };
        if let Some(left) = pausing.sending.take().filter(|_| pausing.is_switch) {
            pausing.left.push(left);
        }
        if pausing.control_until > now {
            return;
        }
        if pausing.wanted != pausing.told {
            let wire_bytes = u64::from(wire_bytes(PAUSE_FRAME_BYTES)) + self.tag_bytes;
            let serialisation = self.rate.serialisation(wire_bytes);
            self.counters.busy += serialisation;
            pausing.told = pausing.wanted;
            pausing.pauses += u64::from(pausing.told);
            pausing.control_until = now + serialisation;
            pausing.said.push((pausing.control_until + self.delay, pausing.told));
            return;
        }
        if pausing.is_paused {
            if self.queue.frames() > 0 {
                pausing.held_since.get_or_insert(now);
            }
            return;
        }
        if let Some(since) = pausing.held_since.take() {
            pausing.held += now - since;
        }
        self.start_by_discipline(now);
        let sending = self.transmission.and(self.in_flight.back()).map(|departed| departed.frame);
        if let Some(pausing) = &mut self.pausing {
            pausing.sending = sending.map(|frame| (frame.input_port, frame.frame_bytes));
        }
    }

    /// Lets happen what is due by `now`, the end of a PAUSE that was being sent included.
    pub(crate) fn touch(&mut self, now: Picoseconds) {
        self.catch_up(now);
        if self.transmission.is_none() {
            self.start(now);
        }
    }

    /// The far end has said PAUSE, or RESUME.
    pub(crate) fn pause(&mut self, now: Picoseconds, is_paused: bool) {
        self.catch_up(now);
        if let Some(pausing) = &mut self.pausing {
            match is_paused {
                true => pausing.paused_since = now,
                false => pausing.paused += now - pausing.paused_since,
            }
            pausing.is_paused = is_paused;
        }
        self.touch(now);
    }

    /// The far end is to pause, or to go on. It is told as soon as the frame being sent has left; what has changed again by
    /// then is not said.
    pub(crate) fn ask_to_pause(&mut self, now: Picoseconds, is_pause: bool) {
        self.catch_up(now);
        if let Some(pausing) = &mut self.pausing {
            pausing.wanted = is_pause;
        }
        self.touch(now);
    }

    /// When it is to be touched next; a host's need not be.
    pub(crate) fn next_touch(&self, now: Picoseconds) -> Option<Picoseconds> {
        let pausing = self.pausing.as_ref().filter(|pausing| pausing.is_switch)?;
        self.departure().or(Some(pausing.control_until).filter(|until| *until > now))
    }

    /// A frame that has left: by whose link it came, and its size.
    pub(crate) fn take_left(&mut self) -> Option<(PortIndex, u32)> {
        self.pausing.as_mut()?.left.pop()
    }

    /// What the far end was told, and when it knows.
    pub(crate) fn take_said(&mut self) -> Option<(Picoseconds, bool)> {
        self.pausing.as_mut()?.said.pop()
    }

    /// How long frames have waited by now for nothing but a RESUME, all times together.
    pub(crate) fn held_back(&self, now: Picoseconds) -> Picoseconds {
        self.pausing.as_ref().map_or(Picoseconds::ZERO, |pausing| {
            pausing.held + pausing.held_since.map_or(Picoseconds::ZERO, |since| now - since)
        })
    }

    /// PAUSE frames that it has sent, how long it was paused, and how much longer it sends what it tells.
    pub(super) fn pausing_counts(&self, now: Picoseconds) -> (u64, Picoseconds, Picoseconds) {
        self.pausing.as_ref().map_or((0, Picoseconds::ZERO, Picoseconds::ZERO), |pausing| {
            let present = if pausing.is_paused { now - pausing.paused_since } else { Picoseconds::ZERO };
            (pausing.pauses, pausing.paused + present, pausing.control_until - now)
        })
    }
}
