//! What TCP does not allow (RFC 9293): proven by what follows, and told only where the capture is complete.
//!
//! A capture that lacks packets shows the same as an end that breaks a rule. What follows tells them apart: a sender that
//! goes on *below* what was acknowledged had never sent it; one that goes on *above* had.

use crate::connection::{Connection, Side};
use crate::findings::{Tally, count};
use crate::half::Half;
use crate::kinds::Kind;
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

/// Packets of several queues of a NIC may be captured in another order by this much, in nanoseconds.
const ORDER_NANOSECONDS: i64 = 1_000_000;
/// A second SYN-ACK with another number within this is no cookie of another minute (RFC 4987 section 3.6).
const SAME_START_NANOSECONDS: i64 = 60_000_000_000;
/// The most that a window may be scaled by (RFC 7323 section 2.3).
const MOST_SHIFT: u8 = 14;

/// A rule that was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breach {
    AckOfUnsent,
    BeyondWindow,
    Jump,
    AfterFin,
    OtherStart,
    LargeShift,
    Flags,
}

impl Breach {
    /// Whether packets that the capture lacks look the same.
    fn may_be_loss(self) -> bool {
        matches!(self, Breach::AckOfUnsent | Breach::BeyondWindow | Breach::Jump | Breach::AfterFin)
    }

    fn words(self) -> &'static str {
        match self {
            Breach::AckOfUnsent => "data was acknowledged that had not been sent",
            Breach::BeyondWindow => "data was sent beyond the receiver's window, and not taken",
            Breach::Jump => "a sequence number lay outside of the window, and the next did not follow it",
            Breach::AfterFin => "data, or another FIN, came after a FIN",
            Breach::OtherStart => "the SYN-ACK was repeated with another sequence number",
            Breach::LargeShift => "a SYN announced a window scale above 14",
            Breach::Flags => "flags contradicted each other, or ACK was missing",
        }
    }
}

/// What may turn out to be a breach, of one direction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Suspects {
    /// Acknowledged, and not seen before.
    unsent: Option<Suspect>,
    /// Beyond the window.
    overrun: Option<Suspect>,
    /// Outside of the window.
    jump: Option<Suspect>,
    /// The place after the FIN; 0: there was none.
    after_fin: u64,
    /// The right edge of the window where it was farthest.
    farthest: u64,
}

#[derive(Debug, Clone, Copy)]
struct Suspect {
    begin: u64,
    end: u64,
    at: i64,
    number: u64,
    /// Some of it came so soon that the two may have been captured in another order.
    is_coming: bool,
}

impl Connection {
    fn breach(&mut self, breach: Breach, begin: i64, now: i64, packets: &[u64]) {
        let place = self.breaches.iter().position(|(known, _)| *known == breach).unwrap_or_else(|| {
            self.breaches.push((breach, Vec::new()));
            self.breaches.len() - 1
        });
        count(&mut self.breaches[place].1, Kind::ProtocolViolation, begin, now, 0, packets);
    }

    /// Checks flags and, of a SYN, its number and options. Before the segment is taken in. False: no end takes it in.
    pub(crate) fn check_header(&mut self, segment: &Segment, from: Side, now: i64) -> bool {
        let flags = segment.flags;
        let is_syn = flags.contains(TcpFlags::SYN);
        let contradicts = is_syn && (flags.contains(TcpFlags::FIN) || flags.contains(TcpFlags::RST));
        let lacks_ack = self.established
            && ![TcpFlags::SYN, TcpFlags::RST, TcpFlags::ACK].into_iter().any(|flag| flags.contains(flag));
        if contradicts || lacks_ack {
            self.breach(Breach::Flags, now, now, &[segment.number]);
        }
        let Some(syn) = segment.syn else { return !contradicts };
        if syn.window_scale.is_some_and(|shift| shift > MOST_SHIFT) {
            self.breach(Breach::LargeShift, now, now, &[segment.number]);
        }
        let half = self.half(from);
        let is_other = half.opening.count() > 0 && half.way.near(segment.seq) != half.opening.place();
        if is_other && flags.contains(TcpFlags::ACK) && now - half.sent.at() < SAME_START_NANOSECONDS {
            self.breach(Breach::OtherStart, half.sent.at(), now, &[half.sent.number(), segment.number]);
            return false;
        }
        !contradicts
    }

    /// Data after an acknowledgement of what the capture has not. A sender that goes on at once where it had stopped had
    /// never sent that. Before the segment is taken in.
    pub(crate) fn tell_unsent(&mut self, segment: &Segment, from: Side, now: i64) {
        if self.suspects[from as usize].unsent.is_none() {
            return;
        }
        let order = ORDER_NANOSECONDS.max(self.path_rtt() / 4);
        let suspects = &mut self.suspects[from as usize];
        let Half { way, counts, round_trip, .. } = &mut self.halves[from as usize];
        let Some(unsent) = suspects.unsent.filter(|_| segment.payload_bytes > 0) else { return };
        let begin = way.near(segment.seq);
        let waited = now - unsent.at;
        // After a timeout it may be a resend of what the capture lacks.
        if begin >= unsent.end || (begin == unsent.begin && waited >= round_trip.timeout()) {
            suspects.unsent = None;
            if !unsent.is_coming {
                self.note(Kind::CaptureLoss, unsent.at, unsent.at, 0, &[unsent.number]);
            }
        } else if begin == unsent.begin && way.flight().end() > begin {
            // Some of what lies behind was seen before: the packets are in another order, and nobody can tell.
            suspects.unsent = None;
        } else if begin == unsent.begin {
            if !unsent.is_coming {
                counts.disown(unsent.end - begin);
                way.take_back(begin);
            }
            let next = begin + u64::from(segment.payload_bytes);
            let rest = Suspect { begin: next, is_coming: true, ..unsent };
            // All of it may come so soon, if the two came in another order to where they were captured.
            suspects.unsent = Some(rest).filter(|_| waited <= order && next < unsent.end);
            if waited > order {
                way.disown(begin);
                self.breach(Breach::AckOfUnsent, unsent.at, now, &[unsent.number, segment.number]);
            }
        }
    }

    /// Checks data before it is taken in: `[begin, end)` are its places. False: it is none of this stream for now.
    pub(crate) fn check_data(&mut self, segment: &Segment, from: Side, range: (u64, u64), now: i64) -> bool {
        let is_windowed = self.has_windows();
        let half = &self.halves[from as usize];
        if self.suspects[from as usize].after_fin > 0 && range.1 > self.suspects[from as usize].after_fin {
            let packets = [half.sent.number(), segment.number];
            self.breach(Breach::AfterFin, now, now, &packets);
            return false;
        }
        if !is_windowed || segment.payload_bytes <= 1 || segment.flags.contains(TcpFlags::SYN) {
            return true;
        }
        self.check_window(segment, from, range, now)
    }

    /// Whether both windows are known: both SYNs were seen, and no other subflow shares them (RFC 8684 section 3.3.1).
    fn has_windows(&self) -> bool {
        !self.multipath && self.halves.iter().all(|half| half.opening.options().is_some())
    }

    /// The place up to which windows allow that are still on their way to a sender, as far as the tap can tell.
    fn farthest_on_its_way(&self, sender: Side) -> u64 {
        let half = self.half(sender);
        let shift = self.half(sender.other()).opening.window_shift().unwrap_or(0);
        let edge = |ack: &Segment| half.way.near(ack.ack) + (u64::from(ack.window) << shift);
        half.hearing.waiting().map(|waiting| edge(&waiting.segment)).max().unwrap_or(0)
    }

    fn check_window(&mut self, segment: &Segment, from: Side, (begin, end): (u64, u64), now: i64) -> bool {
        let half = &self.halves[from as usize];
        let farthest = self.suspects[from as usize].farthest;
        let suspect = Suspect { begin, end, at: now, number: segment.number, is_coming: false };
        if let Some(jump) = self.suspects[from as usize].jump.take() {
            let follows = begin.abs_diff(jump.end) <= half.way.largest_window().max(1 << 16);
            if !follows {
                self.breach(Breach::Jump, jump.at, now, &[jump.number, segment.number]);
            } else {
                // The capture lacks what lies between, and goes on from here.
                self.suspects[from as usize].farthest = farthest.max(end);
                return true;
            }
        }
        let half = &self.halves[from as usize];
        if farthest == 0 || end <= farthest || end <= self.farthest_on_its_way(from) {
            return true;
        }
        // What follows all that was seen leaps over nothing, wherever the window ended.
        if begin > farthest.max(half.way.high()) {
            self.suspects[from as usize].jump = Some(suspect);
            return false;
        }
        self.suspects[from as usize].overrun.get_or_insert(Suspect { begin: farthest, ..suspect });
        true
    }

    /// The receiver has answered: its window reaches to `edge`, and all below `ack` arrived.
    pub(crate) fn check_answer(&mut self, sender: Side, ack: u64, now: i64) {
        let half = &self.halves[sender as usize];
        let edge = half.way.edge();
        self.suspects[sender as usize].farthest = self.suspects[sender as usize].farthest.max(edge);
        // It was taken, so the window was larger than what the capture has of it.
        let order = ORDER_NANOSECONDS;
        let is_settled =
            |suspect: &mut Suspect| ack > suspect.begin || (edge >= suspect.end && now - suspect.at <= order);
        self.suspects[sender as usize].overrun.take_if(is_settled);
    }

    /// Data was sent again: if it was that beyond the window, the receiver had not taken it.
    pub(crate) fn check_resend(&mut self, segment: &Segment, from: Side, range: (u64, u64), now: i64) {
        let is_same = |suspect: &mut Suspect| range.0 < suspect.end && range.1 > suspect.begin;
        if let Some(suspect) = self.suspects[from as usize].overrun.take_if(is_same) {
            self.breach(Breach::BeyondWindow, suspect.at, now, &[suspect.number, segment.number]);
        }
    }

    /// An acknowledgement of what the capture has not: what the sender does next tells why.
    pub(crate) fn suspect_unsent(&mut self, sender: Side, begin: u64, end: u64, at: i64, number: u64) {
        let suspects = &mut self.suspects[sender as usize];
        match &mut suspects.unsent {
            Some(unsent) => unsent.end = unsent.end.max(end),
            None => suspects.unsent = Some(Suspect { begin, end, at, number, is_coming: false }),
        }
    }

    /// The end of the connection settles what nothing followed: the capture lacks it. Of what had begun to come, the rest
    /// has not been sent.
    pub(crate) fn settle_suspects(&mut self, side: Side) {
        let (now, order) = (self.last, ORDER_NANOSECONDS.max(self.path_rtt() / 4));
        let Some(unsent) = self.suspects[side as usize].unsent.take() else { return };
        if !unsent.is_coming {
            self.note(Kind::CaptureLoss, unsent.at, unsent.at, 0, &[unsent.number]);
        } else if now - unsent.at > order {
            self.breach(Breach::AckOfUnsent, unsent.at, now, &[unsent.number]);
        }
    }

    /// Names the breaches that the capture can prove.
    pub(crate) fn judge_breaches(&mut self) {
        let limits = [Kind::CaptureLoss, Kind::HalfCapture, Kind::CaptureMisordered];
        let is_incomplete = self.tallies.iter().any(|tally| limits.contains(&tally.kind));
        self.breaches.retain(|(breach, _)| !(is_incomplete && breach.may_be_loss()));
        let mut all: Option<Tally> = None;
        for tally in self.breaches.iter().flat_map(|(_, tallies)| tallies) {
            let Some(all) = &mut all else {
                all = Some(tally.clone());
                continue;
            };
            all.begin = all.begin.min(tally.begin);
            all.end = all.end.max(tally.end);
            all.count += tally.count;
            tally.packets.iter().for_each(|number| all.add_packet(*number));
        }
        self.tallies.extend(all);
    }

    /// What was broken, as a sentence.
    pub(crate) fn breaches_in_words(&self) -> String {
        let words: Vec<&str> = self.breaches.iter().map(|(breach, _)| breach.words()).collect();
        format!("TCP does not allow what was seen: {}.", words.join("; "))
    }
}

impl Connection {
    /// The right edge of a sender's window where it was farthest; 0: none is known.
    pub(crate) fn farthest_edge(&self, sender: Side) -> u64 {
        let half = self.half(sender);
        let is_known = half.opening.options().is_some() && half.way.knows_window();
        if is_known { self.suspects[sender as usize].farthest.max(half.way.edge()) } else { 0 }
    }
}

impl Suspects {
    /// A FIN ends the stream before this place.
    pub(crate) fn finish(&mut self, place: u64) {
        if self.after_fin == 0 {
            self.after_fin = place;
        }
    }
}
