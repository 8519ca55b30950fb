//! How what an application writes comes into the socket, and what is sent meanwhile (`tcp_sendmsg_locked`).
//!
//! A call fills one buffer after the other. Each that is full is sent if it is the first, and at the latest after half of
//! the largest window that the peer has announced everything is (`forced_push`). Buffers are put together again when they
//! are sent (`tcp_grow_skb`), so what remains of them are the moments at which something is sent, and PSH.

use super::Sender;
use super::output::How;
use crate::TcpSettings;
use crate::endpoint::Tick;

/// A device's largest super-segment less headers (`sk_dst_gso_max_size`: `MAX_TCP_HEADER + 1`).
const HEADERS_BYTES: u32 = 321;
/// What a full segment takes in memory beside its payload, before that is rounded up to a power of two, and after that
/// (`tcp_sndbuf_expand`: `MAX_TCP_HEADER`, `struct skb_shared_info`; `struct sk_buff`).
const SEGMENT_BYTES: u64 = 640;
const DESCRIPTION_BYTES: u64 = 256;
const FEWEST_SEGMENTS: u32 = 10;

/// Where the socket's buffers are.
#[derive(Debug, Clone)]
pub(super) struct Writing {
    /// Everything before was taken from the application (`write_seq`).
    pub(super) accepted: u64,
    /// Where the last buffer begins.
    tail: u64,
    /// The last byte that was to be sent at once (`pushed_seq`).
    pushed: u64,
    /// The end of a buffer that is not sent and has PSH.
    marks: std::collections::VecDeque<u64>,
    /// The largest window that the peer has announced.
    largest_window: u32,
    /// The socket holds so much in memory.
    room: u64,
}

impl Default for Writing {
    fn default() -> Self {
        Writing { accepted: 1, tail: 1, pushed: 1, marks: Default::default(), largest_window: 0, room: 0 }
    }
}

impl Writing {
    /// Whether what ends there is to have PSH; marks before are done with.
    pub(super) fn takes_mark(&mut self, end: u64) -> bool {
        let before = self.marks.len();
        while self.marks.front().is_some_and(|mark| *mark <= end) {
            self.marks.pop_front();
        }
        self.marks.len() < before
    }

    fn mark(&mut self) {
        self.pushed = self.accepted;
        self.marks.push_back(self.accepted);
    }
}

/// The largest super-segment, of payload (`sk_gso_max_size`).
pub(super) fn gso_payload(settings: &TcpSettings) -> u64 {
    u64::from(settings.gso_bytes.saturating_sub(HEADERS_BYTES))
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
        (gso_payload(settings).min(half) / mss).max(1) * mss
    }

    /// Takes what was written, as far as there is memory, and sends while it does.
    pub(super) fn take_in(&mut self, tick: &mut impl Tick) {
        let half = u64::from(self.writing.largest_window / 2);
        while self.writing.accepted < self.written {
            let goal = self.goal(tick.settings());
            let begin = self.writing.tail.max(self.next);
            let mut filled = self.writing.accepted - begin;
            if filled == 0 || filled >= goal {
                if !self.has_memory() {
                    return;
                }
                self.writing.tail = self.writing.accepted;
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

    /// `sk_stream_memory_free`, of a buffer that holds two windows (`tcp_sndbuf_expand`).
    fn has_memory(&mut self) -> bool {
        let segment = (u64::from(self.mss) + SEGMENT_BYTES).next_power_of_two() + DESCRIPTION_BYTES;
        let segments = u64::from(self.window.cwnd.max(FEWEST_SEGMENTS));
        self.writing.room = self.writing.room.max(2 * segments * segment);
        self.writing.accepted - self.unacknowledged < self.writing.room
    }
}
