//! Every drop is explained.

use framegauge_frames::Picoseconds;

use crate::PortIndex;

/// Drop records that are kept until they are taken; more are only counted.
pub const DROP_RECORDS_MAXIMUM: usize = 1_000_000;

/// Why a frame was dropped, or marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropReason {
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
    /// It had waited too long for too long (CoDel).
    Sojourn,
    /// A blackout of its input port was on.
    Blackout,
    /// The queue was over the step of marking; never a reason for a drop.
    Step,
}

impl DropReason {
    /// The word for reports: `taildrop`, `giant`, `longest_flow`.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::Taildrop => "taildrop",
            DropReason::Giant => "giant",
            DropReason::Early => "early",
            DropReason::Forced => "forced",
            DropReason::LongestFlow => "longest_flow",
            DropReason::Sojourn => "sojourn",
            DropReason::Blackout => "blackout",
            DropReason::Step => "step",
        }
    }
}

/// One frame that was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Drop {
    /// When it arrived at the port.
    pub time: Picoseconds,
    /// The output port it would have left by.
    pub port: PortIndex,
    /// The port by whose link it came.
    pub input_port: PortIndex,
    /// Hash of its flow.
    pub flow: u64,
    /// Its size with header and FCS, in bytes.
    pub frame_bytes: u32,
    /// What the buffer held when it arrived, in `frame_bytes`.
    pub queue_bytes: u64,
    /// Why.
    pub reason: DropReason,
    /// Frames dropped in a row at this port from this input port, with this one.
    pub run_length: u32,
}

/// Records up to a cap, so that an overloaded run ends with too few records instead of no memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct DropLog {
    records: Vec<Drop>,
    overflow: u64,
}

impl DropLog {
    pub(crate) fn push(&mut self, record: Drop) {
        if self.records.len() < DROP_RECORDS_MAXIMUM {
            self.records.push(record);
        } else {
            self.overflow += 1;
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

    #[test]
    fn records_beyond_the_cap_are_counted() {
        let record = Drop {
            time: Picoseconds::ZERO,
            port: PortIndex(0),
            input_port: PortIndex(1),
            flow: 0,
            frame_bytes: 1518,
            queue_bytes: 0,
            reason: DropReason::Taildrop,
            run_length: 1,
        };
        let mut log = DropLog::default();
        (0..DROP_RECORDS_MAXIMUM + 2).for_each(|_| log.push(record));
        assert_eq!((log.take().len(), log.overflow()), (DROP_RECORDS_MAXIMUM, 2));
        log.push(record);
        assert_eq!((log.take().len(), log.overflow()), (1, 2));
    }
}
