//! How many bytes of a search may be under way, and how soon the next packet may follow.

use crate::config::Config;
use std::time::Duration;

/// What a packet costs a host at least, in bytes: memory, and time.
const LEAST_COST: u32 = 1024;
/// What may be under way however much is lost.
const LEAST_WINDOW: u64 = 16 * 1024;
/// How many times the gap between packets may grow.
const SLOWEST: u32 = 8;

/// The pace of a search. It slows down where controls are lost, as TCP does (RFC 5681), so that the search of many hosts
/// does not itself make the loss that it then has to tell from a fault.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    in_flight_bytes: u64,
    /// What may be under way now, and at the most.
    window: u64,
    widest: u64,
    window_cut: Duration,
    /// Mean time between packets now, and at the least.
    gap: Duration,
    shortest: Duration,
    not_before: Duration,
    /// What may be sent; none: as much as the gap lets.
    bytes_per_second: Option<u32>,
}

impl Pace {
    /// With nothing under way.
    pub(crate) fn new(config: &Config) -> Pace {
        Pace {
            in_flight_bytes: 0,
            window: u64::from(config.in_flight_bytes),
            widest: u64::from(config.in_flight_bytes),
            window_cut: Duration::ZERO,
            gap: config.gap,
            shortest: config.gap,
            not_before: Duration::ZERO,
            bytes_per_second: None,
        }
    }

    /// From now on no more than so many bytes are sent per second.
    pub(crate) fn slow_down(&mut self, bytes_per_second: u32) {
        self.bytes_per_second = Some(bytes_per_second);
    }

    /// Bytes that may still be in the network.
    pub(crate) fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }

    /// No packet before this time.
    pub(crate) fn not_before(&self) -> Duration {
        self.not_before
    }

    /// Whether a packet of this size may be under way too. One may be in any case.
    pub(crate) fn has_room(&self, bytes: u32) -> bool {
        self.in_flight_bytes == 0 || self.in_flight_bytes + cost(bytes) <= self.window
    }

    /// Packet `number` of the search leaves.
    pub(crate) fn on_send(&mut self, now: Duration, number: u32, bytes: u32) {
        self.in_flight_bytes += cost(bytes);
        let share = |rate: u32| spread(Duration::from_secs(1) * bytes / rate.max(1), number);
        let slow = self.bytes_per_second.map(share).unwrap_or_default();
        self.not_before = now + slow.max(spread(self.gap, number));
    }

    /// A packet has left the network, arrived or not.
    pub(crate) fn on_gone(&mut self, bytes: u32) {
        self.in_flight_bytes -= cost(bytes);
    }

    /// A probe was answered in time: more may be under way.
    pub(crate) fn on_answer(&mut self) {
        self.window = (self.window + u64::from(LEAST_COST)).min(self.widest);
    }

    /// A packet of a size that passes is lost: half as much may be under way, half as often. Losses closer together than `limit` count once.
    pub(crate) fn on_loss(&mut self, now: Duration, limit: Duration) {
        if now >= self.window_cut + limit {
            self.window = (self.window / 2).max(LEAST_WINDOW);
            self.gap = (self.gap * 2).min(self.shortest * SLOWEST);
            self.window_cut = now;
        }
    }
}

/// Between a half and one and a half of the gap before packet `number`. Even gaps could keep step with a limit at the far
/// end, which would then answer every small packet of a pattern and no large one.
fn spread(gap: Duration, number: u32) -> Duration {
    // Knuth's multiplicative hash ("The Art of Computer Programming", 6.4): spread, and the same everywhere.
    let part = number.wrapping_mul(2_654_435_769) >> 24;
    gap / 2 + gap * part / 256
}

/// What a packet counts for while it is under way.
fn cost(bytes: u32) -> u64 {
    u64::from(bytes.max(LEAST_COST))
}
