//! What one end sent last, and whether it had more to send.

use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

/// Segments so near to each other left in one burst.
const BURST_NANOSECONDS: i64 = 200_000;

/// What Ethernet's usual packets of 1,500 bytes carry, with IPv4 and IPv6, without timestamps and with them.
const USUAL_PAYLOADS: [u32; 4] = [1460, 1448, 1440, 1428];
/// What no jumbo frame holds.
pub(crate) const LARGEST_SEGMENT: u32 = 9216;

/// So many pauses are a pace.
const ENOUGH_STALLS: u32 = 3;

/// One more may have left behind a closed window, or for an application that changed its mind.
const ENOUGH_UNHELD: u32 = 3;

/// A paced sender sends two segments at once, at least.
const PACED_SEGMENTS: u64 = 2;

/// New data that left since nothing was under way: what a program has written at once, or a part of it. The kernel sets PSH at
/// the end of a write, and also at that of each burst that it hands over at once.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    bytes: u64,
    /// What those before that ended with full segments have as their common part, in bytes; 0: there was none.
    before: u64,
    /// One of them was a write alone.
    is_known: bool,
    /// Something followed a PSH within it.
    goes_on: bool,
    /// Those that ended with a full segment were not all as large, or as several.
    differ: bool,
}

impl Block {
    /// Takes new data, with what it skips, where PSH may have been. `follows_push`: PSH was before it. `is_next`: it begins another
    /// block.
    fn take(&mut self, bytes: u64, mss: u32, follows_push: bool, skips: bool, is_next: bool) {
        if is_next {
            if self.bytes > 0 && self.bytes.is_multiple_of(u64::from(mss.max(1))) {
                self.differ |= self.differs(mss);
                let is_alone = !self.goes_on;
                self.before =
                    if is_alone { self.bytes } else { greatest_common_part(self.before, self.bytes) };
                self.is_known |= is_alone;
            }
            (self.bytes, self.goes_on) = (0, false);
        }
        self.goes_on |= skips || (follows_push && !is_next);
        self.bytes += bytes;
    }

    /// Whether it is not as large as one before that was a write alone. What a program writes while data is under way follows that,
    /// behind its PSH: several as large.
    fn differs(&self, mss: u32) -> bool {
        let is_part = self.before.is_multiple_of(self.bytes.max(1));
        match (self.is_known, self.goes_on) {
            (true, false) => self.bytes != self.before,
            (true, true) => !self.bytes.is_multiple_of(self.before),
            (false, false) => !is_part,
            (false, true) if self.before == 0 => false,
            (false, true) => greatest_common_part(self.before, self.bytes) <= PACED_SEGMENTS * u64::from(mss),
        }
    }

    /// Whether the PSH behind its full segments is none of a program's: that may write whole segments, but then always as many;
    /// two may be those of a sender that paces itself.
    fn is_cut_by_kernel(&self, mss: u32) -> bool {
        let is_paced = self.bytes <= PACED_SEGMENTS * u64::from(mss);
        self.differ || is_paced || (self.before > 0 && self.differs(mss))
    }
}

/// Of two numbers of bytes; 0 is none.
fn greatest_common_part(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// The newest data of one end. Until there is some, its time is that of the SYN.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sent {
    at: i64,
    number: u64,
    payload_bytes: u32,
    largest_bytes: u32,
    /// A payload that came once, and is larger than usual packets hold.
    candidate_bytes: u32,
    stamp: Option<u32>,
    /// It had been sent before.
    is_repeat: bool,
    had_more: bool,
    is_pushed: bool,
    /// It was full, and had no PSH.
    is_open: bool,
    is_full: bool,
    block: Block,
    /// PSH was at the end of a burst of full segments that may be all that a program wrote.
    may_be_write: bool,
    /// Pauses in which it had more to send, and the longest of them.
    stalls: u32,
    longest_stall: i64,
    /// The place after the newest small segment, and how many such left before the one before them was acknowledged.
    small: u64,
    unheld: u32,
}

impl Sent {
    /// When, in nanoseconds.
    pub(crate) fn at(&self) -> i64 {
        self.at
    }

    /// The number of its packet.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Its payload, in bytes.
    pub(crate) fn payload_bytes(&self) -> u32 {
        self.payload_bytes
    }

    /// The largest payload of one segment so far, in bytes: of what may be aggregates, none.
    pub(crate) fn largest_bytes(&self) -> u32 {
        self.largest_bytes
    }

    /// It had been sent before.
    pub(crate) fn is_repeat(&self) -> bool {
        self.is_repeat
    }

    /// It ended with a full segment that was not the end of a write: more was there.
    pub(crate) fn had_more(&self) -> bool {
        self.had_more
    }

    /// It was full, and no end of a write.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether a pause is one of many: a sender that paces itself pauses as long behind full segments with PSH, which Linux sets
    /// within a write now and then, as behind others.
    fn is_paced(&self, pause: i64) -> bool {
        self.is_full && self.stalls >= ENOUGH_STALLS && pause <= self.longest_stall.saturating_mul(2)
    }

    /// Whether it had more to send before a pause. Behind PSH it had not, if a timer would have run out meanwhile.
    pub(crate) fn had_more_before(&self, pause: i64, timeout: i64) -> bool {
        (self.had_more && !(self.is_pushed && pause > timeout)) || self.is_paced(pause)
    }

    /// Whether full segments were all that was sent, and nobody knows whether they were all that was written.
    pub(crate) fn may_be_write(&self) -> bool {
        self.may_be_write
    }

    /// Whether it turned out that the ends of its bursts were not those of writes.
    pub(crate) fn is_cut_by_kernel(&self) -> bool {
        self.block.differ
    }

    /// Whether it does not hold back small segments: Nagle's algorithm sends none while another one is under way (RFC 896).
    pub(crate) fn holds_nothing_back(&self) -> bool {
        self.unheld >= ENOUGH_UNHELD
    }

    /// Takes a new segment with data that is not full; up to `una` all is acknowledged.
    pub(crate) fn take_small(&mut self, (begin, end): (u64, u64), una: u64) {
        self.unheld += u32::from(self.small > una && begin >= self.small);
        self.small = end;
    }

    /// It paused, and had more to send.
    pub(crate) fn stall(&mut self, pause: i64) {
        self.stalls += 1;
        self.longest_stall = self.longest_stall.max(pause);
    }

    /// Whether a segment's timestamp is older than that of another one before it (RFC 7323 section 5).
    pub(crate) fn is_stale(&self, segment: &Segment) -> bool {
        match (self.stamp, segment.timestamps) {
            (Some(newest), Some((value, _))) => (value.wrapping_sub(newest) as i32) < 0,
            _ => false,
        }
    }

    /// Takes a SYN.
    pub(crate) fn open(&mut self, now: i64) {
        self.at = now;
    }

    /// Whether a payload that the usual packets do not hold is that of one segment, where no SYN tells. Full segments come again;
    /// aggregates are several usual ones, or have any size.
    fn is_jumbo(&mut self, bytes: u32) -> bool {
        let is_usual = USUAL_PAYLOADS.contains(&self.largest_bytes)
            || USUAL_PAYLOADS.iter().any(|usual| bytes.is_multiple_of(*usual));
        !is_usual && bytes <= LARGEST_SEGMENT && std::mem::replace(&mut self.candidate_bytes, bytes) == bytes
    }

    /// Takes data, or a FIN. `is_known`: SYNs tell the MSS, which is guessed without. `grown`: so far it goes beyond all that was
    /// sent before; what is sent again says nothing of what waits behind that. `was_idle`: nothing was under way.
    pub(crate) fn take(
        &mut self,
        segment: &Segment,
        mss: u32,
        is_known: bool,
        grown: u64,
        was_idle: bool,
        now: i64,
    ) {
        let bytes = segment.payload_bytes;
        self.is_repeat = grown == 0;
        if grown > 0 {
            // Without PSH the write goes on: beside the receiver nothing is under way while its sender waits for an answer.
            let is_next = was_idle && self.is_pushed && now - self.at > BURST_NANOSECONDS;
            self.block.take(grown, mss, self.is_pushed, grown > u64::from(bytes), is_next);
            self.take_new(segment, mss, now);
        }
        if is_known {
            self.largest_bytes = self.largest_bytes.max(bytes.min(mss));
        } else if bytes > self.largest_bytes && (bytes <= USUAL_PAYLOADS[0] || self.is_jumbo(bytes)) {
            self.largest_bytes = bytes;
        }
        if let Some((value, _)) = segment.timestamps
            && !self.is_stale(segment)
        {
            self.stamp = Some(value);
        }
        (self.at, self.number, self.payload_bytes) = (now, segment.number, bytes);
    }

    /// Whether more waits behind new data.
    fn take_new(&mut self, segment: &Segment, mss: u32, now: i64) {
        let bytes = segment.payload_bytes;
        // Linux sets PSH at the end of a write, and at that of a burst that it hands over at once (TSO).
        let is_full = bytes == mss || (bytes > mss && bytes.is_multiple_of(mss));
        let in_burst = bytes > mss || (self.is_open && now - self.at <= BURST_NANOSECONDS);
        self.is_pushed = segment.flags.contains(TcpFlags::PSH);
        self.is_open = is_full && !self.is_pushed;
        self.is_full = is_full;
        let is_cut = self.block.is_cut_by_kernel(mss);
        self.had_more = is_full && (!self.is_pushed || (in_burst && is_cut));
        self.may_be_write = is_full && self.is_pushed && in_burst && !is_cut;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use framegauge_packets::capture::SackBlocks;
    use std::net::SocketAddr;

    /// The largest segment of these payloads, where no SYN was seen.
    fn guessed(payloads: &[u32]) -> u32 {
        let end = SocketAddr::from(([10, 0, 0, 1], 1));
        let mut sent = Sent::default();
        for payload_bytes in payloads {
            let segment = Segment {
                nanoseconds: 0,
                number: 1,
                source: end,
                destination: end,
                seq: 0,
                ack: 0,
                flags: TcpFlags::ACK,
                window: 0,
                payload_bytes: *payload_bytes,
                ip_bytes: 0,
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
            sent.take(&segment, sent.largest_bytes(), false, 1, false, 0);
        }
        sent.largest_bytes()
    }

    #[test]
    fn without_syns_the_largest_segment_grows_and_aggregates_are_none() {
        for (payloads, largest) in [
            (&[100, 1000, 1448, 100][..], 1448),
            (&[536, 536, 1380], 1380),
            // Aggregates of usual packets, with a rest or without, and of what no frame holds.
            (&[1448, 2896, 4344, 3000, 3000, 14_480], 1448),
            (&[100, 2896, 2896, 14_480], 100),
            (&[17_896, 17_896, 600], 600),
            // Jumbo frames: a size that comes again.
            (&[517, 8948, 8948, 8948], 8948),
            (&[517, 8948, 3000, 700], 700),
        ] {
            assert_eq!(guessed(payloads), largest, "{payloads:?}");
        }
    }
}
