//! Acknowledgements that are left when segments are larger, told from those that came with small ones.
//!
//! Linux acknowledges at once when more than one full segment is not acknowledged, and the window can move on or the
//! program reads (`__tcp_ack_snd_check`, `__tcp_cleanup_rbuf`: RFC 1122 section 4.2.3.2, RFC 5681 section 4.2); one
//! segment alone while a connection is quick, when a program has read it and does not answer, or after a wait
//! (`tcp_send_delayed_ack`). What a host sends meanwhile takes the acknowledgement along. So the acknowledgements of a
//! direction tell when its receiver could acknowledge, and these moments are gone through again with larger segments:
//!
//! ```text
//!   before   | full | full | full | full | full | full | end |  | full | ...
//!   came                   A             A             A   A        A: more than one segment, or the last alone
//!   after    |                   full                  | end |  | full ...
//!   left                                                   A        more than one segment for the first time
//! ```
//!
//! - An acknowledgement of more than one full segment is left if more than one larger segment is complete by then, or
//!   was before, if the receiver did not wait beyond the second small one.
//! - One of a full segment at most was sent at once, whatever its size, and is left if any larger segment is complete.
//! - A program reads what has come before it answers. So the end of a message is acknowledged if more than one larger
//!   segment is, though it was the only small one then.
//! - So are two segments, however small, that were one at most then (`ICSK_ACK_PUSHED2`), as a header and a body are
//!   that are written one by one.
//! - The last segment of a message, alone now and not then, goes with what is sent within the least wait, 40 ms
//!   (`TCP_ATO_MIN`): only then is the connection taken for one of requests and responses (`tcp_event_data_sent`).
//!   Otherwise it is acknowledged by itself. The bounds have all of these, and none.

/// The least time that Linux delays an acknowledgement (`TCP_ATO_MIN`, `HZ / 25`).
const WAIT_NANOSECONDS: u64 = 40_000_000;
/// What a receiver takes for a full segment until a larger one comes (`tcp_initialize_rcv_mss`).
const DEFAULT_BYTES: i64 = 536;

/// Data of one direction as it passes: an aggregate, or a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Data {
    /// Its first byte.
    pub sequence: u32,
    pub bytes: u32,
    /// It is the end of a message.
    pub ends: bool,
}

/// A packet of the other direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    pub acknowledged: u32,
    /// Without data.
    pub alone: bool,
    pub nanoseconds: u64,
}

/// Acknowledgements that are left of those that came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Left {
    /// The likely number.
    pub likely: u64,
    /// Without those that may go with data.
    pub least: u64,
    /// With all that may be sent by themselves.
    pub most: u64,
    /// Last segments of messages that are acknowledged by themselves, with data, and those at the end of a window.
    alone: u64,
    along: u64,
    open: u64,
}

impl Left {
    pub(crate) fn add(&mut self, other: &Self) {
        self.likely += other.likely;
        self.least += other.least;
        self.most += other.most;
        self.alone += other.alone;
        self.along += other.along;
        self.open += other.open;
    }

    /// With messages at the ends of windows taken as the others are; none of them by itself if there are no others.
    pub fn settled(self) -> Self {
        let share = self.alone as f64 / (self.alone + self.along).max(1) as f64;
        let more = (self.open as f64 * share).round() as u64;
        Self { likely: self.likely + more, least: self.least, most: self.most, ..Self::default() }
    }
}

/// What is not acknowledged may be a message or a part of one, from byte to byte, counted from the first in a window.
#[derive(Debug, Clone, Copy)]
struct Message {
    from: i64,
    to: i64,
    ended: bool,
}

/// One direction in a window, and what acknowledged it.
#[derive(Debug)]
pub(crate) struct Window {
    messages: Vec<Message>,
    /// Up to which byte, alone, and when.
    answers: Vec<(i64, bool, u64)>,
    /// For each of these, whether data follows within the least wait; `None` if the window ends before that.
    followed: Vec<Option<bool>>,
}

impl Window {
    /// `until`: when the window ends.
    pub(crate) fn new(data: &[Data], answers: &[Answer], until: u64) -> Self {
        let first = data.first().map_or(0, |first| first.sequence);
        // The difference of sequence numbers has a sign (RFC 9293 section 3.4).
        let place = |sequence: u32| i64::from(sequence.wrapping_sub(first) as i32);
        let mut messages: Vec<Message> = Vec::new();
        for each in data {
            let (from, to) = (place(each.sequence), place(each.sequence) + i64::from(each.bytes));
            match messages.last_mut() {
                // It was sent before.
                Some(last) if to <= last.to => {}
                Some(last) if !last.ended && from == last.to => (last.to, last.ended) = (to, each.ends),
                _ => messages.push(Message { from, to, ended: each.ends }),
            }
        }
        let mut window = Self {
            messages,
            answers: answers
                .iter()
                .map(|each| (place(each.acknowledged), each.alone, each.nanoseconds))
                .collect(),
            followed: Vec::new(),
        };
        window.followed = window.follow(until);
        window
    }

    fn follow(&self, until: u64) -> Vec<Option<bool>> {
        let mut found = vec![None; self.answers.len()];
        let mut next = u64::MAX;
        for (place, (_, alone, at)) in self.answers.iter().enumerate().rev() {
            let waited = at + WAIT_NANOSECONDS;
            found[place] = (waited <= until).then_some(next < waited);
            next = if *alone { next } else { *at };
        }
        found
    }

    /// Answers of which it is known what they acknowledge: not the first if it is to what passed before the window.
    fn known(&self) -> impl Iterator<Item = (&(i64, bool, u64), &Option<bool>)> {
        let before = self.answers.first().is_some_and(|(to, ..)| *to <= 0);
        self.answers.iter().zip(&self.followed).skip(usize::from(before))
    }

    /// Acknowledgements alone of which it is known what they acknowledge.
    pub(crate) fn came(&self) -> u64 {
        self.known().filter(|((_, alone, _), _)| *alone).count() as u64
    }

    /// Those that are left with full segments of `larger` bytes in place of `full`; 0: there was none.
    pub(crate) fn left(&self, full: u32, larger: u32) -> Left {
        let (full, larger) = (i64::from(full.max(1)), i64::from(larger.max(full).max(1)));
        let largest = |full: i64| {
            self.messages
                .iter()
                .map(|each| full.min(each.to - each.from))
                .max()
                .unwrap_or(0)
                .max(DEFAULT_BYTES)
        };
        let segments = (largest(full), largest(larger));
        let mut replay = Replay { cut: (full, larger), segments, ..Replay::default() };
        let Some((first, ..)) = self.answers.first() else { return Left::default() };
        if larger <= full {
            let came = self.came();
            return Left { likely: came, least: came, most: came, ..Left::default() };
        }
        (replay.then, replay.now) = ((*first).min(0), (*first).min(0));
        let mut begun = self.messages.as_slice();
        for ((to, alone, _), followed) in self.known() {
            while let Some((message, rest)) = begun.split_first().filter(|(message, _)| message.to < *to) {
                replay.end(*message);
                begun = rest;
            }
            let reached = Reached::new(begun, *to, larger);
            if reached.ended && !alone {
                replay.end(begun[0]);
            }
            if *alone {
                replay.acknowledge(&reached, larger, *followed);
            } else {
                replay.now = replay.now.max(reached.complete);
            }
            replay.then = replay.then.max(*to);
        }
        let Replay { left, alone, along, open, .. } = replay;
        Left { likely: left, least: left - alone, most: left + along + open, alone, along, open }
    }
}

/// What has come with bytes up to `to`.
#[derive(Debug)]
struct Reached {
    to: i64,
    /// The first byte of its message, and up to where larger segments are full in that.
    from: i64,
    full: i64,
    /// Up to where they are complete.
    complete: i64,
    /// A message ends there.
    ended: bool,
}

impl Reached {
    fn new(begun: &[Message], to: i64, larger: i64) -> Self {
        let from = begun.first().map_or(to, |message| message.from.min(to));
        let full = from + (to - from) / larger * larger;
        let ended = begun.first().is_some_and(|message| message.ended && message.to == to);
        Self { to, from, full, complete: if ended { to } else { full }, ended }
    }
}

/// The state of a receiver, then and now.
#[derive(Debug, Default)]
struct Replay {
    /// Into what messages are cut.
    cut: (i64, i64),
    /// What it takes for full segments.
    segments: (i64, i64),
    /// Acknowledged up to.
    then: i64,
    now: i64,
    left: u64,
    /// As in `Left`.
    alone: u64,
    along: u64,
    open: u64,
}

impl Replay {
    /// A message has come that was acknowledged with data, or not at once.
    fn end(&mut self, message: Message) {
        let (then, now) = (message.to - self.then, message.to - self.now);
        let last = |cut: i64| message.from + (message.to - message.from - 1) / cut * cut;
        let one_then = then <= self.segments.0 && self.then >= last(self.cut.0);
        let more_now = now > self.segments.1 || (one_then && self.now < last(self.cut.1));
        if message.ended && then <= self.segments.0 && more_now {
            self.left += 1;
            self.now = message.to;
        }
    }

    fn acknowledge(&mut self, reached: &Reached, larger: i64, followed: Option<bool>) {
        let then = reached.to - self.then;
        let many = then > self.segments.0;
        if many && then <= 2 * self.segments.0 {
            self.at_once(reached, larger);
        }
        let now = reached.complete - self.now;
        let mut is_left = if many { now > self.segments.1 } else { then <= 0 || now > 0 };
        if many && !is_left && reached.ended && now > 0 && self.now < reached.from {
            is_left = true;
        } else if many && !is_left && reached.ended && now > 0 {
            is_left = followed == Some(false);
            match followed {
                Some(false) => self.alone += 1,
                Some(true) => self.along += 1,
                None => self.open += 1,
            }
        }
        if is_left {
            self.left += 1;
            self.now = self.now.max(reached.complete);
        }
    }

    /// A receiver that did not wait beyond a second segment acknowledges as soon as two larger ones are full.
    fn at_once(&mut self, reached: &Reached, larger: i64) {
        while reached.full - self.now > self.segments.1 {
            let more =
                (reached.full - self.now - self.segments.1 - 1).min(reached.full - reached.from) / larger;
            self.left += 1;
            self.now = reached.full - more * larger;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMALL: u32 = 1448;
    const LARGE: u32 = 8948;
    const MILLISECOND: u64 = 1_000_000;

    /// What a direction and its receiver did.
    #[derive(Debug, Default)]
    struct Passed {
        data: Vec<Data>,
        answers: Vec<Answer>,
        bytes: u32,
        now: u64,
    }

    impl Passed {
        /// A message that is acknowledged by each `every` segments, the last of them also `alone`, or with an answer
        /// that is sent after so many milliseconds. How many acknowledgements were sent.
        fn message(
            &mut self,
            bytes: u32,
            segment: u32,
            every: u32,
            answered: Option<u64>,
            alone: bool,
        ) -> u64 {
            let before = self.answers.iter().filter(|each| each.alone).count();
            let (to, mut since) = (self.bytes + bytes, 0);
            while self.bytes < to {
                let part = segment.min(to - self.bytes);
                let data = Data { sequence: self.bytes, bytes: part, ends: self.bytes + part == to };
                self.data.push(data);
                self.bytes += part;
                since += 1;
                if since == every || (alone && self.bytes == to) {
                    self.answer(true, 0);
                    since = 0;
                }
            }
            if let Some(wait) = answered {
                self.answer(false, wait);
            }
            (self.answers.iter().filter(|each| each.alone).count() - before) as u64
        }

        fn answer(&mut self, alone: bool, wait: u64) {
            self.now += wait * MILLISECOND + 1000;
            self.answers.push(Answer { acknowledged: self.bytes, alone, nanoseconds: self.now });
        }

        fn left(&self, larger: u32) -> Left {
            Window::new(&self.data, &self.answers, self.now).left(SMALL, larger).settled()
        }
    }

    /// The first answer of a window tells only where it begins.
    fn begun() -> Passed {
        let mut passed = Passed::default();
        passed.answer(false, 0);
        passed
    }

    fn left(likely: u64, least: u64, most: u64) -> Left {
        Left { likely, least, most, ..Left::default() }
    }

    fn exactly(count: u64) -> Left {
        left(count, count, count)
    }

    #[test]
    fn a_long_transfer_has_one_for_two_segments_at_both_sizes() {
        let mut passed = begun();
        assert_eq!(passed.message(SMALL * 8948, SMALL, 2, None, false), 4474);
        assert_eq!(passed.left(LARGE), exactly(724));
    }

    #[test]
    fn a_receiver_that_acknowledges_each_segment_does_so_with_larger_ones() {
        let mut passed = begun();
        assert_eq!(passed.message(SMALL * 8948, SMALL, 1, None, false), 8948);
        assert_eq!(passed.left(LARGE), exactly(1448));
    }

    /// An aggregate of 45 segments has the bytes of 7.3 larger ones: reading or GRO set the pace, and not segments.
    #[test]
    fn a_receiver_that_acknowledges_many_segments_at_once_still_does() {
        let mut passed = begun();
        assert_eq!(passed.message(SMALL * 45 * 400, SMALL, 45, None, false), 400);
        assert_eq!(passed.left(LARGE), exactly(400));
    }

    /// Blocks of 8 KiB over iSCSI: six small segments, and one large one, which goes with the next request within 40 ms.
    #[test]
    fn a_response_of_one_segment_is_acknowledged_with_the_next_request() {
        let after = |wait| {
            let mut passed = begun();
            let came: u64 = (0..200).map(|_| passed.message(8240, SMALL, 2, Some(wait), false)).sum();
            assert_eq!(came, 600);
            passed.left(LARGE)
        };
        assert_eq!(after(16), left(0, 0, 200));
        assert_eq!(after(50), left(200, 0, 200));
    }

    /// Two responses under way, of which the second makes it more than one segment.
    #[test]
    fn of_two_responses_of_one_segment_the_second_is_acknowledged_at_once() {
        let mut passed = begun();
        for _ in 0..100 {
            passed.message(8240, SMALL, 2, None, false);
            passed.message(8240, SMALL, 2, Some(1), false);
        }
        assert_eq!(passed.left(LARGE), left(100, 100, 200));
    }

    #[test]
    fn messages_of_one_packet_that_are_acknowledged_by_themselves_still_are() {
        let mut passed = begun();
        assert_eq!((0..50).map(|_| passed.message(100, SMALL, 1, Some(1), true)).sum::<u64>(), 50);
        assert_eq!(passed.left(LARGE), exactly(50));
    }

    #[test]
    fn the_end_of_a_message_is_read_before_it_is_answered() {
        let mut passed = begun();
        // 13 segments, of which the last goes with the answer; 3 larger ones, and 2 of 12 segments and a byte.
        assert_eq!(passed.message(12 * SMALL + 1, SMALL, 2, Some(1), false), 6);
        assert_eq!(passed.left(LARGE), exactly(1));
    }

    /// Then the body's first segment made it more than one full segment, and its end went with what was sent next.
    #[test]
    fn a_header_and_a_body_are_acknowledged_when_they_are_read() {
        let mut passed = begun();
        for _ in 0..100 {
            passed.message(150, SMALL, 2, None, false);
            passed.message(SMALL, SMALL, 1, None, false);
            passed.data.last_mut().expect("data").ends = false;
            passed.message(852, SMALL, 2, Some(1), false);
        }
        assert_eq!(passed.left(LARGE), exactly(100));
        // One that comes alone has none.
        let mut alone = begun();
        assert_eq!((0..100).map(|_| alone.message(852, SMALL, 2, Some(1), false)).sum::<u64>(), 0);
        assert_eq!(alone.left(LARGE), exactly(0));
    }

    #[test]
    fn what_was_sent_again_and_numbers_that_begin_anew_change_nothing() {
        let mut passed = begun();
        passed.message(SMALL * 8948, SMALL, 2, None, false);
        let again = passed.data[7];
        passed.data.insert(9, again);
        for each in &mut passed.data {
            each.sequence = each.sequence.wrapping_add(u32::MAX - 5000);
        }
        for each in &mut passed.answers {
            each.acknowledged = each.acknowledged.wrapping_add(u32::MAX - 5000);
        }
        assert_eq!(passed.left(LARGE), exactly(724));
    }

    #[test]
    fn a_window_without_data_or_answers_tells_nothing() {
        assert_eq!(Window::new(&[], &[], 0).left(0, 0), Left::default());
        assert_eq!(Window::new(&[], &[], 0).came(), 0);
    }

    proptest! {
        /// A receiver that acknowledges each second segment and answers each message does so at any size: one for each
        /// two segments of a message, exactly.
        #[test]
        fn requests_and_responses_have_one_for_two_segments_of_each_message(
            messages in prop::collection::vec(1u32..200_000, 1..20), larger in SMALL..LARGE,
        ) {
            // The receiver knows a full segment only when it has seen one.
            let messages = [vec![200_001], messages].concat();
            let mut passed = begun();
            for bytes in &messages {
                passed.message(*bytes, SMALL, 2, Some(1), false);
            }
            let left = passed.left(larger);
            let expected: u64 = messages.iter().map(|bytes| u64::from(bytes.div_ceil(larger)) / 2).sum();
            prop_assert_eq!(left.likely, expected);
            prop_assert!(left.least <= left.likely && left.likely <= left.most);
        }

        /// Whatever a receiver did: there is no acknowledgement without a larger segment, and none is made up but for
        /// ends of messages. With segments as they are, all that came are left.
        #[test]
        fn what_is_left_is_bounded_by_segments_and_by_what_came(
            messages in prop::collection::vec((1u32..60_000, 1u32..9, prop::option::of(0u64..80), any::<bool>()), 1..30),
            larger in SMALL..LARGE,
        ) {
            let mut passed = begun();
            let came: u64 = messages
                .iter()
                .map(|(bytes, every, answered, alone)| passed.message(*bytes, SMALL, *every, *answered, *alone))
                .sum();
            let segments: u64 = messages.iter().map(|(bytes, ..)| u64::from(bytes.div_ceil(larger))).sum();
            let left = passed.left(larger);
            prop_assert!(left.least <= left.likely && left.likely <= left.most);
            prop_assert!(left.most <= segments && left.most <= came + messages.len() as u64);
            prop_assert_eq!(passed.left(SMALL), exactly(came));
        }
    }
}
