//! Black holes by size between two taps: from some packet on, all above a size were lost, and all up to it arrived.

use super::matching::Part;
use super::record::Record;
use serde::Serialize;

/// The same data was lost so many times, which a sender repeats by its timer: a queue that was full once is no black hole.
const LEAST_COPIES: usize = 3;

/// What was lost and what arrived, by size; payloads are those of single packets, 0 that of a pure acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LostSizes {
    /// The first packet since which it is so, in seconds since 1970 by the first tap's clock.
    pub since_seconds: f64,
    /// The smallest payload that was lost since then, in bytes.
    pub lost_bytes: u32,
    /// How many packets of the first tap were lost.
    pub lost_packets: u64,
    /// The largest payload that arrived since then.
    pub passed_bytes: u32,
    /// How many packets arrived.
    pub passed_packets: u64,
    /// The largest payload that arrived before.
    pub before_bytes: u32,
}

/// What sizes tell of a lane, if they tell anything. `unjudged`: records of which nothing is known; both in order.
/// `segment_bytes`: the largest payload of one packet.
pub(super) fn judged(
    sent: &[Record],
    lost: &[Part],
    unjudged: &[usize],
    segment_bytes: u32,
) -> Option<LostSizes> {
    let is_lost = |place: usize| lost.binary_search_by_key(&place, |part| part.0).is_ok();
    let bytes = |place: usize| sent[place].payload().min(segment_bytes);
    let (mut least_lost, mut most_passed) = (u32::MAX, 0);
    let (mut lost_packets, mut passed_packets) = (0, 0);
    let mut split = None;
    // The longest end of the lane in which sizes part what was lost from what arrived.
    for place in (0..sent.len()).rev().filter(|place| unjudged.binary_search(place).is_err()) {
        let own = bytes(place);
        if is_lost(place) {
            (least_lost, lost_packets) = (least_lost.min(own), lost_packets + 1);
        } else {
            (most_passed, passed_packets) = (most_passed.max(own), passed_packets + 1);
        }
        if least_lost <= most_passed {
            break;
        }
        if is_lost(place) {
            split = Some((place, least_lost, lost_packets, most_passed, passed_packets));
        }
    }
    let (first, lost_bytes, lost_packets, passed_bytes, passed_packets) = split?;
    let is_again =
        copies(sent, lost.iter().map(|part| part.0).filter(|place| *place >= first)) >= LEAST_COPIES;
    let arrived_before =
        (0..first).filter(|place| !is_lost(*place) && unjudged.binary_search(place).is_err());
    (is_again && passed_packets > 0).then(|| LostSizes {
        since_seconds: sent[first].nanoseconds as f64 / 1e9,
        lost_bytes,
        lost_packets,
        passed_bytes,
        passed_packets,
        before_bytes: arrived_before.map(bytes).max().unwrap_or(0),
    })
}

/// How often the same data was lost at most.
fn copies(sent: &[Record], places: impl Iterator<Item = usize>) -> usize {
    let mut begins: Vec<i64> = places.map(|place| sent[place].begin).collect();
    begins.sort_unstable();
    begins.chunk_by(|one, other| one == other).map(<[i64]>::len).max().unwrap_or(0)
}
