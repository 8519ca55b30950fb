//! Every drop and every mark is explained.

use std::collections::HashMap;

use framegauge_frames::Picoseconds;

use crate::{Fate, NodeIndex, PortIndex};

/// Records of drops and marks that are kept until they are taken; more are only counted.
pub const DROP_RECORDS_MAXIMUM: usize = 1_000_000;

/// Why a frame was dropped, or marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The buffer had no room for it.
    Taildrop,
    /// It was larger than the port's MTU allows.
    Giant,
    /// RED: the average queue was long, and the draw met it.
    Early,
    /// RED: the average queue was longer than is to be borne.
    Forced,
    /// Its flow had the most bytes in a full buffer (SFQ, FQ-CoDel).
    LongestFlow,
    /// It was drawn in a full buffer (random drop).
    RandomDrop,
    /// It had waited too long for too long (CoDel).
    Sojourn,
    /// A blackout of its input port was on.
    Blackout,
    /// The queue was over the step of marking; never a reason for a drop.
    Step,
    /// Its port had its share of the buffer that the switch's ports have together.
    SharedBuffer,
    /// It was lost on the link behind the port.
    Loss,
    /// The script of the link behind the port says so ([`crate::Script`]).
    Script,
    /// The link behind the port was down, or went down while the frame waited or was on it.
    LinkDown,
    /// It told of an error (ICMP), and the port lets no such pass.
    Filtered,
}

impl Reason {
    /// The word for reports: `taildrop`, `giant`, `longest_flow`.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Taildrop => "taildrop",
            Reason::Giant => "giant",
            Reason::Early => "early",
            Reason::Forced => "forced",
            Reason::LongestFlow => "longest_flow",
            Reason::RandomDrop => "random_drop",
            Reason::Sojourn => "sojourn",
            Reason::Blackout => "blackout",
            Reason::Step => "step",
            Reason::SharedBuffer => "shared_buffer",
            Reason::Loss => "loss",
            Reason::Script => "script",
            Reason::LinkDown => "link_down",
            Reason::Filtered => "filtered",
        }
    }
}

/// One frame that was dropped, or marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Drop {
    /// When.
    pub time: Picoseconds,
    /// The output port it would have left by, or by whose link it was lost.
    pub port: PortIndex,
    /// The port by whose link it came.
    pub input_port: PortIndex,
    /// Hash of its flow.
    pub flow: u64,
    /// Its size with header and FCS, in bytes.
    pub frame_bytes: u32,
    /// What the buffer held then, in `frame_bytes`.
    pub queue_bytes: u64,
    /// Why.
    pub reason: Reason,
    /// Whether it was marked, and went on.
    pub marked: bool,
    /// Frames from this input port that were dropped in a row at this port, with this one; of a marked one: marked in
    /// a row. A frame that is taken in unmarked ends both runs. Of those lost on the link: lost in a row there.
    pub run_length: u32,
}

/// Frames of one input port in a row.
#[derive(Debug, Clone, Copy, Default)]
struct Runs {
    dropped: u32,
    marked: u32,
    lost: u32,
}

/// Records up to a cap, so that an overloaded run ends with too few records instead of no memory.
#[derive(Debug, Clone)]
pub(crate) struct DropLog {
    records: Vec<Drop>,
    overflow: u64,
    /// By port: its place among those whose links end where its own does.
    places: Vec<u16>,
    /// By output port and the place of the input port.
    runs: Vec<Vec<Runs>>,
}

impl DropLog {
    /// Of ports by the nodes at which their links end.
    pub(crate) fn new(ends: impl Iterator<Item = NodeIndex>) -> DropLog {
        let mut counts: HashMap<NodeIndex, u16> = HashMap::new();
        let place = |end| {
            let next = counts.entry(end).or_insert(0);
            std::mem::replace(next, *next + 1)
        };
        let places: Vec<u16> = ends.map(place).collect();
        DropLog { records: Vec::new(), overflow: 0, runs: vec![Vec::new(); places.len()], places }
    }

    /// Writes down what became of a frame at a port.
    pub(crate) fn record(&mut self, fate: &Fate, port: PortIndex) {
        let Fate { time, frame, reason, marked, queue_bytes } = *fate;
        let run_length = self.lengthen_run(port, frame.input_port, reason, marked);
        if self.records.len() >= DROP_RECORDS_MAXIMUM {
            self.overflow += 1;
            return;
        }
        self.records.push(Drop {
            time,
            port,
            input_port: frame.input_port,
            flow: frame.flow,
            frame_bytes: frame.frame_bytes,
            queue_bytes,
            reason,
            marked,
            run_length,
        });
    }

    fn lengthen_run(&mut self, output: PortIndex, input: PortIndex, reason: Reason, marked: bool) -> u32 {
        let runs = &mut self.runs[usize::from(output.0)];
        let input = usize::from(self.places[usize::from(input.0)]);
        // Most pairs of ports never drop.
        if runs.len() <= input {
            runs.resize(input + 1, Runs::default());
        }
        let run = match (marked, reason) {
            (true, _) => &mut runs[input].marked,
            (false, Reason::Loss | Reason::Script) => &mut runs[input].lost,
            (false, _) => &mut runs[input].dropped,
        };
        *run = run.saturating_add(1);
        *run
    }

    /// A frame from that input port was taken in by that output port, unmarked.
    #[inline]
    pub(crate) fn end_runs(&mut self, output: PortIndex, input: PortIndex) {
        let runs = &mut self.runs[usize::from(output.0)];
        if runs.is_empty() {
            return;
        }
        if let Some(runs) = runs.get_mut(usize::from(self.places[usize::from(input.0)])) {
            *runs = Runs { lost: runs.lost, ..Runs::default() };
        }
    }

    /// A frame from that input port has passed the link behind that output port.
    pub(crate) fn end_losses(&mut self, output: PortIndex, input: PortIndex) {
        let place = usize::from(self.places[usize::from(input.0)]);
        if let Some(runs) = self.runs[usize::from(output.0)].get_mut(place) {
            runs.lost = 0;
        }
    }

    pub(crate) fn take(&mut self) -> Vec<Drop> {
        std::mem::take(&mut self.records)
    }

    pub(crate) fn overflow(&self) -> u64 {
        self.overflow
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ecn, Frame, HostIndex};

    #[test]
    fn records_beyond_the_cap_are_counted() {
        let frame = Frame {
            flow: 0,
            aggregate: 0,
            frame_bytes: 1518,
            index: 0,
            ecn: Ecn::NOT_CAPABLE,
            band: 0,
            destination: HostIndex(0),
            input_port: PortIndex(1),
            since: Picoseconds::ZERO,
        };
        let time = Picoseconds::ZERO;
        let fate = Fate { time, frame, reason: Reason::Taildrop, marked: false, queue_bytes: 0 };
        let mut log = DropLog::new([NodeIndex(1), NodeIndex(0)].into_iter());
        (0..DROP_RECORDS_MAXIMUM + 2).for_each(|_| log.record(&fate, PortIndex(0)));
        assert_eq!((log.take().len(), log.overflow()), (DROP_RECORDS_MAXIMUM, 2));
        log.record(&fate, PortIndex(0));
        assert_eq!((log.take().len(), log.overflow()), (1, 2));
    }
}
