//! What is kept of each direction that carried much, to compare it with others (`outcast.rs`, `peers.rs`).

use crate::connection::{Connection, Side};
use crate::kinds::Kind;
use crate::progress::Progress;
use std::net::SocketAddr;

/// Less than this compares with nothing, in bytes: it ends within slow start.
pub(crate) const LEAST_BYTES: u64 = 64 * 1024;

/// One direction of a connection that has ended.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    pub(crate) connection: u64,
    pub(crate) sender: SocketAddr,
    pub(crate) receiver: SocketAddr,
    /// The server's end, which connections to one service share.
    pub(crate) server: SocketAddr,
    /// TTL or hop limit of its packets here.
    pub(crate) hops: u8,
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) bytes: u64,
    pub(crate) rtt: i64,
    /// Silences until a timeout.
    pub(crate) timeouts: usize,
    /// The most segments lost in a row.
    pub(crate) loss_run: u64,
    /// The time in which the application had something to send, in nanoseconds.
    pub(crate) busy: i64,
    /// Some finding explains why it was slow.
    pub(crate) is_explained: bool,
    progress: Progress,
}

impl Flow {
    /// Goodput from one time to another, in bytes a second.
    pub(crate) fn rate(&self, begin: i64, end: i64) -> f64 {
        self.progress.between(begin, end) / ((end - begin).max(1) as f64 / 1e9)
    }
}

impl Connection {
    /// Its directions that carried much.
    pub(crate) fn flows(&mut self) -> Vec<Flow> {
        let idle = self.lost(Kind::ApplicationLimited) + self.handshake;
        let (begin, end) = (self.first, self.last);
        let busy = end - begin - idle;
        // A limit explains it where it took a tenth of the time; a loss, wherever there was one.
        let is_explained = self
            .tallies
            .iter()
            .any(|tally| tally.kind.explains() && (!tally.kind.is_limit() || tally.lost >= busy / 10));
        let rtt = self.path_rtt();
        let mut flows = Vec::new();
        for side in [Side::Client, Side::Server] {
            if self.half(side).counts.bytes() < LEAST_BYTES {
                continue;
            }
            let timeouts = self.stalls.iter().filter(|(_, of)| *of == side).count();
            let mss = u64::from(self.mss(side));
            let (sender, receiver) = match side {
                Side::Client => (self.ends.client, self.ends.server),
                Side::Server => (self.ends.server, self.ends.client),
            };
            let lost_before =
                if self.reach(side) == 0 { 0 } else { self.half(side).identities.most_missing() };
            let half = self.half_mut(side);
            let mut progress = std::mem::take(&mut half.progress);
            progress.end(end, half.way.una());
            flows.push(Flow {
                connection: self.number,
                sender,
                receiver,
                server: self.ends.server,
                hops: self.hops[side as usize],
                begin,
                end,
                bytes: self.half(side).counts.bytes(),
                rtt,
                timeouts,
                loss_run: self.half(side).run.longest_bytes().div_ceil(mss).max(lost_before.into()),
                busy,
                is_explained,
                progress,
            });
        }
        flows
    }
}

impl Kind {
    /// Whether it says why a connection was slower than others.
    fn explains(self) -> bool {
        let says_nothing = [
            Kind::ApplicationLimited,
            Kind::NetworkLimited,
            Kind::ShortFlowSlowStart,
            Kind::MssMismatch,
            Kind::IpFragments,
        ];
        !self.is_quality() && !says_nothing.contains(&self)
    }

    /// Whether it sets a pace for some time.
    fn is_limit(self) -> bool {
        matches!(
            self,
            Kind::ReceiverLimited
                | Kind::Bufferbloat
                | Kind::SenderStall
                | Kind::ZeroWindow
                | Kind::NagleDelayedAck
                | Kind::Unexplained
        )
    }
}

/// The middle one; of none, 0.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
