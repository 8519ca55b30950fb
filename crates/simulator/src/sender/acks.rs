//! What an acknowledgement does to a sender (`tcp_ack`).

use framegauge_frames::Picoseconds;

use super::{MILLISECOND, Sender, Timer};
use crate::congestion::State;
use crate::endpoint::Tick;
use crate::segment::{Flags, Segment};

/// A segment may be overtaken by so many before it counts as much (`net.ipv4.tcp_reordering`, `tcp_max_reordering`).
pub(super) const USUAL_DEGREE: u32 = 3;
const MOST_DEGREE: u64 = 300;

/// What one acknowledgement was found to say (`FLAG_…`).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Found {
    /// `unacknowledged` has moved.
    pub(super) advances: bool,
    /// Segments that were never resent are acknowledged.
    pub(super) has_acked_data: bool,
    pub(super) has_sacked_data: bool,
    /// It says that a segment came twice.
    pub(super) has_duplicate: bool,
    /// Something never resent was delivered that was sent before the timeout.
    pub(super) has_original: bool,
    /// It has payload, or changes the window: no duplicate acknowledgement.
    pub(super) is_no_duplicate: bool,
    /// It tells nothing but that something has come, beyond a hole (RFC 5681 section 2).
    pub(super) is_duplicate: bool,
    pub(super) has_mark: bool,
    /// The lowest of what was never sent again and came behind something that was sent later.
    pub(super) overtaken: Option<u64>,
    /// What was selectively acknowledged before ends here, or all that was acknowledged (`prior_fack`).
    pub(super) highest: u64,
    /// Everything before was acknowledged before.
    pub(super) prior: u64,
    /// A resend was lost.
    pub(super) has_lost_resend: bool,
    /// The timer is to be set anew.
    pub(super) sets_timer: bool,
    /// Segments that were lost by what it says.
    pub(super) losses: u32,
    /// Segments that it newly acknowledged, selectively or not.
    pub(super) delivered: u32,
    pub(super) echo: u32,
    /// An RTT sample: since the first transmission of the first, and of the last newly acknowledged.
    pub(super) rtt: Option<Picoseconds>,
    pub(super) last_rtt: Option<Picoseconds>,
}

/// What is to be sent after an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Nothing,
    Lost,
    /// New data first, to learn whether a timeout was spurious.
    New,
}

impl Sender {
    /// Takes the acknowledgement of a segment in. What may be sent after it is sent by [`Sender::output`].
    pub(crate) fn acknowledge(&mut self, tick: &mut impl Tick, segment: &Segment) {
        let acknowledged = segment.acknowledged;
        if acknowledged > self.next {
            return;
        }
        let mut ack = Found { is_no_duplicate: segment.bytes > 0, echo: segment.echo, ..Found::default() };
        let prior = self.unacknowledged;
        let lost_before = self.lost;
        if acknowledged < prior {
            return self.take_old(tick, segment, ack);
        }
        self.take_window(segment, &mut ack);
        if acknowledged > prior {
            self.timeouts = 0;
            ack.advances = true;
        }
        let delivered_before = self.delivered;
        ack.prior = prior;
        ack.highest = if self.queue.acked > 0 { self.highest_block() } else { prior };
        self.begin_sample();
        if self.queue.is_empty() {
            self.unacknowledged = acknowledged;
            self.take_blocks(tick, segment, prior, &mut ack);
            if ack.has_duplicate {
                self.judge(tick, &mut ack);
            }
            self.look_at_closed_window();
            self.take_probe_answer(tick, acknowledged, &ack);
            return;
        }
        self.take_blocks(tick, segment, prior, &mut ack);
        self.unacknowledged = acknowledged;
        self.clean(tick, &mut ack);
        self.look_at_path_probe(tick.settings());
        ack.delivered = (self.delivered - delivered_before) as u32;
        self.take_mark(segment, &mut ack);
        self.note_delivery(tick, &ack);
        self.take_probe_answer(tick, acknowledged, &ack);
        let mut then = Then::Nothing;
        if self.is_dubious(&ack) {
            ack.is_duplicate = !ack.advances && !ack.is_no_duplicate && !ack.has_duplicate;
            then = self.judge(tick, &mut ack);
        }
        if ack.sets_timer {
            self.set_timer(tick);
        }
        ack.losses = (self.lost - lost_before) as u32;
        self.adapt_cwnd(tick, &ack, acknowledged - prior);
        self.resend_after(tick, then);
    }

    /// One that was overtaken by another: what it says of segments beyond a hole may still be news.
    fn take_old(&mut self, tick: &mut impl Tick, segment: &Segment, mut ack: Found) {
        if segment.blocks.len() > 0 {
            let delivered_before = self.delivered;
            self.take_blocks(tick, segment, self.unacknowledged, &mut ack);
            ack.delivered = (self.delivered - delivered_before) as u32;
            let then = self.judge(tick, &mut ack);
            self.resend_after(tick, then);
        }
    }

    /// `tcp_may_update_window`.
    fn may_update_window(&self, segment: &Segment) -> bool {
        let is_other = segment.window_bytes > self.peer_window || segment.window_bytes == 0;
        segment.acknowledged > self.unacknowledged
            || segment.sequence > self.window_sequence
            || segment.sequence == self.window_sequence && is_other
    }

    /// Whether an acknowledgement that is too old, by so many milliseconds, is taken all the same: it says what is known
    /// already (`tcp_disordered_ack_check`). `next` is what is expected of the peer.
    pub(crate) fn tolerates(&self, segment: &Segment, age: u32, next: u64) -> bool {
        let replay = self.rtt.timeout().get() / MILLISECOND.get() * 12 / 10;
        segment.sequence == segment.end()
            && segment.sequence == next
            && segment.acknowledged == self.unacknowledged
            && !self.may_update_window(segment)
            && u64::from(age) <= replay
    }

    fn take_window(&mut self, segment: &Segment, ack: &mut Found) {
        if !self.may_update_window(segment) {
            return;
        }
        let end = segment.acknowledged + u64::from(segment.window_bytes);
        ack.is_no_duplicate = true;
        self.window_sequence = segment.sequence;
        self.peer_window = segment.window_bytes;
        self.note_window(segment.window_bytes);
        self.window_end = self.window_end.max(end);
    }

    /// SACK blocks (`tcp_sacktag_write_queue`). What the last acknowledgement said already is left out.
    fn take_blocks(&mut self, tick: &mut impl Tick, segment: &Segment, prior: u64, ack: &mut Found) {
        if segment.blocks.len() == 0 {
            return;
        }
        let mut blocks = [(0, 0); 4];
        let mut count = 0;
        let mut ranges = segment.blocks.ranges(segment.acknowledged);
        let first = segment.blocks.ranges(segment.acknowledged).next();
        let second = segment.blocks.ranges(segment.acknowledged).nth(1);
        if let Some((begin, end)) = first
            && (begin < segment.acknowledged || second.is_some_and(|(from, to)| from <= begin && end <= to))
        {
            self.take_duplicate(begin, end, ack);
            ranges.next();
        }
        for (begin, end) in ranges {
            if end > prior && begin < end && end <= self.next {
                blocks[count] = (begin.max(prior), end);
                count += 1;
            }
        }
        for (begin, end) in blocks[..count].iter().copied() {
            self.take_block(tick, begin, end, ack);
        }
        let before = std::mem::replace(&mut self.known_blocks, blocks);
        if let Some(low) = ack.overtaken.take() {
            let known = before.iter().map(|(_, end)| *end).max().unwrap_or(0);
            self.note_reordering(low, known.max(self.highest_block()));
        }
    }

    /// A segment came twice (RFC 2883): a resend that was not needed.
    fn take_duplicate(&mut self, begin: u64, end: u64, ack: &mut Found) {
        ack.has_duplicate = true;
        if self.undo.marker.is_some_and(|marker| marker < end) && self.undo.resends > 0 {
            self.undo.resends -= (end - begin).div_ceil(u64::from(self.mss)).max(1) as i64;
            self.undo.resends = self.undo.resends.max(0);
        }
    }

    fn take_block(&mut self, tick: &mut impl Tick, begin: u64, end: u64, ack: &mut Found) {
        let mut from = begin;
        // Blocks only grow: the part that is known lies in one piece of it.
        if let Some((_, known_end)) = self
            .known_blocks
            .iter()
            .find(|(known_begin, known_end)| *known_begin == begin && *known_end <= end)
        {
            from = *known_end;
        }
        if let Some((known_begin, _)) = self
            .known_blocks
            .iter()
            .find(|(known_begin, known_end)| *known_end == end && *known_begin > begin)
        {
            let until = *known_begin;
            return self.take_range(tick, from, until, ack);
        }
        self.take_range(tick, from, end, ack);
    }

    fn take_range(&mut self, tick: &mut impl Tick, begin: u64, end: u64, ack: &mut Found) {
        let mut place = self.queue.place(begin);
        while place < self.queue.len() as usize {
            let sent = *self.queue.get(place);
            if sent.end() > end {
                break;
            }
            if sent.sequence >= begin && self.queue.acknowledge(place).is_some() {
                self.delivered += 1;
                ack.has_sacked_data = true;
                self.advance_rack(tick.now(), &sent);
                self.note_delivered(place, &sent);
                if sent.resends == 0 {
                    ack.has_original |= sent.end() <= self.high;
                    if sent.is_lost || self.queue.acked > 1 && sent.end() < self.highest_block() {
                        ack.overtaken =
                            Some(ack.overtaken.map_or(sent.sequence, |low| low.min(sent.sequence)));
                    }
                    let rtt = tick.now() - sent.at;
                    ack.last_rtt = Some(rtt);
                    ack.rtt = Some(ack.rtt.map_or(rtt, |first| first.max(rtt)));
                }
            }
            place += 1;
        }
    }

    /// A segment that was never sent again was delivered after one that was sent later (`tcp_check_sack_reordering`).
    pub(super) fn note_reordering(&mut self, low: u64, highest: u64) {
        if low < highest {
            self.rack.has_seen_reordering = true;
            let degree = (highest - low).div_ceil(u64::from(self.mss)).min(MOST_DEGREE);
            self.rack.degree = self.rack.degree.max(degree as u32);
        }
    }

    /// Without SACK, a duplicate acknowledgement stands for a segment that has left the network (`tcp_add_reno_sack`).
    pub(super) fn count_duplicate(&mut self, ack: &mut Found) {
        if !ack.is_duplicate {
            return;
        }
        let before = self.queue.acked;
        if self.queue.count_duplicate() {
            self.note_degree(self.queue.len());
        }
        let more = self.queue.acked.saturating_sub(before);
        self.delivered += u64::from(more);
        ack.delivered += more;
    }

    /// Without SACK: more duplicates came than segments can have left the network (`tcp_check_reno_reordering`).
    fn note_degree(&mut self, segments: u32) {
        self.rack.degree = u64::from(segments).min(MOST_DEGREE) as u32;
        self.rack.has_seen_reordering = true;
    }

    pub(super) fn highest_block(&self) -> u64 {
        self.known_blocks.iter().map(|(_, end)| *end).max().unwrap_or(0)
    }

    /// Takes out of the queue what is acknowledged (`tcp_clean_rtx_queue`).
    fn clean(&mut self, tick: &mut impl Tick, ack: &mut Found) {
        let now = tick.now();
        let (mut first, mut last) = (None, None);
        let (mut resent, mut overtaken) = (false, None);
        let before = self.queue.len();
        while let Some(sent) = self.queue.first().copied().filter(|head| head.end() <= self.unacknowledged) {
            self.note_delivered(0, &sent);
            self.queue.pop();
            if sent.resends > 0 {
                resent = true;
            } else if !sent.is_acked {
                first = first.or(Some(sent.at));
                last = Some(sent.at);
                overtaken = overtaken.or(Some(sent.sequence));
                ack.has_original |= sent.end() <= self.high;
            }
            if !sent.is_acked {
                self.delivered += 1;
                self.advance_rack(now, &sent);
            }
            ack.has_acked_data = true;
            if self.queue.is_empty() {
                self.known_blocks = [(0, 0); 4];
            }
        }
        if let Some(low) = overtaken.filter(|_| tick.settings().sack) {
            self.note_reordering(low, ack.highest);
        }
        if !tick.settings().sack && self.queue.len() < before {
            let acknowledged = before - self.queue.len();
            // Of these, the duplicates have counted some already.
            self.delivered -= u64::from(self.queue.acked.min(acknowledged - 1));
            if self.queue.forget_duplicates(if self.queue.is_empty() { 0 } else { acknowledged }) {
                self.note_degree(self.queue.len() + acknowledged);
            }
        }
        let [in_order, last_in_order] = [first, last].map(|at| at.filter(|_| !resent).map(|at| now - at));
        let mut sample = in_order.or(ack.rtt);
        ack.last_rtt = ack.last_rtt.or(last_in_order);
        if sample.is_none() && ack.has_acked_data {
            // Timestamps tell which transmission was answered (RFC 7323 section 4).
            sample = tick.since_echo(ack.echo);
            ack.last_rtt = sample;
        }
        if let Some(rtt) = sample {
            self.rtt.sample(rtt, self.unacknowledged, self.next);
            self.rtt.note_least(ack.last_rtt);
        }
        if ack.has_acked_data {
            ack.sets_timer = true;
        } else if let (Some(rtt), Some(head)) = (ack.rtt, self.queue.first()) {
            ack.sets_timer = ack.has_sacked_data && rtt > now - head.at;
        }
    }

    fn take_mark(&mut self, segment: &Segment, ack: &mut Found) {
        if self.is_ecn && segment.flags.has(Flags::ECE) && !segment.flags.has(Flags::SYN) {
            ack.has_mark = true;
            self.counts.marks += 1;
            self.delivered_marked += u64::from(ack.delivered.max(u32::from(ack.advances)));
        }
    }

    fn note_delivery(&mut self, tick: &mut impl Tick, ack: &Found) {
        let acked = self.acked(tick, ack.last_rtt);
        self.control.note(&mut self.window, &acked);
    }

    /// `tcp_ack_is_dubious`.
    fn is_dubious(&self, ack: &Found) -> bool {
        !(ack.advances || ack.is_no_duplicate)
            || ack.has_sacked_data
            || ack.has_mark
            || ack.has_duplicate
            || self.state != State::Open
    }

    fn look_at_closed_window(&mut self) {
        if matches!(self.timer, Some(Timer::Persist(_))) && self.has_room_for_one() {
            self.timer = None;
            self.rtt.forget_backoff();
        }
    }

    /// PRR while cwnd shrinks; growth where the sender was limited by cwnd (`tcp_cong_control`).
    fn adapt_cwnd(&mut self, tick: &mut impl Tick, ack: &Found, advance: u64) {
        if self.control.is_model() {
            self.adapt_to_rate(tick, ack, advance);
        } else if self.is_reducing() {
            self.reduce(ack);
        } else if ack.has_acked_data || self.rack.degree > USUAL_DEGREE && ack.has_sacked_data {
            let acked = self.acked(tick, ack.last_rtt);
            // `tcp_cong_avoid` stamps it, whether cwnd grows or not.
            self.usage.since = tick.now();
            let limited = self.usage.is_limited
                || self.window.is_slow_start() && self.window.cwnd < 2 * self.usage.most_out;
            if limited {
                self.control.grow(&mut self.window, ack.delivered, &acked);
            }
        }
    }
}
