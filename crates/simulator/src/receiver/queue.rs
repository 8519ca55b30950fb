//! Where the first buffer of the receive queue ends. A reader takes one after the other, and what was read in a round trip is
//! looked at after each (`tcp_recvmsg_locked` calls `tcp_rcv_space_adjust`): whatever else waits counts for the next one.

use crate::receive_window::pages;

/// A buffer has a segment of its own, and so many pieces more (`MAX_SKB_FRAGS`).
const MOST_SEGMENTS: u64 = 1 + 17;

/// The first buffer.
#[derive(Debug, Clone, Default)]
pub(super) struct First {
    /// Everything before is in it, or was read.
    pub(super) end: u64,
    segments: u64,
}

impl First {
    /// Segments with payload from `begin` to `end` join the queue, which is empty or not. Neighbours of which each is in a page
    /// were put together, and are put together with what ends there, as far as their pieces fit into one (`tcp_try_coalesce`).
    pub(super) fn add(&mut self, is_empty: bool, begin: u64, end: u64, segment_bytes: u32) {
        let most = if pages(segment_bytes).is_none() { MOST_SEGMENTS } else { 1 };
        let bytes = u64::from(segment_bytes.max(1));
        let segments = (end - begin).div_ceil(bytes).min(most);
        let reach = end.min(begin + segments * bytes);
        if is_empty {
            *self = First { end: reach, segments };
        } else if self.end == begin && self.segments + segments <= most {
            self.end = reach;
            self.segments += segments;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Linux 6.18's `skb_try_coalesce` puts together of the rack's frames: 18 of MTU 1500, none of MTU 9000.
    #[test]
    fn neighbours_share_a_buffer_as_far_as_their_pieces_fit() {
        let ends = |mss: u32| {
            let mut first = First::default();
            (0..20u64).for_each(|n| first.add(n == 0, n * u64::from(mss), (n + 1) * u64::from(mss), mss));
            first.end / u64::from(mss)
        };
        assert_eq!([1448, 8948].map(ends), [18, 1]);
        // The segment that fills a hole, and 18 or 17 beyond it.
        let filled = |beyond: u64| {
            let mut first = First::default();
            first.add(true, 1, 1449, 1448);
            first.add(false, 1449, 1449 + 1448 * beyond, 1448);
            first.end
        };
        assert_eq!([18, 17].map(filled), [1449, 1 + 1448 * 18]);
    }
}
