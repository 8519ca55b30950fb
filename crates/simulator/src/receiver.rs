//! The receiving half of an endpoint: reassembly, acknowledgements and when they wait, the window
//! (Linux' `tcp_data_queue`, `__tcp_ack_snd_check`, `tcp_rcv_space_adjust`).

mod age;
mod delays;
mod marks;
mod queue;

use framegauge_frames::Picoseconds;

use self::queue::First;
use crate::TcpSettings;
use crate::beyond::Beyond;
use crate::receive_window::{ReceiveWindow, pages};
use crate::segment::{Blocks, Flags, Segment};

/// The MSS that is supposed of a peer of which nothing was received (`TCP_MSS_DEFAULT`).
const SUPPOSED_MSS: u32 = 536;
/// Acknowledgements of what came out of order that are sent one by one before they are put together.
const SINGLE_DUPLICATES: u32 = 3;
/// The most that are put together (`tcp_comp_sack_nr`), and for how long (`tcp_comp_sack_delay_ns`, of an RTT).
const MOST_TOGETHER: u32 = 44;
const LONGEST_TOGETHER: Picoseconds = Picoseconds::from_nanoseconds(1_000_000);

/// What is to be done about an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Nothing,
    Now,
}

/// The receiving half.
#[derive(Debug, Clone)]
pub(crate) struct Receiver {
    /// Everything before has come (`rcv_nxt`).
    pub(crate) next: u64,
    /// What the last acknowledgement said (`rcv_wup`).
    answered: u64,
    /// The application has read up to here.
    pub(crate) read: u64,
    first: First,
    beyond: Beyond,
    /// Where the FIN is, once it came.
    fin: Option<u64>,
    quick: u32,
    /// It answers what it receives with data: acknowledgements may wait for these.
    is_interactive: bool,
    /// How long an acknowledgement waits; zero before the first.
    wait: Picoseconds,
    last_received: Picoseconds,
    peer_mss: u32,
    mss: u32,
    /// The end of a write, or of a super-segment, has come since the last acknowledgement (`ICSK_ACK_PUSHED`).
    is_pushed: bool,
    is_pending: bool,
    is_urgent: bool,
    pub(crate) deadline: Option<Picoseconds>,
    together: u32,
    single: u32,
    single_at: u64,
    pub(crate) together_until: Option<Picoseconds>,
    /// The peer's timestamp that is echoed.
    pub(crate) stamp: u32,
    /// When an acknowledgement was answered that was too old.
    refused_at: Option<Picoseconds>,
    /// The window's right edge, as announced, and its size.
    edge: u64,
    window: ReceiveWindow,
    pub(crate) rtt: Picoseconds,
    /// The RTT as the peer's timestamps tell it, which has queues in it; eight times the mean, in microseconds.
    measured: u64,
    measured_by: u32,
    /// The application does not read.
    pub(crate) is_paused: bool,
    /// ECN: a mark has come and the peer has not said that its cwnd shrank; or the last segment's, where told exactly.
    pub(crate) echoes_mark: bool,
    tells_marks_exactly: bool,
}

impl Receiver {
    pub(crate) fn new(mss: u32, settings: &TcpSettings, tells_marks_exactly: bool) -> Receiver {
        let (window, most) = settings.receive_window_bytes;
        Receiver {
            next: 0,
            answered: 0,
            read: 1,
            first: First::default(),
            beyond: Beyond::default(),
            fin: None,
            quick: 0,
            is_interactive: false,
            wait: Picoseconds::ZERO,
            last_received: Picoseconds::ZERO,
            peer_mss: SUPPOSED_MSS.min(mss),
            mss,
            is_pushed: false,
            is_pending: false,
            is_urgent: false,
            deadline: None,
            together: 0,
            single: 0,
            single_at: 0,
            together_until: None,
            stamp: 0,
            refused_at: None,
            edge: 0,
            window: ReceiveWindow::new(window, most, mss),
            rtt: Picoseconds::ZERO,
            measured: 0,
            measured_by: 0,
            is_paused: false,
            echoes_mark: false,
            tells_marks_exactly,
        }
    }

    /// The peer's SYN.
    pub(crate) fn begin(&mut self, segment: &Segment) {
        self.next = segment.end();
        self.answered = self.next;
        self.stamp = segment.stamp;
        self.edge = self.next;
    }

    /// The peer sends no more: what it gets now is an answer (`tcp_fin`: `inet_csk_enter_pingpong_mode`).
    pub(crate) fn note_end(&mut self) {
        self.is_interactive |= self.has_ended();
    }

    /// The connection is there (`tcp_init_buffer_space`; `lrcvtime` is set, too).
    pub(crate) fn establish(&mut self, now: Picoseconds) {
        self.window.establish(now);
        self.last_received = now;
    }

    /// Whether the peer's FIN has come, and all before it.
    pub(crate) fn has_ended(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// Payload that is there in order and unread.
    pub(crate) fn unread(&self) -> u64 {
        (self.next - u64::from(self.has_ended())).saturating_sub(self.read)
    }

    /// Takes a segment with payload or a FIN in.
    pub(crate) fn take(&mut self, now: Picoseconds, segment: &Segment, settings: &TcpSettings) {
        let (begin, end) = (segment.sequence, segment.end());
        if segment.flags.has(Flags::FIN) {
            self.fin = Some(end - 1);
        }
        self.is_pending = true;
        if end <= self.next {
            // It came before (RFC 2883).
            self.beyond.note_duplicate(begin, end);
            self.is_urgent = true;
            self.be_quick(settings);
            return;
        }
        if begin > self.next {
            // `tcp_data_queue_ofo` charges the socket for it before the window opens if it is put together with another, and
            // after that if it is the first of its kind.
            let (joins, without) =
                (self.beyond.ends_at(begin) && pages(segment.bytes).is_none(), self.held());
            self.beyond.keep(begin, end);
            let held = if joins { self.held() } else { without };
            // `tcp_data_queue_ofo` measures and opens, too.
            self.note_size(segment);
            self.note_echo(now, segment);
            // Without SACK every duplicate has to look like one.
            if settings.sack {
                self.open_window(segment.bytes, held);
            }
            self.window.make_room(self.beyond.reach(self.next));
            return;
        }
        self.note_size(segment);
        self.note_time(now, settings);
        self.note_echo(now, segment);
        if begin < self.next {
            self.beyond.note_duplicate(begin, self.next);
        }
        self.first.add(self.unread() == 0, self.next, end, self.peer_mss);
        self.next = end;
        self.open_window(segment.bytes, self.held());
        if !self.beyond.is_empty() {
            self.next = self.beyond.close(self.next);
            self.first.add(false, end, self.next, self.peer_mss);
            // A hole was filled: the sender is to know at once (RFC 5681 section 4.2).
            self.is_urgent |= self.beyond.is_empty();
        }
    }

    /// A window that has just grown is announced at once (`tcp_grow_window`: `icsk_ack.quick |= 1`).
    fn open_window(&mut self, bytes: u32, held: u64) {
        if self.window.grow(bytes, bytes >= self.peer_mss, self.peer_mss, held) {
            self.quick |= 1;
        }
    }

    /// `tcp_measure_rcv_mss`.
    fn note_size(&mut self, segment: &Segment) {
        let bytes = segment.bytes;
        if bytes >= self.peer_mss {
            self.peer_mss = bytes.min(self.mss);
            self.is_pushed |= segment.flags.has(Flags::PSH);
        } else {
            self.is_pushed |= bytes > 0;
        }
    }

    /// Whether what has come is acknowledged now. Sets the timers if it waits.
    pub(crate) fn decide(&mut self, now: Picoseconds, settings: &TcpSettings) -> Answer {
        match self.decide_unread(now, settings) {
            Answer::Now => Answer::Now,
            Answer::Nothing => self.decide_read(now, settings),
        }
    }

    /// Before it is read (`__tcp_ack_snd_check`).
    pub(crate) fn decide_unread(&mut self, now: Picoseconds, settings: &TcpSettings) -> Answer {
        if !self.is_pending {
            return Answer::Nothing;
        }
        let is_quick = self.quick > 0 && !self.is_interactive;
        let is_full = self.owes_more_than_one() && (self.unread() == 0 || self.could_announce());
        if is_full || is_quick || self.is_urgent || settings.delayed_ack == Picoseconds::ZERO {
            return Answer::Now;
        }
        if self.beyond.is_empty() { Answer::Nothing } else { self.put_together(now, settings) }
    }

    /// Once the application has read it (`tcp_cleanup_rbuf`), if it does so at once.
    pub(crate) fn decide_read(&mut self, now: Picoseconds, settings: &TcpSettings) -> Answer {
        if !self.is_pending {
            return Answer::Nothing;
        }
        let is_full = self.owes_more_than_one() && self.unread() == 0;
        let read_small = self.is_pushed && !self.is_interactive && !self.is_paused && self.beyond.is_empty();
        if is_full || read_small {
            return Answer::Now;
        }
        if self.beyond.is_empty() && self.deadline.is_none() {
            let span = self.wait.max(settings.delayed_ack);
            let most = Picoseconds::from_nanoseconds(if self.is_pushed { 200_000_000 } else { 500_000_000 });
            let span = span.min(most.min(self.rtt.max(settings.delayed_ack)));
            self.deadline = Some(settings.expiry(now, span));
        }
        Answer::Nothing
    }

    fn owes_more_than_one(&self) -> bool {
        self.next - self.answered > u64::from(self.peer_mss)
    }

    /// What comes out of order is acknowledged at once for three segments, then together (`tcp_comp_sack_*`).
    fn put_together(&mut self, now: Picoseconds, settings: &TcpSettings) -> Answer {
        if !settings.sack || self.together >= MOST_TOGETHER {
            return Answer::Now;
        }
        if self.single_at != self.next {
            self.single_at = self.next;
            self.single = 0;
        }
        if self.single < SINGLE_DUPLICATES {
            self.single += 1;
            return Answer::Now;
        }
        self.together += 1;
        if self.together_until.is_none() {
            let sample = Picoseconds::from_nanoseconds((self.measured >> 3) * 1000);
            let rtt = if self.rtt > Picoseconds::ZERO { sample.min(self.rtt) } else { sample };
            self.together_until = Some(now + Picoseconds::new(rtt.get() / 20).min(LONGEST_TOGETHER));
        }
        Answer::Nothing
    }

    /// Whether as large a window can be announced as the last time (`__tcp_select_window(sk) >= tp->rcv_wnd`).
    fn could_announce(&mut self) -> bool {
        self.select_window() >= self.edge.saturating_sub(self.answered)
    }

    /// Unread, or beyond a hole.
    fn held(&self) -> u64 {
        self.unread() + self.beyond.bytes()
    }

    /// A buffer of which less than half is free ends quick acknowledgements.
    fn select_window(&mut self) -> u64 {
        let (window, is_short) = self.window.select(self.held(), self.peer_mss.into());
        if is_short {
            self.quick = 0;
        }
        window
    }

    /// An acknowledgement waits no longer (`tcp_delack_timer_handler`, `tcp_compressed_ack_kick`). Whether it is sent.
    pub(crate) fn expire(&mut self, now: Picoseconds, settings: &TcpSettings) -> Answer {
        if self.together_until.is_some_and(|time| time <= now) {
            self.together_until = None;
            return Answer::Now;
        }
        if self.deadline.is_none_or(|time| time > now) {
            return Answer::Nothing;
        }
        self.deadline = None;
        if !self.is_pending {
            return Answer::Nothing;
        }
        if self.is_interactive {
            self.is_interactive = false;
            self.wait = settings.delayed_ack;
        } else {
            self.wait = self.wait.saturating_mul(2).min(settings.minimum_rto);
        }
        Answer::Now
    }

    /// The application reads everything. Whether the window has opened so far that the peer must be told.
    pub(crate) fn read_all(&mut self, now: Picoseconds) -> bool {
        let before = self.edge.saturating_sub(self.next);
        let unread = self.unread();
        if unread > 0 {
            self.read += unread;
            self.tune(now);
        }
        if self.edge == 0 || 2 * before > self.window.whole() {
            return false;
        }
        let after = self.select_window();
        after > 0 && after >= 2 * before
    }

    /// The window grows with what is read per RTT.
    fn tune(&mut self, now: Picoseconds) {
        let rtt = match self.measured {
            0 => self.rtt,
            measured => Picoseconds::from_nanoseconds((measured >> 3) * 1000),
        };
        self.window.tune(now, rtt, self.first.end.min(self.read), self.beyond.reach(self.next));
    }

    /// What goes into the header of a segment that is sent now; it counts as acknowledgement.
    pub(crate) fn answer(&mut self, segment: &mut Segment, settings: &TcpSettings) {
        segment.acknowledged = self.next;
        segment.flags = segment.flags.with(Flags::ACK);
        let announced = self.edge.saturating_sub(self.next);
        // What was announced is never taken back (`tcp_select_window`). A SYN tells bytes, not units.
        let window = match segment.flags.has(Flags::SYN) {
            true => self.window.open,
            false => self.select_window().max(announced).next_multiple_of(self.window.unit()),
        };
        self.edge = self.next + window;
        segment.window_bytes = window.min(u64::from(u32::MAX)) as u32;
        segment.echo = self.stamp;
        if self.echoes_mark {
            segment.flags = segment.flags.with(Flags::ECE);
        }
        if settings.sack {
            let most = if settings.timestamps { Blocks::MOST - 1 } else { Blocks::MOST };
            self.beyond.tell(most, |block| segment.blocks.push(self.next, block));
        }
        self.answered = self.next;
        self.use_quick(settings);
        self.is_pending = false;
        self.is_urgent = false;
        self.is_pushed = false;
        self.deadline = None;
        self.together = 0;
        self.together_until = None;
    }

    /// Data was sent: if it answers what was received lately, acknowledgements may wait for more of it.
    pub(crate) fn note_reply(&mut self, now: Picoseconds) {
        if now - self.last_received < self.wait {
            self.is_interactive = true;
        }
    }

    /// When the receiver must be woken.
    pub(crate) fn earliest(&self) -> Option<Picoseconds> {
        self.deadline.into_iter().chain(self.together_until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(sequence: u64, bytes: u32) -> Segment {
        Segment { sequence, bytes, ..Segment::default() }
    }

    fn receiver() -> Receiver {
        let mut receiver = Receiver::new(1448, &TcpSettings::default(), false);
        receiver.begin(&Segment { flags: Flags::SYN, ..Segment::default() });
        receiver
    }

    #[test]
    fn every_second_full_segment_is_acknowledged_once_the_quick_ones_are_used_up() {
        let (mut receiver, settings) = (receiver(), TcpSettings::default());
        let mut acknowledged = 0;
        for count in 0..116u64 {
            let now = Picoseconds::from_nanoseconds(12_304 * count);
            receiver.take(now, &segment(1 + 1448 * count, 1448), &settings);
            if receiver.decide(now, &settings) == Answer::Now {
                receiver.answer(&mut Segment::default(), &settings);
                acknowledged += 1;
            }
            receiver.read_all(now);
        }
        // 16 quick ones and 8 that tell of a larger window, as the kernel; then one in two.
        assert_eq!(acknowledged, 24 + 46);
    }

    /// A hole at the very beginning: the acknowledgements beyond it use up the one quick acknowledgement that a window which
    /// opens allows (`tcp_grow_window`), and end with the timeout of a connection that has begun (`tcp_dec_quickack_mode`). Then
    /// what fills the hole is not the first to come, and allows no 16 of them (`tcp_event_data_recv`).
    #[test]
    fn a_connection_whose_first_segment_is_lost_has_few_quick_acknowledgements() {
        let (mut receiver, settings) = (receiver(), TcpSettings::default());
        let at = |ms: u64| Picoseconds::from_nanoseconds(ms * 1_000_000);
        receiver.establish(at(20));
        let mut come = |ms, number: u64| {
            receiver.take(at(ms), &segment(1 + 1448 * number, 1448), &settings);
            let answer = receiver.decide(at(ms), &settings);
            if answer == Answer::Now {
                receiver.answer(&mut Segment::default(), &settings);
            }
            receiver.read_all(at(ms));
            answer == Answer::Now
        };
        assert!((1..4).all(|number| come(31, number)));
        assert!(come(52, 0), "a hole was filled");
        let after: Vec<bool> = (4..14).map(|number| come(52, number)).collect();
        // Those that open the window; then one in two.
        assert_eq!(after, [true, true, true, true, false, true, false, true, false, true]);
    }

    /// RFC 7323 section 5: what is older than what came in order before is a duplicate of an earlier connection, or of this one
    /// long ago; it is not taken, and the peer is told what is expected.
    #[test]
    fn a_segment_with_an_older_timestamp_is_refused() {
        let (mut receiver, settings) = (receiver(), TcpSettings::default());
        let (at, sent) = (Picoseconds::ZERO, |sequence, stamp| Segment { stamp, ..segment(sequence, 1000) });
        for segment in [sent(1, 10), sent(1001, 20)] {
            assert_eq!(receiver.excess_age(&segment), None);
            receiver.note_stamp(&segment);
            receiver.take(at, &segment, &settings);
            receiver.answer(&mut Segment::default(), &settings);
        }
        assert_eq!([19, 18].map(|stamp| receiver.excess_age(&sent(2001, stamp))), [None, Some(2)]);
        // Data is always answered, as a duplicate where it came before; acknowledgements twice a second at most.
        assert!(receiver.refuse(at, &sent(2001, 18), &settings));
        assert!(receiver.refuse(at, &sent(1001, 10), &settings));
        let mut answer = Segment::default();
        receiver.answer(&mut answer, &settings);
        assert_eq!(answer.blocks.ranges(answer.acknowledged).collect::<Vec<_>>(), [(1001, 2001)]);
        let answers = |receiver: &mut Receiver, ms: u64, sequence| {
            let at = Picoseconds::from_nanoseconds(ms * 1_000_000);
            receiver.refuse(at, &segment(sequence, 0), &settings)
        };
        assert_eq!([0, 499, 500].map(|ms| answers(&mut receiver, ms, 2001)), [true, false, true]);
        assert!(!answers(&mut receiver, 2000, 1001));
    }

    /// RFC 9293 section 3.10.7.4: what lies before the window is answered and dropped. Its timestamp is not echoed, so that the
    /// answer tells the sender by RFC 3522 that the first transmission had come.
    #[test]
    fn a_segment_from_before_the_last_answer_counts_for_nothing() {
        let (mut receiver, settings) = (receiver(), TcpSettings::default());
        for sequence in [1, 1001] {
            receiver.take(Picoseconds::ZERO, &segment(sequence, 1000), &settings);
            receiver.answer(&mut Segment::default(), &settings);
        }
        let old = [(1, 999), (1, 1000), (1001, 1000), (2000, 0), (2001, 0)];
        let is_old = old.map(|(sequence, bytes)| receiver.is_old(&segment(sequence, bytes)));
        assert_eq!(is_old, [true, true, false, true, false]);
        // Data is always answered, acknowledgements twice a second at most.
        let answers =
            [(0, 1, 1000), (1, 1, 1000), (0, 1, 0), (499, 1, 0), (500, 1, 0)].map(|(ms, sequence, bytes)| {
                let at = Picoseconds::from_nanoseconds(ms * 1_000_000);
                receiver.refuse_old(at, &segment(sequence, bytes), &settings)
            });
        assert_eq!(answers, [true, true, true, false, true]);
    }

    #[test]
    fn blocks_tell_what_came_last_first_and_what_came_twice_before_all() {
        let (mut receiver, settings) = (receiver(), TcpSettings::default());
        for sequence in [3001, 1001, 5001, 1001] {
            receiver.take(Picoseconds::ZERO, &segment(sequence, 1000), &settings);
        }
        let mut answer = Segment::default();
        receiver.answer(&mut answer, &settings);
        let blocks: Vec<_> = answer.blocks.ranges(answer.acknowledged).collect();
        assert_eq!(blocks, [(1001, 2001), (1001, 2001), (5001, 6001)]);
        receiver.take(Picoseconds::ZERO, &segment(1, 1000), &settings);
        assert_eq!(receiver.next, 2001);
    }
}
