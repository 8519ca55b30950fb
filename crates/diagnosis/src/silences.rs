//! Silences of a sender, from the pause that opened them until it is known what they were.

use crate::kinds::Kind;
use crate::sizes::Tries;
use framegauge_packets::capture::Segment;

/// Silence that resends of the same data ended, until that data is acknowledged.
#[derive(Debug, Clone, Default)]
pub(crate) struct Episode {
    pub(crate) una: u64,
    pub(crate) begin: i64,
    pub(crate) lost: i64,
    pub(crate) resends: u32,
    /// The sizes of what was resent.
    pub(crate) tries: Tries,
    /// The largest payload that had ever arrived before.
    pub(crate) delivered: u32,
    /// SACK or three duplicate acknowledgements had revealed the loss.
    pub(crate) revealed: bool,
    /// The data had been resent before the silence.
    pub(crate) repaired_before: bool,
    /// The other end was heard meanwhile.
    pub(crate) heard: bool,
    /// New data ended the silence, so that more had been waiting if the data before it is lost.
    pub(crate) probed: bool,
    /// What ended it was the other end, which asked again for what had been answered.
    pub(crate) asked_again: bool,
    /// What was sent again has an older timestamp than what was sent before.
    pub(crate) is_stale: bool,
    /// It was sent to a server that had not heard the end of the handshake.
    pub(crate) is_unheard: bool,
    /// The oldest segment was repeated: a timeout does so (RFC 6298 section 5.4), a probe sends the newest (RFC 8985 section 7.3).
    pub(crate) by_timeout: bool,
    /// It ended by RACK's reordering timer.
    pub(crate) by_reordering_timer: bool,
    /// The timestamp of the first repeat, or of the new data.
    pub(crate) stamp: Option<u32>,
    /// The place after all that had been sent when it began.
    pub(crate) high: u64,
    pub(crate) packets: Vec<u64>,
}

impl Episode {
    /// Whether an acknowledgement that ends it answers what was sent before its repeat: it echoes an older timestamp.
    pub(crate) fn was_needless(&self, ack: &Segment) -> bool {
        match (self.stamp, ack.timestamps) {
            (Some(stamp), Some((_, echo))) => (echo.wrapping_sub(stamp) as i32) < 0,
            _ => false,
        }
    }
}

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
    /// A probe ended it, and no timeout: what it showed was repaired without one.
    pub(crate) by_probe: bool,
    /// Why it may be no loss.
    pub(crate) doubt: Option<Doubt>,
    pub(crate) packets: Vec<u64>,
}

/// Why a silence may be no loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The bytes that were not seen when it ended, as long as nothing shows that they were lost.
    Hole(u64, u64),
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
    /// What it was, if more had been waiting.
    pub(crate) fn kind_of_loss(&self) -> Kind {
        if self.by_probe { Kind::TailLoss } else { Kind::RtoStall }
    }

    /// Whether it hangs on a hole within `range`.
    pub(crate) fn is_behind(&self, range: (u64, u64)) -> bool {
        matches!(self.doubt, Some(Doubt::Hole(begin, end)) if begin < range.1 && range.0 < end)
    }
}

/// Takes out those that hang on holes within `range`.
pub(crate) fn take_behind(all: &mut Vec<Doubtful>, range: (u64, u64)) -> Vec<Doubtful> {
    if all.is_empty() {
        return Vec::new();
    }
    let (behind, rest) = std::mem::take(all).into_iter().partition(|one| one.silence.is_behind(range));
    *all = rest;
    behind
}
