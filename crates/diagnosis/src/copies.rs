//! Packets that a file has twice: a mirror port shows them in and out, and several taps are merged into one file.
//!
//! ```text
//!   client ──▶ tap 1 ──── hops ────▶ tap 2 ──▶ server      the same packet, later, with a smaller TTL
//! ```
//!
//! A copy has all that the packet has but its TTL. What tells it from what an end sends again, the first that is there:
//!
//! - the number of a sender that counts (`numbers.rs`): a repeat has one of its own, so that the same number is the same packet,
//!   among the newest 65,536 of its direction;
//! - the timestamp, where the sender's clock ticks more often than an answer takes to come: nothing can have told it to repeat
//!   what it stamped at the same tick (RFC 7323);
//! - the TTL, which only the place changes, soon after or with the same timestamp;
//! - nearness: no SYN comes again sooner than the least timeout, and no data before an RTT has gone by.
//!
//! Where a SYN was seen twice, the file has several taps, and what follows comes twice as well. Without any of these nobody can
//! tell (identification 0 or IPv6, RFC 6864): what came twice then is `unclear_repeats`. All but the numbers are looked up among
//! the newest packets of a direction.

use crate::Thresholds;
use crate::connection::{Connection, Side, mark};
use crate::kinds::Kind;
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

/// The newest packets of a direction that are kept, and those of one that comes from several taps: as many as are between
/// two of them.
const MOST_PRINTS: usize = 64;
const MOST_PRINTS_OF_TAPS: usize = 1024;
/// A copy of a packet without an identification follows it within this.
const UNMARKED_NANOSECONDS: i64 = 20_000;
/// No timer repeats anything sooner (Linux: `TCP_RTO_MIN`).
pub(crate) const LEAST_TIMEOUT: i64 = 200_000_000;
/// What queues between two taps may add.
const QUEUES_NANOSECONDS: i64 = 1_000_000;

/// What tells a packet from others of its direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Print {
    seq: u32,
    ack: u32,
    payload: u32,
    flags: u8,
    window: u16,
    timestamps: Option<(u32, u32)>,
    identification: Option<u16>,
    /// Of the first SACK block.
    sack: u32,
}

/// One that was kept.
#[derive(Debug, Clone, Copy)]
struct Kept {
    at: i64,
    hops: u8,
    print: Print,
}

/// The newest packets of a direction, to know again what the capture has twice.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prints {
    kept: Vec<Kept>,
    /// The place of the oldest, once there is no room for more.
    oldest: usize,
    /// The most by which a copy of another tap came later; 0: there is one tap.
    apart: i64,
    /// Some copy came sooner than any repeat could.
    is_mirrored: bool,
}

impl Kept {
    fn of(segment: &Segment, now: i64) -> Kept {
        Kept { at: now, hops: segment.hops, print: Print::of(segment) }
    }
}

impl Print {
    fn of(segment: &Segment) -> Print {
        let mut print = Print::default();
        print.write(segment);
        print
    }

    #[inline]
    fn write(&mut self, segment: &Segment) {
        let (begin, end) = segment.sack.as_slice().first().copied().unwrap_or_default();
        (self.seq, self.ack, self.payload) = (segment.seq, segment.ack, segment.payload_bytes);
        (self.flags, self.window) = (segment.flags.0, segment.window);
        (self.timestamps, self.identification) = (segment.timestamps, segment.identification);
        self.sack = begin.rotate_left(16) ^ end;
    }
}

/// What tells a packet from one that its sender repeats, besides the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tells {
    /// An end may repeat such an acknowledgement at once, or is asked to repeat such data.
    Nothing,
    /// It has data and a timestamp.
    Data,
    /// And the sender's clock ticks more often than an answer comes, at least to what comes so much later.
    Stamp { least: i64 },
}

impl Prints {
    fn keep(&mut self, new: Kept) {
        let most = self.most();
        if self.kept.len() < most {
            return self.add(new);
        }
        self.kept[self.oldest] = new;
        self.oldest = if self.oldest + 1 < most { self.oldest + 1 } else { 0 };
    }

    /// Keeps a packet, field by field in its place: a copy of what was just written would wait for that.
    #[inline]
    fn keep_of(&mut self, segment: &Segment, now: i64) {
        let most = self.most();
        if self.kept.len() < most {
            return self.add(Kept::of(segment, now));
        }
        let slot = &mut self.kept[self.oldest];
        (slot.at, slot.hops) = (now, segment.hops);
        slot.print.write(segment);
        self.oldest = if self.oldest + 1 < most { self.oldest + 1 } else { 0 };
    }

    fn most(&self) -> usize {
        if self.apart > 0 || self.is_mirrored { MOST_PRINTS_OF_TAPS } else { MOST_PRINTS }
    }

    /// There is room for one more; there may have been less.
    #[cold]
    fn add(&mut self, new: Kept) {
        self.kept.rotate_left(self.oldest);
        self.oldest = 0;
        self.kept.push(new);
    }

    /// From the newest to the oldest.
    fn newest_first(&self) -> impl Iterator<Item = &Kept> {
        let (newer, older) = self.kept.split_at(self.oldest);
        newer.iter().rev().chain(older.iter().rev())
    }

    /// How long ago the same packet passed, if this may be a copy of it.
    /// `soonest`: no sender repeats it sooner.
    fn copied(&self, new: &Kept, evidence: Tells, soonest: i64, limits: &Thresholds) -> Option<i64> {
        let Kept { at: now, hops, print } = new;
        let marked = print.identification.is_some_and(|id| id != 0);
        // A sender that numbers its packets gives a repeat a number of its own, however late it is (RFC 6864 section 4.1).
        let numbers = marked && self.kept.iter().any(|old| old.print.identification != print.identification);
        let opens = TcpFlags(print.flags).contains(TcpFlags::SYN);
        let of_taps = if self.apart > 0 { 2 * self.apart + QUEUES_NANOSECONDS } else { 0 };
        // Without a number, a repair within a rack may look the same, but not so soon.
        // No number and no stamp may tell alone whether they go on: both together stand still for no repeat.
        let is_same = numbers || (marked && evidence != Tells::Nothing);
        let within = match (is_same, opens, marked) {
            (true, _, _) => i64::MAX,
            (_, true, _) => LEAST_TIMEOUT,
            (_, _, true) => limits.duplicate_nanoseconds,
            _ => UNMARKED_NANOSECONDS,
        };
        let is_copy = |old: &&Kept| {
            let ago = now - old.at;
            old.print == *print
                && ((ago <= within && (marked || opens || evidence != Tells::Nothing))
                    || ago <= of_taps.max(soonest)
                    || matches!(evidence, Tells::Stamp { least } if ago >= least)
                    // Taps whose clocks differ are far apart: a repeat has a stamp of its own.
                    || (old.hops != *hops && (ago <= LEAST_TIMEOUT || print.timestamps.is_some())))
        };
        self.newest_first().find(is_copy).map(|old| now - old.at)
    }
}

impl Connection {
    /// Whether the capture has this packet already.
    pub(crate) fn is_duplicate(
        &mut self,
        segment: &Segment,
        from: Side,
        now: i64,
        limits: &Thresholds,
    ) -> bool {
        if self.is_news(segment, from) {
            self.prints[from as usize].keep_of(segment, now);
            return false;
        }
        if self.repeats_a_number(segment, from) || self.repeats_stamped_syn(segment, from) {
            if segment.hops != self.hops[from as usize] {
                let prints = &mut self.prints[from as usize];
                prints.apart = prints.apart.max(1);
            }
            return true;
        }
        let new = Kept::of(segment, now);
        let evidence = self.tells(segment, from);
        let soonest = self.soonest_repeat(segment, from, limits);
        let prints = &mut self.prints[from as usize];
        let copied = prints.copied(&new, evidence, soonest, limits);
        prints.is_mirrored |= copied.is_some_and(|ago| (1..=soonest).contains(&ago));
        if let Some(ago) = copied
            && (segment.syn.is_some() || prints.kept.iter().any(|old| old.hops != new.hops))
        {
            prints.apart = prints.apart.max(ago.clamp(1, LEAST_TIMEOUT));
        }
        prints.keep(new);
        copied.is_some()
    }

    /// Whether a packet comes from another tap than one with so many hops left, in a file that has several.
    pub(crate) fn is_of_other_tap(&self, segment: &Segment, from: Side, hops: u8) -> bool {
        self.prints[from as usize].apart > 0 && segment.hops != hops
    }

    /// What a copy is. Where a repeat filled a hole, and nothing marks packets, what is the same and comes behind it may as well be
    /// what it repeats, which it has overtaken; and where the way stood still for longer than a timer waits, a repeat comes at once
    /// behind what it repeats. Unless the capture is known to have packets twice.
    #[cold]
    pub(crate) fn kind_of_copy(&self, segment: &Segment, from: Side, now: i64) -> Kind {
        let half = self.half(from);
        let stood_still = half.has_paused(now - LEAST_TIMEOUT / 2, LEAST_TIMEOUT);
        let has_doubles = self.tallies.iter().any(|tally| tally.kind == Kind::CaptureDuplicates);
        let is_marked = segment.timestamps.is_some() || segment.identification.is_some_and(|own| own != 0);
        let has_overtaken = || half.told.has_filled(half.way.near(segment.seq));
        let may_be_sent = segment.payload_bytes > 0 && (stood_still || has_overtaken());
        if may_be_sent && !is_marked && !has_doubles { Kind::UnclearRepeats } else { Kind::CaptureDuplicates }
    }

    /// The capture has data twice, as far as it is known.
    #[cold]
    pub(crate) fn keep_copy(&mut self, segment: &Segment, from: Side, kind: Kind) {
        let half = self.half_mut(from);
        let begin = half.way.near(segment.seq);
        if segment.payload_bytes > 0 {
            let range = (begin, begin + u64::from(segment.payload_bytes));
            half.doubles.take(range, segment.number, kind, false);
        }
    }

    /// The receiver has what lies in `range` twice, and nobody has sent it again, or only what filled a hole: it came twice to
    /// the capture, too. Whether the capture has it twice. What came later than a sender takes to repeat it was sent again: by the
    /// receiver's word the capture has not doubled it.
    #[cold]
    pub(crate) fn take_back_copy(&mut self, sender: Side, range: (u64, u64), now: i64) -> bool {
        let Some((number, kind, is_late)) = self.half_mut(sender).doubles.arrived(range) else {
            return false;
        };
        if is_late {
            self.half_mut(sender).counts.resend(range.1 - range.0);
            self.note(Kind::SpuriousRetransmit, now, now, 0, &[number]);
        }
        if let Some(tally) = self.tallies.iter_mut().find(|tally| tally.kind == kind) {
            tally.count -= 1;
            tally.packets.retain(|packet| *packet != number);
        }
        self.tallies.retain(|tally| tally.kind != kind || tally.count > 0);
        true
    }

    /// How soon its sender may repeat a segment, at the least; 0: nobody knows. It does not know of a loss before an RTT has gone by,
    /// and no timer is shorter, which delays on the way to the tap may shorten by a half. What answers have asked for by now, or a
    /// router, may come at once, but not twice.
    fn soonest_repeat(&self, segment: &Segment, from: Side, limits: &Thresholds) -> i64 {
        let half = self.half(from);
        let is_asked = half.is_revealed(limits.duplicate_acks) || self.notes.tell_too_big();
        let is_open = is_asked && !half.way.flight().is_repeated(half.way.near(segment.seq));
        // One byte asks whether the other end lives, or has opened its window.
        if is_open || segment.payload_bytes <= 1 { 0 } else { (self.path_rtt() / 2).min(LEAST_TIMEOUT) }
    }

    /// Whether its sender, which counts, has sent this number before, with what was seen then. A SYN or a reset may be that of
    /// something else in the name of its end.
    fn repeats_a_number(&self, segment: &Segment, from: Side) -> bool {
        let half = self.half(from);
        let begin = half.way.near(segment.seq);
        // A FIN takes a place (RFC 9293 section 3.4): a new one was not seen before.
        let fin = u64::from(segment.flags.contains(TcpFlags::FIN));
        let end = begin + u64::from(segment.payload_bytes) + fin;
        // A kernel may count an aggregate once, of which a NIC makes several packets.
        let is_news = segment.timestamps.is_some_and(|(value, _)| half.lag().is_news(value));
        segment.identification.is_some_and(|own| half.identities.has_passed(own))
            && !is_news
            && segment.flags.0 & TcpFlags::SYN.with(TcpFlags::RST).0 == 0
            && half.way.has_seen((begin, end))
    }

    /// Whether it is the SYN with its timestamp, from another place: a repeat has a timestamp of its own.
    fn repeats_stamped_syn(&self, segment: &Segment, from: Side) -> bool {
        let opening = &self.half(from).opening;
        segment.syn.is_some()
            && opening.count() > 0
            && segment.hops != self.hops[from as usize]
            && segment.timestamps.is_some_and(|stamps| opening.stamps() == Some(stamps))
            && self.half(from).way.near(segment.seq) == opening.place()
    }

    fn tells(&self, segment: &Segment, from: Side) -> Tells {
        let is_stamped = segment.payload_bytes > 0 && segment.timestamps.is_some();
        match is_stamped && !self.notes.tell_too_big() {
            true if self.stamps_tell(from) => Tells::Stamp { least: 0 },
            // Where nobody knows how soon answers come, what comes ticks later tells.
            true if self.may_be_slow(from) => Tells::Stamp { least: 2 * self.half(from).lag().tick() },
            true => Tells::Data,
            false => Tells::Nothing,
        }
    }

    /// Whether the newest segment of a sender was sent long before it came, so that it repeats nothing now: its number lies behind
    /// that of another, or it acknowledges less than its sender has acknowledged (RCV.NXT never goes back, RFC 9293 section 3.4),
    /// or its timestamp is old and, as far as the first copy is known, the same.
    pub(crate) fn is_stale(&self, segment: &Segment, from: Side) -> bool {
        let (half, answered) = (self.half(from), &self.half(from.other()).way);
        let has_forgotten =
            segment.flags.contains(TcpFlags::ACK) && answered.near(segment.ack) < answered.una();
        let number = segment.identification.unwrap_or(0);
        let is_newer = segment.timestamps.is_some() && half.lag().is_newer();
        if has_forgotten || (half.identities.last_is_behind(number) && !is_newer) {
            return true;
        }
        let original = half.way.flight().at(half.way.near(segment.seq));
        segment.timestamps.is_some()
            && !half.identities.last_is_newest(number)
            && original.is_none_or(|piece| piece.mark == mark(segment))
            && half.lag().is_stale(self.stamps_tell(from) || self.may_be_slow(from))
    }

    /// Whether a sender's clock ticks more often than an answer takes to come to it.
    pub(crate) fn stamps_tell(&self, from: Side) -> bool {
        self.path_rtt() / 2 > self.half(from).lag().tick()
    }

    /// Whether nobody knows how soon an answer comes to a sender, of which the clock ticks often enough.
    fn may_be_slow(&self, from: Side) -> bool {
        self.path_rtt() == 0 && self.half(from).lag().tick() < i64::MAX
    }

    /// Whether a segment has data, or acknowledges some, beyond all before it, so that it is no copy.
    fn is_news(&self, segment: &Segment, from: Side) -> bool {
        let half = self.half(from);
        if segment.payload_bytes > 0 {
            return half.way.has_begun() && half.way.near(segment.seq) >= half.way.high();
        }
        let newest = self.prints[from as usize].newest_first().next();
        newest.is_some_and(|last| (segment.ack.wrapping_sub(last.print.ack) as i32) > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use framegauge_packets::capture::SackBlocks;
    use std::net::SocketAddr;

    fn numbered(number: u32) -> Kept {
        let end = SocketAddr::from(([10, 0, 0, 1], 1));
        let segment = Segment {
            nanoseconds: 0,
            number: 1,
            source: end,
            destination: end,
            seq: number,
            ack: 0,
            flags: TcpFlags::ACK,
            window: 0,
            payload_bytes: 0,
            ip_bytes: 40,
            timestamps: None,
            sack: SackBlocks::default(),
            syn: None,
            multipath: false,
            fast_open: false,
            identification: None,
            hops: 64,
            ecn: 0,
            checksum_is_right: None,
            option_bytes: 0,
            options_are_cut: false,
            fragments: None,
        };
        Kept { at: 0, hops: 64, print: Print::of(&segment) }
    }

    #[test]
    fn the_newest_are_kept_in_order_also_where_a_second_tap_makes_room_for_more() {
        let mut prints = Prints::default();
        let newest = |prints: &Prints| prints.newest_first().map(|entry| entry.print.seq).collect::<Vec<_>>();
        let most = MOST_PRINTS as u32;
        (0..most + 4).for_each(|number| prints.keep(numbered(number)));
        assert_eq!(newest(&prints), (4..most + 4).rev().collect::<Vec<_>>());
        prints.apart = 1;
        (most + 4..most + 14).for_each(|number| prints.keep(numbered(number)));
        assert_eq!(newest(&prints), (4..most + 14).rev().collect::<Vec<_>>());
    }
}
