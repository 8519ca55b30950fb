//! A silence that is over: what it may have been, and why that may be no loss.

use crate::kinds::Kind;
use crate::silences::echoes_older;
use framegauge_packets::capture::Segment;

/// A silence that is over, and of which the next new data will tell whether more was waiting.
#[derive(Debug, Clone)]
pub(crate) struct Silence {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) lost: i64,
    pub(crate) acknowledged: i64,
    /// The place after what was lost: data beyond it is new.
    pub(crate) high: u64,
    /// What was repeated first had arrived; whether all had, will show.
    pub(crate) needless: bool,
    /// What ended it answered what lay before the repeat: an answer to that tells by its echo whether it had arrived. The repeat's
    /// timestamp.
    pub(crate) unanswered: Option<u32>,
    /// A probe ended it, and no timeout: what it showed was repaired without one.
    pub(crate) by_probe: bool,
    /// Why it may be no loss.
    pub(crate) doubt: Option<Doubt>,
    pub(crate) packets: Vec<u64>,
}

/// Why a silence may be no loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The bytes that were not seen when it ended, as long as nothing shows that they were lost. `is_asked`: the receiver asks for
    /// them, which it also does for what was overtaken, until that comes.
    Hole { begin: u64, end: u64, is_asked: bool },
    /// Identifications alone say that packets are missing, which may be missing in the capture.
    Numbers,
}

/// A silence with its name, if it was a loss.
#[derive(Debug, Clone)]
pub(crate) struct Doubtful {
    pub(crate) silence: Silence,
    pub(crate) kind: Kind,
}

impl Silence {
    /// What it was, by the acknowledgement of all that was repeated.
    pub(crate) fn kind_by(&self, ack: &Segment) -> Kind {
        let had_arrived = self.unanswered.is_none_or(|stamp| echoes_older(ack, stamp));
        if had_arrived { Kind::SpuriousRetransmit } else { self.kind_of_loss() }
    }

    /// What it was, if more had been waiting.
    pub(crate) fn kind_of_loss(&self) -> Kind {
        if self.by_probe { Kind::TailLoss } else { Kind::RtoStall }
    }

    /// Whether it hangs on a hole within `range`.
    pub(crate) fn is_behind(&self, range: (u64, u64)) -> bool {
        matches!(self.doubt, Some(Doubt::Hole { begin, end, .. }) if begin < range.1 && range.0 < end)
    }
}
