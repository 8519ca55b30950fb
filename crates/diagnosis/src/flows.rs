//! What is kept of each direction that carried much, to compare it with others (`outcast.rs`, `peers.rs`).

use crate::connection::{Connection, Side};
use crate::kinds::Kind;
use std::net::SocketAddr;

/// Less than this compares with nothing, in bytes: it ends within slow start.
pub(crate) const LEAST_BYTES: u64 = 64 * 1024;
/// How much had been acknowledged is kept for so many times ...
const MOST_MARKS: usize = 64;
/// ... at first so far apart, in nanoseconds.
const FIRST_STEP: i64 = 10_000_000;

/// How much had been acknowledged by when. The marks lie farther apart the longer it takes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    marks: Vec<(i64, u64)>,
    step: i64,
}

impl Progress {
    /// Takes how much has been acknowledged by now: any place of the stream, counted from anywhere.
    #[inline]
    pub(crate) fn take(&mut self, now: i64, place: u64) {
        if self.marks.last().is_none_or(|(at, _)| now - at >= self.step) {
            self.mark(now, place);
        }
    }

    #[cold]
    fn mark(&mut self, now: i64, place: u64) {
        self.step = self.step.max(FIRST_STEP);
        self.marks.push((now, place));
        if self.marks.len() == MOST_MARKS {
            self.step *= 2;
            let mut is_kept = false;
            self.marks.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
    }

    /// Bytes that were acknowledged from one time to another, between the marks in proportion.
    fn between(&self, begin: i64, end: i64) -> f64 {
        (self.at(end) - self.at(begin)).max(0.0)
    }

    fn at(&self, time: i64) -> f64 {
        let (Some(first), Some(last)) = (self.marks.first(), self.marks.last()) else { return 0.0 };
        let origin = first.1;
        let bytes = |place: u64| place.saturating_sub(origin) as f64;
        let next = self.marks.partition_point(|(at, _)| *at <= time);
        match next {
            0 => 0.0,
            _ if next == self.marks.len() => bytes(last.1),
            _ => {
                let ((one, from), (other, to)) = (self.marks[next - 1], self.marks[next]);
                let part = (time - one) as f64 / (other - one).max(1) as f64;
                bytes(from) + part * (bytes(to) - bytes(from))
            }
        }
    }
}

/// Data that was sent again, piece after piece: what was lost in a row.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Run {
    end: u64,
    bytes: u64,
    longest_bytes: u64,
}

impl Run {
    pub(crate) fn take(&mut self, begin: u64, end: u64) {
        let follows = begin == self.end;
        self.bytes = if follows { self.bytes } else { 0 } + (end - begin);
        self.end = end;
        self.longest_bytes = self.longest_bytes.max(self.bytes);
    }
}

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
        let mut found = Vec::new();
        for side in [Side::Client, Side::Server] {
            if self.half(side).counts.bytes < LEAST_BYTES {
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
            progress.marks.push((end, half.una));
            found.push(Flow {
                connection: self.number,
                sender,
                receiver,
                server: self.ends.server,
                hops: self.hops[side as usize],
                begin,
                end,
                bytes: self.half(side).counts.bytes,
                rtt,
                timeouts,
                loss_run: self.half(side).run.longest_bytes.div_ceil(mss).max(lost_before.into()),
                busy,
                is_explained,
                progress,
            });
        }
        found
    }
}

impl Kind {
    /// Whether it says why a connection was slower than others.
    fn explains(self) -> bool {
        let says_nothing =
            [Kind::ApplicationLimited, Kind::NetworkLimited, Kind::ShortFlowSlowStart, Kind::MssMismatch];
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_known_between_its_marks_however_long_it_takes() {
        let mut progress = Progress::default();
        for step in 0..10_000 {
            progress.take(step * 1_000_000, (1 << 32) + step as u64 * 1000);
        }
        assert!(progress.marks.len() < MOST_MARKS);
        let found = progress.between(2_000_000_000, 5_000_000_000);
        assert!((found - 3_000_000.0).abs() < 3_000.0, "{found}");
        assert_eq!(progress.between(-5, 0), 0.0);
    }

    #[test]
    fn a_run_goes_on_while_resends_follow_each_other() {
        let mut run = Run::default();
        for (begin, end) in [(100, 200), (200, 300), (400, 500), (500, 550)] {
            run.take(begin, end);
        }
        assert_eq!(run.longest_bytes, 200);
    }
}
