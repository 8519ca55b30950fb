//! Gaps in which an end has repeated what nobody answers, whoever speaks meanwhile.
//!
//! ```text
//!   sender ── data ── ✗      again ── ✗        again ── ✗               its timer runs until the data is acknowledged
//!          ◀──── news ──────────────── news ───────────────── news      (RFC 6298 section 5), whatever the other end sends
//! ```
//!
//! What the other end sends of its own ends no such silence, nor does what this end says to that.

use crate::connection::{Connection, Side};
use crate::gap::Gap;
use crate::kinds::Kind;
use crate::way::Way;
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

impl Connection {
    /// The end that has repeated something in vain, if what ends a gap is no answer to it.
    pub(crate) fn asking(&self, gap: &Gap) -> Option<Side> {
        let asks = |side: Side| self.half(side).silences.asks_again().is_some();
        let (own, other) = (gap.from, gap.from.other());
        if asks(other) {
            return Some(other).filter(|_| !self.answers(gap));
        }
        // Nobody answers himself. Where the file has nothing of the other end, that may have answered.
        let is_heard = self.half(other).counts.segments() > 0;
        Some(own).filter(|_| asks(own) && (is_heard || !self.answers(gap)))
    }

    /// What ends a gap is no data, and no answer to what was repeated in vain: neither is a reset, nor a probe.
    pub(crate) fn answers_nothing(&self, gap: &Gap) -> bool {
        self.asking(gap).is_some()
    }

    /// New data or a FIN ends it, while the other end has repeated something in vain, and is not answered by this either. What
    /// lies behind what was not seen is another matter: acknowledgements may have been lost as well.
    pub(crate) fn is_beside_question(&self, gap: &Gap) -> bool {
        self.asking(gap).is_some_and(|side| side != gap.from) && !self.leaves_hole(gap)
    }

    /// A probe of a connection that rests, while the other end has repeated something in vain.
    pub(crate) fn probes_beside_question(&self, gap: &Gap) -> bool {
        self.asks_for_life(gap) && self.asking(gap).is_some_and(|side| side != gap.from)
    }

    /// Whether a segment acknowledges something of the other end that was not acknowledged yet.
    fn answers(&self, gap: &Gap) -> bool {
        let (segment, way) = (gap.segment, &self.half(gap.from.other()).way);
        let is_reset = segment.flags.contains(TcpFlags::RST);
        !is_reset && (way.near(segment.ack) > way.una() || tells_news(segment, way))
    }

    /// Whether a gap that a repeat ends is part of a longer silence of its sender, into which the other end spoke.
    pub(crate) fn was_talked_into(&self, gap: &Gap) -> bool {
        let overheard = self.half(gap.from).silences.overheard();
        overheard > 0 && gap.length + overheard > self.pause(gap.limits) && self.repeats(gap)
    }

    /// The time of a gap is that of the application that ended it, unless it turns out that the other end's data was lost before.
    pub(crate) fn overhear(&mut self, gap: &Gap) {
        let waiting = gap.from.other();
        if gap.is_ended_by_sender() && !self.half(waiting).way.is_idle() && !self.answers(gap) {
            self.half_mut(waiting).silences.overhear(gap.length);
        }
    }

    /// A sender's timer runs out: time in which it waited is no longer that of the other end's application. How much it was.
    pub(crate) fn take_overheard(&mut self, sender: Side) -> i64 {
        let overheard = self.half_mut(sender).silences.take_overheard();
        let resting = self.tallies.iter_mut().find(|tally| tally.kind == Kind::ApplicationLimited);
        resting.map_or(0, |tally| {
            let moved = overheard.min(tally.lost);
            tally.lost -= moved;
            moved
        })
    }
}

/// Whether SACK says something new: that what was under way has arrived, or what had arrived has come again (D-SACK, RFC 2883).
fn tells_news(segment: &Segment, way: &Way) -> bool {
    let is_new = |(begin, end): &(u32, u32)| {
        let (begin, end) = (way.near(*begin), way.near(*end));
        begin < way.una() || !way.flight().is_sacked(begin, end)
    };
    segment.sack.as_slice().iter().any(is_new)
}
