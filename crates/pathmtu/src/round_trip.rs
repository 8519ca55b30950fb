//! How long an answer may take.

use std::time::Duration;

/// Before anything has been answered.
const FIRST: Duration = Duration::from_millis(250);
const LEAST: Duration = Duration::from_millis(20);
const MOST: Duration = Duration::from_secs(4);

/// The patience for answers of one path, learnt from those that came.
///
/// As TCP's (RFC 6298), but with the slowest of late instead of a mean: probes come in bursts, and the last of a burst
/// is no more lost than its first. An answer that comes too late all the same is still believed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patience {
    slowest: Option<Duration>,
    /// The slowest that was seen from here to anywhere.
    elsewhere: Duration,
}

impl Patience {
    /// An answer took this long.
    pub(crate) fn answered(&mut self, rtt: Duration) {
        let slowest = self.slowest.unwrap_or(rtt);
        // A slow answer counts at once and is forgotten slowly.
        self.slowest = Some(if rtt >= slowest { rtt } else { slowest - (slowest - rtt) / 64 });
    }

    /// Whether anything was answered.
    pub(crate) fn is_learnt(&self) -> bool {
        self.slowest.is_some()
    }

    /// An answer from elsewhere took this long: a host that is so busy, or has such neighbours, may find them all slow.
    pub(crate) fn elsewhere(&mut self, rtt: Duration) {
        self.elsewhere = self.elsewhere.max(rtt);
    }

    /// How much later than the answer to a probe, which took this long, the answer to an earlier one of its flow may come: it
    /// may be larger, and links that share a flow's packets keep no order.
    pub(crate) fn reordering(rtt: Duration) -> Duration {
        (rtt / 2).clamp(LEAST, MOST)
    }

    /// After which a packet has left the network, in all likelihood.
    pub(crate) fn crossing(&self) -> Duration {
        self.slowest.unwrap_or(LEAST).clamp(LEAST / 20, MOST)
    }

    /// How long to wait before silence is called silence.
    pub(crate) fn limit(&self) -> Duration {
        match self.slowest {
            None => (self.elsewhere * 3).clamp(FIRST, MOST),
            Some(slowest) => (slowest * 3).clamp(LEAST, MOST),
        }
    }
}
