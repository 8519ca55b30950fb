//! Windows as they are written, without their scale (RFC 7323 section 2.2), and what became of data beyond them.
//!
//! One capture shows what never arrived (`tracking.rs`). Two show where it went: what a device between them drops by a window
//! that it does not scale is all that begins beyond, and nothing else.

use super::matching::Part;
use super::record::Record;
use framegauge_packets::capture::Segment;
use serde::Serialize;

/// Data beyond the other end's window as it is written, between two taps. Segments are those of the first tap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Unscaled {
    /// Segments that begin beyond it.
    pub beyond_segments: u64,
    /// Those of them that were lost, in part or wholly.
    pub lost_segments: u64,
    /// Other segments with data that were lost.
    pub others_lost_segments: u64,
}

/// What the SYN of an end says, and how far the other end's windows let it send, at one tap.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Written {
    scales: bool,
    /// The window of its SYN, which is never scaled.
    opening: u16,
    /// The place after the other end's window.
    edge: Option<i64>,
}

impl Written {
    /// Takes the SYN of its end.
    pub(super) fn open(&mut self, segment: &Segment) {
        self.scales = segment.syn.is_some_and(|syn| syn.window_scale.is_some_and(|shift| shift > 0));
        self.opening = segment.window;
    }

    /// The other end acknowledges all below a place. `of`: what its own SYN says, whose window counts until the first.
    pub(super) fn hear(&mut self, place: i64, window: u16, of: Written) {
        let first = if self.edge.is_none() { of.opening } else { 0 };
        let edge = place + i64::from(window.max(first));
        self.edge = self.edge.max(Some(edge));
    }

    /// Whether data that begins at a place lies beyond it.
    pub(super) fn is_before(&self, begin: i64) -> bool {
        self.edge.is_some_and(|edge| begin > edge)
    }

    /// Whether its end scales its windows.
    pub(super) fn scales(&self) -> bool {
        self.scales
    }
}

/// What became of the data of a lane. `unjudged`: records of which nothing is known; both in order.
pub(super) fn judged(sent: &[Record], lost: &[Part], unjudged: &[usize]) -> Unscaled {
    let mut unscaled = Unscaled::default();
    let is_lost = |place: usize| lost.binary_search_by_key(&place, |part| part.0).is_ok();
    for (place, record) in sent.iter().enumerate().filter(|(_, record)| record.is_beyond) {
        debug_assert!(record.payload() > 0, "only data lies beyond a window");
        if unjudged.binary_search(&place).is_err() {
            unscaled.beyond_segments += 1;
            unscaled.lost_segments += u64::from(is_lost(place));
        }
    }
    let mut others: Vec<usize> = lost.iter().map(|part| part.0).collect();
    others.dedup();
    others.retain(|place| !sent[*place].is_beyond && sent[*place].payload() > 0);
    unscaled.others_lost_segments = others.len() as u64;
    unscaled
}
