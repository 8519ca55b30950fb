//! Which cause a gap between two packets of a connection belongs to.

use crate::Thresholds;
use crate::connection::{Connection, Held, Side};
use crate::doubtful::Doubt;
use crate::half::{Episode, Silence};
use crate::kinds::Kind;
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

impl Connection {
    /// Gives the time since the last packet to a cause; `segment` is the packet that ends it, not taken in yet.
    pub(crate) fn attribute(&mut self, segment: &Segment, from: Side, now: i64, limits: &Thresholds) {
        let gap = now - self.last;
        self.settle_held(segment, from, now, limits);
        if self.attribute_unheard(segment, from, now) {
            return;
        }
        if gap == 0 || self.closed {
            self.give(Kind::ApplicationLimited, gap, &[]);
            return;
        }
        if !self.established {
            self.attribute_handshake(segment, from, gap);
            return;
        }
        if gap <= self.pause(limits) && !self.is_delayed(segment, from, gap, limits) {
            let acts = segment.payload_bytes > 0 || segment.flags.contains(TcpFlags::FIN);
            let sender = if acts { from } else { from.other() };
            let kind = self.regime(sender, limits);
            let kind = self.or_stall(kind, segment, from, gap, limits);
            self.give(kind, gap, &[]);
        } else if segment.payload_bytes > 0 || segment.flags.contains(TcpFlags::FIN) {
            self.attribute_to_sender(segment, from, gap, limits);
        } else {
            self.attribute_to_receiver(segment, from, gap, limits);
        }
    }

    /// A gap is a pause if it is longer.
    pub(crate) fn pause(&self, limits: &Thresholds) -> i64 {
        ((self.path_rtt() as f64 * limits.pause_rtts) as i64).max(limits.pause_nanoseconds)
    }

    /// Counts time up to now for a cause.
    pub(crate) fn give(&mut self, kind: Kind, gap: i64, packets: &[u64]) {
        if gap > 0 {
            let (begin, end) = (self.last, self.last + gap);
            self.note(kind, begin, end, gap, packets);
        }
    }

    /// A short gap in which a sender that had more sent nothing, and nothing was under way.
    fn or_stall(&self, kind: Kind, segment: &Segment, from: Side, gap: i64, limits: &Thresholds) -> Kind {
        let half = self.half(from);
        let stalled = kind == Kind::ApplicationLimited
            && segment.payload_bytes > 0
            && half.unpushed
            && half.flight.is_empty()
            && gap > (self.path_rtt() / 2).max(limits.pause_nanoseconds)
            && self.is_sender_seen(from)
            && self.has_just_left(segment, from, gap);
        if stalled { Kind::SenderStall } else { kind }
    }

    /// The time until an acknowledgement reaches a sender, later than it ever did by `lateness`.
    pub(crate) fn attribute_wait(&mut self, sender: Side, at: i64, lateness: i64, limits: &Thresholds) {
        let gap = at - self.last;
        let kind = self.regime(sender, limits);
        // By twice as much as others before it, once.
        let is_odd = kind == Kind::NetworkLimited
            && lateness > self.pause(limits)
            && lateness as f64 > self.half(sender).late as f64 * limits.pause_rtts;
        self.give(if is_odd { Kind::Unexplained } else { kind }, gap, &[]);
        if lateness > 0 {
            let late = &mut self.half_mut(sender).late;
            *late += (lateness - *late) / 8;
        }
    }

    /// What limits a connection that goes on without a pause.
    fn regime(&self, sender: Side, limits: &Thresholds) -> Kind {
        if self.is_shut() {
            return Kind::ZeroWindow;
        }
        let busiest = if self.half(sender).flight.is_empty() { sender.other() } else { sender };
        let half = self.half(busiest);
        if half.flight.is_empty() {
            return Kind::ApplicationLimited;
        }
        if self.is_windowed(busiest, self.slack(busiest, limits), limits) {
            return Kind::ReceiverLimited;
        }
        if self.is_bloated(busiest, limits) { Kind::Bufferbloat } else { Kind::NetworkLimited }
    }

    /// Bytes of a window that a sender may leave: it waits until it can send some segments at once, where the window has
    /// room for many.
    fn slack(&self, sender: Side, limits: &Thresholds) -> u64 {
        let mss = u64::from(self.mss(sender));
        let window = self.half(sender).window;
        (mss * u64::from(limits.window_slack_segments)).min(window / 8).max(mss)
    }

    /// Whether a sender stopped because the other end's window left it less than some bytes.
    fn is_windowed(&self, sender: Side, needed: u64, limits: &Thresholds) -> bool {
        let half = self.half(sender);
        half.window_is_known
            && half.room() < needed
            && !half.rounds.fills_slow_start(half.una, self.slack(sender, limits), self.mss(sender).into())
    }

    /// Whether an end's window is closed.
    fn is_shut(&self) -> bool {
        self.halves.iter().any(|half| half.window_is_known && half.window == 0)
    }

    /// Whether the newest RTT is far above the smallest.
    fn is_bloated(&self, sender: Side, limits: &Thresholds) -> bool {
        let round_trip = &self.half(sender).round_trip;
        let floor = self.path_rtt();
        // The answer to less than two segments may be late by intent (RFC 9293 section 3.8.6.3).
        let fills = self.half(sender).flight.bytes() >= 2 * u64::from(self.mss(sender));
        fills
            && round_trip.samples > 0
            && round_trip.latest - floor > limits.bloat_nanoseconds
            && round_trip.latest as f64 > floor as f64 * limits.bloat_factor
    }

    /// A pause that data or a FIN ends.
    fn attribute_to_sender(&mut self, segment: &Segment, from: Side, gap: i64, limits: &Thresholds) {
        self.half_mut(from).paused = self.last + gap;
        let half = self.half(from);
        let begin = half.places.near(segment.seq);
        let end = begin + u64::from(segment.payload_bytes);
        let evidence = [half.last_number, segment.number];
        let closed = half.window_is_known && half.window == 0;
        if half.high > 0 && end <= half.high && segment.payload_bytes > 0 {
            return self.attribute_to_resender(segment, from, gap, limits);
        }
        let in_flight = !half.flight.is_empty();
        // A sender waits for room for a whole segment, and at last sends what fits (RFC 9293 section 3.8.6.2.1).
        let fills_small_window =
            half.room() < u64::from(self.mss(from)) && half.room() == u64::from(segment.payload_bytes);
        let missing = u64::from(self.missing_before(from));
        if closed {
            self.give(Kind::ZeroWindow, gap, &evidence);
        } else if segment.payload_bytes == 0 && !in_flight {
            // A FIN after all was answered ends a rest, and no loss.
            self.give(Kind::ApplicationLimited, gap, &evidence);
        } else if half.high > 0 && begin > half.high {
            // What lies between may have been lost before it came here.
            let doubt = Doubt::Hole(half.high, begin);
            self.open_silence(segment, from, gap, end, doubt);
        } else if !in_flight && missing > 0 && gap <= self.longest_wait(from, missing) {
            self.open_silence(
                segment,
                from,
                gap,
                begin + missing * u64::from(self.mss(from)),
                Doubt::Numbers,
            );
        } else if self.is_windowed(from, segment.payload_bytes.min(self.mss(from)).into(), limits)
            || (half.window_is_known && fills_small_window)
        {
            self.give(Kind::ReceiverLimited, gap, &evidence);
        } else if (in_flight && !self.has_just_left(segment, from, gap))
            || self.is_answer_late(from, self.last + gap / 2)
        {
            // It had left long before, or what it waited for was under way from here to it: all of them stood still.
            let kind = self.of_late(from, gap, limits);
            self.give(kind, gap, &evidence);
        } else if in_flight {
            self.extend_episode(segment, from, gap, limits);
        } else if half.unpushed && !(half.is_pushed && gap > half.round_trip.timeout()) {
            self.attribute_unpushed(segment, from, gap, &evidence);
        } else {
            self.give(Kind::ApplicationLimited, gap, &evidence);
        }
    }

    /// A pause that ends by data which was sent before.
    fn attribute_to_resender(&mut self, segment: &Segment, from: Side, gap: i64, limits: &Thresholds) {
        let half = self.half(from);
        let end = half.places.near(segment.seq) + u64::from(segment.payload_bytes);
        let evidence = [half.last_number, segment.number];
        let is_keepalive = half.una >= half.high && segment.payload_bytes == 1;
        if is_keepalive {
            self.give(Kind::ApplicationLimited, gap, &[]);
        } else if half.window_is_known && half.window == 0 {
            self.give(Kind::ZeroWindow, gap, &evidence);
        } else if end <= half.una && self.missing_before(from) > 0 {
            // More was lost before it came here.
            self.stalls.push((self.last, from));
            self.give(Kind::RtoStall, gap, &evidence);
        } else if end <= half.una && !self.half(from.other()).flight.is_empty() {
            // The answer was lost, or late, with the data that came with it.
            self.wait_for_answer(from.other(), gap, segment.number);
        } else if end <= half.una {
            // The answer has passed here, and did not come to the sender in time.
            self.give(Kind::SpuriousRetransmit, gap, &evidence);
        } else {
            self.extend_episode(segment, from, gap, limits);
        }
    }

    /// A silence in which packets were lost before they came here: what ended it lies where nothing was seen yet.
    fn open_silence(&mut self, segment: &Segment, from: Side, gap: i64, high: u64, doubt: Doubt) {
        self.settle_silence(from);
        self.stalls.push((self.last, from));
        let (begin, end) = (self.last, self.last + gap);
        let half = self.half_mut(from);
        half.timed_out = high;
        let packets = vec![half.last_number, segment.number];
        let silence = Silence {
            begin,
            end,
            lost: gap,
            acknowledged: end,
            high,
            needless: false,
            doubt: Some(doubt),
            packets,
        };
        half.silence = Some(silence);
    }

    /// A pause that an acknowledgement without data ends.
    fn attribute_to_receiver(&mut self, segment: &Segment, from: Side, gap: i64, limits: &Thresholds) {
        let sender = from.other();
        let half = self.half(sender);
        let evidence = [half.last_number, segment.number];
        if self.is_shut() {
            self.give(Kind::ZeroWindow, gap, &evidence);
        } else if half.flight.is_empty() {
            self.give(Kind::ApplicationLimited, gap, &[]);
        } else if self.is_windowed(sender, self.mss(sender).into(), limits) {
            // Delayed or not, it is room that the sender waits for.
            self.give(Kind::ReceiverLimited, gap, &evidence);
        } else if self.is_delayed(segment, from, gap, limits) {
            // Kept aside: what follows tells whether anybody waited for it.
            self.held = Some(Held {
                sender,
                begin: self.last,
                end: self.last + gap,
                data: half.last_number,
                ack: segment.number,
            });
        } else if self.is_bloated(sender, limits) {
            self.give(Kind::Bufferbloat, gap, &evidence);
        } else {
            let kind = self.of_late(sender, gap, limits);
            self.give(kind, gap, &evidence);
        }
    }

    /// The cause of a pause in which data or its answer was under way, and no queue is known.
    fn of_late(&self, sender: Side, gap: i64, limits: &Thresholds) -> Kind {
        let round_trip = &self.half(sender).round_trip;
        // As late as answers are now, though not as soon as the soonest.
        let is_usual =
            round_trip.samples == 0 || gap as f64 <= round_trip.smoothed as f64 * limits.pause_rtts;
        // What came late once has no timer or queue that explains it.
        if is_usual { Kind::NetworkLimited } else { Kind::Unexplained }
    }

    /// Whether an acknowledgement so late may have been delayed on purpose: it is of news, and the last data was less
    /// than two segments.
    fn is_delayed(&self, segment: &Segment, from: Side, gap: i64, limits: &Thresholds) -> bool {
        let sender = from.other();
        let half = self.half(sender);
        let late = gap - (self.path_rtt() - self.reach(sender));
        !segment.flags.contains(TcpFlags::FIN)
            && segment.payload_bytes == 0
            && half.high > 0
            && half.places.near(segment.ack) > half.una
            && (half.last_payload < self.mss(sender) || half.flight.bytes() < 2 * u64::from(self.mss(sender)))
            && (limits.delayed_ack_least..=limits.delayed_ack_most).contains(&late.max(gap / 4 * 3))
    }

    /// After an acknowledgement that came late: if a small segment follows at once, it had waited for it (RFC 896 with
    /// RFC 1122 section 4.2.3.2).
    fn settle_held(&mut self, segment: &Segment, from: Side, now: i64, limits: &Thresholds) {
        let Some(held) = self.held.take() else { return };
        let soon = limits.held_nanoseconds + self.reach(held.sender) / 2 * 3;
        let waited = from == held.sender && segment.payload_bytes > 0 && now - held.end <= soon;
        let kind = match waited {
            true if segment.payload_bytes < self.mss(held.sender) => Kind::NagleDelayedAck,
            // A window of one segment waits for its acknowledgement, too.
            true => Kind::NetworkLimited,
            // It waited for others, which are late.
            false if from == held.sender && self.is_answer_late(from, held.begin) => Kind::Unexplained,
            false => Kind::ApplicationLimited,
        };
        self.note(kind, held.begin, held.end, held.end - held.begin, &[held.data, held.ack, segment.number]);
    }

    /// A pause in which an answer was under way, which the other end did not hear: it has asked again. What becomes of the
    /// answer tells why.
    fn wait_for_answer(&mut self, answerer: Side, gap: i64, number: u64) {
        let begin = self.last;
        let half = self.half_mut(answerer);
        let (una, high, delivered, data) = (half.una, half.high, half.delivered, half.last_number);
        let episode = half.episode.get_or_insert_with(|| Episode {
            una,
            begin,
            delivered,
            high,
            asked_again: true,
            packets: vec![data],
            ..Episode::default()
        });
        episode.lost += gap;
        episode.packets.push(number);
    }

    /// A pause that ended by sending again what was sent before, or by new data while older data was not answered.
    fn extend_episode(&mut self, segment: &Segment, from: Side, gap: i64, limits: &Thresholds) {
        let last = self.last;
        self.watch_loss(from, segment.number, limits);
        let is_unheard = self.was_unheard(from);
        let by_reordering_timer = self.is_by_reordering_timer(segment, from, gap, limits);
        let half = self.half_mut(from);
        let revealed = half.is_revealed(limits.duplicate_acks);
        let repaired_before =
            half.flight.front().is_some_and(|piece| piece.times > 1) && half.recovery > half.una;
        let (una, high, delivered, data) = (half.una, half.high, half.delivered, half.last_number);
        let is_oldest = half.places.near(segment.seq) <= una;
        let is_new = half.places.near(segment.seq) + u64::from(segment.payload_bytes) > high;
        let is_stale = half.is_stale(segment);
        let episode = half.episode.get_or_insert_with(|| Episode {
            una,
            begin: last,
            delivered,
            revealed,
            repaired_before,
            by_reordering_timer,
            high,
            stamp: segment.timestamps.map(|(value, _)| value),
            packets: vec![data],
            ..Episode::default()
        });
        episode.lost += gap;
        episode.is_stale |= is_stale && !is_new;
        episode.is_unheard |= is_unheard;
        if is_new {
            episode.probed = true;
        } else {
            episode.resends += 1;
            half.timed_out = if is_oldest { high } else { half.timed_out };
            episode.largest = episode.largest.max(segment.payload_bytes);
        }
        episode.packets.push(segment.number);
    }
}
