//! Why a sender sends again what it has sent: the state in which it does so, as far as a tap can know it.
//!
//! ```text
//!   state     sent again                                                        why        then
//!   Loss      anything, until all is acknowledged that was under way            timeout    Loss
//!   Recovery  the oldest, after a silence                                       timeout    Loss
//!   Recovery  anything else, until all is acknowledged that was under way       fast       Recovery
//!   Open      the last segment of several, after a silence, nothing revealed    probe      Open
//!   Open      the only segment, likewise: the timers of both run out together   unclear    Open
//!   Open      the oldest, after a silence                                       timeout    Loss
//!   Open      what SACK or duplicate acknowledgements have revealed             fast       Recovery
//!   Open      anything else                                                     unclear    Open
//! ```
//!
//! New data does not set the timer of older data again (RFC 6298 section 5): the oldest may be repeated at once behind it.
//!
//! A *silence* is longer than what a repair waits for: the RTT, and the quarter of it by which RACK waits for what was
//! overtaken (RFC 8985). Probes need SACK (RFC 8985 section 7.4), and there is one until something is acknowledged: what
//! comes after it is a timeout. The time between the two then tells what the first one was, because a timeout doubles
//! the timer (RFC 6298) and a probe does not.
//!
//! A sender takes a Loss back that was none, and is Open again: an acknowledgement of something new echoes an older
//! timestamp than that of the first repeat (Eifel, RFC 3522), or the receiver had all repeats already (D-SACK, RFC 3708).

use crate::copies::LEAST_TIMEOUT;
use framegauge_packets::capture::Segment;
use serde::Serialize;

/// Beyond the RTT and a quarter: what hosts take to answer; and where SACK has revealed a loss, the ticks by which RACK's
/// timer may be late (two of 4 ms, at 250 Hz).
const ANSWERING: i64 = 2_000_000;
const TICKING: i64 = 8_000_000;

/// Segments with data that were sent again, by the reason for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Reasons {
    /// SACK, duplicate acknowledgements or RACK had revealed a loss.
    pub fast: u64,
    /// A probe of a tail (TLP).
    pub probe: u64,
    /// The retransmission timer had run out.
    pub timeout: u64,
    /// Cannot tell: mostly the only segment under way, for which the timers of probe and timeout run out together.
    pub unclear: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    Recovery,
    Loss,
}

/// What one sender repeated, and the state in which it does so.
#[derive(Debug, Clone, Default)]
pub(crate) struct Repairs {
    reasons: Reasons,
    state: State,
    /// The state lasts until this place is acknowledged.
    until: u64,
    /// When the sender heard something last.
    heard: i64,
    /// Of the Loss: the timestamp of its first repeat, and repeats of which the receiver has not said that it had them.
    stamp: Option<u32>,
    needed: u32,
    /// The last probe, or what may be one.
    probe: Option<Probe>,
}

#[derive(Debug, Clone, Copy)]
struct Probe {
    una: u64,
    quiet: i64,
    is_unclear: bool,
}

/// A segment that is sent again. Places are those of the direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Again {
    pub(crate) range: (u64, u64),
    pub(crate) now: i64,
    /// What was acknowledged, and what was sent, at the most.
    pub(crate) una: u64,
    pub(crate) high: u64,
    /// When data was sent before.
    pub(crate) last_data: i64,
    /// Since when the timer runs: new data does not set it again while older data is under way (RFC 6298 section 5).
    pub(crate) timed: i64,
    pub(crate) rtt: i64,
    pub(crate) stamp: Option<u32>,
    /// SACK or duplicate acknowledgements tell of a loss.
    pub(crate) revealed: bool,
    /// The ends may use SACK.
    pub(crate) sack: bool,
}

impl Again {
    /// Whether it is the oldest, for which a timer of so long or shorter may have run out, whatever was sent meanwhile.
    fn may_be_timed(&self, least: i64) -> bool {
        self.range.0 <= self.una && self.range.1 > self.una && self.now - self.timed >= least
    }
}

impl Repairs {
    /// What was repeated so far.
    pub(crate) fn reasons(&self) -> Reasons {
        self.reasons
    }

    /// The other end was heard at this time. `is_news`: it acknowledges something new.
    pub(crate) fn hear(&mut self, segment: &Segment, now: i64, is_news: bool) {
        self.heard = self.heard.max(now);
        if self.state != State::Loss {
            return;
        }
        self.needed = self.needed.saturating_sub(u32::from(tells_of_a_copy(segment)));
        let echo = segment.timestamps.map(|(_, echo)| echo);
        let is_older = match (echo, self.stamp) {
            (Some(echo), Some(stamp)) => (echo.wrapping_sub(stamp) as i32) < 0,
            _ => false,
        };
        if is_news && (is_older || self.needed == 0) {
            self.state = State::Open;
        }
    }

    /// Whether nothing asks for a repeat: no answer, no timer that may have run out after `least`, and no repair that goes on.
    pub(crate) fn has_no_reason(&self, again: &Again, least: i64) -> bool {
        let is_open = self.state == State::Open || again.una >= self.until;
        let is_timed = self.is_silence(again) && self.quiet(again) >= least;
        is_open && !again.revealed && !is_timed && !again.may_be_timed(least)
    }

    fn quiet(&self, again: &Again) -> i64 {
        again.now - self.heard.max(again.last_data)
    }

    fn is_silence(&self, again: &Again) -> bool {
        let late = if again.revealed { ANSWERING + TICKING } else { ANSWERING };
        self.quiet(again) > again.rtt.saturating_add(again.rtt / 4).saturating_add(late)
    }

    /// Takes a repeat.
    pub(crate) fn take(&mut self, again: &Again) {
        if again.una >= self.until {
            self.state = State::Open;
        }
        let (quiet, is_silence) = (self.quiet(again), self.is_silence(again));
        let is_timed = is_silence || (!again.revealed && again.may_be_timed(LEAST_TIMEOUT));
        let is_oldest = again.range.0 <= again.una;
        let is_last = again.range.1 >= again.high;
        let before = self.probe.filter(|probe| probe.una == again.una);
        let may_probe = is_silence && is_last && !again.revealed && again.sack && before.is_none();
        match self.state {
            State::Loss => {
                self.needed += 1;
                self.reasons.timeout += 1;
            }
            State::Open if may_probe => self.take_probe(again, quiet, is_oldest),
            _ if is_timed && is_oldest => {
                self.settle(before, quiet);
                self.enter(State::Loss, again.high);
                (self.stamp, self.needed) = (again.stamp, 1);
                self.reasons.timeout += 1;
            }
            State::Recovery => self.reasons.fast += 1,
            State::Open if again.revealed => {
                self.enter(State::Recovery, again.high);
                self.reasons.fast += 1;
            }
            State::Open => self.reasons.unclear += 1,
        }
    }

    fn take_probe(&mut self, again: &Again, quiet: i64, is_unclear: bool) {
        self.probe = Some(Probe { una: again.una, quiet, is_unclear });
        let count = if is_unclear { &mut self.reasons.unclear } else { &mut self.reasons.probe };
        *count += 1;
    }

    /// A timeout follows what was a probe or a timeout.
    fn settle(&mut self, before: Option<Probe>, quiet: i64) {
        let Some(probe) = before.filter(|probe| probe.is_unclear) else { return };
        self.probe = None;
        self.reasons.unclear -= 1;
        let was_doubled = quiet > probe.quiet.saturating_add(probe.quiet / 2);
        let count = if was_doubled { &mut self.reasons.timeout } else { &mut self.reasons.probe };
        *count += 1;
    }

    fn enter(&mut self, state: State, until: u64) {
        (self.state, self.until) = (state, until);
    }
}

/// Its first SACK block is data that had arrived before (D-SACK, RFC 2883 section 4).
fn tells_of_a_copy(segment: &Segment) -> bool {
    let within = |(begin, end): (u32, u32), (low, high): (u32, u32)| {
        (begin.wrapping_sub(low) as i32) >= 0 && (end.wrapping_sub(high) as i32) <= 0
    };
    let blocks = &segment.sack.blocks[..usize::from(segment.sack.count)];
    match blocks {
        [first, ..] if (first.1.wrapping_sub(segment.ack) as i32) <= 0 => true,
        [first, second, ..] => within(*first, *second),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const RTT: i64 = 10 * MS;

    /// Of ten segments of 100 bytes under way, sent at 0: one that is sent again after so many milliseconds.
    fn again(place: u64, after: i64) -> Again {
        Again {
            range: (100 * place, 100 * place + 100),
            now: after * MS,
            una: 0,
            high: 1000,
            last_data: 0,
            timed: 0,
            rtt: RTT,
            stamp: None,
            revealed: false,
            sack: true,
        }
    }

    fn reasons(all: &[Again]) -> Reasons {
        let mut repairs = Repairs::default();
        all.iter().for_each(|again| repairs.take(again));
        repairs.reasons()
    }

    #[test]
    fn what_sack_reveals_is_fast_until_all_is_acknowledged_that_was_under_way() {
        let first = Again { revealed: true, ..again(0, 10) };
        let second = Again { una: 100, ..again(1, 11) };
        assert_eq!(reasons(&[first, second]), Reasons { fast: 2, ..Reasons::default() });
    }

    #[test]
    fn the_oldest_after_a_silence_is_a_timeout_and_so_is_all_behind_it() {
        let next = Again { una: 100, last_data: 220 * MS, revealed: true, ..again(1, 230) };
        assert_eq!(reasons(&[again(0, 220), next]), Reasons { timeout: 2, ..Reasons::default() });
        let later = Again { una: 1000, high: 2000, last_data: 240 * MS, revealed: true, ..again(10, 250) };
        let counts = reasons(&[again(0, 220), next, later]);
        assert_eq!(counts, Reasons { timeout: 2, fast: 1, ..Reasons::default() });
    }

    #[test]
    fn a_timer_that_runs_out_during_a_repair_is_a_timeout() {
        let first = Again { revealed: true, ..again(0, 10) };
        let second = Again { last_data: 10 * MS, revealed: true, ..again(0, 230) };
        assert_eq!(reasons(&[first, second]), Reasons { fast: 1, timeout: 1, ..Reasons::default() });
    }

    #[test]
    fn a_repair_that_waits_for_racks_timer_is_no_timeout() {
        let first = Again { rtt: 2 * MS, revealed: true, ..again(0, 9) };
        assert_eq!(reasons(&[first]), Reasons { fast: 1, ..Reasons::default() });
    }

    #[test]
    fn the_last_of_several_is_probed_once_and_then_a_timer_runs_out() {
        let probe = again(9, 22);
        let timeout = Again { last_data: 22 * MS, ..again(0, 240) };
        assert_eq!(reasons(&[probe, timeout]), Reasons { probe: 1, timeout: 1, ..Reasons::default() });
    }

    #[test]
    fn the_only_segment_is_told_by_what_the_timer_does_next() {
        let only = |after, last_data| Again { high: 100, last_data, ..again(0, after) };
        assert_eq!(reasons(&[only(210, 0)]), Reasons { unclear: 1, ..Reasons::default() });
        let doubled = [only(210, 0), only(630, 210 * MS)];
        assert_eq!(reasons(&doubled), Reasons { timeout: 2, ..Reasons::default() });
        let same = [only(210, 0), only(420, 210 * MS)];
        assert_eq!(reasons(&same), Reasons { probe: 1, timeout: 1, ..Reasons::default() });
    }

    #[test]
    fn without_sack_nothing_is_probed() {
        let only = Again { high: 100, sack: false, ..again(0, 210) };
        assert_eq!(reasons(&[only]), Reasons { timeout: 1, ..Reasons::default() });
    }

    #[test]
    fn what_comes_at_once_and_nothing_revealed_is_unclear() {
        assert_eq!(reasons(&[again(3, 1)]), Reasons { unclear: 1, ..Reasons::default() });
    }
}
