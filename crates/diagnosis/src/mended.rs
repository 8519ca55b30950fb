//! Whether a repair repaired anything: SACK and duplicate acknowledgements also come for what was only overtaken.
//!
//! ```text
//!   [overtaken] data data data ─▶ SACK ─▶ sent again        the first copy arrives, and is acknowledged: nothing was lost
//!        └───────────────────────────────────▶ arrives
//! ```
//!
//! A repeat was needless if the acknowledgement that takes its place echoes a timestamp from before it (Eifel, RFC 3522), or
//! comes sooner than any answer can, or if the receiver says that it had it already (D-SACK, RFC 3708). A repair of which all
//! repeats were needless is none. Nor is one that nobody answered, until a timer had to repeat it: that is the timer's silence.

use crate::connection::{Connection, Side};
use crate::findings::Tally;
use crate::hearing::Heard;
use crate::kinds::Kind;
use crate::silences::echoes_older;
use framegauge_packets::capture::Segment;

/// Of a repair with more repeats nobody looks whether all were needless.
const MOST_REPEATS: usize = 64;
/// The way changes: what comes sooner than this part of the soonest answer so far is none.
const SOONEST_PART: i64 = 2;

/// One repeat. Its places, when it passed, and its timestamp.
#[derive(Debug, Clone, Copy)]
struct Repeat {
    range: (u64, u64),
    at: i64,
    stamp: Option<u32>,
    is_needless: bool,
}

/// The newest repair of a sender that is told, as it is told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Repair {
    packets: [u64; 2],
    repeats: Vec<Repeat>,
    /// Some of what it repeats was lost: the place before was empty.
    is_proven: bool,
}

impl Repair {
    fn all_were_needless(&self) -> bool {
        !self.is_proven && !self.repeats.is_empty() && self.repeats.iter().all(|repeat| repeat.is_needless)
    }

    fn take(&mut self, repeat: Repeat) {
        if self.repeats.len() < MOST_REPEATS {
            self.repeats.push(repeat);
        } else {
            self.is_proven = true;
        }
    }

    /// The receiver had what lies in `range` when it came again: of several copies one was too many.
    fn hear_of_copy(&mut self, range: (u64, u64)) {
        let mut before = None;
        for repeat in &mut self.repeats {
            let is_in = repeat.range.0 < range.1 && range.0 < repeat.range.1;
            if is_in && !repeat.is_needless && before != Some(repeat.range.0) {
                repeat.is_needless = true;
                before = Some(repeat.range.0);
            }
        }
    }
}

impl Connection {
    /// A repair begins, and is told. `before`: when what it repeats was sent before.
    pub(crate) fn tell_repair(&mut self, from: Side, before: i64, now: i64, packets: [u64; 2]) {
        self.settle_repair(from);
        self.note(Kind::FastRetransmit, before, now, 0, &packets);
        self.half_mut(from).repair = Some(Box::new(Repair { packets, ..Repair::default() }));
    }

    /// The newest repair repeats what lies in `range`. `is_filler`: nothing of that had been seen before.
    pub(crate) fn go_on_with_repair(
        &mut self,
        segment: &Segment,
        from: Side,
        range: (u64, u64),
        now: i64,
        is_filler: bool,
    ) {
        let stamp = segment.timestamps.map(|(value, _)| value);
        if let Some(repair) = &mut self.half_mut(from).repair {
            repair.is_proven |= is_filler;
            repair.take(Repeat { range, at: now, stamp, is_needless: false });
        }
    }

    /// Something new is acknowledged, from `una` on: whether that answers what its sender had sent before it repeated it.
    #[cold]
    pub(crate) fn answer_repair(&mut self, segment: &Segment, sender: Side, una: u64, heard: Heard) {
        // Beside the receiver nobody knows how soon it answers.
        let soonest = if self.knows_vantage() { self.reach(sender.other()) / SOONEST_PART } else { 0 };
        let Some(repair) = &mut self.half_mut(sender).repair else { return };
        let mut count = 0;
        let is_oldest = |repeat: &&mut Repeat| repeat.range.0 <= una && una < repeat.range.1;
        for repeat in repair.repeats.iter_mut().filter(is_oldest).filter(|repeat| !repeat.is_needless) {
            let is_older = repeat.stamp.is_some_and(|stamp| echoes_older(segment, stamp));
            let is_too_soon = (0..soonest).contains(&(heard.seen - repeat.at));
            repeat.is_needless = is_older || is_too_soon;
            count += u32::from(repeat.is_needless);
        }
        for _ in 0..count {
            // The receiver may still say so.
            self.half_mut(sender).silences.tell_needless();
            self.note(Kind::SpuriousRetransmit, heard.seen, heard.seen, 0, &[segment.number]);
        }
    }

    /// The receiver says that what lies in `range` came twice.
    pub(crate) fn hear_of_copy(&mut self, sender: Side, range: (u64, u64)) {
        if let Some(repair) = &mut self.half_mut(sender).repair {
            repair.hear_of_copy(range);
        }
    }

    /// Nothing more will be known of the newest repair.
    pub(crate) fn settle_repair(&mut self, sender: Side) {
        if let Some(repair) = self.half_mut(sender).repair.take()
            && repair.all_were_needless()
        {
            self.take_back(&repair);
        }
    }

    /// The connection ends: nobody has answered the newest repair, and a timer has repeated what it had.
    pub(crate) fn end_repair(&mut self, sender: Side) {
        let half = self.half(sender);
        let is_answered = |repeat: &Repeat| {
            let piece = half.way.flight().at(repeat.range.0);
            repeat.range.0 < half.way.una() || piece.is_some_and(|piece| piece.sacked)
        };
        let was_in_vain = half.silences.is_timeout()
            && half.repair.as_ref().is_some_and(|repair| !repair.repeats.iter().any(is_answered));
        match self.half_mut(sender).repair.take_if(|_| was_in_vain) {
            Some(repair) => self.take_back(&repair),
            None => self.settle_repair(sender),
        }
    }

    /// What was told as a repair was none, and the wait for it that of the way.
    fn take_back(&mut self, repair: &Repair) {
        let [_, repeat] = repair.packets;
        let of = |kind| move |tally: &&mut Tally| tally.kind == kind;
        let waited = self.tallies.iter_mut().find(of(Kind::ReorderingTimer));
        if waited.is_some_and(|tally| tally.count == 1 && tally.packets.contains(&repeat)) {
            self.rename(Kind::ReorderingTimer, Kind::NetworkLimited);
        }
        let Some(tally) = self.tallies.iter_mut().find(of(Kind::FastRetransmit)) else { return };
        tally.count -= 1;
        tally.packets.retain(|number| !repair.packets.contains(number));
        if tally.count == 0 {
            self.tallies.retain(|tally| tally.kind != Kind::FastRetransmit);
            if let Some(picture) = &mut self.picture {
                picture.rename(Kind::FastRetransmit, Kind::ApplicationLimited);
            }
        }
    }
}
