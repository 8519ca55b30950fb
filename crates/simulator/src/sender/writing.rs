//! How what an application writes comes into the socket, and what is sent meanwhile (`tcp_sendmsg_locked`).
//!
//! A call fills one buffer after the other. Each that is full is sent if it is the first, and at the latest after half of
//! the largest window that the peer has announced everything is (`forced_push`). A super-segment takes from one buffer, and
//! from the one behind it what it lacks (`tcp_grow_skb`).

use std::collections::VecDeque;

use super::Sender;
use super::output::How;
use crate::endpoint::Tick;
use crate::{Nagle, TcpSettings};

/// What a full segment takes in memory beside its payload and the room for headers, before that is rounded up to a power of
/// two, and after that (`tcp_sndbuf_expand`: `struct skb_shared_info`; `struct sk_buff`).
const SEGMENT_BYTES: u64 = 320;
const DESCRIPTION_BYTES: u64 = 256;
const FEWEST_SEGMENTS: u32 = 10;

/// Where the socket's buffers are.
#[derive(Debug, Clone)]
pub(super) struct Writing {
    /// Everything before was taken from the application (`write_seq`).
    pub(super) accepted: u64,
    /// The application has called with everything before.
    called: u64,
    /// Where the last buffer begins.
    tail: u64,
    /// Where the buffers before it end that are not sent.
    ends: VecDeque<u64>,
    /// The last byte that was to be sent at once (`pushed_seq`).
    pushed: u64,
    /// The end of a buffer that is not sent and has PSH.
    marks: VecDeque<u64>,
    /// Where the first buffer ended that was looked at last.
    first: u64,
    /// The largest window that the peer has announced.
    largest_window: u32,
    /// The socket holds so much in memory (`sk_sndbuf`).
    room: u64,
    /// Where the present call began.
    call_began: u64,
    /// The call waits for memory (`SOCK_NOSPACE`).
    pub(super) is_short: bool,
}

impl Default for Writing {
    fn default() -> Self {
        let (ends, marks) = Default::default();
        Writing {
            accepted: 1,
            called: 1,
            tail: 1,
            ends,
            pushed: 1,
            marks,
            first: 1,
            largest_window: 0,
            room: 0,
            call_began: 1,
            is_short: false,
        }
    }
}

impl Writing {
    /// Whether what is sent up to there has PSH: where its buffer ends as well, and was marked. Of a buffer that is cut the rest
    /// has it (`tso_fragment`).
    pub(super) fn takes_mark(&mut self, end: u64) -> bool {
        let buffer = self.first.max(end);
        let is_marked = self.unmark(buffer);
        if is_marked && end < buffer {
            self.marks.push_front(buffer);
        }
        is_marked && end == buffer
    }

    /// Forgets the marks up to there; whether there were any.
    fn unmark(&mut self, end: u64) -> bool {
        let before = self.marks.len();
        while self.marks.front().is_some_and(|mark| *mark <= end) {
            self.marks.pop_front();
        }
        self.marks.len() < before
    }

    /// Another buffer begins; everything before `next` is sent.
    fn begin_buffer(&mut self, next: u64) {
        if self.accepted > next {
            self.ends.push_back(self.accepted);
        }
        self.tail = self.accepted;
    }

    /// Where the first buffer that is not sent ends, once it has taken what it lacks to `bytes` bytes from the one behind it
    /// (`tcp_grow_skb`). It begins at `next`.
    pub(super) fn grown(&mut self, next: u64, bytes: u64) -> u64 {
        self.first = self.grow(next, bytes);
        self.first
    }

    fn grow(&mut self, next: u64, bytes: u64) -> u64 {
        while self.ends.front().is_some_and(|end| *end <= next) {
            self.ends.pop_front();
        }
        let Some(end) = self.ends.front().copied() else { return self.accepted };
        let behind = self.ends.get(1).copied();
        let all = behind.unwrap_or(self.accepted);
        let grown = all.min(next + bytes).max(end);
        if grown < all {
            self.ends[0] = grown;
        } else {
            self.ends.pop_front();
        }
        if behind.is_none() {
            self.tail = if grown < all { grown } else { next };
        }
        grown
    }

    /// The buffer at `next` was cut there for a super-segment, which then has to wait (`tcp_write_xmit` calls `tso_fragment` before
    /// `tcp_small_queue_check`). What is written next goes into the rest, if it was the last.
    pub(super) fn cut(&mut self, next: u64, end: u64) {
        debug_assert!(self.ends.front().is_none_or(|first| *first > next));
        if self.ends.front().is_some_and(|first| end < *first) || self.ends.is_empty() && end < self.accepted
        {
            let buffer = self.ends.front().copied().unwrap_or(self.accepted);
            if self.unmark(buffer) {
                self.marks.push_front(buffer);
            }
            if self.ends.is_empty() {
                self.tail = end;
            }
            self.ends.push_front(end);
        }
    }

    /// Buffers with what is not sent.
    fn buffers(&self, next: u64) -> u64 {
        let last = self.ends.back().map_or(next, |end| next.max(*end));
        let others = self.ends.iter().filter(|end| **end > next).count() as u64;
        others + u64::from(self.accepted > last)
    }

    fn mark(&mut self) {
        self.pushed = self.accepted;
        self.marks.push_back(self.accepted);
    }
}

impl Sender {
    /// The peer has announced a window.
    pub(crate) fn note_window(&mut self, bytes: u32) {
        self.writing.largest_window = self.writing.largest_window.max(bytes);
    }

    /// What one buffer holds (`tcp_xmit_size_goal`, `tcp_bound_to_half_wnd`).
    fn goal(&self, settings: &TcpSettings) -> u64 {
        let mss = u64::from(self.mss);
        let half = u64::from(self.writing.largest_window / 2);
        (settings.gso_payload().min(half) / mss).max(1) * mss
    }

    /// Takes what was written, as far as there is memory, and sends while it does.
    pub(super) fn take_in(&mut self, tick: &mut impl Tick) {
        let half = u64::from(self.writing.largest_window / 2);
        if self.writing.called < self.written {
            self.writing.call_began = self.writing.called;
            self.writing.called = self.written;
            self.note_write(tick);
        }
        if self.writing.is_short {
            self.look_for_memory(tick);
        }
        if self.writing.is_short {
            return;
        }
        while self.writing.accepted < self.written {
            let goal = self.goal(tick.settings());
            let begin = self.writing.tail.max(self.next);
            let mut filled = self.writing.accepted - begin;
            if filled == 0 || filled >= goal {
                if !self.has_memory(tick.settings()) {
                    return self.wait_for_memory(tick);
                }
                self.writing.begin_buffer(self.next);
                filled = 0;
            }
            let left = self.written - self.writing.accepted;
            self.writing.accepted += left.min(goal - filled);
            if self.writing.accepted == self.written {
                return self.writing.mark();
            }
            if self.writing.accepted - self.writing.pushed > half {
                self.writing.mark();
                self.send_new(tick, How::Pushed);
            } else if self.writing.tail <= self.next {
                self.send_new(tick, How::One);
            }
        }
    }

    /// Nagle's algorithm: whether a segment that is not full has to wait.
    pub(super) fn holds_small(&self, tick: &impl Tick) -> bool {
        match tick.settings().nagle {
            Nagle::Off => false,
            Nagle::Classic => !self.queue.is_empty(),
            Nagle::Minshall => !self.queue.is_empty() && self.last_small > self.unacknowledged,
        }
    }

    /// `sk_stream_memory_free`.
    fn has_memory(&mut self, settings: &TcpSettings) -> bool {
        if self.writing.room == 0 {
            self.expand(settings);
        }
        self.held_memory(settings) < self.writing.room
    }

    /// What was taken and is not acknowledged takes in memory (`sk_wmem_queued`).
    fn held_memory(&self, settings: &TcpSettings) -> u64 {
        let buffers = u64::from(self.queue.parts()) + self.writing.buffers(self.next);
        self.writing.accepted - self.unacknowledged + buffers * settings.buffer_overhead_bytes()
    }

    /// The socket holds two windows (`tcp_sndbuf_expand`).
    fn expand(&mut self, settings: &TcpSettings) {
        let before = u64::from(self.mss) + u64::from(settings.header_room_bytes) + SEGMENT_BYTES;
        let segment = before.next_power_of_two() + DESCRIPTION_BYTES;
        let segments = u64::from(self.window.cwnd.max(FEWEST_SEGMENTS));
        // BBR provides for three windows (`bbr_sndbuf_expand`).
        let windows = if self.control.is_model() { 3 } else { 2 };
        self.writing.room = self.writing.room.max(windows * segments * segment);
    }

    /// The call sleeps; what it has brought so far is sent meanwhile (`tcp_sendmsg_locked`: `wait_for_space`).
    fn wait_for_memory(&mut self, tick: &mut impl Tick) {
        self.writing.is_short = true;
        if self.writing.accepted > self.writing.call_began && self.unsent() > 0 {
            self.writing.mark();
            self.send_new(tick, How::Pushed);
        }
    }

    /// After an acknowledgement (`tcp_check_space`): the socket holds more if cwnd has room, and the call goes on once a third of
    /// it is free (`sk_stream_write_space`).
    fn look_for_memory(&mut self, tick: &impl Tick) {
        let settings = tick.settings();
        if self.queue.in_flight() < self.window.cwnd {
            self.expand(settings);
            self.usage.since = tick.now();
        }
        let held = self.held_memory(settings);
        self.writing.is_short = self.writing.room.saturating_sub(held) < held / 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOAL: u64 = 6;

    /// Takes six at a time in, and sends two of them each time, if they are the first; after `most` times these have to wait.
    fn written(bytes: u64, most: u64) -> (Writing, u64) {
        let mut writing = Writing { accepted: 0, tail: 0, ..Writing::default() };
        let (mut next, mut sent) = (0, 0);
        while writing.accepted < bytes {
            let begin = writing.tail.max(next);
            if writing.accepted == begin || writing.accepted - begin >= GOAL {
                writing.begin_buffer(next);
            }
            let begin = writing.tail.max(next);
            writing.accepted += GOAL - (writing.accepted - begin);
            if writing.tail <= next && sent < most {
                next += 2;
                sent += 1;
            } else if writing.tail <= next {
                writing.cut(next, next + 2);
            }
        }
        (writing, next)
    }

    /// Of Linux 6.18 on the rack: three times two segments leave at once, the fourth two wait, and a buffer of six ends with
    /// segment 26, at which half of the peer's window is full.
    #[test]
    fn what_is_cut_off_and_waits_moves_the_ends_of_the_buffers_behind_it() {
        let (writing, next) = written(30, 3);
        assert_eq!((next, writing.ends), (6, [8, 14, 20, 26].into()));
    }

    #[test]
    fn of_a_buffer_that_is_cut_the_rest_is_marked() {
        let (ends, marks) = ([6, 12].into(), [6].into());
        let mut writing = Writing { accepted: 20, tail: 12, ends, marks, ..Writing::default() };
        assert_eq!(writing.grown(0, 8), 8);
        assert!(!writing.takes_mark(4));
        assert_eq!(writing.grown(4, 4), 8);
        assert!(writing.takes_mark(8));
        // It is cut before it waits in the host's queue.
        writing.marks.push_back(12);
        assert_eq!(writing.grown(8, 4), 12);
        writing.cut(8, 10);
        assert_eq!(writing.grown(8, 2), 10);
        assert!(!writing.takes_mark(10));
        assert_eq!(writing.grown(10, 2), 12);
        assert!(writing.takes_mark(12));
    }

    #[test]
    fn a_buffer_takes_what_it_lacks_from_the_one_behind_it_only() {
        let ends = |ends: &[u64]| Writing {
            accepted: 20,
            tail: 12,
            ends: ends.iter().copied().collect(),
            ..Writing::default()
        };
        let mut writing = ends(&[3, 4, 12]);
        assert_eq!(writing.grown(2, 1), 3);
        assert_eq!(writing.grown(2, 5), 4, "the next buffer has no more");
        assert_eq!(writing.grown(2, 5), 7);
        assert_eq!((&writing.ends, writing.tail), (&[7, 12].into(), 12));
        // The last buffer: a part of it, then all.
        assert_eq!((writing.grown(7, 10), writing.tail), (17, 17));
        assert_eq!((writing.grown(7, 20), writing.tail), (20, 7));
        assert_eq!(writing.grown(7, 20), 20);
    }
}
