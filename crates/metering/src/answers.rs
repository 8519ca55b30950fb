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
//! - A new connection is quick: it acknowledges segments one by one, as many as half of its window has, 16 at most, and
//!   for as long as the window grows (`tcp_incr_quickack`, `tcp_grow_window`), or until it is taken for one of requests
//!   and responses. How long that lasts with larger segments depends on what its window then is. So at most all segments
//!   of a connection that begins are acknowledged one by one, and of another one as many as small ones were; the least is
//!   that of a receiver that waits for more than one throughout.
//! - The first acknowledgement of a connection whose handshake was seen ends that, and stays, as does that of its end.
//! - The last segment of a message, alone now and not then, goes with what is sent within the least wait, 40 ms
//!   (`TCP_ATO_MIN`): only then is the connection taken for one of requests and responses (`tcp_event_data_sent`).
//!   Otherwise it is acknowledged by itself. The bounds have all last segments of messages, and none.
//!
//! A program that answers the parts of a message that it has read, as a server of pipelined requests does, answers less
//! often if more comes at once: when any larger segment is complete since the last answer; at least, only at the end.

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
    /// With data that is no full segment.
    pub small: bool,
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
    /// Small answers within a message: those that are likely to go with later ones, and all.
    pub merged: u64,
    /// As above.
    pub within: u64,
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
        self.merged += other.merged;
        self.within += other.within;
        self.alone += other.alone;
        self.along += other.along;
        self.open += other.open;
    }

    /// With messages at the ends of windows taken as the others are; none of them by itself if there are no others.
    pub fn settled(self) -> Self {
        let share = self.alone as f64 / (self.alone + self.along).max(1) as f64;
        let more = (self.open as f64 * share).round() as u64;
        Self { likely: self.likely + more, alone: 0, along: 0, open: 0, ..self }
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
    /// Each with the byte up to which it acknowledges.
    answers: Vec<(i64, Answer)>,
    /// For each of these, whether data follows within the least wait; `None` if the window ends before that.
    followed: Vec<Option<bool>>,
    /// The connection began in it.
    begins: bool,
}

impl Window {
    /// `until`: when the window ends; `begins`: the connection began in it.
    pub(crate) fn new(data: &[Data], answers: &[Answer], until: u64, begins: bool) -> Self {
        let first = data.first().map_or(0, |first| first.sequence);
        // The difference of sequence numbers has a sign (RFC 9293 section 3.4).
        let place = |sequence: u32| i64::from(sequence.wrapping_sub(first) as i32);
        let mut messages: Vec<Message> = Vec::new();
        for packet in data {
            let (from, to) = (place(packet.sequence), place(packet.sequence) + i64::from(packet.bytes));
            match messages.last_mut() {
                // It was sent before.
                Some(last) if to <= last.to => {}
                Some(last) if !last.ended && from == last.to => (last.to, last.ended) = (to, packet.ends),
                _ => messages.push(Message { from, to, ended: packet.ends }),
            }
        }
        let mut window = Self {
            messages,
            answers: answers.iter().map(|packet| (place(packet.acknowledged), *packet)).collect(),
            followed: Vec::new(),
            begins,
        };
        window.followed = window.follow(until);
        window
    }

    fn follow(&self, until: u64) -> Vec<Option<bool>> {
        let mut followed = vec![None; self.answers.len()];
        let mut next = u64::MAX;
        for (place, (_, answer)) in self.answers.iter().enumerate().rev() {
            let waited = answer.nanoseconds + WAIT_NANOSECONDS;
            followed[place] = (waited <= until).then_some(next < waited);
            next = if answer.alone { next } else { answer.nanoseconds };
        }
        followed
    }

    /// Up to where all was acknowledged before.
    fn first(&self) -> i64 {
        self.answers.first().map_or(0, |(first, _)| (*first).min(0))
    }

    /// Answers of which it is known what they acknowledge: not the first if it is to what passed before the window, and
    /// none if all data did, as that of a sender far away.
    fn known(&self) -> impl Iterator<Item = (&(i64, Answer), &Option<bool>)> {
        let before = !self.begins && self.answers.first().is_some_and(|(first, _)| *first <= 0);
        let unknown = if self.messages.is_empty() && !self.begins { usize::MAX } else { before.into() };
        self.answers.iter().zip(&self.followed).skip(unknown)
    }

    /// Acknowledgements alone of which it is known what they acknowledge.
    pub(crate) fn came(&self) -> u64 {
        self.known().filter(|((_, answer), _)| answer.alone).count() as u64
    }

    /// Those that are left with full segments of `larger` bytes in place of `full`; 0: there was none.
    pub(crate) fn left(&self, full: u32, larger: u32) -> Left {
        let (full, larger) = (i64::from(full.max(1)), i64::from(larger.max(full).max(1)));
        let acks = self.came();
        if larger <= full || self.answers.is_empty() {
            return Left { likely: acks, least: acks, most: acks, ..Left::default() };
        }
        let [delayed, same, apart] =
            [Pace::EverySecond, Pace::AsItWas, Pace::Apart].map(|pace| self.replayed(full, larger, pace));
        // As many of one larger segment as were of one small one, of which the replay has some; and all ends. A
        // receiver that was busy now and then, and is not then, has one for every second segment.
        let more = self.quick(full) * (larger - full) as u64 / larger as u64;
        let ends =
            self.messages.iter().filter(|message| message.ended && message.to - message.from > full).count()
                as u64;
        // A connection that begins is quick for as long as its window grows, which nothing tells of another MTU.
        let most = if self.begins { u64::MAX } else { apart.left + more + ends };
        let segments = self.segments(larger);
        let idle = acks.min(segments / 2);
        let most = most.min(segments).min(acks + ends).max(idle);
        // A last segment that is not known to be acknowledged by itself may be so with what comes later, and is not
        // counted beyond what could be acknowledged at all. That is less than what is left where data of before the
        // window were acknowledged in it.
        let segments = segments.max(same.left);
        let open = same.open.min(segments - same.left);
        Left {
            likely: same.left,
            least: (same.left - same.alone).min(delayed.left - delayed.alone),
            most: most.max(same.left + same.along + open).min(segments),
            merged: same.merged,
            within: same.within,
            alone: same.alone,
            along: same.along,
            open,
        }
    }

    /// How many acknowledgements within messages were of one full segment at most.
    fn quick(&self, full: i64) -> u64 {
        let (mut count, mut then) = (0, self.first());
        for ((to, answer), _) in self.known() {
            let place = self.messages.partition_point(|message| message.to < *to);
            let message = self.messages.get(place);
            let is_within = message.is_some_and(|message| !message.ended || message.to != *to);
            count += u64::from(answer.alone && is_within && (1..=full).contains(&(*to - then)));
            then = then.max(*to);
        }
        count
    }

    /// All that could be acknowledged: larger segments, and what is no data, such as a handshake.
    fn segments(&self, larger: i64) -> u64 {
        let (mut others, mut then) = (0, self.first());
        for ((to, answer), _) in self.known() {
            others += u64::from(answer.alone && *to <= then);
            then = then.max(*to);
        }
        let cut = |message: &Message| (message.to - message.from + larger - 1) / larger;
        others + self.messages.iter().map(cut).sum::<i64>() as u64
    }

    fn replayed(&self, full: i64, larger: i64, pace: Pace) -> Replay {
        let largest = |full: i64| {
            let longest = self.messages.iter().map(|range| full.min(range.to - range.from)).max();
            longest.unwrap_or(0).max(DEFAULT_BYTES)
        };
        let (segments, first) = ((largest(full), largest(larger)), self.first());
        let mut replay = Replay { pace, cut: (full, larger), segments, ..Replay::default() };
        (replay.then, replay.now, replay.said) = (first, first, first);
        let mut open = self.messages.as_slice();
        // Much that passed before the window and is acknowledged in it belongs to its first message.
        let far = open.first().is_some_and(|message| message.from - first > 2 * larger);
        for ((to, answer), followed) in self.known() {
            while let Some((message, rest)) = open.split_first().filter(|(message, _)| message.to < *to) {
                replay.end(*message);
                open = rest;
            }
            let is_first = far && open.len() == self.messages.len();
            let reached = Reached::new(open, if is_first { first } else { i64::MAX }, *to, larger);
            if reached.ended && !answer.alone {
                replay.end(open[0]);
            }
            if answer.alone {
                replay.acknowledge(&reached, larger, *followed);
            } else {
                replay.answer(&reached, answer.small);
            }
            replay.then = replay.then.max(*to);
        }
        replay
    }
}

/// How a receiver acknowledges larger segments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Pace {
    /// When more than one is complete.
    EverySecond,
    /// When it did with small ones.
    #[default]
    AsItWas,
    /// So, and before it answers a part of a message.
    Apart,
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
    /// All data ends before, so that this is of an end of the connection.
    beyond: bool,
}

impl Reached {
    /// `before`: where the message began, if that was before the window.
    fn new(open: &[Message], before: i64, to: i64, larger: i64) -> Self {
        let from = open.first().map_or(to, |message| message.from.min(before).min(to));
        let full = from + (to - from) / larger * larger;
        let ended = open.first().is_some_and(|message| message.ended && message.to == to);
        Self { to, from, full, complete: if ended { to } else { full }, ended, beyond: open.is_empty() }
    }
}

/// The state of a receiver, then and now.
#[derive(Debug, Clone, Copy, Default)]
struct Replay {
    pace: Pace,
    /// Into what messages are cut.
    cut: (i64, i64),
    /// What it takes for full segments.
    segments: (i64, i64),
    /// Acknowledged up to.
    then: i64,
    now: i64,
    /// Answered with data up to.
    said: i64,
    left: u64,
    merged: u64,
    within: u64,
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

    /// An answer with data.
    fn answer(&mut self, reached: &Reached, small: bool) {
        let is_within = !reached.ended && reached.to > self.then.max(reached.from);
        if is_within && small {
            self.within += 1;
            self.merged += u64::from(reached.complete <= self.said);
        }
        self.said = self.said.max(reached.complete);
        if self.pace != Pace::Apart || !is_within {
            self.now = self.now.max(reached.complete);
        }
    }

    fn acknowledge(&mut self, reached: &Reached, larger: i64, followed: Option<bool>) {
        let then = reached.to - self.then;
        let many = then > self.segments.0;
        if many && then <= 2 * self.segments.0 {
            self.at_once(reached, larger);
        }
        let now = reached.complete - self.now;
        let is_one_packet = reached.ended && reached.to - reached.from <= self.cut.0;
        let mut is_left = then <= 0
            || reached.beyond
            || match self.pace {
                Pace::EverySecond => now > if is_one_packet { 0 } else { self.segments.1 },
                Pace::AsItWas | Pace::Apart => now > if many { self.segments.1 } else { 0 },
            };
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
        begins: bool,
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
            let before = self.answers.iter().filter(|answer| answer.alone).count();
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
            (self.answers.iter().filter(|answer| answer.alone).count() - before) as u64
        }

        fn answer(&mut self, alone: bool, wait: u64) {
            self.now += wait * MILLISECOND + 1000;
            self.answers.push(Answer {
                acknowledged: self.bytes,
                alone,
                small: !alone,
                nanoseconds: self.now,
            });
        }

        fn left(&self, larger: u32) -> Left {
            Window::new(&self.data, &self.answers, self.now, self.begins).left(SMALL, larger).settled()
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
        assert_eq!(passed.left(LARGE), left(724, 724, 725));
    }

    #[test]
    fn a_receiver_that_acknowledges_each_segment_does_so_with_larger_ones() {
        let mut passed = begun();
        assert_eq!(passed.message(SMALL * 8948, SMALL, 1, None, false), 8948);
        // Unless it was quick, which ends.
        assert_eq!(passed.left(LARGE), left(1448, 724, 1448));
    }

    /// 100 kB of a new connection: 70 segments, of which the receiver read two at once every now and then; the handshake.
    #[test]
    fn a_new_connection_acknowledges_larger_segments_one_by_one_as_well() {
        let mut passed = Passed { begins: true, ..Passed::default() };
        passed.answer(true, 0);
        let mut acks = 1;
        for part in 0..14 {
            acks += passed.message(3 * SMALL, SMALL, 1, None, false);
            passed.data.last_mut().expect("data").ends = false;
            acks += passed.message(2 * SMALL - 1200 * u32::from(part == 13), SMALL, 2, None, false);
            passed.data.last_mut().expect("data").ends = part == 13;
        }
        assert_eq!(acks, 1 + 14 * 4);
        let left = passed.left(LARGE);
        assert_eq!((left.least, left.most), (1 + 6, 1 + 12));
        assert!((left.least..=left.most).contains(&left.likely));
        // Whose handshake was not seen, the first is to something before.
        passed.begins = false;
        assert_eq!(passed.left(LARGE).most, 12);
    }

    /// A sender far away, whose window begins with acknowledgements of what it sent before.
    #[test]
    fn what_passed_before_a_window_is_acknowledged_in_it_as_all_is() {
        let mut passed = begun();
        assert_eq!(passed.message(SMALL * 8948, SMALL, 2, None, false), 4474);
        passed.data.drain(..1000);
        let left = passed.left(LARGE);
        assert_eq!((left.likely, left.least), (724, 724));
        // Of what nothing is sent in the window nothing is known.
        passed.data.clear();
        assert_eq!(passed.left(LARGE), exactly(0));
        assert_eq!(Window::new(&[], &passed.answers, passed.now, false).came(), 0);
    }

    /// 300 kB of a new connection whose receiver read two segments at once before it acknowledged, and may read one now.
    #[test]
    fn each_larger_segment_of_a_new_connection_may_be_acknowledged_by_itself() {
        let mut passed = Passed { begins: true, ..Passed::default() };
        passed.answer(true, 0);
        assert_eq!(passed.message(207 * SMALL + 1, SMALL, 2, None, false), 104);
        assert_eq!(passed.left(LARGE).most, 1 + 34);
        passed.begins = false;
        assert!(passed.left(LARGE).most < 34);
    }

    /// Sixteen values of a pipeline, which a server answers as it reads them, and at once if they come at once.
    #[test]
    fn answers_to_parts_of_a_message_go_with_one_another() {
        let mut passed = begun();
        for _ in 0..10 {
            for part in 1..=12 {
                passed.message(SMALL - u32::from(part == 12), SMALL, 2, Some(0), false);
                passed.data.last_mut().expect("data").ends = part == 12;
            }
        }
        let left = passed.left(LARGE);
        // Of twelve answers one is to the end, and one to the first larger segment that is complete before.
        assert_eq!((left.within, left.merged), (110, 100));
        assert_eq!(passed.left(SMALL).within, 0);
    }

    /// An aggregate of 45 segments has the bytes of 7.3 larger ones: reading or GRO set the pace, and not segments.
    #[test]
    fn a_receiver_that_acknowledges_many_segments_at_once_still_does() {
        let mut passed = begun();
        assert_eq!(passed.message(SMALL * 45 * 400, SMALL, 45, None, false), 400);
        assert_eq!(passed.left(LARGE), left(400, 400, 401));
    }

    /// It read 48 segments at once now and then, and may read every second larger one by itself.
    #[test]
    fn a_receiver_that_was_busy_may_acknowledge_every_second_larger_segment() {
        let mut passed = begun();
        for _ in 0..149 {
            passed.message(12 * SMALL, SMALL, 2, None, false);
            passed.message(48 * SMALL, SMALL, 48, None, false);
        }
        passed.data.iter_mut().for_each(|packet| packet.ends = false);
        let left = passed.left(LARGE);
        assert!(left.likely < 450);
        assert_eq!(left.most, (149 * 60 * u64::from(SMALL)).div_ceil(u64::from(LARGE)) / 2);
    }

    /// Blocks of 8 KiB over iSCSI: six small segments, and one large one, which goes with the next request within 40 ms.
    #[test]
    fn a_response_of_one_segment_is_acknowledged_with_the_next_request() {
        let after = |wait| {
            let mut passed = begun();
            let acks: u64 = (0..200).map(|_| passed.message(8240, SMALL, 2, Some(wait), false)).sum();
            assert_eq!(acks, 600);
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
        assert_eq!(passed.left(LARGE), left(1, 1, 2));
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
        assert_eq!(passed.left(LARGE), left(100, 100, 200));
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
        for packet in &mut passed.data {
            packet.sequence = packet.sequence.wrapping_add(u32::MAX - 5000);
        }
        for packet in &mut passed.answers {
            packet.acknowledged = packet.acknowledged.wrapping_add(u32::MAX - 5000);
        }
        assert_eq!(passed.left(LARGE), left(724, 724, 725));
    }

    /// What waits for an answer when the next message comes is acknowledged with that message's first segment.
    #[test]
    fn a_segment_that_waits_is_counted_once() {
        let mut passed = begun();
        assert_eq!(passed.message(SMALL + 1, SMALL, 2, None, false), 1);
        assert_eq!(passed.message(SMALL + 1, SMALL, 1, None, false), 2);
        assert_eq!(passed.left(SMALL + 1), left(2, 1, 2));
    }

    #[test]
    fn a_window_without_data_or_answers_tells_nothing() {
        assert_eq!(Window::new(&[], &[], 0, false).left(0, 0), Left::default());
        assert_eq!(Window::new(&[], &[], 0, false).came(), 0);
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

        /// Whatever passed, in whatever order, and wherever the window begins: the likely number is within its bounds.
        #[test]
        fn bounds_hold_what_is_likely(
            data in prop::collection::vec((0u32..40_000, 1u32..3000, any::<bool>()), 0..40),
            answers in prop::collection::vec((0u32..50_000, any::<bool>(), any::<bool>(), 0u64..80), 0..40),
            larger in SMALL..LARGE, begins: bool,
        ) {
            let data: Vec<Data> =
                data.into_iter().map(|(sequence, bytes, ends)| Data { sequence, bytes, ends }).collect();
            let mut now = 0;
            let answers: Vec<Answer> = answers
                .into_iter()
                .map(|(acknowledged, alone, small, wait)| {
                    now += wait * MILLISECOND;
                    Answer { acknowledged, alone, small, nanoseconds: now }
                })
                .collect();
            let left = Window::new(&data, &answers, now, begins).left(SMALL, larger);
            for bounds in [left, left.settled()] {
                prop_assert!(bounds.least <= bounds.likely && bounds.likely <= bounds.most, "{:?}", bounds);
                prop_assert!(bounds.merged <= bounds.within);
            }
        }

        /// Whatever a receiver did: there is no acknowledgement without a larger segment, and none is made up but for
        /// ends of messages. With segments as they are, all that came are left.
        #[test]
        fn what_is_left_is_bounded_by_segments_and_by_what_came(
            messages in prop::collection::vec((1u32..60_000, 1u32..9, prop::option::of(0u64..80), any::<bool>()), 1..30),
            larger in SMALL..LARGE,
        ) {
            let mut passed = begun();
            let acks: u64 = messages
                .iter()
                .map(|(bytes, every, answered, alone)| passed.message(*bytes, SMALL, *every, *answered, *alone))
                .sum();
            let segments: u64 = messages.iter().map(|(bytes, ..)| u64::from(bytes.div_ceil(larger))).sum();
            let left = passed.left(larger);
            prop_assert!(left.least <= left.likely && left.likely <= left.most);
            prop_assert!(left.most <= segments && left.most <= acks + messages.len() as u64);
            prop_assert_eq!(passed.left(SMALL), exactly(acks));
        }
    }
}
