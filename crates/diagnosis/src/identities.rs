//! Packets that a tap never saw, by the identification of IPv4: many senders count it up for each packet of a connection
//! (Linux does), so that a step tells how many were lost before they came here, even where nothing else does.

use crate::numbers::Numbers;
use framegauge_packets::capture::Segment;

/// A larger step is no loss, but another way to count.
const MOST_MISSING: u16 = 4096;
/// So many steps show that the sender counts by one.
const ENOUGH: u32 = 5;
/// For each step of another size there must be so many of one.
const SHARE: u32 = 4;
/// A host that counts for all its connections together counts on while one of them rests: a packet after a rest tells
/// whether it does.
const REST_NANOSECONDS: i64 = 1_000_000;
const ENOUGH_RESTED: u32 = 2;
/// After a rest as long as the least timeout of Linux, all that was sent before it may have been lost: a step then tells
/// nothing of how the host counts.
const TIMED_OUT_NANOSECONDS: i64 = 200_000_000;

/// Linux, which counts for each connection, sends with a TTL of 64 and with timestamps. Windows sends with 128, most network
/// gear with 255, and both count for all connections together; so do stacks of few bytes, which have no timestamps.
const MOST_HOPS_OF_LINUX: u8 = 64;

/// The identifications of one end's packets in one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Identities {
    next: Option<u16>,
    last: i64,
    regular: u32,
    odd: u32,
    /// The same of packets after a rest.
    rested_regular: u32,
    rested_odd: u32,
    /// Steps after rests that may be timeouts: by one, and larger ones.
    late_regular: u32,
    late_odd: u32,
    missing: u16,
    /// The most that were missing at a time.
    most_missing: u16,
    last_follows: bool,
    /// How many in a row were older than the one before.
    older: u32,
    /// A packet was that of a sender which may count for all its connections together.
    is_shared: bool,
    numbers: Numbers,
}

impl Identities {
    /// Takes a packet; an aggregate has one identification for each segment of `mss` bytes, if the SYNs told them
    /// (`is_mss_known`): else a segment may be larger than all before. `skipped`: bytes that it leaves out, which have numbers, too.
    pub(crate) fn take(&mut self, segment: &Segment, mss: u32, is_mss_known: bool, skipped: u64) {
        self.missing = 0;
        self.last_follows = false;
        // Linux answers a SYN with 0, before the connection has a counter.
        let Some(own) = segment.identification.filter(|own| *own > 0 || segment.syn.is_none()) else {
            return;
        };
        self.is_shared |= segment.hops > MOST_HOPS_OF_LINUX || segment.timestamps.is_none();
        let rest = segment.nanoseconds - self.last;
        let rested = u32::from(rest > REST_NANOSECONDS);
        let late = u32::from(rest >= TIMED_OUT_NANOSECONDS);
        self.last = segment.nanoseconds;
        // Nearly all are of one segment, which needs no division.
        let is_one = segment.payload_bytes <= mss || !is_mss_known;
        let pieces = if is_one { 1 } else { segment.payload_bytes.div_ceil(mss.max(1)).min(64) };
        let next = own.wrapping_add(pieces as u16);
        match self.next.map(|expected| own.wrapping_sub(expected)) {
            Some(0) => {
                self.regular = self.regular.saturating_add(1);
                self.last_follows = true;
                self.rested_regular = self.rested_regular.saturating_add(rested);
                self.late_regular = self.late_regular.saturating_add(late);
            }
            Some(step) if step <= MOST_MISSING => {
                if skipped > 0 && u64::from(step) == skipped.div_ceil(mss.max(1).into()) {
                    // As many numbers are missing as segments: none is that of another connection.
                    self.regular = self.regular.saturating_add(1);
                    self.rested_regular = self.rested_regular.saturating_add(rested);
                } else if rest < TIMED_OUT_NANOSECONDS {
                    self.odd = self.odd.saturating_add(1);
                    self.rested_odd = self.rested_odd.saturating_add(rested);
                }
                self.late_odd = self.late_odd.saturating_add(late);
                self.numbers.skip(step);
                self.missing = step;
                self.most_missing = self.most_missing.max(step);
            }
            // Older than the last one: it was overtaken. Several in a row are not.
            Some(step) if step >= u16::MAX - MOST_MISSING && self.older < ENOUGH => {
                self.older += 1;
                self.numbers.fill(u16::MAX - step);
                return;
            }
            Some(_) => self.numbers.jump(),
            None => {}
        }
        self.older = 0;
        self.numbers.follow(pieces as u16);
        self.next = Some(next);
    }

    /// Whether a packet with this number has passed. 0 is none: that of a packet without a socket, or of a stack that gives
    /// none to packets that are not to be fragmented (RFC 6864 section 4.1).
    pub(crate) fn has_passed(&self, own: u16) -> bool {
        own != 0
            && self.next.is_some_and(|next| self.numbers.has_passed(next.wrapping_sub(own).wrapping_sub(1)))
    }

    /// Whether the sender's numbers go up, packet by packet: it counts, for this connection or for all of its host.
    pub(crate) fn go_up(&self) -> bool {
        self.numbers.counts()
    }

    /// Whether the last packet that was taken was sent after all others, by its number.
    pub(crate) fn last_is_newest(&self, own: u16) -> bool {
        own != 0 && self.numbers.last_is_newest()
    }

    /// Whether it was sent before another that had passed.
    pub(crate) fn last_is_behind(&self, own: u16) -> bool {
        own != 0 && self.numbers.last_is_behind()
    }

    /// How many packets were lost between the last two that came here.
    pub(crate) fn missing(&self) -> u32 {
        if self.counts_by_one() { self.missing.into() } else { 0 }
    }

    /// The most packets that were lost in a row before they came here.
    pub(crate) fn most_missing(&self) -> u32 {
        if self.counts_by_one() { self.most_missing.into() } else { 0 }
    }

    /// Whether a number is far from the next one of a sender that counts by one. One of 0 is that of a packet without a
    /// socket.
    pub(crate) fn is_far(&self, own: u16) -> bool {
        let step = |next: u16| own.wrapping_sub(next);
        let is_near = |step: u16| step <= MOST_MISSING || step >= u16::MAX - MOST_MISSING;
        own != 0 && self.counts_by_one() && self.next.is_some_and(|next| !is_near(step(next)))
    }

    /// Whether the last two that came here followed each other for sure.
    pub(crate) fn shows_none_missing(&self) -> bool {
        self.counts_by_one() && self.missing == 0
    }

    /// Whether the last two that came here followed each other, or others were lost between them, if it turns out that the
    /// sender counts by one.
    pub(crate) fn may_follow(&self) -> Option<bool> {
        let is_known = !self.counts_by_one() && (self.last_follows || self.missing > 0);
        is_known.then_some(self.last_follows)
    }

    /// Whether the sender does not number its packets, or so that nothing follows: no two of them in a row.
    pub(crate) fn tells_nothing(&self) -> bool {
        !self.counts_by_one() && !self.last_follows
    }

    /// How many packets were lost between the last two that came here, if it turns out that the sender counts by one.
    pub(crate) fn may_miss(&self) -> u32 {
        self.missing.into()
    }

    /// Whether the steps after long rests are those of losses, as far as all of them tell: a host that counts for others as well
    /// has them after its rests, too, and those after which nothing was missing show that it rests.
    pub(crate) fn long_steps_are_losses(&self) -> bool {
        let regular = self.regular - self.late_regular;
        self.counts_by_one()
            && self.late_regular <= self.late_odd
            && regular >= SHARE * self.odd.saturating_sub(1)
    }

    /// Whether the sender counts up by one for each packet of this connection.
    pub(crate) fn counts_by_one(&self) -> bool {
        let counts =
            |regular, odd: u32, enough| regular >= enough && regular >= SHARE * odd.saturating_sub(1);
        // The first step may be that of a loss.
        let enough_rested = if self.odd <= 1 { 1 } else { ENOUGH_RESTED };
        !self.is_shared
            && counts(self.regular, self.odd, ENOUGH)
            && counts(self.rested_regular, self.rested_odd, enough_rested)
    }
}
