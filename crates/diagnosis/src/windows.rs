//! Congestion windows that became small: after a loss, and after a pause (RFC 5681 section 4.1, RFC 2861).
//!
//! A capture does not show the window, but what it lets pass: the most bytes under way in each round, which is as long as
//! an RTT. Where a sender stopped at fewer than before, and went on as soon as it was acknowledged, its window was the
//! limit. The time of such rounds was taken for `network_limited` until that is proven, and is moved then.
//!
//! ```text
//!   bytes   ████             pause > RTO    before: what was under way until the pause
//!   under   ████                            ▂▂ first round: half of that, or less
//!   way     ████                            ▂▂▄▄ second: half as much again, at once: it had waited
//! ```
//!
//! Where the path carries as much as before a loss, its slowest link is the limit: only the queue before that has become smaller.

use crate::Thresholds;
use crate::connection::{Connection, Side};
use crate::kinds::Kind;
use crate::rounds::is_as_fast;
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

/// A sender whose window may have become small.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    kind: Kind,
    /// The most bytes under way that count as small.
    small: u64,
    /// Rounds count once this place is acknowledged: the repair does not.
    from: u64,
    begin: i64,
    /// The connection's network-limited time when rounds began to count.
    limited: Option<i64>,
    rounds: u32,
    /// How fast the last round before it was answered, in bytes and nanoseconds.
    pace: (u64, i64),
    first: u64,
    proven: bool,
    number: u64,
    held: i64,
}

impl Connection {
    /// New data, not taken in yet: whether it follows a pause after which the window may be small, or ends a watch because
    /// the sender had paused by itself.
    pub(crate) fn watch_idle(&mut self, from: Side, segment: &Segment, now: i64, limits: &Thresholds) {
        let half = self.half(from);
        if segment.flags.contains(TcpFlags::CWR) {
            self.watch_loss(from, segment.number, limits);
            return;
        }
        if !half.way.is_idle() || half.round_trip.samples() == 0 {
            return;
        }
        if self.watches[from as usize].as_ref().is_some_and(|watch| now - half.last_progress() > watch.held) {
            self.end_watch(from);
        }
        let half = self.half(from);
        // What was lost before it came here had not rested.
        if half.silences.has_ended_at(now) || now - half.sent.at() <= half.round_trip.timeout() {
            return;
        }
        let before = self.half_mut(from).rounds.rest();
        self.begin_watch(Kind::IdleRestart, from, before, segment.number, limits);
        let limited = self.lost(Kind::NetworkLimited);
        if let Some(watch) = &mut self.watches[from as usize] {
            watch.begin = now;
            watch.limited = Some(limited);
        }
    }

    /// A loss was repaired, or congestion heard of.
    pub(crate) fn watch_loss(&mut self, from: Side, number: u64, limits: &Thresholds) {
        let half = &mut self.halves[from as usize];
        let high = half.way.high();
        if let Some(watch) = &mut self.watches[from as usize]
            && watch.kind == Kind::CwndCollapse
        {
            // Another loss, before the window was large again.
            (watch.from, watch.rounds) = (high, 0);
            return;
        }
        let before = half.rounds.recent_peak();
        self.end_watch(from);
        self.begin_watch(Kind::CwndCollapse, from, before, number, limits);
    }

    fn begin_watch(&mut self, kind: Kind, from: Side, before: u64, number: u64, limits: &Thresholds) {
        let least = u64::from(self.mss(from)) * u64::from(limits.fallen_segments);
        // At the receiver's end acknowledgements follow at once, and what is under way is not seen.
        if before <= least || self.is_near_receiver(from) {
            return;
        }
        let half = &mut self.halves[from as usize];
        self.watches[from as usize] = Some(Watch {
            kind,
            small: (before as f64 * limits.fallen_share) as u64,
            from: if kind == Kind::CwndCollapse { half.way.high() } else { 0 },
            begin: 0,
            limited: None,
            rounds: 0,
            pace: half.rounds.pace_now(),
            first: 0,
            proven: false,
            number,
            held: limits.held_nanoseconds,
        });
    }

    /// Counts what is under way, after data left or was acknowledged.
    #[inline]
    pub(crate) fn take_round(&mut self, sender: Side, now: i64) {
        let half = &mut self.halves[sender as usize];
        let (flight, una, high, room) =
            (half.way.flight().bytes(), half.way.una(), half.way.high(), half.way.room());
        if half.rounds.take(flight, (una, high), room, now) {
            half.level.end_round(half.rounds.last_peak(), half.rounds.pace());
            if self.watches[sender as usize].is_some() {
                self.judge_round(sender, now);
            }
        }
    }

    /// A round of a watched sender has ended.
    #[cold]
    fn judge_round(&mut self, sender: Side, now: i64) {
        let limited = self.lost(Kind::NetworkLimited);
        let mss = u64::from(self.mss(sender));
        let other = self.half(sender.other());
        let last_request = if other.counts.data_segments() > 0 { other.sent.at() } else { i64::MIN };
        let half = &mut self.halves[sender as usize];
        let (peak, window, una) = (half.rounds.last_peak(), half.way.window(), half.way.una());
        let pace = half.rounds.pace();
        let is_windowed = half.way.knows_window() && window < peak + mss;
        let Some(watch) = &mut self.watches[sender as usize] else { return };
        if una < watch.from {
            return;
        }
        if watch.limited.is_none() {
            // The repair is done; the next round counts.
            (watch.limited, watch.begin) = (Some(limited), now);
            return;
        }
        watch.rounds += 1;
        let grows = peak * 2 >= watch.first * 3;
        if watch.rounds == 1 {
            watch.first = peak;
        }
        // One segment is what a timeout leaves: after a rest a sender begins with its initial window (RFC 5681 sections 3.1, 4.1).
        let has_timed_out = watch.kind == Kind::IdleRestart && watch.rounds == 2 && watch.first <= mss;
        // More than is small may follow the first round, if it was what waited: nobody asked for it meanwhile.
        let has_waited =
            watch.kind == Kind::IdleRestart && watch.rounds == 2 && grows && last_request < watch.begin;
        if has_timed_out
            || (peak > watch.small && !has_waited)
            || is_windowed
            || watch.is_as_fast(pace)
            || (watch.rounds == 2 && !watch.proven && !watch.may_go_on(grows))
        {
            self.end_watch(sender);
        } else if watch.rounds >= 2 {
            watch.proven = true;
            self.move_limited(sender, now);
        }
    }

    /// Moves the network-limited time of a proven watch to its own cause.
    fn move_limited(&mut self, sender: Side, now: i64) {
        let limited = self.lost(Kind::NetworkLimited);
        let half = &mut self.halves[sender as usize];
        let Some(watch) = &mut self.watches[sender as usize] else { return };
        let moved = (limited - watch.limited.unwrap_or(limited)).max(0);
        let (kind, begin, number, last) = (watch.kind, watch.begin, watch.number, half.sent.number());
        watch.begin = now;
        let is_first = std::mem::take(&mut watch.number) > 0;
        if let Some(tally) = self.tallies.iter_mut().find(|tally| tally.kind == Kind::NetworkLimited) {
            tally.lost -= moved;
        }
        self.note(kind, begin, now, moved, &[number, if is_first { last } else { 0 }]);
        if !is_first && let Some(tally) = self.tallies.iter_mut().find(|tally| tally.kind == kind) {
            tally.count -= 1;
        }
    }

    /// The window is large again, or something else is the limit now.
    pub(crate) fn end_watch(&mut self, sender: Side) {
        let now = self.last;
        let is_proven = self.watches[sender as usize].as_ref().is_some_and(|watch| watch.proven);
        if is_proven {
            self.move_limited(sender, now);
        }
        self.watches[sender as usize] = None;
    }
}

/// A round that is answered by so much as fast as one before is as fast: what the path carries varies.
const AS_FAST: (i128, i128) = (3, 4);

impl Watch {
    /// Whether a round after a loss is answered as fast as those before it: a larger window would not be faster.
    fn is_as_fast(&self, pace: (u64, i64)) -> bool {
        self.kind == Kind::CwndCollapse && self.pace.0 > 0 && is_as_fast(pace, self.pace, AS_FAST)
    }

    /// After a pause a window that was the limit grows by half or more each round.
    fn may_go_on(&self, grows: bool) -> bool {
        self.kind == Kind::CwndCollapse || grows
    }
}
