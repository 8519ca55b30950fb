//! Packets that a tap never saw, by the identification of IPv4: many senders count it up for each packet of a connection
//! (Linux does), so that a step tells how many were lost before they came here, even where nothing else does.

use framegauge_packets::capture::Segment;

/// A larger step is no loss, but another way to count.
const MOST_MISSING: u16 = 4096;
/// So many steps show that the sender counts by one.
const ENOUGH: u32 = 5;
/// For each step of another size there must be so many of one.
const SHARE: u32 = 4;

/// The identifications of one end's packets in one connection.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Identities {
    next: Option<u16>,
    regular: u32,
    odd: u32,
    missing: u16,
}

impl Identities {
    /// Takes a packet; an aggregate has one identification for each segment of `mss` bytes.
    pub(crate) fn take(&mut self, segment: &Segment, mss: u32) {
        self.missing = 0;
        let Some(own) = segment.identification else { return };
        let next = own.wrapping_add(segment.payload_bytes.div_ceil(mss.max(1)).clamp(1, 64) as u16);
        match self.next.map(|expected| own.wrapping_sub(expected)) {
            Some(0) => self.regular = self.regular.saturating_add(1),
            Some(step) if step <= MOST_MISSING => {
                self.odd = self.odd.saturating_add(1);
                self.missing = step;
            }
            // Older than the last one: it was overtaken.
            Some(step) if step >= u16::MAX - MOST_MISSING => return,
            _ => {}
        }
        self.next = Some(next);
    }

    /// How many packets were lost between the last two that came here.
    pub(crate) fn missing(&self) -> u32 {
        let counts = self.regular >= ENOUGH && self.regular >= SHARE * self.odd.saturating_sub(1);
        if counts { self.missing.into() } else { 0 }
    }

    /// Whether the last two that came here followed each other for sure.
    pub(crate) fn shows_none_missing(&self) -> bool {
        self.regular >= ENOUGH && self.regular >= SHARE * self.odd.saturating_sub(1) && self.missing == 0
    }
}
