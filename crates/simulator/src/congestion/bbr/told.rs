//! What BBR is told with an acknowledgement.

use crate::congestion::State;

/// The connection, as it is after an acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    pub(crate) now_us: u64,
    /// Now, and a second, in ticks of the kernel's clock.
    pub(crate) now_ticks: u64,
    pub(crate) second_ticks: u64,
    pub(crate) state: State,
    /// Segments that were delivered and lost so far; and when one was delivered the last time.
    pub(crate) delivered: u64,
    pub(crate) delivered_us: u64,
    pub(crate) lost: u64,
    pub(crate) in_flight: u32,
    pub(crate) mss: u32,
    pub(crate) smoothed_us: Option<u64>,
    /// How long until pacing lets the next leave.
    pub(crate) departs_in_us: u64,
    /// The application's limit, in bytes per second.
    pub(crate) limit: u64,
}

/// What an acknowledgement tells of the rate at which the path delivers (`struct rate_sample`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sample {
    /// So many were delivered in so many microseconds; `None`: that cannot be told.
    pub(crate) rate: Option<(u64, u64)>,
    /// Delivered when the segment left that is acknowledged now.
    pub(crate) before: u64,
    pub(crate) is_app_limited: bool,
    pub(crate) rtt_us: Option<u64>,
    /// The acknowledgement may have been delayed.
    pub(crate) is_delayed: bool,
    /// Delivered and lost by this acknowledgement alone.
    pub(crate) acked: u32,
    pub(crate) losses: u32,
    /// Under way before it came.
    pub(crate) in_flight: u32,
}
