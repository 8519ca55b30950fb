//! What a sender sends, and when it holds back (`tcp_write_xmit`, `tcp_xmit_retransmit_queue`).

use framegauge_frames::Picoseconds;

use super::acks::Then;
use super::path::Search;
use super::queue::Sent;
use super::{MILLISECOND, Sender, Timer};
use crate::congestion::{Bbr, State};
use crate::endpoint::{Outgoing, Tick};

/// The fewest segments of a super-segment (`tcp_min_tso_segs`).
const LEAST_SEGMENTS: u64 = 2;
/// A third of a window is enough to be sent at once (`tcp_tso_win_divisor`).
const WINDOW_DIVISOR: u64 = 3;

/// What is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// What may be.
    All,
    /// The same, while the application still writes: nothing of it waits for more (`TCP_NAGLE_PUSH`).
    Pushed,
    /// One super-segment (`tcp_push_one`).
    One,
    /// One segment, whatever cwnd says.
    Probe,
}

/// Why the sender stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// It has nothing more.
    Empty,
    Cwnd,
    Window,
    /// It waits for an acknowledgement: Nagle, or a larger super-segment.
    Waits,
    Nic(Picoseconds),
}

impl Sender {
    /// Bytes that were taken from the application and not sent.
    pub(super) fn unsent(&self) -> u64 {
        self.writing.accepted.saturating_sub(self.next)
    }

    fn owes_fin(&self) -> bool {
        self.is_closing && self.next <= self.written && self.writing.accepted == self.written
    }

    pub(super) fn has_data(&self) -> bool {
        self.unsent() > 0 || self.owes_fin()
    }

    /// Whether the peer's window holds another segment.
    pub(super) fn has_room_for_one(&self) -> bool {
        self.next + self.unsent().min(u64::from(self.mss)) <= self.window_end
    }

    /// The NIC has room again: what is lost goes first.
    pub(crate) fn resume(&mut self, tick: &mut impl Tick) {
        if self.owes_lost() {
            self.resend_lost(tick);
        }
    }

    /// Whether something lost has to be sent again, and cwnd lets it (`tcp_tsq_write`).
    fn owes_lost(&self) -> bool {
        let is_lost = self.queue.lost > self.queue.resent && self.state >= State::Recovery;
        is_lost && self.queue.in_flight() < self.window.cwnd
    }

    /// Sends what may be sent now. Returns when the NIC or pacing lets it go on, if that is what it waits for.
    pub(crate) fn output(&mut self, tick: &mut impl Tick) -> Option<Picoseconds> {
        self.begin_bbr(tick);
        self.follow_path();
        if self.writing.is_short {
            // A call that sleeps goes on after that.
            self.send_new(tick, How::All);
        }
        self.take_in(tick);
        let stop = self.send_new(tick, How::All);
        let resends = match self.owes_lost() {
            true if self.pace.holds(tick.now()) => Some(self.pace.until),
            true => self.resend_waits(tick),
            false => None,
        };
        match stop {
            Stop::Nic(time) => resends.map(|other| other.min(time)).or(Some(time)),
            _ => resends,
        }
    }

    pub(super) fn send_new(&mut self, tick: &mut impl Tick, how: How) -> Stop {
        let mut sent = 0;
        let mut is_cwnd_limited = false;
        if matches!(how, How::All | How::Pushed) && self.path.is_searched() {
            match self.probe_path(tick) {
                Search::Waits => return Stop::Waits,
                Search::Sent => sent = 1,
                Search::Nothing => {}
            }
        }
        let stop = loop {
            if matches!(how, How::One | How::Probe) && sent > 0 {
                break Stop::Waits;
            }
            match self.next_part(tick, how, &mut is_cwnd_limited) {
                Err(stop) => break stop,
                Ok(bytes) => sent += self.send_part(tick, bytes),
            }
        };
        let in_flight = self.queue.in_flight();
        is_cwnd_limited |= in_flight >= self.window.cwnd;
        if sent > 0 || is_cwnd_limited {
            self.validate(tick, is_cwnd_limited);
        }
        if sent > 0 {
            if self.is_reducing() {
                self.reduction.out += sent;
            }
            if how != How::Probe {
                self.set_probe(tick, false);
            }
        } else if self.queue.is_empty() && self.has_data() && stop == Stop::Window && self.timer.is_none() {
            self.timer = Some(Timer::Persist(tick.expiry(self.rtt.timeout())));
        }
        stop
    }

    /// The size of the next super-segment, or why there is none.
    fn next_part(&mut self, tick: &mut impl Tick, how: How, limited: &mut bool) -> Result<u64, Stop> {
        if !self.has_data() {
            return Err(Stop::Empty);
        }
        let now = tick.now();
        if self.pace.holds(now) {
            return Err(Stop::Nic(self.pace.until));
        }
        self.restart_after_idle(tick);
        let mss = u64::from(self.mss);
        let (in_flight, cwnd) = (self.queue.in_flight(), self.window.cwnd);
        let quota = match cwnd.checked_sub(in_flight).filter(|left| *left > 0) {
            Some(left) => u64::from((cwnd >> 1).max(1).min(left)),
            None if how == How::Probe => 1,
            None => return Err(Stop::Cwnd),
        };
        let burst = self.burst_segments(tick);
        let quota = quota.min(burst);
        // It grows each time, even if the window then holds it back.
        let length = self.writing.grown(self.next, quota * mss) - self.next;
        if self.next + length.min(mss) > self.window_end {
            return Err(Stop::Window);
        }
        let (unsent, room) = (self.unsent(), self.window_end - self.next);
        let is_last = length == unsent;
        let is_partial = |bytes: u64| !bytes.is_multiple_of(mss);
        let holds = how == How::All && self.holds_small(tick);
        if length <= mss {
            if is_partial(length) && is_last && holds && !self.is_closing {
                return Err(Stop::Waits);
            }
        } else if matches!(how, How::All | How::Pushed) && self.defers(tick, length, room, burst, limited) {
            return Err(Stop::Waits);
        }
        let mut bytes = length.min(room).min(quota * mss);
        // The last part goes along only if Nagle lets it (`tcp_mss_split_point`).
        if is_partial(bytes) && bytes > mss && holds && (is_last || room < quota * mss) {
            bytes -= bytes % mss;
        }
        let (held_back, settings) = (tick.held_back(), tick.settings());
        let most = self.output_limit_bytes(settings);
        let memory = bytes + settings.buffer_overhead_bytes();
        match self.held.waits(now - held_back, memory, self.pacing_rate(settings), most, 1) {
            // Where one super-segment is under way, another goes out in any case.
            Some(until) if self.unacknowledged < self.last_part => {
                self.writing.cut(self.next, self.next + bytes);
                Err(Stop::Nic(until + held_back))
            }
            _ => Ok(bytes),
        }
    }

    /// Segments of a super-segment: a millisecond's worth at the pacing rate, all there can be while the RTT is short
    /// (`tcp_tso_autosize`).
    fn burst_segments(&self, tick: &impl Tick) -> u64 {
        let gso = tick.settings().gso_payload();
        let mss = u64::from(self.mss);
        if gso <= mss {
            return 1;
        }
        let mut bytes = self.pacing_rate(tick.settings()).unwrap_or(u64::MAX / 2) >> 10;
        let log = tick.settings().tso_rtt_log;
        let halvings = self.rtt.minimum.map_or(0, |least| (least.as_nanoseconds() / 1000) >> log);
        if halvings < 32 && log > 0 {
            bytes = bytes.saturating_add(gso >> halvings);
        }
        let least = self.control.model().map_or(LEAST_SEGMENTS, Bbr::least_segments);
        (bytes.min(gso) / mss).max(least)
    }

    /// Whether it is better to wait for more of the window than to send a small burst (`tcp_tso_should_defer`).
    fn defers(&self, tick: &impl Tick, length: u64, room: u64, burst: u64, limited: &mut bool) -> bool {
        let now = tick.now();
        if self.state >= State::Recovery || now > self.last_sent.max(self.pace.until) + MILLISECOND {
            return false;
        }
        let mss = u64::from(self.mss);
        let cwnd_room = u64::from(self.window.cwnd.saturating_sub(self.queue.in_flight())) * mss;
        let limit = room.min(cwnd_room);
        let more_follows = length < self.unsent();
        if limit >= burst * mss || more_follows && limit >= length {
            return false;
        }
        let window = u64::from(self.peer_window).min(u64::from(self.window.cwnd) * mss);
        if limit >= window / WINDOW_DIVISOR {
            return false;
        }
        let Some(head) = self.queue.first() else { return false };
        // Not if the next acknowledgement comes too late: a millisecond at most since Linux 6.18, before half an RTT.
        let rtt = self.rtt.smoothed().unwrap_or(Picoseconds::ZERO);
        if head.at + rtt > now + MILLISECOND.min(Picoseconds::new(rtt.get() / 2)) {
            return false;
        }
        if cwnd_room < room {
            if cwnd_room <= length {
                *limited = true;
                return true;
            }
        } else if room <= length {
            return true;
        }
        // What ends with a FIN will not grow.
        !(self.is_closing && length == self.unsent())
    }

    /// Cuts a part into segments and sends them. Returns how many.
    fn send_part(&mut self, tick: &mut impl Tick, bytes: u64) -> u32 {
        let mss = u64::from(self.mss);
        let (mut left, mut count) = (bytes, 0);
        let now = tick.now();
        let was_empty = self.queue.is_empty();
        let flight = self.note_flight(tick);
        self.last_part = self.next;
        let overhead = tick.settings().buffer_overhead_bytes();
        let is_cut = tick.settings().cuts(bytes, bytes.div_ceil(mss));
        loop {
            let size = left.min(mss);
            left -= size;
            let fin = left == 0 && self.is_closing && self.next + size == self.written;
            let is_head = self.next == self.last_part;
            let sent = Sent { is_head, ..Sent::new(self.next, size as u32, fin, now) };
            // `__tcp_transmit_skb` sets it for super-segments, `tcp_mark_push` at the end of a write.
            let is_marked = left == 0 && self.writing.takes_mark(self.next + size);
            let push = size > 0 && left == 0 && (bytes > mss || is_marked);
            let departs = tick.transmit(Outgoing {
                sequence: self.next,
                bytes: size as u32,
                fin,
                push,
                is_new: true,
                tells_reduction: size > 0 && std::mem::take(&mut self.owes_reduction),
            });
            self.counts.segments += 1;
            if size < mss && !fin {
                self.last_small = sent.end();
            }
            self.next = sent.end();
            self.queue.push(sent);
            self.queue.push_flight(flight);
            count += 1;
            // Each piece has memory of its own, and is let go by itself (`tcp_gso_segment`).
            match (is_cut, left) {
                (true, _) => self.held.add(departs - tick.held_back(), size + overhead),
                (false, 0) => self.held.add(departs - tick.held_back(), bytes + overhead),
                _ => {}
            }
            if left == 0 {
                break;
            }
        }
        self.note_departure(now, bytes, tick.settings());
        self.last_sent = now;
        if was_empty || matches!(self.timer, None | Some(Timer::Persist(_))) {
            self.set_timeout(tick);
        }
        count
    }

    pub(super) fn hand_over(&mut self, tick: &impl Tick, departs: Picoseconds, bytes: u64) {
        let now = tick.now();
        let memory = bytes + tick.settings().buffer_overhead_bytes();
        self.held.add(departs - tick.held_back(), memory);
        self.note_departure(now, bytes, tick.settings());
    }

    /// Sends again what is lost, as far as cwnd allows (`tcp_xmit_recovery`).
    pub(super) fn resend_after(&mut self, tick: &mut impl Tick, then: Then) {
        match then {
            Then::Nothing => {}
            Then::Lost => self.resend_lost(tick),
            Then::New => {
                self.send_new(tick, How::All);
                if self.next <= self.high {
                    self.may_be_spurious = false;
                    self.resend_lost(tick);
                }
            }
        }
    }

    pub(super) fn resend_lost(&mut self, tick: &mut impl Tick) {
        let mut sets_timer = false;
        while self.queue.in_flight() < self.window.cwnd && !self.pace.holds(tick.now()) {
            let Some(place) = self.queue.next_lost() else { break };
            if self.resend_waits(tick).is_some() {
                break;
            }
            self.resend(tick, place);
            if self.is_reducing() {
                self.reduction.out += 1;
            }
            sets_timer |= place == 0 && !matches!(self.timer, Some(Timer::Reordering(_)));
        }
        if sets_timer {
            self.set_timeout(tick);
        }
    }

    /// Until when what is sent again has to wait, if it has to: the host's queue holds twice as much of it as of what is new
    /// (`tcp_xmit_retransmit_queue`: `tcp_small_queue_check` with a factor).
    fn resend_waits(&mut self, tick: &impl Tick) -> Option<Picoseconds> {
        if self.queue.parts() <= 1 {
            return None;
        }
        let (held_back, settings) = (tick.held_back(), tick.settings());
        let memory = u64::from(self.mss) + settings.buffer_overhead_bytes();
        let most = self.output_limit_bytes(settings);
        let until = self.held.waits(tick.now() - held_back, memory, self.pacing_rate(settings), most, 2);
        until.map(|until| until + held_back)
    }

    /// Sends one segment again (`tcp_retransmit_skb`).
    pub(super) fn resend(&mut self, tick: &mut impl Tick, place: usize) {
        self.send_again(tick, place);
        self.queue.resend(place, tick.clock());
        self.undo.first_resend = self.undo.first_resend.or(Some(tick.stamp()));
        self.undo.resends = self.undo.resends.max(0) + 1;
    }

    /// Sends one again that is under way as far as is known (`__tcp_retransmit_skb`, which `tcp_send_loss_probe` calls): the
    /// probe is not counted as under way beside it.
    pub(super) fn resend_as_probe(&mut self, tick: &mut impl Tick, place: usize) {
        self.send_again(tick, place);
        self.queue.probe(place, tick.now());
    }

    fn send_again(&mut self, tick: &mut impl Tick, place: usize) {
        self.follow_path();
        self.forget_path_probe();
        if self.queue.get(place).bytes > self.mss {
            self.queue.cut(place, self.mss);
        }
        let sent = *self.queue.get(place);
        let flight = self.note_flight(tick);
        self.queue.set_flight(place, flight);
        let departs = tick.transmit(Outgoing {
            sequence: sent.sequence,
            bytes: sent.bytes,
            fin: sent.control,
            push: sent.bytes > 0 && sent.sequence + u64::from(sent.bytes) == self.written,
            ..Outgoing::default()
        });
        self.hand_over(tick, departs, u64::from(sent.bytes));
        self.counts.segments += 1;
        self.counts.resends += 1;
        self.last_sent = tick.now();
    }

    /// One new segment for a tail-loss probe; whether one was sent.
    pub(super) fn send_probe_of_new(&mut self, tick: &mut impl Tick) -> bool {
        let before = self.next;
        if self.has_data() && self.has_room_for_one() {
            self.send_new(tick, How::Probe);
        }
        self.next > before
    }
}
