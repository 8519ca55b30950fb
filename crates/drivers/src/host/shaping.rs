//! The shaper that bounds a sender's queue: the kernel's `tbf`, told the true size of every aggregate.

use framegauge_frames::{Family, Mtu, shaper_size_table};
use framegauge_linux::qdisc::{self, TokenBucket};
use framegauge_linux::{OsError, Result};

/// Bytes that may wait in the shaper, more than TCP Small Queues lets any sensible number of flows queue.
pub const SHAPER_LIMIT_BYTES: u32 = 32 << 20;

/// The shaper that bounds the sender's queue.
#[derive(Debug, Clone, Copy)]
pub struct Shaping {
    /// Bits per second, counted in bytes on the wire.
    pub bits_per_second: u64,
    /// Burst in bytes.
    pub burst_bytes: u32,
    /// Bytes that may wait.
    pub limit_bytes: u32,
    /// Largest aggregate that TCP builds; one must fit the burst with room for a timer that is late.
    pub aggregate_bytes: u32,
}

/// The token bucket of an interface whose packets are for or from a host with this MTU, of which an overlay takes
/// `tunnel_bytes`.
pub(crate) fn bucket(shaping: &Shaping, mtu: u32, family: Family, tunnel_bytes: u32) -> Result<TokenBucket> {
    let mtu = Mtu::new(mtu).map_err(|error| OsError {
        operation: "shape".into(),
        source: std::io::Error::other(error.to_string()),
    })?;
    Ok(TokenBucket {
        bits_per_second: shaping.bits_per_second,
        burst_bytes: shaping.burst_bytes,
        limit_bytes: shaping.limit_bytes,
        sizes: shaper_size_table(mtu, family, tunnel_bytes),
    })
}

/// Whether this kernel takes our shaper; `interface` is a device made for the question.
pub(crate) fn try_shaper(interface: &str) -> Result<()> {
    let shaping = Shaping {
        bits_per_second: 1_000_000_000,
        burst_bytes: 70_000,
        limit_bytes: SHAPER_LIMIT_BYTES,
        aggregate_bytes: 36_864,
    };
    qdisc::set_token_bucket(interface, &bucket(&shaping, 1500, Family::V4, 0)?)
}
