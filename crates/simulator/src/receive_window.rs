//! The receive window: what the buffer holds of it, and how it grows (Linux' `tcp_grow_window`, `tcp_rcv_space_adjust`).

use framegauge_frames::Picoseconds;

/// The share of a buffer that is payload where nothing was received yet (`TCP_DEFAULT_SCALING_RATIO`), of 256.
const SUPPOSED_SHARE: u64 = 128;
/// A packet's description (`struct sk_buff`). Neighbours in a queue are put together and share one if a page holds each of them
/// (`tcp_try_coalesce`).
const DESCRIPTION: u64 = 256;
const HEADERS: u64 = 66;
const ROOM: u64 = 64;
const SHARED_INFO: u64 = 320;
const PAGE: u64 = 4096;

/// What Linux' tun driver takes in memory for a frame of this payload (`truesize`): one piece with room at both ends while that
/// fits into a page, whole pages otherwise. The rack's hosts receive by it; others take as much, give or take a tenth.
fn memory(payload_bytes: u32) -> u64 {
    let bytes = match pages(payload_bytes) {
        None => piece(payload_bytes),
        Some(pages) => u64::from(pages) * PAGE,
    };
    DESCRIPTION + bytes
}

/// How many pages a frame of this payload takes; None if it is a piece of one.
pub(crate) fn pages(payload_bytes: u32) -> Option<u32> {
    (piece(payload_bytes) > PAGE).then(|| (u64::from(payload_bytes) + HEADERS).div_ceil(PAGE) as u32)
}

fn piece(payload_bytes: u32) -> u64 {
    (u64::from(payload_bytes) + HEADERS + ROOM).next_multiple_of(64) + SHARED_INFO
}

/// The measure of what is read begins at so many segments (`TCP_INIT_CWND`).
const FIRST_SEGMENTS: u64 = 10;
/// Smaller segments open no window.
const LEAST_BYTES: u32 = 128;

/// The window of one receiver, in bytes of payload where nothing else is said.
#[derive(Debug, Clone)]
pub(crate) struct ReceiveWindow {
    /// What is announced while the buffer is empty (`rcv_ssthresh`).
    pub(crate) open: u64,
    /// As it is announced on the SYN (`rcv_wnd`).
    first: u64,
    most: u64,
    /// The buffer in memory.
    buffer: u64,
    /// Of 256 bytes of memory, so many are payload (`scaling_ratio`).
    share: u64,
    /// What a full segment takes in memory, once one has come, and its payload.
    full: Option<(u64, u64)>,
    /// A full segment's payload (`advmss`).
    segment: u64,
    /// Since when reading is measured.
    tuned_at: Picoseconds,
    tuned_from: u64,
    /// What was read in a round trip, at most (`rcvq_space`).
    space: u64,
}

impl ReceiveWindow {
    /// `first`: the window as it is announced on the SYN; `most`: the most that it grows to.
    pub(crate) fn new(first: u32, most: u32, mss: u32) -> ReceiveWindow {
        let whole = if first > mss { first - first % mss } else { first };
        // 65,535 is what 16 bits can say of half a buffer of 131,072.
        ReceiveWindow {
            open: whole.into(),
            first: whole.into(),
            most: most.max(whole).into(),
            buffer: u64::from(first).next_multiple_of(2) * 256 / SUPPOSED_SHARE,
            share: SUPPOSED_SHARE,
            full: None,
            segment: mss.into(),
            tuned_at: Picoseconds::ZERO,
            tuned_from: 1,
            space: whole.into(),
        }
    }

    /// The connection is there: a segment's worth of the buffer is kept back (`tcp_init_buffer_space`).
    pub(crate) fn establish(&mut self, now: Picoseconds) {
        let whole = self.payload(self.buffer);
        if whole > 2 * self.segment {
            self.open = self.open.min((whole - self.segment).max(2 * self.segment));
        }
        self.space = self.open.min(FIRST_SEGMENTS * self.segment);
        self.tuned_at = now;
    }

    fn payload(&self, memory: u64) -> u64 {
        memory * self.share / 256
    }

    /// What the buffer holds of payload beside what is held (`tcp_space`).
    fn room(&self, held: u64) -> u64 {
        self.payload(self.buffer.saturating_sub(self.memory_of(held)))
    }

    /// What is held takes in memory, if all of it came in full segments.
    fn memory_of(&self, held: u64) -> u64 {
        match (held, self.full) {
            (0, _) => 0,
            (_, None) => held * 256 / self.share,
            (_, Some((memory, bytes))) if pages(bytes as u32).is_some() => held * memory / bytes,
            (_, Some((memory, bytes))) => held * (memory - DESCRIPTION) / bytes + DESCRIPTION,
        }
    }

    /// The same, if the last of it is a segment of `bytes`, which need not be full.
    fn memory_with(&self, held: u64, bytes: u32) -> u64 {
        if held < bytes.into() {
            return self.memory_of(held);
        }
        let before = self.memory_of(held - u64::from(bytes));
        let is_put_together = before > 0 && pages(bytes).is_none();
        before + memory(bytes) - if is_put_together { DESCRIPTION } else { 0 }
    }

    /// A segment has come, in order or not, and so much is held, it included. Whether the window has grown.
    pub(crate) fn grow(&mut self, bytes: u32, is_full: bool, supposed_mss: u32, held: u64) -> bool {
        if is_full && self.full.is_none() {
            let memory = memory(bytes);
            self.full = Some((memory, bytes.into()));
            self.share = (u64::from(bytes) * 256 / memory).min(256);
            // `tcp_set_window_clamp`: a buffer that holds more than was thought keeps nothing back.
            self.open = self.open.max(self.first.min(self.payload(self.buffer)));
        }
        let room = self.payload(self.buffer.saturating_sub(self.memory_with(held, bytes)));
        let room = room.min(self.most).saturating_sub(self.open);
        if bytes < LEAST_BYTES || room == 0 {
            return false;
        }
        let step = if is_full { 2 * self.segment } else { 2 * u64::from(supposed_mss) };
        self.open += step.max(2 * u64::from(bytes)).min(room);
        true
    }

    /// What it is told in: so that 16 bits hold the largest (RFC 7323; `tcp_select_initial_window`).
    pub(crate) fn unit(&self) -> u64 {
        1 << (2 * self.most).ilog2().saturating_sub(15).min(14)
    }

    /// What the buffer holds of payload (`window_clamp`).
    pub(crate) fn whole(&self) -> u64 {
        self.payload(self.buffer)
    }

    /// What is announced while so much is held, and whether less than half of the buffer is free (`__tcp_select_window`). Then
    /// it closes in time: silly windows are not announced (RFC 9293 section 3.8.6.2.2), and none below a sixteenth.
    pub(crate) fn select(&self, held: u64, segment: u64) -> (u64, bool) {
        let (whole, free, unit) = (self.whole(), self.room(held), self.unit());
        let is_short = free < whole / 2;
        let free = if is_short { free - free % unit } else { free };
        if is_short && (free < whole / 16 || free < segment.min(whole)) {
            return (0, true);
        }
        (free.min(self.open).next_multiple_of(unit), is_short)
    }

    /// Something came that lies beyond a hole, and what is beyond it reaches so far: that has to have room until the hole is
    /// filled (`tcp_data_queue_ofo`).
    pub(crate) fn make_room(&mut self, beyond: u64) {
        self.grow_buffer(self.space, beyond);
    }

    /// `tcp_rcvbuf_grow`.
    fn grow_buffer(&mut self, space: u64, beyond: u64) {
        let window = 2 * space;
        let window = window + 2 * (window * (space - self.space) / self.space) + beyond;
        self.buffer = self.buffer.max(window.min(self.most) * 256 / self.share);
        self.space = space;
    }

    /// The buffer grows with what is read in a round trip, twice as fast as the sender does in slow start. `read`: everything
    /// so far; `beyond`: what lies beyond a hole.
    pub(crate) fn tune(&mut self, now: Picoseconds, rtt: Picoseconds, read: u64, beyond: u64) {
        if rtt == Picoseconds::ZERO || now < self.tuned_at + rtt {
            return;
        }
        let copied = read - self.tuned_from;
        if copied > self.space {
            self.grow_buffer(copied, beyond);
        }
        self.tuned_at = now;
        self.tuned_from = read;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_takes_as_much_memory_as_the_driver_gives_it() {
        assert_eq!([1448, 8948].map(memory), [2176, 12_544]);
    }

    /// Of Linux 6.18 on the rack, in units of 1024: segments of MTU 9000 beyond a hole, of which each counts by itself once the
    /// next has come, and for which the buffer grows.
    #[test]
    fn large_segments_beyond_a_hole_are_not_put_together() {
        let mut window = ReceiveWindow::new(65_535, 16_777_216, 8948);
        window.establish(Picoseconds::ZERO);
        let windows: Vec<u64> = (0..6)
            .map(|before| {
                window.grow(8948, true, 8948, 8948 * before);
                window.make_room(8948 * (before + 2));
                window.open.next_multiple_of(1024)
            })
            .collect();
        assert_eq!(windows, [80_896, 99_328, 116_736, 122_880, 122_880, 122_880]);
    }

    /// Of Linux 6.18 on the rack: a segment that ends where the window did takes two pages, and the window grows to what the
    /// buffer holds beside these.
    #[test]
    fn a_segment_that_is_not_full_takes_its_own_pages() {
        let mut window = ReceiveWindow::new(65_535, 16_777_216, 8948);
        window.establish(Picoseconds::ZERO);
        for _ in 0..4 {
            window.grow(8948, true, 8948, 8948);
        }
        assert_eq!(window.open.next_multiple_of(1024), 84_992);
        window.grow(4460, false, 8948, 4460);
        assert_eq!(window.open.next_multiple_of(1024), 88_064);
    }

    #[test]
    fn every_full_segment_opens_it_by_two_up_to_what_the_buffer_holds() {
        let mut window = ReceiveWindow::new(65_535, 16_777_216, 1448);
        assert_eq!(window.open, 65_160);
        window.establish(Picoseconds::ZERO);
        let steps: Vec<u64> = (0..9)
            .map(|_| {
                window.grow(1448, true, 1448, 0);
                window.select(0, 1448).0
            })
            .collect();
        // As the kernel announces them, in units of 1024.
        assert_eq!(steps, [68_608, 71_680, 74_752, 76_800, 79_872, 82_944, 86_016, 87_040, 87_040]);
        assert!(!window.grow(1448, true, 1448, 0));
        // A segment that waits takes its memory; those behind it are put together with it.
        assert_eq!([1448, 14_480].map(|held| window.room(held)), [85_595, 74_120]);
        // Below half it closes in whole units, and for less than a segment or a sixteenth altogether.
        let closing = [50_000, 85_000, 93_000].map(|held| window.select(held, 1448));
        assert_eq!(closing, [(41_984, true), (11_264, true), (0, true)]);
    }

    #[test]
    fn what_is_read_in_a_round_trip_makes_the_buffer_larger() {
        let at = |ms: u64| Picoseconds::from_nanoseconds(ms * 1_000_000);
        let read = |mss: u32, bytes: u64| {
            let mut window = ReceiveWindow::new(65_535, 16_777_216, mss);
            window.establish(at(10));
            window.grow(mss, true, mss, 0);
            let first = (window.space, window.open);
            window.tune(at(20), at(10), 1 + bytes, 0);
            window.tune(at(25), at(10), 1 + 1_000_000, 0);
            (first, window.buffer)
        };
        // `rcv_space`, and `sk_rcvbuf` once so much was read, of Linux 6.18 on the rack.
        assert_eq!(read(8948, 71_584), ((56_588, 80_532), 308_108));
        assert_eq!(read(8948, 62_684), ((56_588, 80_532), 214_333));
        assert_eq!(read(1448, 14_528), ((14_480, 68_056), 131_072));
    }
}
