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
//! Behind the place where the network reorders, the repeat comes first, and then what it repeats, which is older by its marks.

use crate::connection::{Connection, Side};
use crate::findings::Tally;
use crate::hearing::Heard;
use crate::holes::Hole;
use crate::kinds::Kind;
use crate::silences::echoes_older;
use framegauge_packets::capture::Segment;

/// Of a repair with more repeats nobody looks whether all were needless.
const MOST_REPEATS: usize = 64;
/// The same of one that another has followed, and how many of these wait for what they repeat, or for word of it.
const MOST_OLD_REPEATS: usize = 8;
const MOST_OLD: usize = 4;

/// One repeat. Its places, when it passed, and its timestamp.
#[derive(Debug, Clone, Copy)]
struct Repeat {
    range: (u64, u64),
    at: i64,
    stamp: Option<u32>,
    /// What it filled, of which nothing had been seen before: only the first copy shows that it was needless.
    hole: Option<Hole>,
    is_needless: bool,
}

/// The newest repairs of a sender that are told; the newest is the last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told(Vec<Repair>);

impl Told {
    /// Another one follows. Those of which nobody will look any more whether they repaired anything.
    fn begin(&mut self, new: Repair) -> Vec<Repair> {
        let is_short = |repair: &Repair| repair.repeats.len() <= MOST_OLD_REPEATS;
        let (old, mut settled): (Vec<Repair>, Vec<Repair>) =
            std::mem::take(&mut self.0).into_iter().partition(is_short);
        self.0 = old;
        if self.0.len() > MOST_OLD {
            settled.push(self.0.remove(0));
        }
        self.0.push(new);
        settled
    }

    /// Whether a repeat of a place that was not needless filled a hole.
    pub(crate) fn has_filled(&self, place: u64) -> bool {
        let fills = |repeat: &Repeat| {
            let is_there = repeat.range.0 <= place && place < repeat.range.1;
            is_there && repeat.hole.is_some() && !repeat.is_needless
        };
        self.0.iter().flat_map(|repair| &repair.repeats).any(fills)
    }

    /// What repeats a place and was not needless, the newest first.
    fn repeats_of(&mut self, place: u64) -> impl Iterator<Item = &mut Repeat> {
        let is_repeated = move |repeat: &&mut Repeat| {
            repeat.range.0 <= place && place < repeat.range.1 && !repeat.is_needless
        };
        self.0.iter_mut().rev().flat_map(|repair| &mut repair.repeats).filter(is_repeated)
    }
}

/// One of them, as it is told.
#[derive(Debug, Clone, Default)]
struct Repair {
    packets: [u64; 2],
    repeats: Vec<Repeat>,
    /// There were more repeats than are kept.
    is_long: bool,
}

impl Repair {
    fn all_were_needless(&self) -> bool {
        !self.is_long && !self.repeats.is_empty() && self.repeats.iter().all(|repeat| repeat.is_needless)
    }

    fn take(&mut self, repeat: Repeat) {
        if self.repeats.len() < MOST_REPEATS {
            self.repeats.push(repeat);
        } else {
            self.is_long = true;
        }
    }

    /// The receiver had what lies in `range` when it came again: of several copies one was too many. Whether one is of this repair.
    fn hear_of_copy(&mut self, range: (u64, u64)) -> bool {
        let mut before = None;
        for repeat in &mut self.repeats {
            let is_in = repeat.range.0 < range.1 && range.0 < repeat.range.1;
            if is_in && repeat.hole.is_none() && !repeat.is_needless && before != Some(repeat.range.0) {
                repeat.is_needless = true;
                before = Some(repeat.range.0);
            }
        }
        before.is_some()
    }
}

impl Connection {
    /// A repair begins, and is told. `before`: when what it repeats was sent before.
    pub(crate) fn tell_repair(&mut self, from: Side, before: i64, now: i64, packets: [u64; 2]) {
        self.note(Kind::FastRetransmit, before, now, 0, &packets);
        let settled = self.half_mut(from).told.begin(Repair { packets, ..Repair::default() });
        settled.iter().for_each(|repair| self.settle_repair(repair));
    }

    /// The newest repair repeats what lies in `range`. `hole`: nothing of that had been seen before.
    pub(crate) fn go_on_with_repair(
        &mut self,
        segment: &Segment,
        from: Side,
        range: (u64, u64),
        now: i64,
        hole: Option<Hole>,
    ) {
        let stamp = segment.timestamps.map(|(value, _)| value);
        if let Some(repair) = self.half_mut(from).told.0.last_mut() {
            repair.take(Repeat { range, at: now, stamp, hole, is_needless: false });
        }
    }

    /// Something new is acknowledged, from `una` on: whether that answers what its sender had sent before it repeated it.
    #[cold]
    pub(crate) fn answer_repair(&mut self, segment: &Segment, sender: Side, una: u64, arrival: Heard) {
        // Beside the receiver nobody knows how soon it answers.
        let soonest = self.soonest_answer(sender.other());
        let Some(repair) = self.half_mut(sender).told.0.last_mut() else { return };
        let mut count = 0;
        let is_oldest = |repeat: &&mut Repeat| repeat.range.0 <= una && una < repeat.range.1;
        let may_be_needless = |repeat: &&mut Repeat| repeat.hole.is_none() && !repeat.is_needless;
        for repeat in repair.repeats.iter_mut().filter(is_oldest).filter(may_be_needless) {
            let is_older = repeat.stamp.is_some_and(|stamp| echoes_older(segment, stamp));
            let is_too_soon = (0..soonest).contains(&(arrival.seen - repeat.at));
            repeat.is_needless = is_older || is_too_soon;
            count += u32::from(repeat.is_needless);
        }
        for _ in 0..count {
            // The receiver may still say so.
            self.half_mut(sender).silences.tell_needless();
            self.note(Kind::SpuriousRetransmit, arrival.seen, arrival.seen, 0, &[segment.number]);
        }
    }

    /// The receiver says that what lies in `range` came twice.
    pub(crate) fn hear_of_copy(&mut self, sender: Side, range: (u64, u64)) {
        let mut repairs = self.half_mut(sender).told.0.iter_mut().rev();
        repairs.any(|repair| repair.hear_of_copy(range));
    }

    /// The receiver has what lies in `range` twice, which nobody repeated, or only one repeat that filled a hole. Where the
    /// capture has it twice as well, that repeat came before what it repeats: nothing was lost.
    #[cold]
    pub(crate) fn hear_of_double(&mut self, sender: Side, range: (u64, u64), now: i64) {
        if self.take_back_copy(sender, range, now) {
            let repeat = self.half_mut(sender).told.repeats_of(range.0).find(|repeat| repeat.hole.is_some());
            repeat.into_iter().for_each(|repeat| repeat.is_needless = true);
        }
    }

    /// Takes what was overtaken not only by what the receiver had, but also by its own repeat: it was sent before what had left the
    /// hole, as its marks tell, so that nothing was lost. Whether it was.
    pub(crate) fn take_late_original(&mut self, segment: &Segment, from: Side, begin: u64, now: i64) -> bool {
        let counts = self.half(from).identities.go_up();
        let hole = self.half_mut(from).told.repeats_of(begin).next().and_then(|repeat| repeat.hole);
        // Another tap has what was lost behind it.
        let is_original = |hole: &Hole| {
            hole.marks_tell(segment, counts) == Some(true) && !self.is_of_other_tap(segment, from, hole.hops)
        };
        let Some(hole) = hole.filter(is_original) else { return false };
        let repeat = self.half_mut(from).told.repeats_of(begin).next();
        repeat.into_iter().for_each(|repeat| repeat.is_needless = true);
        // The receiver may still say so.
        self.half_mut(from).silences.tell_needless();
        self.note(Kind::SpuriousRetransmit, hole.since, now, 0, &[hole.number, segment.number]);
        true
    }

    /// Nothing more will be known of a repair.
    fn settle_repair(&mut self, repair: &Repair) {
        if repair.all_were_needless() {
            self.take_back(repair);
        }
    }

    /// The connection ends: nobody has answered the newest repair, and a timer has repeated what it had.
    pub(crate) fn end_repairs(&mut self, sender: Side) {
        let mut repairs = std::mem::take(&mut self.half_mut(sender).told.0);
        let half = self.half(sender);
        let is_answered = |repeat: &Repeat| {
            let piece = half.way.flight().at(repeat.range.0);
            repeat.range.0 < half.way.una() || piece.is_some_and(|piece| piece.sacked)
        };
        let was_in_vain = |repair: &mut Repair| !repair.repeats.iter().any(is_answered);
        if half.silences.is_timeout()
            && let Some(repair) = repairs.pop_if(was_in_vain)
        {
            self.take_back(&repair);
        }
        repairs.iter().for_each(|repair| self.settle_repair(repair));
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
