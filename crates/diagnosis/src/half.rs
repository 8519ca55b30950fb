//! One direction of a connection: what one end sent, and what the other let it send.

use crate::checksums::Checksums;
use crate::counts::Counts;
use crate::discarded::Discarded;
use crate::findings::Tally;
use crate::hearing::Hearing;
use crate::hidden::Hidden;
use crate::identities::Identities;
use crate::lag::Lag;
use crate::level::Level;
use crate::mended::Told;
use crate::opening::Opening;
use crate::progress::{Progress, Run};
use crate::repairs::Repairs;
use crate::repeated::{Doubles, Repeated};
use crate::resets::Origin;
use crate::rounds::Rounds;
use crate::rtt::RoundTrip;
use crate::sent::Sent;
use crate::silences::Silences;
use crate::tracking::Tracking;
use crate::unfilled::Before;
use crate::way::Way;

/// Without a SYN: the MSS that every IPv4 path carries (RFC 9293 section 3.7.1).
const MSS_DEFAULT: u32 = 536;

/// The state of one direction. Places are those of `Unwrapper`; 0 means none yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Half {
    pub(crate) way: Way,
    pub(crate) sent: Sent,
    pub(crate) opening: Opening,
    pub(crate) round_trip: RoundTrip,
    pub(crate) hearing: Hearing,
    lag: Lag,
    /// When the last pause ended, and how long it was.
    paused: i64,
    paused_for: i64,
    /// The largest payload of one segment that arrived.
    delivered: u32,
    duplicate_acks: u32,
    /// What arrived behind the oldest at this place, as the first duplicate acknowledgement says: so many bytes at most.
    passed_behind: (u64, u32),
    /// When something new was acknowledged.
    last_progress: i64,
    pub(crate) identities: Identities,
    /// What the capture's length has cut off its acknowledgements.
    pub(crate) hidden: Hidden,
    pub(crate) origin: Origin,
    finished: bool,
    /// When its newest packet that was no reset came.
    spoke: i64,
    pub(crate) silences: Silences,
    pub(crate) rounds: Rounds,
    pub(crate) level: Level,
    pub(crate) progress: Progress,
    pub(crate) run: Run,
    pub(crate) counts: Counts,
    /// What left before this place, its sender sends again in smaller segments.
    pub(crate) resized: u64,
    pub(crate) checksums: Checksums,
    pub(crate) discarded: Discarded,
    pub(crate) tracking: Tracking,
    pub(crate) repairs: Repairs,
    /// What had been told when a hole opened, the oldest then.
    pub(crate) before_hole: Option<Box<Before>>,
    /// Holes that SACK showed and that closed without a repeat in the file.
    pub(crate) closed_holes: Option<Box<Tally>>,
    pub(crate) repeated: Repeated,
    pub(crate) doubles: Doubles,
    /// The newest repairs, until it is known whether anything was lost.
    pub(crate) told: Told,
}

impl Half {
    /// The MSS that counts for this direction: what its own and the other end's SYN leave, or else what it is at least, by the
    /// largest segment.
    #[inline]
    pub(crate) fn mss(&self) -> u32 {
        match self.opening.mss() {
            Some(mss) => mss,
            None => self.sent.largest_bytes().max(MSS_DEFAULT),
        }
    }

    /// How late its packets come here, by its own clock.
    pub(crate) fn lag(&self) -> &Lag {
        &self.lag
    }

    /// When the last pause ended.
    pub(crate) fn paused(&self) -> i64 {
        self.paused
    }

    /// The largest payload of one segment that arrived, in bytes.
    pub(crate) fn delivered(&self) -> u32 {
        self.delivered
    }

    /// How often the other end has acknowledged the same since it acknowledged something new.
    pub(crate) fn duplicate_acks(&self) -> u32 {
        self.duplicate_acks
    }

    /// The largest segment behind the oldest at a place that may have arrived, where a duplicate acknowledgement says that one
    /// did and all are smaller than that; else 0.
    pub(crate) fn passed_behind(&self, una: u64) -> u32 {
        if self.passed_behind.0 == una { self.passed_behind.1 } else { 0 }
    }

    /// When something new was acknowledged.
    pub(crate) fn last_progress(&self) -> i64 {
        self.last_progress
    }

    /// When the newest packet of its end came, whatever that was but a reset.
    pub(crate) fn spoke(&self) -> i64 {
        self.spoke
    }

    /// Whether its end has sent a FIN.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Whether its end has sent a FIN, and the other end has all: nobody has anything to send there any more.
    pub(crate) fn is_done(&self) -> bool {
        self.finished && self.way.una() >= self.way.high()
    }

    /// Its end stamps a packet.
    pub(crate) fn stamp(&mut self, value: u32, now: i64) {
        self.lag.take(value, now);
    }

    /// Data ends a pause of so long.
    pub(crate) fn end_pause(&mut self, now: i64, length: i64) {
        (self.paused, self.paused_for) = (now, length);
    }

    /// Whether data came since this time that ended a pause of so long.
    pub(crate) fn has_paused(&self, since: i64, length: i64) -> bool {
        self.paused >= since && self.paused_for >= length
    }

    /// A packet of its end comes, which is no reset.
    #[inline]
    pub(crate) fn speak(&mut self, now: i64) {
        self.spoke = now;
    }

    /// Its end sends a FIN.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
    }

    /// A payload of one segment arrived, in bytes.
    pub(crate) fn deliver(&mut self, bytes: u32) {
        self.delivered = self.delivered.max(bytes);
    }

    /// The other end acknowledges something new, up to a place.
    pub(crate) fn hear_news(&mut self, ack: u64, now: i64) {
        self.discarded.answer(0, ack);
        self.tracking.arrive(0, ack);
        self.counts.answer();
        self.last_progress = now;
        self.lag.answer();
        self.progress.take(now, ack);
        self.duplicate_acks = 0;
    }

    /// The other end acknowledges the same once more. SACK that was cut off may tell of a repeat that was needless (D-SACK), where
    /// there was one; else of a hole.
    pub(crate) fn hear_duplicate(&mut self, has_hidden_sack: bool) {
        self.duplicate_acks += 1;
        if self.duplicate_acks == 1 {
            // It is said of something behind the oldest that arrived (RFC 5681 section 4.2).
            self.passed_behind = (self.way.una(), self.way.flight().smaller_behind());
        }
        if has_hidden_sack && self.counts.resent_segments() == 0 {
            self.way.lack();
        }
    }

    /// Whether the loss at `una` is revealed, by SACK or duplicate acknowledgements.
    pub(crate) fn is_revealed(&self, duplicate_acks: u32) -> bool {
        self.duplicate_acks >= duplicate_acks || self.way.tells_hole()
    }
}
