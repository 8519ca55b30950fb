//! Which cause a gap between two packets of a connection belongs to.

use crate::Thresholds;
use crate::connection::{Connection, Held, SIDES, Side};
use crate::half::Episode;
use crate::kinds::Kind;
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

impl Connection {
    /// Gives the time since the last packet to a cause; `segment` is the packet that ends it, not taken in yet.
    pub(crate) fn attribute(&mut self, segment: &Segment, from: Side, now: i64, limits: &Thresholds) {
        let gap = now - self.last;
        self.settle_held(segment, from, now, limits);
        if gap == 0 || self.closed {
            self.give(Kind::ApplicationLimited, gap, &[]);
            return;
        }
        if !self.established {
            self.attribute_handshake(segment, from, gap);
            return;
        }
        let pause = ((self.path_rtt() as f64 * limits.pause_rtts) as i64).max(limits.pause_nanoseconds);
        if gap <= pause {
            let kind = self.regime(from, segment, limits);
            self.give(kind, gap, &[]);
        } else if segment.payload_bytes > 0 || segment.flags.contains(TcpFlags::FIN) {
            self.attribute_to_sender(segment, from, gap, limits);
        } else {
            self.attribute_to_receiver(segment, from, gap, limits);
        }
    }

    /// Counts time up to now for a cause.
    fn give(&mut self, kind: Kind, gap: i64, packets: &[u64]) {
        if gap > 0 {
            let (begin, end) = (self.last, self.last + gap);
            self.note(kind, begin, end, gap, packets);
        }
    }

    fn attribute_handshake(&mut self, segment: &Segment, from: Side, gap: i64) {
        let half = self.half(from);
        let again = segment.flags.contains(TcpFlags::SYN) && half.syns > 0;
        if again {
            self.give(Kind::SynLoss, gap, &[self.last_number, segment.number]);
        } else {
            self.handshake += gap;
        }
    }

    /// What limits a connection that goes on without a pause.
    fn regime(&self, from: Side, segment: &Segment, limits: &Thresholds) -> Kind {
        let busiest =
            SIDES.into_iter().max_by_key(|side| self.half(*side).flight.bytes()).unwrap_or(Side::Client);
        if self.is_shut() {
            return Kind::ZeroWindow;
        }
        let half = self.half(busiest);
        if half.flight.is_empty() {
            // At the receiver's end nothing seems under way, although the sender may be waiting for its window.
            let goes_on =
                segment.payload_bytes > 0 && self.is_near_receiver(from) && self.half(from).last_payload > 0;
            return if goes_on { Kind::NetworkLimited } else { Kind::ApplicationLimited };
        }
        if half.window_is_known && half.room() < u64::from(self.mss(busiest) * limits.window_slack_segments) {
            return Kind::ReceiverLimited;
        }
        if self.is_bloated(busiest, limits) { Kind::Bufferbloat } else { Kind::NetworkLimited }
    }

    /// Whether an end's window is closed.
    fn is_shut(&self) -> bool {
        self.halves.iter().any(|half| half.window_is_known && half.window == 0)
    }

    /// Whether the newest RTT is far above the smallest.
    fn is_bloated(&self, sender: Side, limits: &Thresholds) -> bool {
        let round_trip = &self.half(sender).round_trip;
        let floor = self.path_rtt();
        round_trip.samples > 0
            && round_trip.latest - floor > limits.bloat_nanoseconds
            && round_trip.latest as f64 > floor as f64 * limits.bloat_factor
    }

    /// A pause that data or a FIN ends.
    fn attribute_to_sender(&mut self, segment: &Segment, from: Side, gap: i64, limits: &Thresholds) {
        let half = self.half(from);
        let begin = half.places.near(segment.seq);
        let end = begin + u64::from(segment.payload_bytes);
        let evidence = [half.last_number, segment.number];
        let closed = half.window_is_known && half.window == 0;
        if half.high > 0 && end <= half.high && segment.payload_bytes > 0 {
            let is_keepalive = half.una >= half.high && segment.payload_bytes == 1;
            if is_keepalive {
                self.give(Kind::ApplicationLimited, gap, &[]);
            } else if closed {
                self.give(Kind::ZeroWindow, gap, &evidence);
            } else {
                self.extend_episode(segment, from, gap, limits);
            }
            return;
        }
        let in_flight = !half.flight.is_empty();
        let kind = if closed {
            Kind::ZeroWindow
        } else if in_flight && half.window_is_known && half.room() < u64::from(segment.payload_bytes) {
            Kind::ReceiverLimited
        } else if !in_flight && self.had_more(from) {
            Kind::SenderStall
        } else {
            Kind::ApplicationLimited
        };
        self.give(kind, gap, &evidence);
    }

    /// Whether the sender's last segment says that more data was there: it was full, and not the end of a write (Linux
    /// sets PSH there).
    fn had_more(&self, sender: Side) -> bool {
        self.half(sender).unpushed
    }

    /// A pause that an acknowledgement without data ends.
    fn attribute_to_receiver(&mut self, segment: &Segment, from: Side, gap: i64, limits: &Thresholds) {
        let sender = from.other();
        let half = self.half(sender);
        let acks_news = half.high > 0 && half.places.near(segment.ack) > half.una;
        let evidence = [half.last_number, segment.number];
        if self.is_shut() {
            self.give(Kind::ZeroWindow, gap, &evidence);
        } else if half.flight.is_empty() {
            self.give(Kind::ApplicationLimited, gap, &[]);
        } else if acks_news && self.may_be_delayed(sender, gap, limits) {
            // Kept aside: what follows tells whether anybody waited for it.
            self.held = Some(Held {
                sender,
                begin: self.last,
                end: self.last + gap,
                data: half.last_number,
                ack: segment.number,
            });
        } else if half.room() < u64::from(self.mss(sender)) && half.window_is_known {
            self.give(Kind::ReceiverLimited, gap, &evidence);
        } else if self.is_bloated(sender, limits) {
            self.give(Kind::Bufferbloat, gap, &evidence);
        } else if half.round_trip.samples == 0 {
            self.give(Kind::NetworkLimited, gap, &evidence);
        } else {
            // An answer that came late once, and no timer or queue that explains it.
            self.give(Kind::Unexplained, gap, &evidence);
        }
    }

    /// Whether an acknowledgement so late may have been delayed on purpose: the last data was less than two segments.
    fn may_be_delayed(&self, sender: Side, gap: i64, limits: &Thresholds) -> bool {
        let late = gap - self.path_rtt();
        self.half(sender).last_payload < self.mss(sender)
            && (limits.delayed_ack_least..=limits.delayed_ack_most).contains(&late.max(gap * 3 / 4))
    }

    /// After an acknowledgement that came late: if a small segment follows at once, it had waited for it (RFC 896 with
    /// RFC 1122 section 4.2.3.2).
    fn settle_held(&mut self, segment: &Segment, from: Side, now: i64, limits: &Thresholds) {
        let Some(held) = self.held.take() else { return };
        let soon = if self.is_near_receiver(held.sender) {
            limits.held_nanoseconds + self.path_rtt() * 3 / 2
        } else {
            limits.held_nanoseconds
        };
        let small = segment.payload_bytes > 0 && segment.payload_bytes < self.mss(held.sender);
        let waited = from == held.sender && small && now - held.end <= soon;
        let kind = if waited { Kind::NagleDelayedAck } else { Kind::ApplicationLimited };
        self.note(kind, held.begin, held.end, held.end - held.begin, &[held.data, held.ack, segment.number]);
    }

    /// A pause that ended by sending again what was sent before.
    fn extend_episode(&mut self, segment: &Segment, from: Side, gap: i64, limits: &Thresholds) {
        let last = self.last;
        self.watch_loss(from, segment.number, limits);
        let half = self.half_mut(from);
        let revealed = half.is_revealed(limits.duplicate_acks);
        let repaired_before =
            half.flight.front().is_some_and(|piece| piece.times > 1) && half.recovery > half.una;
        let (una, delivered, data) = (half.una, half.delivered, half.last_number);
        let episode = half.episode.get_or_insert_with(|| Episode {
            una,
            begin: last,
            delivered,
            revealed,
            repaired_before,
            packets: vec![data],
            ..Episode::default()
        });
        episode.lost += gap;
        episode.resends += 1;
        episode.largest = episode.largest.max(segment.payload_bytes);
        episode.packets.push(segment.number);
    }
}
