//! Silences of a sender, from the pause that opened them until it is known what they were. Only what is here writes them.
//!
//! ```text
//!   pause ──▶ Episode ──▶ Silence ──▶ Doubtful ──▶ its name
//!             data is     what follows   the hole that ended it tells
//!             answered    tells          whether anything was lost
//! ```

pub(crate) use crate::silence::{Doubt, Doubtful, Silence};
use crate::sizes::Tries;
use framegauge_packets::capture::Segment;

/// Silence that resends of the same data ended, until that data is acknowledged.
#[derive(Debug, Clone, Default)]
pub(crate) struct Episode {
    pub(crate) una: u64,
    pub(crate) begin: i64,
    pub(crate) lost: i64,
    pub(crate) resends: u32,
    /// Not all of them began at the same place.
    pub(crate) is_elsewhere: bool,
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
    /// How often.
    pub(crate) hearings: u32,
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
    /// It had been answered, and the answer was lost before it came here.
    pub(crate) lost_answer: Option<LostAnswer>,
    /// The timestamp of the first repeat, or of the new data, and its place; and when the first repeat came.
    pub(crate) stamp: Option<u32>,
    pub(crate) place: u64,
    pub(crate) repeated: i64,
    /// The place after all that had been sent when it began.
    pub(crate) high: u64,
    pub(crate) packets: Vec<u64>,
}

/// An answer that was lost before it came here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LostAnswer {
    /// The place after it.
    pub(crate) high: u64,
    pub(crate) doubt: Doubt,
}

impl Episode {
    /// Something is sent again. New data may have come before it.
    pub(crate) fn repeat(&mut self, segment: &Segment, place: u64, now: i64) {
        if self.resends == 0 {
            self.stamp = segment.timestamps.map(|(value, _)| value);
            (self.place, self.repeated) = (place, now);
        }
        self.resends += 1;
    }

    /// Whether an acknowledgement comes sooner after the only repeat than an answer to it can.
    pub(crate) fn is_answered_too_soon(&self, now: i64, soonest: i64) -> bool {
        self.resends == 1 && !self.revealed && (0..soonest).contains(&(now - self.repeated))
    }

    /// Whether an acknowledgement that ends it answers what was sent before its repeat: it echoes an older timestamp.
    pub(crate) fn was_needless(&self, ack: &Segment) -> bool {
        self.stamp.is_some_and(|stamp| echoes_older(ack, stamp))
    }
}

/// Whether an acknowledgement echoes an older timestamp.
pub(crate) fn echoes_older(ack: &Segment, stamp: u32) -> bool {
    ack.timestamps.is_some_and(|(_, echo)| (echo.wrapping_sub(stamp) as i32) < 0)
}

/// The newest time when a timer ran out.
#[derive(Debug, Clone, Copy, Default)]
struct Timeout {
    /// What lies before this place was under way: its repair is that of the timeout.
    high: u64,
    /// The place after what was sent again then, and when.
    end: u64,
    at: i64,
}

impl Timeout {
    /// Whether a copy of what lies at a place is that of the timer.
    fn has_sent(&self, place: u64, at: i64) -> bool {
        place < self.end && at <= self.at
    }
}

/// More do not wait: the oldest is no loss then.
const MOST_DOUBTFUL: usize = 64;

/// The silences of one sender.
#[derive(Debug, Clone, Default)]
pub(crate) struct Silences {
    /// The present one.
    episode: Option<Episode>,
    /// The last one, until it is known what it was.
    over: Option<Silence>,
    /// Those of which the hole that ended them will show whether they were losses.
    doubtful: Vec<Doubtful>,
    /// Repeats that timestamps have shown as needless, and of which the receiver may still say so (D-SACK).
    told_needless: u32,
    /// All that were needless.
    needless: u64,
    /// A repair by SACK or duplicate acknowledgements goes on until this place.
    recovery: u64,
    timeout: Timeout,
    /// Time in which its data was under way, and the other end spoke without answering that.
    overheard: i64,
}

/// What they are.
impl Silences {
    /// Whether there is one that a timeout has ended, and no answer yet.
    pub(crate) fn is_timeout(&self) -> bool {
        self.episode.as_ref().is_some_and(|episode| episode.by_timeout)
    }

    /// Whether one ended at this time.
    pub(crate) fn has_ended_at(&self, now: i64) -> bool {
        self.over.as_ref().is_some_and(|silence| silence.end == now)
    }

    /// Whether one is over, and what follows will tell what it was.
    pub(crate) fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// How long the present one has lasted, if its sender has repeated something: it asks again.
    pub(crate) fn asks_again(&self) -> Option<i64> {
        self.episode.as_ref().filter(|episode| episode.resends > 0).map(|episode| episode.lost)
    }

    /// Time in which its data was under way, and the other end spoke without answering that.
    pub(crate) fn overheard(&self) -> i64 {
        self.overheard
    }

    /// Whether an acknowledgement answers what was sent before the present one's first repeat.
    pub(crate) fn was_needless(&self, ack: &Segment) -> bool {
        let repeated = self.episode.as_ref().filter(|episode| episode.resends > 0 && !episode.revealed);
        repeated.is_some_and(|episode| episode.was_needless(ack))
    }

    /// Whether a repair goes on beyond what is acknowledged.
    pub(crate) fn is_repairing(&self, una: u64) -> bool {
        self.recovery > una
    }

    /// Whether a repeat from a place on begins a repair of its own, which is not that of a timeout.
    pub(crate) fn begins_repair(&self, begin: u64, una: u64) -> bool {
        (begin >= self.recovery || !self.is_repairing(una)) && !self.is_repaired_by_timer(begin)
    }

    /// Whether what lies at a place was under way when a timer ran out last: all of that is repaired by the timer.
    pub(crate) fn is_repaired_by_timer(&self, place: u64) -> bool {
        place < self.timeout.high
    }

    /// Whether the copy of a place that was sent at this time is that of a timer.
    pub(crate) fn is_of_timer(&self, place: u64, at: i64) -> bool {
        self.timeout.has_sent(place, at)
    }
}

/// What its own end does.
impl Silences {
    /// A pause goes on, or begins.
    pub(crate) fn go_on(&mut self, episode: impl FnOnce() -> Episode) -> &mut Episode {
        self.episode.get_or_insert_with(episode)
    }

    /// The oldest is sent again, soon after new data: the silence goes on, and is that of a timer.
    pub(crate) fn repeat_at_once(&mut self, segment: &Segment, place: u64, now: i64) {
        let of_new_data = |episode: &&mut Episode| episode.resends == 0 && episode.probed;
        if let Some(episode) =
            self.episode.as_mut().filter(of_new_data).filter(|episode| place <= episode.una)
        {
            episode.repeat(segment, place, now);
            episode.by_timeout = true;
            episode.packets.push(segment.number);
        }
    }

    /// The other end spoke after so much time, and did not answer what is under way.
    pub(crate) fn overhear(&mut self, length: i64) {
        self.overheard += length;
    }

    /// How long it has done so since it acknowledged something new.
    pub(crate) fn take_overheard(&mut self) -> i64 {
        std::mem::take(&mut self.overheard)
    }

    /// The present one lasts so much longer.
    pub(crate) fn last(&mut self, length: i64) {
        if let Some(episode) = &mut self.episode {
            episode.lost += length;
        }
    }

    /// A timer ran out, and what lies between two places was sent again, of what was under way up to a third.
    pub(crate) fn time_out(&mut self, (una, end): (u64, u64), high: u64, at: i64) {
        let end = if self.timeout.high > una { self.timeout.end.max(end) } else { end };
        self.timeout = Timeout { high, end, at };
    }

    /// Packets were lost before they came here, until a timer ran out: what is under way up to a place is repaired by that.
    pub(crate) fn time_out_unseen(&mut self, high: u64) {
        self.timeout.high = high;
    }

    /// A repair begins of what was sent up to a place.
    pub(crate) fn repair(&mut self, high: u64) {
        self.recovery = high;
    }

    /// It repairs what lies at a place, of a silence whose first repeat had been needless: what lay behind had been lost.
    pub(crate) fn take_lost(&mut self, begin: u64, una: u64) -> Option<Silence> {
        self.over.take_if(|silence| silence.needless && begin >= una && begin < silence.high)
    }

    /// New data from a place on skips what was lost: of that, numbers alone had told how far it goes at most.
    pub(crate) fn bound(&mut self, place: u64) {
        if let Some(silence) = self.over.as_mut().filter(|silence| silence.doubt == Some(Doubt::Numbers)) {
            silence.high = silence.high.min(place);
        }
    }

    /// New data up to a place follows what ended a silence behind a hole after this time.
    pub(crate) fn take_unasked(&mut self, end: u64, since: i64) -> Option<Silence> {
        let is_unasked = |silence: &mut Silence| {
            matches!(silence.doubt, Some(Doubt::Hole { .. })) && end > silence.high && silence.end > since
        };
        self.over.take_if(is_unasked)
    }

    /// New data up to a place follows a loss.
    pub(crate) fn take_followed(&mut self, end: u64) -> Option<Silence> {
        self.over.take_if(|silence| end > silence.high && !silence.needless)
    }
}

/// What the other end says.
impl Silences {
    /// It is there.
    pub(crate) fn hear(&mut self) {
        if let Some(episode) = &mut self.episode {
            episode.heard = true;
            episode.hearings = episode.hearings.saturating_add(1);
        }
    }

    /// It had not heard the end of the handshake.
    pub(crate) fn unhear(&mut self) {
        if let Some(episode) = &mut self.episode {
            episode.is_unheard = true;
        }
    }

    /// It had answered, and that was lost before it came here.
    pub(crate) fn lose_answer(&mut self, answer: LostAnswer) {
        if let Some(episode) = &mut self.episode {
            episode.lost_answer.get_or_insert(answer);
        }
    }

    /// It acknowledges something new.
    pub(crate) fn acknowledge(&mut self, now: i64) {
        self.overheard = 0;
        if let Some(silence) = &mut self.over {
            silence.acknowledged = now;
        }
    }

    /// It has all of a silence whose first repeat had been needless: so were the others.
    pub(crate) fn take_needless(&mut self, una: u64) -> Option<Silence> {
        self.over.take_if(|silence| silence.needless && silence.high <= una)
    }

    /// It has had all of a silence twice.
    pub(crate) fn take_arrived(&mut self, una: u64) -> Option<Silence> {
        self.over.take_if(|silence| silence.high <= una)
    }

    /// It acknowledges something of what the present silence waits for.
    pub(crate) fn take_answered(&mut self, una: u64) -> Option<Episode> {
        self.episode.take_if(|episode| una > episode.una)
    }

    /// A repeat was needless, and is told: it may still say so.
    pub(crate) fn tell_needless(&mut self) {
        self.told_needless += 1;
        self.needless += 1;
    }

    /// It says that a repeat was needless, of so many that there were. Whether that is told already.
    pub(crate) fn has_told_needless(&mut self, repeats: u64) -> bool {
        let is_told = self.told_needless > 0;
        self.told_needless -= u32::from(is_told);
        // Who says the same again, with the next data say, speaks of no other.
        let is_again = self.needless >= repeats;
        self.needless += u64::from(!is_told && !is_again);
        is_told || is_again
    }
}

/// What becomes of them.
impl Silences {
    /// The present one, as it is.
    pub(crate) fn take_present(&mut self) -> Option<Episode> {
        self.episode.take()
    }

    /// One is over; what follows tells what it was. The one before is known by now.
    pub(crate) fn end(&mut self, silence: Silence) {
        self.over = Some(silence);
    }

    /// Nothing follows the last one.
    pub(crate) fn take_over(&mut self) -> Option<Silence> {
        self.over.take()
    }

    /// One waits for evidence. The oldest, if there are too many.
    pub(crate) fn doubt(&mut self, doubtful: Doubtful) -> Option<Doubtful> {
        self.doubtful.push(doubtful);
        (self.doubtful.len() > MOST_DOUBTFUL).then(|| self.doubtful.remove(0))
    }

    /// The other end asks for what lies in `range`.
    pub(crate) fn ask(&mut self, range: (u64, u64)) {
        let doubtful = self.doubtful.iter_mut().map(|one| &mut one.silence);
        for silence in self.over.iter_mut().chain(doubtful).filter(|silence| silence.is_behind(range)) {
            if let Some(Doubt::Hole { is_asked, .. }) = &mut silence.doubt {
                *is_asked = true;
            }
        }
    }

    /// What lies in `range` was lost: those that hang on it.
    pub(crate) fn prove(&mut self, range: (u64, u64)) -> Vec<Doubtful> {
        if let Some(silence) = &mut self.over
            && silence.is_behind(range)
        {
            silence.doubt = None;
        }
        take_behind(&mut self.doubtful, range)
    }

    /// What lies in `range` was not lost: those that hang on it.
    pub(crate) fn disprove(&mut self, range: (u64, u64)) -> impl Iterator<Item = Silence> + use<> {
        let open = self.over.take_if(|silence| silence.is_behind(range));
        let doubtful = take_behind(&mut self.doubtful, range);
        open.into_iter().chain(doubtful.into_iter().map(|one| one.silence))
    }

    /// All that wait for evidence.
    pub(crate) fn take_doubtful(&mut self) -> Vec<Doubtful> {
        std::mem::take(&mut self.doubtful)
    }
}

/// Takes out those that hang on holes within `range`.
fn take_behind(all: &mut Vec<Doubtful>, range: (u64, u64)) -> Vec<Doubtful> {
    if all.is_empty() {
        return Vec::new();
    }
    let (behind, rest) = std::mem::take(all).into_iter().partition(|one| one.silence.is_behind(range));
    *all = rest;
    behind
}
